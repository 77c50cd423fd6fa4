//! A snapshot: what the log knows at a cut, then what the program has saved. No client is left there.
use crate::command::{Left, Malformed};
use crate::outputs::Outputs;
use crate::state::Saved;
use quorumwire_interfaces::{Frozen, LogTime};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};

const VERSION: u8 = 4;
const HEAD_BYTES: usize = 1 + 32 + 8 + 1 + 8 + 8 + 8 + 4 + 4;
/// Of what is compared: more than there can be.
const OUTPUTS_BYTES_MAX: u32 = 256 << 20;
/// The same of gateways' numbers: one of each replica that there can be.
const NEWEST_BYTES_MAX: u32 = 10 << 16;

/// It.
pub struct Snapshot<S> {
    pub key: [u8; 32],
    pub log_time: LogTime,
    pub ahead_ms: Option<i64>,
    pub turn: u64,
    pub cut: u64,
    /// See [`Replay::newest_of`](crate::Replay::newest_of).
    pub newest: BTreeMap<u16, u64>,
    /// As bytes.
    pub outputs: Vec<u8>,
    pub saved: S,
}

impl<S: Saved> Frozen for Snapshot<S> {
    /// What the program has saved may differ between replicas in what it does not read, such as how much
    /// memory it used.
    fn write(&self, writer: &mut dyn Write) -> io::Result<()> {
        let mut head = Vec::with_capacity(HEAD_BYTES);
        head.push(VERSION);
        head.extend_from_slice(&self.key);
        head.extend_from_slice(&self.log_time.0.to_le_bytes());
        head.push(u8::from(self.ahead_ms.is_some()));
        head.extend_from_slice(&self.ahead_ms.unwrap_or(0).to_le_bytes());
        head.extend_from_slice(&self.turn.to_le_bytes());
        head.extend_from_slice(&self.cut.to_le_bytes());
        let outputs = u32::try_from(self.outputs.len()).map_err(io::Error::other)?;
        head.extend_from_slice(&outputs.to_le_bytes());
        let newest = encode_newest(&self.newest);
        let newest_bytes = u32::try_from(newest.len()).map_err(io::Error::other)?;
        head.extend_from_slice(&newest_bytes.to_le_bytes());
        writer.write_all(&head)?;
        writer.write_all(&newest)?;
        writer.write_all(&self.outputs)?;
        self.saved.write(writer)
    }
}

fn encode_newest(newest: &BTreeMap<u16, u64>) -> Vec<u8> {
    let mut out = Vec::new();
    for (replica, number) in newest {
        out.extend_from_slice(&replica.to_le_bytes());
        out.extend_from_slice(&number.to_le_bytes());
    }
    out
}

fn decode_newest(bytes: &[u8]) -> Result<BTreeMap<u16, u64>, Malformed> {
    let (mut left, mut newest) = (Left(bytes), BTreeMap::new());
    while !left.0.is_empty() {
        let replica = u16::from_le_bytes(left.array()?);
        newest.insert(replica, u64::from_le_bytes(left.array()?));
    }
    Ok(newest)
}

fn unknown() -> io::Error {
    let text = "a snapshot of a served program, of another version";
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// What stands in front, and what replicas' programs have said.
pub fn read_head(reader: &mut dyn Read) -> io::Result<(Snapshot<()>, Outputs)> {
    let mut bytes = [0; HEAD_BYTES];
    reader.read_exact(&mut bytes)?;
    let number = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("of 8 bytes"));
    let is_known = bytes[41] <= 1;
    let outputs_bytes = u32::from_le_bytes(*bytes[66..].first_chunk().expect("of 4 bytes"));
    let newest_bytes = u32::from_le_bytes(*bytes[70..].first_chunk().expect("of 4 bytes"));
    let is_small = outputs_bytes <= OUTPUTS_BYTES_MAX && newest_bytes <= NEWEST_BYTES_MAX;
    if bytes[0] != VERSION || !is_known || !is_small {
        return Err(unknown());
    }
    let mut read = |count: u32| {
        let mut bytes = Vec::new();
        let mut limited = Read::take(&mut *reader, u64::from(count));
        limited.read_to_end(&mut bytes).map(|_| bytes)
    };
    let newest = read(newest_bytes)?;
    let outputs = read(outputs_bytes)?;
    if newest.len() != newest_bytes as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let decoded = Outputs::decode(&outputs).map_err(|_| unknown())?;
    let head = Snapshot {
        key: *bytes[1..].first_chunk().expect("of 32 bytes"),
        log_time: LogTime(number(33)),
        ahead_ms: (bytes[41] == 1).then_some(number(42).cast_signed()),
        turn: number(50),
        cut: number(58),
        newest: decode_newest(&newest).map_err(|_| unknown())?,
        outputs,
        saved: (),
    };
    Ok((head, decoded))
}
