//! Commands that need no store and that a transaction may hold all the same. Knows no connection.
use super::{Answer, Fault, Outcome, Spec, Words, answer_command, integer, reply};
use crate::REPLY_BYTES_MAX;

/// Answers what depends on nothing but the command and the time of day of its log entry. The rest belongs to
/// whoever holds the connection, and has no place among the commands of a log entry.
pub(crate) fn answer_in_transaction(
    spec: &Spec,
    words: &Words<'_>,
    unix_ms: u64,
    answer: &mut Answer<'_>,
) -> Outcome {
    let word = |place| words.get(place).unwrap_or_default();
    match spec.name {
        "ping" if words.len() == 1 => reply::simple(answer.out, "PONG"),
        "ping" if words.len() > 2 => {
            return Err("ERR wrong number of arguments for 'ping' command".into());
        }
        "ping" | "echo" => answer.bulk(word(1))?,
        "select" => {
            if database(word(1))? != 0 {
                return Err(NO_DATABASE.into());
            }
            answer.ok();
        }
        "swapdb" => {
            swap(word(1), word(2))?;
            answer.ok();
        }
        "time" => {
            reply::array_header(answer.out, 2);
            reply::bulk(answer.out, (unix_ms / 1000).to_string().as_bytes());
            let micros = unix_ms % 1000 * 1000;
            reply::bulk(answer.out, micros.to_string().as_bytes());
        }
        "unwatch" => answer.ok(),
        name if name == "command" || name.starts_with("command|") => {
            let room = answer.end_max.saturating_sub(answer.out.len());
            answer_command(words, answer.resp, room.min(REPLY_BYTES_MAX), answer.out);
        }
        name => return Err(format!("ERR '{name}' cannot be part of a transaction").into()),
    }
    Ok(())
}

/// There is one database.
pub(crate) const NO_DATABASE: &str = "ERR DB index is out of range";

/// The number of a database, there or not.
pub(crate) fn database(word: &[u8]) -> Result<i32, Fault> {
    let number = integer(word).ok_or("ERR value is not an integer or out of range")?;
    i32::try_from(number).map_err(|_| {
        let (least, most) = (i32::MIN, i32::MAX);
        format!("ERR value is out of range, value must between {least} and {most}").into()
    })
}

fn swap(first: &[u8], second: &[u8]) -> Outcome {
    let first = database(first).map_err(|_| "ERR invalid first DB index")?;
    let second = database(second).map_err(|_| "ERR invalid second DB index")?;
    if (first, second) == (0, 0) {
        Ok(())
    } else {
        Err(NO_DATABASE.into())
    }
}
