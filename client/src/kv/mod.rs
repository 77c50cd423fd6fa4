//! The key-value store's commands, in the words that Redis has for them.
//!
//! A read goes as a query, a write as a command that is carried out once; [`quorumwire_kv`] says which is
//! which, and what differs from Redis. A lifetime (`EX`, `PX`) counts from the next tick of the log's time,
//! so it never ends early and ends some milliseconds late; if the leader dies just then, as much later as
//! nobody led.
mod methods;
mod value;

pub use value::Value;

use crate::Error;
use quorumwire_kv::redis::{
    Kind, Resp, Script, TRANSACTION_COMMANDS_MAX, VERSIONS, Words, classify, reply,
};
use quorumwire_kv::{COMMAND_BYTES_MAX, Command, Key};

/// Most keys that one transaction may depend on.
pub const WATCHED_MAX: usize = 1024;

/// Versions of keys, as they were when they were asked for: a transaction that is given them is carried out
/// only if they are still the same.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Watched {
    /// As [`Script::watched`] wants them.
    list: Vec<u8>,
}

/// How a command travels.
enum Way {
    Query(Vec<u8>),
    Command(Vec<u8>),
}

fn invalid(text: impl Into<String>) -> Error {
    Error::Invalid(text.into())
}

/// The array of these words.
fn text_of<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut text = Vec::new();
    reply::array_header(&mut text, words.len());
    for word in words {
        reply::bulk(&mut text, word.as_ref());
    }
    text
}

/// What carries a command out, and whether it is one.
fn kind_of(text: &[u8]) -> Result<(Words<'_>, Kind), Error> {
    let words = Words::from_text(text)
        .ok_or_else(|| invalid("a command has 1 to 131,072 words, together up to 1 MiB"))?;
    let kind = classify(&words).map_err(|error| {
        let text = String::from_utf8_lossy(&error);
        invalid(text.trim_start_matches('-').trim_end())
    })?;
    Ok((words, kind))
}

fn script(script: Script<'_>) -> Result<Vec<u8>, Error> {
    let command = Command::Redis(script);
    let bytes = command.encoded_bytes();
    if bytes > COMMAND_BYTES_MAX {
        let max = COMMAND_BYTES_MAX;
        return Err(Error::TooLong { bytes, max });
    }
    let mut encoded = Vec::with_capacity(bytes);
    command.encode(&mut encoded);
    Ok(encoded)
}

/// The query whose text this is.
fn query_of(resp: Resp, text: &[u8]) -> Vec<u8> {
    [&[resp.byte()], text].concat()
}

/// The way of a single command.
fn way_of<W: AsRef<[u8]>>(words: &[W]) -> Result<Way, Error> {
    let text = text_of(words);
    let (words, kind) = kind_of(&text)?;
    match kind {
        Kind::Read => Ok(Way::Query(query_of(Resp::V3, &text))),
        Kind::Write => script(Script::single(Resp::V3, &words)).map(Way::Command),
        Kind::Connection => Err(invalid(format!(
            "{} is about a connection of Redis' protocol, not served here",
            String::from_utf8_lossy(words.get(0).unwrap_or_default()).to_uppercase()
        ))),
    }
}

/// Several commands as one.
fn transaction_of<W: AsRef<[u8]>>(
    watched: &Watched,
    commands: &[impl AsRef<[W]>],
) -> Result<Vec<u8>, Error> {
    if commands.is_empty() || commands.len() > TRANSACTION_COMMANDS_MAX {
        let text = format!("a transaction has 1 to {TRANSACTION_COMMANDS_MAX} commands");
        return Err(invalid(text));
    }
    let mut texts = Vec::new();
    for words in commands {
        let text = text_of(words.as_ref());
        let (words, kind) = kind_of(&text)?;
        if kind == Kind::Connection {
            let name = String::from_utf8_lossy(words.get(0).unwrap_or_default()).to_uppercase();
            return Err(invalid(format!("{name} cannot be part of a transaction")));
        }
        texts.extend_from_slice(&text);
    }
    script(Script {
        resp: Resp::V3,
        is_transaction: true,
        watched: &watched.list,
        commands: &texts,
    })
}

/// The query for versions of keys.
fn versions_query<K: AsRef<[u8]>>(keys: &[K]) -> Result<Vec<u8>, Error> {
    if keys.is_empty() || keys.len() > WATCHED_MAX {
        return Err(invalid(format!("1 to {WATCHED_MAX} keys can be watched")));
    }
    if keys.iter().any(|key| Key::binary(key.as_ref()).is_none()) {
        return Err(invalid("a key has at most 250 bytes"));
    }
    let words: Vec<&[u8]> = std::iter::once(VERSIONS)
        .chain(keys.iter().map(AsRef::as_ref))
        .collect();
    Ok(query_of(Resp::V2, &text_of(&words)))
}

