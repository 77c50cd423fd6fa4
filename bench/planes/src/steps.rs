//! `steps`: nanoseconds for one packet, by role, packet and size, and without this or that check. The kernel
//! runs the programs again and again on the same frame and state, which a program restores each time, and
//! once more with one that does nothing in their place. Everything is in the cache, so that they are a lower
//! bound.
use crate::alone::{Alone, Loaded, PARTS, Peer};
use crate::commands::Packets;
use crate::frames::{FrameHead, PACKET_AT};
use anyhow::{Context as _, Result, ensure};
use libbpf_rs::ProgramInput;
use quorumwire_fastpath::{TagKey, tag};
use quorumwire_interfaces::PlaneKeyPair;
use quorumwire_wire::packet::{HEADER_BYTES, Header, Kind, TAG_OFFSET};
use serde_json::json;
use std::io::{Write as _, stdout};
use std::net::{Ipv4Addr, SocketAddrV4};

#[derive(clap::Args)]
pub struct Arguments {
    /// Times that each is run without a pause
    #[arg(long, default_value_t = 3_000)]
    repeat: u32,
    /// Bytes of commands
    #[arg(long, value_delimiter = ',', default_value = "16,64,1376")]
    payload_bytes: Vec<usize>,
    /// Leave no check out
    #[arg(long)]
    whole: bool,
    /// Runs of which the fastest counts; the kernel patches itself before and after each, which takes longer
    /// than the run
    #[arg(long, default_value_t = 20)]
    runs: u32,
}

const FRAME_ROOM: usize = 2048;
/// Instances of a box.
const WINDOW: u32 = 1024;
const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;
const XDP_TX: u32 = 3;
const XDP_REDIRECT: u32 = 4;

/// A frame that a program has seen, and what it returned.
struct Seen {
    verdict: u32,
    frame: Vec<u8>,
}

/// A leader and its first follower.
struct Pair<'a> {
    leader: Alone,
    follower: Alone,
    peers: Vec<Peer>,
    client: Peer,
    keys: PlaneKeyPair,
    bench: Bench<'a>,
}

/// A coordinator and its first acceptor.
struct Roles<'a> {
    coordinator: Alone,
    acceptor: Alone,
    hosts: [Peer; 2],
    client: Peer,
    keys: PlaneKeyPair,
    bench: Bench<'a>,
}

/// How each frame is measured.
#[derive(Clone, Copy)]
struct Bench<'a> {
    without: &'a [&'a str],
    repeat: u32,
    runs: u32,
}

/// Prints one line for each.
pub fn run(arguments: &Arguments) -> Result<()> {
    let pair = Pair::new(&[], arguments)?;
    for bytes in &arguments.payload_bytes {
        pair.measure(*bytes)?;
        // Anew, as instances are measured once.
        Roles::new(&[], arguments)?.measure(*bytes)?;
    }
    if arguments.whole {
        return Ok(());
    }
    for part in PARTS {
        Pair::new(&[part], arguments)?.measure(64)?;
    }
    Pair::new(&PARTS, arguments)?.measure(64)
}

/// The key of clients; all else is signed with a key of zeros.
fn clients_keys() -> PlaneKeyPair {
    PlaneKeyPair {
        key: [7; 16],
        ..PlaneKeyPair::default()
    }
}

fn head(from: Peer, to: Peer) -> FrameHead {
    FrameHead {
        from: (from.address, from.mac),
        to: (to.address, to.mac),
    }
}

fn peer(host: u8) -> Peer {
    Peer {
        address: SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, host), 7401),
        mac: [2, 0x77, 0, 0, 0, host],
    }
}

impl<'a> Pair<'a> {
    fn new(without: &'a [&'a str], arguments: &Arguments) -> Result<Self> {
        let keys = clients_keys();
        let peers: Vec<Peer> = (10..13).map(peer).collect();
        let load = |me: usize| {
            let loaded = Loaded {
                me,
                own: peers[me],
                peers: &peers,
                window: 0,
            };
            Alone::load(&loaded, &keys, without)
        };
        Ok(Self {
            leader: load(0)?,
            follower: load(1)?,
            client: peer(100),
            peers,
            keys,
            bench: Bench::new(without, arguments),
        })
    }

    /// A request goes its way; what each frame costs is measured before it moves on.
    fn measure(&self, bytes: usize) -> Result<()> {
        let signed = !self.bench.without.contains(&"tag");
        let mut packets = Packets::new(Some(self.keys), bytes, signed)?;
        let packet = packets.of(1 << 40, 1);
        let to_leader = head(self.client, self.peers[0]);
        let request = to_leader.of(packet)?;
        let stored = self.bench.pass(
            "leader, REQUEST",
            &self.leader,
            &request,
            XDP_REDIRECT,
            bytes,
        )?;
        let append = head(self.peers[0], self.peers[1]).of(&stored.frame[PACKET_AT..])?;
        let acknowledged =
            self.bench
                .pass("follower, APPEND", &self.follower, &append, XDP_TX, bytes)?;
        let acknowledgement = &acknowledged.frame;
        self.bench.pass(
            "leader, APPEND_OK that commits",
            &self.leader,
            acknowledgement,
            XDP_TX,
            bytes,
        )?;
        self.bench.pass(
            "leader, APPEND_OK without news",
            &self.leader,
            acknowledgement,
            XDP_DROP,
            bytes,
        )?;
        let mut forged = request;
        *forged.last_mut().context("a frame")? ^= 1;
        if self.bench.without.is_empty() {
            self.bench.pass(
                "leader, forged REQUEST",
                &self.leader,
                &forged,
                XDP_DROP,
                bytes,
            )?;
            let foreign = FrameHead {
                to: (
                    SocketAddrV4::new(*self.peers[0].address.ip(), 9),
                    self.peers[0].mac,
                ),
                ..to_leader
            };
            self.bench.pass(
                "anybody, other traffic",
                &self.leader,
                &foreign.of(packet)?,
                XDP_PASS,
                bytes,
            )?;
        }
        Ok(())
    }
}

