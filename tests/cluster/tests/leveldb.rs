//! Replicated `LevelDB` on a Paxos deployment and on a replica group: servers are killed one after the other
//! and all at once, and what clients saw is judged; folders are lost; clients mean harm.

mod load;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use load::{Load, must_be_there};
use quorumwire_cluster_tests::c_programs::{client_file, member_file, succeed};
use quorumwire_cluster_tests::cluster::{Durability, Plan, run_started};
use quorumwire_cluster_tests::deployment::{Deployment, own_namespace};
use quorumwire_cluster_tests::leveldb::{
    Answer, Ask, BUSY, Client, DEADLINE, Place, REFUSED, Server, build, complaint, free_address,
    run,
};
use quorumwire_cluster_tests::network::Machine;
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::waiting::wait_within;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Answers between two kills.
const BETWEEN_KILLS: u64 = 50;
/// Puts at one server, each with a read at the next one behind it.
const READS_BEHIND_PUTS: u64 = 300;
/// Instances that the deployments of these tests may have open.
const WINDOW: u64 = 512;
const CHECKPOINTS: [&str; 2] = ["--checkpoint-values=40", "--checkpoint-ms=200"];
/// Values of 1 MiB that nobody takes: what waits at the server, and what has left for the sockets.
const GIVEN_MAX: usize = 24;
/// What a server may take that greedy clients ask for much: a good part of it is the sanitizer's.
const PEAK_MIB_MAX: u64 = 600;

fn bin() -> Result<PathBuf> {
    build(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("leveldb"))
}

/// A deployment with so many learners, and its servers, which run.
fn servers_of(
    name: &str,
    learners: usize,
    more: &[&str],
) -> Result<(Deployment<'static>, Place, Vec<Server>)> {
    let bin = bin()?;
    let mut deployment = Deployment::new(name, learners)?;
    let file = deployment.path("deployment.toml");
    let text = fs::read_to_string(&file)?;
    fs::write(
        &file,
        text.replace("window = 4096", &format!("window = {WINDOW}")),
    )?;
    deployment.start_all()?;
    let place = Place {
        bin,
        scratch: deployment.path("").into(),
        namespace: own_namespace(),
    };
    let mut servers = Vec::new();
    for learner in 0..learners {
        let dir = format!("server-{learner}/learner");
        let file = member_file(&deployment, learner, &dir, "")?;
        let mut server = Server::new(&place, (&file, learner), free_address()?, more);
        server.start()?;
        servers.push(server);
    }
    servers
        .iter_mut()
        .try_for_each(Server::wait_until_it_serves)?;
    Ok((deployment, place, servers))
}

fn addresses(servers: &[Server]) -> Vec<String> {
    servers.iter().map(|it| it.address.clone()).collect()
}

/// What servers have applied is on their disks, and nobody else keeps it.
fn wait_for_checkpoints(servers: &[Server]) -> Result<()> {
    for server in servers {
        wait_within("a checkpoint of all", DEADLINE, || {
            let status = Client::connect(&server.address)?.status()?;
            Ok(status["checkpoint"] == status["instance"] && status["checkpoint"] > 0)
        })?;
    }
    Ok(())
}

/// A server whose folder is behind says what to do, and goes on from a copy of another one's.
fn join_from_another(lost: &mut Server, other: &mut Server, journal: &[String]) -> Result<()> {
    lost.start()?;
    let code = lost.wait_for_exit()?.code();
    let said = lost.said();
    let is_clear =
        code == Some(3) && said.contains("kept by nobody") && said.contains("--copy-from");
    ensure!(is_clear, "{code:?}: {said}");
    fs::rename(&lost.dir, lost.dir.with_extension("lost"))?;
    let copy = [
        format!("--copy-from={}", other.dir.display()),
        format!("--dir={}", lost.dir.display()),
    ];
    let copy = [&copy[0][..], &copy[1]];
    let (code, said) = lost.run_with(&copy)?;
    ensure!(
        code == Some(1) && said.contains("a server runs on it"),
        "{code:?}: {said}"
    );
    ensure!(other.terminate()?.code() == Some(0), "{}", other.said());
    let (code, said) = lost.run_with(&copy)?;
    ensure!(code == Some(0), "{code:?}: {said}");
    other.start()?;
    lost.start()?;
    other.wait_until_it_serves()?;
    lost.wait_until_it_serves()?;
    must_be_there(&mut Client::connect(&lost.address)?, journal)
}

