//! What a process asks others, each time over a connection of its own.
use crate::evpaxos::founding::{Founded, Standing, Tag};
use crate::evpaxos::frames::{self, ANSWER_BYTES_MAX, Fields, Kind};
use crate::evpaxos::history::Entry;
use quorumwire_paxos_process::LearnerCheckpoint;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Whoever does not answer in this time is taken for gone.
const CONNECTING_MAX: Duration = Duration::from_millis(300);
const ANSWERING_MAX: Duration = Duration::from_secs(5);

/// A connection to it.
pub fn connect(to: SocketAddr, nodelay: bool) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&to, CONNECTING_MAX)?;
    // A process that nobody listens in can be connected to itself, by chance.
    if stream.local_addr()? == to {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    stream.set_nodelay(nodelay)?;
    stream.set_read_timeout(Some(ANSWERING_MAX))?;
    stream.set_write_timeout(Some(ANSWERING_MAX))?;
    Ok(stream)
}

fn unexpected(kind: Kind) -> io::Error {
    let text = format!("an answer that makes no sense: {kind:?}");
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// What an acceptor says of itself.
pub fn who(to: SocketAddr, tag: &Tag, acceptors: usize) -> io::Result<Standing> {
    let mut stream = connect(to, true)?;
    stream.set_read_timeout(Some(CONNECTING_MAX))?;
    frames::write(&mut stream, Kind::Who, &[tag])?;
    match frames::read(&mut stream, ANSWER_BYTES_MAX)? {
        (Kind::IAm, body) => Standing::from_bytes(&body, acceptors),
        (kind, _) => Err(unexpected(kind)),
    }
}

/// Says that values up to this number are not needed.
pub fn trim(to: SocketAddr, tag: &Tag, upto: u64) -> io::Result<()> {
    let mut stream = connect(to, true)?;
    frames::write(&mut stream, Kind::Trim, &[tag, &upto.to_le_bytes()])
}

/// A learner's state, with the values.
pub struct Joined {
    pub checkpoint: LearnerCheckpoint,
    /// The number before the first value, and the last instance before it.
    pub base: u64,
    pub instance: u64,
    pub entries: Vec<Entry>,
}

/// Those of another process of this deployment, with the values behind this number; none: it has none to
/// give.
pub fn join(
    to: SocketAddr,
    tag: &Tag,
    founded: &Founded,
    number: u64,
) -> io::Result<Option<Joined>> {
    let mut stream = connect(to, true)?;
    let number = number.to_le_bytes();
    frames::write(&mut stream, Kind::Join, &[tag, &founded.identity, &number])?;
    let mut joined = match frames::read(&mut stream, ANSWER_BYTES_MAX)? {
        (Kind::Checkpoint, body) => {
            let mut fields = Fields::of(&body);
            let mut next = || fields.u64();
            let (upto, state_at, base, instance) = (next()?, next()?, next()?, next()?);
            Joined {
                checkpoint: LearnerCheckpoint {
                    upto,
                    state_at,
                    state: fields.rest().to_vec().into(),
                },
                base,
                instance,
                entries: Vec::new(),
            }
        }
        (Kind::NotReady, _) => return Ok(None),
        (kind, _) => return Err(unexpected(kind)),
    };
    loop {
        match frames::read(&mut stream, ANSWER_BYTES_MAX)? {
            (Kind::Kept, body) => {
                let mut fields = Fields::of(&body);
                joined.entries.push(Entry {
                    instance: fields.u64()?,
                    value: fields.rest().into(),
                });
            }
            (Kind::End, _) => return Ok(Some(joined)),
            (kind, _) => return Err(unexpected(kind)),
        }
    }
}
