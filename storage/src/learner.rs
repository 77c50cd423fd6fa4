//! What a Paxos learner keeps with each checkpoint of its application, in a folder of its own: how far that
//! is, and what has to be known of values to tell the next ones apart. One small file, replaced each time.
//!
//! ```text
//!  learner: | crc32c | magic | version | 0 (3) | group | upto (8) | state at (8) | state ... |
//! ```
//! Big-endian.
use crate::disk::{Disk, read_whole, replace_durably};
use crate::sealed::{is_whole, seal};
use crate::segment::{u32_at, u64_at};
use bytes::{BufMut as _, Bytes, BytesMut};
use std::io;
use std::sync::Arc;

const NAME: &str = "learner";
/// "QWLR".
const MAGIC: u32 = 0x5157_4c52;
const VERSION: u8 = 1;
const HEAD_BYTES: usize = 32;
/// Longest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// How far a learner is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LearnerCheckpoint {
    /// The last instance that its application needs no more.
    pub upto: u64,
    /// The instance behind which `state` stands. Where that is behind `upto`, no instance between them holds
    /// a value.
    pub state_at: u64,
    /// What is known of values there; empty if nothing is.
    pub state: Bytes,
}

/// A learner's folder, open.
pub struct LearnerFolder {
    disk: Arc<dyn Disk>,
    group: u32,
}

impl LearnerFolder {
    /// Opens it. Nothing there: a learner that has had nothing.
    ///
    /// # Errors
    /// The file is another deployment's, or damaged, or the disk fails.
    pub fn open(disk: Arc<dyn Disk>, group: u32) -> io::Result<(Self, LearnerCheckpoint)> {
        let folder = Self { disk, group };
        let file = match folder.disk.open(NAME) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((folder, LearnerCheckpoint::default()));
            }
            Err(error) => return Err(error),
        };
        let bytes = read_whole(&*file, FILE_BYTES_MAX)?;
        let checkpoint = decode(&bytes, group).map_err(io::Error::other)?;
        Ok((folder, checkpoint))
    }

    /// Replaces what was kept. Durable when it returns.
    ///
    /// # Errors
    /// The disk fails; then the one before may be there, or this one.
    pub fn write(&self, checkpoint: &LearnerCheckpoint) -> io::Result<()> {
        let mut bytes = BytesMut::with_capacity(HEAD_BYTES + checkpoint.state.len());
        bytes.put_u32(0);
        bytes.put_u32(MAGIC);
        bytes.put_slice(&[VERSION, 0, 0, 0]);
        bytes.put_u32(self.group);
        bytes.put_u64(checkpoint.upto);
        bytes.put_u64(checkpoint.state_at);
        bytes.put_slice(&checkpoint.state);
        seal(&mut bytes);
        replace_durably(&*self.disk, NAME, bytes.freeze())
    }
}

fn decode(bytes: &[u8], group: u32) -> Result<LearnerCheckpoint, String> {
    if bytes.len() < HEAD_BYTES || u32_at(bytes, 4) != MAGIC {
        return Err(format!("the file {NAME} is none of a learner"));
    }
    if !is_whole(bytes) {
        return Err(format!("the file {NAME} is damaged: its checksum is wrong"));
    }
    if bytes[8] != VERSION {
        return Err(format!(
            "the file {NAME} has version {}; this program reads {VERSION}",
            bytes[8]
        ));
    }
    if u32_at(bytes, 12) != group {
        return Err(format!(
            "the file {NAME} is of the deployment with number {}, not of {group}",
            u32_at(bytes, 12)
        ));
    }
    let (upto, state_at) = (u64_at(bytes, 16), u64_at(bytes, 24));
    Ok(LearnerCheckpoint {
        upto,
        state_at,
        state: Bytes::copy_from_slice(&bytes[HEAD_BYTES..]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FaultyDisk, MemoryDisk};

    #[test]
    fn a_checkpoint_comes_back_whole_or_not_at_all() {
        let disk = FaultyDisk::new(MemoryDisk::new());
        let open = |group| LearnerFolder::open(Arc::new(disk.clone()), group);
        let (folder, nothing) = open(7).unwrap();
        assert_eq!(nothing, LearnerCheckpoint::default());
        let checkpoint = LearnerCheckpoint {
            upto: 9,
            state_at: 8,
            state: Bytes::from_static(b"state"),
        };
        folder.write(&checkpoint).unwrap();
        assert_eq!(open(7).unwrap().1, checkpoint);
        assert!(open(8).is_err(), "another deployment's");
        for bit in 0..8 * (HEAD_BYTES as u64 + 5) {
            disk.flip_bit(NAME, bit).unwrap();
            assert!(open(7).is_err(), "{bit}");
            disk.flip_bit(NAME, bit).unwrap();
        }
        disk.open(NAME).unwrap().truncate(20).unwrap();
        assert!(open(7).is_err());
        let later_state = LearnerCheckpoint {
            upto: 7,
            ..checkpoint
        };
        folder.write(&later_state).unwrap();
        assert_eq!(open(7).unwrap().1, later_state, "no values between");
    }
}
