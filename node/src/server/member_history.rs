//! What this replica was before its start, as far as it knows.

/// What it was before this start, and what became of the others.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemberHistory {
    /// It was a member, in this life or in one that it has forgotten.
    pub was_member: bool,
    /// It was a member in an earlier life, and began this one without anything.
    pub has_forgotten: bool,
    /// So have all others.
    pub is_data_gone: bool,
}
