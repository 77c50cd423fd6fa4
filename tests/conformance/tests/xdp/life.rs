//! A plane outlives what happens to its network interface, says what keeps it from running, and refuses to
//! start where it could not run.
use crate::veth::{
    Namespaces, OUTSIDE, PORT, counted, plane_ip, port, send_once, socket, socket_at, test_ip,
};
use quorumwire_conformance_tests::cluster::{GROUP, keys};
use quorumwire_conformance_tests::forge::{header, signed};
use quorumwire_conformance_tests::next_datagram;
use quorumwire_fastpath::{Options, endpoint_at};
use quorumwire_interfaces::{
    DataPlane, Grant, Index, PlaneError, PlaneEvent, PlanePeer, ReplicaId, Term,
};
use quorumwire_plane_xdp::{
    Attachment, Blames, Note, ProgramAt, Refused, XdpMode, XdpPlane, let_pass, still_attached,
    stop_passing,
};
use quorumwire_wire::packet::{Header, Kind};
use std::io;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// Longest time that anything may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The last entry before the first fast term.
const START: u64 = 10;

/// A plane in a namespace, which follows a leader that the test plays.
pub struct Follower {
    pub namespaces: Namespaces,
    pub plane: XdpPlane,
    term: u64,
    last: u64,
    last_term: u64,
    /// Entries that the plane has handed over.
    taken: u64,
}

fn attach(name: Option<&str>) -> Result<XdpPlane, Refused> {
    attach_at(PORT, name)
}

fn attach_at(port: u16, name: Option<&str>) -> Result<XdpPlane, Refused> {
    attach_as(port, name, Attachment::default())
}

/// The plane of this thread's namespace.
pub fn attach_as(port: u16, name: Option<&str>, how: Attachment) -> Result<XdpPlane, Refused> {
    let options = Options {
        group: GROUP,
        ring_slots: 64,
        window: 64,
    };
    let address = SocketAddr::new(plane_ip(0).into(), port);
    XdpPlane::attach(address, name, options, how)
}

/// Tries until it is done. What this process has closed is closed a little later: another test may be about
/// to start a program, and hold it until then.
fn until_done<T, E: std::fmt::Debug>(mut attempt: impl FnMut() -> Result<T, E>) -> T {
    let begun = Instant::now();
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error:?}"),
        }
        std::thread::yield_now();
    }
}

impl Follower {
    /// In the plane's namespace from now on.
    fn new(name: Option<&str>) -> Self {
        let namespaces = Namespaces::new(1);
        namespaces.enter_test();
        let_pass(&port(0)).expect("root, and a kernel for it");
        namespaces.enter_plane(0);
        let plane = attach(name).expect("root, and a kernel for it");
        Self::of(namespaces, plane)
    }

    pub fn of(namespaces: Namespaces, mut plane: XdpPlane) -> Self {
        plane.set_keys(&keys());
        Self {
            namespaces,
            plane,
            term: 1,
            last: START,
            last_term: 1,
            taken: START,
        }
    }

    pub fn engage(&mut self) -> Result<(), PlaneError> {
        self.term += 1;
        let address = |ip: std::net::Ipv4Addr| SocketAddr::new(ip.into(), PORT);
        let peers = [address(test_ip(0, 99)), address(test_ip(0, 0))];
        self.plane.engage(&Grant {
            group: GROUP,
            term: Term(self.term),
            last_index: Index(self.last),
            last_term: Term(self.last_term),
            commit_index: Index(self.last),
            me: 0,
            leader: 1,
            peers: (0..)
                .zip(peers)
                .map(|(id, address)| PlanePeer {
                    id: ReplicaId(id),
                    endpoint: Some(endpoint_at(address)),
                })
                .collect(),
            quorum: 2,
            held: false,
        })
    }

