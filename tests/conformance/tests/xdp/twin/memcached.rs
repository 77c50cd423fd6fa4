//! Memcached clients of both planes: what the program does by itself, the native engine and a table of its
//! own here say, too.
use super::{Beside, ON_THE_WAY_MAX, Plan};
use crate::loaded::{XDP_PASS, XDP_TX};
use quorumwire_conformance_tests::differential::{
    Comes, Datagram, MEMCACHED, Out, Twin, reason_since, role_of,
};
use quorumwire_conformance_tests::forge::checked;
use quorumwire_conformance_tests::frames::{Checksum, Found, found};
use quorumwire_conformance_tests::next_datagram;
use quorumwire_fastpath::{
    Outcome, RECENT_OFFERS_TO_REPLACE, RECENT_TEXT_BYTES_MAX, memcached_set, recent_place, submit,
};
use quorumwire_interfaces::{Index, Leave, Offload};
use quorumwire_plane_xdp::XdpPlane;
use quorumwire_wire::packet::{
    ACTION_STORE, FLAG_BLIND, Header, Kind, MAGIC, Role, SENDER_CLIENT, VERSION,
};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::net::{IpAddr, UdpSocket};
use std::time::{Duration, Instant};

/// An answer may be so many times as long as its request.
const AMPLIFICATION_MAX: usize = 64;
/// Bytes before memcached's own.
const FRAME_BYTES: usize = 8;

/// What the kernel's plane may do for them.
pub struct Memcached {
    /// Gets what the program passes.
    host: UdpSocket,
    sets: bool,
    /// Up to where the answers show everything, if they may be given.
    applied: Option<u64>,
    /// By place.
    answers: BTreeMap<usize, Kept>,
}

/// A key, the answer to it, and how often others were offered since it took its place.
#[derive(Default)]
struct Kept {
    key: Vec<u8>,
    text: Vec<u8>,
    others: u8,
}

impl Memcached {
    /// For a plane in this thread's namespace.
    pub fn new(plane: &mut XdpPlane, ip: IpAddr) -> Self {
        let host = UdpSocket::bind((ip, MEMCACHED)).expect("a free port");
        host.set_nonblocking(true).expect("a socket");
        let theirs = host.try_clone().expect("a socket");
        plane.serve_memcached(theirs).expect("it is bound");
        Self {
            host,
            sets: false,
            applied: None,
            answers: BTreeMap::new(),
        }
    }

    /// As when a plane is engaged or disengaged.
    pub fn forget(&mut self) {
        self.sets = false;
        self.applied = None;
        self.answers.clear();
    }
}

impl Beside {
    /// `set`s are taken, and `get`s answered, where the answers show everything up to here.
    pub(super) fn allow_memcached(&mut self, sets: bool, applied: Option<u64>) {
        if !self.native.is_engaged() {
            return;
        }
        let now = clock_gettime(ClockId::Boottime);
        let now = Duration::from_secs(u64::try_from(now.tv_sec).expect("since the start"));
        let until = |allowed: bool| now + Duration::from_hours(u64::from(allowed));
        self.plane.allow(&Leave {
            writes_until: until(sets),
            reads_until: until(applied.is_some()),
            applied: Index(applied.unwrap_or(u64::MAX)),
        });
        self.memcached.sets = sets;
        self.memcached.applied = applied;
    }

    /// The answer to a key from now on, unless another one has its place.
    pub(super) fn keep_answer(&mut self, key: &[u8], answer: Option<&[u8]>) {
        self.plane.keep_answer(key, answer);
        let place = recent_place(key).expect("a key");
        let places = &mut self.memcached.answers;
        let known = places.get(&place);
        let is_there = known.is_some_and(|kept| kept.key == key);
        match answer.filter(|answer| answer.len() <= RECENT_TEXT_BYTES_MAX) {
            Some(answer) => {
                let kept = places.entry(place).or_default();
                kept.others += u8::from(!is_there);
                if kept.key.is_empty() || is_there || kept.others >= RECENT_OFFERS_TO_REPLACE {
                    let others = if is_there { kept.others } else { 0 };
                    let (key, text) = (key.to_vec(), answer.to_vec());
                    *kept = Kept { key, text, others };
                }
            }
            None if is_there => {
                places.remove(&place);
            }
            None => {}
        }
    }

