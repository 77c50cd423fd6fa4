//! `quorumwire top`: what a cluster does, second by second, in a terminal. A thread asks the replicas; this
//! one draws and reads keys, so that a replica that does not answer delays neither.
pub mod screen;

use super::interrupt::{Input, Interrupt, has_gone};
use super::view::{ClusterView, ReplicaView, Target};
use crate::output;
use anyhow::{Context as _, bail};
use crossterm::Command as _;
use crossterm::cursor::Show;
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::terminal::{LeaveAlternateScreen, disable_raw_mode};
use quorumwire_ops::live::{LiveCluster, LiveDocument, Observation, REPORT_TIMEOUT, TICK};
use ratatui::DefaultTerminal;
use ratatui::layout::Rect;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use screen::Screen;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal as _, stdin, stdout};
use std::mem::ManuallyDrop;
use std::os::fd::AsFd as _;
use std::process::{self, ExitCode};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long a wait for keys may take until signals and documents are looked at again.
const KEY_WAIT: Duration = Duration::from_millis(100);
/// Keys and sizes taken in until the screen is drawn again.
const EVENTS_MAX: usize = 64;
/// How long an end in good order may take.
const END_WAIT_MAX: Duration = Duration::from_secs(1);
/// Documents that may wait to be shown.
const DOCUMENTS_WAITING_MAX: usize = 2;

/// Asks every replica each second. The same figures in a browser: `http://` and a replica's HTTP address.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Keys: q or Ctrl-C to leave, ? for help.

Examples:
  quorumwire top --dir /tmp/try            # a cluster started by `quorumwire dev --dir /tmp/try`
  quorumwire top --addr 10.0.0.10:7480     # by any replica")]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
}

/// Shows it until it is told to stop.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if !stdin().is_terminal() || !stdout().is_terminal() {
        bail!("top needs a terminal for keys and screen; without one: `quorumwire status`");
    }
    let first = arguments.target.addresses()?;
    let interrupt = Interrupt::listen_and(Input::Ends, |_| end_by_force())?;
    let (documents_in, documents) = sync_channel(DOCUMENTS_WAITING_MAX);
    thread::Builder::new()
        .name("asker".to_owned())
        .spawn(move || watch(&first, &documents_in))?;
    // Also puts the terminal back when something panics.
    let terminal = ratatui::try_init().context("preparing the terminal")?;
    // Dropped it would show the cursor, and panic where that cannot be.
    let mut terminal = ManuallyDrop::new(terminal);
    let shown = show(&mut terminal, &documents, &interrupt);
    let restored = terminal
        .show_cursor()
        .and_then(|()| ratatui::try_restore())
        .context("putting the terminal back");
    if !interrupt.has_come() && !has_gone(&stdin()) {
        shown.and(restored)?; // else there may be nothing to draw on, and nothing to put back
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends the process if it does not end by itself: a terminal that stands still is waited for, and `crossterm`
/// reads one that has gone for ever.
fn end_by_force() {
    thread::sleep(END_WAIT_MAX);
    disable_raw_mode().ok();
    let mut restored = String::new();
    for written in [
        LeaveAlternateScreen.write_ansi(&mut restored),
        Show.write_ansi(&mut restored),
    ] {
        written.ok(); // a String takes everything
    }
    // Not by `stdout()`, which whoever waits for the terminal has locked.
    let out = stdout();
    if output::is_writable(out.as_fd()) {
        rustix::io::write(out.as_fd(), restored.as_bytes()).ok();
    }
    process::exit(0)
}

/// Draws whenever there is something new, until a key or a signal says to stop.
fn show(
    terminal: &mut DefaultTerminal,
    documents: &Receiver<LiveDocument>,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let mut screen = Screen::default();
    while !interrupt.has_come() && !has_gone(&stdin()) {
        loop {
            match documents.try_recv() {
                Ok(document) => screen.take(document),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => bail!("the thread that asks has ended"),
            }
        }
        terminal.draw(|frame| screen.draw(frame))?; // writes what has changed only
        if !take_events(&mut screen, terminal)? {
            break;
        }
    }
    Ok(())
}

/// Waits a moment for keys and new sizes, and takes them in; whether to go on.
fn take_events(screen: &mut Screen, terminal: &mut DefaultTerminal) -> anyhow::Result<bool> {
    if !wait_for_input(KEY_WAIT) {
        return Ok(true); // what `crossterm` would read is nothing, again and again
    }
    for _ in 0..EVENTS_MAX {
        if !event::poll(Duration::ZERO)? {
            break;
        }
        let event = event::read()?;
        if matches!(event, Event::Resize(..)) {
            // What a terminal leaves of the old size is its own choice, also if that size is back by now.
            let size = terminal.size()?;
            terminal.resize(Rect::new(0, 0, size.width, size.height))?;
        }
        if !screen.goes_on(&event) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Waits for a key, or for a signal, such as that of a new size; false if the terminal has gone.
fn wait_for_input(at_most: Duration) -> bool {
    let keys = stdin();
    let mut asked = [PollFd::new(&keys, PollFlags::IN)];
    let at_most = Timespec::try_from(at_most).unwrap_or_default();
    // Fails when a signal comes.
    poll(&mut asked, Some(&at_most)).ok();
    !asked[0]
        .revents()
        .intersects(PollFlags::HUP | PollFlags::ERR)
}

impl Screen {
    /// Takes in a key or a new size; whether to go on.
    fn goes_on(&mut self, event: &Event) -> bool {
        let Event::Key(key) = event else {
            return true;
        };
        if key.kind == KeyEventKind::Release {
            return true;
        }
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "crossterm's keys are many, ours are few"
        )]
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return false,
            KeyCode::Char('q') => return false,
            KeyCode::Char('?' | 'h') => self.turn_help(),
            KeyCode::Esc => self.hide_help(),
            _ => {}
        }
        true
    }
}

/// Asks every second, until nobody takes what is found.
fn watch(first: &[(Option<u16>, String)], documents: &SyncSender<LiveDocument>) {
    let mut cluster = LiveCluster::default();
    loop {
        let begun = Instant::now();
        let document = observe(first, &mut cluster);
        if documents.send(document).is_err() {
            return;
        }
        thread::sleep(TICK.saturating_sub(begun.elapsed()));
    }
}

fn observe(first: &[(Option<u16>, String)], cluster: &mut LiveCluster) -> LiveDocument {
    let before = cluster.addresses();
    let before: Vec<_> = before
        .map(|(id, http)| (Some(id), http.to_owned()))
        .collect();
    let known: BTreeSet<&String> = before.iter().map(|(_, http)| http).collect();
    // Those that were given go on being asked: the first may be the last to be left.
    let given = first.iter().filter(|(_, http)| !known.contains(http));
    let addresses = before.iter().chain(given).cloned().collect();
    let view = ClusterView::gather_from(addresses, REPORT_TIMEOUT);
    let is_known = !view.replicas.is_empty();
    let strangers = view.strangers;
    let seen = view.replicas.into_iter().map(|(id, seen)| match seen {
        ReplicaView::Report(report) => (id, Ok(*report)),
        ReplicaView::Unreachable(reason) => (id, Err(reason)),
    });
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut document = cluster.observe(Observation {
        at: Instant::now(),
        time_ms: time.map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX)),
        made_by: None,
        seen: seen.collect::<BTreeMap<_, _>>(),
    });
    if !is_known {
        document.add_strangers(strangers);
    }
    document
}

#[cfg(test)]
#[path = "top/keys_test.rs"]
mod tests;
