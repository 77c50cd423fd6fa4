//! `quorumwire config`: what a server's configuration would be, and its documentation.
use super::status::columns;
use crate::flags::ServerFlags;
use quorumwire_node::options::{
    Flags, ServerOptions, Serves, Value, documentation, resolve, unknown_variables,
};
use quorumwire_ops::http::metrics_documentation;
use std::io::{self, ErrorKind};
use std::process::ExitCode;

/// Check a server's configuration without starting it.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show what would hold and where it comes from; exit code 2 and all reasons if a server would refuse it
    /// or its files
    #[command(after_help = "\
Example:
  quorumwire config check --config /etc/quorumwire.toml --log-level debug")]
    Check(ServerFlags),
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
        Command::Check(flags) => return check(flags),
        Command::Docs { page } => match page {
            Page::Configuration => out!("{}", documentation())?,
            Page::Metrics => out!("{}", metrics_documentation()?)?,
        },
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows what holds, and says everything that is wrong with files and user.
fn check(flags: &ServerFlags) -> anyhow::Result<ExitCode> {
    let flags = Flags(flags.0.0.clone(), Serves::Either);
    let values = resolve(&flags, &|variable| std::env::var_os(variable))?;
    let options = ServerOptions::from_values(&values)?;
    for warning in unknown_variables(std::env::vars_os().map(|(name, _)| name)) {
        errln!("warning: {warning}");
    }
    out!("{}", shown(&values))?;
    let mut code = ExitCode::SUCCESS;
    for fault in options.file_faults() {
        if is_barred(&fault) {
            errln!("warning: not checked, which only the server's user can: {fault:#}");
        } else {
            errln!("error: {fault:#}");
            code = ExitCode::from(2);
        }
    }
    Ok(code)
}

/// Whether this process may not read what the server's user may.
fn is_barred(fault: &anyhow::Error) -> bool {
    let mut causes = fault
        .chain()
        .filter_map(|it| it.downcast_ref::<io::Error>());
    causes.any(|error| error.kind() == ErrorKind::PermissionDenied)
}

fn shown(values: &[Value]) -> String {
    let rows = values.iter().map(|value| {
        let text = value.text.as_deref();
        let shown = text.map_or_else(|| format!("({})", value.spec.unset_text()), str::to_owned);
        vec![value.spec.name.to_owned(), value.origin.to_string(), shown]
    });
    let rows: Vec<_> = rows.collect();
    columns(&rows)
}
