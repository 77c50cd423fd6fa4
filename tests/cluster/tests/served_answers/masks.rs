//! What of Redis' answers cannot be the same from two processes, by the command that is answered, and why.
//! Everything else is compared byte by byte.

use super::resp::Reply;

/// How far two answers are compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mask {
    /// Numbers differ.
    Numbers,
    /// Numbers differ by less than this, and their signs do not.
    Near(i64),
    /// The order of the parts differs.
    Order,
    /// The names of the text's fields, without the values, in any order.
    Fields,
    /// What kind it is, how many parts it has, and of which kinds these are.
    Shape,
    /// What kind it is.
    Kind,
}

/// More of a time to live than ever passes between two servers' answers, in seconds.
const SECONDS: i64 = 30;
const MILLISECONDS: i64 = SECONDS * 1000;

/// Commands, or how they begin; how far their answers are compared; and why no further.
#[rustfmt::skip]
pub const MASKS: &[(&str, Mask, &str)] = &[
    ("ACL CAT", Mask::Order, "the order of a hash table, whose seed is drawn by chance"),
    ("ACL GENPASS", Mask::Kind, "drawn by chance"),
    ("ACL LOG", Mask::Kind, "ages, and where the client is"),
    ("CLIENT GETREDIR", Mask::Numbers, "the number of a connection"),
    ("CLIENT ID", Mask::Numbers, "the number of a connection"),
    ("CLIENT INFO", Mask::Fields, "addresses, ages, memory, the number of a connection"),
    ("CLIENT LIST", Mask::Fields, "addresses, ages, memory, the number of a connection"),
    ("CLIENT TRACKINGINFO", Mask::Numbers, "the number of a connection"),
    ("COMMAND", Mask::Order, "the order of a hash table, whose seed is drawn by chance"),
    ("CONFIG GET", Mask::Order, "the order of a hash table, whose seed is drawn by chance"),
    ("DEBUG OBJECT", Mask::Kind, "an address, and the time"),
    ("DUMP", Mask::Kind, "the order of a hash table, whose seed is drawn by chance"),
    ("FUNCTION STATS", Mask::Kind, "memory"),
    ("HELLO", Mask::Numbers, "the number of a connection"),
    ("HRANDFIELD", Mask::Shape, "drawn by chance"),
    ("INFO", Mask::Fields, "times, memory, the processor, the run's id, ports, files"),
    ("KEYS", Mask::Order, "the order of a hash table, whose seed is drawn by chance"),
    ("LASTSAVE", Mask::Numbers, "a time"),
    ("LATENCY DOCTOR", Mask::Kind, "how long things took"),
    ("LATENCY HISTOGRAM", Mask::Kind, "how long things took"),
    ("LATENCY LATEST", Mask::Kind, "how long things took"),
    ("LOLWUT", Mask::Kind, "drawn by chance"),
    ("MEMORY", Mask::Kind, "memory"),
    ("MONITOR", Mask::Kind, "times and addresses"),
    ("OBJECT FREQ", Mask::Numbers, "drawn by chance"),
    ("OBJECT IDLETIME", Mask::Numbers, "a time"),
    ("EXPIRETIME", Mask::Near(SECONDS), "a time"),
    ("PEXPIRETIME", Mask::Near(MILLISECONDS), "a time"),
    ("PTTL", Mask::Near(MILLISECONDS), "a time"),
    ("PUBSUB CHANNELS", Mask::Order, "the order of a hash table, whose seed is drawn by chance"),
    ("RANDOMKEY", Mask::Kind, "drawn by chance"),
    ("SCAN", Mask::Order, "the order of a hash table, whose seed is drawn by chance"),
    ("SDIFF", Mask::Order, "the order of a hash table, whose seed is drawn by chance"),
    ("SINTER", Mask::Order, "the order of a hash table, whose seed is drawn by chance"),
    ("SLOWLOG GET", Mask::Kind, "times and addresses"),
    ("SMEMBERS", Mask::Order, "the order of a hash table, whose seed is drawn by chance"),
    ("SPOP", Mask::Shape, "drawn by chance"),
    ("SRANDMEMBER", Mask::Shape, "drawn by chance"),
    ("SSCAN", Mask::Order, "the order of a hash table, whose seed is drawn by chance"),
    ("SUNION", Mask::Order, "the order of a hash table, whose seed is drawn by chance"),
    ("TIME", Mask::Kind, "a time"),
    ("TTL", Mask::Near(SECONDS), "a time"),
    ("XADD time", Mask::Kind, "a time"),
    ("XINFO CONSUMERS", Mask::Numbers, "how long something waits"),
    ("XINFO STREAM", Mask::Numbers, "the time at which a consumer was seen"),
    ("XPENDING", Mask::Numbers, "how long something waits"),
    ("ZRANDMEMBER", Mask::Shape, "drawn by chance"),
    ("ZSCAN", Mask::Order, "the order of a hash table, whose seed is drawn by chance"),
];

