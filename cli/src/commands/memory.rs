//! `quorumwire memory`: how much memory the items may take, and what happens there.
use super::confirm;
use super::view::{Target, ask_leader, gather_with_leader};
use anyhow::Context as _;
use quorumwire_node::report::{Report, ReportedPolicy};
use quorumwire_ops::http::{MemoryRequest, PolicyWord};
use serde_json::Value;
use std::process::ExitCode;

/// Shows the limit, or changes it while the cluster runs. An item takes its key, its value and 128 bytes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  quorumwire memory --addr 10.0.0.10:7480                          # what holds
  quorumwire memory --limit 2gib --policy evict --addr 10.0.0.10:7480
  quorumwire memory --limit none --addr 10.0.0.10:7480")]
pub struct Arguments {
    /// How much memory the items may take on each replica, such as 512mib or 2gib; `none` sets no limit
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    limit: Option<u64>,
    /// What happens to a write for which there is no room
    #[arg(long, value_enum)]
    policy: Option<Policy>,
    /// Do it without asking, also if items are deleted at once
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    target: Target,
}

/// What happens to a write that needs memory while the items take more than the limit.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Policy {
    /// The write is refused.
    Refuse,
    /// The items that were written or touched longest ago are deleted; reads do not count.
    Evict,
}

impl From<Policy> for PolicyWord {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Refuse => Self::Refuse,
            Policy::Evict => Self::Evict,
        }
    }
}

/// Shows it, or sets it.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.limit.is_some() || arguments.policy.is_some() {
        let request = MemoryRequest {
            limit_bytes: arguments.limit,
            policy: arguments.policy.map(PolicyWord::from),
        };
        if !arguments.yes {
            let before = gather_with_leader(&arguments.target)?;
            let leader = before.leader().with_context(|| before.why_no_leader())?;
            if let Some(loss) = what_goes(leader, &request) {
                confirm::unless_yes(false, &loss)?;
            }
        }
        let _: Value = ask_leader(&arguments.target, "/v1/memory", &request)?;
    }
    let view = gather_with_leader(&arguments.target)?;
    let leader = view.leader().with_context(|| view.why_no_leader())?;
    anyhow::ensure!(
        !leader.serves_program(),
        "there is no limit of memory to be shown: a served program has none here, and may have one of its own"
    );
    outln!("{}", leader.memory_in_words())?;
    Ok(ExitCode::SUCCESS)
}

/// What is deleted as soon as the change holds, in words, if anything is.
fn what_goes(now: &Report, change: &MemoryRequest) -> Option<String> {
    let evicts = match change.policy {
        Some(policy) => policy == PolicyWord::Evict,
        None => now.memory_policy == ReportedPolicy::Evict,
    };
    let limit = change.limit_bytes.unwrap_or(now.memory_limit_bytes);
    let used = now.memory_used_bytes;
    if !evicts || limit == 0 || used <= limit {
        return None;
    }
    // Items are of different sizes, so this is how many go if they are not.
    let share = u128::from(used - limit) * u128::from(now.items);
    let count = share.div_ceil(u128::from(used));
    Some(format!(
        "with a limit of {} and the policy evict, about {count} of {} items are deleted at once: they take {}",
        in_units(limit),
        now.items,
        in_units(used)
    ))
}

/// A number of bytes for people, and exactly.
fn in_units(bytes: u64) -> String {
    let (unit, shift) = match bytes {
        0..0x400 => return format!("{bytes} bytes"),
        0x400..0x10_0000 => ("KiB", 10),
        0x10_0000..0x4000_0000 => ("MiB", 20),
        _ => ("GiB", 30),
    };
    let tenths = (u128::from(bytes) * 10) >> shift;
    format!("{}.{} {unit} ({bytes} bytes)", tenths / 10, tenths % 10)
}

/// A number of bytes, which has a unit: what is meant by a bare number, people guess differently.
fn bytes(text: &str) -> Result<u64, String> {
    const ALLOWED: &str =
        "allowed: none, or a whole number from 1 on with a unit: b, kib, mib, gib or tib";
    if text == "none" {
        return Ok(0);
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "b" => Some(0),
        "kib" => Some(10),
        "mib" => Some(20),
        "gib" => Some(30),
        "tib" => Some(40),
        "" if digits > 0 => {
            return Err(format!("the unit is missing, as in {number}gib; {ALLOWED}"));
        }
        _ => None,
    };
    let number = number.parse::<u64>().ok().filter(|number| *number > 0);
    let bytes = shift.zip(number);
    let bytes = bytes.and_then(|(shift, number)| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| ALLOWED.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{bytes, in_units, what_goes};
    use quorumwire_node::report::Report;
    use quorumwire_ops::http::{MemoryRequest, PolicyWord};

    #[test]
    fn a_limit_has_a_unit() {
        for (text, expected) in [
            ("none", 0),
            ("1000b", 1000),
            ("2kib", 2048),
            ("512MiB", 512 << 20),
            ("2gib", 2 << 30),
            ("1tib", 1 << 40),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "0b", "gib", "2gb", "-1", "1.5gib", "99999999999tib"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        for text in ["2", "0", "1000000000"] {
            let refused = bytes(text).unwrap_err();
            assert!(refused.contains("unit is missing"), "{text}: {refused}");
            assert!(refused.contains("kib, mib, gib or tib"), "{refused}");
        }
    }

    fn holding(items: u64, used: u64, limit: u64, policy: &str) -> Report {
        Report {
            items,
            memory_used_bytes: used,
            memory_limit_bytes: limit,
            memory_policy: policy.into(),
            ..Report::default()
        }
    }

    fn change(limit_bytes: Option<u64>, policy: Option<PolicyWord>) -> MemoryRequest {
        MemoryRequest {
            limit_bytes,
            policy,
        }
    }

    #[test]
    fn what_a_change_deletes_at_once_is_said() {
        let evict = Some(PolicyWord::Evict);
        let said = |now: &Report, change| what_goes(now, &change).unwrap_or_default();
        let full = holding(1000, 200_000, 0, "evict");
        let all = said(&full, change(Some(2), None));
        assert!(all.contains("about 1000 of 1000 items"), "{all}");
        let half = said(&full, change(Some(100_000), None));
        assert!(half.contains("about 500 of 1000 items"), "{half}");
        // Where the limit is as it was, the policy alone has them go.
        let refusing = holding(1000, 200_000, 150_000, "refuse");
        let policy = said(&refusing, change(None, evict));
        assert!(policy.contains("about 250 of 1000 items"), "{policy}");
        let harmless = [
            (&full, change(Some(200_000), None)),
            (&full, change(Some(0), evict)),
            (&full, change(Some(2), Some(PolicyWord::Refuse))),
            (&refusing, change(Some(2), None)),
        ];
        for (now, change) in harmless {
            assert_eq!(said(now, change), "", "{change:?}");
        }
    }

    #[test]
    fn the_policy_is_shown_whether_there_is_a_limit_or_not() {
        for limit in [0, 300_000] {
            for policy in ["refuse", "evict"] {
                let shown = holding(1, 200, limit, policy).memory_in_words();
                assert!(shown.contains(&format!("policy {policy}")), "{shown}");
            }
        }
    }

    #[test]
    fn bytes_are_shown_in_the_largest_unit_that_fits_and_exactly() {
        assert_eq!(in_units(2), "2 bytes");
        assert_eq!(in_units(1536), "1.5 KiB (1536 bytes)");
        assert_eq!(in_units(2 << 30), "2.0 GiB (2147483648 bytes)");
    }
}
