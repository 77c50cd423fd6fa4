//! Rust of a `shared.toml`.
use super::{Count, Counter, Enumeration, Field, InRust, Of, Shared, Structure};
use crate::comment;
use crate::names::{camel, upper};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Longest array that Rust can make a default of.
const DEFAULT_COUNT_MAX: usize = 32;

/// The text of the module that is made of the schema `from`.
pub fn generate(shared: &Shared, from: &str) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_all(&mut out, shared, from);
    out
}

fn write_all(out: &mut String, shared: &Shared, from: &str) -> std::fmt::Result {
    writeln!(
        out,
        "// Generated from {from} by `make generate`; do not edit."
    )?;
    for path in used(shared) {
        writeln!(out, "use {path};")?;
    }
    writeln!(out)?;
    for limit in &shared.limits {
        out.push_str(&comment::rust("", &limit.doc));
        let (name, kind) = (upper(&limit.name), &limit.rust);
        match kind.as_str() {
            "u64" => writeln!(out, "pub const {name}: u64 = {:#x};", limit.value)?,
            _ => writeln!(out, "pub const {name}: {kind} = {};", limit.value)?,
        }
    }
    for one in &shared.enums {
        if one.typed {
            typed(out, one)?;
        } else {
            constants(out, one)?;
        }
    }
    for (name, known) in &shared.known {
        if known.is_typed_by_hand {
            writeln!(
                out,
                "\nconst _: () = assert!(size_of::<{}>() == {});",
                camel(name),
                known.bytes
            )?;
        }
    }
    for one in &shared.structs {
        structure(out, shared, one)?;
    }
    if !shared.counters.is_empty() {
        counters(out, &shared.counters)?;
    }
    Ok(())
}

/// Paths of the structures from elsewhere that structures here hold.
fn used(shared: &Shared) -> BTreeSet<&str> {
    let fields = shared.structs.iter().flat_map(in_rust);
    let nested = fields.filter_map(|field| match &field.of {
        Of::Structure(name) => shared.known.get(name)?.rust.as_deref(),
        Of::Number(_) | Of::Network(_) => None,
    });
    let mut used: BTreeSet<&str> = nested.collect();
    if !shared.counters.is_empty() {
        used.insert("quorumwire_interfaces::Counter");
    }
    used
}

/// The fields that Rust gets.
fn in_rust(one: &Structure) -> &[Field] {
    let end = match &one.rust {
        InRust::Whole => one.fields.len(),
        InRust::Places => 0,
        InRust::Before(first) => {
            let found = one.fields.iter().position(|field| field.name == *first);
            found.unwrap_or(one.fields.len())
        }
    };
    &one.fields[..end]
}

fn typed(out: &mut String, one: &Enumeration) -> std::fmt::Result {
    let name = camel(&one.name);
    out.push('\n');
    out.push_str(&comment::rust("", &one.doc));
    writeln!(
        out,
        "#[derive(Clone, Copy, Debug, Eq, PartialEq)]\n#[repr(u{})]\npub enum {name} {{",
        one.bits
    )?;
    for value in &one.values {
        out.push_str(&comment::rust("    ", &value.doc));
        writeln!(out, "    {} = {},", camel(&value.name), value.value)?;
    }
    writeln!(out, "}}")
}

fn constants(out: &mut String, one: &Enumeration) -> std::fmt::Result {
    for value in &one.values {
        out.push_str(&comment::rust("", &format!("{} {}", one.doc, value.doc)));
        let (of, name) = (upper(&one.name), upper(&value.name));
        writeln!(
            out,
            "pub const {of}_{name}: u{} = {};",
            one.bits, value.value
        )?;
    }
    Ok(())
}

