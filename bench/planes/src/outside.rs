//! `outside`: a client with a UDP socket, which signs its requests and checks the answers.
use crate::commands::{Packets, SEQUENCE, SESSION};
use crate::figures::{self, Failures};
use crate::memcached::{self, RequestKind};
use crate::wire::{ReceiveBuffers, Wire};
use crate::{Load, commands};
use anyhow::{Result, ensure};
use hdrhistogram::Histogram;
use quorumwire_fastpath::ClientPackets;
use std::ops::Range;
use std::time::{Duration, Instant};

/// A request that is not answered within this is sent again.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
/// Nothing answered for so long: the run is given up.
const SILENT_MAX: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    load: Load,
    /// Speak memcached's protocol instead, to its port: values of so many bytes as a command would have
    #[arg(long, conflicts_with = "keys")]
    memcached: Option<RequestKind>,
}

/// What requests and answers look like.
enum Protocol {
    /// Sessions of the data planes.
    Plane(Box<Packets>),
    Memcached(memcached::Requests),
}

/// A closed loop of one request.
struct Lane {
    sequence: u64,
    first_sent: Instant,
    sent: Instant,
}

struct Client<'a> {
    wire: Wire,
    asking: ClientPackets,
    load: &'a Load,
    session: u64,
    lanes: Vec<Lane>,
    protocol: Protocol,
    failures: Failures,
    latencies: Histogram<u64>,
    measuring: bool,
}

/// Loads and prints.
pub fn run(arguments: &Arguments) -> Result<()> {
    let load = &arguments.load;
    let (warm_up, measured) = load.times()?;
    let keys_for = |file| commands::keys_for(load.to, file);
    let keys = load.keys.as_deref().map(keys_for).transpose()?;
    let asking = commands::asking(keys);
    let (mut wire, mut received) = Wire::connect(load.to, AGAIN_AFTER, load.in_flight > 1)?;
    let bytes = load.payload_bytes;
    let protocol = match arguments.memcached {
        None => Protocol::Plane(Box::new(Packets::new(keys, bytes, true)?)),
        Some(kind) => {
            memcached::Requests::store_all(&mut wire, &mut received, bytes, AGAIN_AFTER)?;
            Protocol::Memcached(memcached::Requests::new(kind, bytes))
        }
    };
    let session = commands::first_session();
    let mut client = Client {
        wire,
        asking,
        load,
        session,
        lanes: Vec::new(),
        protocol,
        failures: Failures::default(),
        latencies: figures::histogram(),
        measuring: false,
    };
    client.begin()?;
    client.go_on_for(warm_up, &mut received)?;
    client.measuring = true;
    client.failures = Failures::default();
    let begun = Instant::now();
    client.go_on_for(measured, &mut received)?;
    figures::print(&client.latencies, begun.elapsed(), client.failures, &[])?;
    Ok(())
}

impl Client<'_> {
    fn begin(&mut self) -> Result<()> {
        for number in 0..self.load.in_flight as usize {
            let now = Instant::now();
            self.lanes.push(Lane {
                sequence: 1,
                first_sent: now,
                sent: now,
            });
            self.send(number)?;
        }
        Ok(())
    }

    fn send(&mut self, number: usize) -> Result<()> {
        let sequence = self.lanes[number].sequence;
        let request = match &mut self.protocol {
            Protocol::Plane(packets) => packets.of(self.session | number as u64, sequence),
            Protocol::Memcached(requests) => requests.of(u8::try_from(number)?, sequence),
        };
        self.wire.send(request)
    }

    fn go_on_for(&mut self, time: Duration, received: &mut ReceiveBuffers) -> Result<()> {
        let end = Instant::now() + time;
        let mut heard = Instant::now();
        let mut looked = heard;
        loop {
            self.wire.flush()?;
            self.wire.receive(AGAIN_AFTER, received)?;
            let now = Instant::now();
            for datagram in received.datagrams() {
                heard = now;
                self.take(datagram, now)?;
            }
            ensure!(now - heard < SILENT_MAX, "no answer for {SILENT_MAX:?}");
            if now - looked >= AGAIN_AFTER {
                looked = now;
                self.send_again(now)?;
            }
            if now >= end {
                return self.wire.flush();
            }
        }
    }

    fn take(&mut self, datagram: &[u8], now: Instant) -> Result<()> {
        let Some(number) = self.lane_of(datagram) else {
            return Ok(());
        };
        let lane = &mut self.lanes[number];
        if self.measuring {
            let latency = (now - lane.first_sent).as_nanos();
            self.latencies.saturating_record(u64::try_from(latency)?);
        }
        lane.sequence += 1;
        lane.first_sent = now;
        lane.sent = now;
        self.send(number)
    }

    /// Whose request this answers: a lane that waits for it.
    fn lane_of(&mut self, datagram: &[u8]) -> Option<usize> {
        let Some((number, done)) = self.read(datagram) else {
            self.failures.not_awaited += 1;
            return None;
        };
        self.failures.refused += u64::from(!done);
        done.then_some(number)
    }

    /// The lane that waits for this answer, and whether it says that the request was done.
    fn read(&self, datagram: &[u8]) -> Option<(usize, bool)> {
        if let Protocol::Memcached(requests) = &self.protocol {
            let (lane, last_byte, done) = requests.answer(datagram)?;
            let number = usize::from(lane);
            let awaited = memcached::last_byte(self.lanes.get(number)?.sequence);
            return (awaited == last_byte).then_some((number, done));
        }
        let (session, sequence, done) = if self.load.keys.is_some() {
            let answer = self.asking.answer(datagram).ok()?;
            (answer.session, answer.sequence, answer.refused.is_none())
        } else {
            let number =
                |at: Range<usize>| Some(u64::from_be_bytes(datagram.get(at)?.try_into().ok()?));
            (number(SESSION)?, number(SEQUENCE)?, true)
        };
        let number = usize::try_from(session & 0xff).ok()?;
        let awaited = self.lanes.get(number)?.sequence;
        let is_awaited = session & !0xff == self.session && awaited == sequence;
        is_awaited.then_some((number, done))
    }

    fn send_again(&mut self, now: Instant) -> Result<()> {
        for number in 0..self.lanes.len() {
            if now - self.lanes[number].sent >= AGAIN_AFTER {
                self.lanes[number].sent = now;
                self.failures.sent_again += 1;
                self.send(number)?;
            }
        }
        Ok(())
    }
}
