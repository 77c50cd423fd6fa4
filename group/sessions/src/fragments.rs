//! Commands of which fragments are missing.
use crate::Name;
use quorumwire_interfaces::Index;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most fragments of one command.
pub const FRAGMENTS_PER_COMMAND_MAX: u32 = 1024;

/// Most bytes of all commands of which fragments are missing; the one begun first gives way.
pub const FRAGMENTS_BYTES_MAX: usize = 32 << 20;

/// Counted for each command and each fragment besides its bytes, so that empty fragments are bounded too.
pub(crate) const OVERHEAD_BYTES: usize = 64;

/// All commands of which fragments are missing. A copy is cheap: it shares the bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fragments {
    commands: BTreeMap<Name, Partial>,
    by_begin: BTreeMap<Index, Name>,
    bytes: usize,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Partial {
    pub(crate) begun_at: Index,
    pub(crate) count: u32,
    pub(crate) fragments: BTreeMap<u32, Arc<[u8]>>,
}

/// One fragment of a command.
pub(crate) struct Fragment<'a> {
    pub(crate) number: u32,
    pub(crate) count: u32,
    bytes: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// Number from 0 on, count (4 bytes each, big-endian), bytes. `None`: such a fragment there cannot be.
    pub(crate) fn split(rest: &'a [u8]) -> Option<Self> {
        let (number, rest) = rest.split_first_chunk()?;
        let (count, bytes) = rest.split_first_chunk()?;
        let (number, count) = (u32::from_be_bytes(*number), u32::from_be_bytes(*count));
        let is_possible = number < count && count <= FRAGMENTS_PER_COMMAND_MAX;
        is_possible.then_some(Self {
            number,
            count,
            bytes,
        })
    }
}

impl Partial {
    fn bytes(&self) -> usize {
        let fragments = self.fragments.values();
        OVERHEAD_BYTES
            + fragments
                .map(|fragment| fragment.len() + OVERHEAD_BYTES)
                .sum::<usize>()
    }
}

impl Fragments {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Name, &Partial)> {
        self.commands.iter().map(|(name, partial)| (*name, partial))
    }

    pub(crate) fn len(&self) -> usize {
        self.commands.len()
    }

    /// Puts a command back that a snapshot held. False: there is one of this name, or of this beginning.
    pub(crate) fn insert(&mut self, name: Name, partial: Partial) -> bool {
        self.bytes += partial.bytes();
        self.by_begin.insert(partial.begun_at, name).is_none()
            && self.commands.insert(name, partial).is_none()
    }

    /// Keeps a fragment; the command, if it was the last one missing. A command whose count differs from
    /// what its earlier fragments said begins anew.
    pub(crate) fn take(
        &mut self,
        index: Index,
        name: Name,
        fragment: &Fragment<'_>,
    ) -> Option<Vec<u8>> {
        let begun = self.remove(name).filter(|it| it.count == fragment.count);
        let mut partial = begun.unwrap_or_else(|| Partial {
            begun_at: index,
            count: fragment.count,
            fragments: BTreeMap::new(),
        });
        partial
            .fragments
            .insert(fragment.number, fragment.bytes.into());
        if partial.fragments.len() == partial.count as usize {
            let fragments: Vec<&[u8]> = partial.fragments.values().map(AsRef::as_ref).collect();
            return Some(fragments.concat());
        }
        self.insert(name, partial);
        while self.bytes > FRAGMENTS_BYTES_MAX {
            let Some((_, &oldest)) = self.by_begin.first_key_value() else {
                break;
            };
            self.remove(oldest);
        }
        None
    }

    fn remove(&mut self, name: Name) -> Option<Partial> {
        let partial = self.commands.remove(&name)?;
        self.by_begin.remove(&partial.begun_at);
        self.bytes -= partial.bytes();
        Some(partial)
    }
}
