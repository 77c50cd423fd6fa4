//! Programs written for libpaxos 3, built against the installed libquorumwire-evpaxos: a counter, a chat log,
//! and a benchmark, of which each replica is killed once.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::c_programs::{
    Program, compile, install, lines, repository, start, succeed,
};
use quorumwire_cluster_tests::disk::Scratch;
use quorumwire_cluster_tests::network::NAME_PREFIX;
use quorumwire_cluster_tests::waiting::wait_within;

const REPLICAS: usize = 3;
const DEADLINE: Duration = Duration::from_mins(1);
/// As in the file that comes with libpaxos.
const FIRST_PORT: u16 = 8800;
const FIRST_PROPOSERS_PORT: u16 = 5550;

/// Three replicas of one program.
struct World {
    scratch: Scratch,
    address: Ipv4Addr,
    programs: BTreeMap<usize, Program>,
}

impl World {
    /// Installs the library.
    fn new(name: &str) -> Result<Self> {
        static WORLDS: AtomicU8 = AtomicU8::new(1);
        let world = WORLDS.fetch_add(1, Ordering::Relaxed);
        // An address of its own, so that it can have the usual ports.
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let address = Ipv4Addr::new(127, 64 + world, high, low.clamp(1, 254));
        let scratch = Scratch::new(&format!("{NAME_PREFIX}-{}-{name}", std::process::id()))?;
        let world = Self {
            scratch,
            address,
            programs: BTreeMap::new(),
        };
        install(&world.path("prefix"))?;
        Ok(world)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn compile(&self, name: &str) -> Result<PathBuf> {
        let source = format!("tests/cluster/tests/libpaxos/{name}.c");
        let compiler = ["cc", "-std=gnu99"];
        compile(
            &self.path("prefix"),
            "quorumwire-evpaxos",
            &compiler,
            &source,
            name,
        )
    }

    /// The same under the address sanitizer, the library's C with it. A program that leaves something
    /// behind when it ends fails.
    fn compile_checked(&self, name: &str) -> Result<PathBuf> {
        let prefix = self.path("prefix");
        let evpaxos = repository().join("client/c/evpaxos");
        let mut config = Command::new("pkg-config");
        config.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
        let flags = succeed(config.args(["--static", "--libs", "quorumwire"]))?;
        // What the library's C calls is seen in the archive only.
        let archive = prefix.join("lib/libquorumwire.a").display().to_string();
        let flags = flags.replace("-lquorumwire", &archive);
        let libevent =
            succeed(Command::new("pkg-config").args(["--cflags", "--libs", "libevent"]))?;
        let program = self.path(&format!("{name}-checked"));
        let mut build = Command::new("cc");
        build.args(["-std=gnu99", "-g", "-fsanitize=address,undefined"]);
        build.args(["-fno-sanitize-recover=all", "-D_POSIX_C_SOURCE=200809L"]);
        build.arg("-I").arg(&evpaxos);
        build.args(["evpaxos.c", "config.c", "log.c"].map(|it| evpaxos.join(it)));
        let source = format!("tests/cluster/tests/libpaxos/{name}.c");
        build.arg(repository().join(source)).arg("-o").arg(&program);
        build.args(flags.split_whitespace());
        succeed(build.args(libevent.split_whitespace()))?;
        Ok(program)
    }

    /// A file with these roles, and some more lines.
    fn configure(&self, roles: &[(&str, u16)], more: &str) -> Result<String> {
        let mut text = b"# as it comes with libpaxos\n\n".to_vec();
        for (role, port) in roles {
            for (id, port) in (0..REPLICAS).zip(*port..) {
                writeln!(text, "{role} {id} {} {port}", self.address)?;
            }
        }
        let file = self.path("paxos.conf");
        text.extend_from_slice(more.as_bytes());
        fs::write(&file, text)?;
        Ok(file.display().to_string())
    }

    /// What a replica prints from its last start on.
    fn said(&self, id: usize) -> PathBuf {
        self.path(&format!("said-{id}"))
    }

    fn start(&mut self, program: &Path, id: usize, arguments: &[&str]) -> Result<()> {
        let number = id.to_string();
        let arguments = [&[&number[..]], arguments].concat();
        let said = self.said(id);
        if let Ok(before) = fs::read(&said) {
            let all = self.path(&format!("said-before-{id}"));
            fs::write(all, before)?;
        }
        self.programs.insert(id, start(program, &arguments, &said)?);
        Ok(())
    }

    /// Lines of values, by number.
    fn numbered(&self, id: usize) -> Result<BTreeMap<u64, String>> {
        let mut numbered = BTreeMap::new();
        for line in lines(&self.said(id))? {
            let value = line.strip_prefix("value ");
            if let Some((number, rest)) = value.and_then(|it| it.split_once(' ')) {
                let twice = numbered.insert(number.parse()?, rest.to_owned());
                ensure!(twice.is_none(), "replica {id}: {number} twice");
            }
        }
        Ok(numbered)
    }

    fn wait_for_number(&self, id: usize, number: u64) -> Result<()> {
        wait_within(&format!("{number} at replica {id}"), DEADLINE, || {
            let last = self.numbered(id)?.last_key_value().map(|it| *it.0);
            Ok(last.is_some_and(|it| it >= number))
        })
        .with_context(|| fs::read_to_string(self.said(id)).unwrap_or_default())
    }

    /// After a start that was not the first.
    fn wait_until_it_votes(&self, id: usize) -> Result<()> {
        let said = self.said(id);
        wait_within(&format!("a vote of replica {id}"), DEADLINE, || {
            Ok(fs::read_to_string(&said)?.contains("the acceptor was let in"))
        })
        .with_context(|| fs::read_to_string(&said).unwrap_or_default())
    }

    fn last_number(&self, id: usize) -> Result<u64> {
        Ok(self.numbered(id)?.last_key_value().map_or(0, |it| *it.0))
    }

    /// Whatever two of them have printed of one number is the same.
    fn must_agree(&self) -> Result<BTreeMap<u64, String>> {
        let mut all = BTreeMap::new();
        for id in 0..REPLICAS {
            for (number, text) in self.numbered(id)? {
                let before = all.entry(number).or_insert_with(|| text.clone());
                ensure!(*before == text, "{number}: {before}, {text}");
            }
        }
        Ok(all)
    }
}

#[test]
fn a_counter_goes_on_from_its_file_while_each_replica_is_killed_once() -> Result<()> {
    let mut world = World::new("counter")?;
    let counter = world.compile("counter")?;
    let file = world.configure(&[("replica", FIRST_PORT)], "verbosity debug\n")?;
    let states: Vec<_> = (0..REPLICAS)
        .map(|id| world.path(&format!("state-{id}")).display().to_string())
        .collect();
    for (id, state) in states.iter().enumerate() {
        world.start(&counter, id, &[&file, state])?;
    }
    let mut all = BTreeMap::new();
    for (id, state) in states.iter().enumerate() {
        let other = (id + 1) % REPLICAS;
        let next = world.last_number(other)? + 200;
        world.wait_for_number(other, next)?;
        world.wait_for_number(id, next)?;
        for (number, text) in world.must_agree()? {
            let before = all.insert(number, text.clone());
            ensure!(before.is_none_or(|it| it == text), "{number} has changed");
        }
        world.programs.remove(&id);
        world.wait_for_number(other, next + 200)?;
        world.start(&counter, id, &[&file, state])?;
        world.wait_for_number(id, next + 400)?;
        // Acceptors are in memory: until it votes again, two others must live.
        world.wait_until_it_votes(id)?;
    }
    for (number, text) in world.must_agree()? {
        let before = all.insert(number, text.clone());
        ensure!(before.is_none_or(|it| it == text), "{number} has changed");
    }
    ensure!(all.len() > 10, "{all:?}");
    Ok(())
}

/// What is delivered again after each start is the same, from the first value on; nothing that anybody was
/// given is missing.
#[test]
fn a_chat_log_is_given_all_anew_and_a_benchmark_loses_nothing() -> Result<()> {
    let mut world = World::new("chat")?;
    let chat = world.compile("chat")?;
    let benchmark = world.compile("benchmark")?;
    let storage = world.path("storage").display().to_string();
    let more = format!("verbosity error\nstorage-backend lmdb\nlmdb-env-path {storage}\n");
    let file = world.configure(&[("replica", FIRST_PORT)], &more)?;
    for id in 0..REPLICAS {
        world.start(&chat, id, &[&file])?;
    }
    let said = world.path("benchmark-said");
    let arguments = [&file[..], "1", "16", "600", "65536"];
    let mut client = start(&benchmark, &arguments, &said)?;
    let mut seen: BTreeMap<u64, String> = BTreeMap::new();
    for id in 0..REPLICAS {
        let other = (id + 1) % REPLICAS;
        for talker in 0..REPLICAS {
            let program = world.programs.get_mut(&talker).context("it runs")?;
            writeln!(program.input()?, "before {id} is killed")?;
        }
        let next = world.last_number(other)? + 60;
        world.wait_for_number(other, next)?;
        seen.extend(world.must_agree()?);
        world.programs.remove(&id);
        world.wait_for_number(other, next + 60)?;
        world.start(&chat, id, &[&file])?;
        world.wait_for_number(id, next + 60)?;
    }
    wait_within("the benchmark to end", DEADLINE, || {
        Ok(client.0.try_wait()?.is_some())
    })?;
    let text = fs::read_to_string(&said)?;
    ensure!(
        client.0.wait()?.success() && text.contains("600 delivered"),
        "{text}"
    );
    let last = (0..REPLICAS).map(|id| world.last_number(id));
    let last = last.collect::<Result<Vec<_>>>()?.into_iter().max();
    let last = last.context("three")?;
    for id in 0..REPLICAS {
        world.wait_for_number(id, last)?;
    }
    let all = world.must_agree()?;
    let numbers: Vec<u64> = all.keys().copied().collect();
    ensure!(numbers == (1..=last).collect::<Vec<_>>(), "gaps");
    for (number, text) in seen {
        ensure!(all.get(&number) == Some(&text), "{number} {text} is lost");
    }
    for id in 0..REPLICAS {
        ensure!(
            world.numbered(id)?.len() as u64 == last,
            "replica {id} was not given all"
        );
        let line = format!("{id} says: before {id} is killed");
        ensure!(all.values().any(|it| *it == line), "{line:?} is lost");
    }
    let of_size = |bytes: usize| {
        let text = format!("{bytes} bytes, ");
        all.values().filter(|it| it.starts_with(&text)).count()
    };
    ensure!(of_size(0) >= 1 && of_size(65536) >= 1, "{text}");
    Ok(())
}

#[test]
fn acceptors_proposers_and_learners_may_be_processes_of_their_own() -> Result<()> {
    let mut world = World::new("roles")?;
    let role = world.compile("role")?;
    let benchmark = world.compile("benchmark")?;
    let roles = [("acceptor", FIRST_PORT), ("proposer", FIRST_PROPOSERS_PORT)];
    let file = world.configure(&roles, "learner 0 10.0.0.1 1\nproposer-timeout 10\n")?;
    for (place, role_name) in ["acceptor", "proposer"].into_iter().enumerate() {
        for id in 0..REPLICAS {
            let number = id.to_string();
            let arguments = [role_name, &number, &file];
            let said = world.path(&format!("said-{role_name}-{id}"));
            let program = start(&role, &arguments, &said)?;
            world.programs.insert(place * REPLICAS + id, program);
        }
    }
    let run = |name: &str, proposer: &str| {
        let arguments = [&file[..], proposer, "100", "2000", "1000"];
        start(&benchmark, &arguments, &world.path(name))
    };
    let mut clients = [run("first", "0")?, run("second", "2")?];
    for client in &mut clients {
        wait_within("a benchmark to end", DEADLINE, || {
            Ok(client.0.try_wait()?.is_some())
        })?;
    }
    for (client, name) in clients.iter_mut().zip(["first", "second"]) {
        let text = fs::read_to_string(world.path(name))?;
        ensure!(client.0.wait()?.success(), "{text}");
        // The empty value of the other one cannot be told from its own.
        let (none, one) = ("2000 delivered, 0 of", "2000 delivered, 1 of");
        ensure!(text.contains(none) || text.contains(one), "{text}");
        let effect = "proposer-timeout has no effect here";
        ensure!(text.matches(effect).count() == 1, "{text}");
    }
    Ok(())
}

/// Has them all end, which each does by itself and without an error.
fn must_end(programs: &mut [(Program, PathBuf)]) -> Result<()> {
    for (program, _) in programs.iter() {
        program.terminate()?;
    }
    for (program, said) in programs {
        wait_within("a program that ends", DEADLINE, || {
            Ok(program.0.try_wait()?.is_some())
        })
        .with_context(|| format!("{}", said.display()))?;
        let ended = program.0.wait()?;
        ensure!(ended.success(), "{ended}: {}", fs::read_to_string(&said)?);
    }
    Ok(())
}

#[test]
fn a_learner_begins_behind_a_number_and_each_role_ends_cleanly() -> Result<()> {
    let world = World::new("role-ends")?;
    let role = world.compile_checked("role")?;
    let benchmark = world.compile("benchmark")?;
    let roles = [("acceptor", FIRST_PORT), ("proposer", FIRST_PROPOSERS_PORT)];
    let file = world.configure(&roles, "")?;
    let mut programs = Vec::new();
    let begin = |world: &World, name: &str, number: usize| -> Result<(Program, PathBuf)> {
        let said = world.path(&format!("said-{name}-{number}"));
        let arguments = [name, &number.to_string(), &file];
        Ok((start(&role, &arguments, &said)?, said))
    };
    for name in ["acceptor", "proposer"] {
        for id in 0..REPLICAS {
            programs.push(begin(&world, name, id)?);
        }
    }
    let all = begin(&world, "learner", 0)?;
    let said = world.path("benchmark-said");
    let mut client = start(&benchmark, &[&file, "0", "50", "300", "1000"], &said)?;
    wait_within("a benchmark to end", DEADLINE, || {
        Ok(client.0.try_wait()?.is_some())
    })?;
    ensure!(client.0.wait()?.success(), "{:?}", lines(&said)?);
    let values = |said: &Path| -> Result<Vec<String>> {
        let all = lines(said)?.into_iter();
        Ok(all.filter(|it| it.starts_with("value ")).collect())
    };
    let wait_for = |said: &Path, count: usize| {
        wait_within("a learner to have all", DEADLINE, || {
            Ok(values(said)?.len() >= count)
        })
        .with_context(|| fs::read_to_string(said).unwrap_or_default())
    };
    wait_for(&all.1, 300)?;
    let rest = begin(&world, "learner", 200)?;
    wait_for(&rest.1, 100)?;
    let (given, rest_given) = (values(&all.1)?, values(&rest.1)?);
    ensure!(given[0].starts_with("value 1 "), "{given:?}");
    ensure!(rest_given[0].starts_with("value 201 "), "{rest_given:?}");
    ensure!(rest_given[..100] == given[200..300], "{rest_given:?}");
    programs.extend([all, rest]);
    must_end(&mut programs)
}

#[test]
fn replicas_that_are_told_to_end_leave_nothing_behind() -> Result<()> {
    let world = World::new("replicas-end")?;
    let counter = world.compile_checked("counter")?;
    let file = world.configure(&[("replica", FIRST_PORT)], "")?;
    let mut programs = Vec::new();
    for id in 0..REPLICAS {
        let (number, said) = (id.to_string(), world.said(id));
        let state = world.path(&format!("state-{id}")).display().to_string();
        let program = start(&counter, &[&number, &file, &state], &said)?;
        programs.push((program, said));
    }
    for id in 0..REPLICAS {
        world.wait_for_number(id, 400)?;
    }
    must_end(&mut programs)?;
    world.must_agree().map(drop)
}

/// Files that make no sense, and what is said of them.
const BAD: [(&str, &str); 22] = [
    ("nonsense 1\n", "see line 1"),
    ("\n# fine\nverbosity loud\n", "see line 3"),
    ("verbosity\n", "quiet, error, info or debug"),
    ("tcp-nodelay maybe\n", "yes or no"),
    ("proposer-timeout\n", "a number"),
    ("proposer-timeout -1\n", "a number"),
    ("proposer-timeout 99999999999\n", "a number"),
    ("lmdb-mapsize 1tb\n", "kb, mb or gb"),
    ("lmdb-mapsize -1\n", "kb, mb or gb"),
    ("lmdb-mapsize 99999999999gb\n", "kb, mb or gb"),
    ("lmdb-env-path\n", "a text"),
    ("storage-backend tape\n", "memory, lmdb or bdb"),
    ("replica\n", "an id, an IPv4 address and a port"),
    ("replica 0 127.0.0.1\n", "an id, an IPv4 address and a port"),
    ("replica 0 localhost 8800\n", "an IPv4 address"),
    ("replica 0 127.0.0.1 0\n", "and a port"),
    ("replica 0 127.0.0.1 65536\n", "and a port"),
    ("replica 1 127.0.0.1 8800\n", "the id is 1; allowed: 0"),
    (
        "replica 0 127.0.0.1 8800\nreplica 0 127.0.0.1 8801\n",
        "the id is 0; allowed: 1",
    ),
    ("", "There is no acceptor 0"),
    (
        "replica 0 127.0.0.1 8800\nreplica 1 127.0.0.1 8800\n",
        "stands there twice",
    ),
    (
        "acceptor 0 127.0.0.1 8800\nacceptor 1 127.0.0.1 9800\n",
        "stands there twice",
    ),
];

#[test]
fn a_configuration_that_makes_no_sense_is_refused_with_its_line() -> Result<()> {
    let world = World::new("files")?;
    let role = world.compile("role")?;
    let refused = |bytes: &[u8]| {
        let file = world.path("bad.conf");
        fs::write(&file, bytes)?;
        let output = Command::new(&role)
            .args(["acceptor", "0"])
            .arg(&file)
            .output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.code() == Some(1), "{output:?}");
        Ok(said)
    };
    for (text, expected) in BAD {
        let said = refused(text.as_bytes())?;
        ensure!(said.contains(expected), "{text:?}: {said}");
    }
    let long = format!("lmdb-env-path /{}\n", "a".repeat(600));
    ensure!(refused(long.as_bytes())?.contains("see line 1"));
    ensure!(refused(b"verbosity info\0 and more\n")?.contains("see line 1"));
    let mut eleven = Vec::new();
    for id in 0..11 {
        writeln!(eleven, "acceptor {id} 127.0.0.1 {}", 8800 + id)?;
    }
    ensure!(refused(&eleven)?.contains("see line 11"));
    let missing = Command::new(&role)
        .args(["acceptor", "0", "/nowhere"])
        .output()?;
    ensure!(missing.status.code() == Some(1), "{missing:?}");
    let good = format!("acceptor 0 {} {FIRST_PORT}\n", world.address);
    fs::write(world.path("good.conf"), good)?;
    for id in ["1", "-1", "99"] {
        let file = world.path("good.conf");
        let run = Command::new(&role)
            .args(["acceptor", id])
            .arg(&file)
            .output()?;
        ensure!(run.status.code() == Some(1), "{id}: {run:?}");
    }
    Ok(())
}

