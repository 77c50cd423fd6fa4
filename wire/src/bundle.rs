//! Bundles: several commands in one log entry, each carried out by itself, in this order.
//!
//! ```text
//! { kind 1 | bytes 2 | payload } ...
//! ```
//! Big-endian. Kind and payload are those of the record that the command would be alone: a command, or one of
//! a session. A bundle is made where many commands leave at once and each entry costs a packet.
use crate::RecordKind;
use crate::packet::PAYLOAD_BYTES_MAX;
use bytes::{BufMut, BytesMut};

/// Bytes before a command's payload.
pub const BUNDLED_HEADER_BYTES: usize = 3;

/// The commands of a bundle, in order.
#[derive(Clone, Debug)]
pub struct Bundle<'a>(&'a [u8]);

impl<'a> Bundle<'a> {
    /// The bundle that these bytes are. `None`: they are none, and no command of it must be carried out.
    #[must_use]
    pub fn of(payload: &'a [u8]) -> Option<Self> {
        if payload.len() > PAYLOAD_BYTES_MAX {
            return None; // no packet carried it
        }
        let mut rest = payload;
        while !rest.is_empty() {
            (_, rest) = split(rest)?;
        }
        (!payload.is_empty()).then_some(Self(payload))
    }
}

impl<'a> Iterator for Bundle<'a> {
    type Item = Bundled<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let (command, rest) = split(self.0)?;
        self.0 = rest;
        Some(command)
    }
}

/// What an entry is carried out as, one after the other: the commands that it bundles, or itself.
pub fn commands_of(kind: RecordKind, payload: &[u8]) -> impl Iterator<Item = Bundled<'_>> {
    let is_bundle = kind == RecordKind::Bundle;
    let bundle = is_bundle.then(|| Bundle::of(payload)).flatten();
    let itself = bundle.is_none().then_some((kind, payload));
    bundle.into_iter().flatten().chain(itself)
}

type Bundled<'a> = (RecordKind, &'a [u8]);

/// The first command, and what is behind it.
fn split(bytes: &[u8]) -> Option<(Bundled<'_>, &[u8])> {
    let ([kind, high, low], rest) = bytes.split_first_chunk::<BUNDLED_HEADER_BYTES>()?;
    let kind = match kind {
        2 => RecordKind::Command,
        5 => RecordKind::SessionCommand,
        _ => return None,
    };
    let bytes = usize::from(u16::from_be_bytes([*high, *low]));
    let (payload, rest) = rest.split_at_checked(bytes)?;
    Some(((kind, payload), rest))
}

/// Appends a command to a bundle. `payload` appends what the record of this kind would hold, at most 65,535
/// bytes.
///
/// # Panics
/// If that is longer, or the kind is neither a command nor one of a session.
pub fn put_bundled(bundle: &mut BytesMut, kind: RecordKind, payload: impl FnOnce(&mut BytesMut)) {
    assert!(
        matches!(kind, RecordKind::Command | RecordKind::SessionCommand),
        "only commands are bundled"
    );
    bundle.put_u8(kind as u8);
    let length_at = bundle.len();
    bundle.put_u16(0);
    payload(bundle);
    let bytes = bundle.len() - length_at - 2;
    let bytes = u16::try_from(bytes).expect("a packet's command is short");
    bundle[length_at..length_at + 2].copy_from_slice(&bytes.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &[u8] = b"\x02\0\x05hello\x05\0\x11\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x09!";

    #[test]
    fn commands_come_out_as_they_went_in() {
        let session = b"\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x09!";
        let mut bundle = BytesMut::new();
        put_bundled(&mut bundle, RecordKind::Command, |out| {
            out.put_slice(b"hello");
        });
        put_bundled(&mut bundle, RecordKind::SessionCommand, |out| {
            out.put_slice(session);
        });
        assert_eq!(bundle, TWO);
        let commands: Vec<_> = commands_of(RecordKind::Bundle, TWO).collect();
        assert_eq!(
            commands,
            [
                (RecordKind::Command, &b"hello"[..]),
                (RecordKind::SessionCommand, &session[..])
            ]
        );
        let other = commands_of(RecordKind::Command, TWO).collect::<Vec<_>>();
        assert_eq!(other, [(RecordKind::Command, TWO)]);
    }

    #[test]
    fn what_is_cut_or_of_another_kind_is_no_bundle_at_all() {
        let alone = |payload| commands_of(RecordKind::Bundle, payload).collect::<Vec<_>>();
        assert_eq!(alone(&TWO[..7]), [(RecordKind::Bundle, &TWO[..7])]);
        for end in (0..TWO.len()).filter(|end| *end != 8) {
            assert!(Bundle::of(&TWO[..end]).is_none(), "{end} bytes");
        }
        assert_eq!(Bundle::of(&TWO[..8]).unwrap().count(), 1);
        let nothing: (RecordKind, &[u8]) = (RecordKind::Bundle, &[]);
        assert_eq!(alone(&[]), [nothing], "the entry is applied all the same");
        let mut long = BytesMut::new();
        while long.len() + BUNDLED_HEADER_BYTES < PAYLOAD_BYTES_MAX {
            put_bundled(&mut long, RecordKind::Command, |out| out.put_u8(b'x'));
        }
        assert_eq!(Bundle::of(&long).unwrap().count(), PAYLOAD_BYTES_MAX / 4);
        put_bundled(&mut long, RecordKind::Command, |_| {});
        assert!(Bundle::of(&long).is_none(), "longer than any packet");
        for kind in (0..=u8::MAX).filter(|kind| ![2, 5].contains(kind)) {
            let mut other = TWO.to_vec();
            other[8] = kind;
            assert!(Bundle::of(&other).is_none(), "kind {kind}");
        }
    }
}
