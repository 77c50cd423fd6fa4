//! The model of `wire/format.toml` that every language is generated from, checked: what a generator
//! gets has unique names and values, aligned fields and the size it says. Knows no language.
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Words that one of the generated languages keeps for itself and somebody might take for a field.
const RESERVED: [&str; 12] = [
    "bit", "default", "enum", "header", "in", "logic", "match", "output", "self", "state", "table",
    "type",
];
/// The header's last field: it covers everything before it.
const TAG: &str = "tag";

/// Everything the file says.
#[derive(Debug)]
pub struct Schema {
    /// Prefix of all names in languages without name spaces.
    pub name: String,
    /// First two bytes of every packet.
    pub magic: u16,
    /// Format version.
    pub version: u8,
    /// Named numbers, by name.
    pub limits: Vec<Constant>,
    /// What a packet begins with.
    pub header: Layout,
    /// What a plane and its host share.
    pub registers: Layout,
    /// What a box and its host share about one Paxos role.
    pub paxos_registers: Layout,
    /// What an acceptor knows of one instance.
    pub paxos_slot: Layout,
    /// What a packet says.
    pub kinds: Vec<Constant>,
    /// Bits of the field `flags`.
    pub flags: Vec<Constant>,
    /// What a plane does in its group.
    pub roles: Vec<Constant>,
    /// What a box does in a Paxos deployment.
    pub paxos_roles: Vec<Constant>,
    /// Bits: what a plane shall do about a packet.
    pub actions: Vec<Constant>,
    /// Why a packet was not taken.
    pub reasons: Vec<Constant>,
}

/// A named number. Lists of them ascend.
#[derive(Debug)]
pub struct Constant {
    /// In `snake_case`.
    pub name: String,
    /// Of a bit: the number with only that bit set.
    pub value: u64,
    /// One or more sentences.
    pub doc: String,
}

/// Fields one behind the other, without padding.
#[derive(Debug)]
pub struct Layout {
    /// Size of all fields together.
    pub bytes: usize,
    /// In their order.
    pub fields: Vec<Field>,
}

