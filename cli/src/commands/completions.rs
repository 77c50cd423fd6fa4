//! `quorumwire completions`: what a shell needs to complete this command's arguments.
use crate::output;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory as _};
use clap_complete::Shell;
use quorumwire_node::options::{Kind, TABLE};
use std::process::ExitCode;

/// Write completions for a shell to standard output.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  quorumwire completions bash >/usr/share/bash-completion/completions/quorumwire
  quorumwire completions zsh  >/usr/local/share/zsh/site-functions/_quorumwire
  quorumwire completions fish >~/.config/fish/completions/quorumwire.fish
The Debian package brings those for bash, zsh and fish.")]
pub struct Arguments {
    /// Which shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Writes them.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    output::answer_bytes(&script(arguments.shell))?;
    Ok(ExitCode::SUCCESS)
}

fn script(shell: Shell) -> Vec<u8> {
    let mut command = super::Cli::command()
        .mut_subcommand("server", with_words)
        .mut_subcommand("config", |config| {
            config.mut_subcommand("check", with_words)
        });
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "quorumwire", &mut script);
    script
}

/// The options of the table, with the words that each takes. The command line itself knows them as text, so
/// that a wrong word is refused alike wherever it comes from.
fn with_words(command: Command) -> Command {
    command.mut_args(|argument: Arg| {
        let spec = TABLE.iter().find(|spec| argument.get_id() == spec.name);
        match spec.map(|spec| spec.kind) {
            Some(Kind::Choice(words)) => argument.value_parser(PossibleValuesParser::new(words)),
            Some(_) | None => argument,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_completes_every_option_of_the_table() {
        for shell in [
            Shell::Bash,
            Shell::Zsh,
            Shell::Fish,
            Shell::Elvish,
            Shell::PowerShell,
        ] {
            let script = String::from_utf8(script(shell)).unwrap();
            for spec in TABLE.iter() {
                // Each shell has a syntax of its own for it.
                assert!(script.contains(spec.name), "{shell}: {}", spec.name);
                // The one for bash has no place for help, and the others quote what `-h` says.
                let begins = spec
                    .help
                    .split([':', '`', '\'', '[', ']', ',', '.', ';', '('])
                    .next()
                    .unwrap()
                    .trim();
                let has_help = shell == Shell::Bash || script.contains(begins);
                assert!(has_help, "{shell}: no help for {}", spec.name);
                if let Kind::Choice(words) = spec.kind
                    && shell == Shell::Bash
                {
                    let words = format!("\"{}\"", words.join(" "));
                    assert!(script.contains(&words), "{}: {words}", spec.name);
                }
            }
        }
    }
}
