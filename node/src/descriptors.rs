//! File descriptors: how many this process may have, how many it needs beside its clients' connections, and
//! so how many of those there may be. A connection too many would else take the descriptor of the next file
//! of the log.
use crate::options::ServerOptions;
use crate::planes::PlaneChoice;
use anyhow::ensure;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::Timespec;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The option that what is left is for.
const OPTION: &str = "connections-max";
/// While a name is looked up: files that say where, and sockets to who knows.
pub const LOOKUP_DESCRIPTORS_MAX: usize = 3;
/// Standard input, output and error.
const STANDARD_DESCRIPTORS: usize = 3;
/// Connections that have waited for a descriptor are complained about this often.
const COMPLAINT_INTERVAL: Duration = Duration::from_mins(1);

/// Raises the limit on open files as far as a process may raise its own, and gives the options as they can be
/// kept: with no more clients than there is room for beside all else that a replica opens. `of_others` is
/// what the server and its administration open.
pub(crate) fn fit(options: &ServerOptions, of_others: usize) -> anyhow::Result<ServerOptions> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // Refused where the system allows less by now than it did when the limit was set; then it stays.
    setrlimit(Resource::Nofile, raised).ok();
    fit_within(options, of_others)
}

/// The same with the limit as it is, in a program that may count on it.
pub(crate) fn fit_within(
    options: &ServerOptions,
    of_others: usize,
) -> anyhow::Result<ServerOptions> {
    let limit = limit();
    let others = count_open() + of_others;
    let of_second = options.second_group.map(|_| of_group(options.plane));
    let reserve = reserve(options.plane, others + of_second.unwrap_or(0));
    let allowed = connections_allowed(options.connections_max, limit, reserve)?;
    if allowed < options.connections_max {
        tracing::warn!(
            option = OPTION,
            value = options.connections_max,
            allowed,
            open_files = limit,
            reserve,
            "fewer clients can connect than connections-max allows: the limit on open files is too low"
        );
    }
    Ok(ServerOptions {
        connections_max: allowed,
        ..options.clone()
    })
}

/// How many files may be open.
fn limit() -> usize {
    let current = getrlimit(Resource::Nofile).current;
    current.map_or(usize::MAX, |files| {
        usize::try_from(files).unwrap_or(usize::MAX)
    })
}

/// Files that whoever started this process has left open for it, and the standard ones.
fn count_open() -> usize {
    let open = fs::read_dir("/proc/self/fd").map(Iterator::count);
    open.map_or(STANDARD_DESCRIPTORS, |count| count.saturating_sub(1)) // without the one that reads the folder
}

/// What a replica may open beside the connections of its clients. `others` is what is opened for all groups
/// together: by the server itself, `server::DESCRIPTORS_MAX`, and by the rest of this process.
#[must_use]
pub fn reserve(plane: PlaneChoice, others: usize) -> usize {
    others + of_group(plane)
}

/// Of each replicated log: its files, and its plane.
fn of_group(plane: PlaneChoice) -> usize {
    let of_planes = plane.candidates().map(|kind| kind.descriptors_max);
    quorumwire_storage::DESCRIPTORS_MAX + of_planes.max().unwrap_or(0)
}

/// How many clients may be connected at once; an error if none may.
fn connections_allowed(wanted: usize, limit: usize, reserve: usize) -> anyhow::Result<usize> {
    let left = limit.saturating_sub(reserve);
    ensure!(
        left > 0,
        "option {OPTION}: {wanted} is refused: at most {limit} files may be open, and a replica without \
         clients may need {reserve}; allowed: a limit on open files (`ulimit -Hn`, `LimitNOFILE`) of {} at least, \
         {} for so many clients",
        reserve.saturating_add(1),
        reserve.saturating_add(wanted)
    );
    Ok(wanted.min(left))
}

/// Connections that could not be accepted because there was no descriptor for them.
#[derive(Debug, Default)]
pub struct Starvation {
    /// Times that somebody waited and could not be accepted.
    pub count: u64,
    complained_at: Option<Instant>,
}

impl Starvation {
    /// Takes note of why nobody was accepted. False: it was not for want of a descriptor.
    pub fn note(&mut self, error: &io::Error, listener: impl AsFd, port: &str) -> bool {
        if !is_want_of_descriptors(error) {
            return false;
        }
        if !has_waiting(listener) {
            return true;
        }
        self.count += 1;
        let is_due = |at: Instant| at.elapsed() > COMPLAINT_INTERVAL;
        if self.complained_at.is_none_or(is_due) {
            self.complained_at = Some(Instant::now());
            tracing::warn!(port, %error, "no file descriptor is left: connections wait");
        }
        true
    }
}

/// This process has as many as it may, or the whole system has.
fn is_want_of_descriptors(error: &io::Error) -> bool {
    let why = Errno::from_io_error(error);
    matches!(why, Some(Errno::MFILE | Errno::NFILE))
}

/// Without a descriptor to give, the system says so also where nobody waits to be accepted.
fn has_waiting(listener: impl AsFd) -> bool {
    let mut asked = [PollFd::new(&listener, PollFlags::IN)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut asked, Some(&at_once)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn as_many_clients_as_there_is_room_for_beside_the_reserve() {
        let allowed = |limit| connections_allowed(1000, limit, 700).ok();
        assert_eq!(allowed(1_000_000), Some(1000));
        assert_eq!(allowed(1700), Some(1000));
        assert_eq!(allowed(1699), Some(999));
        assert_eq!(allowed(701), Some(1));
        assert_eq!(allowed(700), None);
        assert_eq!(allowed(0), None);
        let error = connections_allowed(1000, 256, 700).unwrap_err().to_string();
        for told in ["connections-max", "1000", "256", "700", "701", "1700"] {
            assert!(error.contains(told), "{told}: {error}");
        }
    }

    #[test]
    fn only_who_waits_for_a_descriptor_is_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let none_left = io::Error::from(Errno::MFILE);
        let mut starvation = Starvation::default();
        assert!(starvation.note(&none_left, &listener, "test"));
        assert_eq!(starvation.count, 0, "nothing listens there");
        let _waits = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(starvation.note(&none_left, &listener, "test"));
        assert!(starvation.note(&Errno::NFILE.into(), &listener, "test"));
        assert_eq!(starvation.count, 2);
        let aborted = io::Error::from(Errno::CONNABORTED);
        assert!(!starvation.note(&aborted, &listener, "test"));
        assert_eq!(starvation.count, 2);
    }
}