    /// Sends it the next entry, until it acknowledges that.
    pub fn takes_an_entry(&mut self) {
        self.namespaces.enter_test();
        let leader = socket(test_ip(0, 0));
        self.namespaces.enter_plane(0);
        let append = Header {
            term: self.term,
            previous_term: self.last_term,
            ..header(Kind::Append, 1, self.last + 1)
        };
        let bytes = signed(&append, b"an entry", keys().cluster.key);
        let begun = Instant::now();
        loop {
            send_once(&leader, &bytes, (plane_ip(0), PORT));
            let answer = next_datagram(&leader).map(|bytes| {
                let header = Header::decode(bytes.first_chunk().expect("a header"));
                (header.kind, header.term, header.index)
            });
            if answer == Some((Kind::AppendOk as u8, self.term, self.last + 1)) {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "no acknowledgement: {answer:?}");
            std::thread::yield_now();
        }
        (self.last, self.last_term) = (self.last + 1, self.term);
    }

    fn poll(&mut self) {
        let taken = &mut self.taken;
        self.plane.poll(256, &mut |event| {
            if let PlaneEvent::Entry(entry) = event {
                assert_eq!(entry.index.0, *taken + 1);
                *taken = entry.index.0;
            }
        });
    }

    /// Looks at the plane until something keeps it from running that reads like this.
    pub fn until_fault(&mut self, says: &[&str]) {
        let begun = Instant::now();
        loop {
            self.poll();
            let fault = self.plane.fault().unwrap_or_default();
            if says.iter().all(|part| fault.contains(part)) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{says:?} in {fault:?}");
            std::thread::yield_now();
        }
    }

    pub fn until_sound(&mut self) {
        let begun = Instant::now();
        while let Some(fault) = self.plane.fault() {
            assert!(begun.elapsed() < PATIENCE, "{fault}");
            self.poll();
            std::thread::yield_now();
        }
    }

    /// It says so whatever it is told, and is not engaged again.
    fn fails(&mut self, says: &str) {
        for done in [self.plane.heartbeat(1), self.plane.release(Index(START))] {
            let Err(PlaneError::Failed(text)) = done else {
                panic!("{done:?}");
            };
            assert!(text.contains(says), "{says} in {text}");
        }
        let registers = self.plane.disengage();
        assert_eq!(registers.last_index.0, self.last);
        self.poll();
        assert_eq!(self.taken, self.last, "what it had is handed over");
        let again = self.engage();
        assert!(
            matches!(&again, Err(PlaneError::Failed(text)) if text.contains(says)),
            "{again:?}"
        );
        assert_eq!(self.plane.registers(), registers);
    }
}

/// A later process looks for it before it promises anything.
#[test]
fn where_a_program_is_attached_is_noted_before_it_is() {
    let namespaces = Namespaces::new(1);
    namespaces.enter_test();
    let_pass(&port(0)).expect("root, and a kernel for it");
    namespaces.enter_plane(0);
    let options = Options {
        group: GROUP,
        ring_slots: 64,
        window: 64,
    };
    let attach = |note: Arc<Note>| {
        let (address, how) = ((plane_ip(0), PORT).into(), Attachment::default());
        XdpPlane::attach_noted(address, None, options, how, note)
    };
    let (sender, noted) = mpsc::channel();
    let note = move |at: &ProgramAt| {
        let there = still_attached(&[at.program])?;
        sender.send((at.clone(), there)).map_err(io::Error::other)
    };
    let plane = attach(Arc::new(note)).expect("root, and a kernel for it");
    let (at, there_before) = noted.try_recv().expect("it was noted");
    assert_eq!(there_before, []);
    let there = still_attached(&[at.program]).expect("told");
    assert_eq!(there, std::slice::from_ref(&at));
    drop(plane);
    until_done(|| match &still_attached(&[at.program])?[..] {
        [] => Ok(()),
        there => Err(io::Error::other(format!("{there:?}"))),
    });
    // What cannot be noted is not attached.
    let noted_where = mpsc::channel();
    let note = move |at: &ProgramAt| {
        noted_where.0.send(at.program).ok();
        Err(io::Error::other("disk full"))
    };
    let refused = attach(Arc::new(note)).err().expect("refused");
    assert!(
        refused.text.contains("cannot be noted: disk full"),
        "{refused}"
    );
    let program = noted_where.1.try_recv().expect("it was loaded");
    assert_eq!(still_attached(&[program]).expect("told"), []);
}

