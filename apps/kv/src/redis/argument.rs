//! What a command is written with, as `COMMAND DOCS` tells it: clients make their hints of that. Checks no
//! request.
use super::{Resp, reply};

/// One argument, or a choice or a sequence of several.
#[derive(Clone, Copy, Debug)]
pub(super) struct Argument {
    name: &'static str,
    kind: &'static str,
    /// Which of the command's key specifications speaks of it.
    key_spec: Option<usize>,
    /// What the client writes in front of it.
    token: Option<&'static str>,
    /// The version of Redis that had it first, if that is not the command's.
    since: Option<&'static str>,
    /// From this version of Redis on nobody should use it any more.
    deprecated_since: Option<&'static str>,
    is_optional: bool,
    is_multiple: bool,
    repeats_token: bool,
    parts: &'static [Self],
}

const fn argument(kind: &'static str, name: &'static str) -> Argument {
    Argument {
        name,
        kind,
        key_spec: None,
        token: None,
        since: None,
        deprecated_since: None,
        is_optional: false,
        is_multiple: false,
        repeats_token: false,
        parts: &[],
    }
}

/// A key, that one of the command's key specifications speaks of.
pub(super) const fn key(name: &'static str, key_spec: usize) -> Argument {
    Argument {
        key_spec: Some(key_spec),
        ..argument("key", name)
    }
}

pub(super) const fn string(name: &'static str) -> Argument {
    argument("string", name)
}

pub(super) const fn integer(name: &'static str) -> Argument {
    argument("integer", name)
}

pub(super) const fn double(name: &'static str) -> Argument {
    argument("double", name)
}

pub(super) const fn unix_time(name: &'static str) -> Argument {
    argument("unix-time", name)
}

pub(super) const fn pattern(name: &'static str) -> Argument {
    argument("pattern", name)
}

/// A word that is written as it is.
pub(super) const fn token(name: &'static str, token: &'static str) -> Argument {
    argument("pure-token", name).after(token)
}

/// One of these.
pub(super) const fn one_of(name: &'static str, parts: &'static [Argument]) -> Argument {
    Argument {
        parts,
        ..argument("oneof", name)
    }
}

/// All of these, in order.
pub(super) const fn block(name: &'static str, parts: &'static [Argument]) -> Argument {
    Argument {
        parts,
        ..argument("block", name)
    }
}

impl Argument {
    /// With this word in front.
    pub(super) const fn after(self, token: &'static str) -> Self {
        Self {
            token: Some(token),
            ..self
        }
    }

    /// Since this version of Redis.
    pub(super) const fn since(self, version: &'static str) -> Self {
        Self {
            since: Some(version),
            ..self
        }
    }

    /// From this version of Redis on nobody should use it any more.
    pub(super) const fn until(self, version: &'static str) -> Self {
        Self {
            deprecated_since: Some(version),
            ..self
        }
    }

    /// It may be left out.
    pub(super) const fn optional(self) -> Self {
        Self {
            is_optional: true,
            ..self
        }
    }

    /// It may be there several times.
    pub(super) const fn multiple(self) -> Self {
        Self {
            is_multiple: true,
            ..self
        }
    }

    /// The word in front of it is there as often.
    pub(super) const fn with_token_each(self) -> Self {
        Self {
            repeats_token: true,
            ..self
        }
    }

    fn flags(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        let flags = [
            self.is_optional.then_some("optional"),
            self.is_multiple.then_some("multiple"),
            self.repeats_token.then_some("multiple_token"),
        ];
        flags.into_iter().flatten()
    }
}

/// Appends a list of arguments.
pub(super) fn write(arguments: &[Argument], resp: Resp, out: &mut Vec<u8>) {
    reply::array_header(out, arguments.len());
    for argument in arguments {
        let flags = argument.flags();
        let texts = [
            ("name", Some(argument.name)),
            ("type", Some(argument.kind)),
            ("token", argument.token),
            ("since", argument.since),
            ("deprecated_since", argument.deprecated_since),
        ];
        let count = texts.iter().filter(|(_, text)| text.is_some()).count();
        let others = [
            argument.key_spec.is_some(),
            flags.clone().next().is_some(),
            !argument.parts.is_empty(),
        ];
        let others = others.into_iter().filter(|&is_there| is_there).count();
        reply::map_header(out, resp, count + others);
        for (name, text) in texts {
            if let Some(text) = text {
                reply::bulk(out, name.as_bytes());
                reply::bulk(out, text.as_bytes());
            }
            if let ("type", Some(place)) = (name, argument.key_spec) {
                reply::bulk(out, b"key_spec_index");
                reply::count(out, place);
            }
        }
        if flags.clone().next().is_some() {
            reply::bulk(out, b"flags");
            reply::set_header(out, resp, flags.clone().count());
            flags.for_each(|flag| reply::simple(out, flag));
        }
        if !argument.parts.is_empty() {
            reply::bulk(out, b"arguments");
            write(argument.parts, resp, out);
        }
    }
}
