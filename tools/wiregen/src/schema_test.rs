//! Schemas that are wrong are refused, and the message says where.
use crate::schema::parse;

const FORMAT: &str = include_str!("../../../wire/format.toml");

#[test]
fn the_committed_schema_is_72_bytes_and_ascends() {
    let schema = parse(FORMAT).unwrap();
    assert_eq!(schema.header.bytes, 72);
    let offsets: Vec<usize> = schema.header.fields.iter().map(|f| f.offset).collect();
    assert_eq!(
        offsets,
        [0, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 40, 48, 56, 64]
    );
    assert_eq!(schema.registers.bytes, 8 * 8 + 2 * 7 * 8 + 3 * 4 + 12);
    assert!(schema.kinds.is_sorted_by(|a, b| a.value < b.value));
}

#[test]
fn wrong_schemas_are_refused_by_name() {
    let cases = [
        (
            r#"{ name = "kind",           bits = 8,"#,
            r#"{ name = "kind",           bits = 16,"#,
            "kind: at byte 3",
        ),
        ("size_bytes = 72", "size_bytes = 80", "have 72 bytes"),
        (
            "append = { value = 2",
            "append = { value = 3",
            "append and append_ok",
        ),
        ("blind = { bit = 1", "blind = { bit = 2", "blind and tick"),
        (
            "refused = { bit = 4",
            "refused = { bit = 8",
            "bit 8 does not exist",
        ),
        (
            "request = { value = 1",
            "request = { value = 0",
            "0 must stay unused",
        ),
        (
            "answer = { value = 7",
            "answer = { value = 256",
            "256 is more than 255",
        ),
        (
            "no_member = { value = 25",
            "no_member = { value = 26",
            "25 is the next one",
        ),
        (
            r#"{ name = "tag",            bits = 64"#,
            r#"{ name = "seal",           bits = 64"#,
            "it must be tag",
        ),
        (
            r#"{ name = "version",        bits = 8"#,
            r#"{ name = "versions",       bits = 8"#,
            "versions stands where version must",
        ),
        (
            r#"{ name = "term",           bits = 64"#,
            r#"{ name = "index",          bits = 64"#,
            "two fields index",
        ),
        ("bits = 32, doc", "bits = 24, doc", "24 bits"),
        ("count = 7", "count = 0", "`count` must be"),
        ("leader = { value = 1", "Leader = { value = 1", "is no name"),
        (r#"name = "me""#, r#"name = "self""#, "a word of one"),
        ("version = 1\n", "version = 1\nextra = 2\n", "unknown field"),
        (
            "Lengths or fields that no sender of ours makes.",
            "Lengths",
            "whole sentences",
        ),
    ];
    for (from, to, expected) in cases {
        let wrong = FORMAT.replacen(from, to, 1);
        assert_ne!(wrong, FORMAT, "{from:?} is not in the schema");
        let found = format!("{:#}", parse(&wrong).unwrap_err());
        assert!(found.contains(expected), "{from:?} to {to:?}: {found}");
    }
}
