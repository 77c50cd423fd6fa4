//! The core in gates, simulated, beside the engine in ordinary memory (`differential.rs` of the suite).
//! Several frames are under way at once, and network and memory take what the core gives only now and then.
//! Behind each such lot, and behind every order of the host, registers are compared, and what left and what
//! was told.
use crate::{frame_of, mac_at};
use quorumwire_conformance_tests::differential::{
    Came, Comes, Datagram, FRAME_BYTES_MAX, HostLog, Judged, Out, PORT, Run, Twin, corpus,
    leave_one,
};
use quorumwire_conformance_tests::faults::Dice;
use quorumwire_conformance_tests::frames::{Checksum, Home, found, unframed};
use quorumwire_fastpath::{Engine, Keys, Outbox, RegisterStore, step};
use quorumwire_interfaces::{
    Command, CounterSink, DataPlane, Grant, Index, PlaneError, PlaneKeys, Registers as Shown,
};
use quorumwire_plane_fpga::{FpgaPlane, Network, datagram_in};
use quorumwire_wire::packet::{ACTION_COMMIT, ACTION_RESEND, Header, Registers, Role};
use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};

/// Frames under way at once, at most: the core has room for so many of the longest, though nobody takes any.
const AT_ONCE_MAX: usize = 16;
/// What must have been reached, or the comparison has shown too little: role, kind, actions, reason.
const WANTED: [&str; 24] = [
    "Follower Append 0 RingFull",
    "Follower Append 0 Tag",
    "Follower Append 12 Repeated",
    "Follower Append 13 None",
    "Follower Append 16 History",
    "Follower Append 16 TermOld",
    "Follower Append 4 Gap",
    "Follower Append 5 None",
    "Follower Forward 0 Unexpected",
    "Follower Heartbeat 4 None",
    "Follower Request 32 None",
    "Leader AppendOk 0 None",
    "Leader AppendOk 16 BeyondLast",
    "Leader AppendOk 8 None",
    "Leader Forward 3 None",
    "Leader Request 0 WindowFull",
    "Leader Request 11 None",
    "Leader Request 16 Malformed",
    "Leader Request 3 None",
    "Leader Retransmit 16 BehindRing",
    "Leader Retransmit 64 None",
    "Off Append 16 Off",
    "Off Request 16 Off",
    "any none 0 not for a plane",
];

/// What is at the card.
#[derive(Default)]
struct Around {
    coming: VecDeque<Vec<u8>>,
    by_core: Vec<Datagram>,
    by_host: Vec<Datagram>,
}

struct Cable(Arc<Mutex<Around>>);

impl Cable {
    fn around(&self) -> MutexGuard<'_, Around> {
        self.0.lock().expect("nobody panics with it")
    }
}

impl Outbox for Cable {
    fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        let (port, bytes) = (PORT, datagram.to_vec());
        self.around().by_host.push(Datagram { port, to, bytes });
    }
}

impl Network for Cable {
    fn mac(&self) -> [u8; 6] {
        mac_at(OWN)
    }

    fn mac_of(&mut self, ip: IpAddr) -> Option<[u8; 6]> {
        match ip {
            IpAddr::V4(ip) => Some(mac_at(ip)),
            IpAddr::V6(_) => None,
        }
    }

    fn next_frame(&mut self, frame: &mut [u8]) -> Option<usize> {
        let come = self.around().coming.pop_front()?;
        frame[..come.len()].copy_from_slice(&come);
        Some(come.len())
    }

    fn send_frame(&mut self, frame: &[u8]) {
        let (envelope, bytes) = unframed(frame, Checksum::Made)
            .expect("a datagram")
            .expect("a sound one");
        assert_eq!(envelope.from, (OWN, PORT).into(), "the sender");
        let (port, to, bytes) = (PORT, envelope.to, bytes.to_vec());
        self.around().by_core.push(Datagram { port, to, bytes });
    }

    fn flush(&mut self) {}

