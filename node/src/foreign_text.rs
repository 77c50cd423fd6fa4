//! Texts from outside, for people: what a stranger says moves no cursor, turns no line around and hides
//! nothing of it.

/// Characters shown of a text whose length a stranger chooses.
pub(crate) const FOREIGN_TEXT_MAX: usize = 400;

/// Such a text, short and plain.
pub(crate) fn printable(text: &str) -> String {
    let short: String = text.chars().take(FOREIGN_TEXT_MAX).collect();
    plain(&short)
}

/// A text that holds foreign words, at its full length.
#[must_use]
pub fn plain(text: &str) -> String {
    text.replace(|c: char| !is_plain(c), "?")
}

/// Whether a character shows as itself: it neither controls nor formats others, separates no lines, is no
/// blank but the usual one, and means something (of Unicode's categories none of C and Z).
#[must_use]
pub fn is_plain(c: char) -> bool {
    // What Rust would escape; behind a letter, where it lets accents be.
    let mut text = [b'x'; 5];
    let end = 1 + c.encode_utf8(&mut text[1..]).len();
    let Ok(text) = std::str::from_utf8(&text[..end]) else {
        return false;
    };
    matches!(c, '\'' | '"' | '\\') || text.escape_debug().eq(text.chars())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_from_outside_are_short_and_plain() {
        let shown = printable(&format!("a\x1b[31m\n{}", "x".repeat(1000)));
        assert!(shown.starts_with("a?[31m?x") && shown.len() == FOREIGN_TEXT_MAX);
    }

    #[test]
    fn what_formats_or_hides_is_not_shown() {
        for c in [
            '\0',
            '\t',
            '\u{7f}',
            '\u{85}',
            '\u{a0}',
            '\u{ad}',
            '\u{61c}',
            '\u{180e}',
            '\u{200b}',
            '\u{200d}',
            '\u{200e}',
            '\u{2028}',
            '\u{2029}',
            '\u{202e}',
            '\u{2060}',
            '\u{2066}',
            '\u{2069}',
            '\u{feff}',
            '\u{fff9}',
            '\u{e000}',
            '\u{1d173}',
            '\u{e0041}',
        ] {
            assert_eq!(plain(&format!("a{c}b")), "a?b", "{c:?}");
        }
    }

    #[test]
    fn words_of_any_language_and_punctuation_stay() {
        for text in [
            r#"cluster "a" is 'b': c:\d {e} <f> & more"#,
            "Größe é e\u{301} 日本 עברית हिन्दी ß €",
        ] {
            assert_eq!(plain(text), text);
        }
    }
}
