//! Finds the value of every option among flags, environment, configuration file and defaults, and
//! remembers where it came from. What a value means is checked elsewhere.
use super::Refused;
use super::help::{heading, in_short, is_for_most};
use super::table::{CONFIG, Kind, Spec, TABLE, Unset};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Largest configuration file.
pub const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// How alike a key and another must be for the one to be meant by the other.
const LIKENESS_MIN: f64 = 0.86;
/// Of several that are as much alike, so many are named.
const MEANT_MAX: usize = 3;
/// Who writes a longer key means none of ours.
const KEY_BYTES_MAX: usize = 64;
/// A part of a key that is at least so long stands for it.
const PART_BYTES_MIN: usize = 4;

/// Where a value came from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Origin {
    /// The command line.
    Flag,
    /// The environment variable of this name.
    Environment(String),
    /// This configuration file.
    File(PathBuf),
    /// Nobody gave one.
    Default,
}

/// The value of one option, as text, and its origin.
#[derive(Debug)]
pub struct Value {
    /// Which option.
    pub spec: &'static Spec,
    /// The text; `None` if it was not given and has no default value.
    pub text: Option<String>,
    /// Where the text came from.
    pub origin: Origin,
}

/// The options given as flags, by name.
#[derive(Clone, Debug, Default)]
pub struct Flags(pub BTreeMap<&'static str, String>);

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Environment(variable) => write!(f, "environment variable {variable}"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// Finds every option's value, in the order of the table.
pub fn resolve(
    flags: &Flags,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Vec<Value>, Refused> {
    let config = first_given(&CONFIG, flags, environment)?;
    let file = match config.text.as_deref().map(Path::new) {
        Some(path) => Some((path, read_file(&config, path)?)),
        None => None,
    };
    let file = file.as_ref().map(|(path, text)| (*path, text.as_str()));
    resolve_in(file, flags, environment)
}

/// The same, with what stands in the configuration file, if there is one.
pub fn resolve_in(
    file: Option<(&Path, &str)>,
    flags: &Flags,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Vec<Value>, Refused> {
    let keys = match file {
        Some((path, text)) => parse_file(path, text)?,
        None => BTreeMap::new(),
    };
    TABLE
        .iter()
        .map(|spec| {
            let mut value = first_given(spec, flags, environment)?;
            if let (Origin::Default, Some((path, _)), Some(text)) =
                (&value.origin, file, keys.get(spec.name))
            {
                value.text = Some(text.clone());
                value.origin = Origin::File(path.to_path_buf());
            }
            Ok(value)
        })
        .collect()
}

/// The value from flag or environment, else the default.
fn first_given(
    spec: &'static Spec,
    flags: &Flags,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Value, Refused> {
    if let Some(text) = flags.0.get(spec.name) {
        return Ok(Value {
            spec,
            text: Some(text.clone()),
            origin: Origin::Flag,
        });
    }
    let variable = spec.variable();
    if let Some(text) = environment(&variable) {
        let origin = Origin::Environment(variable);
        let text = text.into_string().map_err(|text| Refused {
            option: spec.name.to_owned(),
            origin: origin.clone(),
            given: text.display().to_string(),
            allowed: "text in UTF-8".to_owned(),
        })?;
        return Ok(Value {
            spec,
            text: Some(text),
            origin,
        });
    }
    Ok(Value {
        spec,
        text: match spec.unset {
            Unset::Value(text) => Some(text.to_owned()),
            Unset::Refused | Unset::Otherwise(_) => None,
        },
        origin: Origin::Default,
    })
}

fn read_file(config: &Value, path: &Path) -> Result<String, Refused> {
    let refused = |problem: String| Refused {
        option: CONFIG.name.to_owned(),
        origin: config.origin.clone(),
        given: path.display().to_string(),
        allowed: format!("a readable TOML file of at most {CONFIG_BYTES_MAX} bytes ({problem})"),
    };
    let file = std::fs::File::open(path).map_err(|e| refused(e.to_string()))?;
    let mut text = String::new();
    file.take(CONFIG_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(|e| refused(e.to_string()))?;
    if text.len() as u64 > CONFIG_BYTES_MAX {
        return Err(refused("it is larger".to_owned()));
    }
    Ok(text)
}

/// The file's values as text, by option name.
fn parse_file(path: &Path, text: &str) -> Result<BTreeMap<&'static str, String>, Refused> {
    let origin = Origin::File(path.to_path_buf());
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| Refused {
        option: CONFIG.name.to_owned(),
        origin: origin.clone(),
        given: path.display().to_string(),
        allowed: format!("TOML; {}", e.to_string().trim_end()),
    })?;
    let mut keys = BTreeMap::new();
    for (key, value) in table {
        let Some(spec) = TABLE.iter().find(|spec| spec.key() == key) else {
            let allowed = known_instead(&key);
            return Err(Refused {
                option: key,
                origin,
                given: value.to_string(),
                allowed,
            });
        };
        let text = match (spec.kind, &value) {
            (Kind::Number { .. }, toml::Value::Integer(number)) => number.to_string(),
            (Kind::Switch, toml::Value::Boolean(switch)) => switch.to_string(),
            (
                Kind::Choice(_)
                | Kind::Text { .. }
                | Kind::Path
                | Kind::Listen
                | Kind::Reachable
                | Kind::Address
                | Kind::Multicast
                | Kind::Members,
                toml::Value::String(text),
            ) => text.clone(),
            (kind, _) => {
                return Err(Refused {
                    option: spec.name.to_owned(),
                    origin,
                    given: value.to_string(),
                    allowed: format!("{} as {}", kind.allowed(), toml_type(kind)),
                });
            }
        };
        keys.insert(spec.name, text);
    }
    Ok(keys)
}

/// What to say of a key that is not known: those that are most like it, or all of them.
fn known_instead(key: &str) -> String {
    let start: String = key.chars().take(KEY_BYTES_MAX).collect();
    let written = start.to_lowercase().replace('-', "_");
    let known = TABLE.iter().map(Spec::key);
    let likeness = |name: &String| {
        let of_words = strsim::jaro_winkler(&written, name);
        let is_part = written.len() >= PART_BYTES_MIN && name.contains(&written);
        of_words.max(if is_part { 1.0 } else { 0.0 })
    };
    let most = known
        .clone()
        .map(|name| likeness(&name))
        .fold(0.0, f64::max);
    let most_alike = known.clone().filter(|name| likeness(name) >= most);
    let meant: Vec<String> = most_alike
        .take(MEANT_MAX)
        .map(|name| format!("`{name}`"))
        .collect();
    match meant.split_last() {
        Some((last, others)) if most >= LIKENESS_MIN && key.len() <= KEY_BYTES_MAX => {
            let others = others.join(", ");
            let or = if others.is_empty() { "" } else { " or " };
            format!("no such key; did you mean {others}{or}{last}?")
        }
        Some(_) | None => {
            let known: Vec<String> = known.collect();
            format!("no such key; known are {}", known.join(", "))
        }
    }
}

const fn toml_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Number { .. } => "an integer without quotes",
        Kind::Switch => "a boolean without quotes",
        Kind::Choice(_)
        | Kind::Text { .. }
        | Kind::Path
        | Kind::Listen
        | Kind::Reachable
        | Kind::Address
        | Kind::Multicast
        | Kind::Members => "a string in quotes",
    }
}

impl clap::Args for Flags {
    fn augment_args(command: Command) -> Command {
        std::iter::once(&CONFIG)
            .chain(TABLE)
            .fold(command, |command, spec| command.arg(argument(spec)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for spec in std::iter::once(&CONFIG).chain(TABLE) {
            if let Some(text) = matches.get_one::<String>(spec.name) {
                self.0.insert(spec.name, text.clone());
            }
        }
        Ok(())
    }
}

fn argument(spec: &'static Spec) -> Arg {
    let help = format!(
        "{} [allowed: {}] [default: {}] [env: {}]",
        spec.help,
        spec.kind.allowed(),
        spec.unset_text(),
        spec.variable()
    );
    let argument = Arg::new(spec.name)
        .long(spec.name)
        .value_name(spec.kind.placeholder())
        .action(ArgAction::Set)
        .help_heading(heading(spec))
        .help(in_short(spec))
        .long_help(help)
        .hide_short_help(!is_for_most(spec));
    match spec.kind {
        Kind::Switch => argument
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
        Kind::Number { .. } => argument.allow_negative_numbers(true),
        Kind::Path => argument.value_hint(ValueHint::AnyPath), // for a shell's completion
        Kind::Choice(_)
        | Kind::Text { .. }
        | Kind::Listen
        | Kind::Reachable
        | Kind::Address
        | Kind::Multicast
        | Kind::Members => argument,
    }
}
