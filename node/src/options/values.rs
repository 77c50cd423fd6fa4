//! What a server that keeps values for learners is told of them.
use quorumwire_deliver::{LEARNERS_MAX, Learner};

/// Values are kept, in place of a key-value store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ValuesOptions {
    /// For whom: ascending, each once.
    pub learners: Vec<Learner>,
    /// So many bytes at most.
    pub kept_bytes_max: u64,
}

/// What the option for learners takes.
pub const LEARNERS_ALLOWED: &str = "up to 64 numbers of 0 to 65535, each once, such as `1,2`";
const _: () = assert!(LEARNERS_MAX == 64);

/// Learners: `1,2,7`.
pub fn parse_learners(text: &str) -> Option<Vec<Learner>> {
    let numbers = text.split(',').map(|it| it.trim().parse().ok());
    let mut learners: Vec<Learner> = numbers.collect::<Option<_>>()?;
    let count = learners.len();
    learners.sort_unstable();
    learners.dedup();
    (learners.len() == count && count <= LEARNERS_MAX).then_some(learners)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learners_are_numbers_each_once() {
        assert_eq!(parse_learners("7, 1,65535"), Some(vec![1, 7, 65535]));
        let all = |count: u16| {
            let numbers: Vec<String> = (0..count).map(|it| it.to_string()).collect();
            parse_learners(&numbers.join(",")).map(|it| it.len())
        };
        assert_eq!((all(64), all(65)), (Some(64), None));
        for wrong in ["", ",", "1,", "1,1", "-1", "65536", "one", "1 2"] {
            assert_eq!(parse_learners(wrong), None, "{wrong:?}");
        }
    }
}
