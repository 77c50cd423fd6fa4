//! The model of a `shared.toml`: structures in memory, numbers and counters that C and Rust have in common.
//! What a generator gets has unique names, and structures with the offsets and sizes that every compiler
//! gives them.
pub mod c;
pub mod rust;
#[cfg(test)]
mod shared_test;
pub mod systemverilog;
pub mod table;

use crate::schema::{Schema, check_doc, check_spelling};
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Everything one file says.
#[derive(Debug)]
pub struct Shared {
    /// Prefix of all names in C.
    pub name: String,
    /// What the whole is, in one sentence.
    pub about: String,
    /// Headers that the C needs before it.
    pub includes: Vec<String>,
    pub limits: Vec<Limit>,
    pub enums: Vec<Enumeration>,
    pub structs: Vec<Structure>,
    /// Structures of elsewhere that these are made of, by name.
    pub known: BTreeMap<String, Known>,
    pub counters: Vec<Counter>,
}

/// A named number.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    pub name: String,
    pub value: u64,
    /// Its type in Rust.
    #[serde(default = "usize_of_rust")]
    pub rust: String,
    pub doc: String,
}

/// Numbers that belong together.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enumeration {
    pub name: String,
    /// Of the field that holds one.
    pub bits: usize,
    /// Rust gets a type, not constants.
    #[serde(default)]
    pub typed: bool,
    pub doc: String,
    pub values: Vec<Enumerator>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enumerator {
    pub name: String,
    pub value: u64,
    pub doc: String,
}

/// Something that is counted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counter {
    pub name: String,
    /// The engine counts it, too.
    #[serde(default)]
    pub engine: bool,
    /// Counted for the interface, too.
    #[serde(default)]
    pub interface: bool,
    pub doc: String,
}

/// A structure without padding.
#[derive(Debug)]
pub struct Structure {
    pub name: String,
    pub bytes: usize,
    pub align: usize,
    pub doc: String,
    pub rust: InRust,
    /// Nothing may show it.
    pub secret: bool,
    pub fields: Vec<Field>,
}

/// How much of a structure Rust gets as such.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum InRust {
    Whole,
    /// What stands before this field.
    Before(String),
    /// Nothing.
    Places,
}

/// One field.
#[derive(Debug)]
pub struct Field {
    pub name: String,
    pub of: Of,
    pub count: Option<Count>,
    pub offset: usize,
    /// Its place is a multiple of it.
    pub align: usize,
    pub doc: String,
}

/// What a field, or each element of it, is.
#[derive(Clone, Debug)]
pub enum Of {
    /// So many bits.
    Number(usize),
    /// So many bits, in network byte order.
    Network(usize),
    /// The structure of this name.
    Structure(String),
}

/// Elements of an array.
#[derive(Clone, Debug)]
pub struct Count {
    pub value: usize,
    /// The limit that says so.
    pub limit: Option<String>,
}

