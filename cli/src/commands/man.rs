//! `quorumwire man`: manual pages, of the command itself and of each command below it.
use crate::output;
use anyhow::Context as _;
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The section of a user's commands.
const SECTION: &str = "1";

/// Write the manual page of the command, or with DIR all pages as files.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  quorumwire man | man -l -
  quorumwire man --dir /usr/local/share/man/man1
The Debian package brings all of them.")]
pub struct Arguments {
    /// Write one file for each command into this folder, which is made if missing
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Writes the pages.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let pages = pages();
    let Some(dir) = &arguments.dir else {
        let (_, page) = pages.first().context("the command itself has a page")?;
        output::answer_bytes(page)?;
        return Ok(ExitCode::SUCCESS);
    };
    fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    for (name, page) in &pages {
        write(&dir.join(format!("{name}.{SECTION}")), page)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, page: &[u8]) -> anyhow::Result<()> {
    fs::write(path, page).with_context(|| format!("writing {}", path.display()))
}

/// Each page with its name, the command's own first.
fn pages() -> Vec<(String, Vec<u8>)> {
    let mut root = super::Cli::command().disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    collect(&root, "quorumwire", &mut pages);
    pages
}

fn collect(command: &Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) {
    let below = || command.get_subcommands().filter(|it| !it.is_hide_set());
    let mut page = Vec::new();
    render(command, name, &mut page).expect("a Vec takes all that is written");
    page.extend_from_slice(see_also(name, below()).as_bytes());
    pages.push((name.to_owned(), page));
    for one in below() {
        collect(one, &format!("{name}-{}", one.get_name()), pages);
    }
}

fn render(command: &Command, name: &str, page: &mut Vec<u8>) -> io::Result<()> {
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .section(SECTION)
        .manual("Quorumwire")
        .source(format!("quorumwire {}", env!("CARGO_PKG_VERSION")));
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    if command.get_arguments().any(|it| !it.is_hide_set()) {
        man.render_options_section(page)?;
    }
    if command.get_subcommands().any(|it| !it.is_hide_set()) {
        man.render_subcommands_section(page)?;
    }
    match command.get_after_help() {
        Some(text) => notes(&text.to_string()).to_writer(page),
        None => Ok(()),
    }
}

/// What stands behind the options, line by line as it is.
fn notes(text: &str) -> Roff {
    let (heading, rest) = match text.split_once('\n') {
        Some(("Example:" | "Examples:", rest)) => ("EXAMPLES", rest),
        Some(_) | None => ("NOTES", text),
    };
    let mut section = Roff::new();
    section.control("SH", [heading]).control("nf", []);
    for line in rest.lines() {
        section.text([roman(line)]);
    }
    section.control("fi", []);
    section
}

/// Where to read on: at the pages below this one, and above it.
fn see_also<'a>(name: &str, below: impl Iterator<Item = &'a Command>) -> String {
    let above = name.rsplit_once('-').map(|(above, _)| above.to_owned());
    let below = below.map(|one| format!("{name}-{}", one.get_name()));
    let all = above.into_iter().chain(below);
    let all: Vec<String> = all
        .map(|page| format!("\\fB{}\\fR({SECTION})", page.replace('-', "\\-")))
        .collect();
    if all.is_empty() {
        String::new()
    } else {
        format!(".SH \"SEE ALSO\"\n{}\n", all.join(", "))
    }
}

#[cfg(test)]
#[path = "man_test.rs"]
mod tests;
