//! A program is tried without a cluster: whether it starts, where it listens, whether a client can connect,
//! and whether it saves itself.
use super::check_file;
use super::commands::Commands;
use super::profiles::{is_known, unfit_thread};
use super::program::STEP_NS;
use super::saved::has_saved;
use crate::options::ServedOptions;
use anyhow::{Context as _, anyhow, ensure};
use quorumwire_interpose::{Program, Rings, Said, Sizes, Start, Started};
use quorumwire_replay::TurnEvent;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// How long it has to listen: one that reads much before takes a while.
const LISTENS_WITHIN: Duration = Duration::from_mins(2);
/// By then, and again after as long, it is said that it does not yet.
const SAYS_AFTER: Duration = Duration::from_secs(10);
/// How long it has to save itself.
const SAVES_WITHIN: Duration = Duration::from_secs(20);
/// For how long its process may sleep without seeing that a client has connected, or has gone.
const SLEEPS_FOR: Duration = Duration::from_secs(3);
/// How long it may take from its first port to its first wait for clients.
const WAITS_WITHIN: Duration = Duration::from_secs(5);
/// How long it is watched once it listens.
const WATCHED_FOR: Duration = Duration::from_millis(200);
/// The client's connection, and where it comes from.
const VISITOR: u64 = 1;
const VISITOR_PORT: u16 = 50_000;
/// From turn to turn.
const TURN: Duration = Duration::from_millis(10);

/// What was seen of it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tried {
    /// Where it listens for TCP, and the same for UDP.
    pub listens: BTreeSet<SocketAddr>,
    /// See there.
    pub datagrams: BTreeSet<SocketAddr>,
    /// The name of a program with a profile, if that runs and another file was started: a script that became
    /// it.
    pub known_as: Option<String>,
}

/// Is told that the program listens nowhere yet, and for how many seconds it has run.
pub type SaysThatItWaits = fn(&str, u64);

/// A program that is tried. It ends with this.
struct Trial<'a> {
    program: &'a Program,
    /// Nobody needs to know any more.
    is_over: &'a AtomicBool,
    says: SaysThatItWaits,
    rings: Rings,
    started: Started,
    /// When it began, and the time of day then, in nanoseconds.
    begun: Instant,
    wall_ns: u64,
    turn: u64,
}

/// Looks at its file, starts it in a folder of its own, which is removed, and gives it turns. A client
/// connects to the first port at which it listens, says nothing, and goes: what must not serve clients is
/// found before the log has one that ends all replicas. A program that saves itself does so and begins anew
/// from that. It is killed when `is_over` becomes true.
pub fn try_program(
    served: &ServedOptions,
    is_over: &AtomicBool,
    says: SaysThatItWaits,
) -> anyhow::Result<Tried> {
    let mut served = served.clone();
    check_file(&mut served)?;
    let (file, arguments) = served.command.split_first().context("a command to run")?;
    let folder = tempfile::tempdir().context("a folder to try the program in")?;
    let mut program = Program::of(file, folder.path());
    program.arguments = arguments.to_vec();
    program.is_serial = served.serial_turn_max.is_some();
    let start = || Trial::start(&program, served.allow_outbound, is_over, says);
    let mut trial = start()?;
    let tried = trial.until_it_listens()?;
    if let Some(at) = tried.listens.first() {
        trial.visit(*at)?;
    }
    if served.how_to_save().is_some() {
        match (&served.save_commands, served.save_signal) {
            (Some(commands), _) => {
                let saves = tempfile::tempdir().context("a folder for what the program saves")?;
                let commands = Commands::new(commands, saves.path(), served.save_time_max);
                trial.rest()?;
                commands.snapshot(folder.path(), trial.started.child.id())?;
                drop(trial);
                commands.restore(folder.path())?;
            }
            (None, Some(signal)) => {
                trial.save(signal)?;
                drop(trial);
            }
            (None, None) => {}
        }
        let again = start()?.until_it_listens();
        let again = again.context("begun anew from what it saved")?;
        ensure!(
            again == tried,
            "begun anew, it listens elsewhere: {again:?}"
        );
    }
    Ok(tried)
}

impl<'a> Trial<'a> {
    fn start(
        program: &'a Program,
        allow_outbound: bool,
        is_over: &'a AtomicBool,
        says: SaysThatItWaits,
    ) -> anyhow::Result<Self> {
        let day = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let wall_ns = u64::try_from(day.as_nanos())?;
        let start = Start {
            log_time_ns: wall_ns,
            wall_ns,
            step_ns: STEP_NS,
            key: [7; 32],
            allow_outbound,
        };
        let rings =
            Rings::new(Sizes::default(), &start).context("memory for the program's rings")?;
        let started = program.start(&rings);
        let started =
            started.with_context(|| format!("starting {}", program.file.to_string_lossy()))?;
        Ok(Self {
            program,
            is_over,
            says,
            rings,
            started,
            begun: Instant::now(),
            wall_ns,
            turn: 0,
        })
    }

