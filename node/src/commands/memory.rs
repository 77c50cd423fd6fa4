//! `quorumwire memory`: how much memory the items may take, and what happens there.
use super::view::{ClusterView, Target, ask_leader};
use crate::http::{MemoryRequest, PolicyWord};
use anyhow::Context as _;
use serde_json::Value;
use std::process::ExitCode;

/// Shown, or changed while running. What an item takes is its key, its value and 128 bytes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  quorumwire memory --addr 10.0.0.10:7480                          # what holds
  quorumwire memory --limit 2gib --policy evict --addr 10.0.0.10:7480
  quorumwire memory --limit none --addr 10.0.0.10:7480")]
pub struct Arguments {
    /// Bytes that the items may take on each replica, such as 512mib or 2gib; `none`: as many as there are
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    limit: Option<u64>,
    /// What happens there: writes are refused, or items go that were written or touched longest ago
    #[arg(long, value_enum)]
    policy: Option<PolicyWord>,
    #[command(flatten)]
    target: Target,
}

/// Shows it, or sets it.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.limit.is_some() || arguments.policy.is_some() {
        let request = MemoryRequest {
            limit_bytes: arguments.limit,
            policy: arguments.policy,
        };
        let _: Value = ask_leader(&arguments.target, "/v1/memory", &request)?;
    }
    let view = ClusterView::gather(&arguments.target)?;
    let leader = view.leader().with_context(|| view.why_no_leader())?;
    outln!("{}", leader.memory_in_words())?;
    Ok(ExitCode::SUCCESS)
}

/// A number of bytes with or without a unit.
fn bytes(text: &str) -> Result<u64, String> {
    if text == "none" {
        return Ok(0);
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" => Some(0),
        "kib" => Some(10),
        "mib" => Some(20),
        "gib" => Some(30),
        "tib" => Some(40),
        _ => None,
    };
    let number = number.parse::<u64>().ok().filter(|number| *number > 0);
    let bytes = shift.zip(number);
    let bytes = bytes.and_then(|(shift, number)| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| {
        "allowed: none, or a number from 1 on, in bytes, kib, mib, gib or tib".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn a_limit_has_a_unit_or_counts_bytes() {
        for (text, expected) in [
            ("none", 0),
            ("1000", 1000),
            ("2kib", 2048),
            ("512MiB", 512 << 20),
            ("2gib", 2 << 30),
            ("1tib", 1 << 40),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "0", "gib", "2gb", "-1", "1.5gib", "99999999999tib"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
