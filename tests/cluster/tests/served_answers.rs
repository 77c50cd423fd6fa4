//! The real Redis, served by three replicas and asked at all of them, and the same Redis without anything:
//! each command is answered with the same. What cannot be the same stands in `masks.rs`, with its reason.

mod masks;
mod random;
mod resp;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::process::Process;
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::served::{REDIS, wait_for_redis};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use masks::{MASKS, are_same, mask_of};
use random::Commands;
use resp::{Connection, Reply, split};

const SCRIPTS: &str = include_str!("served_answers/scripts.txt");
/// Where Redis serves without us, in the clients' machine.
const BARE: &str = "127.0.0.1:6379";
const PATIENCE: Duration = Duration::from_secs(20);
/// Commands drawn by chance, and how many are sent ahead at most.
const COMMANDS: usize = 5000;
/// So many are drawn again, at most so often, while one was never answered.
const DRAWS_MAX: usize = 6;
const AT_ONCE_MAX: usize = 40;
/// Of so many commands that are sent at once, one time they are a transaction.
const TRANSACTIONS: usize = 6;

/// Commands of Redis' own list that are answered without an error nowhere here, and why.
#[rustfmt::skip]
const NOT_ANSWERED: &[(&str, &str)] = &[
    ("asking", "of clusters of Redis, which this is not"),
    ("bgrewriteaof", "makes a child, which is refused: served_programs.rs"),
    ("bgsave", "makes a child, which is refused: served_programs.rs"),
    ("cluster", "of clusters of Redis, which this is not"),
    ("failover", "of replicas of Redis"),
    ("psync", "of replicas of Redis"),
    ("readonly", "of clusters of Redis, which this is not"),
    ("readwrite", "of clusters of Redis, which this is not"),
    ("sync", "of replicas of Redis"),
];

/// Both, asked the same.
struct Pair<'a> {
    cluster: &'a Cluster<'a>,
    bare: SocketAddr,
    /// How often each command was answered without an error.
    answered: BTreeMap<String, u64>,
    masked: BTreeSet<&'static str>,
}

/// A connection to each: to the one that is served, then to the other.
struct Connections([Connection; 2]);

impl Pair<'_> {
    /// Connections to a replica and to Redis.
    fn connect(&self, replica: u16, version: u8) -> Result<Connections> {
        Ok(Connections([
            Connection::new(self.cluster.redis(replica), version)?,
            Connection::new(self.bare, version)?,
        ]))
    }

    /// Compares what both have answered.
    fn compare(&mut self, words: &[Vec<u8>], [served, bare]: [&Reply; 2]) -> Result<()> {
        let line = words.join(&b' ').escape_ascii().to_string();
        ensure!(
            are_same(words, served, bare),
            "{line}\n  served: {served}\n    bare: {bare}"
        );
        // What nobody asked for is no command's answer.
        if let Some(name) = words.first()
            && !served.is_error()
            && !served.is_queued()
        {
            let name = String::from_utf8_lossy(name);
            *self.answered.entry(name.to_lowercase()).or_default() += 1;
            self.masked
                .extend(mask_of(words).map(|(command, _)| command));
        }
        Ok(())
    }

    /// As [`Self::compare`], with the parts of a transaction's answer each by its command.
    fn compare_transacted(
        &mut self,
        words: &[Vec<u8>],
        queued: &mut Vec<Vec<Vec<u8>>>,
        [served, bare]: [&Reply; 2],
    ) -> Result<()> {
        let name = words.first().map(|it| it.to_ascii_uppercase());
        if served.is_queued() && bare.is_queued() {
            queued.push(words.to_vec());
            return Ok(());
        }
        let queued = match name.as_deref() {
            Some(b"EXEC" | b"DISCARD" | b"RESET") => std::mem::take(queued),
            _ => Vec::new(),
        };
        let are_parts = served.parts.len() == queued.len() && bare.parts.len() == queued.len();
        if queued.is_empty() || !are_parts {
            return self.compare(words, [served, bare]);
        }
        for ((words, served), bare) in queued.iter().zip(&served.parts).zip(&bare.parts) {
            self.compare(words, [served, bare])?;
        }
        *self.answered.entry("exec".into()).or_default() += 1;
        Ok(())
    }

    /// Has both do this, of which no answer is compared.
    fn prepare(&self, line: &str) -> Result<()> {
        let mut both = self.connect(0, 2)?;
        for connection in &mut both.0 {
            let reply = connection.ask(&split(line)?)?;
            ensure!(!reply.is_error(), "{line}: {reply}");
        }
        Ok(())
    }
}

/// The connections of one conversation.
struct Conversation<'p, 'a> {
    pair: &'p mut Pair<'a>,
    each: BTreeMap<char, Connections>,
    queued: BTreeMap<char, Vec<Vec<Vec<u8>>>>,
}

