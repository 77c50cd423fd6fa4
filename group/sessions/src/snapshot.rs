//! How the tables stand in a snapshot, before the state machine's own bytes. Big-endian:
//!
//! ```text
//! version 3
//! last number 8
//! sessions 4 | { session 8 | used at 8 | used ms 8 |
//!                ran 1 | { sequence 8 | answer bytes 1, 255: none | answer } }
//! commands 4 | { session 8 | sequence 8 | begun at 8 | count 4 |
//!                fragments 4 | { number 4 | bytes 4 | bytes } }
//! ```
//!
//! The last number is that of the last command. Version 2 has none: no entry held several commands, and the
//! next one's number is its entry's index; what is known is that it was at least the last session's. Used ms
//! is the time of the tick after the session's last command, 2^64-1 if there was none yet.
use crate::fragments::{
    FRAGMENTS_BYTES_MAX, FRAGMENTS_PER_COMMAND_MAX, Fragments, OVERHEAD_BYTES, Partial,
};
use crate::table::{Answer, Session, Table};
use crate::{ANSWER_BYTES_MAX, Name, SESSIONS_MAX, WINDOW};
use quorumwire_interfaces::{Frozen, Index};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};

const VERSION: u8 = 3;
/// Read, and written no more.
const VERSION_BEFORE: u8 = 2;
const NO_ANSWER: u8 = u8::MAX;
const _: () = assert!(ANSWER_BYTES_MAX < NO_ANSWER as usize && WINDOW < 256);

pub(crate) struct FrozenSessions {
    last_number: u64,
    table: Table,
    fragments: Fragments,
    inner: Box<dyn Frozen>,
}

impl FrozenSessions {
    pub(crate) fn new(
        last_number: u64,
        table: Table,
        fragments: Fragments,
        inner: Box<dyn Frozen>,
    ) -> Self {
        Self {
            last_number,
            table,
            fragments,
            inner,
        }
    }
}

impl Frozen for FrozenSessions {
    fn write(&self, writer: &mut dyn Write) -> io::Result<()> {
        writer.write_all(&[VERSION])?;
        write_u64s(writer, [self.last_number])?;
        write_u32(writer, self.table.len())?;
        for (id, session) in self.table.iter() {
            write_session(writer, id, session)?;
        }
        write_u32(writer, self.fragments.len())?;
        for (name, partial) in self.fragments.iter() {
            write_u64s(writer, [name.session, name.sequence, partial.begun_at.0])?;
            write_u32(writer, partial.count as usize)?;
            write_u32(writer, partial.fragments.len())?;
            for (number, bytes) in &partial.fragments {
                write_u32(writer, *number as usize)?;
                write_u32(writer, bytes.len())?;
                writer.write_all(bytes)?;
            }
        }
        self.inner.write(writer)
    }
}

fn write_session(writer: &mut dyn Write, id: u64, session: &Session) -> io::Result<()> {
    write_u64s(writer, [id, session.used_at, session.used_ms])?;
    let ran = u8::try_from(session.ran.len()).map_err(|_| bad("too many commands"))?;
    writer.write_all(&[ran])?;
    for (sequence, answer) in &session.ran {
        writer.write_all(&sequence.to_be_bytes())?;
        match answer {
            None => writer.write_all(&[NO_ANSWER])?,
            Some(answer) => {
                let bytes = u8::try_from(answer.len()).map_err(|_| bad("too long an answer"))?;
                writer.write_all(&[bytes])?;
                writer.write_all(answer)?;
            }
        }
    }
    Ok(())
}

