//! Finds the value of every option among flags, environment, configuration file and defaults, and
//! remembers where it came from. What a value means is checked elsewhere.
use super::table::{CONFIG, Kind, Spec, TABLE, Unset};
use super::{Fault, Origin, PROGRAM_OPTIONS, Refused, ServerOptions, faults_alone};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read as _;
use std::num::NonZeroU32;
use std::path::Path;
use toml::de::DeTable;

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

/// Variables of the environment that may be options begin so.
const VARIABLES: &str = "QUORUMWIRE_";
/// Those of the commands that ask replicas begin so.
const HTTP_VARIABLES: &str = "QUORUMWIRE_HTTP_TLS_";
/// Most variables that are told to be no options.
const VARIABLES_TOLD_MAX: usize = 8;

/// The value of one option, as text, and its origin.
#[derive(Debug)]
pub struct Value {
    /// Which option.
    pub spec: &'static Spec,
    /// The text; `None` if it was not given and has no default value.
    pub text: Option<String>,
    /// Where the text came from.
    pub origin: Origin,
    /// In which line, if from a file.
    pub line: Option<NonZeroU32>,
}

/// The options given as flags, by name; and whose they are.
#[derive(Clone, Debug, Default)]
pub struct Flags(pub BTreeMap<&'static str, String>, pub Serves);

/// What a server serves: which keys its configuration file may have follows from that.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Serves {
    /// The key-value store.
    #[default]
    Store,
    /// A program.
    Program,
    /// Either: the file is only looked at.
    Either,
}

impl Serves {
    /// The command that has all options.
    const fn command(self) -> &'static str {
        match self {
            Self::Store | Self::Either => "server",
            Self::Program => "run",
        }
    }
}

impl Flags {
    /// Whether a server without an environment would take them.
    pub fn check(&self) -> Result<(), Refused> {
        ServerOptions::from_values(&resolve(self, &|_| None)?).map(drop)
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
    let (keys, mut faults) = match file {
        Some((path, text)) => parse_file(path, text, flags.1)?,
        None => (BTreeMap::new(), Vec::new()),
    };
    let values = TABLE.iter().map(|spec| {
        let mut value = first_given(spec, flags, environment)?;
        if let (Origin::Default, Some((path, _)), Some((text, line))) =
            (&value.origin, file, keys.get(spec.name))
        {
            value.text = Some(text.clone());
            value.origin = Origin::File(path.to_path_buf());
            value.line = Some(*line);
        }
        Ok(value)
    });
    let values: Vec<Value> = values.collect::<Result<_, Refused>>()?;
    let told: Vec<String> = faults.iter().map(|fault| fault.option.clone()).collect();
    faults.extend(faults_alone(&values).filter(|fault| !told.contains(&fault.option)));
    Refused::all(faults).map_or(Ok(values), Err)
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
            line: None,
        });
    }
    let variable = spec.variable();
    if let Some(text) = environment(&variable) {
        let origin = Origin::Environment(variable);
        let text = text.into_string().map_err(|text| {
            let given = text.display().to_string();
            Refused::of(spec.name, origin.clone(), given, "text in UTF-8")
        })?;
        return Ok(Value {
            spec,
            text: Some(text),
            origin,
            line: None,
        });
    }
    Ok(Value {
        spec,
        text: match spec.unset {
            Unset::Value(text) => Some(text.to_owned()),
            Unset::Refused | Unset::Otherwise(_) => None,
        },
        origin: Origin::Default,
        line: None,
    })
}

