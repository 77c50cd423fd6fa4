//! C for the packets of `wire/format.toml`: constants, the header's and the registers' structures, and
//! the header's coding. Freestanding, and without loops, so that the BPF verifier takes it.
use crate::comment;
use crate::names::upper;
use crate::schema::{Constant, Field, Layout, Schema};
use std::fmt::Write;

/// The text of `wire/generated/qw_wire.h`.
pub fn generate(schema: &Schema) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_all(&mut out, schema);
    out
}

fn write_all(out: &mut String, schema: &Schema) -> std::fmt::Result {
    let prefix = upper(&schema.name);
    writeln!(
        out,
        "/* Generated from wire/format.toml by `make generate`; do not edit.\n \
         * The packets of the fast path and the registers that a plane shares with its host. */\n\
         #ifndef {prefix}_WIRE_H\n#define {prefix}_WIRE_H\n\n\
         #include <linux/types.h>\n\n\
         #define {prefix}_MAGIC {:#06x}\n#define {prefix}_VERSION {}\n\
         #define {prefix}_HEADER_BYTES {}\n#define {prefix}_TAG_OFFSET {}\n\
         #define {prefix}_REASON_COUNT {}",
        schema.magic,
        schema.version,
        schema.header.bytes,
        schema.header.bytes - 8,
        schema.reasons.len(),
    )?;
    for limit in &schema.limits {
        let name = upper(&limit.name);
        out.push_str(&comment::c("", &limit.doc));
        writeln!(out, "#define {prefix}_{name} {}", limit.value)?;
    }
    let name = &schema.name;
    constants(out, name, "kind", "KIND_", &schema.kinds)?;
    constants(out, name, "flag", "FLAG_", &schema.flags)?;
    constants(out, name, "role", "ROLE_", &schema.roles)?;
    constants(out, name, "paxos_role", "PAXOS_ROLE_", &schema.paxos_roles)?;
    constants(out, name, "action", "", &schema.actions)?;
    constants(out, name, "reason", "REASON_", &schema.reasons)?;
    let every_flag = schema.flags.iter().fold(0, |all, flag| all | flag.value);
    writeln!(out, "\n#define {prefix}_FLAGS_KNOWN {every_flag:#x}")?;
    structure(
        out,
        name,
        "header",
        "One header, in the byte order of the machine.",
        &schema.header,
    )?;
    let about = "What a plane and its host share about one group.";
    structure(out, name, "registers", about, &schema.registers)?;
    let about = "What a box and its host share about one Paxos role.";
    structure(out, name, "paxos_registers", about, &schema.paxos_registers)?;
    let about = "What an acceptor knows of one instance.";
    structure(out, name, "paxos_slot", about, &schema.paxos_slot)?;
    coding(out, schema)?;
    writeln!(out, "\n#endif")
}

fn constants(
    out: &mut String,
    name: &str,
    of: &str,
    infix: &str,
    list: &[Constant],
) -> std::fmt::Result {
    writeln!(out, "\nenum {name}_{of} {{")?;
    for constant in list {
        let (prefix, spelled) = (upper(name), upper(&constant.name));
        out.push_str(&comment::c("\t", &constant.doc));
        writeln!(out, "\t{prefix}_{infix}{spelled} = {},", constant.value)?;
    }
    writeln!(out, "}};")
}

fn structure(
    out: &mut String,
    name: &str,
    of: &str,
    about: &str,
    layout: &Layout,
) -> std::fmt::Result {
    writeln!(out, "\n/* {about} */\nstruct {name}_{of} {{")?;
    for field in &layout.fields {
        let count = field.count.map(|count| format!("[{count}]"));
        let array = count.unwrap_or_default();
        out.push_str(&comment::c("\t", &field.doc));
        writeln!(out, "\t__u{} {}{array};", field.bits, field.name)?;
    }
    writeln!(out, "}};")?;
    let size = layout.bytes;
    writeln!(
        out,
        "_Static_assert(sizeof(struct {name}_{of}) == {size}, \"{name}_{of} has {size} bytes\");"
    )?;
    for Field {
        name: field,
        offset,
        ..
    } in &layout.fields
    {
        writeln!(
            out,
            "_Static_assert(__builtin_offsetof(struct {name}_{of}, {field}) == {offset}, \
             \"{field} is at {offset}\");"
        )?;
    }
    Ok(())
}

