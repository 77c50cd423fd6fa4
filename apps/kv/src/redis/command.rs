//! `COMMAND`: what clients ask to learn which commands there are. Runs none of them.
use super::spec::{KeySpec, Spec, find, spec};
use super::{Glob, Resp, Words, argument, reply, table, too_long};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What `COMMAND HELP` says.
const HELP: [&str; 17] = [
    "COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "(no subcommand)",
    "    What clients need to know about all commands.",
    "COUNT",
    "    How many commands there are.",
    "LIST [FILTERBY MODULE|ACLCAT|PATTERN <text>]",
    "    Their names.",
    "INFO [<command-name> ...]",
    "    What clients need to know about these commands, or about all.",
    "DOCS [<command-name> ...]",
    "    What people may want to know about these commands, or about all.",
    "GETKEYS <full-command>",
    "    The keys among a command's words.",
    "GETKEYSANDFLAGS <full-command>",
    "    The same, and what is done to them.",
    "HELP",
    "    Print this help.",
];

/// The names and documents of all commands and subcommands in one version of the protocol: they are long, and
/// do not change.
type Documents = LazyLock<BTreeMap<&'static str, Vec<u8>>>;
static DOCUMENTS_IN_2: Documents = LazyLock::new(|| documented(Resp::V2));
static DOCUMENTS_IN_3: Documents = LazyLock::new(|| documented(Resp::V3));

/// Answers `COMMAND` and its subcommands with at most so many bytes, or says that they would be more;
/// whatever is no such command with its error. What would be too long is hardly begun.
pub fn answer_command(words: &Words<'_>, resp: Resp, bytes_max: usize, out: &mut Vec<u8>) {
    let start = out.len();
    answer(words, resp, bytes_max, out);
    if out.len() - start > bytes_max {
        out.truncate(start);
        reply::error(out, too_long().as_bytes());
    }
}

fn answer(words: &Words<'_>, resp: Resp, bytes_max: usize, out: &mut Vec<u8>) {
    let spec = match find(words) {
        Ok(spec) => spec,
        Err(error) => return out.extend_from_slice(&error),
    };
    let arguments: Vec<&[u8]> = words.iter().skip(2).collect();
    match spec.name {
        "command" => info(&[], resp, bytes_max, out),
        "command|info" => info(&arguments, resp, bytes_max, out),
        "command|count" => reply::count(out, table::all().len()),
        "command|list" => list(&arguments, out),
        "command|docs" => docs(&arguments, resp, bytes_max, out),
        "command|getkeys" => keys(&arguments, None, out),
        "command|getkeysandflags" => keys(&arguments, Some(resp), out),
        "command|help" => {
            reply::array_header(out, HELP.len());
            for line in HELP {
                reply::simple(out, line);
            }
        }
        _ => reply::error(out, b"ERR this is not COMMAND"),
    }
}

fn info(names: &[&[u8]], resp: Resp, bytes_max: usize, out: &mut Vec<u8>) {
    let end_max = out.len() + bytes_max;
    if names.is_empty() {
        reply::array_header(out, table::all().len());
        for spec in table::all() {
            if out.len() > end_max {
                return; // what comes instead is an error
            }
            row(spec, resp, out);
        }
        return;
    }
    reply::array_header(out, names.len());
    for name in names {
        if out.len() > end_max {
            return; // what comes instead is an error
        }
        match spec(name) {
            Some(spec) => row(spec, resp, out),
            None => reply::null(out, resp),
        }
    }
}

/// One command, and its subcommands within it.
fn row(spec: &Spec, resp: Resp, out: &mut Vec<u8>) {
    reply::array_header(out, 10);
    reply::bulk(out, spec.name.as_bytes());
    reply::integer(out, i64::from(spec.arity));
    simple_set(spec.flags, resp, out);
    for place in spec.key_range() {
        reply::integer(out, place);
    }
    simple_set(spec.categories, resp, out);
    let tips = spec.tips.split_ascii_whitespace();
    reply::set_header(out, resp, tips.clone().count());
    for tip in tips {
        reply::bulk(out, tip.as_bytes());
    }
    reply::set_header(out, resp, spec.keys.len());
    for keys in spec.keys {
        key_spec(keys, resp, out);
    }
    if spec.subcommands.is_empty() {
        reply::set_header(out, resp, 0);
    } else {
        reply::array_header(out, spec.subcommands.len());
        for subcommand in spec.subcommands {
            row(subcommand, resp, out);
        }
    }
}

fn simple_set(texts: &str, resp: Resp, out: &mut Vec<u8>) {
    let texts = texts.split_ascii_whitespace();
    reply::set_header(out, resp, texts.clone().count());
    for text in texts {
        reply::simple(out, text);
    }
}

