//! The identity file: whose folder this is, of which cluster, and for how long it has promised anything.
//! Written before anything is promised, changed only when a replica begins a new life, learns its cluster's
//! lineage, or its promises change in length.
//!
//! ```text
//!  | magic | version | message bytes | crc32c | Identity (protobuf) |
//! ```
//! Big-endian. The checksum covers everything but itself.
use crate::disk::{Disk, is_unreadable, read_full_at, replace_durably};
use crate::segment::u32_at;
use crate::{OpenError, Owner, Settings};
use bytes::{BufMut, BytesMut};
use quorumwire_interfaces::{GroupId, Incarnation, Lineage, ReplicaId};
use quorumwire_wire::prost::Message as _;
use quorumwire_wire::{lineage_from_proto, lineage_to_proto, peer};
use std::io;
use std::time::Duration;

/// Name of the identity's file.
pub(crate) const IDENTITY_NAME: &str = "identity";

/// "QWID": the first bytes of the file.
const IDENTITY_MAGIC: u32 = 0x5157_4944;

/// Version of a folder as a whole. Raised when a folder of the new kind must not be opened by older code.
const FOLDER_VERSION: u32 = 1;

const PREFIX_BYTES: usize = 16;
const IDENTITY_BYTES_MAX: usize = 1024;

/// What the identity file says.
#[derive(Debug)]
pub(crate) enum Found {
    Nothing,
    /// The folder belongs to this replica.
    Ours {
        owner: Owner,
        /// The longest promise that may be in force; zero if the writer did not know.
        promised: Duration,
        /// The cluster it belongs to, if that is known.
        lineage: Lineage,
    },
    /// It says nothing that can be trusted.
    Damaged(&'static str),
}

/// Writes the identity durably, with the promise of these settings.
pub(crate) fn write_identity(
    disk: &dyn Disk,
    settings: &Settings,
    owner: Owner,
    lineage: Lineage,
) -> io::Result<()> {
    let message = peer::Identity {
        cluster: settings.cluster.clone(),
        replica: u32::from(owner.replica.0),
        incarnation: owner.incarnation.0,
        group: owner.group.0,
        promise_us: u64::try_from(settings.promise.as_micros()).unwrap_or(u64::MAX),
        lineage: lineage_to_proto(lineage),
    };
    let message = message.encode_to_vec();
    let mut file = BytesMut::new();
    file.put_u32(IDENTITY_MAGIC);
    file.put_u32(FOLDER_VERSION);
    file.put_u32(u32::try_from(message.len()).expect("a cluster's name is short"));
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&file), &message);
    file.put_u32(checksum);
    file.extend_from_slice(&message);
    replace_durably(disk, IDENTITY_NAME, file.freeze())
}

/// Whose folder it is, for those who do not know it before.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Owned {
    /// Nobody's: no identity was ever written.
    ByNobody,
    /// This replica's.
    By(FolderOwner),
    /// What it says cannot be trusted; the text says why.
    Damaged(&'static str),
}

/// Whose folder it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FolderOwner {
    /// Name of the cluster.
    pub cluster: String,
    /// Who keeps this folder.
    pub replica: ReplicaId,
    /// The log kept in it.
    pub group: GroupId,
    /// The life that it remembers.
    pub incarnation: Incarnation,
    /// Which of all clusters of that name.
    pub lineage: Lineage,
}

/// Reads whose folder this is, and changes nothing.
pub fn owner_of(disk: &dyn Disk) -> Result<Owned, OpenError> {
    let identity = match read_message(disk)? {
        Message::Nothing => return Ok(Owned::ByNobody),
        Message::Damaged(what) => return Ok(Owned::Damaged(what)),
        Message::Whole(identity) => identity,
    };
    let Ok(replica) = u16::try_from(identity.replica) else {
        return Ok(Owned::Damaged("identity: it names no replica"));
    };
    Ok(Owned::By(FolderOwner {
        cluster: identity.cluster,
        replica: ReplicaId(replica),
        group: GroupId(identity.group),
        incarnation: Incarnation(identity.incarnation),
        lineage: lineage_from_proto(identity.lineage.as_ref()),
    }))
}

/// Reads the identity. A folder of someone else is an error that names what was found and what was
/// expected.
pub(crate) fn read_identity(disk: &dyn Disk, settings: &Settings) -> Result<Found, OpenError> {
    match read_message(disk)? {
        Message::Nothing => Ok(Found::Nothing),
        Message::Damaged(what) => Ok(Found::Damaged(what)),
        Message::Whole(identity) => ours(&identity, settings),
    }
}

/// What stands in the file.
enum Message {
    Nothing,
    Damaged(&'static str),
    Whole(peer::Identity),
}

fn read_message(disk: &dyn Disk) -> Result<Message, OpenError> {
    let file = match disk.open(IDENTITY_NAME) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Message::Nothing),
        Err(error) => return Err(OpenError::io("opening the identity")(error)),
    };
    let mut bytes = vec![0; IDENTITY_BYTES_MAX + 1];
    match read_full_at(&*file, 0, &mut bytes) {
        Ok(read) => bytes.truncate(read),
        Err(error) if is_unreadable(&error) => {
            return Ok(Message::Damaged("identity: it cannot be read"));
        }
        Err(error) => return Err(OpenError::io("reading the identity")(error)),
    }
    let Some((prefix, message)) = bytes.split_first_chunk::<PREFIX_BYTES>() else {
        return Ok(Message::Damaged("identity: it is cut short"));
    };
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&prefix[..12]), message);
    let whole = u32_at(prefix, 0) == IDENTITY_MAGIC
        && u32_at(prefix, 8) as usize == message.len()
        && u32_at(prefix, 12) == checksum;
    if !whole {
        return Ok(Message::Damaged("identity: its checksum does not match"));
    }
    if u32_at(prefix, 4) != FOLDER_VERSION {
        return Err(OpenError::Newer {
            what: "data folder",
            found: u32_at(prefix, 4),
            readable: FOLDER_VERSION,
        });
    }
    let Ok(identity) = peer::Identity::decode(message) else {
        return Ok(Message::Damaged("identity: its message makes no sense"));
    };
    Ok(Message::Whole(identity))
}

fn ours(identity: &peer::Identity, settings: &Settings) -> Result<Found, OpenError> {
    let foreign = |what, found: String, expected: String| OpenError::Foreign {
        what,
        found,
        expected,
    };
    if identity.cluster != settings.cluster {
        let found = identity.cluster.clone();
        return Err(foreign("cluster", found, settings.cluster.clone()));
    }
    if identity.replica != u32::from(settings.replica.0) {
        let found = identity.replica.to_string();
        return Err(foreign("replica", found, settings.replica.to_string()));
    }
    if identity.group != settings.group.0 {
        let found = identity.group.to_string();
        return Err(foreign("group", found, settings.group.to_string()));
    }
    Ok(Found::Ours {
        owner: Owner {
            group: GroupId(identity.group),
            replica: ReplicaId(settings.replica.0),
            incarnation: Incarnation(identity.incarnation),
        },
        promised: Duration::from_micros(identity.promise_us),
        lineage: lineage_from_proto(identity.lineage.as_ref()),
    })
}
