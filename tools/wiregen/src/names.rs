//! Spellings of a schema's `snake_case` names in the generated languages.

/// `append_ok` as `APPEND_OK`.
pub fn upper(name: &str) -> String {
    name.to_ascii_uppercase()
}

/// `append_ok` as `AppendOk`.
pub fn camel(name: &str) -> String {
    name.split('_')
        .map(|word| {
            let (first, rest) = word.split_at(word.len().min(1));
            first.to_ascii_uppercase() + rest
        })
        .collect()
}
