//! The frame around each datagram of memcached's UDP protocol, and how long an answer may be. All numbers
//! are big-endian, 16 bits: request, number of the datagram, count of datagrams, zero.

/// Bytes of the frame.
pub const HEADER_BYTES: usize = 8;
/// Most bytes of one datagram of an answer: it fits an MTU of 1500 with room for tunnels.
pub const DATAGRAM_BYTES: usize = 1400;
/// Most datagrams of one answer.
pub const ANSWER_DATAGRAMS_MAX: usize = 16;
/// An answer is at most so many times as long as its request, frames included: whoever lies about where a
/// request comes from has that much sent to somebody else. The shortest requests still get one full datagram.
pub const AMPLIFICATION_MAX: usize = 64;

const BODY_BYTES: usize = DATAGRAM_BYTES - HEADER_BYTES;

/// One datagram of a request.
#[derive(Debug, Eq, PartialEq)]
pub struct Frame<'a> {
    /// The client's number for it.
    pub request: u16,
    /// Which of its datagrams this is, from 0.
    pub number: u16,
    /// How many it has.
    pub count: u16,
    /// The request, or a part of it.
    pub body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// `None`: no frame, or nothing in it.
    pub fn split(datagram: &'a [u8]) -> Option<Self> {
        let (header, body) = datagram.split_first_chunk::<HEADER_BYTES>()?;
        let field = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let (request, number, count) = (field(0), field(2), field(4));
        let is_good = number < count && field(6) == 0 && !body.is_empty();
        is_good.then_some(Self {
            request,
            number,
            count,
            body,
        })
    }
}

/// Longest answer to a request of so many bytes, frame included, in bytes without frames.
pub fn answer_bytes_max(request_bytes: usize) -> usize {
    let most = request_bytes.saturating_mul(AMPLIFICATION_MAX);
    let whole = most / DATAGRAM_BYTES;
    let rest = (most % DATAGRAM_BYTES).saturating_sub(HEADER_BYTES);
    (whole * BODY_BYTES + rest).min(ANSWER_DATAGRAMS_MAX * BODY_BYTES)
}

/// The datagrams of an answer that is no longer than [`answer_bytes_max`].
pub fn datagrams(request: u16, answer: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let count = u16::try_from(answer.len().div_ceil(BODY_BYTES)).unwrap_or(u16::MAX);
    answer
        .chunks(BODY_BYTES)
        .zip(0_u16..)
        .map(move |(body, number)| {
            let mut datagram = Vec::with_capacity(HEADER_BYTES + body.len());
            for field in [request, number, count, 0] {
                datagram.extend_from_slice(&field.to_be_bytes());
            }
            datagram.extend_from_slice(body);
            datagram
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_says_which_of_how_many_it_is() {
        let good = b"\x12\x34\0\0\0\x01\0\0version\r\n";
        let frame = Frame::split(good).unwrap();
        assert_eq!(frame.request, 0x1234);
        assert_eq!(frame.body, b"version\r\n");
        assert_eq!((frame.number, frame.count), (0, 1));
        let part = Frame::split(b"\0\x01\x02\x03\x02\x04\0\0x").unwrap();
        assert_eq!((part.number, part.count), (0x203, 0x204));
        for bad in [
            b"\0\x01\0\0\0\0\0\0x",
            b"\0\x01\0\x01\0\x01\0\0x",
            b"\0\x01\x01\0\0\x02\0\0x",
            b"\0\x01\0\0\0\x01\0\x01x",
            b"\0\x01\0\0\0\x01\x01\0x",
        ] {
            assert_eq!(Frame::split(bad), None, "{bad:?}");
        }
        for length in 0..=HEADER_BYTES {
            assert_eq!(Frame::split(&good[..length]), None, "{length} bytes");
        }
    }

    #[test]
    fn an_answer_is_cut_into_numbered_datagrams() {
        let answer: Vec<u8> = (0..=2 * BODY_BYTES).map(|at| at.to_le_bytes()[0]).collect();
        let all: Vec<Vec<u8>> = datagrams(0xabcd, &answer).collect();
        assert_eq!(all.len(), 3);
        assert_eq!(all[0].len(), DATAGRAM_BYTES);
        assert_eq!(all[2][..HEADER_BYTES], *b"\xab\xcd\0\x02\0\x03\0\0");
        let bodies: Vec<u8> = all
            .iter()
            .flat_map(|it| it[HEADER_BYTES..].to_vec())
            .collect();
        assert_eq!(bodies, answer);
        assert_eq!(datagrams(1, b"x").next().unwrap(), b"\0\x01\0\0\0\x01\0\0x");
    }

    #[test]
    fn what_is_sent_is_bounded_by_the_request_and_for_all() {
        for request_bytes in 0..2000 {
            let most = answer_bytes_max(request_bytes);
            let sent: usize = datagrams(0, &vec![0; most]).map(|it| it.len()).sum();
            assert!(sent <= request_bytes * AMPLIFICATION_MAX, "{request_bytes}");
            assert!(sent <= ANSWER_DATAGRAMS_MAX * DATAGRAM_BYTES);
        }
        let shortest = HEADER_BYTES + "get k0123456\r\n".len();
        assert!(answer_bytes_max(shortest) >= BODY_BYTES);
        assert_eq!(answer_bytes_max(1400), ANSWER_DATAGRAMS_MAX * BODY_BYTES);
    }
}
