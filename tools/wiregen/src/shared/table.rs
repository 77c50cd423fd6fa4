//! A `shared.toml` as a page for people: its numbers, and a table of each structure.
use super::{Of, Shared, Structure};
use std::fmt::Write;

/// The text of the page that is made of the schema `from`.
pub fn generate(shared: &Shared, from: &str, title: &str) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_all(&mut out, shared, from, title);
    out
}

fn write_all(out: &mut String, shared: &Shared, from: &str, title: &str) -> std::fmt::Result {
    writeln!(
        out,
        "# {title}\n\nGenerated from `{from}` by `make generate`; do not edit.\n\n{}",
        shared.about
    )?;
    for one in &shared.structs {
        structure(out, shared, one)?;
    }
    writeln!(out, "\n## Numbers\n\n| name | value | |\n|---|---|---|")?;
    for one in &shared.limits {
        writeln!(out, "| `{}` | {} | {} |", one.name, one.value, one.doc)?;
    }
    for one in &shared.enums {
        writeln!(
            out,
            "\n## {}\n\n{}\n\n| name | number | |\n|---|---|---|",
            one.name, one.doc
        )?;
        for value in &one.values {
            writeln!(
                out,
                "| `{}` | {} | {} |",
                value.name, value.value, value.doc
            )?;
        }
    }
    Ok(())
}

fn structure(out: &mut String, shared: &Shared, one: &Structure) -> std::fmt::Result {
    writeln!(
        out,
        "\n## {}\n\n{}\n\n| at | name | bytes | |\n|---|---|---|---|",
        one.name, one.doc
    )?;
    for field in &one.fields {
        let each = match &field.of {
            Of::Number(bits) | Of::Network(bits) => bits / 8,
            Of::Structure(name) => shared.known.get(name).map_or(0, |known| known.bytes),
        };
        let bytes = match &field.count {
            None => each.to_string(),
            Some(count) => format!("{} × {each}", count.value),
        };
        writeln!(
            out,
            "| `{:#05x}` | `{}` | {bytes} | {} |",
            field.offset, field.name, field.doc
        )?;
    }
    Ok(())
}
