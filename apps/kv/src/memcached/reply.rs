//! The answers of the protocol, word for word, and the writing of items. Decides nothing.
use crate::{ItemView, Key, WhyRefused};

macro_rules! replies {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$doc])* pub const $name: &[u8] = concat!($text, "\r\n").as_bytes();)*
    };
}

replies! {
    /// A write took effect.
    STORED = "STORED";
    /// The condition of an `add`, `replace`, `append` or `prepend` did not hold.
    NOT_STORED = "NOT_STORED";
    /// The item of a `cas` is not the one that was read.
    EXISTS = "EXISTS";
    /// There is no such item.
    NOT_FOUND = "NOT_FOUND";
    /// The item is gone.
    DELETED = "DELETED";
    /// The item has its new end.
    TOUCHED = "TOUCHED";
    /// Done.
    OK = "OK";
    /// All items, or all statistics, are out.
    END = "END";
    /// The statistics start again.
    RESET = "RESET";
    /// The answer to `mn`.
    META_NOOP = "MN";
    /// There is no such command, or not with so many words.
    ERROR = "ERROR";
    /// The answer to `shutdown`.
    SHUTDOWN_NOT_ENABLED = "ERROR: shutdown not enabled";
    /// The client has not said who it is.
    NOT_LET_IN = "CLIENT_ERROR unauthenticated";
    /// Nobody has this name and this password.
    WRONG_ACCOUNT = "CLIENT_ERROR authentication failure";
    /// A word of the command is not what it must be.
    BAD_FORMAT = "CLIENT_ERROR bad command line format";
    /// A line has too few words.
    BAD_LINE = "CLIENT_ERROR bad command line";
    /// A `delete` with an argument that is neither 0 nor `noreply`.
    BAD_DELETE = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]";
    /// The data block does not end where the command says.
    BAD_CHUNK = "CLIENT_ERROR bad data chunk";
    /// An expiry time is not a number.
    BAD_EXPTIME = "CLIENT_ERROR invalid exptime argument";
    /// The argument of an `incr` or `decr` is not a number.
    BAD_DELTA = "CLIENT_ERROR invalid numeric delta argument";
    /// The value of an `incr` or `decr` is not a number.
    NOT_NUMERIC = "CLIENT_ERROR cannot increment or decrement non-numeric value";
    /// A line is longer than a line may be.
    LINE_TOO_LONG = "CLIENT_ERROR line too long";
    /// A `get` or `gets` is longer, or asks for more keys, than one may.
    GET_TOO_LONG = "CLIENT_ERROR a get has at most 1048576 bytes and 32768 keys";
    /// The first byte is that of memcached's binary protocol.
    BINARY_PROTOCOL = "CLIENT_ERROR the binary protocol is not served";
    /// What begins there is a handshake of TLS.
    TLS = "CLIENT_ERROR this port speaks no TLS";
    /// A flag of `mg` or `ms` that there is not.
    UNKNOWN_FLAG = "CLIENT_ERROR invalid flag";
    /// A flag that was given before.
    DUPLICATE_FLAG = "CLIENT_ERROR duplicate flag";
    /// Whatever is wrong with the flags of `md` and `ma`.
    BAD_FLAG = "CLIENT_ERROR invalid or duplicate flag";
    /// A flag's token is not a number.
    BAD_TOKEN = "CLIENT_ERROR bad token in command line format";
    /// A key is not base64 although flag `b` says so.
    BAD_BASE64 = "CLIENT_ERROR error decoding key";
    /// The token of flag `M` is not one letter.
    BAD_MODE_LENGTH = "CLIENT_ERROR incorrect length for M token";
    /// `ms` has no such mode.
    BAD_MODE_OF_SET = "CLIENT_ERROR invalid mode for ms M token";
    /// `ma` has no such mode.
    BAD_MODE_OF_ARITHMETIC = "CLIENT_ERROR invalid mode for ma M token";
    /// The token of flag `J` is not a number.
    BAD_INITIAL = "CLIENT_ERROR invalid numeric initial value";
    /// The token of flag `D` is not a number.
    BAD_META_DELTA = "CLIENT_ERROR invalid numeric delta value";
    /// More flags than `mg` takes.
    TOO_MANY_FLAGS_OF_GET = "CLIENT_ERROR options flags are too long";
    /// More flags than another meta command takes.
    TOO_MANY_FLAGS = "CLIENT_ERROR options flags too long";
    /// The token of flag `O` has more than 31 bytes.
    OPAQUE_TOO_LONG = "CLIENT_ERROR opaque token too long";
    /// The store's answer to an `mg` that has to change what it finds: no client sees it, the server has the
    /// log carry the same `mg` as a write.
    MUST_WRITE = "SERVER_ERROR the read must be a write";
    /// The value is longer than a value may be.
    TOO_LARGE = "SERVER_ERROR object too large for cache";
    /// An answer would be longer than [`REPLY_BYTES_MAX`](crate::REPLY_BYTES_MAX).
    REPLY_TOO_LARGE = "SERVER_ERROR out of memory writing get response";
    /// The items take more memory than they may: nothing was stored.
    OUT_OF_MEMORY = "SERVER_ERROR out of memory storing object";
    /// The same for a number that would have grown longer.
    OUT_OF_MEMORY_FOR_NUMBER = "SERVER_ERROR out of memory";
    /// The same for a number that is not there yet.
    OUT_OF_MEMORY_FOR_ITEM = "SERVER_ERROR Out of memory allocating new item";
    /// A memory limit that comes as a session's command, over UDP or TCP.
    NOT_BY_THE_PLANE = "SERVER_ERROR not executed: a memory limit is not set by a command of a session";
    /// `cache_memlimit` is given less than a memcached can do with.
    MEMORY_TOO_SMALL = "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m";
    /// `cache_memlimit` is given more than can be meant.
    MEMORY_TOO_LARGE = "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes";
    /// `stats cachedump` of a class that cannot be.
    BAD_SLAB = "CLIENT_ERROR Illegal slab id";
    /// `lru_crawler` with such a class.
    BAD_CLASS = "BADCLASS invalid class id";
    /// `slabs reassign` with one.
    BAD_CLASS_OF_TWO = "BADCLASS invalid src or dst class id";
    /// `slabs reassign` of a class to itself.
    SAME_CLASS = "SAME src and dst class are identical";
    /// `slabs reassign`: no class has memory of its own.
    NO_SPARE_MEMORY = "NOSPARE source class has no spare pages";
    /// `lru tune` with more than memcached gives.
    TOO_MUCH_HOT_AND_WARM = "ERROR hot and warm pcts must not exceed 80";
    /// `lru tune` with a factor that is 0 or less.
    NO_AGE_FACTOR = "ERROR hot/warm age factors must be greater than 0";
    /// `lru_crawler crawl` of no class.
    NOTHING_TO_CRAWL = "NOTSTARTED no items to crawl";
    /// `lru_crawler sleep` for longer than memcached does.
    LONG_SLEEP = "CLIENT_ERROR sleep must be one second or less";
    /// The answer to `lru_crawler metadump`.
    NO_DUMP = "ERROR metadump not allowed";
    /// The answer to `watch`.
    NO_WATCHING = "CLIENT_ERROR watch commands not allowed";
    /// The log carried something that is not a command.
    BAD_COMMAND = "SERVER_ERROR not a command of this version";
}

