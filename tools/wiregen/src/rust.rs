//! Rust for the packets of `wire/format.toml`: constants, enums, the header with its coding, and the
//! registers in the layout that C gives them.
use crate::comment;
use crate::names::{camel, upper};
use crate::schema::{Constant, Field, Layout, Schema};
use std::fmt::Write;

/// The text of `wire/src/generated/packet.rs`.
pub fn generate(schema: &Schema) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_all(&mut out, schema);
    out
}

fn write_all(out: &mut String, schema: &Schema) -> std::fmt::Result {
    writeln!(
        out,
        "// Generated from wire/format.toml by `make generate`; do not edit.\n\n\
         /// First two bytes of every packet.\npub const MAGIC: u16 = {:#06x};\n\
         /// Format version.\npub const VERSION: u8 = {};\n\
         /// Bytes of a header on the wire.\npub const HEADER_BYTES: usize = {};\n\
         /// Bytes before the header's tag.\npub const TAG_OFFSET: usize = {};",
        schema.magic,
        schema.version,
        schema.header.bytes,
        schema.header.bytes - 8
    )?;
    for limit in &schema.limits {
        out.push_str(&comment::rust("", &limit.doc));
        writeln!(
            out,
            "pub const {}: usize = {};",
            upper(&limit.name),
            limit.value
        )?;
    }
    for flag in &schema.flags {
        out.push_str(&comment::rust("", &format!("Flag. {}", flag.doc)));
        writeln!(
            out,
            "pub const FLAG_{}: u8 = {:#x};",
            upper(&flag.name),
            flag.value
        )?;
    }
    let every_flag = schema.flags.iter().fold(0, |all, flag| all | flag.value);
    writeln!(
        out,
        "/// All flags.\npub const FLAGS_KNOWN: u8 = {every_flag:#x};"
    )?;
    for action in &schema.actions {
        out.push_str(&comment::rust("", &format!("Action. {}", action.doc)));
        writeln!(
            out,
            "pub const ACTION_{}: u32 = {:#x};",
            upper(&action.name),
            action.value
        )?;
    }
    enumeration(out, "Kind", "What a packet says.", &schema.kinds)?;
    enumeration(
        out,
        "Role",
        "What a plane does in its group.",
        &schema.roles,
    )?;
    let about = "What a box does in a Paxos deployment.";
    enumeration(out, "PaxosRole", about, &schema.paxos_roles)?;
    let about = "Why a packet was not taken.";
    enumeration(out, "PacketReason", about, &schema.reasons)?;
    structure(
        out,
        "Header",
        "One header, in the byte order of the machine.",
        &schema.header,
    )?;
    let about = "What a plane and its host share about one group.";
    structure(out, "Registers", about, &schema.registers)?;
    let about = "What a box and its host share about one Paxos role.";
    structure(out, "PaxosRegisters", about, &schema.paxos_registers)?;
    let about = "What an acceptor knows of one instance.";
    structure(out, "PaxosSlot", about, &schema.paxos_slot)?;
    coding(out, schema)
}

fn enumeration(out: &mut String, name: &str, about: &str, list: &[Constant]) -> std::fmt::Result {
    writeln!(
        out,
        "\n/// {about}\n#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]\n\
         #[repr(u8)]\npub enum {name} {{"
    )?;
    for constant in list {
        out.push_str(&comment::rust("    ", &constant.doc));
        writeln!(out, "    {} = {},", camel(&constant.name), constant.value)?;
    }
    let count = list.len();
    writeln!(
        out,
        "}}\n\nimpl {name} {{\n    /// All of them, ascending.\n    \
         pub const ALL: [Self; {count}] = ["
    )?;
    for constant in list {
        writeln!(out, "        Self::{},", camel(&constant.name))?;
    }
    writeln!(
        out,
        "    ];\n\n    /// The one with this number; `None` if there is none.\n    #[must_use]\n    \
         pub const fn from_byte(byte: u8) -> Option<Self> {{\n        match byte {{"
    )?;
    for constant in list {
        let spelled = camel(&constant.name);
        writeln!(
            out,
            "            {} => Some(Self::{spelled}),",
            constant.value
        )?;
    }
    writeln!(
        out,
        "            _ => None,\n        }}\n    }}\n\n    /// Its name in the schema.\n    \
         #[must_use]\n    pub const fn name(self) -> &'static str {{\n        match self {{"
    )?;
    for constant in list {
        let spelled = camel(&constant.name);
        writeln!(out, "            Self::{spelled} => \"{}\",", constant.name)?;
    }
    writeln!(out, "        }}\n    }}\n}}")
}

fn structure(out: &mut String, name: &str, about: &str, layout: &Layout) -> std::fmt::Result {
    writeln!(
        out,
        "\n/// {about}\n#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]\n\
         #[repr(C)]\npub struct {name} {{"
    )?;
    for Field {
        name,
        bits,
        count,
        doc,
        ..
    } in &layout.fields
    {
        out.push_str(&comment::rust("    ", doc));
        match count {
            Some(count) => writeln!(out, "    pub {name}: [u{bits}; {count}],")?,
            None => writeln!(out, "    pub {name}: u{bits},")?,
        }
    }
    writeln!(out, "}}\nconst _: () = {{")?;
    writeln!(out, "    assert!(size_of::<{name}>() == {});", layout.bytes)?;
    for Field {
        name: field,
        offset,
        ..
    } in &layout.fields
    {
        writeln!(
            out,
            "    assert!(std::mem::offset_of!({name}, {field}) == {offset});"
        )?;
    }
    writeln!(out, "}};")
}

fn coding(out: &mut String, schema: &Schema) -> std::fmt::Result {
    writeln!(
        out,
        "\nimpl Header {{\n    /// Reads all fields; checks none.\n    #[must_use]\n    \
         pub const fn decode(bytes: &[u8; HEADER_BYTES]) -> Self {{\n        Self {{"
    )?;
    for Field {
        name, bits, offset, ..
    } in &schema.header.fields
    {
        let parts: Vec<String> = (*offset..offset + bits / 8)
            .map(|at| format!("bytes[{at}]"))
            .collect();
        writeln!(
            out,
            "            {name}: u{bits}::from_be_bytes([{}]),",
            parts.join(", ")
        )?;
    }
    writeln!(
        out,
        "        }}\n    }}\n\n    /// Writes all fields, big-endian.\n    #[must_use]\n    \
         pub fn encode(&self) -> [u8; HEADER_BYTES] {{\n        \
         let mut bytes = [0; HEADER_BYTES];"
    )?;
    for Field {
        name, bits, offset, ..
    } in &schema.header.fields
    {
        let end = offset + bits / 8;
        writeln!(
            out,
            "        bytes[{offset}..{end}].copy_from_slice(&self.{name}.to_be_bytes());"
        )?;
    }
    writeln!(out, "        bytes\n    }}\n}}")
}