fn key_spec(keys: &KeySpec, resp: Resp, out: &mut Vec<u8>) {
    let name = |out: &mut Vec<u8>, name: &str| reply::bulk(out, name.as_bytes());
    let has_notes = !keys.notes.is_empty();
    reply::map_header(out, resp, 3 + usize::from(has_notes));
    if has_notes {
        name(out, "notes");
        name(out, keys.notes);
    }
    name(out, "flags");
    simple_set(keys.flags, resp, out);
    name(out, "begin_search");
    reply::map_header(out, resp, 2);
    name(out, "type");
    name(out, "index");
    name(out, "spec");
    reply::map_header(out, resp, 1);
    name(out, "index");
    reply::count(out, keys.begin);
    name(out, "find_keys");
    reply::map_header(out, resp, 2);
    name(out, "type");
    name(out, "range");
    name(out, "spec");
    reply::map_header(out, resp, 3);
    name(out, "lastkey");
    reply::integer(out, i64::from(keys.last));
    name(out, "keystep");
    reply::count(out, keys.step);
    name(out, "limit");
    reply::integer(out, 0);
}

/// `COMMAND LIST [FILTERBY MODULE|ACLCAT|PATTERN text]`: a filter looks at subcommands, too.
fn list(arguments: &[&[u8]], out: &mut Vec<u8>) {
    let all = table::all().iter().copied();
    let with_subcommands = all
        .clone()
        .flat_map(|spec| std::iter::once(spec).chain(spec.subcommands));
    let names: Vec<&str> = match arguments {
        [] => all.map(|spec| spec.name).collect(),
        [filter, how, text] if filter.eq_ignore_ascii_case(b"FILTERBY") => {
            let text = text.to_ascii_lowercase();
            let Some(holds) = filter_of(how, &text) else {
                return reply::error(out, b"ERR syntax error");
            };
            let chosen = with_subcommands.filter(|spec| holds(spec));
            chosen.map(|spec| spec.name).collect()
        }
        _ => return reply::error(out, b"ERR syntax error"),
    };
    reply::array_header(out, names.len());
    for name in names {
        reply::bulk(out, name.as_bytes());
    }
}

/// Whether a command is wanted.
type Filter<'t> = Box<dyn Fn(&Spec) -> bool + 't>;

fn filter_of<'t>(how: &[u8], text: &'t [u8]) -> Option<Filter<'t>> {
    if how.eq_ignore_ascii_case(b"MODULE") {
        Some(Box::new(|_| false))
    } else if how.eq_ignore_ascii_case(b"ACLCAT") {
        Some(Box::new(move |spec| {
            let mut categories = spec.categories.split_ascii_whitespace();
            categories.any(|category| &category.as_bytes()[1..] == text)
        }))
    } else if how.eq_ignore_ascii_case(b"PATTERN") {
        let pattern = Glob::new(text)?;
        Some(Box::new(move |spec| pattern.matches(spec.name.as_bytes())))
    } else {
        None
    }
}

/// Names that nobody knows are left out.
fn docs(names: &[&[u8]], resp: Resp, bytes_max: usize, out: &mut Vec<u8>) {
    let all = match resp {
        Resp::V2 => &DOCUMENTS_IN_2,
        Resp::V3 => &DOCUMENTS_IN_3,
    };
    let rows: Vec<&Spec> = if names.is_empty() {
        table::all().to_vec()
    } else {
        names.iter().filter_map(|name| spec(name)).collect()
    };
    let found: Vec<&Vec<u8>> = rows.iter().filter_map(|it| all.get(it.name)).collect();
    if found.iter().map(|it| it.len()).sum::<usize>() > bytes_max {
        return reply::error(out, too_long().as_bytes());
    }
    reply::map_header(out, resp, found.len());
    for document in found {
        out.extend_from_slice(document);
    }
}

fn documented(resp: Resp) -> BTreeMap<&'static str, Vec<u8>> {
    let rows = table::all().iter().copied();
    let all = rows.flat_map(|spec| std::iter::once(spec).chain(spec.subcommands));
    all.map(|spec| {
        let mut out = Vec::new();
        reply::bulk(&mut out, spec.name.as_bytes());
        document(spec, resp, &mut out);
        (spec.name, out)
    })
    .collect()
}

