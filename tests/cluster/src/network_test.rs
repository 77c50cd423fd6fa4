//! Tests of the network: real datagrams through real cuts.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use super::*;

/// How long an answer that should come may take.
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);
const PORT: u16 = 9;

/// A socket bound on a machine; a socket stays in the namespace it was made in.
fn socket(network: &Network, machine: Machine) -> UdpSocket {
    network
        .run_in(machine, || {
            UdpSocket::bind((network.address(machine), PORT)).expect("bind")
        })
        .expect("enter")
}

/// One socket per machine of a network, and a running number that tells datagrams apart.
struct Probes {
    sockets: Vec<(Machine, UdpSocket)>,
    number: u64,
}

impl Probes {
    fn new(network: &Network) -> Self {
        let sockets = network
            .machines()
            .map(|p| (p, socket(network, p)))
            .collect();
        Self { sockets, number: 0 }
    }

    fn at(&self, machine: Machine) -> &UdpSocket {
        let found = self.sockets.iter().find(|(p, _)| *p == machine);
        &found.expect("a machine of the network").1
    }

    fn send(&mut self, from: Machine, to: Machine) {
        self.number += 1;
        let address = self.at(to).local_addr().expect("bound");
        let datagram = self.number.to_be_bytes();
        self.at(from).send_to(&datagram, address).expect("send");
    }

    /// Whether the datagram sent last is in the receiver's queue. A veth delivers in order, so a
    /// datagram sent over a link that works, after the one asked for, ends the wait without a sleep.
    fn arrived(&self, to: Machine) -> bool {
        let socket = self.at(to);
        socket.set_nonblocking(true).expect("nonblocking");
        let mut datagram = [0; 8];
        let mut seen = false;
        while let Ok((8, _)) = socket.recv_from(&mut datagram) {
            seen |= u64::from_be_bytes(datagram) == self.number;
        }
        seen
    }

    /// Sends until a datagram arrives (a link that should work).
    fn passes(&mut self, from: Machine, to: Machine) -> bool {
        let deadline = Instant::now() + ANSWER_DEADLINE;
        while Instant::now() < deadline {
            self.send(from, to);
            for _ in 0..1000 {
                if self.arrived(to) {
                    return true;
                }
                thread::yield_now();
            }
        }
        false
    }

    /// Nothing arrives over `from -> to`, while `witness -> to`, sent afterwards, does.
    fn is_cut(&mut self, from: Machine, to: Machine, witness: Machine) -> bool {
        for _ in 0..20 {
            self.send(from, to);
        }
        let barred = self.number - 19..=self.number;
        self.send(witness, to);
        let last = self.number;
        let socket = self.at(to);
        socket.set_nonblocking(false).expect("blocking");
        socket
            .set_read_timeout(Some(ANSWER_DEADLINE))
            .expect("timeout");
        let mut datagram = [0; 8];
        loop {
            socket.recv_from(&mut datagram).expect("the witness's own");
            let number = u64::from_be_bytes(datagram);
            if barred.contains(&number) {
                return false;
            }
            if number == last {
                return true;
            }
        }
    }
}

const R0: Machine = Machine::Replica(0);
const R1: Machine = Machine::Replica(1);
const R2: Machine = Machine::Replica(2);
const CLIENT: Machine = Machine::Client;

