//! Clients of a served program speak TLS to its replica, and the program hears what they say in the clear:
//! the real Redis, with Redis' own client.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, Tls, run};
use quorumwire_cluster_tests::served::REDIS;
use quorumwire_cluster_tests::status::Status;
use quorumwire_cluster_tests::tls::{Shown, TlsClient, first_words};

/// A handshake takes no longer.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// It is not cut before.
const CUT_AFTER: Duration = Duration::from_secs(4);
const PATIENCE: Duration = Duration::from_secs(30);
/// Longer than what is encrypted ahead of a client, and than a socket's buffers.
const LONG_BYTES: usize = 3 << 20;

fn key_file(cluster: &Cluster<'_>, name: &str) -> String {
    cluster.keys().join(name).display().to_string()
}

/// What Redis' own client prints that believes these authorities and shows this.
fn redis_cli(
    cluster: &Cluster<'_>,
    id: u16,
    (authorities, shown): (&str, Option<&str>),
    words: &[&str],
) -> Result<String> {
    let (host, port) = (cluster.redis(id).ip().to_string(), "6379");
    let mut arguments = vec!["-h", &host, "-p", port, "--tls", "--cacert", authorities];
    let files = shown
        .map(|name| [".pem", "-key.pem"].map(|end| key_file(cluster, &format!("{name}{end}"))));
    if let Some([certificate, key]) = &files {
        arguments.extend(["--cert", certificate, "--key", key]);
    }
    arguments.extend(words);
    let done = cluster.run_program("redis-cli", &arguments)?;
    Ok(done.stdout + &done.stderr)
}

/// Waits until each program answers.
fn wait_for_programs(cluster: &Cluster<'_>, ids: &[u16], shown: Option<&str>) -> Result<()> {
    let ca = key_file(cluster, "ca.pem");
    cluster.wait_for("programs that answer", || {
        let mut answers = ids
            .iter()
            .map(|id| redis_cli(cluster, *id, (&ca, shown), &["PING"]));
        Ok(answers.all(|said| said.is_ok_and(|it| it == "PONG\n")))
    })
}

/// All programs have the same.
fn compare(cluster: &Cluster<'_>, ids: &[u16], shown: Option<&str>) -> Result<()> {
    let ca = key_file(cluster, "ca.pem");
    cluster.wait_for("equal programs", || {
        let ask = |id: &u16| redis_cli(cluster, *id, (&ca, shown), &["DEBUG", "DIGEST"]);
        let digests: Vec<_> = ids.iter().map(ask).collect::<Result<_>>()?;
        Ok(digests.iter().all(|it| *it == digests[0]))
    })
}

/// What it says of itself, to whom shows a certificate.
fn status(cluster: &Cluster<'_>, id: u16) -> Result<Status> {
    let ca = cluster.keys().join("ca.pem");
    let shown = Shown::new(&cluster.keys(), "client-web");
    let http = TlsClient::connect(cluster.http(id), Some(&ca), Some(&shown))?;
    let asked = b"GET /v1/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let answer = String::from_utf8(http.say(asked))?;
    let (_, body) = answer.split_once("\r\n\r\n").context("a body")?;
    Ok(serde_json::from_str(body)?)
}

fn counted(cluster: &Cluster<'_>, id: u16, name: &str) -> Result<u64> {
    let status = status(cluster, id)?;
    let count = status.counters.get(name).copied();
    count.with_context(|| format!("{name} in {:?}", status.counters))
}

#[test]
fn who_shows_the_right_certificate_is_served_and_nobody_else() {
    let plan = Plan {
        serves: REDIS.to_vec(),
        tls: Tls::All, // without --insecure
        ..Plan::new(3, Durability::Sync)
    };
    run(plan, |cluster| {
        let keys = cluster.keys();
        cluster.command(&[
            "keys",
            "client",
            "--dir",
            &keys.display().to_string(),
            "web",
        ])?;
        let clients = key_file(cluster, "clients-ca.pem");
        cluster.set_options(vec![("client-tls-ca", clients.leak())]);
        cluster.start_all()?;
        let web = Some("client-web");
        wait_for_programs(cluster, &[0, 1, 2], web)?;
        let ca = key_file(cluster, "ca.pem");
        let ask =
            |cluster: &Cluster<'_>, id, words: &[&str]| redis_cli(cluster, id, (&ca, web), words);
        ensure!(ask(cluster, 0, &["RPUSH", "list", "a", "b"])? == "2\n");
        ensure!(ask(cluster, 1, &["LRANGE", "list", "0", "-1"])? == "a\nb\n");

        let elsewhere = cluster.scratch_file("elsewhere");
        cluster.make_keys(&elsewhere)?;
        let dir = elsewhere.display().to_string();
        cluster.command(&["keys", "client", "--dir", &dir, "web"])?;
        let strangers = [
            None,
            Some(Shown::new(&keys, "operator")),
            Some(Shown::new(&keys, "replica-1")),
            Some(Shown::new(&elsewhere, "client-web")),
        ];
        for shown in &strangers {
            let heard =
                TlsClient::connect(cluster.redis(0), None, shown.as_ref())?.say(b"PING\r\n");
            ensure!(heard.is_empty(), "{shown:?}: {heard:?}");
        }
        // In the clear nobody is served, nor does the program hear of it.
        let mut in_clear = TcpStream::connect(cluster.redis(0))?;
        in_clear.set_read_timeout(Some(PATIENCE))?;
        in_clear.write_all(b"SET key plain\r\n")?;
        let mut heard = Vec::new();
        in_clear.read_to_end(&mut heard).ok(); // a reset is an end, too
        ensure!(!heard.starts_with(b"+"), "{heard:?}");
        ensure!(ask(cluster, 0, &["EXISTS", "key"])? == "0\n");
        let refused = counted(cluster, 0, "served_connections_refused_by_tls")?;
        ensure!(refused > strangers.len() as u64, "{refused}");

        stay_in_their_handshakes(cluster)?;
        compare(cluster, &[0, 1, 2], web)?;
        outlive_the_leader(cluster)
    });
}