    fn count(&self, _: CounterSink<'_>) {}
}

const OWN: Ipv4Addr = Ipv4Addr::new(10, 77, 100, 0);

/// The core and the engine.
struct Gates {
    native: Engine,
    plane: FpgaPlane<Cable>,
    around: Arc<Mutex<Around>>,
    keys: Keys,
    /// What the engine has sent since all was compared, and its host was told.
    wanted: Vec<Datagram>,
    told: HostLog,
    /// Frames under way, and how many there may be now.
    waiting: usize,
    at_once: usize,
    lots: usize,
    reached: BTreeSet<String>,
}

impl Gates {
    fn new(run: &Run) -> Self {
        let around = Arc::new(Mutex::new(Around::default()));
        let cable = Cable(Arc::clone(&around));
        let plane = FpgaPlane::new((OWN, PORT).into(), run.options(), cable);
        Self {
            native: Engine::new(run.options()).expect("sound options"),
            plane: plane.expect("sound options"),
            around,
            keys: Keys::default(),
            wanted: Vec::new(),
            told: HostLog::default(),
            waiting: 0,
            at_once: 1,
            lots: 0,
            reached: BTreeSet::new(),
        }
    }

    /// The core does what came, both hosts look, and all is compared.
    fn flush(&mut self) {
        let mut told = HostLog::default();
        while self.plane.poll(AT_ONCE_MAX, &mut |event| told.note(&event)) > 0 {}
        self.native.take(&mut |event| self.told.note(&event));
        assert_eq!(self.plane.fault(), None);
        assert_eq!(told, std::mem::take(&mut self.told), "what hosts were told");
        let mut around = self.around.lock().expect("nobody panics with it");
        assert!(around.coming.is_empty());
        let mut sent = std::mem::take(&mut around.by_core);
        let by_host = std::mem::take(&mut around.by_host);
        drop(around);
        // The core's leave in their order; what is left to its host leaves beside them.
        if !by_host.is_empty() {
            sent.extend(by_host);
            sent.sort();
            self.wanted.sort();
        }
        assert_eq!(sent, std::mem::take(&mut self.wanted), "what was sent");
        assert_eq!(self.plane.registers(), self.native.registers());
        self.waiting = 0;
        self.lots += 1;
        // Another lot is another size, and meets another network.
        self.at_once = 1 + self.lots * 7 % AT_ONCE_MAX;
        self.plane
            .take_beats_in_one_clock_of([1, 2, 5][self.lots % 3]);
    }

    /// A frame comes to the core, for which the engine has sent this.
    fn comes(&mut self, frame: &[u8], leave: Vec<Datagram>) {
        self.wanted.extend(leave);
        let mut around = self.around.lock().expect("nobody panics with it");
        around.coming.push_back(frame.to_vec());
        drop(around);
        self.waiting += 1;
        if self.waiting >= self.at_once {
            self.flush();
        }
    }

    fn order(
        &mut self,
        native: impl FnOnce(&mut Engine, &mut Out) -> Result<String, PlaneError>,
        plane: impl FnOnce(&mut FpgaPlane<Cable>) -> Result<String, PlaneError>,
    ) -> Vec<Datagram> {
        self.flush();
        let mut out = Out::default();
        let one = native(&mut self.native, &mut out);
        assert_eq!(one, plane(&mut self.plane));
        self.wanted.clone_from(&out.0);
        self.flush();
        out.0
    }
}

/// Whether a frame may have entries sent again or answered: which ones the core does by itself depends on the
/// clock, unless nothing else is under way.
fn may_repeat(registers: &Registers, datagram: &[u8]) -> bool {
    let Some(header) = datagram.first_chunk().map(Header::decode) else {
        return false;
    };
    let outcome = step(&mut registers.clone(), &header);
    let leads = registers.role == Role::Leader as u8;
    outcome.has(ACTION_RESEND) || leads && outcome.has(ACTION_COMMIT)
}

impl Twin for Gates {
    fn own(&self) -> SocketAddr {
        (OWN, PORT).into()
    }

    fn ip_of(&self, slot: usize) -> IpAddr {
        // As beside the plane in the kernel: packets that are forwarded say where clients are.
        let host = u8::try_from(10 + slot).expect("a few");
        Ipv4Addr::new(10, 77, 0, host).into()
    }

    fn multicast(&self) -> Option<Ipv4Addr> {
        None
    }

