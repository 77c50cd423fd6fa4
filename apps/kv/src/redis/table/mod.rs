//! The command table: what is known of each command, row by row. What they do stands elsewhere.
//!
//! A row: name, number of words (at least, if negative), who serves it, flags, categories, tips; the keys
//! as first word, last word (counted from the first, or from behind if negative), step, flags and notes;
//! since, group, complexity; what it does, and its subcommands.

mod connection;
mod keys;
mod strings;

use std::sync::LazyLock;

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
