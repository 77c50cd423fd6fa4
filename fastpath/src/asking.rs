//! A client's side of the packets: makes requests and reads answers. Keeps nothing but keys; when to ask
//! again is the client's.
use crate::signing::{Signing, checksum};
use quorumwire_interfaces::{GroupId, PlaneKeys};
use quorumwire_wire::packet::{
    FLAG_BLIND, FLAG_REFUSED, Header, Kind, MAGIC, PAYLOAD_BYTES_MAX, Reason, SENDER_CLIENT,
    VERSION,
};

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
pub struct Answered<'a> {
    /// As in its request.
    pub session: u64,
    /// As in its request.
    pub sequence: u64,
    /// Where the command stands in the log; 0 if it does not.
    pub index: u64,
    /// It was not carried out.
    pub refused: bool,
    /// What the state machine said, or why it was refused.
    pub payload: &'a [u8],
}

/// A client's keys.
#[derive(Default)]
pub struct Asking {
    signing: Signing,
}

impl Asking {
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
        let payload_bytes = u16::try_from(request.payload.len()).ok()?;
        if usize::from(payload_bytes) > PAYLOAD_BYTES_MAX {
            return None;
        }
        let header = Header {
            magic: MAGIC,
            version: VERSION,
            kind: Kind::Request as u8,
            sender: u8::try_from(SENDER_CLIENT).ok()?,
            flags: if request.blind { FLAG_BLIND } else { 0 },
            payload_bytes,
            group: request.group.0,
            payload_crc32c: checksum(request.payload),
            session: request.session,
            sequence: request.sequence,
            ..Header::default()
        };
        let mut datagram = Vec::new();
        let sealed = self
            .signing
            .seal(header, [request.payload, &[]], &mut datagram);
        sealed.then_some(datagram)
    }

    /// Reads a datagram that should be an answer.
    pub fn answer<'a>(&self, datagram: &'a [u8]) -> Result<Answered<'a>, Reason> {
        let (header, payload) = self.signing.open(datagram)?;
        if header.kind != Kind::Answer as u8 {
            return Err(Reason::Unexpected);
        }
        Ok(Answered {
            session: header.session,
            sequence: header.sequence,
            index: header.index,
            refused: header.flags & FLAG_REFUSED != 0,
            payload,
        })
    }
}
