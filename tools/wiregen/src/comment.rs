//! Comments in generated code, broken between words so that no line is too long.

/// Longest line, in columns.
const COLUMNS_MAX: usize = 100;
/// Columns of a tab, as the kernel counts them.
const TAB_COLUMNS: usize = 8;

/// A documentation comment of Rust, with the end of its last line.
pub fn rust(indent: &str, text: &str) -> String {
    let lines = broken(text, COLUMNS_MAX - columns(indent) - "/// ".len());
    format!("{indent}/// {}\n", lines.join(&format!("\n{indent}/// ")))
}

/// A comment of C, with the end of its last line.
pub fn c(indent: &str, text: &str) -> String {
    let lines = broken(text, COLUMNS_MAX - columns(indent) - "/*  */".len());
    format!("{indent}/* {} */\n", lines.join(&format!("\n{indent} * ")))
}

/// A comment of `SystemVerilog`, with the end of its last line.
pub fn systemverilog(indent: &str, text: &str) -> String {
    let lines = broken(text, COLUMNS_MAX - columns(indent) - "// ".len());
    format!("{indent}// {}\n", lines.join(&format!("\n{indent}// ")))
}

fn columns(indent: &str) -> usize {
    let tabs = indent.matches('\t').count();
    indent.len() + tabs * (TAB_COLUMNS - 1)
}

/// Lines of at most so many characters; a longer word has a line of its own.
fn broken(text: &str, characters_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= characters_max => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_broken_between_words_and_keep_every_word() {
        let text = ["word"; 60].join(" ");
        for indent in ["", "    ", "\t"] {
            for (comment, sign) in [(rust(indent, &text), "///"), (c(indent, &text), "*")] {
                assert!(comment.ends_with('\n') && comment.lines().count() > 1);
                for line in comment.lines() {
                    assert!(columns(indent) + line.trim_start().len() <= COLUMNS_MAX);
                    assert!(line.starts_with(indent) && line.contains(sign));
                }
                assert_eq!(comment.matches("word").count(), 60);
            }
        }
    }

    #[test]
    fn what_fits_stays_on_one_line() {
        assert_eq!(rust("    ", "Short."), "    /// Short.\n");
        assert_eq!(c("\t", "Short."), "\t/* Short. */\n");
        assert_eq!(broken(&"x".repeat(200), 10).len(), 1);
    }
}