/// Reads the last number and both tables; what follows is the state machine's.
pub(crate) fn read(reader: &mut dyn Read) -> io::Result<(u64, Table, Fragments)> {
    let last_number = match read_u8(reader)? {
        VERSION => Some(read_u64(reader)?),
        VERSION_BEFORE => None,
        _ => return Err(bad("a version of the session table that is not known here")),
    };
    let mut table = Table::default();
    let session_count = read_u32(reader)? as usize;
    if session_count > SESSIONS_MAX {
        return Err(bad("too many sessions"));
    }
    for _ in 0..session_count {
        let id = read_u64(reader)?;
        if !table.insert(id, read_session(reader)?) {
            return Err(bad("a session twice"));
        }
    }
    let last_number = last_number.unwrap_or(table.last_use());
    if table.last_use() > last_number {
        return Err(bad("a session used by a command that is still to come"));
    }
    if !table.is_sound() {
        return Err(bad("a session used since the last tick, and before it"));
    }
    let mut fragments = Fragments::default();
    let command_count = read_u32(reader)? as usize;
    if command_count > FRAGMENTS_BYTES_MAX / OVERHEAD_BYTES {
        return Err(bad("too many commands in fragments"));
    }
    for _ in 0..command_count {
        let name = Name {
            session: read_u64(reader)?,
            sequence: read_u64(reader)?,
        };
        let room = FRAGMENTS_BYTES_MAX - fragments.bytes();
        if !fragments.insert(name, read_partial(reader, room)?) {
            return Err(bad("a command in fragments twice"));
        }
        if fragments.bytes() > FRAGMENTS_BYTES_MAX {
            return Err(bad("too many bytes in fragments"));
        }
    }
    Ok((last_number, table, fragments))
}

fn read_session(reader: &mut dyn Read) -> io::Result<Session> {
    let (used_at, used_ms) = (read_u64(reader)?, read_u64(reader)?);
    let count = read_u8(reader)?;
    let mut ran: VecDeque<(u64, Option<Answer>)> = VecDeque::new();
    for _ in 0..count {
        let sequence = read_u64(reader)?;
        if ran.back().is_some_and(|(before, _)| *before >= sequence) {
            return Err(bad("commands of a session out of order"));
        }
        let bytes = read_u8(reader)?;
        let answer = match usize::from(bytes) {
            _ if bytes == NO_ANSWER => None,
            bytes if bytes > ANSWER_BYTES_MAX => return Err(bad("too long an answer")),
            bytes => Some(Answer::from_vec(read_bytes(reader, bytes)?)),
        };
        ran.push_back((sequence, answer));
    }
    Ok(Session {
        used_at,
        used_ms,
        ran,
    })
}

fn read_partial(reader: &mut dyn Read, room: usize) -> io::Result<Partial> {
    let begun_at = Index(read_u64(reader)?);
    let (count, fragment_count) = (read_u32(reader)?, read_u32(reader)?);
    if count > FRAGMENTS_PER_COMMAND_MAX || fragment_count >= count {
        return Err(bad("an impossible number of fragments"));
    }
    let mut fragments = BTreeMap::new();
    let mut left = room;
    for _ in 0..fragment_count {
        let (number, bytes) = (read_u32(reader)?, read_u32(reader)? as usize);
        left = left
            .checked_sub(bytes)
            .ok_or_else(|| bad("too many bytes in fragments"))?;
        if number >= count
            || fragments
                .insert(number, read_bytes(reader, bytes)?.into())
                .is_some()
        {
            return Err(bad("an impossible fragment"));
        }
    }
    Ok(Partial {
        begun_at,
        count,
        fragments,
    })
}

fn bad(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("sessions: {what}"))
}

fn write_u32(writer: &mut dyn Write, number: usize) -> io::Result<()> {
    let number = u32::try_from(number).map_err(|_| bad("a number beyond 32 bits"))?;
    writer.write_all(&number.to_be_bytes())
}

fn write_u64s<const N: usize>(writer: &mut dyn Write, numbers: [u64; N]) -> io::Result<()> {
    for number in numbers {
        writer.write_all(&number.to_be_bytes())?;
    }
    Ok(())
}

fn read_u8(reader: &mut dyn Read) -> io::Result<u8> {
    let mut byte = [0];
    reader.read_exact(&mut byte)?;
    Ok(byte[0])
}

fn read_u32(reader: &mut dyn Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    reader.read_exact(&mut bytes)?;
    Ok(u32::from_be_bytes(bytes))
}

fn read_u64(reader: &mut dyn Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    reader.read_exact(&mut bytes)?;
    Ok(u64::from_be_bytes(bytes))
}

fn read_bytes(reader: &mut dyn Read, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}
