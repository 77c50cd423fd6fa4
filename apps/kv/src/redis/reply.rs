//! The writing of answers, in both versions of the protocol. Decides nothing.
use super::Resp;
use crate::memcached::reply::push_decimal;

/// Appends a word that is known to have no line's end.
pub fn simple(out: &mut Vec<u8>, text: &str) {
    out.push(b'+');
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends `+OK`.
pub fn ok(out: &mut Vec<u8>) {
    out.extend_from_slice(b"+OK\r\n");
}

/// Appends an error: its kind (`ERR`), a blank and its text. Line ends in it become blanks.
pub fn error(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'-');
    let without_ends = text.iter().map(|&byte| match byte {
        b'\r' | b'\n' => b' ',
        other => other,
    });
    out.extend(without_ends);
    out.extend_from_slice(b"\r\n");
}

/// Appends an integer.
pub fn integer(out: &mut Vec<u8>, number: i64) {
    out.push(b':');
    if number < 0 {
        out.push(b'-');
    }
    push_decimal(out, number.unsigned_abs());
    out.extend_from_slice(b"\r\n");
}

/// Appends how many there are.
pub fn count(out: &mut Vec<u8>, number: usize) {
    header(out, b':', number);
}

/// Appends a string.
pub fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() + FRAME_BYTES_MAX);
    header(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Longest text that [`bulk`] puts around a string that a request or a value holds, in bytes.
pub const FRAME_BYTES_MAX: usize = "$1048576\r\n\r\n".len();

/// Appends what stands for a string that is not there.
pub fn null(out: &mut Vec<u8>, resp: Resp) {
    out.extend_from_slice(match resp {
        Resp::V2 => b"$-1\r\n",
        Resp::V3 => b"_\r\n",
    });
}

/// Appends what stands for an array that is not there.
pub fn null_array(out: &mut Vec<u8>, resp: Resp) {
    out.extend_from_slice(match resp {
        Resp::V2 => b"*-1\r\n",
        Resp::V3 => b"_\r\n",
    });
}

/// Appends the head of an array of so many answers.
pub fn array_header(out: &mut Vec<u8>, length: usize) {
    header(out, b'*', length);
}

/// Appends the head of so many pairs: in the older version an array of twice as many.
pub fn map_header(out: &mut Vec<u8>, resp: Resp, pairs: usize) {
    match resp {
        Resp::V2 => header(out, b'*', 2 * pairs),
        Resp::V3 => header(out, b'%', pairs),
    }
}

/// Appends the head of so many answers that are all different.
pub fn set_header(out: &mut Vec<u8>, resp: Resp, length: usize) {
    match resp {
        Resp::V2 => header(out, b'*', length),
        Resp::V3 => header(out, b'~', length),
    }
}

/// Appends a number with a fraction, as the shortest text that is read as the same number.
pub fn double(out: &mut Vec<u8>, resp: Resp, number: f64) {
    let text = if number.is_nan() {
        "nan".to_owned()
    } else {
        number.to_string()
    };
    match resp {
        Resp::V2 => bulk(out, text.as_bytes()),
        Resp::V3 => {
            out.push(b',');
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Appends yes or no: in the older version 1 or 0.
pub fn boolean(out: &mut Vec<u8>, resp: Resp, is_true: bool) {
    out.extend_from_slice(match (resp, is_true) {
        (Resp::V2, true) => b":1\r\n",
        (Resp::V2, false) => b":0\r\n",
        (Resp::V3, true) => b"#t\r\n",
        (Resp::V3, false) => b"#f\r\n",
    });
}

/// Appends a text for people to read: in the older version a string.
pub fn verbatim(out: &mut Vec<u8>, resp: Resp, text: &[u8]) {
    match resp {
        Resp::V2 => bulk(out, text),
        Resp::V3 => {
            header(out, b'=', text.len() + "txt:".len());
            out.extend_from_slice(b"txt:");
            out.extend_from_slice(text);
            out.extend_from_slice(b"\r\n");
        }
    }
}

fn header(out: &mut Vec<u8>, marker: u8, number: usize) {
    out.push(marker);
    push_decimal(out, number as u64);
    out.extend_from_slice(b"\r\n");
}
