//! How the state stands in a snapshot. Big-endian:
//!
//! ```text
//! version 1 | configured 1 | kept bytes at most 8 | trimmed 8 | last instance 8
//! learners 2 | { learner 2 | checkpoint 8 }     ascending
//! values 8 | { instance 8 | bytes 4 | bytes }   ascending
//! ```
use crate::kept::Kept;
use crate::limits::{KEPT_BYTES_MAX, KEPT_BYTES_MIN, LEARNERS_MAX, VALUE_BYTES_MAX};
use crate::mutants::mutant;
use crate::state::State;
use quorumwire_interfaces::Frozen;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};

const VERSION: u8 = 1;

/// The state of one moment.
pub struct FrozenValues(pub State);

impl Frozen for FrozenValues {
    fn write(&self, writer: &mut dyn Write) -> io::Result<()> {
        let State {
            kept_bytes_max,
            is_configured,
            learners,
            last,
            kept,
        } = &self.0;
        writer.write_all(&[VERSION, u8::from(*is_configured)])?;
        for number in [*kept_bytes_max, kept.trimmed(), *last] {
            writer.write_all(&number.to_be_bytes())?;
        }
        let count = u16::try_from(learners.len()).map_err(|_| bad("too many learners"))?;
        writer.write_all(&count.to_be_bytes())?;
        for (learner, checkpoint) in learners {
            writer.write_all(&learner.to_be_bytes())?;
            writer.write_all(&checkpoint.to_be_bytes())?;
        }
        writer.write_all(&kept.count().to_be_bytes())?;
        for (instance, value) in kept.iter() {
            let bytes = u32::try_from(value.len()).map_err(|_| bad("too long a value"))?;
            writer.write_all(&instance.to_be_bytes())?;
            writer.write_all(&bytes.to_be_bytes())?;
            writer.write_all(value)?;
        }
        Ok(())
    }
}

/// Reads a state, and checks all of it.
pub fn read(reader: &mut dyn Read) -> io::Result<State> {
    let [version, is_configured] = read_array(reader)?;
    if version != VERSION {
        return Err(bad("a version that is not known here"));
    }
    if is_configured > 1 {
        return Err(bad("a switch that is neither on nor off"));
    }
    let kept_bytes_max = read_u64(reader)?;
    let trimmed = read_u64(reader)?;
    let last = read_u64(reader)?;
    if !(KEPT_BYTES_MIN..=KEPT_BYTES_MAX).contains(&kept_bytes_max) {
        return Err(bad("a limit that is none"));
    }
    if trimmed > last {
        return Err(bad("trimmed beyond what is decided"));
    }
    let count = usize::from(u16::from_be_bytes(read_array(reader)?));
    if count > LEARNERS_MAX || (count > 0 && is_configured == 0) {
        return Err(bad("too many learners"));
    }
    let mut learners = BTreeMap::new();
    for _ in 0..count {
        let learner = u16::from_be_bytes(read_array(reader)?);
        let checkpoint = read_u64(reader)?;
        if !(trimmed..=last).contains(&checkpoint) {
            return Err(bad("an impossible checkpoint"));
        }
        if learners
            .last_key_value()
            .is_some_and(|(it, _)| *it >= learner)
        {
            return Err(bad("learners out of order"));
        }
        let is_forgotten = mutant("snapshot-without-checkpoints");
        learners.insert(learner, if is_forgotten { trimmed } else { checkpoint });
    }
    if learners.values().min().is_some_and(|it| *it != trimmed) {
        return Err(bad("values that every learner has checkpointed"));
    }
    Ok(State {
        kept_bytes_max,
        is_configured: is_configured == 1,
        learners,
        last,
        kept: read_values(reader, trimmed, last)?,
    })
}

fn read_values(reader: &mut dyn Read, trimmed: u64, last: u64) -> io::Result<Kept> {
    let mut kept = Kept::default();
    kept.trim(trimmed, &mut Vec::new());
    let mut before = trimmed;
    for _ in 0..read_u64(reader)? {
        let instance = read_u64(reader)?;
        let bytes = u32::from_be_bytes(read_array(reader)?) as usize;
        if instance <= before || instance > last {
            return Err(bad("values out of order"));
        }
        if bytes > VALUE_BYTES_MAX {
            return Err(bad("too long a value"));
        }
        let mut value = vec![0; bytes];
        reader.read_exact(&mut value)?;
        kept.push(instance, &value);
        if kept.bytes() > KEPT_BYTES_MAX {
            return Err(bad("too many bytes of values"));
        }
        before = instance;
    }
    Ok(kept)
}

fn bad(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("values: {what}"))
}

fn read_array<const N: usize>(reader: &mut dyn Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_u64(reader: &mut dyn Read) -> io::Result<u64> {
    read_array(reader).map(u64::from_be_bytes)
}