fn structure(out: &mut String, shared: &Shared, one: &Structure) -> std::fmt::Result {
    let fields = in_rust(one);
    let spelled = camel(&one.name);
    let name = match &one.rust {
        InRust::Before(_) => format!("{spelled}Head"),
        InRust::Whole | InRust::Places => spelled,
    };
    out.push('\n');
    if !fields.is_empty() {
        let about = match &one.rust {
            InRust::Before(field) => format!("{} Up to `{field}`.", one.doc),
            InRust::Whole | InRust::Places => one.doc.clone(),
        };
        out.push_str(&comment::rust("", &about));
        writeln!(
            out,
            "#[derive({})]\n#[repr(C)]\npub struct {name} {{",
            derives(one, fields)
        )?;
        for field in fields {
            out.push_str(&comment::rust("    ", &field.doc));
            writeln!(out, "    pub {}: {},", field.name, of_rust(field))?;
        }
        let after = one.fields.get(fields.len());
        let bytes = after.map_or(one.bytes, |field| field.offset);
        writeln!(
            out,
            "}}\nconst _: () = {{\n    assert!(size_of::<{name}>() == {bytes});"
        )?;
        for field in fields {
            writeln!(
                out,
                "    assert!(std::mem::offset_of!({name}, {}) == {});",
                field.name, field.offset
            )?;
        }
        writeln!(out, "}};")?;
    }
    places(out, shared, one)
}

fn derives(one: &Structure, fields: &[Field]) -> String {
    let mut traits = vec!["Clone", "Copy"];
    if !one.secret {
        traits.push("Debug");
    }
    let long = |field: &Field| {
        let count = field.count.as_ref();
        count.is_some_and(|count| count.value > DEFAULT_COUNT_MAX)
    };
    if !fields.iter().any(long) {
        traits.push("Default");
    }
    if !one.secret {
        traits.extend(["Eq", "Hash", "PartialEq"]);
    }
    traits.join(", ")
}

fn of_rust(field: &Field) -> String {
    let of = match &field.of {
        Of::Number(bits) => format!("u{bits}"),
        Of::Network(bits) => format!("[u8; {}]", bits / 8),
        Of::Structure(name) => camel(name),
    };
    match &field.count {
        None => of,
        Some(Count { value, .. }) => format!("[{of}; {value}]"),
    }
}

/// Where the fields stand, for who reads them one by one.
fn places(out: &mut String, shared: &Shared, one: &Structure) -> std::fmt::Result {
    let prefix = upper(&one.name);
    let named: BTreeSet<_> = shared.limits.iter().map(|limit| &limit.name).collect();
    let bytes = format!("{}_bytes", one.name);
    if !named.contains(&bytes) {
        writeln!(
            out,
            "/// Bytes of `{}`.\npub const {prefix}_BYTES: usize = {};",
            one.name, one.bytes
        )?;
    }
    for field in &one.fields {
        writeln!(
            out,
            "/// Where `{}` stands in `{}`.\npub const {prefix}_{}_AT: usize = {};",
            field.name,
            one.name,
            upper(&field.name),
            field.offset
        )?;
    }
    Ok(())
}

fn counters(out: &mut String, counters: &[Counter]) -> std::fmt::Result {
    writeln!(
        out,
        "\n/// What is counted, behind the reasons: names, in the order of their numbers.\n\
         pub const COUNTS: [&str; {}] = [",
        counters.len()
    )?;
    for counter in counters {
        writeln!(out, "    COUNT_{},", upper(&counter.name))?;
    }
    let of_interface: Vec<_> = counters.iter().filter(|one| one.interface).collect();
    writeln!(
        out,
        "];\n/// Those that the interface counts, too, or alone.\npub const COUNTS_OF_INTERFACE: [&str; {}] = [",
        of_interface.len()
    )?;
    for counter in of_interface {
        writeln!(out, "    COUNT_{},", upper(&counter.name))?;
    }
    writeln!(out, "];")?;
    let own = counters.iter().filter(|one| !one.engine);
    writeln!(
        out,
        "/// Those that the engine does not count, too, for people.\n\
         pub const COUNTERS_OF_PROGRAMS: &[Counter] = &["
    )?;
    for counter in own {
        let (name, help) = (upper(&counter.name), counter.doc.trim_end_matches('.'));
        writeln!(
            out,
            "    Counter {{\n        name: COUNT_{name},\n        help: {help:?},\n    }},"
        )?;
    }
    writeln!(out, "];")?;
    for counter in counters {
        out.push_str(&comment::rust("", &counter.doc));
        writeln!(
            out,
            "pub const COUNT_{}: &str = \"{}\";",
            upper(&counter.name),
            counter.name
        )?;
    }
    Ok(())
}
