//! How a client of planes learns which cluster it asks: one small datagram there, one back. They are none of
//! the planes' packets, so every plane leaves them to its host. For this no plane needs to know their fields,
//! and they stand here and not in `format.toml`. The tag is the business of whoever has the keys.
use quorumwire_interfaces::Lineage;

/// Bytes before the tag.
pub const LINEAGE_PACKET_BODY_BYTES: usize = 40;
/// Bytes of the tag.
pub const LINEAGE_PACKET_TAG_BYTES: usize = 16;
/// Bytes of a datagram: a question is as long as its answer, so nobody can use replicas to send more than he
/// sends.
pub const LINEAGE_PACKET_BYTES: usize = LINEAGE_PACKET_BODY_BYTES + LINEAGE_PACKET_TAG_BYTES;

/// `QLIN`; a plane's packet begins with `QW`.
const MAGIC: [u8; 4] = *b"QLIN";
const VERSION: u8 = 1;
const QUESTION: u8 = 1;
const ANSWER: u8 = 2;

/// Which way a datagram goes, and what it says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LineageMessage {
    /// A client asks.
    Question,
    /// A replica tells; 0: its cluster has none.
    Answer(Lineage),
}

/// What a datagram says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LineagePacket {
    /// Lowest bit of the number of the clients' key that made the tag.
    pub epoch: u8,
    /// Drawn by the client, and repeated in the answer.
    pub question: [u8; 16],
    /// What it says.
    pub message: LineageMessage,
}

impl LineagePacket {
    /// The bytes before the tag.
    #[must_use]
    pub fn encode(&self) -> [u8; LINEAGE_PACKET_BODY_BYTES] {
        let (kind, lineage) = match self.message {
            LineageMessage::Question => (QUESTION, Lineage::default()),
            LineageMessage::Answer(lineage) => (ANSWER, lineage),
        };
        let mut body = [0; LINEAGE_PACKET_BODY_BYTES];
        body[..4].copy_from_slice(&MAGIC);
        body[4] = VERSION;
        body[5] = kind;
        body[6] = self.epoch;
        body[8..24].copy_from_slice(&self.question);
        body[24..].copy_from_slice(&lineage.0.to_be_bytes());
        body
    }

    /// Reads a datagram and its tag, which is not looked at. `None`: it is none of these, or of a version or
    /// kind unknown here.
    #[must_use]
    pub fn decode(datagram: &[u8]) -> Option<(Self, &[u8; LINEAGE_PACKET_TAG_BYTES])> {
        let (body, tag) = datagram.split_first_chunk::<LINEAGE_PACKET_BODY_BYTES>()?;
        let tag = tag.try_into().ok()?;
        let mut lineage = [0; 16];
        lineage.copy_from_slice(&body[24..]);
        let lineage = Lineage(u128::from_be_bytes(lineage));
        let mut question = [0; 16];
        question.copy_from_slice(&body[8..24]);
        let message = match body[5] {
            QUESTION => LineageMessage::Question,
            ANSWER => LineageMessage::Answer(lineage),
            _ => return None,
        };
        let packet = Self {
            epoch: body[6],
            question,
            message,
        };
        // Every byte is as a sender of ours makes it.
        (packet.epoch <= 1 && packet.encode() == *body).then_some((packet, tag))
    }
}
