//! The server's options as arguments of a command: all of the table, with their help.
mod boxes;
mod help;

pub use boxes::BoxFlags;

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};
use help::{heading, in_short, is_for_most};
use quorumwire_node::options::{CONFIG, Flags, Kind, Serves, Spec, TABLE};

/// The options that were given as flags.
#[derive(Clone, Debug, Default)]
pub struct ServerFlags(pub Flags);

impl clap::Args for ServerFlags {
    fn augment_args(command: Command) -> Command {
        std::iter::once(&CONFIG)
            .chain(TABLE.iter())
            .fold(command, |command, spec| command.arg(argument(spec)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for ServerFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let all = std::iter::once(&CONFIG).chain(TABLE.iter());
        take(all, matches, &mut self.0);
        Ok(())
    }
}

/// Those of a server that serves a program: without what only the store has.
#[derive(Clone, Debug, Default)]
pub struct ProgramFlags(pub Flags);

/// What a server of the store has and one of a program has not, with what these are told nevertheless: an
/// address that is in no other's way, and that requests are passed on.
const OF_STORE: &[(&str, Option<&str>)] = &[
    ("listen-memcached", Some("127.0.0.1:0")),
    ("listen-redis", Some("127.0.0.1:0")),
    ("memcached-udp", Some("false")),
    ("advertise-memcached", None),
    ("advertise-redis", None),
    ("plane-reads", None),
    ("client-auth-file", None),
    ("on-follower", Some("forward")),
    ("reads", None),
    ("memory-limit-mib", None),
    ("memory-policy", None),
    ("learners", None),
    ("values-mib", None),
];

fn of_programs() -> impl Iterator<Item = &'static Spec> {
    let is_of_store = |spec: &Spec| OF_STORE.iter().any(|(name, _)| *name == spec.name);
    let all = std::iter::once(&CONFIG).chain(TABLE.iter());
    all.filter(move |spec| !is_of_store(spec))
}

impl clap::Args for ProgramFlags {
    fn augment_args(command: Command) -> Command {
        of_programs().fold(command, |command, spec| command.arg(argument(spec)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for ProgramFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        take(of_programs(), matches, &mut self.0);
        self.0.1 = Serves::Program;
        for (name, told) in OF_STORE {
            if let Some(told) = told {
                self.0.0.insert(name, (*told).to_owned());
            }
        }
        Ok(())
    }
}

/// The flags of these options that were given.
fn take(specs: impl Iterator<Item = &'static Spec>, matches: &ArgMatches, flags: &mut Flags) {
    for spec in specs {
        if let Some(text) = matches.get_one::<String>(spec.name) {
            flags.0.insert(spec.name, text.clone());
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args as _, FromArgMatches as _};

    #[test]
    fn a_program_has_no_options_of_the_store() {
        for (name, _) in OF_STORE {
            assert!(TABLE.iter().any(|spec| spec.name == *name), "{name}");
            let command = ProgramFlags::augment_args(Command::new("run"));
            let given = command.try_get_matches_from(["run", &format!("--{name}"), "on"]);
            let said = given.unwrap_err().to_string();
            assert!(said.contains(&format!("--{name}")), "{said}");
        }
        let command = ProgramFlags::augment_args(Command::new("run"));
        // The port that servers of the store give to Redis clients by default.
        let words = [
            "run",
            "--id",
            "0",
            "--dir",
            "d",
            "--members",
            "0=127.0.0.1:1",
            "--listen-client",
            "127.0.0.1:6379",
        ];
        let given = command.try_get_matches_from(words).unwrap();
        ProgramFlags::from_arg_matches(&given)
            .unwrap()
            .0
            .check()
            .unwrap();
    }
}