/// No file makes the reader of configurations touch what is not its own.
#[test]
fn random_configurations_are_read_within_bounds() -> Result<()> {
    let scratch = Scratch::new(&format!("{NAME_PREFIX}-{}-bounds", std::process::id()))?;
    let program = scratch.path().join("bounds");
    let folder = repository().join("client/c/evpaxos");
    let flags = succeed(Command::new("pkg-config").args(["--cflags", "libevent"]))?;
    let mut build = Command::new("cc");
    build.args(["-std=gnu99", "-g", "-fsanitize=address,undefined"]);
    build
        .arg("-fno-sanitize-recover=all")
        .arg("-I")
        .arg(&folder);
    build.args([folder.join("config.c"), folder.join("log.c")]);
    build.arg(repository().join("tests/cluster/tests/libpaxos/bounds.c"));
    build.arg("-o").arg(&program);
    succeed(build.args(flags.split_whitespace()))?;
    let file = scratch.path().join("random.conf");
    // Texts of a configuration before the last one may be in use: they are not freed.
    let mut run = Command::new(&program);
    run.env("ASAN_OPTIONS", "detect_leaks=0");
    let said = succeed(run.arg(file).arg("3000"))?;
    // "read N of M"
    let last = said.lines().last().context("it says how many")?;
    let words: Vec<_> = last.split(' ').collect();
    let read: u32 = words.get(1).context("a number")?.parse()?;
    ensure!((1..3000).contains(&read), "{last}");
    Ok(())
}