fn coding(out: &mut String, schema: &Schema) -> std::fmt::Result {
    let name = &schema.name;
    for bits in [8, 16, 32, 64] {
        load(out, name, bits)?;
        store(out, name, bits)?;
    }
    let size = format!("{}_HEADER_BYTES", upper(name));
    writeln!(
        out,
        "\n/* Reads all fields; checks none. */\n\
         static inline __attribute__((always_inline)) void\n\
         {name}_header_decode(struct {name}_header *header, const __u8 bytes[{size}])\n{{"
    )?;
    for Field {
        name: field,
        bits,
        offset,
        ..
    } in &schema.header.fields
    {
        writeln!(
            out,
            "\theader->{field} = {name}_load_u{bits}(bytes + {offset});"
        )?;
    }
    writeln!(
        out,
        "}}\n\n/* Writes all fields, big-endian. */\n\
         static inline __attribute__((always_inline)) void\n\
         {name}_header_encode(const struct {name}_header *header, __u8 bytes[{size}])\n{{"
    )?;
    for Field {
        name: field,
        bits,
        offset,
        ..
    } in &schema.header.fields
    {
        writeln!(
            out,
            "\t{name}_store_u{bits}(bytes + {offset}, header->{field});"
        )?;
    }
    writeln!(out, "}}")
}

/// What stands in the place of bytes one by one in a program for the kernel: compilers do not put those
/// together there, and its verifier knows where a number need not be aligned.
const IN_KERNEL: &str = "#if defined(__bpf__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__";

/// A function that reads one big-endian number; bytes are put together one by one, since a packet's
/// bytes need not be aligned.
fn load(out: &mut String, name: &str, bits: usize) -> std::fmt::Result {
    let bytes = bits / 8;
    let parts: Vec<String> = (0..bytes)
        .map(|at| match 8 * (bytes - 1 - at) {
            0 => format!("(__u{bits})bytes[{at}]"),
            shift => format!("(__u{bits})bytes[{at}] << {shift}"),
        })
        .collect();
    let at_once = match bits {
        8 => String::new(),
        _ => format!(
            "{IN_KERNEL}\n\treturn __builtin_bswap{bits}(*(const __u{bits} *)bytes);\n#else\n"
        ),
    };
    let end = if bits == 8 { "" } else { "#endif\n" };
    writeln!(
        out,
        "\nstatic inline __attribute__((always_inline)) __u{bits}\n\
         {name}_load_u{bits}(const __u8 *bytes)\n{{\n{at_once}\treturn (__u{bits})({});\n{end}}}",
        parts.join(" |\n\t\t       ")
    )
}

fn store(out: &mut String, name: &str, bits: usize) -> std::fmt::Result {
    writeln!(
        out,
        "\nstatic inline __attribute__((always_inline)) void\n\
         {name}_store_u{bits}(__u8 *bytes, __u{bits} value)\n{{"
    )?;
    if bits > 8 {
        writeln!(
            out,
            "{IN_KERNEL}\n\t*(__u{bits} *)bytes = __builtin_bswap{bits}(value);\n#else"
        )?;
    }
    let bytes = bits / 8;
    for at in 0..bytes {
        match 8 * (bytes - 1 - at) {
            0 => writeln!(out, "\tbytes[{at}] = (__u8)value;")?,
            shift => writeln!(out, "\tbytes[{at}] = (__u8)(value >> {shift});")?,
        }
    }
    if bits > 8 {
        writeln!(out, "#endif")?;
    }
    writeln!(out, "}}")
}