#[test]
fn cuts_bar_only_what_they_name_and_heal() {
    let network = Network::new(3).expect("network");
    let mut probes = Probes::new(&network);
    for (from, to) in [(R0, R1), (R1, R0), (CLIENT, R0), (R2, CLIENT)] {
        assert!(probes.passes(from, to), "{from:?} -> {to:?}");
    }

    network.cut_one_way(R0, R1).expect("cut");
    assert!(probes.is_cut(R0, R1, R2));
    assert!(probes.passes(R1, R0));
    network.heal().expect("heal");
    assert!(probes.passes(R0, R1));

    network.cut(R0, R2).expect("cut");
    assert!(probes.is_cut(R0, R2, R1) && probes.is_cut(R2, R0, R1));
    assert!(probes.passes(R0, R1) && probes.passes(R1, R2));
    network.heal().expect("heal");

    network.isolate(1).expect("isolate");
    assert!(probes.is_cut(R1, R0, CLIENT) && probes.is_cut(R2, R1, CLIENT));
    assert!(probes.passes(CLIENT, R1) && probes.passes(R0, R2));
    network.unplug(1).expect("unplug");
    assert!(probes.is_cut(R1, CLIENT, R0));
    network.heal().expect("heal");
    assert!(probes.passes(CLIENT, R1) && probes.passes(R1, R2));

    network.partition(&[&[0, 2]]).expect("partition");
    assert!(probes.is_cut(R1, R0, R2) && probes.is_cut(R1, R2, R0));
    assert!(probes.passes(R0, R2) && probes.passes(CLIENT, R1));
}

#[test]
fn loses_the_share_asked_for() {
    let network = Network::new(1).expect("network");
    let mut probes = Probes::new(&network);
    assert!(probes.passes(CLIENT, R0));
    network.lose(100).expect("lose");
    let first_lost = probes.number + 1;
    for _ in 0..50 {
        probes.send(CLIENT, R0);
    }
    let last_lost = probes.number;
    network.lose(30).expect("lose");
    let (mut sent, mut received) = (0_u32, 0_u32);
    for _ in 0..2000 {
        probes.send(CLIENT, R0);
        sent += 1;
        let socket = probes.at(R0);
        socket.set_nonblocking(true).expect("nonblocking");
        let mut datagram = [0; 8];
        while socket.recv_from(&mut datagram).is_ok() {
            let number = u64::from_be_bytes(datagram);
            assert!(!(first_lost..=last_lost).contains(&number), "all were lost");
            received += 1;
        }
    }
    let lost_percent = (sent - received) * 100 / sent;
    assert!((22..=38).contains(&lost_percent), "lost {lost_percent} %");
    network.heal().expect("heal");
    assert!(probes.passes(CLIENT, R0));
}

#[test]
fn nothing_stays_behind_also_after_a_panic() {
    let mut names = Vec::new();
    let network = Network::new(2).expect("network");
    let path = network.namespace(CLIENT);
    assert!(path.exists());
    names.push(path);
    let outcome = panic::catch_unwind(panic::AssertUnwindSafe(move || {
        let _moved = network;
        panic!("a test that fails");
    }));
    assert!(outcome.is_err());
    assert!(names.iter().all(|name| !name.exists()));
}

#[test]
fn leftovers_of_a_dead_run_go_away_and_only_those() {
    let mut dead = Command::new("true").spawn().expect("true");
    dead.wait().expect("wait");
    let leftover = format!("{NAME_PREFIX}-{}-0-sw", dead.id());
    let of_the_living = format!("{NAME_PREFIX}-1-0-sw"); // process 1 always runs
    add_namespace(&leftover).expect("add");
    add_namespace(&of_the_living).expect("add");
    remove_leftovers();
    let (gone, kept) = (
        !namespace_path(&leftover).exists(),
        namespace_path(&of_the_living).exists(),
    );
    remove_namespaces(|name| name == of_the_living);
    assert!(gone && kept);
}

#[test]
fn networks_do_not_share_addresses_or_names() {
    let (a, b) = (Network::new(1).expect("a"), Network::new(1).expect("b"));
    assert_ne!(a.name(), b.name());
    assert_ne!(a.address(CLIENT), b.address(CLIENT));
    assert!(
        belongs_to("qwtest-1-2-sw", "qwtest-1-2") && !belongs_to("qwtest-1-21-sw", "qwtest-1-2")
    );
}

#[test]
fn refuses_sizes_it_cannot_number() {
    for size in [0, REPLICAS_MAX + 1] {
        let refused = Network::new(size).expect_err("must refuse");
        assert!(refused.to_string().contains("allowed: 1 to 16"));
    }
}