/// What one server has answered, every other one shows from then on.
fn no_read_is_behind(servers: &[Server]) -> Result<()> {
    let mut clients = Vec::new();
    for server in servers {
        clients.push(Client::connect(&server.address)?);
    }
    let session = clients[0].open()?;
    for sequence in 1..=READS_BEHIND_PUTS {
        let value = sequence.to_string().into_bytes();
        let put = clients[0].ask(Ask::Put(session, sequence, b"shown", &value))?;
        ensure!(put == Answer::Done(Vec::new()), "{put:?}");
        let place = usize::try_from(sequence)? % servers.len();
        let read = clients[place].ask(Ask::Read(b"shown"))?;
        ensure!(
            read == Answer::Done(value),
            "{sequence} is put, and then: {read:?}"
        );
    }
    Ok(())
}

#[test]
fn whichever_server_is_killed_nothing_acknowledged_is_lost() -> Result<()> {
    let (_deployment, _, mut servers) = servers_of("leveldb", 3, &CHECKPOINTS)?;
    let load = Load::start(&addresses(&servers), seed());
    no_read_is_behind(&servers)?;
    for server in &mut servers {
        load.wait_for(BETWEEN_KILLS)?;
        server.kill()?;
        load.wait_for(BETWEEN_KILLS).context("one is dead")?;
        server.start()?;
    }
    load.wait_for(BETWEEN_KILLS)?;
    servers.iter_mut().try_for_each(Server::kill)?;
    servers.iter_mut().try_for_each(Server::start)?;
    load.wait_for(2 * WINDOW)?;
    servers
        .iter_mut()
        .try_for_each(Server::wait_until_it_serves)?;
    let journal = load.judge()?;
    wait_for_checkpoints(&servers)?;
    for server in &servers {
        let status = Client::connect(&server.address)?.status()?;
        let is_sound = status["instance"] > 2 * WINDOW && status["foreign_values"] == 0;
        ensure!(
            is_sound && status["markers"] <= status["reads"],
            "{status:?}"
        );
    }
    servers[1].kill()?;
    fs::remove_dir_all(servers[1].dir.join("db"))?;
    let (others, rest) = servers.split_at_mut(1);
    join_from_another(&mut rest[0], &mut others[0], &journal)?;
    for server in &mut servers {
        ensure!(server.terminate()?.code() == Some(0), "{}", server.said());
        ensure!(
            server.said().contains("has ended at instance"),
            "{}",
            server.said()
        );
    }
    Ok(())
}

