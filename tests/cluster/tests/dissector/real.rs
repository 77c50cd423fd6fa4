//! What replicas and clients of a cluster really say.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, SocketAddrV4, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use quorumwire_client::planes::{ClientKeys, PlaneClient, Settings as PlaneSettings};
use quorumwire_client::{Client, Settings};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, Tls, run};
use quorumwire_cluster_tests::deployment::{DEADLINE, Deployment};
use quorumwire_cluster_tests::forgery::forwarded_set;
use quorumwire_cluster_tests::network::{Machine, Network};
use quorumwire_cluster_tests::recording::{Carried, Recorder, carried};
use quorumwire_cluster_tests::tshark::{Shown, show};
use quorumwire_cluster_tests::waiting::wait_within;
use quorumwire_wire::packet::ORIGIN_BYTES;

use super::frames::{FRAME_FIELDS, expected_frames};
use super::{compare, recording, shown, write_whole};

/// Sets a key, as `apps/kv` encodes it.
fn command(key: &str, value: &[u8]) -> Vec<u8> {
    forwarded_set(0, 0, key, value).1[ORIGIN_BYTES..].to_vec()
}

/// The clients' keys, as an operator makes them.
fn client_keys(cluster: &Cluster<'_>) -> Result<ClientKeys> {
    let out = cluster.scratch_file("clients.toml");
    let (file, secret) = (out.display().to_string(), cluster.secret_file());
    let make = [
        "keys",
        "plane-clients",
        "--cluster",
        "harness",
        "--out",
        &file,
    ];
    cluster.command(&[&make[..], &["--file", &secret.display().to_string()]].concat())?;
    Ok(ClientKeys::load(&out)?)
}

/// Clients of every kind ask at each replica: of its plane, native ones and of memcached.
fn ask(cluster: &Cluster<'_>) -> Result<()> {
    let keys = client_keys(cluster)?.pair()?;
    for id in 0..3 {
        let settings = PlaneSettings::new(vec![cluster.plane(id)], keys);
        let mut client = PlaneClient::connect(settings)?;
        client.execute(&command("short", b"value"))?;
        client.execute(&command("long", &[b'x'; 5000]))?;
        let ticket = client.submit_blind(&command("blind", b"value"))?;
        client.wait(ticket)?;
        let address = SocketAddr::to_string(&cluster.native(id));
        let native = Client::connect(&Settings::new(vec![address]))?;
        native.set(format!("native-{id}"), "value")?;
        // All at once, so that they share packets.
        let mut stream = TcpStream::connect(cluster.memcached(id))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all("set key 0 0 1\r\na\r\n".repeat(300).as_bytes())?;
        let mut answers = vec![0; "STORED\r\n".len() * 300];
        stream.read_exact(&mut answers)?;
        ensure!(answers == "STORED\r\n".repeat(300).as_bytes());
    }
    cluster.put("expires", "never")?;
    Ok(())
}

/// A recording without the segments that TCP has said again, as it does when an acknowledgement comes late.
pub fn said_once(frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut heard: BTreeMap<[SocketAddrV4; 2], (u32, u32)> = BTreeMap::new();
    let is_new = |frame: &&Vec<u8>| {
        let Some(Carried::Segment {
            between,
            begins,
            sequence,
            bytes,
        }) = carried(frame)
        else {
            return true;
        };
        if begins {
            let is_new = heard.get(&between).is_none_or(|it| it.0 != sequence);
            is_new.then(|| heard.insert(between, (sequence, 1)));
            return is_new;
        }
        let Some((first, upto)) = heard.get_mut(&between) else {
            return true;
        };
        let begin = sequence.wrapping_sub(*first);
        let end = begin.wrapping_add(u32::try_from(bytes.len()).expect("one frame"));
        let is_new = bytes.is_empty() || end > *upto;
        if begin <= *upto {
            *upto = end.max(*upto);
        }
        is_new
    };
    frames.iter().filter(is_new).cloned().collect()
}

