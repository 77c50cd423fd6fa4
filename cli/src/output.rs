//! What a command says: answers on standard output, complaints on standard error. An answer that cannot be
//! written is an error, a complaint that cannot be written is forgotten; neither panics, as `println!` and
//! `eprintln!` do. Both wait for a reader that is slow, until the command is told to end. A server's log is
//! not written here.
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::fmt::Display;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What shells show for a program that SIGPIPE has ended: nobody read the rest.
const READER_GONE: u8 = 141;
/// Written at once: a pipe that has any room has as much as this.
const CHUNK_BYTES: usize = 1024;
/// While a reader is slow, this often it is looked whether to go on waiting for it.
const READER_WAIT: Duration = Duration::from_millis(50);

/// Set once the command is to end: nobody is waited for any more.
static NOBODY_IS_WAITED_FOR: AtomicBool = AtomicBool::new(false);

/// An answer that is not, or not all, written.
#[derive(Debug, thiserror::Error)]
#[error("standard output")]
pub struct Unwritten(#[from] io::Error);

impl Unwritten {
    /// With what the command ends; where the reader has gone there is nobody to complain to.
    #[must_use]
    pub fn quiet_exit_code(&self) -> Option<ExitCode> {
        let is_unread = self.0.kind() == io::ErrorKind::BrokenPipe;
        is_unread.then(|| ExitCode::from(READER_GONE))
    }
}

/// Answers with a text, as `print!` has it.
macro_rules! out {
    ($($argument:tt)*) => { $crate::output::answer(format_args!($($argument)*)) };
}

/// Answers with a line, as `println!` has it.
macro_rules! outln {
    ($($argument:tt)*) => { $crate::output::answer(format_args!("{}\n", format_args!($($argument)*))) };
}

/// Complains in a line, as `eprintln!` has it.
macro_rules! errln {
    ($($argument:tt)*) => { $crate::output::complain(format_args!("{}\n", format_args!($($argument)*))) };
}

/// Answers with a text.
pub fn answer(text: impl Display) -> Result<(), Unwritten> {
    answer_bytes(text.to_string().as_bytes())
}

/// Answers with what need not be text.
pub fn answer_bytes(bytes: &[u8]) -> Result<(), Unwritten> {
    Ok(write_all(io::stdout().as_fd(), bytes)?)
}

/// Complains as well as it can be done.
pub fn complain(text: impl Display) {
    write_all(io::stderr().as_fd(), text.to_string().as_bytes()).ok();
}

/// From now on what a reader does not take at once is not written.
pub fn wait_for_nobody() {
    NOBODY_IS_WAITED_FOR.store(true, Ordering::Relaxed);
}

/// Whether there is room for something short at this moment.
pub fn is_writable(stream: BorrowedFd<'_>) -> bool {
    has_room(stream, Duration::ZERO).unwrap_or(false)
}

fn write_all(stream: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        while !has_room(stream, READER_WAIT)? {
            if NOBODY_IS_WAITED_FOR.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        match rustix::io::write(stream, &rest[..rest.len().min(CHUNK_BYTES)]) {
            Ok(count) => rest = &rest[count..],
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Waits for room; also true if there will never be any, as whoever writes then is told.
fn has_room(stream: BorrowedFd<'_>, at_most: Duration) -> io::Result<bool> {
    let mut asked = [PollFd::new(&stream, PollFlags::OUT)];
    let at_most = Timespec::try_from(at_most).map_err(|_| io::ErrorKind::InvalidInput)?;
    match poll(&mut asked, Some(&at_most)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read as _, pipe};
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_is_longer_than_a_pipe_comes_whole() {
        let (mut reader, writer) = pipe().unwrap();
        let text = "0123456789\n".repeat(20_000);
        let sent = text.clone();
        let sends = std::thread::spawn(move || write_all(writer.as_fd(), sent.as_bytes()));
        let mut come = String::new();
        reader.read_to_string(&mut come).unwrap();
        sends.join().unwrap().unwrap();
        assert!(come == text, "{} of {} bytes", come.len(), text.len());
    }

    #[test]
    fn a_reader_that_has_gone_is_told_apart_from_a_full_disk() {
        // Not by closing one end: a process that another test starts holds a copy of it for a moment.
        let (reader, writer) = UnixStream::pair().unwrap();
        reader.shutdown(Shutdown::Both).unwrap();
        let gone = Unwritten(write_all(writer.as_fd(), b"text").unwrap_err());
        assert!(gone.quiet_exit_code().is_some(), "{gone}");
        let full = File::options().write(true).open("/dev/full").unwrap();
        let full = Unwritten(write_all(full.as_fd(), b"text").unwrap_err());
        assert!(full.quiet_exit_code().is_none(), "{full}");
        assert_eq!(full.0.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn who_has_no_room_is_seen() {
        let (_reader, writer) = pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        assert!(is_writable(writer.as_fd()));
        while rustix::io::write(&writer, &[0; CHUNK_BYTES]).is_ok() {}
        assert!(!is_writable(writer.as_fd()));
    }
}
