//! What could not be carried out, in the words of Redis' protocol: the first word tells its clients what kind
//! of trouble it is.
use quorumwire_kv::redis::{Broken, QUOTED_BYTES_MAX, TRANSACTION_COMMANDS_MAX, Words, quoted};
use quorumwire_kv::{COMMAND_BYTES_MAX, WhyRefused};

/// The client has to say who it is.
pub const NOT_LET_IN: &[u8] = b"-NOAUTH Authentication required.\r\n";
/// `HELLO` says it only with `AUTH`.
pub const HELLO_NOT_LET_IN: &[u8] = b"-NOAUTH HELLO must be called with the client already authenticated, otherwise \
    the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP \
    protocol version at the same time\r\n";
/// Nobody has this name and this password.
pub const WRONG_ACCOUNT: &[u8] =
    b"-WRONGPASS invalid username-password pair or user is disabled.\r\n";
/// `AUTH` where everybody is let in.
pub const NO_ACCOUNTS: &[u8] =
    b"-ERR AUTH <password> called without any password configured for the default \
    user. Are you sure your configuration is correct?\r\n";
/// More than a client may send before it has said who it is.
pub fn unknown_client_too_long() -> Broken {
    Broken {
        reply: b"-ERR Protocol error: unauthenticated bulk length\r\n".into(),
        why: WhyRefused::Unauthenticated,
    }
}

pub const SYNTAX: &[u8] = b"ERR syntax error";
pub const NOT_AN_INTEGER: &[u8] = b"ERR value is not an integer or out of range";

/// An error's text with a client's word in it.
pub fn quoting(before: &str, word: &[u8], after: &str) -> Vec<u8> {
    let word = quoted(word, QUOTED_BYTES_MAX);
    [before.as_bytes(), word, after.as_bytes()].concat()
}

/// A subcommand that takes so many words, but not so many at once.
pub fn no_such_form(words: &Words<'_>) -> Vec<u8> {
    let [container, word] = [0, 1].map(|place| words.get(place).unwrap_or_default());
    let container = String::from_utf8_lossy(container).to_ascii_uppercase();
    let before = "ERR unknown subcommand or wrong number of arguments for '";
    quoting(before, word, &format!("'. Try {container} HELP."))
}

/// A transaction, or one command, that the log cannot hold.
pub fn too_long(is_one: bool) -> Vec<u8> {
    let what = if is_one { "command" } else { "transaction" };
    format!("-ERR {what} is longer than {COMMAND_BYTES_MAX} bytes\r\n").into_bytes()
}

/// One command too many of a transaction.
pub fn too_many_commands() -> Vec<u8> {
    format!("-ERR transaction has more than {TRANSACTION_COMMANDS_MAX} commands\r\n").into_bytes()
}

/// A command about the connection or the server with more words than any needs.
pub fn too_many_words(words_max: usize) -> Vec<u8> {
    format!("-ERR command has more than {words_max} words\r\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_word_is_repeated_up_to_a_nul_and_no_further_than_its_limit() {
        for (word, shown) in [
            (&b"foo"[..], &b"foo"[..]),
            (b"a\0b", b"a"),
            (b"\0", b""),
            (b"", b""),
            (&[b'x'; QUOTED_BYTES_MAX + 1], &[b'x'; QUOTED_BYTES_MAX]),
        ] {
            let text = quoting("<", word, ">");
            assert_eq!(text, [b"<", shown, b">"].concat());
        }
        let words = Words::from_text(b"*3\r\n$6\r\nclient\r\n$3\r\nFoo\r\n$1\r\nx\r\n").unwrap();
        let text = String::from_utf8(no_such_form(&words)).unwrap();
        let expected =
            "ERR unknown subcommand or wrong number of arguments for 'Foo'. Try CLIENT HELP.";
        assert_eq!(text, expected);
    }
}
