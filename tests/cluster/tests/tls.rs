//! What is encrypted and who is let in: clusters under TLS, strangers of every kind, certificates replaced
//! under load.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, Tls, run, run_started};
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::tls::{Shown, TlsClient};
use quorumwire_cluster_tests::workload::{Load, Running};
use serde_json::Value;

/// How the log says that a replica has taken its files in again.
const READ_AGAIN: &str = "certificates and authorities were read again";
const TIMEOUT: Duration = Duration::from_secs(10);
/// What a replica may need to reach all others.
const DOCUMENTS_MAX: usize = 30;
/// An alert of TLS: all that who speaks no TLS may hear.
const ALERT_BYTES_MAX: usize = 7;

fn secured(plan: Plan) -> Plan {
    Plan {
        tls: Tls::Peers,
        ..plan
    }
}

#[test]
fn a_cluster_under_tls_loses_its_leader_and_nothing_else() {
    let seed = seed();
    run_started(secured(Plan::new(3, Durability::Sync)), |cluster| {
        let load = Running::start(Load::modest("tls"), &cluster.targets(), seed);
        for _ in 0..3 {
            load.wait_for_writes(200)?;
            let leader = cluster.wait_for_leader()?;
            cluster.kill(leader)?;
            cluster.wait_for_leader_other_than(leader)?;
            cluster.start(leader)?;
            cluster.wait_for_ready(&[leader])?;
        }
        load.wait_for_writes(200)?;
        load.finish()?.judge(&cluster.targets())?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        let status = cluster.status(0)?;
        ensure!(status.faults.is_empty(), "{:?}", status.faults);
        Ok(())
    });
}

/// Values of a megabyte pass between replicas in many records, and a replica that was away gets them too.
#[test]
fn what_is_large_passes_too() {
    let mut plan = secured(Plan::new(3, Durability::Sync));
    plan.options = vec![("snapshot-log-mib", "8"), ("log-tail-mib", "1")];
    run_started(plan, |cluster| {
        let leader = cluster.wait_for_leader()?;
        let away = (leader + 1) % 3;
        cluster.kill(away)?;
        let value = vec![b'x'; 900_000];
        let mut client = cluster.client(leader)?;
        for number in 0..40 {
            client.set(&format!("large-{number}"), &value).expect("set");
        }
        cluster.start(away)?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        let got = cluster.client(away)?.get("large-39").expect("get");
        ensure!(got.as_deref() == Some(&value[..]));
        Ok(())
    });
}

/// Says this in the clear; all that is heard.
fn say_plainly(address: SocketAddr, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut socket = TcpStream::connect_timeout(&address, TIMEOUT)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.write_all(bytes)?;
    let mut heard = Vec::new();
    if let Err(error) = socket.read_to_end(&mut heard) {
        let kind = error.kind();
        ensure!(kind == std::io::ErrorKind::ConnectionReset, "{error}");
    }
    Ok(heard)
}

fn wait_for_count(cluster: &Cluster<'_>, id: u16, name: &str, count: u64) -> Result<()> {
    cluster.wait_for(&format!("{name} to be {count}"), || {
        Ok(cluster.counter(id, name)? == count)
    })
}