impl Conversation<'_, '_> {
    /// Does what this line says.
    fn go_on(&mut self, line: &str) -> Result<()> {
        let mut letters = line.chars();
        let name = letters.next().context("a connection")?;
        let rest = letters.as_str();
        if !self.each.contains_key(&name) {
            let (number, version) = match name {
                'a'..='c' => (name as u32 - 'a' as u32, 2),
                'x'..='z' => (name as u32 - 'x' as u32 + 1, 3),
                _ => bail!("{name} is no connection"),
            };
            let replica = u16::try_from(number % 3)?;
            let made = self.pair.connect(replica, version)?;
            self.each.insert(name, made);
        }
        let (what, command) = rest.split_once(' ').unwrap_or((rest, ""));
        let commands = [0, 1].map(|number| split(&self.with_ids(command, number)));
        let [served, bare] = commands;
        let commands = [served?, bare?];
        let connections = self.each.get_mut(&name).context("a connection")?;
        match what.split_at_checked(1) {
            None => {
                connections.send(&commands)?;
                self.hear(name, &commands[0])
            }
            Some(("!", "")) => connections.send(&commands),
            Some(("<", "")) => self.hear(name, &[]),
            Some(("?", text)) => connections.until(&commands[0], text),
            Some(("-", "")) => {
                self.each.remove(&name);
                Ok(())
            }
            Some(("$", "")) => connections.end(),
            Some(_) => bail!("{what} is not known"),
        }
    }

    fn hear(&mut self, name: char, words: &[Vec<u8>]) -> Result<()> {
        let connections = self.each.get_mut(&name).context("a connection")?;
        let [served, bare] = connections.hear()?;
        let queued = self.queued.entry(name).or_default();
        self.pair
            .compare_transacted(words, queued, [&served, &bare])
    }

    /// With what each server calls connections.
    fn with_ids(&self, command: &str, server: usize) -> String {
        let mut command = command.to_owned();
        for (name, connections) in &self.each {
            command = command.replace(&format!("{{{name}}}"), &connections.0[server].id);
        }
        command
    }
}

impl Connections {
    fn send(&mut self, commands: &[Vec<Vec<u8>>; 2]) -> Result<()> {
        for (connection, words) in self.0.iter_mut().zip(commands) {
            connection.send(std::slice::from_ref(words))?;
        }
        Ok(())
    }

    fn hear(&mut self) -> Result<[Reply; 2]> {
        let [served, bare] = &mut self.0;
        Ok([
            served.hear().context("of the one that is served")?,
            bare.hear().context("of the one that is not")?,
        ])
    }

    /// Each is asked until it says this.
    fn until(&mut self, words: &[Vec<u8>], text: &str) -> Result<()> {
        for connection in &mut self.0 {
            let end = Instant::now() + PATIENCE;
            loop {
                let reply = connection.ask(words)?.to_string();
                if reply.contains(text) {
                    break;
                }
                ensure!(Instant::now() < end, "{text} was waited for: {reply}");
            }
        }
        Ok(())
    }

    /// Both hang up.
    fn end(&mut self) -> Result<()> {
        for connection in &mut self.0 {
            let more = connection.hear();
            ensure!(more.is_err(), "it goes on: {more:?}");
        }
        Ok(())
    }
}

/// Everything that stands in the file of conversations. One ends at its first difference; the others go on.
fn converse(pair: &mut Pair<'_>) -> Result<()> {
    let mut differences = String::new();
    for text in SCRIPTS.split("\n== ").skip(1) {
        let mut lines = text.lines();
        let title = lines.next().unwrap_or_default();
        let prepared = pair.prepare("FLUSHALL");
        prepared.with_context(|| differences.clone())?;
        let mut conversation = Conversation {
            pair,
            each: BTreeMap::new(),
            queued: BTreeMap::new(),
        };
        for line in lines.filter(|it| !it.is_empty()) {
            if let Err(error) = conversation.go_on(line) {
                writeln!(differences, "{title}: {line}: {error:#}")?;
                break;
            }
        }
    }
    ensure!(differences.is_empty(), "{differences}");
    Ok(())
}

/// Commands drawn by chance, many at once, at all replicas.
fn draw(pair: &mut Pair<'_>, commands: &mut Commands) -> Result<()> {
    let mut each = Vec::new();
    for (replica, version) in [(0, 2), (1, 3), (2, 2), (0, 3)] {
        each.push(pair.connect(replica, version)?);
    }
    let mut left = COMMANDS;
    while left > 0 {
        let count = (1 + commands.number_below(AT_ONCE_MAX)).min(left);
        left -= count;
        let mut batch = Vec::new();
        for _ in 0..count {
            batch.push(commands.next()?);
        }
        if commands.number_below(TRANSACTIONS) == 0 {
            batch.insert(0, split("MULTI")?);
            batch.push(split("EXEC")?);
        }
        let number = commands.number_below(each.len());
        let [served, bare] = &mut each[number].0;
        served.send(&batch)?;
        bare.send(&batch)?;
        let mut queued = Vec::new();
        for words in &batch {
            let replies = [served.hear()?, bare.hear()?];
            pair.compare_transacted(words, &mut queued, [&replies[0], &replies[1]])?;
        }
    }
    Ok(())
}