/// The versions of these keys, out of the answer.
fn watched_of<K: AsRef<[u8]>>(keys: &[K], answer: &[u8]) -> Result<Watched, Error> {
    let versions = Words::from_text(answer).filter(|it| it.len() == keys.len());
    let versions = versions.ok_or(Error::StrangeAnswer)?;
    let mut list = Vec::new();
    for (key, version) in keys.iter().zip(versions.iter()) {
        let version = std::str::from_utf8(version).ok();
        let version = version.and_then(|text| text.parse::<u64>().ok());
        let key = Key::binary(key.as_ref());
        let (Some(key), Some(version)) = (key, version) else {
            return Err(Error::StrangeAnswer);
        };
        Script::watch(&mut list, key, version);
    }
    Ok(Watched { list })
}

/// The answer to a single command.
fn value_of(answer: &[u8]) -> Result<Value, Error> {
    match Value::parse(answer).ok_or(Error::StrangeAnswer)? {
        Value::Error(text) => Err(Error::Answered(text)),
        value @ (Value::Null
        | Value::Word(_)
        | Value::Bytes(_)
        | Value::Integer(_)
        | Value::Double(_)
        | Value::Boolean(_)
        | Value::Array(_)
        | Value::Map(_)) => Ok(value),
    }
}

/// The answer to a transaction; `None`: a watched key had changed, and nothing was done.
fn values_of(answer: &[u8]) -> Result<Option<Vec<Value>>, Error> {
    match value_of(answer)? {
        Value::Null => Ok(None),
        Value::Array(values) => Ok(Some(values)),
        Value::Word(_)
        | Value::Bytes(_)
        | Value::Integer(_)
        | Value::Double(_)
        | Value::Boolean(_)
        | Value::Map(_)
        | Value::Error(_) => Err(Error::StrangeAnswer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;

    #[test]
    fn reads_go_as_queries_and_writes_as_commands() {
        let way = |words: &[&str]| way_of(words);
        assert!(matches!(way(&["GET", "a"]), Ok(Way::Query(text)) if text[0] == b'3'));
        assert!(matches!(way(&["set", "a", "b"]), Ok(Way::Command(_))));
        for words in [
            &["NO"][..],
            &["GET"],
            &["MULTI"],
            &["AUTH", "a"],
            &[],
            &[""],
        ] {
            assert!(matches!(way(words), Err(Error::Invalid(_))), "{words:?}");
        }
        let long = "a".repeat(COMMAND_BYTES_MAX);
        assert!(way(&["SET", "a", &long]).is_err());
    }

    /// Who is told that a command was carried out takes it for done: an error of the store must not say so.
    /// One within a transaction's answers leaves the others done.
    #[test]
    fn what_the_store_refuses_was_not_carried_out() {
        for text in [
            "OOM command not allowed when used memory > 'maxmemory'.",
            "ERR value is not an integer or out of range",
            "EXECABORT Transaction discarded because of: OOM",
        ] {
            let answer = format!("-{text}\r\n");
            let error = value_of(answer.as_bytes()).unwrap_err();
            assert_eq!(error, Error::Answered(text.to_owned()));
            assert_eq!(error.outcome(), Outcome::NotCarriedOut);
            assert_eq!(values_of(answer.as_bytes()), Err(error));
            let among_others = format!("*2\r\n:1\r\n{answer}");
            let values = vec![Value::Integer(1), Value::Error(text.to_owned())];
            assert_eq!(values_of(among_others.as_bytes()), Ok(Some(values)));
        }
    }

    #[test]
    fn transactions_are_whole_commands() {
        let nothing = Watched::default();
        let set: &[&str] = &["SET", "a", "b"];
        assert!(transaction_of(&nothing, &[set, &["GET", "a"]]).is_ok());
        assert!(transaction_of::<&str>(&nothing, &[] as &[&[&str]]).is_err());
        assert!(transaction_of(&nothing, &[set, &["EXEC"]]).is_err());
        assert!(transaction_of(&nothing, &vec![set; TRANSACTION_COMMANDS_MAX + 1]).is_err());
        let keys = ["a", "b"];
        assert!(versions_query(&keys).is_ok());
        assert!(
            versions_query(&["a".repeat(251)]).is_err() && versions_query::<&str>(&[]).is_err()
        );
        let watched = watched_of(&keys, b"*2\r\n$1\r\n7\r\n$1\r\n0\r\n").unwrap();
        assert!(transaction_of(&watched, &[set]).is_ok());
        for strange in [
            "*1\r\n$1\r\n7\r\n",
            "*2\r\n$1\r\n7\r\n$1\r\nx\r\n",
            "-ERR\r\n",
        ] {
            let refused = watched_of(&keys, strange.as_bytes());
            assert_eq!(refused, Err(Error::StrangeAnswer));
        }
    }
}