impl<'a> Roles<'a> {
    fn new(without: &'a [&'a str], arguments: &Arguments) -> Result<Self> {
        let keys = clients_keys();
        let acceptors: Vec<Peer> = (11..14).map(peer).collect();
        let learners = [peer(14)];
        let load = |me: usize, peers: &[Peer]| {
            let loaded = Loaded {
                me,
                own: peer([10, 11][me]),
                peers,
                window: WINDOW,
            };
            Alone::load(&loaded, &keys, without)
        };
        Ok(Self {
            coordinator: load(0, &acceptors)?,
            acceptor: load(1, &learners)?,
            hosts: [peer(10), peer(11)],
            client: peer(100),
            keys,
            bench: Bench::new(without, arguments),
        })
    }

    /// The first value goes its way.
    fn measure(&self, bytes: usize) -> Result<()> {
        let mut packets = Packets::new(Some(self.keys), bytes, true)?;
        let packet = submit_of(packets.of(1 << 40, 1), &TagKey::new(self.keys.key))?;
        let [coordinator, acceptor] = self.hosts;
        let submit = head(self.client, coordinator).of(&packet)?;
        let proposed = self.bench.pass(
            "coordinator, SUBMIT",
            &self.coordinator,
            &submit,
            XDP_REDIRECT,
            bytes,
        )?;
        let asked = head(coordinator, acceptor).of(&proposed.frame[PACKET_AT..])?;
        self.bench
            .pass("acceptor, P2A", &self.acceptor, &asked, XDP_TX, bytes)?;
        Ok(())
    }
}

/// A proposer's packet with a request's payload, session and sequence.
fn submit_of(request: &[u8], key: &TagKey) -> Result<Vec<u8>> {
    let (header, payload) = request
        .split_first_chunk::<HEADER_BYTES>()
        .context("a whole header")?;
    let header = Header {
        kind: Kind::Submit as u8,
        flags: 0,
        commit_index: 1,
        tag: 0,
        ..Header::decode(header)
    };
    let mut head = header.encode();
    let tag = tag(key, &head, payload);
    head[TAG_OFFSET..].copy_from_slice(&tag.to_be_bytes());
    Ok([&head[..], payload].concat())
}

impl<'a> Bench<'a> {
    fn new(without: &'a [&'a str], arguments: &Arguments) -> Self {
        Self {
            without,
            repeat: arguments.repeat,
            runs: arguments.runs,
        }
    }

    /// Measures a frame at a replica or a box, then has it take the frame.
    fn pass(
        &self,
        what: &str,
        at: &Alone,
        frame: &[u8],
        verdict: u32,
        bytes: usize,
    ) -> Result<Seen> {
        let saved = run_once(at, "alone_save", frame)?;
        ensure!(
            saved.verdict == XDP_PASS,
            "alone_save returned {}",
            saved.verdict
        );
        let all = self.again(at, "alone_step_again", frame, verdict, self.runs)?;
        let nothing = self.again(
            at,
            "alone_nothing_again",
            frame,
            XDP_DROP,
            self.runs.div_ceil(4),
        )?;
        let seen = run_once(at, "alone_step_again", frame)?;
        ensure!(
            seen.verdict == verdict,
            "{what}: returned {}, not {verdict}",
            seen.verdict
        );
        let without = self.without.join(",");
        let printed = json!({
            "what": what, "payload_bytes": bytes, "without": without,
            "ns": all.saturating_sub(nothing), "measuring_ns": nothing,
        });
        writeln!(stdout(), "{printed}")?;
        Ok(seen)
    }

    /// The least of some runs' nanoseconds.
    fn again(
        &self,
        at: &Alone,
        program: &str,
        frame: &[u8],
        verdict: u32,
        runs: u32,
    ) -> Result<u64> {
        let mut least = u64::MAX;
        for _ in 0..runs {
            let input = ProgramInput {
                data_in: Some(frame),
                repeat: self.repeat,
                ..ProgramInput::default()
            };
            let output = at.program(program)?.test_run(input)?;
            ensure!(
                output.return_value == verdict,
                "{program} returned {}",
                output.return_value
            );
            least = least.min(u64::try_from(output.duration.as_nanos())?);
        }
        Ok(least)
    }
}

fn run_once(at: &Alone, program: &str, frame: &[u8]) -> Result<Seen> {
    let mut room = [0; FRAME_ROOM];
    let input = ProgramInput {
        data_in: Some(frame),
        data_out: Some(&mut room),
        ..ProgramInput::default()
    };
    let output = at.program(program)?.test_run(input)?;
    let frame = output.data.context("a frame")?.to_vec();
    Ok(Seen {
        verdict: output.return_value,
        frame,
    })
}