#[test]
fn strangers_hear_nothing_and_change_nothing() {
    let seed = seed();
    run_started(secured(Plan::steady(3, Durability::Sync)), |cluster| {
        let leader = cluster.wait_for_leader()?;
        let term = cluster.status(leader)?.term;
        let peer = cluster.peer(leader);
        let elsewhere = cluster.scratch_file("elsewhere");
        cluster.make_keys(&elsewhere)?;
        let load = Running::start(Load::modest("strangers"), &cluster.targets(), seed);
        load.wait_for_writes(200)?;
        // Nobody knows what a hello looks like here; nobody gets as far as to say one.
        let said = b"anything";
        let others = Shown::new(&elsewhere, "replica-1");
        let operator = Shown::new(&cluster.keys(), "operator");
        let strangers = [
            (None, "no_certificate"),
            (Some(&others), "unknown_authority"),
            (Some(&operator), "wrong_name"),
        ];
        for (shown, reason) in strangers {
            for count in 1..=20 {
                let heard = TlsClient::connect(peer, None, shown)?.say(said);
                ensure!(heard.is_empty(), "{reason}: {heard:?}");
                let name = format!("peer_tls_refused_{reason}");
                wait_for_count(cluster, leader, &name, count)?;
            }
        }
        let garbage: [&[u8]; 5] = [
            b"get key\r\n",
            b"\x16\x03\x01\xff\xff what is announced is too long",
            &[0; 4096],
            &vec![0xff; 70_000],
            b"GET / HTTP/1.1\r\n\r\n",
        ];
        for (count, bytes) in (1..).zip(garbage) {
            let heard = say_plainly(peer, bytes).unwrap_or_default(); // not even all was taken
            ensure!(heard.len() <= ALERT_BYTES_MAX, "{heard:?}");
            wait_for_count(cluster, leader, "peer_tls_refused_malformed", count)?;
        }
        let mute = TcpStream::connect(peer)?;
        let timed_out = "peer_connections_closed_handshake_timeout";
        wait_for_count(cluster, leader, timed_out, 1)?;
        drop(mute);
        let faults = cluster.status(leader)?.faults;
        ensure!(
            faults.iter().any(|fault| fault.contains("TLS 1.3")),
            "{faults:?}"
        );
        load.wait_for_writes(200)?;
        let report = load.finish()?;
        ensure!(report.unknown + report.refused == 0, "{:?}", report.reasons);
        report.judge(&cluster.targets())?;
        ensure!(cluster.status(leader)?.term == term, "nothing happened");
        Ok(())
    });
}

/// A replica's certificate belongs to it: with that of replica 1, replica 2 is nobody. It does not even start
/// under its own name, and under that of the other it is refused as long as the other is there.
#[test]
fn a_replica_under_anothers_certificate_is_refused() {
    run_started(secured(Plan::steady(3, Durability::Sync)), |cluster| {
        let leader = cluster.wait_for_leader()?;
        let (victim, thief) = ((leader + 1) % 3, (leader + 2) % 3);
        cluster.kill(thief)?;
        let keys = cluster.keys();
        for end in [".pem", "-key.pem"] {
            let file = |id| keys.join(format!("replica-{id}{end}"));
            std::fs::copy(file(victim), file(thief))?;
        }
        cluster.start(thief)?;
        let status = cluster.wait_for_exit(thief)?;
        ensure!(!status.success());
        let log = cluster.log(thief);
        ensure!(
            log.contains(&format!("the certificate belongs to replica {victim}")),
            "{log}"
        );
        cluster.put("still", "here")?;
        Ok(())
    });
}

/// Every replica takes its files in again.
fn reload_all(cluster: &Cluster<'_>, times: usize) -> Result<()> {
    for id in cluster.founders() {
        cluster.reload(id)?;
        cluster.wait_for("the files to be read again", || {
            Ok(cluster.log(id).matches(READ_AGAIN).count() == times)
        })?;
    }
    Ok(())
}

#[test]
fn authority_and_certificates_are_replaced_under_load_without_a_failed_operation() {
    let seed = seed();
    run_started(secured(Plan::steady(3, Durability::Sync)), |cluster| {
        let leader = cluster.wait_for_leader()?;
        let keys = cluster.keys();
        let dir = keys.display().to_string();
        let stolen = cluster.scratch_file("stolen");
        std::fs::create_dir(&stolen)?;
        for file in ["replica-1.pem", "replica-1-key.pem"] {
            std::fs::copy(keys.join(file), stolen.join(file))?;
        }
        let load = Running::start(Load::modest("rotate"), &cluster.targets(), seed);
        cluster.command(&["keys", "renew", "--dir", &dir])?;
        reload_all(cluster, 1)?;
        for (step, times) in [("add", 2), ("use", 3), ("remove", 4)] {
            load.wait_for_writes(300)?;
            cluster.command(&["keys", "rotate", "--dir", &dir, "--step", step])?;
            reload_all(cluster, times)?;
        }
        load.wait_for_writes(300)?;
        let report = load.finish()?;
        println!("{:.0} operations a second", report.rate_per_second());
        ensure!(report.unknown + report.refused == 0, "{:?}", report.reasons);
        report.judge(&cluster.targets())?;
        ensure!(cluster.wait_for_leader()? == leader, "the leader stayed");

        // Everybody connects anew, under the new authority only.
        for id in cluster.founders() {
            cluster.kill(id)?;
            cluster.start(id)?;
            cluster.wait_for_ready(&[id])?;
        }
        cluster.wait_for_equal(&[0, 1, 2])?;
        let shown = Shown::new(&stolen, "replica-1");
        let heard = TlsClient::connect(cluster.peer(0), None, Some(&shown))?.say(b"anything");
        ensure!(heard.is_empty());
        wait_for_count(cluster, 0, "peer_tls_refused_unknown_authority", 1)
    });
}