#[test]
fn a_replica_group_serves_as_well() {
    let plan = Plan {
        options: vec![("learners", "1,2")],
        ..Plan::new(3, Durability::Sync)
    };
    run_started(plan, |cluster| {
        let place = Place {
            bin: bin()?,
            scratch: cluster.scratch_file(""),
            namespace: cluster.network().namespace(Machine::Client),
        };
        let file = client_file(cluster)?.display().to_string();
        let mut servers: Vec<_> = [1, 2]
            .map(|learner| {
                let socket = place.scratch.join(format!("{learner}.socket"));
                let address = format!("unix:{}", socket.display());
                Server::new(&place, (&file, learner), address, &CHECKPOINTS)
            })
            .into();
        servers.iter_mut().try_for_each(Server::start)?;
        servers
            .iter_mut()
            .try_for_each(Server::wait_until_it_serves)?;
        let load = Load::start(&addresses(&servers), seed());
        load.wait_for(BETWEEN_KILLS)?;
        servers.iter_mut().try_for_each(Server::kill)?;
        servers.iter_mut().try_for_each(Server::start)?;
        load.wait_for(BETWEEN_KILLS)?;
        let leader = cluster.wait_for_leader()?;
        cluster.kill(leader)?;
        cluster.wait_for_leader_other_than(leader)?;
        load.wait_for(BETWEEN_KILLS)?;
        cluster.start(leader)?;
        let journal = load.judge()?;
        wait_for_checkpoints(&servers)?;
        let status = Client::connect(&servers[0].address)?.status()?;
        ensure!(status["trimmed"] > 0, "{status:?}");
        // One is away for so long that what it lacks is declared lost.
        servers[1].kill()?;
        let mut client = Client::connect(&servers[0].address)?;
        let session = client.open()?;
        client.ask(Ask::Put(session, 1, b"later", b"x"))?;
        wait_for_checkpoints(&servers[..1])?;
        let at = cluster.http(cluster.wait_for_leader()?).to_string();
        let lost = ["declare-lost", "--learner", "2", "--yes", "--addr", &at];
        cluster.command(&[&["values"], &lost[..]].concat())?;
        let (others, rest) = servers.split_at_mut(1);
        join_from_another(&mut rest[0], &mut others[0], &journal)
    });
}

/// What it is answered that it sends, and then it is ended.
fn refused(address: &str, bytes: &[u8]) -> Result<String> {
    let mut client = Client::connect_silently(address)?;
    client.say(bytes)?;
    let (number, answer) = client.hear()?;
    let Answer::Other(REFUSED, text) = answer else {
        anyhow::bail!("{answer:?}");
    };
    ensure!(number == 0 && client.hear().is_err(), "it goes on");
    Ok(text)
}

/// Reads of a long value that nobody takes for a while: some have no room, and all are answered.
fn greedy(address: &str) -> Result<Client> {
    let mut greedy = Client::connect(address)?;
    for number in 1..=64 {
        greedy.say(&Ask::Read(b"long").frame(number))?;
    }
    Ok(greedy)
}

/// One that takes nothing for a while is given what had room, and is told so of the rest.
fn what_has_no_room_is_said(address: &str, long: &[u8]) -> Result<()> {
    let mut late = greedy(address)?;
    std::thread::sleep(Duration::from_secs(1));
    let (mut given, mut without_room) = (0, 0);
    for _ in 0..64 {
        match late.hear()?.1 {
            Answer::Done(value) => given += usize::from(value == long),
            Answer::Other(BUSY, _) => without_room += 1,
            other @ (Answer::NotFound | Answer::Other(..)) => anyhow::bail!("{other:?}"),
        }
    }
    let is_bounded = given + without_room == 64 && (1..=GIVEN_MAX).contains(&given);
    ensure!(is_bounded, "{given} given, {without_room} without room");
    Ok(())
}

#[test]
fn clients_that_mean_harm_cost_the_others_nothing() -> Result<()> {
    let (deployment, _, mut servers) = servers_of("leveldb-hostile", 1, &["--connections-max=64"])?;
    let begun = Instant::now();
    harm(&mut servers[0]).with_context(|| {
        let all = [("coordinator", 0), ("coordinator", 1), ("acceptor", 0)];
        let said = all.map(|it| deployment.log(it).unwrap_or_default());
        format!("after {:?}; the switches say: {said:#?}", begun.elapsed())
    })
}

