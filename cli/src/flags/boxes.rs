//! Where a box of a Paxos role runs, as arguments of a command: the kinds of planes, and those of their
//! options that boxes have.
use clap::builder::{
    NonEmptyStringValueParser, PossibleValuesParser, RangedU64ValueParser, ValueParser,
};
use clap::{Arg, ArgMatches, Command};
use quorumwire_node::planes::{BoxOption, KINDS, OptionKind, PlaneKind, PlaneOption, Values};
use quorumwire_paxos_process::BoxPlane;

const PLANE: &str = "plane";

/// What was chosen.
#[derive(Clone, Debug)]
pub struct BoxFlags(pub BoxPlane);

/// Where the common case runs with a kind that has no boxes of its own.
const IN_PROCESS: &str = "in the switch's process, over UDP";

fn boxes_of(kind: &'static PlaneKind) -> &'static [BoxOption] {
    kind.boxes.as_ref().map_or(&[], |boxes| boxes.options)
}

/// The options of a kind that boxes have.
fn options_of(kind: &'static PlaneKind) -> impl Iterator<Item = &'static PlaneOption> {
    let is_named =
        move |option: &&PlaneOption| boxes_of(kind).iter().any(|it| it.name == option.name);
    kind.options.iter().filter(is_named)
}

/// The kinds, the one that runs anywhere first.
fn kinds() -> impl Iterator<Item = &'static PlaneKind> {
    KINDS.iter().copied().rev()
}

fn parser(option: &PlaneOption) -> ValueParser {
    match option.kind {
        OptionKind::Number { min, max } => RangedU64ValueParser::<u64>::from(min..=max).into(),
        OptionKind::Choice(words) => PossibleValuesParser::new(words).into(),
        OptionKind::Text { bytes_max } => ValueParser::new(move |text: &str| {
            let fits = !text.is_empty() && text.len() <= bytes_max;
            let refused = || format!("allowed: 1 to {bytes_max} bytes");
            fits.then(|| text.to_owned()).ok_or_else(refused)
        }),
        OptionKind::Multicast => NonEmptyStringValueParser::new().into(),
    }
}

fn argument(kind: &'static PlaneKind, option: &'static PlaneOption) -> Arg {
    let mut of_boxes = boxes_of(kind).iter();
    let told = of_boxes.find(|it| it.name == option.name);
    let BoxOption { help, unset, .. } = told.expect("boxes have it");
    Arg::new(option.name)
        .long(option.name)
        .value_parser(parser(option))
        .help(format!(
            "With `--plane {}`: {help} [default: {unset}]",
            kind.name
        ))
        .help_heading("Of one plane")
}

impl clap::Args for BoxFlags {
    fn augment_args(command: Command) -> Command {
        let helps = kinds().map(|kind| {
            let help = kind.boxes.as_ref().map_or(IN_PROCESS, |boxes| boxes.help);
            format!("`{}`: {help}", kind.name)
        });
        let helps: Vec<String> = helps.collect();
        let names: Vec<&str> = kinds().map(|kind| kind.name).collect();
        let plane = Arg::new(PLANE)
            .long(PLANE)
            .value_name("PLANE")
            .default_value(names[0])
            .value_parser(PossibleValuesParser::new(names))
            .help(format!(
                "Where the role's common case runs. {}",
                helps.join("; ")
            ));
        kinds().fold(command.arg(plane), |command, kind| {
            options_of(kind).fold(command, |command, option| {
                command.arg(argument(kind, option))
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for BoxFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let chosen = matches.get_one::<String>(PLANE);
        let kind = kinds().find(|kind| Some(kind.name) == chosen.map(String::as_str));
        let kind = kind.expect("only their names are taken");
        for other in kinds().filter(|other| *other != kind) {
            for option in options_of(other) {
                if matches.contains_id(option.name) {
                    let text = format!("--{} is for --plane {}\n", option.name, other.name);
                    return Err(clap::Error::raw(
                        clap::error::ErrorKind::ArgumentConflict,
                        text,
                    ));
                }
            }
        }
        let given = options_of(kind).filter_map(|option| {
            let text = match option.kind {
                OptionKind::Number { .. } => matches.get_one::<u64>(option.name)?.to_string(),
                OptionKind::Choice(_) | OptionKind::Text { .. } | OptionKind::Multicast => {
                    matches.get_one::<String>(option.name)?.clone()
                }
            };
            Some((option.name, text))
        });
        let values: Values = given.collect();
        Ok(Self(BoxPlane { kind, values }))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args as _, FromArgMatches as _};

    fn parsed(words: &[&str]) -> Result<BoxPlane, String> {
        let command = BoxFlags::augment_args(Command::new("switch"));
        let words = ["switch"].iter().chain(words);
        let matches = command.try_get_matches_from(words);
        let flags = matches.and_then(|matches| BoxFlags::from_arg_matches(&matches));
        flags
            .map(|flags| flags.0)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn each_kind_has_its_options_and_no_other_ones() {
        let mut with_options = 0;
        for kind in kinds() {
            let plane = parsed(&["--plane", kind.name]).expect("a kind's name");
            assert_eq!(plane.kind, kind);
            for option in options_of(kind) {
                with_options += 1;
                let value = match option.kind {
                    OptionKind::Number { max, .. } => max.to_string(),
                    OptionKind::Choice(words) => words[0].to_owned(),
                    OptionKind::Text { .. } => "x".to_owned(),
                    OptionKind::Multicast => "239.0.0.1".to_owned(),
                };
                let flag = format!("--{}", option.name);
                let plane = parsed(&["--plane", kind.name, &flag, &value]).expect("allowed");
                assert_eq!(plane.values.text(option.name), Some(&value[..]));
                for other in kinds().filter(|other| *other != kind) {
                    let said = parsed(&["--plane", other.name, &flag, &value]);
                    let said = said.expect_err("not its option");
                    assert!(said.contains(&flag) && said.contains(kind.name), "{said}");
                }
                let long = "x".repeat(1000);
                let said = parsed(&["--plane", kind.name, &flag, &long]).expect_err("too long");
                assert!(said.contains(&flag), "{said}");
            }
        }
        assert!(with_options > 0);
        let command = BoxFlags::augment_args(Command::new("switch"));
        let help = command.term_width(200).render_long_help().to_string();
        for of_servers in ["listen-plane", "replica", "term"] {
            assert!(!help.contains(of_servers), "{help}");
        }
        assert!(parsed(&[]).expect("the default").kind.runs_on_loopback);
        let said = parsed(&["--plane", "other"]).expect_err("no kind");
        assert!(
            said.contains("--plane") && said.contains(KINDS[0].name),
            "{said}"
        );
    }
}