    fn name(&self) -> Cow<'_, str> {
        self.program.file.to_string_lossy()
    }

    fn now_ns(&self) -> anyhow::Result<u64> {
        Ok(self.wall_ns + u64::try_from(self.begun.elapsed().as_nanos())?)
    }

    /// A moment later, whether it is not refused.
    fn look(&self) -> anyhow::Result<()> {
        thread::sleep(TURN);
        ensure!(!self.is_over.load(Relaxed), "nobody needs to know any more");
        self.check_refusal()
    }

    fn check_refusal(&self) -> anyhow::Result<()> {
        match self.rings.refusal() {
            Some(why) => anyhow::bail!("{} cannot be served: {why}", self.name()),
            None => Ok(()),
        }
    }

    /// Its process has ended while it was to begin.
    fn ended_early(&self, status: ExitStatus) -> anyhow::Error {
        if let Err(refused) = self.check_refusal() {
            return refused;
        }
        let hint = if status.success() {
            "If it goes into the background, tell it to stay: only the process that is started is served"
        } else {
            "It was started in an empty folder of its own, so paths among its arguments and in its configuration must \
             be absolute; what it said stands above"
        };
        anyhow!(
            "{} has ended ({status}), before anybody has asked it for something. {hint}",
            self.name()
        )
    }

    /// What runs as its process, whatever became of the file that was started: why that is not served, if
    /// that is known, and the name of a profile that it has and that was not found.
    fn look_at_process(&self) -> anyhow::Result<Option<String>> {
        let process = format!("/proc/{}", self.started.child.id());
        let threads = fs::read_dir(format!("{process}/task"))
            .into_iter()
            .flatten();
        let names = threads
            .flatten()
            .map(|it| fs::read_to_string(it.path().join("comm")));
        let unfit = names.flatten().find_map(|name| unfit_thread(&name));
        if let Some(why) = unfit {
            anyhow::bail!("{} cannot be served: {why}", self.name());
        }
        if is_known(&self.program.file) {
            return Ok(None);
        }
        let name = fs::read_to_string(format!("{process}/comm")).unwrap_or_default();
        let name = name.trim_end();
        Ok(is_known(OsStr::new(name)).then(|| name.to_owned()))
    }

    /// A client connects there, says that it sends no more, and goes.
    fn visit(&mut self, at: SocketAddr) -> anyhow::Result<()> {
        let ip = match at.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
        };
        let accept = TurnEvent::Accept {
            connection: VISITOR,
            peer: SocketAddr::new(ip, VISITOR_PORT),
            own: SocketAddr::new(ip, at.port()),
        };
        let end = TurnEvent::End {
            connection: VISITOR,
        };
        let reset = TurnEvent::Reset {
            connection: VISITOR,
        };
        let mut has_closed = false;
        for event in [accept, end, reset] {
            let (mut is_given, mut works) = (false, (None, Instant::now()));
            if has_closed {
                break;
            }
            while !(is_given && self.rings.turn_done() == self.turn) {
                if !is_given && self.rings.has_room() {
                    self.turn += 1;
                    let now = self.now_ns()?;
                    is_given = self.rings.give(self.turn, now, now, &[event]);
                }
                self.look()?;
                while let Some((_, said)) = self.rings.take()? {
                    has_closed |= matches!(said, Said::Close { .. });
                }
                if let Some(status) = self.started.child.try_wait()? {
                    self.check_refusal()?;
                    anyhow::bail!(
                        "{} has ended ({status}) when a client connected, or went",
                        self.name()
                    );
                }
                let worked = self.worked();
                if worked.is_none() || worked != works.0 {
                    works = (worked, Instant::now());
                }
                ensure!(
                    works.1.elapsed() < SLEEPS_FOR,
                    "{} does not see that a client has connected, or has gone: its process sleeps. The process that \
                     is started must serve clients, and no child of it (nginx: `master_process off`)",
                    self.name()
                );
            }
        }
        Ok(())
    }

    /// How much its process has computed, if it sleeps now.
    fn worked(&self) -> Option<u64> {
        let path = format!("/proc/{}/stat", self.started.child.id());
        let text = fs::read_to_string(path).ok()?;
        // The name, which is in parentheses, may have spaces. The state stands behind it.
        let (_, behind) = text.rsplit_once(") ")?;
        let words: Vec<&str> = behind.split(' ').collect();
        let ticks = |number: usize| words.get(number)?.parse::<u64>().ok();
        (words.first() == Some(&"S")).then_some(ticks(11)? + ticks(12)?)
    }

    /// Gives it a turn, if it has taken those before.
    fn give_turn(&mut self) -> anyhow::Result<()> {
        self.look()?;
        if self.rings.has_room() {
            self.turn += 1;
            let now = self.now_ns()?;
            self.rings.give(self.turn, now, now, &[]);
        }
        Ok(())
    }

    /// Where it listens, once it has been watched for long enough.
    fn until_it_listens(&mut self) -> anyhow::Result<Tried> {
        let (mut tried, mut listens_since) = (Tried::default(), None);
        let mut says_at = SAYS_AFTER;
        // On a busy machine it takes a while from one port to the next: it waits for clients when it has all.
        let is_watched = |since: Instant, has_waited: bool| {
            let least = if has_waited {
                WATCHED_FOR
            } else {
                WAITS_WITHIN
            };
            since.elapsed() >= least
        };
        while !listens_since.is_some_and(|it| is_watched(it, self.rings.turn_done() > 0)) {
            self.give_turn()?;
            if let Some(status) = self.started.child.try_wait()? {
                return Err(self.ended_early(status));
            }
            while let Some((_, said)) = self.rings.take()? {
                tried.hear(&said);
            }
            if !tried.listens.is_empty() || !tried.datagrams.is_empty() {
                listens_since.get_or_insert_with(Instant::now);
            }
            let waits = listens_since.is_none();
            if waits && self.begun.elapsed() >= says_at {
                says_at += SAYS_AFTER;
                (self.says)(&self.name(), self.begun.elapsed().as_secs());
            }
            ensure!(
                !waits || self.begun.elapsed() < LISTENS_WITHIN,
                "{} listens nowhere, {} s after its start, and is not served: it must listen at a port \
                 within that time, by TCP or UDP",
                self.name(),
                LISTENS_WITHIN.as_secs()
            );
        }
        // What it said before it waited.
        while let Some((_, said)) = self.rings.take()? {
            tried.hear(&said);
        }
        tried.known_as = self.look_at_process()?;
        Ok(tried)
    }

    /// Waits until it has done what it was given.
    fn rest(&mut self) -> anyhow::Result<()> {
        let since = Instant::now();
        while self.rings.turn_done() != self.turn {
            thread::sleep(TURN);
            ensure!(
                since.elapsed() < SAVES_WITHIN,
                "{} has not come to rest in {} s",
                self.name(),
                SAVES_WITHIN.as_secs()
            );
            while self.rings.take()?.is_some() {}
        }
        Ok(())
    }

    /// Has it save itself and end.
    fn save(&mut self, signal: u8) -> anyhow::Result<()> {
        self.turn += 1;
        let (now, told_at) = (self.now_ns()?, Instant::now());
        self.rings.give_signal(self.turn, now, now, signal);
        let status = loop {
            if let Some(status) = self.started.child.try_wait()? {
                break status;
            }
            ensure!(
                told_at.elapsed() < SAVES_WITHIN,
                "{} was told to save itself and to end, and has not in {} s: see option save-signal",
                self.name(),
                SAVES_WITHIN.as_secs()
            );
            self.give_turn()?;
            while self.rings.take()?.is_some() {}
        };
        has_saved(&self.name(), status, &self.program.folder)
    }
}

impl Tried {
    const fn of(&mut self, is_datagrams: bool) -> &mut BTreeSet<SocketAddr> {
        if is_datagrams {
            &mut self.datagrams
        } else {
            &mut self.listens
        }
    }

    fn hear(&mut self, said: &Said<'_>) {
        match *said {
            Said::Listen { at, is_datagrams } => {
                self.of(is_datagrams).insert(at);
            }
            Said::Unlisten { at, is_datagrams } => {
                self.of(is_datagrams).remove(&at);
            }
            Said::Data { .. } | Said::Shut { .. } | Said::Close { .. } | Said::Datagram { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that listens nowhere would be waited for.
    #[test]
    fn a_trial_ends_when_nobody_needs_it_any_more() {
        let served = ServedOptions {
            command: ["sleep", "1000"].map(Into::into).to_vec(),
            ..ServedOptions::default()
        };
        let begun = Instant::now();
        let error = try_program(&served, &AtomicBool::new(true), |_, _| {}).unwrap_err();
        assert!(format!("{error:#}").contains("nobody needs"), "{error:#}");
        assert!(begun.elapsed() < SAYS_AFTER);
    }
}
