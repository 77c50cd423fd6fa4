//! The command table: what is known of each command, row by row. What they do stands elsewhere.
//!
//! A row: name, number of words (at least, if negative), who serves it, flags, categories, tips; the keys
//! as first word, last word (counted from the first, or from behind if negative), step, flags and notes;
//! since, group, complexity; what it does, and its subcommands.

mod arguments;
mod connection;
mod keys;
mod server;
mod strings;

use std::sync::LazyLock;

use super::argument::Argument;
use super::spec::Spec;

/// All rows, in order of their names.
static SORTED: LazyLock<Vec<&'static Spec>> = LazyLock::new(|| {
    let all = strings::STRINGS.iter().chain(keys::KEYS);
    let mut rows: Vec<_> = all.chain(connection::CONNECTION).collect();
    rows.sort_unstable_by_key(|spec| spec.name);
    rows
});

/// All rows, in order of their names.
pub(super) fn all() -> &'static [&'static Spec] {
    &SORTED
}

/// What the command of this name is written with.
pub(super) fn arguments_of(name: &str) -> &'static [Argument] {
    let mut rows = arguments::ARGUMENTS.iter();
    rows.find(|(one, _)| *one == name)
        .map_or(&[], |(_, arguments)| arguments)
}

/// For a command that nobody should use any more: since which version of Redis, and what instead.
pub(super) fn instead_of(name: &str) -> Option<(&'static str, &'static str)> {
    match name {
        "getset" => Some(("6.2.0", "`SET` with the `!GET` argument")),
        "substr" => Some(("2.0.0", "`GETRANGE`")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::spec;

    #[test]
    fn arguments_are_those_of_commands_that_are_there_and_of_each_once() {
        let mut names = std::collections::BTreeSet::new();
        for (name, arguments) in arguments::ARGUMENTS {
            let row = spec(name.as_bytes()).unwrap_or_else(|| panic!("{name} is no command"));
            assert_eq!(row.name, *name);
            assert!(names.insert(name), "{name} twice");
            assert!(std::ptr::eq(arguments_of(name), *arguments), "{name}");
        }
        assert!(arguments_of("time").is_empty());
    }
}
