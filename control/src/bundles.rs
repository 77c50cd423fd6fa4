//! How commands that wait for a plane become entries. A plane's entry is a packet, and short commands cost it
//! little more than none: so what fits one packet becomes one entry.
use crate::records::{has_name, put_payload, record_kind};
use bytes::BytesMut;
use quorumwire_interfaces::{Command, EntryKind};
use quorumwire_wire::{BUNDLED_HEADER_BYTES, put_bundled};
use std::borrow::Cow;

/// What the commands of one entry of several may be in work together, whoever measures it: nobody breaks off
/// to apply an entry, so a state machine is busy for so long with one.
const BUNDLE_WORK_MAX: usize = 16 << 20;

/// A command that waits.
#[derive(Clone, Copy, Debug)]
pub struct WaitingCommand<'a> {
    /// What it is.
    pub command: Command<'a>,
    /// What it is at most in work for the state machine.
    pub work: usize,
}

/// What becomes one entry.
#[derive(Debug)]
pub struct NextEntry<'a> {
    /// How many of the commands that wait it holds.
    pub commands: u16,
    kind: EntryKind,
    session: u64,
    sequence: u64,
    payload: Cow<'a, [u8]>,
}

impl NextEntry<'_> {
    /// What to submit.
    #[must_use]
    pub fn command(&self) -> Command<'_> {
        Command {
            kind: self.kind,
            session: self.session,
            sequence: self.sequence,
            payload: &self.payload,
        }
    }
}

/// The first entries, at most so many, that the commands `waiting` become, in their order, with payloads of
/// at most `payload_bytes_max`. Ticks and fragments stand alone, as does a command that has no other beside
/// it.
pub fn next_entries<'a>(
    waiting: impl IntoIterator<Item = WaitingCommand<'a>>,
    payload_bytes_max: usize,
    entries_max: usize,
) -> Vec<NextEntry<'a>> {
    let mut entries: Vec<NextEntry<'a>> = Vec::new();
    let mut waiting = waiting.into_iter().peekable();
    while entries.len() < entries_max
        && let Some(first) = waiting.next()
    {
        let mut room = (payload_bytes_max, BUNDLE_WORK_MAX);
        let mut fits = |next: &WaitingCommand<'_>| {
            let left = bundled_bytes(&next.command)
                .and_then(|bytes| room.0.checked_sub(bytes))
                .zip(room.1.checked_sub(next.work));
            room = left.unwrap_or(room);
            left.is_some()
        };
        let mut bundle = BytesMut::new();
        let mut commands = 1;
        if fits(&first) {
            while let Some(next) = waiting.next_if(&mut fits) {
                if commands == 1 {
                    bundle.reserve(payload_bytes_max);
                    put(&mut bundle, &first.command);
                }
                put(&mut bundle, &next.command);
                commands += 1;
            }
        }
        let first = first.command;
        entries.push(if commands == 1 {
            NextEntry {
                commands,
                kind: first.kind,
                session: first.session,
                sequence: first.sequence,
                payload: Cow::Borrowed(first.payload),
            }
        } else {
            NextEntry {
                commands,
                kind: EntryKind::Bundle,
                session: 0,
                sequence: 0,
                payload: Cow::Owned(bundle.into()),
            }
        });
    }
    entries
}

/// Bytes it has in a bundle; `None`: it stands alone.
fn bundled_bytes(command: &Command<'_>) -> Option<usize> {
    let name_bytes = if has_name(record_kind(command)) {
        16
    } else {
        0
    };
    let bytes = BUNDLED_HEADER_BYTES + name_bytes + command.payload.len();
    (command.kind == EntryKind::Command).then_some(bytes)
}

