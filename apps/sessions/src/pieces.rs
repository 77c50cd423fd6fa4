//! Commands of which pieces are missing.
use crate::Name;
use quorumwire_interfaces::Index;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most pieces of one command.
pub const PIECES_PER_COMMAND_MAX: u32 = 1024;

/// Most bytes of all commands of which pieces are missing; the one begun first gives way.
pub const PIECES_BYTES_MAX: usize = 32 << 20;

/// Counted for each command and each piece besides its bytes, so that empty pieces are bounded too.
pub(crate) const OVERHEAD_BYTES: usize = 64;

/// All commands of which pieces are missing. A copy is cheap: it shares the bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pieces {
    commands: BTreeMap<Name, Partial>,
    by_begin: BTreeMap<Index, Name>,
    bytes: usize,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Partial {
    pub(crate) begun_at: Index,
    pub(crate) count: u32,
    pub(crate) pieces: BTreeMap<u32, Arc<[u8]>>,
}

/// One piece of a command.
pub(crate) struct Piece<'a> {
    pub(crate) number: u32,
    pub(crate) count: u32,
    bytes: &'a [u8],
}

impl<'a> Piece<'a> {
    /// Number from 0 on, count (4 bytes each, big-endian), bytes. `None`: such a piece there cannot be.
    pub(crate) fn split(rest: &'a [u8]) -> Option<Self> {
        let (number, rest) = rest.split_first_chunk()?;
        let (count, bytes) = rest.split_first_chunk()?;
        let (number, count) = (u32::from_be_bytes(*number), u32::from_be_bytes(*count));
        let is_possible = number < count && count <= PIECES_PER_COMMAND_MAX;
        is_possible.then_some(Self {
            number,
            count,
            bytes,
        })
    }
}

impl Partial {
    fn bytes(&self) -> usize {
        let pieces = self.pieces.values();
        OVERHEAD_BYTES
            + pieces
                .map(|piece| piece.len() + OVERHEAD_BYTES)
                .sum::<usize>()
    }
}

impl Pieces {
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

    /// Keeps a piece; the command, if it was the last one missing. A command whose count differs from
    /// what its earlier pieces said begins anew.
    pub(crate) fn take(&mut self, index: Index, name: Name, piece: &Piece<'_>) -> Option<Vec<u8>> {
        let begun = self.remove(name).filter(|it| it.count == piece.count);
        let mut partial = begun.unwrap_or_else(|| Partial {
            begun_at: index,
            count: piece.count,
            pieces: BTreeMap::new(),
        });
        partial.pieces.insert(piece.number, piece.bytes.into());
        if partial.pieces.len() == partial.count as usize {
            let pieces: Vec<&[u8]> = partial.pieces.values().map(AsRef::as_ref).collect();
            return Some(pieces.concat());
        }
        self.insert(name, partial);
        while self.bytes > PIECES_BYTES_MAX {
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
