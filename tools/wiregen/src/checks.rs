//! The checks of `fastpath/checks.toml`: their names, and the reasons of what they refuse, for the C that
//! makes them and for the tests in Rust that leave them out one at a time.
use crate::comment;
use crate::names::{camel, upper};
use crate::schema::{Schema, check_doc, check_name};
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt::Write;

/// One check.
#[derive(Debug)]
pub struct Check {
    /// In `snake_case`.
    pub name: String,
    /// The name of what a refused packet is counted under, if the check refuses packets.
    pub reason: Option<String>,
    /// The rule that it enforces.
    pub doc: String,
    /// What becomes of it in a test build.
    pub proof: Proof,
}

/// How it is shown that a check is needed.
#[derive(Debug)]
pub enum Proof {
    /// Test builds can leave it out; then this goes wrong.
    Without(String),
    /// No build leaves it out. This test fails without it.
    Test(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    checks: Vec<FileCheck>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileCheck {
    name: String,
    reason: Option<String>,
    without: Option<String>,
    test: Option<String>,
    doc: String,
}

/// Reads and checks the list's text. An error names the entry that is wrong.
pub fn parse(text: &str, schema: &Schema) -> Result<Vec<Check>> {
    let file: File = toml::from_str(text)?;
    let mut names = BTreeSet::new();
    let mut checks = Vec::new();
    for check in file.checks {
        let name = check.name;
        check_name("checks", &name)?;
        check_doc("checks", &name, &check.doc)?;
        ensure!(
            names.insert(name.clone()),
            "[checks] there are two checks {name}"
        );
        if let Some(reason) = &check.reason {
            let known = schema.reasons.iter().any(|known| known.name == *reason);
            ensure!(
                known && reason != "none",
                "[checks] {name}: {reason:?} is no reason of wire/format.toml"
            );
        }
        let proof = match (check.without, check.test) {
            (Some(wrong), None) => Proof::Without(wrong),
            (None, Some(shown_by)) => Proof::Test(shown_by),
            _ => bail!("[checks] {name}: it has either `without` or `test`"),
        };
        checks.push(Check {
            reason: check.reason,
            doc: check.doc,
            name,
            proof,
        });
    }
    u8::try_from(checks.len()).context("[checks] more than 255")?;
    Ok(checks)
}

/// The text of `fastpath/include/qw_checks.h`.
pub fn c(checks: &[Check], schema: &Schema) -> String {
    let (name, prefix) = (&schema.name, upper(&schema.name));
    let mut out = format!(
        "/* Generated from fastpath/checks.toml by `make generate`; do not edit.\n \
         * The names of the checks, and why a packet that one refuses is not taken. */\n\
         #ifndef {prefix}_CHECKS_H\n#define {prefix}_CHECKS_H\n\n\
         #include \"{name}_wire.h\"\n\nenum {name}_check {{\n"
    );
    for (number, check) in (1..).zip(checks) {
        let doc = match &check.proof {
            Proof::Without(wrong) => format!("{} Without it: {wrong}.", check.doc),
            Proof::Test(test) => format!("{} Always there: {test} tests it.", check.doc),
        };
        out.push_str(&comment::c("\t", &doc));
        add(
            &mut out,
            format_args!("\t{prefix}_CHECK_{} = {number},\n", upper(&check.name)),
        );
    }
    out.push_str("};\n\n");
    for check in checks {
        if let Some(reason) = &check.reason {
            let (check, reason) = (upper(&check.name), upper(reason));
            add(
                &mut out,
                format_args!("#define {prefix}_REASON_OF_{check} {prefix}_REASON_{reason}\n"),
            );
        }
    }
    out.push_str("\n#endif\n");
    out
}

/// The text of `fastpath/src/generated/checks.rs`: those that test builds can leave out.
pub fn rust(checks: &[Check]) -> String {
    let mut out = String::from(
        "// Generated from fastpath/checks.toml by `make generate`; do not edit.\n\
         use quorumwire_wire::packet::PacketReason;\n\n\
         /// A check of the C that a test build can leave out, by its number there.\n\
         #[derive(Clone, Copy, Debug, Eq, PartialEq)]\n#[repr(i32)]\npub enum Mutant {\n",
    );
    let mutants: Vec<(i32, &Check, &str)> = (1..)
        .zip(checks)
        .filter_map(|(number, check)| match &check.proof {
            Proof::Without(wrong) => Some((number, check, wrong.as_str())),
            Proof::Test(_) => None,
        })
        .collect();
    for (number, check, wrong) in &mutants {
        let doc = format!("{} Without it: {wrong}.", check.doc);
        out.push_str(&comment::rust("    ", &doc));
        add(
            &mut out,
            format_args!("    {} = {number},\n", camel(&check.name)),
        );
    }
    let count = mutants.len();
    add(
        &mut out,
        format_args!(
            "}}\n\nimpl Mutant {{\n    /// All of them, ascending.\n    \
             pub const ALL: [Self; {count}] = [\n"
        ),
    );
    for (_, check, _) in &mutants {
        add(
            &mut out,
            format_args!("        Self::{},\n", camel(&check.name)),
        );
    }
    out.push_str(
        "    ];\n\n    /// Its name in the list.\n    #[must_use]\n    \
         pub const fn name(self) -> &'static str {\n        match self {\n",
    );
    for (_, check, _) in &mutants {
        add(
            &mut out,
            format_args!(
                "            Self::{} => \"{}\",\n",
                camel(&check.name),
                check.name
            ),
        );
    }
    out.push_str(
        "        }\n    }\n\n    /// Why a packet that it refuses is not taken; `None` if it refuses no packets.\n    \
         #[must_use]\n    pub const fn reason(self) -> Option<PacketReason> {\n        match self {\n",
    );
    for (_, check, _) in &mutants {
        let reason = match &check.reason {
            Some(reason) => format!("Some(PacketReason::{})", camel(reason)),
            None => "None".to_owned(),
        };
        add(
            &mut out,
            format_args!("            Self::{} => {reason},\n", camel(&check.name)),
        );
    }
    out.push_str("        }\n    }\n}\n");
    out
}

/// Writing to a String cannot fail.
fn add(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    const CHECKS: &str = include_str!("../../../fastpath/checks.toml");
    const FORMAT: &str = include_str!("../../../wire/format.toml");

    /// The two sides of one small list, typed by hand.
    #[test]
    fn both_languages_get_the_same_numbers_and_reasons() {
        let schema = schema::parse(FORMAT).unwrap();
        let list = r#"checks = [
            { name = "gone", reason = "off", test = "a_test", doc = "Stays." },
            { name = "old", reason = "term_old", without = "it breaks", doc = "Is new." },
            { name = "bare", without = "it bends", doc = "Is there." },
        ]"#;
        let checks = parse(list, &schema).unwrap();
        let c = c(&checks, &schema);
        assert!(c.contains(
            "enum qw_check {\n\t/* Stays. Always there: a_test tests it. */\n\tQW_CHECK_GONE = 1,\n\t\
             /* Is new. Without it: it breaks. */\n\tQW_CHECK_OLD = 2,\n\t\
             /* Is there. Without it: it bends. */\n\tQW_CHECK_BARE = 3,\n};\n\n\
             #define QW_REASON_OF_GONE QW_REASON_OFF\n#define QW_REASON_OF_OLD QW_REASON_TERM_OLD\n\n#endif\n"
        ));
        let rust = rust(&checks);
        assert!(rust.contains(
            "pub enum Mutant {\n    /// Is new. Without it: it breaks.\n    Old = 2,\n    \
             /// Is there. Without it: it bends.\n    Bare = 3,\n}\n"
        ));
        for line in [
            "pub const ALL: [Self; 2] = [\n        Self::Old,\n        Self::Bare,\n    ];",
            "Self::Old => \"old\",\n            Self::Bare => \"bare\",\n",
            "Self::Old => Some(PacketReason::TermOld),\n            Self::Bare => None,\n",
        ] {
            assert!(rust.contains(line), "{line:?} is not in {rust}");
        }
    }

    #[test]
    fn wrong_lists_are_refused_by_name() {
        let schema = schema::parse(FORMAT).unwrap();
        assert!(parse(CHECKS, &schema).is_ok());
        let cases = [
            (
                "name = \"magic\"",
                "name = \"header_whole\"",
                "two checks header_whole",
            ),
            ("name = \"magic\"", "name = \"Magic\"", "is no name"),
            (
                "reason = \"version\"",
                "reason = \"late\"",
                "\"late\" is no",
            ),
            (
                "reason = \"version\"",
                "reason = \"none\"",
                "\"none\" is no",
            ),
            ("without = \"fields", "why = \"fields", "unknown field"),
            (
                ", without = \"fields are read that mean something else\"",
                "",
                "version: it has either",
            ),
            (
                "test = \"the_c_takes_nothing_cut\"",
                "test = \"a\", without = \"b\"",
                "header_whole: it has either",
            ),
            ("is known.\"", "is known\"", "version: `doc` must be"),
        ];
        for (from, to, expected) in cases {
            let wrong = CHECKS.replacen(from, to, 1);
            assert_ne!(wrong, CHECKS, "{from:?} is not in the list");
            let found = format!("{:#}", parse(&wrong, &schema).unwrap_err());
            assert!(found.contains(expected), "{from:?} to {to:?}: {found}");
        }
    }
}
