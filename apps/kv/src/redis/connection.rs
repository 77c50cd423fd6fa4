//! Commands that need no store and that a transaction may hold all the same. Knows no connection.
use super::{Answer, Fault, Outcome, Spec, Words, answer_command, integer, reply};

/// Answers what depends on nothing but the command and the time of its log entry. The rest belongs to
/// whoever holds the connection, and has no place among the commands of a log entry.
pub(crate) fn answer_in_transaction(
    spec: &Spec,
    words: &Words<'_>,
    log_time_ms: u64,
    answer: &mut Answer<'_>,
) -> Outcome {
    let word = |place| words.get(place).unwrap_or_default();
    match spec.name {
        "ping" if words.len() == 1 => reply::simple(answer.out, "PONG"),
        "ping" if words.len() > 2 => {
            return Err("ERR wrong number of arguments for 'ping' command".into());
        }
        "ping" | "echo" => answer.bulk(word(1))?,
        "select" => match integer(word(1)) {
            Some(0) => answer.ok(),
            Some(_) => return Err(NO_DATABASE.into()),
            None => return Err("ERR invalid DB index".into()),
        },
        "swapdb" => {
            swap(word(1), word(2))?;
            answer.ok();
        }
        "time" => {
            reply::array_header(answer.out, 2);
            reply::bulk(answer.out, (log_time_ms / 1000).to_string().as_bytes());
            let micros = log_time_ms % 1000 * 1000;
            reply::bulk(answer.out, micros.to_string().as_bytes());
        }
        "unwatch" => answer.ok(),
        "command" => answer_command(words, answer.resp, answer.out),
        name if name.starts_with("command|") => answer_command(words, answer.resp, answer.out),
        name => return Err(format!("ERR '{name}' cannot be part of a transaction").into()),
    }
    Ok(())
}

/// There is one database.
pub(crate) const NO_DATABASE: &str = "ERR DB index is out of range";

fn swap(first: &[u8], second: &[u8]) -> Result<(), Fault> {
    let first = integer(first).ok_or("ERR invalid first DB index")?;
    let second = integer(second).ok_or("ERR invalid second DB index")?;
    if (first, second) == (0, 0) {
        Ok(())
    } else {
        Err(NO_DATABASE.into())
    }
}
