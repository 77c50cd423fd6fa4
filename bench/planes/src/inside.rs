//! `inside`: a client in the kernel. Here it is set going, and again where a request or its answer was lost.
use crate::commands::Packets;
use crate::figures::{self, Failures};
use crate::frames::{FrameHead, mac};
use crate::programs::{BIN_NS, Lane, Programs};
use crate::watched::Watched;
use crate::{Load, commands};
use anyhow::{Result, bail, ensure};
use rustix::time::{ClockId, clock_gettime};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

/// A request that is not answered within this is sent again.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
/// How often the lanes are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Nothing answered for so long: the run is given up.
const SILENT_MAX: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    load: Load,
    /// Network interface
    #[arg(long)]
    interface: String,
    /// Its Ethernet address
    #[arg(long)]
    from_mac: String,
    /// The Ethernet address of whom is asked
    #[arg(long)]
    to_mac: String,
    /// Sign nothing, also where there are keys
    #[arg(long)]
    no_tag: bool,
    /// Print, each time the lanes are looked at, how many answers there were, and how far the logs of the
    /// planes of these processes are
    #[arg(long, value_delimiter = ',')]
    watch: Vec<u32>,
}

struct Client<'a> {
    socket: UdpSocket,
    packets: Packets,
    load: &'a Load,
    programs: Programs,
    session: u64,
    sent_again: u64,
    heard: Instant,
    answers: u64,
    watched: Watched,
    trace: Vec<figures::Look>,
}

/// Loads and prints.
pub fn run(arguments: &Arguments) -> Result<()> {
    let load = &arguments.load;
    let (warm_up, measured) = load.times()?;
    let keys_for = |file| commands::keys_for(load.to, file);
    let keys = load.keys.as_deref().map(keys_for).transpose()?;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(load.to)?;
    let local = socket.local_addr()?;
    let tagged = keys.filter(|_| !arguments.no_tag);
    let programs = Programs::attach("load_client", &arguments.interface, local.port(), tagged)?;
    let session = commands::first_session();
    let (SocketAddr::V4(from), SocketAddr::V4(to)) = (local, load.to) else {
        bail!("only IPv4 addresses are supported");
    };
    let head = FrameHead {
        from: (from, mac(&arguments.from_mac)?),
        to: (to, mac(&arguments.to_mac)?),
    };
    let mut packets = Packets::new(keys, load.payload_bytes, !arguments.no_tag)?;
    programs.set_templates(|number| head.of(packets.of(session, number)))?;
    let mut client = Client {
        socket,
        packets,
        load,
        programs,
        session,
        sent_again: 0,
        heard: Instant::now(),
        answers: 0,
        watched: Watched::of(&arguments.watch)?,
        trace: Vec::new(),
    };
    client.begin()?;
    client.go_on_for(warm_up)?;
    let (before, totals_before) = (client.programs.latencies()?, client.programs.totals()?);
    client.sent_again = 0;
    let begun = Instant::now();
    client.go_on_for(measured)?;
    let (after, totals) = (client.programs.latencies()?, client.programs.totals()?);
    let elapsed = begun.elapsed();
    client.programs.stop()?;
    let mut latencies = figures::histogram();
    for (bin, (after, before)) in (0..).zip(after.iter().zip(&before)) {
        latencies.record_n(bin * BIN_NS + BIN_NS / 2, after - before)?;
    }
    // Frames that come from a socket have no room for a request; those lanes go on when they are looked at.
    let failed = totals.failed - totals_before.failed;
    ensure!(
        failed <= latencies.len() / 100,
        "{failed} requests could not be made from their answers"
    );
    let failures = Failures {
        sent_again: client.sent_again,
        refused: totals.refused - totals_before.refused,
        not_awaited: totals.stale - totals_before.stale,
    };
    figures::print(&latencies, elapsed, failures, &client.trace)?;
    Ok(())
}

impl Client<'_> {
    fn begin(&mut self) -> Result<()> {
        for number in 0..self.load.in_flight {
            let lane = Lane {
                session: self.session | u64::from(number),
                sequence: 1,
                sent_ns: now_ns(),
                answers: 0,
            };
            self.programs.set_lane(number, lane)?;
            self.send(lane)?;
        }
        Ok(())
    }

    fn send(&mut self, lane: Lane) -> Result<()> {
        let packet = self.packets.of(lane.session, lane.sequence);
        self.socket.send(packet)?;
        Ok(())
    }

    fn go_on_for(&mut self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            thread::sleep(LOOK_EVERY.min(end.saturating_duration_since(Instant::now())));
            self.look()?;
        }
        Ok(())
    }

    fn look(&mut self) -> Result<()> {
        let mut answers = 0;
        for number in 0..self.load.in_flight {
            let lane = self.programs.lane(number)?;
            answers += lane.answers;
            let silent = Duration::from_nanos(now_ns().saturating_sub(lane.sent_ns));
            if silent >= AGAIN_AFTER {
                self.sent_again += 1;
                self.send(lane)?;
            }
        }
        let last_indexes = self.watched.last_indexes()?;
        if !last_indexes.is_empty() {
            self.trace.push((now_ns(), answers, last_indexes));
        }
        if answers != self.answers {
            self.answers = answers;
            self.heard = Instant::now();
        }
        ensure!(
            self.heard.elapsed() < SILENT_MAX,
            "no answer for {SILENT_MAX:?}"
        );
        Ok(())
    }
}

/// The clock of `bpf_ktime_get_ns`.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let since = Duration::new(
        now.tv_sec.unsigned_abs(),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    );
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