/// The answer to a request that is refused, and why it is, whatever the client is told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RefusalReply {
    /// The answer.
    pub text: &'static [u8],
    /// Why.
    pub why: WhyRefused,
}

impl RefusalReply {
    /// To what is longer than it may be.
    #[must_use]
    pub const fn too_long(text: &'static [u8]) -> Self {
        let why = WhyRefused::TooLong;
        Self { text, why }
    }

    /// To what there is, and is not served here.
    #[must_use]
    pub const fn not_served(text: &'static [u8]) -> Self {
        let why = WhyRefused::NotServed;
        Self { text, why }
    }
}

/// To what makes no sense.
impl From<&'static [u8]> for RefusalReply {
    fn from(text: &'static [u8]) -> Self {
        let why = WhyRefused::Malformed;
        Self { text, why }
    }
}

/// How the answer to what the server could not do begins.
pub const REFUSED: &[u8] = b"SERVER_ERROR ";

/// Longest text that [`push_item`] puts around a key and a value, in bytes.
pub const ITEM_FRAME_BYTES_MAX: usize =
    "VALUE  4294967295 1048576 18446744073709551615\r\n\r\n".len();

/// Appends the answer for one item: `VALUE key flags length [unique]`, and the value. A miss has no
/// answer. At most [`ITEM_FRAME_BYTES_MAX`] bytes more than key and value have.
pub fn push_item(reply: &mut Vec<u8>, key: Key<'_>, item: &ItemView<'_>, with_unique: bool) {
    reply.reserve(ITEM_FRAME_BYTES_MAX + key.bytes().len() + item.value.len());
    reply.extend_from_slice(b"VALUE ");
    reply.extend_from_slice(key.bytes());
    reply.push(b' ');
    push_decimal(reply, u64::from(item.flags));
    reply.push(b' ');
    push_decimal(reply, item.value.len() as u64);
    if with_unique {
        reply.push(b' ');
        push_decimal(reply, item.unique);
    }
    reply.extend_from_slice(b"\r\n");
    reply.extend_from_slice(item.value);
    reply.extend_from_slice(b"\r\n");
}

