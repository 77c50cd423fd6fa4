//! Frames between a client and a replica: the framing of `frame.rs` with another magic, "QWC1", and smaller
//! limits.
use crate::frame::{FRAME_HEADER_BYTES, FrameError, FrameHeader, Framing};
use crate::limits::{ATTACHMENT_BYTES_MAX, CLIENT_META_BYTES_MAX};
use prost::Message;

/// Lowest version of the messages between clients and replicas that this code can read.
pub const CLIENT_PROTOCOL_VERSION_MIN: u32 = 1;
/// Highest such version, and the one it prefers.
pub const CLIENT_PROTOCOL_VERSION_MAX: u32 = 2;
/// The first version that has subscriptions.
pub const CLIENT_PROTOCOL_SUBSCRIPTIONS: u32 = 2;

const FRAMING: Framing = Framing {
    magic: 0x5157_4331,
    meta_bytes_max: CLIENT_META_BYTES_MAX,
    attachment_bytes_max: ATTACHMENT_BYTES_MAX,
};

/// Why bytes are no frame with such a message. The connection they came from cannot be trusted further.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ClientFrameError {
    /// The frame itself is wrong.
    #[error("{0}")]
    Frame(#[from] FrameError),
    /// Its attachment is longer than its receiver takes.
    #[error("attachment of {bytes} bytes is longer than {max}")]
    TooLong {
        /// The length it claims.
        bytes: usize,
        /// What is taken.
        max: usize,
    },
    /// Its meta is no such message.
    #[error("malformed message: {0}")]
    Message(#[from] prost::DecodeError),
}

/// What stands at the start of some bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ClientFrame<'a, M> {
    /// The beginning of a frame, which is whole once so many bytes are there; nothing is known of them
    /// beyond what has been checked.
    Incomplete {
        /// As many as it takes to see more.
        needed: usize,
    },
    /// A frame of so many bytes.
    Whole {
        /// Its length.
        consumed: usize,
        /// What it says.
        message: M,
        /// The raw bytes behind it.
        attachment: &'a [u8],
    },
}

/// Takes a frame off the start of `bytes` whose attachment has at most so many bytes. The lengths are checked
/// before any of what they announce is waited for.
pub fn take_client_frame<M: Message + Default>(
    bytes: &[u8],
    attachment_bytes_max: usize,
) -> Result<ClientFrame<'_, M>, ClientFrameError> {
    let Some(header) = FrameHeader::decode_as(&FRAMING, bytes)? else {
        return Ok(ClientFrame::Incomplete {
            needed: FRAME_HEADER_BYTES,
        });
    };
    if header.attachment_bytes() > attachment_bytes_max {
        return Err(ClientFrameError::TooLong {
            bytes: header.attachment_bytes(),
            max: attachment_bytes_max,
        });
    }
    let needed = header.frame_bytes();
    let Some(frame) = bytes.get(..needed) else {
        return Ok(ClientFrame::Incomplete { needed });
    };
    let (meta, attachment) = header.open_slice(frame)?;
    Ok(ClientFrame::Whole {
        consumed: needed,
        message: M::decode(meta)?,
        attachment,
    })
}

/// Appends a frame. Both parts are our own and within their limits; otherwise it panics.
pub fn write_client_frame(out: &mut Vec<u8>, message: &impl Message, attachment: &[u8]) {
    FRAMING.write(out, message, attachment);
}
