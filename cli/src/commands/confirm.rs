//! Asks before something that cannot be taken back. Where nobody can answer, it takes an option that says so.
use crate::output;
use anyhow::{Context as _, ensure};
use std::io::{BufRead, BufReader, IsTerminal as _, Read as _, stderr, stdin};

/// Longest answer read.
const ANSWER_BYTES_MAX: u64 = 256;

/// An error unless whoever is asked types `word`; `what` says what for.
pub fn by_word(what: &str, word: &str) -> anyhow::Result<()> {
    let mut typed = BufReader::new(stdin().take(ANSWER_BYTES_MAX));
    answered(what, word, &mut typed)
}

/// Says what follows and asks whether to go on, unless `--yes` was given. Without a terminal nobody is asked,
/// and it is not done.
pub fn unless_yes(is_yes: bool, consequence: &str) -> anyhow::Result<()> {
    let has_terminal = stdin().is_terminal() && stderr().is_terminal();
    if is_yes {
        return Ok(());
    }
    ensure!(
        has_terminal,
        "nothing was changed: {consequence}; --yes does it"
    );
    errln!("{consequence}");
    by_word("To do it, type yes: ", "yes")
}

fn answered(what: &str, word: &str, typed: &mut impl BufRead) -> anyhow::Result<()> {
    output::complain(what);
    let mut answer = String::new();
    typed
        .read_line(&mut answer)
        .context("not confirmed, nothing was changed")?;
    let answer = answer.trim();
    ensure!(
        answer == word,
        "not confirmed, nothing was changed: {answer:?} is not {word:?}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::answered;

    #[test]
    fn only_the_word_confirms() {
        for (typed, is_confirmed) in [
            ("yes\n", true),
            (" yes ", true),
            ("", false),
            ("y\n", false),
            ("yes, but\n", false),
        ] {
            let outcome = answered("", "yes", &mut typed.as_bytes());
            assert_eq!(outcome.is_ok(), is_confirmed, "{typed:?}");
        }
    }
}