    fn frame(&self, from: SocketAddr, to: SocketAddr, datagram: &[u8]) -> Vec<u8> {
        frame_of(from, to, datagram)
    }

    fn registers(&self) -> Registers {
        *self.native.register_store().registers()
    }

    fn shown(&self) -> Shown {
        self.native.registers()
    }

    fn set_keys(&mut self, keys: &PlaneKeys) {
        self.flush();
        self.keys = Keys::from(keys);
        self.native.set_keys(keys);
        self.plane.set_keys(keys);
    }

    fn engage(&mut self, grant: &Grant) {
        self.flush();
        self.native.engage(grant).expect("a sound grant");
        self.plane.engage(grant).expect("a sound grant");
        self.flush();
    }

    fn disengage(&mut self) {
        self.flush();
        assert_eq!(self.native.disengage(), self.plane.disengage());
        self.flush();
    }

    fn poll(&mut self) {
        self.flush();
    }

    /// Entries are compared as the hosts are told of them.
    fn compare_ring(&mut self) {
        self.flush();
    }

    fn receive(&mut self, frame: &[u8], _: Comes) -> Vec<Datagram> {
        let home = Home {
            ip: OWN.into(),
            all: None,
            ports: &[PORT],
        };
        let Some(found) = found(frame, &home) else {
            // It is the host's, unchanged; what that finds in it, it treats as its own.
            if let Some((from, to, datagram)) = datagram_in(frame)
                && to == self.own()
            {
                let told = &mut self.told;
                self.native
                    .receive_passed(from, datagram, &mut |event| told.note(&event));
            }
            self.reached.insert("any none 0 not for a plane".into());
            // A memcached client's may be longer than a card's frames.
            if frame.len() <= FRAME_BYTES_MAX {
                self.comes(frame, Vec::new());
            }
            return Vec::new();
        };
        let mut out = Out::default();
        let mut told = HostLog::default();
        let is_alone = may_repeat(&self.registers(), found.datagram);
        if is_alone {
            self.flush();
        }
        let came = (found.from, found.datagram);
        let judged = Judged::of(&mut self.native, &self.keys, came, &mut out, &mut told);
        self.told.passed.append(&mut told.passed);
        self.told.behind.append(&mut told.behind);
        let actions = judged.outcome.actions;
        let why = format!("{} {} {actions} {}", judged.role, judged.kind, judged.why());
        self.reached.insert(why);
        let mut leave = out.0.clone();
        leave_one(&mut leave);
        self.comes(frame, leave);
        if is_alone {
            self.flush();
        }
        out.0
    }

    fn submit(&mut self, commands: &[Command<'_>]) -> Vec<Datagram> {
        self.order(
            |native, out| native.submit(commands, out).map(|done| format!("{done:?}")),
            |plane| plane.submit(commands).map(|done| format!("{done:?}")),
        )
    }

    fn heartbeat(&mut self, round: u64) -> Vec<Datagram> {
        self.order(
            |native, out| native.heartbeat(round, out).map(|()| String::new()),
            |plane| plane.heartbeat(round).map(|()| String::new()),
        )
    }

    fn persisted(&mut self, upto: Index) -> Vec<Datagram> {
        self.order(
            |native, out| native.persisted(upto, out).map(|()| String::new()),
            |plane| plane.persisted(upto).map(|()| String::new()),
        )
    }

    fn release(&mut self, upto: Index) {
        self.order(
            |native, _| native.release(upto).map(|()| String::new()),
            |plane| plane.release(upto).map(|()| String::new()),
        );
    }

    fn allow(&mut self, _: bool, _: Option<u64>) {}

    fn keep(&mut self, _: &[u8], _: Option<&[u8]>) {}
}

#[test]
fn the_core_does_what_the_native_one_does() {
    let (mut dice, mut number, mut came) = (Dice::new(), 1, Came::new());
    let mut reached = BTreeSet::new();
    for run in corpus() {
        let mut gates = Gates::new(&run);
        run.go(&mut gates, &mut dice, &mut number, &mut came);
        reached.append(&mut gates.reached);
    }
    came.end();
    for wanted in WANTED {
        assert!(
            reached.contains(wanted),
            "never reached: {wanted}; but {reached:?}"
        );
    }
}
