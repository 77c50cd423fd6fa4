//! The dissector for Wireshark, in Lua: what the schemas say as tables, and behind them `dissector.lua`,
//! which says what the packets mean.
use crate::schema::{Constant, Schema};
use quorumwire_interfaces::{Executed, Reason};
use std::fmt::Write;

/// What is written by hand.
const MEANING: &str = include_str!("dissector.lua");

/// The text of `wire/generated/quorumwire.lua`; `peer_messages` are those of `wire/peer.proto`, by their
/// numbers.
pub fn generate(schema: &Schema, peer_messages: &[(i32, String)]) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_all(&mut out, schema, peer_messages);
    out
}

fn write_all(
    out: &mut String,
    schema: &Schema,
    peer_messages: &[(i32, String)],
) -> std::fmt::Result {
    writeln!(
        out,
        "-- Generated from wire/format.toml by `make generate`; do not edit.\n\
         -- Shows the packets of data planes and Paxos roles, and the frames over TCP, in Wireshark and tshark:\n\
         -- wire/README.md says how to load it. It has no keys, so it checks no tag.\n\n\
         local MAGIC, VERSION, HEADER_BYTES = {:#06x}, {}, {}\n",
        schema.magic, schema.version, schema.header.bytes
    )?;
    out.push_str("local LIMIT = {\n");
    for limit in &schema.limits {
        writeln!(out, "\t{} = {},", limit.name, limit.value)?;
    }
    out.push_str("}\nlocal HEADER = {\n");
    for field in &schema.header.fields {
        let (name, offset, bytes) = (&field.name, field.offset, field.bits / 8);
        let doc = quoted(&field.doc);
        writeln!(
            out,
            "\t{{ name = \"{name}\", offset = {offset}, bytes = {bytes}, doc = {doc} }},"
        )?;
    }
    out.push_str("}\n");
    constants(out, "KINDS", &schema.kinds)?;
    constants(out, "FLAGS", &schema.flags)?;
    out.push_str("-- Why there is no answer (interfaces/src/reason.rs).\nlocal REFUSALS = {\n");
    for reason in Reason::ALL {
        let executed = match reason.executed() {
            Executed::No => "no",
            Executed::Yes => "yes",
            Executed::Unknown => "unknown",
        };
        let code = reason.code();
        writeln!(
            out,
            "\t[\"{code}\"] = {{ name = \"{reason:?}\", executed = \"{executed}\" }},"
        )?;
    }
    out.push_str(
        "}\n-- What replicas say to each other over TCP (wire/peer.proto).\nlocal PEER_MESSAGES = {\n",
    );
    for (number, name) in peer_messages {
        writeln!(out, "\t[\"{number}\"] = \"{name}\",")?;
    }
    writeln!(out, "}}\n\n{}", MEANING.trim_end())
}

fn constants(out: &mut String, table: &str, list: &[Constant]) -> std::fmt::Result {
    writeln!(out, "local {table} = {{")?;
    for Constant { name, value, doc } in list {
        let doc = quoted(doc);
        writeln!(
            out,
            "\t{{ name = \"{name}\", value = {value}, doc = {doc} }},"
        )?;
    }
    writeln!(out, "}}")
}

/// A text of one line as Lua writes it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_text_in_lua_is_escaped() {
        assert_eq!(quoted(r#"a "b" \ `c`."#), r#""a \"b\" \\ `c`.""#);
    }
}