/// Appends `number` in decimal.
pub fn push_decimal(reply: &mut Vec<u8>, number: u64) {
    let (digits, start) = decimal(number);
    reply.extend_from_slice(&digits[start..]);
}

/// The decimal digits of `number`: they stand in the array from the returned place to its end.
pub(crate) fn decimal(mut number: u64) -> ([u8; DECIMAL_DIGITS_MAX], usize) {
    let mut digits = [b'0'; DECIMAL_DIGITS_MAX];
    let mut start = DECIMAL_DIGITS_MAX;
    loop {
        start -= 1;
        digits[start] = b"0123456789"[(number % 10) as usize];
        number /= 10;
        if number == 0 {
            return (digits, start);
        }
    }
}

/// Digits of the largest number.
const DECIMAL_DIGITS_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_those_of_the_standard_library() {
        for number in [
            0,
            1,
            9,
            10,
            99,
            100,
            1_048_576,
            u64::from(u32::MAX),
            u64::MAX - 1,
            u64::MAX,
        ] {
            let mut reply = Vec::new();
            push_decimal(&mut reply, number);
            assert_eq!(reply, number.to_string().into_bytes());
        }
    }

    #[test]
    fn the_limits_of_a_get_are_named_as_they_are() {
        use crate::memcached::{LINE_BYTES_MAX, READ_KEYS_MAX};
        let text = String::from_utf8_lossy(GET_TOO_LONG);
        let named = format!("{LINE_BYTES_MAX} bytes and {READ_KEYS_MAX} keys");
        assert!(text.contains(&named), "{text}");
    }

    #[test]
    fn an_item_is_written_as_memcached_writes_it() {
        let key = Key::new(b"key").unwrap();
        let item = ItemView {
            flags: 7,
            unique: 42,
            value: b"a\r\nb",
        };
        let mut reply = b"before ".to_vec();
        push_item(&mut reply, key, &item, false);
        assert_eq!(reply, b"before VALUE key 7 4\r\na\r\nb\r\n");
        reply.clear();
        push_item(&mut reply, key, &item, true);
        assert_eq!(reply, b"VALUE key 7 4 42\r\na\r\nb\r\n");
    }

    #[test]
    fn the_frame_bound_is_reached_and_not_passed() {
        let key = Key::new(b"k").unwrap();
        let value = vec![b'v'; crate::VALUE_BYTES_MAX];
        let item = ItemView {
            flags: u32::MAX,
            unique: u64::MAX,
            value: &value,
        };
        let mut reply = Vec::new();
        push_item(&mut reply, key, &item, true);
        assert_eq!(reply.len(), ITEM_FRAME_BYTES_MAX + 1 + value.len());
    }
}