#[test]
fn files_that_make_no_sense_are_not_taken_in_and_those_in_use_stay() {
    run_started(secured(Plan::steady(3, Durability::Sync)), |cluster| {
        let certificate = cluster.keys().join("replica-0.pem");
        let good = std::fs::read(&certificate)?;
        std::fs::write(&certificate, "no certificate")?;
        cluster.reload(0)?;
        cluster.wait_for("the file to be refused", || {
            Ok(cluster.log(0).contains("certificates are not used"))
        })?;
        // New connections still come about.
        cluster.kill(1)?;
        cluster.start(1)?;
        cluster.wait_for_ready(&[1])?;
        cluster.kill(2)?;
        cluster.start(2)?;
        cluster.wait_for_ready(&[2])?;
        std::fs::write(&certificate, good)?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}

#[test]
fn a_certificate_that_expires_soon_shows_in_status() {
    run(secured(Plan::steady(1, Durability::Sync)), |cluster| {
        let dir = cluster.keys();
        std::fs::remove_dir_all(&dir)?;
        let dir = dir.display().to_string();
        let new = ["keys", "new", "--cluster", "harness", "--members", "0"];
        cluster.command(&[&new[..], &["--days", "20", "--dir", &dir]].concat())?;
        cluster.start_all()?;
        cluster.wait_for_leader()?;
        let faults = cluster.status(0)?.faults;
        ensure!(
            faults.len() == 1 && faults[0].contains("expires in 19 days"),
            "{faults:?}"
        );
        cluster.wait_for("the log says it, too", || {
            Ok(cluster.log(0).contains("expires in 19 days"))
        })
    });
}

/// Beyond loopback, without `--insecure`: encrypted, and by name and password.
#[test]
fn clients_and_people_speak_tls() {
    let plan = Plan {
        tls: Tls::All,
        ..Plan::steady(3, Durability::Sync)
    };
    run(plan, |cluster| {
        let accounts = cluster.accounts_file("kim:opensesame\n")?;
        cluster.set_options(vec![
            ("client-auth-file", accounts),
            ("election-timeout-ms", "10000"),
        ]);
        cluster.start_all()?;
        let file = |name: &str| cluster.keys().join(name).display().to_string();
        let (ca, http) = (file("ca.pem"), cluster.http(0).to_string());
        let status = ["status", "--json", "--addr", &http, "--tls-ca", &ca];
        let mut leader = 0;
        cluster.wait_for("a leader", || {
            let said = cluster.command(&status).unwrap_or_default();
            let said: Value = serde_json::from_str(&said).unwrap_or_default();
            leader = said["leader"].as_u64().unwrap_or(99);
            Ok(leader != 99)
        })?;
        for id in [0, 1, 2] {
            memcached_and_redis(cluster, id)?;
            for address in [cluster.memcached(id), cluster.redis(id), cluster.http(id)] {
                for bytes in [&b"get key\r\n"[..], b"*1\r\n$4\r\nPING\r\n"] {
                    let heard = say_plainly(address, bytes)?;
                    ensure!(heard.len() <= ALERT_BYTES_MAX, "{address}: {heard:?}");
                }
            }
        }
        // Who connects and says nothing takes no place for ever.
        let mute = TcpStream::connect(cluster.memcached(0))?;
        mute.set_read_timeout(Some(TIMEOUT))?;
        ensure!(
            (&mute).read(&mut [0]).is_ok_and(|count| count == 0),
            "closed in time"
        );
        one_tells_of_all(cluster, 0)?;
        // Whoever only reads need not say who it is; whoever changes something must.
        let next = ((leader + 1) % 3).to_string();
        let transfer = ["transfer", "--to", &next, "--addr", &http, "--tls-ca", &ca];
        let refused = cluster.command(&transfer).unwrap_err().to_string();
        ensure!(refused.contains("takes a certificate"), "{refused}");
        let copy = cluster.scratch_file("copy").display().to_string();
        let backup = ["backup", "--to", &copy, "--addr", &http, "--tls-ca", &ca];
        let refused = cluster.command(&backup).unwrap_err().to_string();
        ensure!(refused.contains("takes a certificate"), "{refused}");
        let (certificate, key) = (file("operator.pem"), file("operator-key.pem"));
        let nobody = cluster.scratch_file("nobody");
        cluster.make_keys(&nobody)?;
        let strange = |name: &str| nobody.join(name).display().to_string();
        let (other, other_key) = (strange("operator.pem"), strange("operator-key.pem"));
        let unknown = ["--tls-cert", &other, "--tls-key", &other_key];
        ensure!(
            cluster
                .command(&[&transfer[..], &unknown].concat())
                .is_err()
        );
        let known = ["--tls-cert", &certificate, "--tls-key", &key];
        cluster.command(&[&backup[..], &known].concat())?;
        cluster.command(&[&transfer[..], &known].concat())?;
        // In the clear nobody answers, and whom another authority knows is nobody.
        let said = cluster.command(&["status", "--addr", &http]);
        ensure!(said.is_err());
        let elsewhere = cluster.scratch_file("elsewhere");
        cluster.make_keys(&elsewhere)?;
        let ca = elsewhere.join("ca.pem").display().to_string();
        let said = cluster.command(&["status", "--addr", &http, "--tls-ca", &ca]);
        let said = said.unwrap_err().to_string();
        ensure!(
            said.contains("does not fit --tls-ca") && said.contains("UnknownIssuer"),
            "{said}"
        );
        Ok(())
    });
}

/// Replicas ask each other over TLS what their dashboards show, and know each other by `tls-ca`.
fn one_tells_of_all(cluster: &Cluster<'_>, id: u16) -> Result<()> {
    let ca = cluster.keys().join("ca.pem");
    let mut live = TlsClient::connect(cluster.http(id), Some(&ca), None)?;
    let request = format!(
        "GET /v1/live HTTP/1.1\r\nhost: {}\r\n\r\n",
        cluster.http(id)
    );
    let mut heard = live.ask(request.as_bytes(), b"}\n\n")?;
    // A second each; on a busy machine one may answer too late for the first ones.
    for _ in 0..DOCUMENTS_MAX {
        let document = heard.split("data: ").nth(1).context("a document")?;
        let document: Value = serde_json::from_str(document.trim())?;
        ensure!(document["made_by"] == id, "{document}");
        let replicas = document["replicas"].as_array().context("replicas")?;
        if replicas.iter().filter(|it| it["reachable"] == true).count() == 3 {
            return Ok(());
        }
        heard = live.ask(b"", b"}\n\n")?;
    }
    bail!("never all three: {heard}");
}

fn memcached_and_redis(cluster: &Cluster<'_>, id: u16) -> Result<()> {
    let ca = cluster.keys().join("ca.pem");
    let connect = |address| TlsClient::connect(address, Some(&ca), None);
    let mut memcached = connect(cluster.memcached(id))?;
    let refused = memcached.ask(b"get key\r\n", b"\r\n")?;
    ensure!(refused.contains("ERROR"), "{refused}");
    let mut memcached = connect(cluster.memcached(id))?;
    let name = b"set auth 0 0 14\r\nkim opensesame\r\n";
    ensure!(memcached.ask(name, b"\r\n")? == "STORED\r\n");
    let settings = memcached.ask(b"stats settings\r\n", b"END\r\n")?;
    for name in ["auth_enabled_ascii", "ssl_enabled"] {
        ensure!(
            settings.contains(&format!("STAT {name} yes\r\n")),
            "{settings}"
        );
    }
    let value = "x".repeat(500_000);
    let set = format!("set key 0 0 {}\r\n{value}\r\n", value.len());
    ensure!(memcached.ask(set.as_bytes(), b"\r\n")? == "STORED\r\n");
    let got = memcached.ask(b"get key\r\n", b"END\r\n")?;
    ensure!(got.contains(&value));
    let mut redis = connect(cluster.redis(id))?;
    let refused = redis.ask(b"GET key\r\n", b"\r\n")?;
    ensure!(refused.starts_with("-NOAUTH"), "{refused}");
    ensure!(redis.ask(b"AUTH kim opensesame\r\n", b"\r\n")? == "+OK\r\n");
    // Many at once, answered in order.
    let many = "SET number 41\r\nINCR number\r\n".repeat(1000);
    let answers = "+OK\r\n:42\r\n".repeat(1000);
    let mut all = String::new();
    all.push_str(&redis.ask(many.as_bytes(), answers.as_bytes())?);
    ensure!(all == answers);
    Ok(())
}
