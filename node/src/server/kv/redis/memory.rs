//! `CONFIG SET maxmemory` and `maxmemory-policy`, which the log carries to all replicas.
use super::errors;
use quorumwire_kv::redis::Words;
use quorumwire_kv::{MemoryChange, MemoryPolicy};

/// What the words behind `CONFIG SET` ask for, or the error that they are answered with. `None`: they name
/// another option, or none.
pub fn change(words: &Words<'_>) -> Option<Result<MemoryChange, Vec<u8>>> {
    let words: Vec<&[u8]> = words.iter().collect();
    let [config, set, settings @ ..] = words.as_slice() else {
        return None;
    };
    let is_set = config.eq_ignore_ascii_case(b"config") && set.eq_ignore_ascii_case(b"set");
    let (settings, rest) = settings.as_chunks::<2>();
    if !is_set || settings.is_empty() || !rest.is_empty() {
        return None;
    }
    let is_limit = |name: &[u8]| name.eq_ignore_ascii_case(b"maxmemory");
    let is_known =
        |[name, _]: &[&[u8]; 2]| is_limit(name) || name.eq_ignore_ascii_case(b"maxmemory-policy");
    if !settings.iter().all(is_known) {
        return None;
    }
    let mut change = MemoryChange {
        for_redis: true,
        ..MemoryChange::default()
    };
    let failed = |name: &[u8], why: &str| Some(Err(failed(name, why)));
    let mut seen = [false; 2];
    for [name, _] in settings {
        if std::mem::replace(&mut seen[usize::from(is_limit(name))], true) {
            return failed(name, "duplicate parameter");
        }
    }
    for [name, value] in settings {
        if is_limit(name) {
            change.limit_bytes = bytes(value);
            if change.limit_bytes.is_none() {
                return failed(b"maxmemory", "argument must be a memory value");
            }
        } else {
            let policies = [MemoryPolicy::Evict, MemoryPolicy::Refuse];
            let is_it =
                |policy: &MemoryPolicy| value.eq_ignore_ascii_case(policy.redis_name().as_bytes());
            change.policy = policies.into_iter().find(is_it);
            if change.policy.is_none() {
                let why = "argument(s) must be one of the following: allkeys-lru, noeviction";
                return failed(b"maxmemory-policy", why);
            }
        }
    }
    Some(Ok(change))
}

/// Why an option is not set to what was asked for.
pub fn failed(name: &[u8], why: &str) -> Vec<u8> {
    let before = "ERR CONFIG SET failed (possibly related to argument '";
    errors::quoting(before, name, &format!("') - {why}"))
}

/// A number of bytes as Redis reads it: digits, and a unit.
fn bytes(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.to_ascii_lowercase();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    fn asked(words: &[&str]) -> Option<Result<MemoryChange, String>> {
        let text_of = |text: Vec<u8>| String::from_utf8(text).unwrap();
        let mut text = format!("*{}\r\n", words.len());
        for word in words {
            write!(text, "${}\r\n{word}\r\n", word.len()).unwrap();
        }
        let words = Words::from_text(text.as_bytes()).unwrap();
        change(&words).map(|change| change.map_err(text_of))
    }

    fn limit(bytes: u64) -> MemoryChange {
        MemoryChange {
            limit_bytes: Some(bytes),
            for_redis: true,
            ..MemoryChange::default()
        }
    }

    #[test]
    fn a_limit_is_read_as_redis_reads_it() {
        for (text, bytes) in [
            ("0", 0),
            ("1000", 1000),
            ("7b", 7),
            ("2k", 2000),
            ("2KB", 2048),
            ("3m", 3_000_000),
            ("3Mb", 3 << 20),
            ("4g", 4_000_000_000),
            ("4gb", 4 << 30),
        ] {
            let taken = asked(&["config", "SET", "maxmemory", text]);
            assert_eq!(taken, Some(Ok(limit(bytes))), "{text}");
        }
        for text in [
            "",
            "-1",
            "much",
            "1.5mb",
            "1 mb",
            "99999999999999999999",
            "99999999999gb",
        ] {
            let refused = asked(&["CONFIG", "set", "MaxMemory", text]).unwrap();
            let expected = "ERR CONFIG SET failed (possibly related to argument 'maxmemory') - \
                            argument must be a memory value";
            assert_eq!(refused, Err(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn both_are_set_together_and_each_once() {
        let both = asked(&[
            "CONFIG",
            "SET",
            "maxmemory-policy",
            "ALLKEYS-LRU",
            "maxmemory",
            "5",
        ]);
        let change = MemoryChange {
            policy: Some(MemoryPolicy::Evict),
            ..limit(5)
        };
        assert_eq!(both, Some(Ok(change)));
        let twice = asked(&["CONFIG", "SET", "maxmemory", "5", "maxmemory", "6"]).unwrap();
        assert!(twice.unwrap_err().ends_with("duplicate parameter"));
        let unknown = asked(&["CONFIG", "SET", "maxmemory-policy", "volatile-lru"]).unwrap();
        assert!(unknown.unwrap_err().contains("must be one of"));
        for other in [
            &["CONFIG", "SET", "maxmemory"][..],
            &["CONFIG", "GET", "maxmemory", "5"],
            &["CONFIG", "SET", "maxmemory", "5", "appendonly", "no"],
            &["CONFIG", "SET", "maxmemory", "5", "x"],
        ] {
            assert_eq!(asked(other), None, "{other:?}");
        }
    }
}
