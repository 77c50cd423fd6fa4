//! How a server's many options are shown to people: in groups, those that most servers need under `-h`, all
//! of them under `--help`. What they mean is in the table.
use quorumwire_node::options::{CONFIG, Kind, Spec};
use quorumwire_node::planes::kind_with_option;

/// A heading, the options that `-h` shows below it, and those that only `--help` does.
type Group = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

/// Below this one there are the options of each kind of planes, too, where `--help` shows them.
const DATA_PLANES: &str = "Data planes";

/// An option that is in none of these is shown below [`OTHERS`].
const GROUPS: &[Group] = &[
    (
        "Replica and cluster",
        &[
            "config",
            "id",
            "dir",
            "cluster",
            "members",
            "join",
            "durability",
        ],
        &["learners"],
    ),
    (
        "Addresses",
        &[
            "listen-peer",
            "listen-memcached",
            "listen-redis",
            "listen-client",
            "listen-http",
        ],
        &[
            "memcached-udp",
            "advertise-peer",
            "advertise-memcached",
            "advertise-redis",
            "advertise-client",
            "advertise-http",
        ],
    ),
    (
        "Who may do what",
        &[
            "tls-ca",
            "tls-cert",
            "tls-key",
            "client-tls",
            "client-auth-file",
            "insecure",
        ],
        &["client-tls-cert", "client-tls-key", "client-tls-ca", "user"],
    ),
    (
        "Memory",
        &["memory-limit-mib", "memory-policy"],
        &["connections-max", "client-buffers-mib", "values-mib"],
    ),
    (
        DATA_PLANES,
        &["plane", "secret-file"],
        &["listen-plane", "advertise-plane", "plane-reads"],
    ),
    ("What it says", &["log-level", "log-format"], &[]),
];

/// Times, sizes and whatever else most servers leave as it is.
const OTHERS: &str = "Times and sizes";

/// Below which heading an option is shown.
pub fn heading(spec: &Spec) -> &'static str {
    let group = GROUPS
        .iter()
        .find(|(_, short, long)| short.contains(&spec.name) || long.contains(&spec.name));
    let otherwise = match kind_with_option(spec.name) {
        Some(_) => DATA_PLANES,
        None => OTHERS,
    };
    group.map_or(otherwise, |(heading, ..)| heading)
}

/// Whether `-h` shows it.
pub fn is_for_most(spec: &Spec) -> bool {
    GROUPS
        .iter()
        .any(|(_, short, _)| short.contains(&spec.name))
}

/// What `-h` says of it: the first sentence, up to what it lists, without what is in brackets; and the
/// default.
pub fn in_short(spec: &Spec) -> String {
    let help = without_brackets(spec.help);
    let end = [". ", ": "].iter().filter_map(|end| help.find(end)).min();
    let first = help[..end.unwrap_or(help.len())].trim_end_matches('.');
    if spec.name == CONFIG.name {
        return first.to_owned();
    }
    let values = if let Kind::Choice(words) = spec.kind {
        format!(": {}", words.join(", "))
    } else {
        String::new()
    };
    format!("{first}{values} [default: {}]", spec.unset_text())
}

fn without_brackets(text: &str) -> String {
    let mut left = text;
    let mut kept = String::new();
    while let Some((before, inside)) = left.split_once(" (") {
        kept.push_str(before);
        left = inside.split_once(')').map_or("", |(_, behind)| behind);
    }
    kept + left
}

#[cfg(test)]
mod tests {
    use super::super::ServerFlags;
    use super::*;
    use clap::Args as _;
    use quorumwire_node::options::TABLE;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_in_a_group_is_an_option_and_in_no_other() {
        let known: BTreeSet<_> = TABLE
            .iter()
            .chain([&CONFIG])
            .map(|spec| spec.name)
            .collect();
        let mut seen = BTreeSet::new();
        for (_, short, long) in GROUPS {
            for name in short.iter().chain(*long) {
                assert!(known.contains(name), "{name}");
                assert!(seen.insert(name), "{name} is in two groups");
            }
        }
    }

    #[test]
    fn the_short_help_is_no_longer_than_what_a_person_reads_and_the_long_one_is_whole() {
        let command = || ServerFlags::augment_args(clap::Command::new("server"));
        let short = command().term_width(100).render_help().to_string();
        let lines = short.lines().count();
        assert!(lines <= 70, "{lines} lines:\n{short}");
        let long = command().term_width(100).render_long_help().to_string();
        for (heading, names, _) in GROUPS {
            assert!(short.contains(&format!("{heading}:")), "{short}");
            for name in *names {
                assert!(short.contains(&format!("--{name}")), "{name}: {short}");
            }
        }
        for spec in TABLE.iter() {
            assert!(long.contains(&format!("--{}", spec.name)), "{}", spec.name);
            assert!(!spec.help.is_empty() && !in_short(spec).is_empty());
        }
        assert!(!short.contains("--clock-drift-ppm") && long.contains("--clock-drift-ppm"));
    }
}
