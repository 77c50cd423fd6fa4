//! The manual pages say what the command line says. `cli/tests/binary/packaging.rs` has groff show them.
use super::*;
use quorumwire_node::options::TABLE;

fn page(name: &str) -> String {
    let all = pages();
    let found = all.into_iter().find(|(one, _)| one == name);
    String::from_utf8(found.unwrap_or_else(|| panic!("no page {name}")).1).unwrap()
}

/// As a reader sees it: without escapes.
fn plain(page: &str) -> String {
    ["\\fB", "\\fI", "\\fR", "\\&"]
        .iter()
        .fold(page.replace("\\-", "-"), |text, escape| {
            text.replace(escape, "")
        })
        .replace("\\*(Aq", "'")
}

#[test]
fn there_is_a_page_for_each_command_and_each_below_it() {
    let names: Vec<String> = pages().into_iter().map(|(name, _)| name).collect();
    for command in super::super::Cli::command().get_subcommands() {
        let name = format!("quorumwire-{}", command.get_name());
        let is_there = names.contains(&name);
        assert!(is_there != command.is_hide_set(), "{name}: {names:?}");
    }
    assert!(names.contains(&"quorumwire-keys-new".to_owned()));
    assert!(
        !names.contains(&"quorumwire-config-docs".to_owned()),
        "hidden"
    );
    assert_eq!(names[0], "quorumwire");
}

#[test]
fn options_of_the_server_are_those_of_the_table() {
    for name in ["quorumwire-server", "quorumwire-config-check"] {
        let page = plain(&page(name));
        for spec in TABLE.iter() {
            assert!(page.contains(&format!("--{}", spec.name)), "{}", spec.name);
            assert!(page.contains(spec.help), "{name}: {}", spec.help);
            assert!(page.contains(&spec.variable()), "{}", spec.name);
        }
    }
}

#[test]
fn examples_keep_their_lines_and_pages_name_each_other() {
    let server = plain(&page("quorumwire-server"));
    assert!(server.contains("\n.SH EXAMPLES\n.nf\n"), "{server}");
    assert!(server.contains("\n  quorumwire server --id 0 --dir data/0"));
    assert!(server.contains(".SH \"SEE ALSO\"\nquorumwire(1)\n"));
    let keys = plain(&page("quorumwire-keys"));
    assert!(
        keys.contains("\n  quorumwire keys use    --file secret.toml"),
        "{keys}"
    );
    assert!(keys.contains("quorumwire(1), quorumwire-keys-new(1)"));
    let notes = notes("What to know:\n  as it is").to_roff();
    assert!(
        notes.contains(".SH NOTES\n.nf\nWhat to know:\n  as it is\n.fi"),
        "{notes}"
    );
}
