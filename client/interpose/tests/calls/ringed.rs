//! The preloaded library answers the program; the test is the replica.
use crate::world::{
    Action, CLIENTS_MAX, CONTROL, Heard, PATIENCE, Place, Wish, World, kill, sleeps,
};
use quorumwire_interpose::{Program, Rings, Said, Sizes, Start, Started};
use quorumwire_replay::TurnEvent;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::process::ExitStatus;
use std::time::Instant;

const MILLISECOND: u64 = 1_000_000;
/// The time of day is ahead of the log's by so much.
const WALL_AHEAD_NS: u64 = 1_699_000_000_000 * MILLISECOND;

/// The doorbell does not ring when the program ends.
const LOOK_AGAIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 2_000_000,
};

pub struct Ringed {
    rings: Rings,
    started: Started,
    place: Place,
    turn: u64,
    log_time_ns: u64,
    asked: Vec<u8>,
    listens: Vec<SocketAddr>,
    /// Connections whose half the program has ended.
    ended: BTreeSet<u64>,
    heard: BTreeMap<u64, Heard>,
    _folder: tempfile::TempDir,
}

impl Ringed {
    /// Takes in what the program says.
    fn listen(&mut self) -> Result<(), String> {
        while let Some((_, said)) = self.rings.take().map_err(|it| it.to_string())? {
            match said {
                Said::Data { connection, bytes } if connection == CONTROL => {
                    self.asked.extend_from_slice(bytes);
                }
                Said::Data { connection, bytes } => {
                    let heard = self.heard.entry(connection).or_default();
                    heard.bytes.extend_from_slice(bytes);
                }
                Said::Listen { at, .. } => self.listens.push(at),
                Said::Unlisten { at, .. } => self.listens.retain(|it| *it != at),
                Said::Shut { connection } | Said::Close { connection } => {
                    self.ended.insert(connection);
                }
                Said::Datagram { peer, own, bytes } => {
                    let from = match own.ip().to_canonical() {
                        IpAddr::V4(ip) if !ip.is_unspecified() => ip,
                        // Whatever the replica chooses.
                        IpAddr::V4(_) | IpAddr::V6(_) => self.place.host,
                    };
                    let own = SocketAddrV4::new(from, own.port());
                    let number = (0..CLIENTS_MAX)
                        .find(|number| {
                            let at = self.place.client(*number);
                            peer.ip().to_canonical() == *at.ip() && peer.port() == at.port()
                        })
                        .ok_or_else(|| format!("nobody is at {peer}"))?;
                    let heard = self.heard.entry(number).or_default();
                    heard.datagrams.push((own, bytes.to_owned()));
                }
            }
        }
        self.rings
            .refusal()
            .map_or(Ok(()), |why| Err(why.to_string()))
    }

    /// Waits until it is there; false: the program has ended first. Time goes on to where the program waits
    /// for it.
    fn until(&mut self, is_there: impl Fn(&Self) -> bool) -> Result<bool, String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let has_ended = self.started.child.try_wait().expect("it is ours").is_some();
            // What it has said before it waits is seen then.
            let waits = self.rings.turn_done() == self.turn && sleeps(&self.started.child);
            self.listen()?;
            if is_there(self) {
                return Ok(true);
            }
            if has_ended {
                return Ok(false);
            }
            if Instant::now() > end {
                return Err("it does not come to an end".into());
            }
            if let Some(deadline_ns) = self.rings.deadline_ns().filter(|_| waits) {
                self.log_time_ns = self.log_time_ns.max(deadline_ns);
                self.give(&[]);
            }
            if self.rings.may_sleep() {
                let mut door = [PollFd::from_borrowed_fd(
                    self.rings.doorbell(),
                    PollFlags::IN,
                )];
                rustix::event::poll(&mut door, Some(&LOOK_AGAIN)).map_err(|it| it.to_string())?;
                self.rings.heard();
            }
        }
    }

    fn give(&mut self, events: &[TurnEvent<'_>]) {
        self.turn += 1;
        self.log_time_ns += MILLISECOND;
        let (turn, now) = (self.turn, self.log_time_ns);
        assert!(self.rings.give(turn, now, now + WALL_AHEAD_NS, events));
    }

    fn heard(&self, number: u64) -> Heard {
        self.heard.get(&number).cloned().unwrap_or_default()
    }

    /// What a client does that is no event: it reads.
    fn read(&mut self, action: &Action) -> Result<bool, String> {
        match *action {
            Action::Take(number, count) => self.until(|it| it.heard(number).bytes.len() >= count),
            Action::Ended(number) => self.until(|it| it.ended.contains(&number)),
            Action::TakeDatagram(number) => self.until(|it| !it.heard(number).datagrams.is_empty()),
            Action::Reset(number) => {
                self.heard.entry(number).or_default().is_deaf = true;
                Ok(true)
            }
            Action::Connect(..)
            | Action::Send(..)
            | Action::End(_)
            | Action::Gone(_)
            | Action::Datagram(..)
            | Action::Signal(_) => Ok(true),
            Action::Kill(signal) => kill(&self.started.child, signal).map(|()| true),
        }
    }
}