/// Clients that say nothing, or only the first words, are cut; others are served meanwhile.
fn stay_in_their_handshakes(cluster: &Cluster<'_>) -> Result<()> {
    let ca = cluster.keys().join("ca.pem");
    let began = Instant::now();
    let mut mute = TcpStream::connect(cluster.redis(0))?;
    let mut half = TcpStream::connect(cluster.redis(0))?;
    half.write_all(&first_words()?)?;
    let shown = Shown::new(&cluster.keys(), "client-web");
    let mut served = TlsClient::connect(cluster.redis(0), Some(&ca), Some(&shown))?;
    ensure!(served.ask(b"PING\r\n", b"\r\n")? == "+PONG\r\n");
    ensure!(began.elapsed() < HANDSHAKE_TIMEOUT, "it had to wait");
    for stays in [&mut mute, &mut half] {
        stays.set_read_timeout(Some(PATIENCE))?;
        let ended = stays.read_to_end(&mut Vec::new());
        let took = began.elapsed();
        ensure!(took >= CUT_AFTER, "{took:?} {ended:?}");
        ensure!(took < PATIENCE, "{took:?}");
    }
    ensure!(counted(cluster, 0, "served_handshakes_timed_out")? == 2);
    ensure!(served.ask(b"PING\r\n", b"\r\n")? == "+PONG\r\n");
    // One that is gone before its handshake is done was never there for the program.
    let accepted = counted(cluster, 0, "served_connections_accepted")?;
    drop(TcpStream::connect(cluster.redis(0))?);
    cluster.wait_for("one that is gone", || {
        Ok(counted(cluster, 0, "served_connections_gone_in_handshake")? == 1)
    })?;
    ensure!(counted(cluster, 0, "served_connections_accepted")? == accepted);
    Ok(())
}

/// A client of another replica keeps its connection, and what it is told is long.
fn outlive_the_leader(cluster: &mut Cluster<'_>) -> Result<()> {
    let ca = cluster.keys().join("ca.pem");
    let shown = Shown::new(&cluster.keys(), "client-web");
    let mut leader = None;
    cluster.wait_for("a leader", || {
        leader = status(cluster, 0)?.leader;
        Ok(leader.is_some())
    })?;
    let leader = leader.context("a leader")?;
    let others: Vec<u16> = (0..3).filter(|id| *id != leader).collect();
    let mut client = TlsClient::connect(cluster.redis(others[0]), Some(&ca), Some(&shown))?;
    let value = "x".repeat(LONG_BYTES);
    let set = format!("*3\r\n$3\r\nSET\r\n$4\r\nlong\r\n${LONG_BYTES}\r\n{value}\r\n");
    ensure!(client.ask(set.as_bytes(), b"\r\n")? == "+OK\r\n");
    cluster.kill(leader)?;
    ensure!(client.ask(b"STRLEN long\r\n", b"\r\n")? == format!(":{LONG_BYTES}\r\n"));
    let got = client.ask(b"GET long\r\n", b"x\r\n")?;
    ensure!(
        got.ends_with(&format!("{value}\r\n")),
        "{} bytes",
        got.len()
    );
    cluster.start(leader)?;
    wait_for_programs(cluster, &[leader], Some("client-web"))?;
    compare(cluster, &[0, 1, 2], Some("client-web"))
}

#[test]
fn without_an_authority_for_clients_they_need_to_show_nothing() {
    let plan = Plan {
        serves: REDIS.to_vec(),
        tls: Tls::Peers,
        options: vec![("client-tls", "on")],
        ..Plan::new(3, Durability::Sync)
    };
    run(plan, |cluster| {
        cluster.start_all()?;
        wait_for_programs(cluster, &[0, 1, 2], None)?;
        let elsewhere = cluster.scratch_file("elsewhere");
        cluster.make_keys(&elsewhere)?;
        let other = elsewhere.join("ca.pem").display().to_string();
        let said = redis_cli(cluster, 0, (&other, None), &["PING"])?;
        ensure!(!said.contains("PONG"), "it believes anybody: {said}");
        // Files that are read again are used for whoever comes then.
        for end in [".pem", "-key.pem"] {
            let name = format!("replica-0{end}");
            std::fs::copy(elsewhere.join(&name), cluster.keys().join(&name))?;
        }
        std::fs::copy(&other, cluster.keys().join("ca.pem"))?;
        cluster.reload(0)?;
        cluster.wait_for("the other certificate", || {
            Ok(redis_cli(cluster, 0, (&other, None), &["PING"])? == "PONG\n")
        })
    });
}
