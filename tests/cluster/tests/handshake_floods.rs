//! Strangers who begin TLS handshakes as fast as they can, at the peer ports and at those for clients, while
//! the cluster serves: they get their share of its time and no more.

use std::collections::VecDeque;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, Tls, run};
use quorumwire_cluster_tests::tls::{TlsClient, first_words};
use serde_json::Value;

/// A connection gives up by then.
const PATIENCE: Duration = Duration::from_millis(500);
/// Who mean nothing, for each port.
const STRANGERS: usize = 4;
/// By then it is more than there is time for, also on a machine that is busy with other things.
const FLOOD_DEADLINE: Duration = Duration::from_mins(1);
/// Connections that one of them keeps open.
const HELD_MAX: usize = 32;
/// Most handshakes that one of them begins: no flood is endless.
const HANDSHAKES_MAX: u64 = 100_000;

/// Begins handshakes until it is dropped, and finishes none.
struct Flood {
    is_over: Arc<AtomicBool>,
    begun: Arc<AtomicU64>,
    strangers: Vec<JoinHandle<()>>,
}

impl Flood {
    fn start(ports: &[SocketAddr]) -> Result<Self> {
        let said: Arc<[u8]> = first_words()?.into();
        let mut flood = Self {
            is_over: Arc::default(),
            begun: Arc::default(),
            strangers: Vec::new(),
        };
        for port in ports {
            for _ in 0..STRANGERS {
                let (is_over, begun) = (Arc::clone(&flood.is_over), Arc::clone(&flood.begun));
                let (said, port) = (Arc::clone(&said), *port);
                flood.strangers.push(thread::spawn(move || {
                    let mut held = VecDeque::new();
                    let mut count = 0;
                    while !is_over.load(Ordering::Relaxed) && count < HANDSHAKES_MAX {
                        count += 1;
                        held.extend(begin(port, &said));
                        begun.fetch_add(1, Ordering::Relaxed);
                        if held.len() > HELD_MAX {
                            held.pop_front();
                        }
                    }
                }));
            }
        }
        Ok(flood)
    }

    fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for stranger in self.strangers.drain(..) {
            stranger.join().ok();
        }
    }
}

/// A handshake that the server has to answer; nobody waits for the answer.
fn begin(port: SocketAddr, said: &[u8]) -> Option<TcpStream> {
    let mut socket = TcpStream::connect_timeout(&port, PATIENCE).ok()?;
    socket.write_all(said).ok()?;
    Some(socket)
}

/// What a replica says of the cluster, over TLS; nothing if it does not.
fn seen_by(cluster: &Cluster<'_>, id: u16) -> Value {
    let (http, ca) = (cluster.http(id).to_string(), cluster.keys().join("ca.pem"));
    let ca = ca.display().to_string();
    let said = cluster.command(&["status", "--json", "--addr", &http, "--tls-ca", &ca]);
    serde_json::from_str(&said.unwrap_or_default()).unwrap_or_default()
}

/// What it says of itself.
fn status(cluster: &Cluster<'_>, id: u16) -> Value {
    let seen = seen_by(cluster, id);
    let all = seen["replicas"].as_array().cloned().unwrap_or_default();
    let own = all.into_iter().find(|it| it["id"] == id);
    own.map_or(Value::Null, |mut own| own["report"].take())
}

fn counter(cluster: &Cluster<'_>, id: u16, name: &str) -> u64 {
    let counted = &status(cluster, id)["counters"][name];
    counted.as_u64().unwrap_or_default()
}

fn wait_for_ready(cluster: &Cluster<'_>, ids: &[u16]) -> Result<()> {
    cluster.wait_for(&format!("{ids:?} to be ready"), || {
        Ok(ids.iter().all(|id| status(cluster, *id)["ready"] == true))
    })
}

fn write(client: &mut TlsClient, number: u64) -> Result<Duration> {
    let began = Instant::now();
    let text = format!("set key-{number} 0 0 1\r\nx\r\n");
    let said = client.ask(text.as_bytes(), b"\r\n")?;
    ensure!(said == "STORED\r\n", "{said}");
    Ok(began.elapsed())
}

/// Writes go on, nobody is elected anew, and a replica that was away comes back while the flood lasts.
#[test]
fn a_flood_of_handshakes_costs_neither_leader_nor_writes_nor_a_replicas_return() {
    let mut plan = Plan {
        tls: Tls::Peers,
        ..Plan::new(3, Durability::Sync)
    };
    plan.options = vec![("client-tls", "on")];
    run(plan, |cluster| {
        cluster.start_all()?;
        wait_for_ready(cluster, &[0, 1, 2])?;
        let leader = seen_by(cluster, 0)["leader"].as_u64();
        let leader = u16::try_from(leader.context("a leader")?)?;
        let authorities = cluster.keys().join("ca.pem");
        let connect = |cluster: &Cluster<'_>, id| {
            TlsClient::connect(cluster.memcached(id), Some(&authorities), None)
        };
        let mut client = connect(cluster, leader)?;
        let mut slowest = Duration::ZERO;
        for number in 0..100 {
            slowest = slowest.max(write(&mut client, number)?);
        }
        let term = status(cluster, leader)["term"].clone();
        // The leader has most to lose, and the replicas that come back have to get in there.
        let flood = Flood::start(&[cluster.peer(leader), cluster.memcached(leader)])?;
        let (mut number, mut flooded) = (100, Duration::ZERO);
        while number < 500 {
            flooded = flooded.max(write(&mut client, number)?);
            number += 1;
        }
        cluster.wait_for_within(
            "the flood to be more than there is time for",
            FLOOD_DEADLINE,
            || {
                write(&mut client, number)?;
                number += 1;
                let closed = counter(cluster, leader, "peer_connections_closed_no_time");
                let postponed = counter(cluster, leader, "client_handshakes_postponed");
                Ok(closed > 20 && postponed > 20)
            },
        )?;
        println!("slowest write: {slowest:?}, flooded: {flooded:?}");
        ensure!(
            status(cluster, leader)["term"] == term,
            "nobody was elected"
        );

        for victim in (0..3).filter(|id| *id != leader) {
            cluster.kill(victim)?;
            cluster.start(victim)?;
            wait_for_ready(cluster, &[victim])?;
            write(&mut client, number)?;
            number += 1;
        }
        ensure!(
            status(cluster, leader)["term"] == term,
            "nobody was elected"
        );
        // Somebody new gets in, too, if it is patient.
        cluster.wait_for("a new client to be let in", || {
            let Ok(mut another) = connect(cluster, leader) else {
                return Ok(false);
            };
            Ok(write(&mut another, number).is_ok())
        })?;
        println!("{} handshakes were begun", flood.begun());
        ensure!(flood.begun() > 200);
        drop(flood);
        let refused = cluster.log(leader).matches("no connection").count();
        ensure!(refused < 20, "the log has {refused} lines of strangers");
        Ok(())
    });
}
