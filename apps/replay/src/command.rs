//! What stands in the log for a served program, as bytes. Numbers are little-endian.
use crate::outputs::{
    Reporter, Verdict, Voter, WINDOWS_MAX, Window, put_reporter, put_verdict, put_voters,
    put_window,
};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use thiserror::Error;

/// The clients' side of one replica, for as long as the log holds it to be there.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Gateway {
    /// Whose.
    pub replica: u16,
    /// Greater than those of all that the replica had before, see [`Gateway::next`].
    pub number: u64,
}

/// Bits of a gateway's number that tell it from another that began at the same time of day.
const CHANCE_BITS: u32 = 20;

impl Gateway {
    /// The next one of this replica. `last` is the greatest number that is known here of those before; the
    /// time of day puts it behind those that are not. Where a clock was set back, the log refuses it, and
    /// the one after that comes behind all that the log knows.
    #[must_use]
    pub fn next(replica: u16, last: u64, wall_ms: u64, chance: u64) -> Self {
        let behind_last = (last >> CHANCE_BITS) + 1;
        let time = wall_ms.max(behind_last).min(u64::MAX >> CHANCE_BITS);
        let number = time << CHANCE_BITS | chance >> (u64::BITS - CHANCE_BITS);
        Self { replica, number }
    }
}

/// A command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Command<'a> {
    /// The program begins. Only the first one counts.
    Begin {
        /// What all chance follows from.
        key: [u8; 32],
    },
    /// What the clients of a gateway have done. Carried out in the order of the numbers, each once.
    Batch {
        /// Whose.
        gateway: Gateway,
        /// 1 for the first of the gateway, which begins it; each is one more than the one before.
        number: u64,
        /// At most [`EVENTS_MAX`].
        events: Vec<Event<'a>>,
    },
    /// A gateway is gone with its replica; so are its clients.
    GatewayEnds(Gateway),
    /// All clients go, the program saves what it is, and begins anew from that: nothing before is needed.
    Cut {
        /// The turn of the cut before, 0 if there is none: of two that ask for the same, one counts.
        behind: u64,
        /// The signal upon which the program saves itself and ends.
        signal: u8,
    },
    /// What a replica's program has said. It may be said again.
    Outputs {
        /// Whose.
        reporter: Reporter,
        /// So many replicas are expected to say something of the same.
        members: u16,
        /// At most [`WINDOWS_MAX`], in the order in which they ended.
        windows: Vec<Window>,
    },
    /// What becomes of a replica whose program says something else than others.
    Verdict {
        /// It counts if it is still so.
        verdict: Verdict,
        /// Whose word counts: a few.
        voters: Vec<Voter>,
    },
}

/// What one client has done, with bytes that are kept or lent. `client` is a number that its gateway gives to
/// no other one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EventWith<Bytes> {
    /// It has connected.
    Accept {
        /// Who.
        client: u32,
        /// From where.
        peer: SocketAddr,
        /// To where.
        own: SocketAddr,
    },
    /// It has sent this.
    Data {
        /// Who.
        client: u32,
        /// What.
        bytes: Bytes,
    },
    /// It sends no more.
    End {
        /// Who.
        client: u32,
    },
    /// It is gone.
    Reset {
        /// Who.
        client: u32,
    },
    /// A datagram.
    Datagram {
        /// From where.
        peer: SocketAddr,
        /// To where.
        own: SocketAddr,
        /// What.
        bytes: Bytes,
    },
}

/// As it stands in a command.
pub type Event<'a> = EventWith<&'a [u8]>;
/// Kept until it is on its way.
pub type Done = EventWith<Vec<u8>>;

/// Most events of a batch.
pub const EVENTS_MAX: usize = 1024;

/// What is no command of this version.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("no command of this version")]
pub struct Malformed;

const BEGIN: u8 = 1;
const BATCH: u8 = 2;
const GATEWAY_ENDS: u8 = 3;
const CUT: u8 = 4;
const OUTPUTS: u8 = 5;
const VERDICT: u8 = 6;

const ACCEPT: u8 = 1;
const DATA: u8 = 2;
const END: u8 = 3;
const RESET: u8 = 4;
const DATAGRAM: u8 = 5;

/// Bytes of the head of a batch.
const BATCH_HEAD_BYTES: usize = 1 + 2 + 8 + 8 + 2;
const ADDRESS_BYTES: usize = 1 + 16 + 2;

impl Event<'_> {
    /// Bytes that it takes in a command.
    #[must_use]
    pub const fn encoded_bytes(&self) -> usize {
        match self {
            Self::Accept { .. } => 1 + 4 + 2 * ADDRESS_BYTES,
            Self::Data { bytes, .. } => 1 + 4 + 4 + bytes.len(),
            Self::End { .. } | Self::Reset { .. } => 1 + 4,
            Self::Datagram { bytes, .. } => 1 + 2 * ADDRESS_BYTES + 4 + bytes.len(),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Accept { client, peer, own } => {
                out.push(ACCEPT);
                out.extend_from_slice(&client.to_le_bytes());
                put_address(out, peer);
                put_address(out, own);
            }
            Self::Data { client, bytes } => {
                out.push(DATA);
                out.extend_from_slice(&client.to_le_bytes());
                put_bytes(out, bytes);
            }
            Self::End { client } => {
                out.push(END);
                out.extend_from_slice(&client.to_le_bytes());
            }
            Self::Reset { client } => {
                out.push(RESET);
                out.extend_from_slice(&client.to_le_bytes());
            }
            Self::Datagram { peer, own, bytes } => {
                out.push(DATAGRAM);
                put_address(out, peer);
                put_address(out, own);
                put_bytes(out, bytes);
            }
        }
    }
}