#[test]
fn an_interface_that_is_down_keeps_its_program() {
    let mut follower = Follower::new(None);
    follower.engage().expect("a sound grant");
    follower.takes_an_entry();
    follower.namespaces.ip_in_plane(0, "link set eth0 down\n");
    follower.until_fault(&["interface eth0 is down"]);
    follower.fails("interface eth0 is down");
    follower.namespaces.ip_in_plane(0, "link set eth0 up\n");
    follower.until_sound();
    follower.engage().expect("it is up again");
    follower.takes_an_entry();
}

/// Nothing was engaged meanwhile, and nobody looked.
#[test]
fn what_has_passed_before_anybody_asks_is_no_fault() {
    let mut follower = Follower::new(None);
    follower.engage().expect("a sound grant");
    follower
        .namespaces
        .ip_in_plane(0, "link set eth0 down\nlink set eth0 up\n");
    follower.poll();
    assert_eq!(follower.plane.fault(), None);
    follower.takes_an_entry();
}

#[test]
fn a_lost_address_is_missed_until_it_is_back() {
    for name in [None, Some("eth0")] {
        let mut follower = Follower::new(name);
        follower.engage().expect("a sound grant");
        let address = format!("{}/24 dev eth0\n", plane_ip(0));
        let namespaces = &follower.namespaces;
        namespaces.ip_in_plane(0, &format!("addr del {address}"));
        let ip = plane_ip(0).to_string();
        follower.until_fault(
            &["interface", "has the address", &ip][..if name.is_none() { 3 } else { 1 }],
        );
        follower.fails(&ip);
        let namespaces = &follower.namespaces;
        namespaces.ip_in_plane(0, &format!("addr add {address}"));
        follower.until_sound();
        follower.engage().expect("it is back");
        follower.takes_an_entry();
    }
}

#[test]
fn an_mtu_too_small_for_the_longest_packet_is_said_and_heals() {
    const SMALL: &str = "link set eth0 mtu 1475\n";
    let parts = ["interface eth0", "MTU of 1475", "at least 1476"];
    let mut follower = Follower::new(None);
    follower.engage().expect("a sound grant");
    follower.namespaces.ip_in_plane(0, SMALL);
    follower.until_fault(&parts);
    follower.fails(parts[1]);
    follower
        .namespaces
        .ip_in_plane(0, "link set eth0 mtu 1476\n");
    follower.until_sound();
    follower.engage().expect("it is large enough");
    follower.takes_an_entry();

    follower.namespaces.ip_in_plane(0, SMALL);
    drop(follower.plane);
    for (name, blames) in [(None, Blames::Address), (Some("eth0"), Blames::Interface)] {
        let refused = attach(name).err().expect("the MTU is too small");
        assert_eq!(refused.blames, blames);
        let says = |part: &&str| refused.text.contains(part);
        assert!(parts.iter().all(says), "{refused}");
    }
}

/// The veth driver looks at what the other end may send.
#[test]
fn an_mtu_too_large_for_the_driver_is_said() {
    let namespaces = Namespaces::new(1);
    namespaces.set_mtu(0, 9000);
    namespaces.enter_plane(0);
    let refused = attach(Some("eth0")).err().expect("veth takes 3,498 or so");
    assert_eq!(refused.blames, Blames::Interface);
    for part in [
        "interface eth0",
        "MTU of 9000",
        "larger than its driver takes",
        "generic mode takes any",
    ] {
        assert!(refused.text.contains(part), "{refused}");
    }
}

