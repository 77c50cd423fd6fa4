//! Frames: how a message travels on a connection between replicas.
//!
//! ```text
//!  0       4             8                   12       16
//!  | magic | meta bytes  | attachment bytes  | crc32c | meta (protobuf) | attachment |
//! ```
//! Big-endian. The checksum covers the first 12 bytes, the meta and the attachment.
use crate::limits::{ATTACHMENT_BYTES_MAX, META_BYTES_MAX};
use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;

/// Bytes before a frame's meta.
pub const FRAME_HEADER_BYTES: usize = 16;

/// "QWP1": the first bytes of every frame; another number is another framing.
const FRAME_MAGIC: u32 = 0x5157_5031;

/// What tells one kind of frames from another.
pub(crate) struct Framing {
    pub(crate) magic: u32,
    pub(crate) meta_bytes_max: usize,
    pub(crate) attachment_bytes_max: usize,
}

/// Those between replicas.
const PEERS: Framing = Framing {
    magic: FRAME_MAGIC,
    meta_bytes_max: META_BYTES_MAX,
    attachment_bytes_max: ATTACHMENT_BYTES_MAX,
};

/// Why bytes are not a frame. The connection they came from cannot be trusted further.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum FrameError {
    /// The first four bytes are not ours.
    #[error("not a quorumwire frame (begins with {magic:#010x})")]
    Magic {
        /// What stood there.
        magic: u32,
    },
    /// The meta is longer than [`META_BYTES_MAX`], or what clients may say.
    #[error("frame meta of {bytes} bytes is longer than {max}")]
    MetaTooLong {
        /// The length it claims.
        bytes: usize,
        /// What is allowed.
        max: usize,
    },
    /// The attachment is longer than [`ATTACHMENT_BYTES_MAX`].
    #[error("frame attachment of {bytes} bytes is longer than {max}")]
    AttachmentTooLong {
        /// The length it claims.
        bytes: usize,
        /// What is allowed.
        max: usize,
    },
    /// The checksum does not match.
    #[error("frame checksum mismatch")]
    Checksum,
}

/// The head of a frame whose lengths are within their limits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FrameHeader {
    meta_bytes: usize,
    attachment_bytes: usize,
    checksum: u32,
}

impl FrameHeader {
    /// Reads the header at the start of `bytes`; `None` while there are fewer than
    /// [`FRAME_HEADER_BYTES`].
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, FrameError> {
        Self::decode_as(&PEERS, bytes)
    }

    pub(crate) fn decode_as(framing: &Framing, bytes: &[u8]) -> Result<Option<Self>, FrameError> {
        let Some(header) = bytes.first_chunk::<FRAME_HEADER_BYTES>() else {
            return Ok(None);
        };
        let word = |at: usize| {
            u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        if word(0) != framing.magic {
            return Err(FrameError::Magic { magic: word(0) });
        }
        let (meta_bytes, attachment_bytes) = (word(4) as usize, word(8) as usize);
        if meta_bytes > framing.meta_bytes_max {
            return Err(FrameError::MetaTooLong {
                bytes: meta_bytes,
                max: framing.meta_bytes_max,
            });
        }
        if attachment_bytes > framing.attachment_bytes_max {
            return Err(FrameError::AttachmentTooLong {
                bytes: attachment_bytes,
                max: framing.attachment_bytes_max,
            });
        }
        Ok(Some(Self {
            meta_bytes,
            attachment_bytes,
            checksum: word(12),
        }))
    }

    /// Bytes of the whole frame, this header included.
    #[must_use]
    pub const fn frame_bytes(&self) -> usize {
        FRAME_HEADER_BYTES + self.meta_bytes + self.attachment_bytes
    }

    /// Checks a whole frame of [`frame_bytes`](Self::frame_bytes) bytes and cuts it into meta and
    /// attachment, without copying.
    pub fn open(&self, mut frame: Bytes) -> Result<(Bytes, Bytes), FrameError> {
        self.check(&frame)?;
        let attachment = frame.split_off(FRAME_HEADER_BYTES + self.meta_bytes);
        Ok((frame.split_off(FRAME_HEADER_BYTES), attachment))
    }

    /// The same of bytes that stay where they are.
    pub(crate) fn open_slice<'a>(
        &self,
        frame: &'a [u8],
    ) -> Result<(&'a [u8], &'a [u8]), FrameError> {
        self.check(frame)?;
        Ok(frame[FRAME_HEADER_BYTES..].split_at(self.meta_bytes))
    }

    pub(crate) const fn attachment_bytes(&self) -> usize {
        self.attachment_bytes
    }

    fn check(&self, frame: &[u8]) -> Result<(), FrameError> {
        assert_eq!(frame.len(), self.frame_bytes(), "the caller cuts frames");
        let covered = crc32c::crc32c(&frame[..12]);
        if crc32c::crc32c_append(covered, &frame[FRAME_HEADER_BYTES..]) != self.checksum {
            return Err(FrameError::Checksum);
        }
        Ok(())
    }
}

impl Framing {
    /// Appends a frame. Both parts are our own and within their limits; otherwise it panics.
    pub(crate) fn write(&self, out: &mut Vec<u8>, meta: &impl Message, attachment: &[u8]) {
        let start = out.len();
        let meta_bytes = meta.encoded_len();
        assert!(meta_bytes <= self.meta_bytes_max);
        assert!(attachment.len() <= self.attachment_bytes_max);
        let length = |bytes| u32::try_from(bytes).expect("checked against the limits");
        out.reserve(FRAME_HEADER_BYTES + meta_bytes + attachment.len());
        out.put_u32(self.magic);
        out.put_u32(length(meta_bytes));
        out.put_u32(length(attachment.len()));
        let checksum_at = out.len();
        out.put_u32(0);
        meta.encode(out).expect("a Vec grows");
        out.extend_from_slice(attachment);
        let covered = crc32c::crc32c(&out[start..checksum_at]);
        let checksum = crc32c::crc32c_append(covered, &out[checksum_at + 4..]);
        out[checksum_at..checksum_at + 4].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Appends a frame's header and meta to `buffer`. The attachment's pieces must be sent right behind
/// them, in order. Both parts are our own and within their limits; otherwise it panics.
pub fn encode_frame(buffer: &mut BytesMut, meta: &impl Message, attachment: &[Bytes]) {
    let start = buffer.len();
    let meta_bytes = meta.encoded_len();
    let attachment_bytes: usize = attachment.iter().map(Bytes::len).sum();
    assert!(meta_bytes <= META_BYTES_MAX && attachment_bytes <= ATTACHMENT_BYTES_MAX);
    let length = |bytes| u32::try_from(bytes).expect("checked against the limits");
    buffer.reserve(FRAME_HEADER_BYTES + meta_bytes);
    buffer.put_u32(FRAME_MAGIC);
    buffer.put_u32(length(meta_bytes));
    buffer.put_u32(length(attachment_bytes));
    buffer.put_u32(0);
    meta.encode(buffer).expect("a BytesMut grows");
    let covered = crc32c::crc32c(&buffer[start..start + 12]);
    let covered = crc32c::crc32c_append(covered, &buffer[start + FRAME_HEADER_BYTES..]);
    let checksum = attachment
        .iter()
        .fold(covered, |sum, piece| crc32c::crc32c_append(sum, piece));
    buffer[start + 12..start + 16].copy_from_slice(&checksum.to_be_bytes());
}
