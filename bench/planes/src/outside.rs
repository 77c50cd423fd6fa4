//! `outside`: a client with a UDP socket, which signs its requests and checks the answers.
use crate::commands::{Packets, SEQUENCE, SESSION};
use crate::figures::{self, Failures};
use crate::wire::{Received, Wire};
use crate::{Load, commands};
use anyhow::{Result, ensure};
use hdrhistogram::Histogram;
use quorumwire_fastpath::Asking;
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
}

/// A closed loop of one request.
struct Lane {
    sequence: u64,
    first_sent: Instant,
    sent: Instant,
}

struct Client<'a> {
    wire: Wire,
    asking: Asking,
    load: &'a Load,
    session: u64,
    lanes: Vec<Lane>,
    packets: Packets,
    failures: Failures,
    latencies: Histogram<u64>,
    measuring: bool,
}

/// Loads and prints.
pub fn run(arguments: &Arguments) -> Result<()> {
    let load = &arguments.load;
    let (warm_up, measured) = load.times()?;
    let keys = load.keys.as_deref().map(commands::load_keys).transpose()?;
    let asking = commands::asking(keys);
    let (wire, mut received) = Wire::connect(load.to, AGAIN_AFTER, load.in_flight > 1)?;
    let session = commands::first_session();
    let mut client = Client {
        wire,
        asking,
        load,
        session,
        lanes: Vec::new(),
        packets: Packets::new(keys, load.payload_bytes, true)?,
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
    figures::print(&client.latencies, begun.elapsed(), client.failures, &[]);
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
        let session = self.session | number as u64;
        self.wire.send(self.packets.of(session, sequence))
    }

    fn go_on_for(&mut self, time: Duration, received: &mut Received) -> Result<()> {
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
        let Some((session, sequence)) = self.read(datagram) else {
            return Ok(());
        };
        let number = usize::try_from(session & 0xff)?;
        let awaited = session & !0xff == self.session;
        let Some(lane) = self.lanes.get_mut(number).filter(|_| awaited) else {
            self.failures.not_awaited += 1;
            return Ok(());
        };
        if lane.sequence != sequence {
            self.failures.not_awaited += 1;
            return Ok(());
        }
        if self.measuring {
            let latency = (now - lane.first_sent).as_nanos();
            self.latencies.saturating_record(u64::try_from(latency)?);
        }
        lane.sequence += 1;
        lane.first_sent = now;
        lane.sent = now;
        self.send(number)
    }

    /// Session and sequence of an answer.
    fn read(&mut self, datagram: &[u8]) -> Option<(u64, u64)> {
        if self.load.keys.is_none() {
            let number =
                |at: Range<usize>| Some(u64::from_be_bytes(datagram.get(at)?.try_into().ok()?));
            return Some((number(SESSION)?, number(SEQUENCE)?));
        }
        match self.asking.answer(datagram) {
            Ok(answer) if answer.refused => {
                self.failures.refused += 1;
                None
            }
            Ok(answer) => Some((answer.session, answer.sequence)),
            Err(_) => {
                self.failures.not_awaited += 1;
                None
            }
        }
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