fn put(bundle: &mut BytesMut, command: &Command<'_>) {
    put_bundled(bundle, record_kind(command), |out| {
        put_payload(out, command);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorumwire_wire::Bundle;

    const MOST: usize = 100;

    fn command(kind: EntryKind, session: u64, payload: &[u8]) -> Command<'_> {
        Command {
            kind,
            session,
            sequence: 9,
            payload,
        }
    }

    fn cheap<'a>(commands: &[Command<'a>]) -> impl Iterator<Item = WaitingCommand<'a>> {
        let cheap = |command: &Command<'a>| WaitingCommand {
            command: *command,
            work: 0,
        };
        commands.iter().map(cheap)
    }

    /// Whoever applies an entry applies all of it.
    #[test]
    fn what_is_much_work_does_not_become_one_entry() {
        const HALF: usize = BUNDLE_WORK_MAX / 2;
        let command = command(EntryKind::Command, 0, b"one");
        for (works, expected) in [
            (&[0, HALF, HALF, 0, 0, 1][..], &[5, 1][..]),
            (&[2 * BUNDLE_WORK_MAX, 0, 0], &[1, 2]),
            (&[0, 2 * BUNDLE_WORK_MAX, 0, 0], &[1, 1, 2]),
            (&[HALF + 1; 3], &[1, 1, 1]),
        ] {
            let waiting = works.iter().map(|&work| WaitingCommand { command, work });
            let entries = next_entries(waiting, MOST, 99);
            let counts: Vec<u16> = entries.iter().map(|entry| entry.commands).collect();
            assert_eq!(counts, expected, "{works:?}");
        }
    }

    /// How many commands each entry holds, its kind and its bytes.
    fn shapes(waiting: &[Command<'_>], entries_max: usize) -> Vec<(u16, EntryKind, usize)> {
        next_entries(cheap(waiting), MOST, entries_max)
            .iter()
            .map(|it| (it.commands, it.command().kind, it.command().payload.len()))
            .collect()
    }

    #[test]
    fn what_fits_one_packet_is_one_entry_and_in_order() {
        let payloads: Vec<_> = (0..8_u8).map(|number| vec![number; 30]).collect();
        let mut waiting: Vec<_> = payloads
            .iter()
            .map(|payload| command(EntryKind::Command, 0, payload))
            .collect();
        waiting[1].session = 7;
        let entries = next_entries(cheap(&waiting), MOST, 9);
        let mut found = Vec::new();
        for entry in &entries {
            let entry = entry.command();
            assert!(entry.payload.len() <= MOST);
            let bundle = Bundle::of(entry.payload).expect("a bundle");
            found.extend(bundle.map(|(kind, payload)| (kind, payload.to_vec())));
        }
        let expected: Vec<_> = waiting
            .iter()
            .map(|command| {
                let mut payload = BytesMut::new();
                put_payload(&mut payload, command);
                (record_kind(command), payload.to_vec())
            })
            .collect();
        assert_eq!(found, expected);
        // 3 + 30 bytes each, 16 more with the session.
        let bundle = EntryKind::Bundle;
        assert_eq!(
            shapes(&waiting, 9),
            [(2, bundle, 82), (3, bundle, 99), (3, bundle, 99)]
        );
        assert_eq!(shapes(&waiting, 1), [(2, bundle, 82)]);
    }

    #[test]
    fn what_is_no_command_or_too_long_stands_alone() {
        let (short, long) = ([1; 8], [2; MOST]);
        let [tick, piece] = [EntryKind::Tick, EntryKind::Fragment];
        let plain = EntryKind::Command;
        let waiting = [
            command(plain, 0, &short),
            command(tick, 0, &short),
            command(plain, 0, &short),
            command(piece, 0, &short),
            command(piece, 0, &short),
            command(plain, 0, &long),
            command(plain, 0, &long[..MOST - 3]),
            command(plain, 0, &[]),
            command(plain, 0, &[]),
        ];
        assert_eq!(
            shapes(&waiting, 99),
            [
                (1, plain, 8),
                (1, tick, 8),
                (1, plain, 8),
                (1, piece, 8),
                (1, piece, 8),
                (1, plain, MOST),
                (1, plain, MOST - 3),
                (2, EntryKind::Bundle, 6),
            ]
        );
        assert!(shapes(&[], 99).is_empty());
    }
}
