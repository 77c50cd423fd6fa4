//! `SystemVerilog` for the packets of `wire/format.toml`, the registers that a host shares with a plane in
//! gates, and the reasons of `fastpath/checks.toml`: one package.
use crate::checks::Check;
use crate::comment;
use crate::names::upper;
use crate::schema::{Constant, Field, Layout, Schema};
use std::fmt::Write;

/// Words of the language that fields have as names: a `_` stands behind them there.
const KEYWORDS: [&str; 2] = ["instance", "sequence"];

/// The text of `dataplanes/fpga/rtl/generated/qw_pkg.sv`.
pub fn generate(schema: &Schema, checks: &[Check]) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_all(&mut out, schema, checks);
    out
}

fn write_all(out: &mut String, schema: &Schema, checks: &[Check]) -> std::fmt::Result {
    let name = &schema.name;
    writeln!(
        out,
        "// Generated from wire/format.toml and fastpath/checks.toml by `make generate`; do not edit.\n\
         // A structure's first member is first on the wire; element 0 of an array is its last.\n\
         // verilator lint_off UNUSEDPARAM\n\
         package {name}_pkg;\n  \
         localparam logic [15:0] MAGIC = 16'h{:04x};\n  \
         localparam logic [7:0] VERSION = 8'd{};\n  \
         localparam int HEADER_BYTES = {};\n  \
         localparam int TAG_OFFSET = {};\n  \
         localparam int REASON_COUNT = {};",
        schema.magic,
        schema.version,
        schema.header.bytes,
        schema.header.bytes - 8,
        schema.reasons.len(),
    )?;
    for limit in &schema.limits {
        out.push_str(&comment::systemverilog("  ", &limit.doc));
        writeln!(
            out,
            "  localparam int {} = {};",
            upper(&limit.name),
            limit.value
        )?;
    }
    constants(out, "KIND_", 8, &schema.kinds)?;
    constants(out, "FLAG_", 8, &schema.flags)?;
    let every_flag = schema.flags.iter().fold(0, |all, flag| all | flag.value);
    writeln!(
        out,
        "  localparam logic [7:0] FLAGS_KNOWN = 8'd{every_flag};"
    )?;
    constants(out, "ROLE_", 8, &schema.roles)?;
    constants(out, "PAXOS_ROLE_", 8, &schema.paxos_roles)?;
    constants(out, "ACTION_", 32, &schema.actions)?;
    constants(out, "REASON_", 8, &schema.reasons)?;
    out.push_str("\n  // Why a packet that a check refuses is not taken.\n");
    for check in checks {
        if let Some(reason) = &check.reason {
            let (check, reason) = (upper(&check.name), upper(reason));
            writeln!(
                out,
                "  localparam logic [7:0] REASON_OF_{check} = REASON_{reason};"
            )?;
        }
    }
    structure(
        out,
        "header",
        "A header, as it is on the wire.",
        &schema.header,
    )?;
    let about = "What a plane and its host share about one group.";
    structure(out, "registers", about, &schema.registers)?;
    let about = "What a box and its host share about one Paxos role.";
    structure(out, "paxos_registers", about, &schema.paxos_registers)?;
    let about = "What an acceptor knows of one instance.";
    structure(out, "paxos_slot", about, &schema.paxos_slot)?;
    in_memory(out, "header", &schema.header)?;
    in_memory(out, "registers", &schema.registers)?;
    in_memory(out, "paxos_registers", &schema.paxos_registers)?;
    in_memory(out, "paxos_slot", &schema.paxos_slot)?;
    writeln!(out, "endpackage\n// verilator lint_on UNUSEDPARAM")
}

fn constants(out: &mut String, prefix: &str, bits: usize, list: &[Constant]) -> std::fmt::Result {
    out.push('\n');
    for Constant { name, value, doc } in list {
        out.push_str(&comment::systemverilog("  ", doc));
        let highest = bits - 1;
        let name = upper(name);
        writeln!(
            out,
            "  localparam logic [{highest}:0] {prefix}{name} = {bits}'d{value};"
        )?;
    }
    Ok(())
}

