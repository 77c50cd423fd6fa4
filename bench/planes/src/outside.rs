//! `outside`: a client with an ordinary UDP socket, which signs its requests and checks the answers.
use crate::commands::{Packets, SEQUENCE, SESSION};
use crate::figures::{self, Failures};
use crate::{Load, commands};
use anyhow::{Result, ensure};
use hdrhistogram::Histogram;
use quorumwire_fastpath::Asking;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::ops::Range;
use std::time::{Duration, Instant};

/// A request that is not answered within this is sent again.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
/// Nothing answered for so long: the run is given up.
const SILENT_MAX: Duration = Duration::from_secs(5);
const DATAGRAM_BYTES_MAX: usize = 2048;

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
    socket: UdpSocket,
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
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(load.to)?;
    socket.set_read_timeout(Some(AGAIN_AFTER))?;
    let session = commands::first_session();
    let mut client = Client {
        socket,
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
    client.go_on_for(warm_up)?;
    client.measuring = true;
    client.failures = Failures::default();
    let begun = Instant::now();
    client.go_on_for(measured)?;
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
        self.socket.send(self.packets.of(session, sequence))?;
        Ok(())
    }

    fn go_on_for(&mut self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        let mut heard = Instant::now();
        let mut datagram = [0; DATAGRAM_BYTES_MAX];
        loop {
            let received = match self.socket.recv(&mut datagram) {
                Ok(bytes) => Some(bytes),
                Err(error) if error.kind() == ErrorKind::WouldBlock => None,
                Err(error) => return Err(error.into()),
            };
            let now = Instant::now();
            if now >= end {
                return Ok(());
            }
            if let Some(bytes) = received {
                heard = now;
                self.take(&datagram[..bytes], now)?;
            } else {
                ensure!(now - heard < SILENT_MAX, "no answer for {SILENT_MAX:?}");
                self.send_again(now)?;
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