    /// Takes in a memcached client's datagram; what the native one sends.
    pub(super) fn receive_memcached(
        &mut self,
        frame: &[u8],
        found: &Found<'_>,
        comes: Comes,
    ) -> Vec<Datagram> {
        let before = self.registers();
        let leads = before.role == Role::Leader as u8;
        let (mut command, mut out) = (Vec::new(), Out::default());
        let key = key_of(found.datagram);
        let set = memcached_set(found.datagram, &mut command);
        let kind = match (key, set) {
            (Some(_), _) => "Get",
            (None, Some(_)) => "Set",
            (None, None) => "Other",
        };
        let mut why = "left".to_owned();
        let mut outcome = Outcome::default();
        let mut planned = Plan {
            verdict: XDP_PASS,
            ..Plan::default()
        };
        let may_take = leads && self.memcached.sets && found.checksum_is_right;
        if let Some(answer) = key
            .and_then(|key| self.answer_to(key, found))
            .filter(|_| leads)
        {
            "answered".clone_into(&mut why);
            planned.verdict = XDP_TX;
            planned.leave = vec![answer];
        } else if let Some(set) = set.filter(|_| may_take) {
            let counted = *self.native.counters();
            if self
                .native
                .take_memcached(found.from, found.datagram, &mut out)
            {
                "taken".clone_into(&mut why);
                outcome = submit(&mut before.clone(), &self.header_of_set(&command));
                planned = self.plan(&outcome, !set.noreply, 0, out.0.clone());
            } else {
                why = format!("{:?}", reason_since(&self.native, &counted));
            }
        }
        self.note(
            &role_of(&before),
            kind,
            outcome.actions,
            &why,
            planned.verdict,
        );
        let about = format!("by memcached's {kind}, {why}\nfrom {before:?}");
        let is_passed = planned.verdict == XDP_PASS && planned.copies.is_none();
        match comes {
            Comes::Tried if is_passed => self.try_passed(frame, found),
            Comes::Tried => self.try_frame(frame, &planned, &about),
            Comes::Live => {
                self.loaded.receive(frame, 1);
                if is_passed {
                    self.expect_passed(found);
                }
                self.expect_frames(&planned.leave, Checksum::Made, &about);
            }
        }
        self.owed.extend(planned.owed);
        self.compare(&about);
        if outcome.has(ACTION_STORE) {
            self.compare_slot(outcome.index);
        }
        out.0
    }

    /// What a `set` is in the log.
    fn header_of_set(&self, command: &[u8]) -> Header {
        Header {
            magic: MAGIC,
            version: VERSION,
            kind: Kind::Request as u8,
            sender: u8::try_from(SENDER_CLIENT).expect("a byte"),
            flags: FLAG_BLIND,
            payload_bytes: u16::try_from(command.len()).expect("short"),
            group: self.registers().group,
            payload_crc32c: checked(command),
            ..Header::default()
        }
    }

    /// The program passes what the client has sent; what stood behind that need not be there any more.
    fn try_passed(&mut self, frame: &[u8], sent: &Found<'_>) {
        let home = self.home();
        let (said, made) = self.loaded.run(frame);
        assert_eq!(said, XDP_PASS, "the verdict");
        let passed = found(made, &home).map(|found| found.datagram);
        assert!(frame.starts_with(made), "it was changed");
        assert_eq!(passed, Some(sent.datagram), "it was changed");
    }

    /// The host gets what the client has sent.
    fn expect_passed(&self, sent: &Found<'_>) {
        let begun = Instant::now();
        let came = loop {
            if let Some(came) = next_datagram(&self.memcached.host) {
                break came;
            }
            assert!(begun.elapsed() < ON_THE_WAY_MAX, "it was not passed");
            std::thread::yield_now();
        };
        assert_eq!(came, sent.datagram);
    }

    /// The answer to a `get`, where it may be given.
    fn answer_to(&self, key: &[u8], found: &Found<'_>) -> Option<Datagram> {
        let Kept {
            key: known, text, ..
        } = self.memcached.answers.get(&recent_place(key)?)?;
        let is_current = self.memcached.applied? >= self.registers().commit_index;
        let is_short = text.len() + FRAME_BYTES <= AMPLIFICATION_MAX * found.datagram.len();
        (known == key && is_current && is_short && found.checksum_is_right).then(|| Datagram {
            port: MEMCACHED,
            to: found.from,
            bytes: [&found.datagram[..FRAME_BYTES], text].concat(),
        })
    }
}

/// The key of a `get` of one key.
fn key_of(datagram: &[u8]) -> Option<&[u8]> {
    let (frame, body) = datagram.split_at_checked(FRAME_BYTES)?;
    let key = body.strip_prefix(b"get ")?.strip_suffix(b"\r\n")?;
    let is_key =
        (1..=250).contains(&key.len()) && key.iter().all(|byte| *byte > b' ' && *byte != 0x7f);
    (is_key && frame[2..] == [0, 0, 0, 1, 0, 0]).then_some(key)
}
