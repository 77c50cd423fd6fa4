//! Which record a command becomes, and the bytes of it. A replica that builds other bytes has another log,
//! so everybody who takes entries from a plane builds them here. Where records go is not decided here.
use bytes::{BufMut, BytesMut};
use quorumwire_interfaces::{Command, EntryKind, GroupId, PlaneEntry};
use quorumwire_wire::{RecordKind, begin_record, finish_record};

/// Appends the record of an entry that a plane has stored: the same bytes on every replica. A payload of
/// more than [`quorumwire_wire::limits::RECORD_PAYLOAD_BYTES_MAX`] bytes, which no plane carries, panics.
pub fn append_record(block: &mut BytesMut, group: GroupId, entry: &PlaneEntry<'_>) {
    let kind = record_kind(&entry.command);
    let start = begin_record(block, kind, group, entry.term, entry.index);
    put_payload(block, &entry.command);
    finish_record(block, start);
}

/// What kind of record a command is.
#[must_use]
pub const fn record_kind(command: &Command<'_>) -> RecordKind {
    match command.kind {
        EntryKind::Tick => RecordKind::Tick,
        EntryKind::Fragment => RecordKind::Fragment,
        EntryKind::Bundle => RecordKind::Bundle,
        EntryKind::Command if command.session == 0 => RecordKind::Command,
        EntryKind::Command => RecordKind::SessionCommand,
    }
}

/// Whether session and number stand in front of a payload of this kind.
pub(crate) const fn has_name(kind: RecordKind) -> bool {
    matches!(kind, RecordKind::Fragment | RecordKind::SessionCommand)
}

/// Appends the payload of a command's record: its bytes, behind session and number where the kind has them.
pub fn put_payload(bytes: &mut BytesMut, command: &Command<'_>) {
    if has_name(record_kind(command)) {
        bytes.put_u64(command.session);
        bytes.put_u64(command.sequence);
    }
    bytes.extend_from_slice(command.payload);
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorumwire_interfaces::{Index, Term};
    use quorumwire_wire::{RECORD_HEADER_BYTES, Record};

    const NO_SESSION: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2];
    const SESSION: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 1, 2];

    /// Every kind of command, in a session and in none; the number of its record's kind, and what stands
    /// in front of its bytes there.
    const COMMANDS: [(EntryKind, u64, u8, &[u8]); 7] = [
        (EntryKind::Command, 0, 2, &[]),
        (EntryKind::Command, 7, 5, SESSION),
        (EntryKind::Fragment, 0, 6, NO_SESSION),
        (EntryKind::Fragment, 7, 6, SESSION),
        (EntryKind::Tick, 0, 3, &[]),
        (EntryKind::Tick, 7, 3, &[]),
        (EntryKind::Bundle, 0, 7, &[]),
    ];

    #[test]
    fn a_record_has_the_bytes_of_its_kind_and_stands_behind_the_one_before() {
        let mut block = BytesMut::new();
        for (kind, session, kind_number, prefix) in COMMANDS {
            let command = Command {
                kind,
                session,
                sequence: 0x0102,
                payload: b"12345678",
            };
            let entry = PlaneEntry {
                index: Index(0x0a0b),
                term: Term(0x0c0d),
                command,
                requester: None,
            };
            let before = block.clone();
            append_record(&mut block, GroupId(0x0506), &entry);
            assert_eq!(block[..before.len()], before);

            let record = &block[before.len()..];
            let payload = [prefix, b"12345678"].concat();
            let length = u8::try_from(payload.len()).unwrap();
            let header = [
                [0, 0, 0, length, 1, kind_number, 0, 0], // behind the checksum
                [0, 0, 5, 6, 0, 0, 0, 0],
                [0, 0, 0x0c, 0x0d, 0, 0, 0, 0],
            ];
            assert_eq!(record[4..28], header.concat(), "{command:?}");
            assert_eq!(record[28..RECORD_HEADER_BYTES], [0, 0, 0x0a, 0x0b]);
            assert_eq!(record[RECORD_HEADER_BYTES..], payload, "{command:?}");
            let decoded = Record::decode(record).expect("its checksum is right");
            assert_eq!(decoded.kind, record_kind(&command));
        }
    }
}
