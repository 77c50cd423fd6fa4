//! Commands drawn by chance.

use anyhow::Result;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::resp::split;

const TEMPLATES: &str = include_str!("random.txt");
/// Of so many keys and numbers, one is of another type.
const ODD: u32 = 30;
const KINDS: &str = "snlhezxpgb";

/// What draws them.
pub struct Commands {
    random: ChaCha8Rng,
    templates: Vec<&'static str>,
    /// Of the last entry that was added to a stream.
    last_id: u64,
}

impl Commands {
    pub fn new(random: ChaCha8Rng) -> Self {
        let lines = TEMPLATES.lines();
        let templates = lines.filter(|it| !it.starts_with('#')).collect();
        Self {
            random,
            templates,
            last_id: 0,
        }
    }

    /// So many, or one fewer than `most` at most.
    pub fn number_below(&mut self, most: usize) -> usize {
        self.random.random_range(0..most)
    }

    /// The next command.
    pub fn next(&mut self) -> Result<Vec<Vec<u8>>> {
        let number = self.number_below(self.templates.len());
        let mut rest = self.templates[number];
        let mut line = String::new();
        while let Some((before, behind)) = rest.split_once('{') {
            line.push_str(before);
            let drawn = behind.split_once('}').filter(|(name, _)| is_drawn(name));
            rest = drawn.map_or(behind, |(_, behind)| behind);
            match drawn {
                Some((name, _)) => line.push_str(&self.draw(name)),
                None => line.push('{'),
            }
        }
        split(&(line + rest))
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.number_below(words.len())]
    }

    fn draw(&mut self, name: &str) -> String {
        match name {
            "v" => self.one_of(&[
                "a",
                "b",
                "word",
                "another-word",
                "7",
                "\"\"",
                "\"\\x00\\r\\n\\xff\"",
            ]),
            "d" if self.random.random_ratio(1, ODD) => "9223372036854775807",
            "i" | "d" if self.random.random_ratio(1, ODD) => "x",
            "i" => self.one_of(&["-3", "-1", "0", "1", "2", "3", "6"]),
            "d" => self.one_of(&["-1000", "5", "40", "1234567"]),
            "f" => self.one_of(&["0.5", "-1.25", "3", "1e3", "inf", "0.1", "nan"]),
            "m" => self.one_of(&["a", "b", "c", "d", "e", "f", "g", "h"]),
            "r" => self.one_of(&["-inf", "+inf", "(1", "0", "2", "(-1", "x"]),
            "y" => self.one_of(&["-", "+", "[b", "(c", "[f", "b"]),
            "o" => self.one_of(&[
                "13.361389 38.115556",
                "15.087269 37.502669",
                "-74 40.7",
                "0 0",
                "139.7 35.6",
                "200 0",
            ]),
            "at" => self.one_of(&["4102444800", "4102444801", "4102444900"]),
            "w" => return self.new_id(),
            "u" => return self.random.random_range(0..=self.last_id).to_string(),
            kind => return self.key(kind),
        }
        .to_owned()
    }

    /// Mostly one behind all others.
    fn new_id(&mut self) -> String {
        if self.random.random_ratio(1, ODD) {
            return "0-0".into();
        }
        self.last_id += 1;
        format!("{}-{}", self.last_id, self.random.random_range(0..3))
    }

    fn key(&mut self, kind: &str) -> String {
        let odd = self.random.random_ratio(1, ODD);
        let number = self.number_below(KINDS.len());
        let kind = if odd { &KINDS[number..=number] } else { kind };
        format!("{kind}{}", self.random.random_range(0..3))
    }
}

/// Whether it stands for something: a script may have what looks so.
fn is_drawn(name: &str) -> bool {
    let is_kind = name.len() == 1 && KINDS.contains(name);
    is_kind || ["v", "i", "d", "f", "m", "r", "y", "w", "u", "o", "at"].contains(&name)
}