fn read_file(config: &Value, path: &Path) -> Result<String, Refused> {
    let refused = |problem: String| {
        let allowed =
            format!("a readable TOML file of at most {CONFIG_BYTES_MAX} bytes ({problem})");
        let given = path.display().to_string();
        Refused::of(CONFIG.name, config.origin.clone(), given, allowed)
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

/// Texts and their lines, by option name.
type Keys = BTreeMap<&'static str, (String, NonZeroU32)>;

/// The file's values as text, and what is wrong with its keys.
fn parse_file(path: &Path, text: &str, serves: Serves) -> Result<(Keys, Vec<Refused>), Refused> {
    let origin = Origin::File(path.to_path_buf());
    let no_toml = |error: toml::de::Error| {
        // What the parser says shows the line, which may be of a file with secrets.
        let at = error.span().map_or(0, |span| span.start);
        let before = text.get(..at).unwrap_or_default();
        let column = before.chars().rev().take_while(|it| *it != '\n').count() + 1;
        let given = format!("this is no TOML (column {column})");
        let mut refused = Refused::of(CONFIG.name, origin.clone(), given, "lines `key = value`");
        refused.line = Some(line_of(text, at));
        refused.fault = Fault::Format;
        refused
    };
    let places = DeTable::parse(text).map_err(no_toml)?;
    let line = |key: &str| {
        let mut keys = places.get_ref().keys();
        let found = keys.find(|it| it.get_ref() == key);
        line_of(text, found.map_or(0, |it| it.span().start))
    };
    let table: toml::Table = text.parse().map_err(no_toml)?;
    let (mut keys, mut faults) = (BTreeMap::new(), Vec::new());
    for (key, value) in table {
        let line = line(&key);
        let found = TABLE.iter().find(|spec| spec.key() == key);
        match found.map(|spec| (spec, text_of(spec.kind, &value))) {
            Some((spec, Ok(text))) => {
                keys.insert(spec.name, (text, line));
            }
            Some((spec, Err(given))) => {
                let kind = spec.kind;
                let allowed = format!("{} as {}", kind.allowed(), toml_type(kind));
                let mut fault = Refused::of(spec.name, origin.clone(), given, allowed);
                fault.line = Some(line);
                faults.push(fault);
            }
            None if serves != Serves::Store && of_program(&key).is_some() => {} // see `program_words`
            None => {
                let known = if value.is_table() {
                    "options stand in no table".to_owned()
                } else {
                    known_instead(&key, serves)
                };
                let key: String = key.chars().take(KEY_BYTES_MAX).collect();
                let mut fault = Refused::of(&key, origin.clone(), "", known);
                fault.line = Some(line);
                fault.fault = Fault::Name;
                faults.push(fault);
            }
        }
    }
    Ok((keys, faults))
}

/// The line in which a byte is.
fn line_of(text: &str, at: usize) -> NonZeroU32 {
    let before = text.bytes().take(at).filter(|it| *it == b'\n').count();
    NonZeroU32::MIN.saturating_add(u32::try_from(before).unwrap_or(u32::MAX))
}

/// A value of a file as a flag would have it, or else as people are to be shown it.
fn text_of(kind: Kind, value: &toml::Value) -> Result<String, String> {
    match (kind, value) {
        (Kind::Number { .. }, toml::Value::Integer(number)) => Ok(number.to_string()),
        (Kind::Switch, toml::Value::Boolean(switch)) => Ok(switch.to_string()),
        (Kind::Number { .. } | Kind::Switch, toml::Value::String(text)) => Err(text.clone()),
        (_, toml::Value::String(text)) => Ok(text.clone()),
        (_, toml::Value::Table(_)) => Err("a table".to_owned()),
        (_, toml::Value::Array(_)) => Err("an array".to_owned()),
        (_, other) => Err(other.to_string()),
    }
}

/// What to say of a key that is not known: those that are most like it, or where all of them are.
fn known_instead(key: &str, serves: Serves) -> String {
    if of_program(key).is_some() {
        return "it is an option of `quorumwire run`".to_owned();
    }
    let meant = most_alike(key, serves).into_iter();
    let meant: Vec<String> = meant.map(|name| format!("`{}`", key_of(name))).collect();
    in_question(&meant)
        .unwrap_or_else(|| format!("`quorumwire {} --help` shows all options", serves.command()))
}

fn key_of(name: &str) -> String {
    name.replace('-', "_")
}

/// The option that only `quorumwire run` has and that this key names.
fn of_program(key: &str) -> Option<&'static str> {
    let mut names = PROGRAM_OPTIONS.into_iter();
    names.find(|name| key_of(name) == key)
}

/// What the configuration file says of options that only `quorumwire run` has, as words of a command line,
/// by the option's name. What is wrong with the file else is said by [`resolve`].
pub fn program_words(
    flags: &Flags,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Vec<(&'static str, Vec<String>)>, Refused> {
    let config = first_given(&CONFIG, flags, environment)?;
    let Some(path) = config.text.as_deref().map(Path::new) else {
        return Ok(Vec::new());
    };
    let text = read_file(&config, path)?;
    let Ok(table) = text.parse::<toml::Table>() else {
        return Ok(Vec::new());
    };
    let keys = table.iter();
    let keys = keys.filter_map(|(key, value)| Some((of_program(key)?, value)));
    let words = keys.map(|(name, value)| {
        let words = words_of(name, value).map(|words| (name, words));
        words.ok_or_else(|| {
            let allowed = "a string, an integer, true or false, or an array of strings";
            let origin = Origin::File(path.to_path_buf());
            Refused::of(name, origin, value.to_string(), allowed)
        })
    });
    words.collect()
}

/// As on a command line. None: it cannot stand there.
fn words_of(name: &str, value: &toml::Value) -> Option<Vec<String>> {
    let word = |text: &str| format!("--{name}={text}");
    match value {
        toml::Value::String(text) => Some(vec![word(text)]),
        toml::Value::Integer(number) => Some(vec![word(&number.to_string())]),
        toml::Value::Boolean(true) => Some(vec![format!("--{name}")]),
        toml::Value::Boolean(false) => Some(Vec::new()),
        toml::Value::Array(all) => all.iter().map(|it| it.as_str().map(word)).collect(),
        toml::Value::Float(_) | toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}

/// Whether one of these was meant.
fn in_question(names: &[String]) -> Option<String> {
    let (last, others) = names.split_last()?;
    let others = others.join(", ");
    let or = if others.is_empty() { "" } else { " or " };
    Some(format!("did you mean {others}{or}{last}?"))
}

/// The options that somebody may mean who writes this: those that are most like it, if any is.
fn most_alike(key: &str, serves: Serves) -> Vec<&'static str> {
    if key.len() > KEY_BYTES_MAX {
        return Vec::new();
    }
    let written = key.to_lowercase().replace('-', "_");
    let likeness = |name: &str| {
        let name = key_of(name);
        let of_words = strsim::jaro_winkler(&written, &name);
        let is_part = written.len() >= PART_BYTES_MIN && name.contains(&written);
        of_words.max(if is_part { 1.0 } else { 0.0 })
    };
    let of_programs = PROGRAM_OPTIONS
        .into_iter()
        .filter(|_| serves != Serves::Store);
    let names = TABLE.iter().map(|spec| spec.name).chain(of_programs);
    let most = names.clone().map(likeness).fold(LIKENESS_MIN, f64::max);
    let alike = names.filter(|name| likeness(name) >= most);
    alike.take(MEANT_MAX).collect()
}

/// What to say of variables that look like options and are none: they may be another program's, or mistyped.
pub fn unknown_variables(names: impl Iterator<Item = OsString>) -> Vec<String> {
    let variable = |name: &str| format!("{VARIABLES}{}", key_of(name).to_uppercase());
    let options = std::iter::once(&CONFIG).chain(TABLE.iter());
    let options = options.map(|spec| spec.name).chain(PROGRAM_OPTIONS);
    let known: Vec<String> = options.map(variable).collect();
    let is_known = |name: &String| {
        known.contains(name) || name.starts_with(HTTP_VARIABLES) // of the commands that ask replicas
    };
    let names = names.filter_map(|name| name.into_string().ok());
    let strange = names.filter(|name| name.starts_with(VARIABLES) && !is_known(name));
    let mut warnings: Vec<String> = strange
        .map(|name| {
            let short: String = name.chars().take(KEY_BYTES_MAX).collect();
            let meant = name.strip_prefix(VARIABLES);
            let meant = meant.map(|key| most_alike(key, Serves::Either));
            let meant: Vec<String> = meant
                .unwrap_or_default()
                .into_iter()
                .map(variable)
                .collect();
            let meant = in_question(&meant).map(|text| format!("; {text}"));
            format!(
                "environment variable {short:?} is no option and does nothing{}",
                meant.unwrap_or_default()
            )
        })
        .collect();
    warnings.sort();
    warnings.truncate(VARIABLES_TOLD_MAX);
    warnings
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
