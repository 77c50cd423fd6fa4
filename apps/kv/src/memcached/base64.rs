//! Base64 as RFC 4648 writes it, with its padding: how clients of the meta commands write keys of any
//! bytes. What is not the one way to write some bytes is refused.

/// Bytes that [`decode`] makes at most of the longest word that may be a key.
pub(super) const DECODED_BYTES_MAX: usize = crate::KEY_BYTES_MAX / 4 * 3;

#[cfg(test)]
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The bytes that `text` stands for, put into `out`; `None` if it stands for none, or for more than fit.
pub(super) fn decode<'a>(text: &[u8], out: &'a mut [u8; DECODED_BYTES_MAX]) -> Option<&'a [u8]> {
    if text.is_empty() || !text.len().is_multiple_of(4) || text.len() / 4 * 3 > out.len() {
        return None;
    }
    let padding = text.iter().rev().take_while(|&&byte| byte == b'=').count();
    let letters = &text[..text.len() - padding];
    if padding > 2 {
        return None;
    }
    let mut length = 0;
    let (mut bits, mut bit_count) = (0_u32, 0);
    for &letter in letters {
        bits = bits << 6 | six_bits(letter)?;
        bit_count += 6;
        if bit_count >= 8 {
            bit_count -= 8;
            out[length] = (bits >> bit_count & 0xff) as u8;
            length += 1;
        }
    }
    let rest_is_zero = bits & ((1 << bit_count) - 1) == 0;
    rest_is_zero.then_some(&out[..length])
}

fn six_bits(letter: u8) -> Option<u32> {
    Some(u32::from(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

/// Appends `bytes` as text.
#[cfg(test)]
fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for group in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 0x3f) as usize];
            out.push(if place <= group.len() { letter } else { b'=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard() {
        for (bytes, text) in [
            (&b"f"[..], &b"Zg=="[..]),
            (b"fo", b"Zm8="),
            (b"foo", b"Zm9v"),
            (b"foob", b"Zm9vYg=="),
            (b"fooba", b"Zm9vYmE="),
            (b"foobar", b"Zm9vYmFy"),
            (b"\xfb\xff\0", b"+/8A"),
        ] {
            let mut out = [0; DECODED_BYTES_MAX];
            assert_eq!(decode(text, &mut out), Some(bytes));
            let mut written = Vec::new();
            encode(bytes, &mut written);
            assert_eq!(written, text);
        }
    }

    #[test]
    fn what_is_not_the_one_way_to_write_bytes_is_refused() {
        let long = [b'A'; crate::KEY_BYTES_MAX];
        for text in [
            &b""[..],
            b"a",
            b"YQ",
            b"YQ=",
            b"Y===",
            b"====",
            b"YR==",
            b"YWJ=",
            b"YQ==YQ==",
            b"YW=j",
            b"YWJj=",
            b"YWJj====",
            b"YW j",
            b"YWJ-",
            b"YWJ_",
            b"\0\0\0\0",
            &long,
        ] {
            let mut out = [0; DECODED_BYTES_MAX];
            assert_eq!(decode(text, &mut out), None, "{}", text.escape_ascii());
        }
        let mut out = [0; DECODED_BYTES_MAX];
        assert_eq!(decode(&long[..248], &mut out).map(<[u8]>::len), Some(186));
    }
}