/// That of a command, and how it is called: its words begin with those.
pub fn mask_of(words: &[Vec<u8>]) -> Option<(&'static str, Mask)> {
    let begins_with = |begin: &str| {
        let mut begin = begin.split(' ').zip(words);
        begin.all(|(begin, word)| begin.as_bytes().eq_ignore_ascii_case(word))
    };
    let fits = |begin: &&(&str, Mask, &str)| {
        words.len() >= begin.0.split(' ').count() && begins_with(begin.0)
    };
    let longest = MASKS.iter().filter(fits).max_by_key(|it| it.0.len());
    longest.map(|(begin, mask, _)| (*begin, *mask))
}

/// Whether two answers to this command are the same as far as they can be. Errors are compared whole.
pub fn are_same(words: &[Vec<u8>], one: &Reply, other: &Reply) -> bool {
    if one == other {
        return true;
    }
    let mask = mask_of(words).filter(|_| !one.is_error() && !other.is_error());
    mask.is_some_and(|(_, mask)| are_same_under(mask, one, other))
}

fn are_same_under(mask: Mask, one: &Reply, other: &Reply) -> bool {
    let have_same_parts = || {
        let mut parts = one.parts.iter().zip(&other.parts);
        let are_same = |(one, other): (&Reply, &Reply)| are_same_under(mask, one, other);
        one.kind == other.kind && one.parts.len() == other.parts.len() && parts.all(are_same)
    };
    match mask {
        Mask::Kind => one.kind == other.kind,
        Mask::Shape => have_same_parts(),
        Mask::Order => ordered(one) == ordered(other),
        Mask::Numbers => have_same_parts() && (one.kind == b':' || one.text == other.text),
        Mask::Near(most) => match (number(one), number(other)) {
            (Some(one), Some(other)) => {
                one.signum() == other.signum() && (one - other).abs() < most
            }
            _ => false,
        },
        Mask::Fields => fields(&one.text) == fields(&other.text),
    }
}

/// The same with the parts of each part in an order of their own.
fn ordered(reply: &Reply) -> Reply {
    let mut parts: Vec<Reply> = reply.parts.iter().map(ordered).collect();
    parts.sort_by_cached_key(ToString::to_string);
    Reply {
        parts,
        ..reply.clone()
    }
}

fn number(reply: &Reply) -> Option<i64> {
    let text = std::str::from_utf8(&reply.text).ok();
    text.filter(|_| reply.kind == b':')?.parse().ok()
}

/// What stands in front of `=`, or of `:` that is the first of its line, sorted.
fn fields(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let mut fields = Vec::new();
    for line in text.lines() {
        match line.split_once(':').filter(|(name, _)| !name.contains('=')) {
            Some((name, _)) => fields.push(name.to_owned()),
            None => fields.extend(
                line.split(' ')
                    .filter_map(|it| Some(it.split_once('=')?.0.to_owned())),
            ),
        }
    }
    fields.sort_unstable();
    fields
}
