//! `SystemVerilog` of a `shared.toml`: numbers, and where the fields of structures stand. One package.
use super::{Enumeration, Shared, Structure};
use crate::comment;
use crate::names::upper;
use std::fmt::Write;

/// The text of the package that is made of the schema `from`.
pub fn generate(shared: &Shared, from: &str, package: &str) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_all(&mut out, shared, from, package);
    out
}

fn write_all(out: &mut String, shared: &Shared, from: &str, package: &str) -> std::fmt::Result {
    writeln!(
        out,
        "// Generated from {from} by `make generate`; do not edit.\n// {}\n\
         // verilator lint_off UNUSEDPARAM\npackage {package};",
        shared.about
    )?;
    for limit in &shared.limits {
        out.push_str(&comment::systemverilog("  ", &limit.doc));
        writeln!(
            out,
            "  localparam int {} = {};",
            upper(&limit.name),
            limit.value
        )?;
    }
    for one in &shared.enums {
        enumeration(out, one)?;
    }
    for one in &shared.structs {
        structure(out, one)?;
    }
    writeln!(out, "endpackage\n// verilator lint_on UNUSEDPARAM")
}

fn enumeration(out: &mut String, one: &Enumeration) -> std::fmt::Result {
    out.push('\n');
    for value in &one.values {
        out.push_str(&comment::systemverilog(
            "  ",
            &format!("{} {}", one.doc, value.doc),
        ));
        let (bits, number) = (one.bits, value.value);
        writeln!(
            out,
            "  localparam logic [{}:0] {}_{} = {bits}'d{number};",
            bits - 1,
            upper(&one.name),
            upper(&value.name)
        )?;
    }
    Ok(())
}

/// Where the fields stand.
fn structure(out: &mut String, one: &Structure) -> std::fmt::Result {
    let prefix = upper(&one.name);
    out.push('\n');
    out.push_str(&comment::systemverilog("  ", &one.doc));
    writeln!(out, "  localparam int {prefix}_BYTES = {};", one.bytes)?;
    for field in &one.fields {
        out.push_str(&comment::systemverilog("  ", &field.doc));
        writeln!(
            out,
            "  localparam int {prefix}_{}_AT = {};",
            upper(&field.name),
            field.offset
        )?;
    }
    Ok(())
}
