//! The bytes of `wire/vectors/`, which are seeds, too.

/// Each vector's name and bytes.
fn vectors(text: &'static str) -> Vec<(&'static str, Vec<u8>)> {
    let mut vectors: Vec<(&'static str, Vec<u8>)> = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(name) = line.strip_prefix('[') {
            vectors.push((name.trim_end_matches(']'), Vec::new()));
            continue;
        }
        for byte in line.split_whitespace() {
            let (_, bytes) = vectors.last_mut().expect("a name comes first");
            bytes.push(u8::from_str_radix(byte, 16).expect("hexadecimal"));
        }
    }
    vectors
}

/// Those of these names.
///
/// # Panics
///
/// If there is none of a name.
#[must_use]
pub fn named(text: &'static str, names: &[&str]) -> Vec<(&'static str, Vec<u8>)> {
    let all = vectors(text);
    let of = |name: &&str| {
        let found = all.iter().find(|(it, _)| it == name);
        found.unwrap_or_else(|| panic!("no vector {name}")).clone()
    };
    names.iter().map(of).collect()
}