fn put_address(out: &mut Vec<u8>, address: SocketAddr) {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    out.push(u8::from(address.is_ipv6()));
    out.extend_from_slice(&ip.octets());
    out.extend_from_slice(&address.port().to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let count = u32::try_from(bytes.len()).expect("less than a command");
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(bytes);
}

fn put_gateway(out: &mut Vec<u8>, gateway: Gateway) {
    out.extend_from_slice(&gateway.replica.to_le_bytes());
    out.extend_from_slice(&gateway.number.to_le_bytes());
}

impl<'a> Command<'a> {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Begin { key } => {
                out.push(BEGIN);
                out.extend_from_slice(key);
            }
            Self::Batch {
                gateway,
                number,
                events,
            } => {
                let bytes: usize = events.iter().map(Event::encoded_bytes).sum();
                out.reserve(BATCH_HEAD_BYTES + bytes);
                out.push(BATCH);
                put_gateway(&mut out, *gateway);
                out.extend_from_slice(&number.to_le_bytes());
                let count = u16::try_from(events.len()).expect("at most EVENTS_MAX");
                out.extend_from_slice(&count.to_le_bytes());
                for event in events {
                    event.encode(&mut out);
                }
            }
            Self::GatewayEnds(gateway) => {
                out.push(GATEWAY_ENDS);
                put_gateway(&mut out, *gateway);
            }
            Self::Cut { behind, signal } => {
                out.push(CUT);
                out.extend_from_slice(&behind.to_le_bytes());
                out.push(*signal);
            }
            Self::Outputs {
                reporter,
                members,
                windows,
            } => {
                out.push(OUTPUTS);
                put_reporter(&mut out, *reporter);
                out.extend_from_slice(&members.to_le_bytes());
                let count = u16::try_from(windows.len()).expect("at most WINDOWS_MAX");
                out.extend_from_slice(&count.to_le_bytes());
                for window in windows {
                    put_window(&mut out, window);
                }
            }
            Self::Verdict { verdict, voters } => {
                out.push(VERDICT);
                put_verdict(&mut out, verdict);
                put_voters(&mut out, voters);
            }
        }
        out
    }

    /// What these bytes say.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut left = Left(bytes);
        let command = match left.byte()? {
            BEGIN => Self::Begin { key: left.array()? },
            BATCH => {
                let gateway = left.gateway()?;
                let number = u64::from_le_bytes(left.array()?);
                let count = usize::from(u16::from_le_bytes(left.array()?));
                if count > EVENTS_MAX {
                    return Err(Malformed);
                }
                let events = (0..count).map(|_| left.event());
                Self::Batch {
                    gateway,
                    number,
                    events: events.collect::<Result<_, _>>()?,
                }
            }
            GATEWAY_ENDS => Self::GatewayEnds(left.gateway()?),
            CUT => Self::Cut {
                behind: u64::from_le_bytes(left.array()?),
                signal: left.byte()?,
            },
            OUTPUTS => {
                let reporter = left.reporter()?;
                let members = u16::from_le_bytes(left.array()?);
                let count = usize::from(u16::from_le_bytes(left.array()?));
                if count > WINDOWS_MAX {
                    return Err(Malformed);
                }
                let windows = (0..count).map(|_| left.window());
                Self::Outputs {
                    reporter,
                    members,
                    windows: windows.collect::<Result<_, _>>()?,
                }
            }
            VERDICT => Self::Verdict {
                verdict: left.verdict()?,
                voters: left.voters()?,
            },
            _ => return Err(Malformed),
        };
        left.0.is_empty().then_some(command).ok_or(Malformed)
    }
}

/// What has not been read yet.
pub struct Left<'a>(pub &'a [u8]);

impl<'a> Left<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, left) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = left;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        Ok(*self.take(N)?.first_chunk().expect("so many were taken"))
    }

    pub fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub fn count(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn gateway(&mut self) -> Result<Gateway, Malformed> {
        Ok(Gateway {
            replica: u16::from_le_bytes(self.array()?),
            number: u64::from_le_bytes(self.array()?),
        })
    }

    fn client(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let count = u32::from_le_bytes(self.array()?);
        self.take(usize::try_from(count).map_err(|_| Malformed)?)
    }

    fn address(&mut self) -> Result<SocketAddr, Malformed> {
        let is_ipv6 = self.byte()?;
        let ip = Ipv6Addr::from(self.array::<16>()?);
        let port = u16::from_le_bytes(self.array()?);
        let ip = match (is_ipv6, ip.to_ipv4_mapped()) {
            (0, Some(ip)) => IpAddr::V4(ip),
            (1, _) => IpAddr::V6(ip),
            _ => return Err(Malformed),
        };
        Ok(SocketAddr::new(ip, port))
    }

    fn event(&mut self) -> Result<Event<'a>, Malformed> {
        Ok(match self.byte()? {
            ACCEPT => Event::Accept {
                client: self.client()?,
                peer: self.address()?,
                own: self.address()?,
            },
            DATA => Event::Data {
                client: self.client()?,
                bytes: self.bytes()?,
            },
            END => Event::End {
                client: self.client()?,
            },
            RESET => Event::Reset {
                client: self.client()?,
            },
            DATAGRAM => Event::Datagram {
                peer: self.address()?,
                own: self.address()?,
                bytes: self.bytes()?,
            },
            _ => return Err(Malformed),
        })
    }
}