fn document(spec: &Spec, resp: Resp, out: &mut Vec<u8>) {
    let instead = table::instead_of(spec.name);
    let arguments = table::arguments_of(spec.name);
    let has_subcommands = !spec.subcommands.is_empty();
    let others = [!arguments.is_empty(), has_subcommands].map(usize::from);
    let of_instead = if instead.is_some() { 3 } else { 0 };
    reply::map_header(out, resp, 4 + of_instead + others[0] + others[1]);
    let text = |out: &mut Vec<u8>, name: &str, text: &str| {
        reply::bulk(out, name.as_bytes());
        reply::bulk(out, text.as_bytes());
    };
    text(out, "summary", spec.summary);
    text(out, "since", spec.since);
    text(out, "group", spec.group);
    text(out, "complexity", spec.complexity);
    if let Some((since, by)) = instead {
        reply::bulk(out, b"doc_flags");
        simple_set("deprecated", resp, out);
        text(out, "deprecated_since", since);
        text(out, "replaced_by", by);
    }
    if !arguments.is_empty() {
        reply::bulk(out, b"arguments");
        argument::write(arguments, resp, out);
    }
    if has_subcommands {
        reply::bulk(out, b"subcommands");
        reply::map_header(out, resp, spec.subcommands.len());
        for subcommand in spec.subcommands {
            reply::bulk(out, subcommand.name.as_bytes());
            document(subcommand, resp, out);
        }
    }
}

/// `COMMAND GETKEYS`, and with a version `COMMAND GETKEYSANDFLAGS`.
fn keys(words: &[&[u8]], flags_in: Option<Resp>, out: &mut Vec<u8>) {
    let container = words.first().and_then(|name| spec(name));
    let found = match (container, words.get(1)) {
        (Some(container), Some(second)) if !container.subcommands.is_empty() => {
            container.subcommand(second)
        }
        (container, _) => container,
    };
    let Some(spec) = found else {
        return reply::error(out, b"ERR Invalid command specified");
    };
    if spec.keys.is_empty() {
        return reply::error(out, b"ERR The command has no key arguments");
    }
    if !spec.takes(words.len()) {
        return reply::error(
            out,
            b"ERR Invalid number of arguments specified for command",
        );
    }
    let mut keys = Vec::new();
    for key_spec in spec.keys {
        for (place, word) in words.iter().enumerate() {
            if key_spec.holds(place, words.len()) {
                keys.push((word, key_spec.flags));
            }
        }
    }
    reply::array_header(out, keys.len());
    for (key, flags) in keys {
        if let Some(resp) = flags_in {
            reply::array_header(out, 2);
            reply::bulk(out, key);
            simple_set(flags_here(spec, words, flags), resp, out);
        } else {
            reply::bulk(out, key);
        }
    }
}

/// What these words do to the key, where that depends on them.
fn flags_here(spec: &Spec, words: &[&[u8]], flags: &'static str) -> &'static str {
    let has = |name: &[u8]| {
        words[2..]
            .iter()
            .any(|word| word.eq_ignore_ascii_case(name))
    };
    match spec.name {
        "set" if has(b"GET") => "RW access update",
        "set" => "OW update",
        "bitfield" if has(b"SET") || has(b"INCRBY") => "RW access update",
        "bitfield" => "RO access",
        _ => flags,
    }
}

impl Spec {
    /// First key, last key and step, as clients of old take them.
    fn key_range(&self) -> [i64; 3] {
        let Some(first) = self.keys.first() else {
            return [0, 0, 0];
        };
        let last = self.keys.iter().map(|keys| {
            let last = i64::from(keys.last);
            let begin = i64::try_from(keys.begin).unwrap_or(i64::MAX);
            if last < 0 { last } else { begin + last }
        });
        let open = last.clone().find(|&last| last < 0);
        let last = open.or_else(|| last.max()).unwrap_or(0);
        let begin = i64::try_from(first.begin).unwrap_or(i64::MAX);
        let step = i64::try_from(first.step).unwrap_or(i64::MAX);
        [begin, last, step]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(line: &str) -> String {
        let words: Vec<Vec<u8>> = line.split(' ').map(Vec::from).collect();
        let mut out = Vec::new();
        answer_command(&Words::from_words(&words), Resp::V2, usize::MAX, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_list_is_filtered_by_nothing_but_a_filter() {
        let all = answered("COMMAND LIST");
        let some = answered("COMMAND LIST FILTERBY PATTERN getr*");
        assert!(some.contains("getrange") && some.len() < all.len());
        assert_eq!(answered("command list filterby pattern GETR*"), some);
        for line in [
            "COMMAND LIST x PATTERN getr*",
            "COMMAND LIST FILTERBY x getr*",
            "COMMAND LIST FILTERBY PATTERN",
            "COMMAND LIST FILTERBY PATTERN getr* x",
        ] {
            assert_eq!(answered(line), "-ERR syntax error\r\n", "{line}");
        }
    }
}