fn harm(server: &mut Server) -> Result<()> {
    let address = server.address.clone();
    let mut client = Client::connect(&address)?;
    let session = client.open()?;
    let long = vec![b'x'; 1_040_384];
    client.ask(Ask::Put(session, 1, b"long", &long))?;
    let frame = |bytes: &[u8]| [&b"qwldb/1\n"[..], bytes].concat();
    let long_key = vec![b'k'; 5000];
    for (bytes, part) in [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "has to begin with"),
        (frame(b"\xff\xff\xff\xff"), "length; allowed: 9 to 1044507"),
        (frame(b"\0\0\0\x08"), "length; allowed: 9 to 1044507"),
        (
            frame(b"\0\0\0\x09\x08\0\0\0\0\0\0\0\x01"),
            "allowed: 1 to 7",
        ),
        (
            frame(b"\0\0\0\x09\x02\0\0\0\0\0\0\0\x01"),
            "an end that is missing",
        ),
        (frame(&Ask::Read(b"").frame(1)), "allowed: 1 to 4096 bytes"),
        (
            frame(&Ask::Read(&long_key).frame(1)),
            "allowed: 1 to 4096 bytes",
        ),
        (
            frame(&Ask::Put(0, 1, b"k", b"").frame(1)),
            "those from 1 on",
        ),
    ] {
        let text = refused(&address, &bytes)?;
        ensure!(text.contains(part), "{bytes:?}: {text}");
    }
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    for _ in 0..30 {
        let mut noise = Client::connect(&address)?;
        let bytes: Vec<u8> = (0..200).map(|_| random.random()).collect();
        noise.say(&bytes)?;
    }
    what_has_no_room_is_said(&address, &long)?;
    let mut kept = Vec::new();
    for _ in 0..20 {
        kept.push(greedy(&address)?);
        let mut half = Client::connect(&address)?;
        let put = Ask::Put(session, 9, b"never", &long).frame(1);
        half.say(&put[..put.len() / 2])?;
        kept.push(half);
    }
    let mut slowest = Duration::ZERO;
    for sequence in 2..52 {
        let begun = Instant::now();
        let answer = client.ask(Ask::Put(session, sequence, b"well", b"behaved"))?;
        ensure!(answer == Answer::Done(Vec::new()), "{answer:?}");
        slowest = slowest.max(begun.elapsed());
    }
    let peak = server.peak_mib()?;
    println!("slowest {slowest:?}, at most {peak} MiB");
    ensure!(peak < PEAK_MIB_MAX, "they cost something");
    drop(kept);
    wait_within("those that mean harm to be gone", DEADLINE, || {
        Ok(client.status()?["connections"] == 1)
    })?;
    let idle: Vec<_> = (0..63).map(|_| Client::connect(&address)).collect();
    std::thread::sleep(Duration::from_millis(1200));
    Client::connect(&address)?
        .status()
        .context("one more than may be")?;
    drop(idle);
    ensure!(server.terminate()?.code() == Some(0), "{}", server.said());
    Ok(())
}

#[test]
fn the_command_line_says_what_it_does() -> Result<()> {
    let (_deployment, place, mut servers) = servers_of("leveldb-words", 1, &[])?;
    let program = place.bin.join("quorumwire-leveldb-client");
    let everywhere = format!("--servers={},{}", free_address()?, servers[0].address);
    for (words, code, out, part) in [
        (&["put", "k", "v"][..], 0, "", ""),
        (&["get", "k"], 0, "v\n", ""),
        (&["get-logged", "k"], 0, "v\n", ""),
        (&["delete", "k"], 0, "", ""),
        (&["delete", "k"], 1, "", "nothing is there"),
        (&["get", "k"], 1, "", "nothing is there"),
        (&["echo", "x"], 3, "", "--application leveldb"),
        (&["get"], 2, "", "get KEY"),
        (
            &["take", "k"],
            2,
            "",
            "the command is 'take'; allowed: get,",
        ),
        (&["get", ""], 2, "", "allowed: 1 to 4096"),
        (&["bench", "--operation=scan"], 2, "", "allowed: read, get"),
        (
            &["bench", "--outstanding=0"],
            2,
            "",
            "--outstanding: '0' is given; allowed: 1 to 4096",
        ),
        (
            &["put", "k", "v", "--timeout-ms=1", "--servers=unix:/nowhere"],
            2,
            "",
            "given twice",
        ),
    ] {
        let done = run(&program, &[&[&everywhere[..]], words].concat())?;
        let (found, said) = complaint(&done)?;
        let printed = String::from_utf8(done.stdout)?;
        let is_expected = found == Some(code) && printed == out && said.contains(part);
        ensure!(is_expected, "{words:?}: {found:?}: {printed}{said}");
    }
    let nowhere = [
        "--servers=unix:/nowhere",
        "--timeout-ms=300",
        "put",
        "k",
        "v",
    ];
    let (code, said) = complaint(&run(&program, &nowhere)?)?;
    ensure!(
        code == Some(3) && said.contains("not carried out"),
        "{code:?}: {said}"
    );
    let own = format!("--servers={}", servers[0].address);
    succeed(Command::new(&program).args([&own, "load", "--keys=200", "--outstanding=40"]))?;
    let measure = [
        &own,
        "bench",
        "--seconds=1",
        "--keys=200",
        "--outstanding=8",
    ];
    for operation in ["read", "get", "put", "delete", "mix"] {
        let mut bench = Command::new(&program);
        let said = succeed(bench.args(measure).arg(format!("--operation={operation}")))?;
        ensure!(
            said.contains(" per s, p50 ") && said.ends_with("errors 0\n"),
            "{said}"
        );
    }
    ensure!(
        servers[0].terminate()?.code() == Some(0),
        "{}",
        servers[0].said()
    );
    Ok(())
}