fn structure(out: &mut String, of: &str, about: &str, layout: &Layout) -> std::fmt::Result {
    writeln!(
        out,
        "\n  // {about}\n  localparam int {}_BITS = {};",
        upper(of),
        8 * layout.bytes
    )?;
    writeln!(out, "  typedef struct packed {{")?;
    for field in &layout.fields {
        out.push_str(&comment::systemverilog("    ", &field.doc));
        let array = field.count.map(|count| format!("[{}:0]", count - 1));
        let array = array.unwrap_or_default();
        let name = called(field);
        writeln!(out, "    logic {array}[{}:0] {name};", field.bits - 1)?;
    }
    writeln!(out, "  }} {of}_t;")
}

/// Between a structure and the words of 64 bits that a host has in its memory, lowest byte first.
fn in_memory(out: &mut String, of: &str, layout: &Layout) -> std::fmt::Result {
    let last = layout.bytes / 8 - 1;
    let (words, vector) = (format!("[{last}:0][63:0]"), format!("{of}_t"));
    for (name, from, to, about) in [
        (
            format!("{of}_of_memory"),
            &words,
            &vector,
            "as a host's memory has it.",
        ),
        (
            format!("memory_of_{of}"),
            &vector,
            &words,
            "as a host's memory has it, the first word in element 0.",
        ),
    ] {
        let is_to_memory = name.starts_with("memory");
        let kind = |of: &String| {
            if of.starts_with('[') {
                format!("logic {of}")
            } else {
                of.clone()
            }
        };
        writeln!(
            out,
            "\n  // A {of} {about}\n  function automatic {} {name}(input {} from);",
            kind(to),
            kind(from)
        )?;
        for (field, offset, bits) in elements(layout) {
            let word = format!("[{}][{}+:{bits}]", offset / 8, 8 * (offset % 8));
            if is_to_memory {
                writeln!(out, "    {name}{word} = from.{field};")?;
            } else {
                writeln!(out, "    {name}.{field} = from{word};")?;
            }
        }
        writeln!(out, "  endfunction")?;
    }
    Ok(())
}

/// Each field, and each element of an array: its name, where it stands in memory, and its bits.
fn elements(layout: &Layout) -> Vec<(String, usize, usize)> {
    let of_field = |field: &Field| -> Vec<_> {
        let name = called(field);
        let (offset, bits) = (field.offset, field.bits);
        match field.count {
            None => vec![(name, offset, bits)],
            Some(count) => (0..count)
                .map(|at| (format!("{name}[{at}]"), offset + at * bits / 8, bits))
                .collect(),
        }
    };
    layout.fields.iter().flat_map(of_field).collect()
}

/// Its name in this language.
fn called(field: &Field) -> String {
    let end = if KEYWORDS.contains(&field.name.as_str()) {
        "_"
    } else {
        ""
    };
    format!("{}{end}", field.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{checks, schema};

    const CHECKS: &str = include_str!("../../../fastpath/checks.toml");
    const FORMAT: &str = include_str!("../../../wire/format.toml");

    /// Some lines of it, typed by hand.
    #[test]
    fn the_package_says_what_the_schemas_say() {
        let schema = schema::parse(FORMAT).unwrap();
        let checks = checks::parse(CHECKS, &schema).unwrap();
        let text = generate(&schema, &checks);
        for line in [
            "\npackage qw_pkg;\n",
            "  localparam logic [15:0] MAGIC = 16'h5157;\n",
            "  localparam int PAYLOAD_BYTES_MAX = 1376;\n",
            "  localparam logic [7:0] KIND_APPEND_OK = 8'd3;\n",
            "  localparam logic [31:0] ACTION_TO_SOFTWARE = 32'd16;\n",
            "  localparam logic [7:0] REASON_OF_TERM_OLD = REASON_TERM_OLD;\n",
            "  localparam int HEADER_BITS = 576;\n  typedef struct packed {\n",
            "    logic [6:0][63:0] match_index;\n",
            "    logic [63:0] sequence_;\n",
            "  } registers_t;\n",
            "    header_of_memory.kind = from[0][24+:8];\n",
            "    memory_of_registers[8][0+:64] = from.match_index[0];\n",
        ] {
            assert!(text.contains(line), "{line:?} is not in {text}");
        }
        let wide = text
            .lines()
            .filter(|line| line.len() > 100 && !line.contains("//"));
        assert_eq!(wide.count(), 0);
    }
}
