//! `steps`: nanoseconds for one packet, by role, packet and size, and without this or that check. The kernel
//! runs the programs again and again on the same frame and state, which a program restores each time, and
//! once more with one that does nothing in their place. Everything is in the cache, so that they are a lower
//! bound.
use crate::alone::{Alone, PARTS, Peer};
use crate::commands::Packets;
use crate::frames::{FrameHead, PACKET_AT};
use anyhow::{Context as _, Result, ensure};
use libbpf_rs::ProgramInput;
use quorumwire_interfaces::PlaneKeyPair;
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
    without: &'a [&'a str],
    repeat: u32,
    runs: u32,
}

/// Prints one line for each.
pub fn run(arguments: &Arguments) -> Result<()> {
    let pair = Pair::new(&[], arguments)?;
    for bytes in &arguments.payload_bytes {
        pair.measure(*bytes)?;
    }
    if arguments.whole {
        return Ok(());
    }
    for part in PARTS {
        Pair::new(&[part], arguments)?.measure(64)?;
    }
    Pair::new(&PARTS, arguments)?.measure(64)
}

fn peer(host: u8) -> Peer {
    Peer {
        address: SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, host), 7401),
        mac: [2, 0x77, 0, 0, 0, host],
    }
}

impl<'a> Pair<'a> {
    fn new(without: &'a [&'a str], arguments: &Arguments) -> Result<Self> {
        let keys = PlaneKeyPair {
            key: [7; 16],
            ..PlaneKeyPair::default()
        };
        let peers: Vec<Peer> = (10..13).map(peer).collect();
        Ok(Self {
            leader: Alone::load(0, &peers, &keys, without)?,
            follower: Alone::load(1, &peers, &keys, without)?,
            client: peer(100),
            peers,
            keys,
            without,
            repeat: arguments.repeat,
            runs: arguments.runs,
        })
    }

    /// A request goes its way; what each frame costs is measured before it moves on.
    fn measure(&self, bytes: usize) -> Result<()> {
        let signed = !self.without.contains(&"tag");
        let mut packets = Packets::new(Some(self.keys), bytes, signed)?;
        let packet = packets.of(1 << 40, 1);
        let to_leader = self.head(self.client, 0);
        let request = to_leader.of(packet)?;
        let stored = self.pass(
            "leader, REQUEST",
            &self.leader,
            &request,
            XDP_REDIRECT,
            bytes,
        )?;
        let append = self.head(self.peers[0], 1).of(&stored.frame[PACKET_AT..])?;
        let acknowledged = self.pass("follower, APPEND", &self.follower, &append, XDP_TX, bytes)?;
        let acknowledgement = &acknowledged.frame;
        self.pass(
            "leader, APPEND_OK that commits",
            &self.leader,
            acknowledgement,
            XDP_TX,
            bytes,
        )?;
        self.pass(
            "leader, APPEND_OK without news",
            &self.leader,
            acknowledgement,
            XDP_DROP,
            bytes,
        )?;
        let mut forged = request;
        *forged.last_mut().context("a frame")? ^= 1;
        if self.without.is_empty() {
            self.pass(
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
            self.pass(
                "anybody, other traffic",
                &self.leader,
                &foreign.of(packet)?,
                XDP_PASS,
                bytes,
            )?;
        }
        Ok(())
    }

    fn head(&self, from: Peer, to: usize) -> FrameHead {
        FrameHead {
            from: (from.address, from.mac),
            to: (self.peers[to].address, self.peers[to].mac),
        }
    }

    /// Measures a frame at a replica, then has it take the frame.
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