fn event(action: &Action, place: Place) -> Option<TurnEvent<'_>> {
    let at = |address: SocketAddrV4| SocketAddr::V4(address);
    Some(match *action {
        Action::Connect(connection, port) => TurnEvent::Accept {
            connection,
            peer: at(place.client(connection)),
            own: at(place.port(port)),
        },
        Action::Send(connection, ref bytes) => TurnEvent::Data { connection, bytes },
        Action::End(connection) => TurnEvent::End { connection },
        Action::Reset(connection) => TurnEvent::Reset { connection },
        Action::Datagram(number, port, ref bytes) => TurnEvent::Datagram {
            peer: at(place.client(number)),
            own: at(place.port(port)),
            bytes,
        },
        Action::Gone(_)
        | Action::Take(..)
        | Action::Ended(_)
        | Action::TakeDatagram(_)
        | Action::Signal(_)
        | Action::Kill(_) => return None,
    })
}

impl World for Ringed {
    fn start(program: &Path, arguments: &[String], place: Place) -> Self {
        let start = Start {
            log_time_ns: 1_000_000 * MILLISECOND,
            wall_ns: 1_000_000 * MILLISECOND + WALL_AHEAD_NS,
            step_ns: 1000,
            key: [7; 32],
            allow_outbound: false,
        };
        let sizes = Sizes {
            given: 1 << 20,
            said: 1 << 20,
        };
        let rings = Rings::new(sizes, &start).expect("memory");
        let folder = tempfile::tempdir().expect("a folder");
        let mut program = Program::of(program, folder.path());
        program.arguments = arguments.iter().map(Into::into).collect();
        let started = program.start(&rings).expect("it starts");
        let mut this = Self {
            rings,
            started,
            place,
            turn: 0,
            log_time_ns: start.log_time_ns,
            asked: Vec::new(),
            listens: Vec::new(),
            ended: BTreeSet::new(),
            heard: BTreeMap::new(),
            _folder: folder,
        };
        let control = SocketAddr::V4(place.control());
        let listens = this.until(|it| it.listens.contains(&control));
        assert_eq!(listens, Ok(true), "it listens");
        this.give(&[TurnEvent::Accept {
            connection: CONTROL,
            peer: SocketAddr::V4(place.client(CONTROL)),
            own: control,
        }]);
        this
    }

    fn next_line(&mut self) -> Result<Option<String>, String> {
        if !self.until(|it| it.asked.contains(&b'\n'))? {
            return Ok(None);
        }
        let end = self.asked.iter().position(|byte| *byte == b'\n');
        let line: Vec<u8> = self.asked.drain(..=end.unwrap_or(0)).collect();
        Ok(Some(String::from_utf8_lossy(&line).into_owned()))
    }

    fn fulfil(&mut self, wish: &Wish) -> Result<(), String> {
        for action in &wish.actions {
            if !self.read(action)? {
                return Err("it has ended".into());
            }
            if let Action::Signal(signal) = *action {
                self.turn += 1;
                let (turn, now) = (self.turn, self.log_time_ns);
                let signal = u8::try_from(signal).expect("a number");
                let has_room = self
                    .rings
                    .give_signal(turn, now, now + WALL_AHEAD_NS, signal);
                assert!(has_room, "the ring is empty");
            }
        }
        let place = self.place;
        let mut events: Vec<TurnEvent<'_>> = wish
            .actions
            .iter()
            .filter_map(|action| event(action, place))
            .collect();
        // A client that is gone has ended its half, and answers what comes with a reset.
        for action in &wish.actions {
            if let Action::Gone(connection) = *action {
                self.heard.entry(connection).or_default().is_deaf = true;
                events.push(TurnEvent::End { connection });
            }
        }
        if wish.is_answered {
            events.push(TurnEvent::Data {
                connection: CONTROL,
                bytes: b"k",
            });
        }
        if !events.is_empty() {
            self.give(&events);
        }
        Ok(())
    }

    fn finish(mut self) -> (Option<ExitStatus>, Vec<(u64, Heard)>) {
        let end = self.until(|_| false);
        let status = self.started.child.try_wait().expect("it is ours");
        let heard = std::mem::take(&mut self.heard);
        (status.filter(|_| end.is_ok()), heard.into_iter().collect())
    }
}
