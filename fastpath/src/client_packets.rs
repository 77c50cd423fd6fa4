//! A client's side of the packets: makes requests and reads answers. Keeps nothing but keys; when to ask
//! again is the client's.
use crate::signing::Signing;
use quorumwire_interfaces::{GroupId, PlaneKeys};
use quorumwire_wire::packet::{
    FLAG_BLIND, FLAG_FRAGMENT, FLAG_REFUSED, Header, Kind, MAGIC, ORIGIN_BYTES, PAYLOAD_BYTES_MAX,
    PacketReason, SENDER_CLIENT, VERSION,
};
use quorumwire_wire::{PIECE_HEADER_BYTES, payload_checksum, piece_header};

/// Longest payload of a request that every replica's plane takes, in bytes: a follower sends it on with
/// who asked in front.
pub const REQUEST_BYTES_MAX: usize = PAYLOAD_BYTES_MAX - ORIGIN_BYTES;

/// Most bytes of one piece of a command.
pub const PIECE_BYTES_MAX: usize = REQUEST_BYTES_MAX - PIECE_HEADER_BYTES;

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Which log.
    pub group: GroupId,
    /// The client's session; 0: none.
    pub session: u64,
    /// Its number in the session.
    pub sequence: u64,
    /// To be answered at once when it is committed, without what the state machine says.
    pub blind: bool,
    /// The command, at most `PAYLOAD_BYTES_MAX` bytes.
    pub payload: &'a [u8],
}

/// An answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PacketAnswer<'a> {
    /// As in its request.
    pub session: u64,
    /// As in its request.
    pub sequence: u64,
    /// Where the command stands in the log; 0 if it does not.
    pub index: u64,
    /// Why it was not carried out.
    pub refused: Option<quorumwire_interfaces::Reason>,
    /// The piece with this number is in the log, and others are missing: no answer to the command yet.
    pub piece: Option<u32>,
    /// What the state machine said, or for people why it was refused.
    pub payload: &'a [u8],
}

/// A client's keys.
#[derive(Default)]
pub struct ClientPackets {
    signing: Signing,
}

impl ClientPackets {
    /// Only the clients' keys are used.
    #[must_use]
    pub fn new(keys: &PlaneKeys) -> Self {
        let mut signing = Signing::default();
        signing.set(keys);
        Self { signing }
    }

    /// The datagram of a request; `None` if its payload is too long.
    #[must_use]
    pub fn request(&self, request: &Request<'_>) -> Option<Vec<u8>> {
        self.sealed(request, 0, &[])
    }

    /// The datagram of one piece of a command too long for one request; its payload is the piece, at most
    /// [`PIECE_BYTES_MAX`] bytes. Pieces arrive in any order; the command runs when all are there. `None` if
    /// there is no session, by which the pieces are known, or the piece is too long.
    #[must_use]
    pub fn piece(&self, request: &Request<'_>, number: u32, count: u32) -> Option<Vec<u8>> {
        if request.session == 0 {
            return None;
        }
        self.sealed(request, FLAG_FRAGMENT, &piece_header(number, count))
    }

    fn sealed(&self, request: &Request<'_>, flags: u8, head: &[u8]) -> Option<Vec<u8>> {
        let payload = [head, request.payload].concat();
        let payload_bytes = u16::try_from(payload.len()).ok()?;
        if usize::from(payload_bytes) > PAYLOAD_BYTES_MAX {
            return None;
        }
        let header = Header {
            magic: MAGIC,
            version: VERSION,
            kind: Kind::Request as u8,
            sender: u8::try_from(SENDER_CLIENT).ok()?,
            flags: flags | if request.blind { FLAG_BLIND } else { 0 },
            payload_bytes,
            group: request.group.0,
            payload_crc32c: payload_checksum(&payload),
            session: request.session,
            sequence: request.sequence,
            ..Header::default()
        };
        let mut datagram = Vec::new();
        let sealed = self.signing.seal(header, [&payload, &[]], &mut datagram);
        sealed.then_some(datagram)
    }

    /// Reads a datagram that should be an answer.
    pub fn answer<'a>(&self, datagram: &'a [u8]) -> Result<PacketAnswer<'a>, PacketReason> {
        let (header, payload) = self.signing.open(datagram)?;
        if header.kind != Kind::Answer as u8 {
            return Err(PacketReason::Unexpected);
        }
        let piece = if header.flags & FLAG_FRAGMENT != 0 {
            let number = payload.first_chunk().ok_or(PacketReason::Malformed)?;
            Some(u32::from_be_bytes(*number))
        } else {
            None
        };
        Ok(PacketAnswer {
            piece,
            session: header.session,
            sequence: header.sequence,
            index: header.index,
            refused: (header.flags & FLAG_REFUSED != 0)
                .then(|| quorumwire_interfaces::Reason::from_code(header.previous_term)),
            payload,
        })
    }
}