/// They reach whom they are for, and the plane serves.
#[test]
fn jumbo_frames_pass_in_generic_mode() {
    const JUMBO_BYTES: usize = 8000;
    let namespaces = Namespaces::new(1);
    namespaces.set_mtu(0, 9000);
    let sender = socket(test_ip(0, OUTSIDE));
    namespaces.enter_plane(0);
    let how = Attachment {
        mode: XdpMode::Generic,
        ..Attachment::default()
    };
    let plane = attach_as(PORT, Some("eth0"), how).expect("any MTU");
    let others = socket_at(plane_ip(0), PORT + 1);
    let mut follower = Follower::of(namespaces, plane);
    follower.engage().expect("a sound grant");
    follower.takes_an_entry();

    let sent = [0x5a; JUMBO_BYTES];
    let mut received = [0; JUMBO_BYTES + 1];
    for port in [PORT, PORT + 1] {
        send_once(&sender, &sent, (plane_ip(0), port));
    }
    let bytes = until_done(|| others.recv(&mut received));
    assert_eq!(received[..bytes], sent);
    follower.takes_an_entry();
}

#[test]
fn a_deleted_interface_is_missed_and_its_successor_is_taken() {
    for (settings, name) in [("", Some("eth0")), ("index 77", None)] {
        let mut follower = Follower::new(name);
        follower.engage().expect("a sound grant");
        follower.takes_an_entry();
        let received = counted(&follower.plane, "received");
        follower.namespaces.ip_in_plane(0, "link del eth0\n");
        follower.until_fault(&["interface eth0 is gone"]);
        follower.fails("interface eth0 is gone");

        follower.namespaces.connect(0, settings);
        follower.namespaces.enter_test();
        let_pass(&port(0)).expect("a port without a program");
        follower.namespaces.enter_plane(0);
        follower.until_sound();
        follower.engage().expect("there is one again");
        follower.takes_an_entry();
        assert!(counted(&follower.plane, "received") > received);
        follower.plane.disengage();
        follower.poll();
        assert_eq!(follower.taken, START + 2);
    }
}

/// So fast that the host sees an interface of the same number and Ethernet address; only the program is not
/// there.
#[test]
fn an_interface_in_the_place_of_another_is_found_out() {
    let mut follower = Follower::new(None);
    for _ in 0..2 {
        follower.namespaces.ip_in_plane(0, "link del eth0\n");
        follower.namespaces.connect(0, "index 77");
        follower.namespaces.enter_test();
        let_pass(&port(0)).expect("a port without a program");
        follower.namespaces.enter_plane(0);
        follower.engage().expect("it attaches itself anew");
        follower.takes_an_entry();
        follower.plane.disengage();
        follower.poll();
    }
}

/// The kernel tells nobody that a program of a link has gone.
#[test]
fn what_passes_untold_is_found_when_it_is_to_be_engaged() {
    let mut follower = Follower::new(None);
    follower.namespaces.ip_in_plane(0, "link del eth0\n");
    follower.namespaces.connect(0, "");
    let other = attach_at(PORT + 1, None).expect("there is no program yet");
    follower.until_fault(&["interface eth0 has another XDP program"]);
    assert!(matches!(follower.engage(), Err(PlaneError::Failed(_))));
    drop(other);
    follower.namespaces.enter_test();
    let_pass(&port(0)).expect("a port without a program");
    follower.namespaces.enter_plane(0);
    until_done(|| follower.engage());
    follower.takes_an_entry();
}

/// An entry it has must not be lost with the programs: neither while it is engaged nor before all is taken.
#[test]
fn it_moves_to_another_interface_only_with_empty_hands() {
    for is_seen_while_engaged in [true, false] {
        let mut follower = Follower::new(None);
        follower.engage().expect("a sound grant");
        follower.takes_an_entry();
        follower.namespaces.ip_in_plane(0, "link del eth0\n");
        follower.namespaces.connect(0, "");
        if is_seen_while_engaged {
            follower.until_fault(&["interface eth0 has lost the plane's program"]);
        }
        let registers = follower.plane.registers();
        assert_eq!((registers.term.0, registers.last_index.0), (2, START + 1));
        assert_eq!(follower.plane.disengage(), registers);
        follower.poll();
        assert_eq!(follower.taken, START + 1);
        follower.namespaces.enter_test();
        let_pass(&port(0)).expect("a port without a program");
        follower.namespaces.enter_plane(0);
        follower.engage().expect("it attaches itself anew");
        follower.takes_an_entry();
    }
}