/// What all hold, without the others.
fn digests(pair: &Pair<'_>) -> Result<BTreeSet<String>> {
    let mut addresses: Vec<_> = (0..3).map(|id| pair.cluster.redis(id)).collect();
    addresses.push(pair.bare);
    let digest = |address| -> Result<String> {
        let mut connection = Connection::new(address, 2)?;
        Ok(connection.ask(&split("DEBUG DIGEST")?)?.to_string())
    };
    addresses.into_iter().map(digest).collect()
}

/// What `run` tells a Redis that is served, as far as its answers show it.
const ALSO_TOLD: [&str; 7] = [
    "--save",
    "",
    "--stop-writes-on-bgsave-error",
    "no",
    "--rename-command",
    "SHUTDOWN",
    "",
];

/// Redis without anything, in the clients' machine.
fn start_bare(cluster: &Cluster<'_>) -> Result<Process> {
    let dir = cluster.scratch_file("bare");
    std::fs::create_dir(&dir)?;
    let dir = dir.display().to_string();
    let [program, arguments @ ..] = REDIS;
    let arguments: Vec<String> = arguments
        .into_iter()
        .chain(["--dir", &dir])
        .chain(ALSO_TOLD)
        .map(ToOwned::to_owned)
        .collect();
    let standard = [Stdio::null(), Stdio::null(), Stdio::null()];
    let process = cluster.start_beside(Path::new(program), &arguments, standard)?;
    cluster.wait_for("Redis without replicas", || {
        Ok(Connection::new(BARE.parse()?, 2).is_ok())
    })?;
    Ok(process)
}

/// Every command that Redis knows was answered without an error, but for those of which it is said why not.
/// No mask is there for nothing.
fn require_all(pair: &Pair<'_>) -> Result<()> {
    let mut connection = Connection::new(pair.bare, 2)?;
    let known = connection.ask(&split("COMMAND LIST")?)?;
    let known = known
        .parts
        .iter()
        .map(|it| String::from_utf8_lossy(&it.text));
    let known: BTreeSet<String> = known
        .filter(|it| !it.contains('|'))
        .map(Into::into)
        .collect();
    let excused: BTreeSet<&str> = NOT_ANSWERED.iter().map(|(name, _)| *name).collect();
    let missing = known
        .iter()
        .filter(|it| !pair.answered.contains_key(*it) && !excused.contains(&***it));
    let missing: Vec<_> = missing.collect();
    ensure!(
        missing.is_empty(),
        "never answered without an error: {missing:?}"
    );
    let without_need: Vec<_> = excused
        .iter()
        .filter(|it| pair.answered.contains_key(**it))
        .collect();
    ensure!(
        without_need.is_empty(),
        "answered all the same: {without_need:?}"
    );
    let unused = MASKS
        .iter()
        .filter(|(command, ..)| !pair.masked.contains(command));
    let unused: Vec<_> = unused.map(|(command, ..)| command).collect();
    ensure!(
        unused.is_empty(),
        "masks of what was never answered: {unused:?}"
    );
    println!(
        "{} commands of {} were answered",
        pair.answered.len(),
        known.len()
    );
    Ok(())
}

#[test]
fn redis_answers_as_it_does_without_replicas() {
    let plan = Plan {
        serves: REDIS.to_vec(),
        ..Plan::new(3, Durability::Memory)
    };
    let mut commands = Commands::new(ChaCha8Rng::seed_from_u64(seed()));
    run_started(plan, |cluster| {
        wait_for_redis(cluster, &[0, 1, 2])?;
        let _bare = start_bare(cluster)?;
        let mut pair = Pair {
            cluster,
            bare: BARE.parse()?,
            answered: BTreeMap::new(),
            masked: BTreeSet::new(),
        };
        let begun = Instant::now();
        converse(&mut pair)?;
        println!("conversations took {:?}", begun.elapsed());
        pair.prepare("FLUSHALL")?;
        for _ in 0..DRAWS_MAX {
            draw(&mut pair, &mut commands)?;
            if require_all(&pair).is_ok() {
                break;
            }
        }
        println!("with those drawn by chance, {:?}", begun.elapsed());
        cluster.wait_for("equal contents", || Ok(digests(&pair)?.len() == 1))?;
        for id in 0..3 {
            let differences = cluster.status(id)?.output_differences;
            ensure!(differences.is_empty(), "{differences:?}");
        }
        require_all(&pair)
    });
}