/// The streams that begin in a recording, whole, by who speaks to whom; those of which a part was not heard
/// are not among them.
fn streams(frames: &[Vec<u8>]) -> BTreeMap<[SocketAddrV4; 2], Vec<u8>> {
    let mut begun: BTreeMap<[SocketAddrV4; 2], (u32, Vec<u8>)> = BTreeMap::new();
    let mut torn = BTreeSet::new();
    for frame in frames {
        let Some(Carried::Segment {
            between,
            begins,
            sequence,
            bytes,
        }) = carried(frame)
        else {
            continue;
        };
        if begins {
            begun.insert(between, (sequence.wrapping_add(1), Vec::new()));
        }
        let Some((next, stream)) = begun.get_mut(&between) else {
            continue;
        };
        if sequence == *next {
            *next = next.wrapping_add(u32::try_from(bytes.len()).expect("one frame"));
            stream.extend_from_slice(bytes);
        } else if !bytes.is_empty() {
            torn.insert(between);
        }
    }
    let whole = begun
        .into_iter()
        .filter(|(between, _)| !torn.contains(between));
    whole
        .map(|(between, (_, stream))| (between, stream))
        .collect()
}

fn judge_streams(frames: &[Vec<u8>]) -> Result<()> {
    let frames = said_once(frames);
    let streams: BTreeMap<_, _> = streams(&frames)
        .into_iter()
        .filter(|(_, bytes)| bytes.starts_with(b"QWP1") || bytes.starts_with(b"QWC1"))
        .collect();
    let path = recording("real-streams");
    write_whole(&path, &frames)?;
    let ends = ["ip.src", "tcp.srcport", "ip.dst", "tcp.dstport"];
    let shown = show(&path, &[], &[&FRAME_FIELDS[..], &ends].concat())?;
    let mut messages = BTreeSet::new();
    let mut of_clients = 0;
    for ([from, to], stream) in &streams {
        let is_its = |row: &&Shown| {
            let of = [from.ip().to_string(), from.port().to_string()];
            let to = [to.ip().to_string(), to.port().to_string()];
            let wanted = [&of[..], &to[..]].concat();
            let all = ends.iter().map(|name| row.get(*name).cloned());
            all.flatten().flatten().eq(wanted)
        };
        let mut all = Shown::new();
        for row in shown.iter().filter(is_its) {
            for field in FRAME_FIELDS.iter().filter(|it| **it != "tcp.stream") {
                if let Some(values) = row.get(*field) {
                    let of = all.entry((*field).to_owned()).or_default();
                    of.extend(values.clone());
                }
            }
        }
        messages.extend(all.remove("quorumwire_frame.message").unwrap_or_default());
        let expected = expected_frames(stream);
        ensure!(
            all == expected,
            "{from} to {to}: {all:#?}\nnot {expected:#?}"
        );
        of_clients += usize::from(stream.starts_with(b"QWC1"));
    }
    println!(
        "{} streams, {of_clients} of clients, {messages:?}",
        streams.len()
    );
    for message in ["hello", "append", "append_reply", "vote_request"] {
        ensure!(messages.contains(message), "no {message} in {messages:?}");
    }
    ensure!(of_clients > 0 && streams.len() > of_clients);
    Ok(())
}

/// What packets of replicas must have been recorded and shown as, by kind and what else stands in the column
/// Info.
const OF_REPLICAS: [&str; 15] = [
    "request",
    "request blind",
    "request piece=",
    "append",
    "append piece=",
    "append bundle",
    "append_ok",
    "retransmit",
    "heartbeat",
    "heartbeat_ok",
    "answer",
    "answer piece=",
    "forward",
    "forward piece=",
    "lineage",
];

/// And those of a Paxos deployment.
const OF_DEPLOYMENTS: [&str; 12] = [
    "submit",
    "submit piece=",
    "p1a",
    "p1b",
    "p1b piece=",
    "p2a",
    "p2a piece=",
    "p2b",
    "p2b piece=",
    "heartbeat",
    "admit",
    "checkpoint",
];