/// One field of a layout.
#[derive(Debug)]
pub struct Field {
    /// In `snake_case`.
    pub name: String,
    /// 8, 16, 32 or 64.
    pub bits: usize,
    /// Number of elements of an array; `None` for a plain number.
    pub count: Option<usize>,
    /// Bytes before it.
    pub offset: usize,
    /// One or more sentences.
    pub doc: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    magic: u16,
    version: u8,
    limits: BTreeMap<String, Number>,
    header: Fields,
    kinds: BTreeMap<String, Number>,
    flags: BTreeMap<String, Bit>,
    roles: BTreeMap<String, Number>,
    registers: Fields,
    paxos_roles: BTreeMap<String, Number>,
    paxos_registers: Fields,
    paxos_slot: Fields,
    actions: BTreeMap<String, Bit>,
    reasons: BTreeMap<String, Number>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Number {
    value: u64,
    doc: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bit {
    bit: u32,
    doc: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    size_bytes: Option<usize>,
    fields: Vec<FileField>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileField {
    name: String,
    bits: usize,
    count: Option<usize>,
    doc: String,
}

/// Reads and checks the file's text. An error names the table and the entry that is wrong.
pub fn parse(text: &str) -> Result<Schema> {
    let file: File = toml::from_str(text)?;
    check_name("name", &file.name)?;
    let header = layout("header", file.header)?;
    check_header(&header)?;
    let schema = Schema {
        limits: numbers("limits", file.limits, u64::from(u32::MAX), false)?,
        kinds: numbers("kinds", file.kinds, 255, true)?,
        roles: numbers("roles", file.roles, 255, true)?,
        paxos_roles: numbers("paxos_roles", file.paxos_roles, 255, true)?,
        reasons: numbers("reasons", file.reasons, 255, true)?,
        flags: bits("flags", file.flags, 8)?,
        actions: bits("actions", file.actions, 32)?,
        registers: layout("registers", file.registers)?,
        paxos_registers: layout("paxos_registers", file.paxos_registers)?,
        paxos_slot: layout("paxos_slot", file.paxos_slot)?,
        header,
        name: file.name,
        magic: file.magic,
        version: file.version,
    };
    // Counters are arrays over the reasons, so these must be without gaps.
    for (place, reason) in schema.reasons.iter().enumerate() {
        ensure!(
            usize::try_from(reason.value).ok() == Some(place),
            "[reasons] {}: the value is {}, and {place} is the next one",
            reason.name,
            reason.value
        );
    }
    ensure!(
        schema.kinds.first().is_some_and(|kind| kind.value > 0),
        "[kinds] 0 must stay unused: it is what cleared memory holds"
    );
    Ok(schema)
}

/// Whether this is a name in every generated language.
pub fn check_name(table: &str, name: &str) -> Result<()> {
    check_spelling(table, name)?;
    ensure!(
        !RESERVED.contains(&name),
        "[{table}] {name:?} is a word of one of the generated languages"
    );
    Ok(())
}

/// Whether this is spelled as names are.
pub fn check_spelling(table: &str, name: &str) -> Result<()> {
    let plain = name
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    let starts = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
    ensure!(
        plain && starts,
        "[{table}] {name:?} is no name: small letters, digits and _, a letter first"
    );
    Ok(())
}

/// Whether this can be a comment in every generated language.
pub fn check_doc(table: &str, name: &str, doc: &str) -> Result<()> {
    ensure!(
        doc.ends_with('.') && !doc.contains('\n') && !doc.contains("*/"),
        "[{table}] {name}: `doc` must be one line of whole sentences"
    );
    Ok(())
}

/// The table's numbers, ascending (limits: by name, since two may be equal).
fn numbers(
    table: &str,
    entries: BTreeMap<String, Number>,
    max: u64,
    unique: bool,
) -> Result<Vec<Constant>> {
    let mut constants = Vec::new();
    for (name, Number { value, doc }) in entries {
        check_name(table, &name)?;
        check_doc(table, &name, &doc)?;
        ensure!(
            value <= max,
            "[{table}] {name}: {value} is more than {max}, the most there can be"
        );
        constants.push(Constant { name, value, doc });
    }
    if unique {
        constants.sort_by_key(|constant| constant.value);
        no_duplicates(table, &constants)?;
    }
    Ok(constants)
}

fn bits(table: &str, entries: BTreeMap<String, Bit>, width: u32) -> Result<Vec<Constant>> {
    let mut constants = Vec::new();
    for (name, Bit { bit, doc }) in entries {
        check_name(table, &name)?;
        check_doc(table, &name, &doc)?;
        ensure!(
            bit < width,
            "[{table}] {name}: bit {bit} does not exist, {} is the last",
            width - 1
        );
        let value = 1 << bit;
        constants.push(Constant { name, value, doc });
    }
    constants.sort_by_key(|constant| constant.value);
    no_duplicates(table, &constants)?;
    Ok(constants)
}

fn no_duplicates(table: &str, ascending: &[Constant]) -> Result<()> {
    for pair in ascending.windows(2) {
        if let [first, second] = pair
            && first.value == second.value
        {
            bail!(
                "[{table}] {} and {} have the same value, {}",
                first.name,
                second.name,
                first.value
            );
        }
    }
    Ok(())
}

fn layout(table: &str, fields: Fields) -> Result<Layout> {
    let mut offset = 0;
    let mut names = BTreeSet::new();
    let mut placed = Vec::new();
    let mut widest = 1;
    for FileField {
        name,
        bits,
        count,
        doc,
    } in fields.fields
    {
        check_name(table, &name)?;
        check_doc(table, &name, &doc)?;
        ensure!(
            names.insert(name.clone()),
            "[{table}] there are two fields {name}"
        );
        ensure!(
            matches!(bits, 8 | 16 | 32 | 64),
            "[{table}] {name}: {bits} bits, allowed are 8, 16, 32 and 64"
        );
        ensure!(
            count.is_none_or(|count| (1..=64).contains(&count)),
            "[{table}] {name}: `count` must be 1 to 64"
        );
        let bytes = bits / 8;
        ensure!(
            offset % bytes == 0,
            "[{table}] {name}: at byte {offset}, which is no multiple of its {bytes} bytes"
        );
        widest = widest.max(bytes);
        let size = bytes * count.unwrap_or(1);
        placed.push(Field {
            name,
            bits,
            count,
            offset,
            doc,
        });
        offset += size;
    }
    ensure!(
        offset > 0 && offset % widest == 0,
        "[{table}] {offset} bytes in all, which is no multiple of its widest field's {widest}"
    );
    if let Some(said) = fields.size_bytes {
        ensure!(
            said == offset,
            "[{table}] the fields have {offset} bytes, and `size_bytes` says {said}"
        );
    }
    Ok(Layout {
        bytes: offset,
        fields: placed,
    })
}

/// What the code around the header relies on.
fn check_header(header: &Layout) -> Result<()> {
    ensure!(
        header.fields.iter().all(|field| field.count.is_none()),
        "[header] has an array; on the wire there are none"
    );
    let starts = ["magic", "version", "kind"];
    for (field, name) in header.fields.iter().zip(starts) {
        ensure!(
            field.name == name,
            "[header] {} stands where {name} must: every version begins with it",
            field.name
        );
    }
    let tag = header.fields.last().context("[header] has no fields")?;
    ensure!(
        tag.name == TAG && tag.bits == 64 && tag.offset % 8 == 0,
        "[header] the last field is {} with {} bits: it must be {TAG} with 64",
        tag.name,
        tag.bits
    );
    Ok(())
}