/// The other one has the same Ethernet address, as those have that stand in for each other.
#[test]
fn it_follows_its_address_to_another_interface() {
    let follower = &mut Follower::new(None);
    let address = format!("{}/24 dev", plane_ip(0));
    follower.namespaces.ip_in_plane(
        0,
        &format!(
            "link add eth1 address 02:00:00:00:01:00 type veth peer name eth2\n\
             link set eth1 up\naddr del {address} eth0\naddr add {address} eth1\n"
        ),
    );
    let begun = Instant::now();
    while let_pass("eth0").is_err() {
        assert!(begun.elapsed() < PATIENCE, "it stays where it was");
        follower.poll();
        std::thread::yield_now();
    }
    let_pass("eth1").expect_err("there is the plane's program now");
    follower.until_sound();
}

#[test]
fn frames_leave_from_the_ethernet_address_the_interface_has_now() {
    let mut follower = Follower::new(None);
    let new = "02:00:00:00:07:07";
    follower
        .namespaces
        .ip_in_plane(0, &format!("link set eth0 address {new}\n"));
    follower.namespaces.ip_in_test(&format!(
        "neigh replace {} lladdr {new} dev {} nud permanent\n",
        plane_ip(0),
        port(0)
    ));
    follower.until_sound();
    follower.engage().expect("a sound grant");
    // What comes from elsewhere does not come.
    follower.namespaces.enter_test();
    let rules = format!(
        "add table inet only; add chain inet only in {{ type filter hook input priority 0; }}; \
         add rule inet only in udp sport {PORT} ether saddr != {new} drop"
    );
    let done = Command::new("nft").arg(rules).output().expect("nftables");
    assert!(done.status.success(), "{done:?}");
    follower.namespaces.enter_plane(0);
    follower.takes_an_entry();
}

/// Attached by netlink, which outlives its process, and by a link, which does not.
#[test]
fn a_second_program_is_named_with_what_to_do() {
    let namespaces = Namespaces::new(1);
    namespaces.enter_plane(0);
    let_pass("eth0").expect("root, and a kernel for it");
    let refused = attach(Some("eth0")).err().expect("there is a program");
    assert_eq!(refused.blames, Blames::Interface);
    for part in ["interface eth0", "qw_pass", "ip link set dev eth0 xdp off"] {
        assert!(refused.text.contains(part), "{part:?} in {refused}");
    }
    stop_passing("eth0").expect("it was ours");

    let first = until_done(|| attach(None));
    let refused = attach_at(PORT + 1, None).err().expect("there is a program");
    assert_eq!(refused.blames, Blames::Address);
    for part in ["interface eth0", "qw_receive", "bpftool link detach id "] {
        assert!(refused.text.contains(part), "{part:?} in {refused}");
    }
    drop(first);
    until_done(|| attach(None));
}

#[test]
fn what_is_wrong_at_the_start_is_blamed_on_its_option() {
    let namespaces = Namespaces::new(1);
    namespaces.enter_plane(0);
    let refused = attach(Some("eth7")).err().expect("there is none");
    assert_eq!(refused.blames, Blames::Interface);
    assert_eq!(
        refused.text,
        "there is no interface eth7; there are: lo, eth0"
    );
    let refused = attach(Some("lo")).err().expect("it has another address");
    assert_eq!(refused.blames, Blames::Address);
    let ip = plane_ip(0);
    namespaces.ip_in_plane(
        0,
        &format!("addr del {ip}/24 dev eth0\naddr add {ip} dev lo\n"),
    );
    let refused = attach(Some("lo")).err().expect("it is not Ethernet");
    assert_eq!(refused.blames, Blames::Interface);
    assert!(refused.text.contains("no Ethernet address"), "{refused}");
    namespaces.ip_in_plane(0, &format!("addr del {ip} dev lo\n"));
    let refused = attach(None).err().expect("nobody has the address");
    assert_eq!(refused.blames, Blames::Address);
}
