//! C of a `shared.toml`.
use super::{Count, Counter, Enumeration, Of, Shared, Structure};
use crate::comment;
use crate::names::upper;
use std::fmt::Write;

/// The text of the header that is made of the schema `from`; `guard` keeps it from being read twice.
pub fn generate(shared: &Shared, from: &str, guard: &str) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_all(&mut out, shared, from, guard);
    out
}

fn write_all(out: &mut String, shared: &Shared, from: &str, guard: &str) -> std::fmt::Result {
    let (name, prefix) = (&shared.name, upper(&shared.name));
    writeln!(
        out,
        "/* Generated from {from} by `make generate`; do not edit.\n * {} */\n\
         #ifndef {prefix}_{guard}_H\n#define {prefix}_{guard}_H\n\n#include \"{name}_wire.h\"",
        shared.about
    )?;
    for include in &shared.includes {
        writeln!(out, "#include \"{include}\"")?;
    }
    writeln!(out)?;
    for limit in &shared.limits {
        out.push_str(&comment::c("", &limit.doc));
        let value = match limit.rust.as_str() {
            "u64" => format!("{:#x}ULL", limit.value),
            _ if limit.value > 0x7fff_ffff => format!("{:#x}", limit.value),
            _ => limit.value.to_string(),
        };
        writeln!(out, "#define {prefix}_{} {value}", upper(&limit.name))?;
    }
    for one in &shared.enums {
        enumeration(out, name, one)?;
    }
    for (external, known) in &shared.known {
        if known.is_typed_by_hand {
            writeln!(
                out,
                "\n_Static_assert(sizeof(struct {name}_{external}) == {}, \"{name}_{external} has {} bytes\");",
                known.bytes, known.bytes
            )?;
        }
    }
    for one in &shared.structs {
        structure(out, name, one)?;
    }
    if !shared.counters.is_empty() {
        counters(out, name, &shared.counters)?;
    }
    writeln!(out, "\n#endif")
}

fn enumeration(out: &mut String, name: &str, one: &Enumeration) -> std::fmt::Result {
    out.push('\n');
    out.push_str(&comment::c("", &one.doc));
    writeln!(out, "enum {name}_{} {{", one.name)?;
    for value in &one.values {
        out.push_str(&comment::c("\t", &value.doc));
        let (prefix, of, spelled) = (upper(name), upper(&one.name), upper(&value.name));
        writeln!(out, "\t{prefix}_{of}_{spelled} = {},", value.value)?;
    }
    writeln!(out, "}};")
}

fn structure(out: &mut String, name: &str, one: &Structure) -> std::fmt::Result {
    let called = format!("{name}_{}", one.name);
    out.push('\n');
    out.push_str(&comment::c("", &one.doc));
    writeln!(out, "struct {called} {{")?;
    for field in &one.fields {
        out.push_str(&comment::c("\t", &field.doc));
        let of = match &field.of {
            Of::Number(bits) => format!("__u{bits}"),
            Of::Network(bits) => format!("__be{bits}"),
            Of::Structure(of) => format!("struct {name}_{of}"),
        };
        let array = match &field.count {
            None => String::new(),
            Some(Count {
                limit: Some(limit), ..
            }) => format!("[{}_{}]", upper(name), upper(limit)),
            Some(Count { value, limit: None }) => format!("[{value}]"),
        };
        writeln!(out, "\t{of} {}{array};", field.name)?;
    }
    let bytes = one.bytes;
    writeln!(
        out,
        "}};\n_Static_assert(sizeof(struct {called}) == {bytes}, \"{called} has {bytes} bytes\");"
    )?;
    for field in &one.fields {
        let (field, offset) = (&field.name, field.offset);
        writeln!(
            out,
            "_Static_assert(__builtin_offsetof(struct {called}, {field}) == {offset}, \
             \"{field} is at {offset}\");"
        )?;
    }
    Ok(())
}

fn counters(out: &mut String, name: &str, counters: &[Counter]) -> std::fmt::Result {
    let prefix = upper(name);
    writeln!(
        out,
        "\n/* What is counted, behind the reasons. */\nenum {name}_count {{"
    )?;
    let mut first = format!(" = {prefix}_REASON_COUNT");
    for counter in counters {
        out.push_str(&comment::c("\t", &counter.doc));
        writeln!(out, "\t{prefix}_COUNT_{}{first},", upper(&counter.name))?;
        first.clear();
    }
    writeln!(out, "\t{prefix}_COUNT_COUNT,\n}};")
}