fn judge_packets(name: &str, all: &[Vec<u8>], wanted: &[&str]) -> Result<()> {
    let of_planes = all.iter().filter_map(|frame| match carried(frame)? {
        Carried::Datagram(payload) => Some((frame.clone(), payload.to_vec())),
        Carried::Segment { .. } => None,
    });
    let (frames, datagrams): (Vec<_>, Vec<_>) = of_planes.unzip();
    let shown = shown(&recording(name), &frames, &[], &["_ws.col.Info"])?;
    compare(&datagrams, &shown)?;
    let mut reached: BTreeMap<String, u32> = BTreeMap::new();
    for shown in &shown {
        let info = &shown["_ws.col.Info"][0];
        let flags = [" blind", " bundle", " tick", " piece="];
        let flags = flags.iter().filter(|it| info.contains(**it));
        let kind = info.split(' ').next().context("a word")?;
        let named: String = flags.copied().collect();
        *reached.entry(format!("{kind}{named}")).or_default() += 1;
        ensure!(!info.contains('['), "{info}");
    }
    println!("{reached:#?}");
    for wanted in wanted {
        ensure!(reached.contains_key(*wanted), "no {wanted}: {reached:#?}");
    }
    Ok(())
}

/// What replicas and clients really say, recorded at one of the replicas.
#[test]
fn packets_and_frames_of_a_cluster_are_shown() {
    let plan = Plan {
        // What planes in the kernel take, and what is said under TLS, nobody can record.
        plane: "socket".into(),
        tls: Tls::Off,
        ..Plan::fast(3, Durability::Memory)
    };
    run(plan, |cluster| {
        let record =
            |cluster: &Cluster<'_>| Recorder::start(cluster.network(), Machine::Replica(0));
        let recorder = record(cluster)?;
        cluster.start_all()?;
        cluster.wait_for_fast_term(&[0, 1, 2])?;
        ask(cluster)?;
        let calm = recorder.finish()?;
        // Packets that got lost are asked for again.
        let recorder = record(cluster)?;
        cluster.network().lose(10)?;
        let mut client = cluster.client(cluster.wait_for_leader()?)?;
        for number in 0..30 {
            let key = format!("lossy-{number}");
            let _ = client.set(&key, &[b'y'; 3000]); // it may be lost for good
        }
        cluster.network().heal()?;
        let lossy = recorder.finish()?;

        judge_streams(&calm)?;
        judge_packets("real-packets", &[calm, lossy].concat(), &OF_REPLICAS)
    });
}

/// What the switches and members of a Paxos deployment really say, recorded at both coordinators and at an
/// acceptor: one coordinates after the other, and the acceptor forgets all and is let in.
#[test]
fn packets_of_a_paxos_deployment_are_shown() -> Result<()> {
    let network = Network::new(7)?;
    let options = ["--plane", "socket", "--durability", "memory"];
    let deployment = Deployment::across(&network, "recorded", &options)?;
    // The other learner checkpoints nothing: all values have to fit, for as long as is waited.
    let mut deployment = deployment.with_window(16384)?;
    let (coordinator, acceptor) = (("coordinator", 0), ("acceptor", 0));
    let machines = [0, 1, 2].map(Machine::Replica);
    let recorders = machines.map(|it| Recorder::start(&network, it));
    deployment.start_all()?;
    let member = deployment.member(0)?;
    let submit = || -> Result<()> {
        for number in 0..20_usize {
            member.submit(&vec![b'x'; number * 300])?;
        }
        let (mut last, _) = member.next_within(DEADLINE)?.context("a value")?;
        while let Some((instance, _)) = member.next_within(Duration::from_millis(200))? {
            last = instance;
        }
        member.checkpoint(last)?;
        Ok(())
    };
    submit()?;
    deployment.kill(coordinator)?;
    submit()?;
    deployment.start(coordinator)?;
    deployment.kill(acceptor)?;
    submit()?;
    deployment.start(acceptor)?;
    wait_within("an acceptor that is let in", DEADLINE, || {
        submit()?;
        Ok(deployment.log(acceptor)?.contains("was let in"))
    })?;
    drop(deployment);
    let mut heard = Vec::new();
    for recorder in recorders {
        heard.extend(recorder?.finish()?);
    }
    judge_packets("real-paxos-packets", &heard, &OF_DEPLOYMENTS)
}
