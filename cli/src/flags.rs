//! The server's options as arguments of a command: all of the table, with their help.
mod help;

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};
use help::{heading, in_short, is_for_most};
use quorumwire_node::options::{CONFIG, Flags, Kind, Spec, TABLE};

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
        for spec in std::iter::once(&CONFIG).chain(TABLE.iter()) {
            if let Some(text) = matches.get_one::<String>(spec.name) {
                self.0.0.insert(spec.name, text.clone());
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
