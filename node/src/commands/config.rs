//! `quorumwire config`: what a server's configuration would be, and its documentation.
use crate::http::metrics_documentation;
use crate::options::{Flags, ServerOptions, documentation, resolve};
use std::process::ExitCode;

/// Check a server's configuration without starting it.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show what would hold and where it comes from; exit code 2 and the reason if it makes no sense
    #[command(after_help = "\
Example:
  quorumwire config check --config /etc/quorumwire.toml --log-level debug")]
    Check(Flags),
    /// Print docs/configuration.md or docs/metrics.md
    #[command(hide = true)]
    Docs {
        #[arg(value_enum, default_value = "configuration")]
        page: Page,
    },
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Page {
    Configuration,
    Metrics,
}

/// Checks or documents.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        Command::Check(flags) => check(flags)?,
        Command::Docs { page } => match page {
            Page::Configuration => out!("{}", documentation())?,
            Page::Metrics => out!("{}", metrics_documentation()?)?,
        },
    }
    Ok(ExitCode::SUCCESS)
}

fn check(flags: &Flags) -> anyhow::Result<()> {
    let values = resolve(flags, &|variable| std::env::var_os(variable))?;
    ServerOptions::from_values(&values)?;
    for value in &values {
        let text = value.text.as_deref();
        let shown = text.map_or_else(|| format!("({})", value.spec.unset_text()), str::to_owned);
        outln!("{:<22} {:<44} {}", value.spec.name, shown, value.origin)?;
    }
    Ok(())
}