/// A structure that another one may be made of.
#[derive(Clone, Debug)]
pub struct Known {
    pub bytes: usize,
    pub align: usize,
    /// Where Rust has it; `None`: in the same file, or nowhere.
    pub rust: Option<String>,
    /// It is not generated, so that its size is compared with what the file says.
    pub is_typed_by_hand: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    about: String,
    #[serde(default)]
    includes: Vec<String>,
    #[serde(default)]
    limits: Vec<Limit>,
    #[serde(default)]
    enums: Vec<Enumeration>,
    #[serde(default)]
    external: Vec<External>,
    #[serde(default)]
    structs: Vec<FileStructure>,
    #[serde(default)]
    counters: Vec<Counter>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct External {
    name: String,
    bytes: usize,
    align: usize,
    rust: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileStructure {
    name: String,
    rust: String,
    size_bytes: usize,
    #[serde(default)]
    secret: bool,
    doc: String,
    fields: Vec<FileField>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileField {
    name: String,
    bits: Option<usize>,
    #[serde(default)]
    network: bool,
    is: Option<String>,
    count: Option<FileCount>,
    doc: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum FileCount {
    Number(usize),
    Limit(String),
}

fn usize_of_rust() -> String {
    "usize".to_owned()
}

/// What a file may refer to that stands elsewhere.
#[derive(Default)]
pub struct Elsewhere {
    structs: BTreeMap<String, Known>,
    limits: BTreeMap<String, u64>,
}

impl Elsewhere {
    /// The packets' header and registers.
    pub fn of_packets(schema: &Schema) -> Self {
        let mut elsewhere = Self::default();
        for (name, layout) in [
            ("header", &schema.header),
            ("registers", &schema.registers),
            ("paxos_registers", &schema.paxos_registers),
            ("paxos_slot", &schema.paxos_slot),
        ] {
            elsewhere.structs.insert(
                name.to_owned(),
                Known {
                    bytes: layout.bytes,
                    align: 8,
                    rust: Some(format!(
                        "quorumwire_wire::packet::{}",
                        crate::names::camel(name)
                    )),
                    is_typed_by_hand: false,
                },
            );
        }
        for limit in &schema.limits {
            elsewhere.limits.insert(limit.name.clone(), limit.value);
        }
        elsewhere
    }

    /// And what another file says, which Rust has in this module.
    pub fn and(mut self, shared: &Shared, module: &str) -> Self {
        for one in &shared.structs {
            let rust = (one.rust == InRust::Whole)
                .then(|| format!("{module}::{}", crate::names::camel(&one.name)));
            let known = Known {
                bytes: one.bytes,
                align: one.align,
                rust,
                is_typed_by_hand: false,
            };
            self.structs.insert(one.name.clone(), known);
        }
        for limit in &shared.limits {
            self.limits.insert(limit.name.clone(), limit.value);
        }
        self
    }
}

/// Reads and checks a file's text. An error names the entry that is wrong.
pub fn parse(text: &str, schema: &Schema, elsewhere: Elsewhere) -> Result<Shared> {
    let file: File = toml::from_str(text)?;
    check_doc("shared", "about", &file.about)?;
    let mut names = Names::default();
    let Elsewhere {
        structs: mut known,
        mut limits,
    } = elsewhere;
    for limit in &file.limits {
        names.add("limits", &limit.name, &limit.doc)?;
        check_type(limit)?;
        limits.insert(limit.name.clone(), limit.value);
    }
    for one in &file.enums {
        names.add("enums", &one.name, &one.doc)?;
        check_enumeration(one)?;
    }
    for external in file.external {
        check_spelling("external", &external.name)?;
        let one = Known {
            bytes: external.bytes,
            align: external.align,
            rust: Some(external.rust),
            is_typed_by_hand: true,
        };
        known.insert(external.name, one);
    }
    let mut structs = Vec::new();
    for one in file.structs {
        names.add("structs", &one.name, &one.doc)?;
        let placed = structure(one, &known, &limits)?;
        let here = Known {
            bytes: placed.bytes,
            align: placed.align,
            rust: None,
            is_typed_by_hand: false,
        };
        known.insert(placed.name.clone(), here);
        structs.push(placed);
    }
    let mut counted = Names::default();
    for counter in &file.counters {
        counted.add("counters", &counter.name, &counter.doc)?;
    }
    Ok(Shared {
        name: schema.name.clone(),
        about: file.about,
        includes: file.includes,
        limits: file.limits,
        enums: file.enums,
        structs,
        known,
        counters: file.counters,
    })
}

/// Names of one file.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl Names {
    fn add(&mut self, table: &str, name: &str, doc: &str) -> Result<()> {
        check_spelling(table, name)?;
        check_doc(table, name, doc)?;
        ensure!(
            self.0.insert(name.to_owned()),
            "[{table}] there are two {name}"
        );
        Ok(())
    }
}

fn check_type(limit: &Limit) -> Result<()> {
    let max = match limit.rust.as_str() {
        "u8" => u64::from(u8::MAX),
        "u32" | "usize" => u64::from(u32::MAX),
        "u64" => u64::MAX,
        other => bail!(
            "[limits] {}: {other:?} is no type of a limit: u8, u32, u64 or usize",
            limit.name
        ),
    };
    ensure!(
        limit.value <= max,
        "[limits] {}: {} is more than {max}, the most there can be",
        limit.name,
        limit.value
    );
    Ok(())
}

fn check_enumeration(one: &Enumeration) -> Result<()> {
    ensure!(
        matches!(one.bits, 8 | 32),
        "[enums] {}: {} bits, allowed are 8 and 32",
        one.name,
        one.bits
    );
    // An enumeration in C is an int.
    let max = if one.bits == 8 { 255 } else { 0x7fff_ffff };
    let mut names = Names::default();
    let mut last = None;
    for value in &one.values {
        names.add(&one.name, &value.name, &value.doc)?;
        ensure!(
            last.is_none_or(|last| last < value.value) && value.value <= max,
            "[enums] {} {}: {} must be more than the one before, and at most {max}",
            one.name,
            value.name,
            value.value
        );
        last = Some(value.value);
    }
    Ok(())
}

fn structure(
    one: FileStructure,
    known: &BTreeMap<String, Known>,
    limits: &BTreeMap<String, u64>,
) -> Result<Structure> {
    let table = one.name.as_str();
    let mut names = Names::default();
    let (mut offset, mut align) = (0, 1);
    let mut fields = Vec::new();
    for field in one.fields {
        names.add(table, &field.name, &field.doc)?;
        let count = count(table, &field, limits)?;
        let (of, bytes, aligned) = element(table, &field, known)?;
        ensure!(
            offset % aligned == 0,
            "[{table}] {}: at byte {offset}, which is no multiple of {aligned}",
            field.name
        );
        let size = bytes * count.as_ref().map_or(1, |count| count.value);
        fields.push(Field {
            name: field.name,
            of,
            count,
            offset,
            align: aligned,
            doc: field.doc,
        });
        offset += size;
        align = align.max(aligned);
    }
    ensure!(
        offset % align == 0,
        "[{table}] {offset} bytes in all, which is no multiple of {align}"
    );
    ensure!(
        offset == one.size_bytes,
        "[{table}] the fields have {offset} bytes, and `size_bytes` says {}",
        one.size_bytes
    );
    let rust = in_rust(table, &one.rust, &fields)?;
    Ok(Structure {
        name: one.name,
        bytes: offset,
        align,
        doc: one.doc,
        rust,
        secret: one.secret,
        fields,
    })
}

fn in_rust(table: &str, said: &str, fields: &[Field]) -> Result<InRust> {
    let first = said.strip_prefix("before:");
    let found = fields
        .iter()
        .position(|field| Some(field.name.as_str()) == first);
    match (said, found) {
        ("whole", _) => Ok(InRust::Whole),
        ("places", _) => Ok(InRust::Places),
        (_, Some(at)) if at > 0 => {
            let align = fields[..at].iter().map(|field| field.align).max();
            let align = align.unwrap_or(1);
            ensure!(
                fields[at].offset.is_multiple_of(align),
                "[{table}] {} bytes stand before {}, which is no multiple of {align}",
                fields[at].offset,
                fields[at].name
            );
            Ok(InRust::Before(fields[at].name.clone()))
        }
        _ => bail!("[{table}] `rust` is {said:?}; allowed: whole, places, before:FIELD"),
    }
}

fn count(table: &str, field: &FileField, limits: &BTreeMap<String, u64>) -> Result<Option<Count>> {
    let count = match &field.count {
        None => return Ok(None),
        Some(FileCount::Number(value)) => Count {
            value: *value,
            limit: None,
        },
        Some(FileCount::Limit(name)) => {
            let value = limits
                .get(name)
                .with_context(|| format!("[{table}] {}: {name:?} is no limit", field.name))?;
            Count {
                value: usize::try_from(*value)?,
                limit: Some(name.clone()),
            }
        }
    };
    ensure!(
        (1..=65536).contains(&count.value),
        "[{table}] {}: `count` must be 1 to 65536",
        field.name
    );
    Ok(Some(count))
}

/// What an element is, its bytes and of what its place must be a multiple.
fn element(
    table: &str,
    field: &FileField,
    known: &BTreeMap<String, Known>,
) -> Result<(Of, usize, usize)> {
    match (field.bits, &field.is) {
        (Some(bits @ (8 | 16 | 32 | 64)), None) => {
            let of = if field.network {
                Of::Network(bits)
            } else {
                Of::Number(bits)
            };
            Ok((of, bits / 8, bits / 8))
        }
        (None, Some(name)) if !field.network => {
            let found = known.get(name).with_context(|| {
                format!(
                    "[{table}] {}: no structure {name:?} stands before",
                    field.name
                )
            })?;
            Ok((Of::Structure(name.clone()), found.bytes, found.align))
        }
        _ => bail!(
            "[{table}] {}: it has either `bits`, 8, 16, 32 or 64, or `is`",
            field.name
        ),
    }
}