#[test]
fn a_servers_options_are_refused_by_name() -> Result<()> {
    let program = bin()?.join("quorumwire-leveldb");
    for (options, code, part) in [
        (&[][..], 2, "--configuration is needed"),
        (&["--help"], 0, ""),
        (&["--nonsense=1"], 2, "--nonsense: there is no such option"),
        (
            &["--configuration=x", "--learner=0", "--dir=y"],
            2,
            "--listen is needed",
        ),
        (
            &["--configuration=x", "--learner=x", "--listen=y"],
            2,
            "--learner: 'x' is given; allowed: 0 to 65535",
        ),
        (
            &[
                "--configuration=/nowhere",
                "--learner=0",
                "--listen=y",
                "--dir=z",
            ],
            2,
            "/nowhere",
        ),
        (
            &[
                "--configuration=x",
                "--learner=0",
                "--listen=y",
                "--application=z",
            ],
            2,
            "allowed: leveldb, echo",
        ),
        (
            &["--copy-from=/nowhere", "--dir=z"],
            1,
            "/nowhere is no folder of a server",
        ),
    ] {
        let (found, said) = complaint(&run(&program, options)?)?;
        ensure!(
            found == Some(code) && said.contains(part),
            "{options:?}: {found:?}: {said}"
        );
    }
    Ok(())
}

#[test]
fn an_echo_server_answers_what_was_sent() -> Result<()> {
    let (_deployment, place, mut servers) =
        servers_of("leveldb-echo", 1, &["--application=echo", CHECKPOINTS[0]])?;
    let mut client = Client::connect(&servers[0].address)?;
    for number in 0_u32..200 {
        let text = format!("at {number}");
        let answer = client.ask(Ask::Echo(text.as_bytes()))?;
        ensure!(answer == Answer::Done(text.into_bytes()), "{answer:?}");
    }
    let answer = client.ask(Ask::Read(b"k"))?;
    let is_refused = matches!(&answer, Answer::Other(REFUSED, text) if text.contains("echo"));
    ensure!(is_refused, "{answer:?}");
    servers[0].kill()?;
    servers[0].start()?;
    servers[0].wait_until_it_serves()?;
    let program = place.bin.join("quorumwire-leveldb-client");
    let own = format!("--servers={}", servers[0].address);
    let said = succeed(Command::new(&program).args([&own, "echo", "again"]))?;
    ensure!(said == "again\n", "{said}");
    let bench = [&own, "bench", "--seconds=1", "--operation=echo"];
    let said = succeed(Command::new(&program).args(bench))?;
    ensure!(said.ends_with("errors 0\n"), "{said}");
    wait_for_checkpoints(&servers)
}

#[test]
fn what_needs_no_deployment_holds() -> Result<()> {
    let said = succeed(&mut Command::new(bin()?.join("quorumwire-leveldb-tests")))?;
    ensure!(said == "all hold\n", "{said}");
    Ok(())
}
