//! What is known of programs that are served: how they save themselves, in what they differ by right, and
//! whether several threads serve.
use rustix::process::Signal;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

/// What is known of one.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Profile {
    /// What it is told besides.
    pub arguments: Vec<OsString>,
    /// The signal upon which it saves itself in its folder and ends.
    pub save_signal: Option<u8>,
    /// Commands of its clients that each replica answers differently.
    pub unchecked_commands: &'static [&'static str],
    /// Several of its threads serve clients.
    pub is_serial: bool,
}

/// What Redis says of its process: memory, descriptors, how long something took, and where its files are.
const UNCHECKED_OF_REDIS: &[&str] = &[
    "ACL", "CLIENT", "CONFIG", "DEBUG", "INFO", "LASTSAVE", "LATENCY", "MEMORY", "MODULE",
    "SLOWLOG",
];

/// Of the program in this file.
#[must_use]
pub fn profile_of(file: &OsStr) -> Profile {
    let name = Path::new(file).file_name().and_then(OsStr::to_str);
    match name {
        Some("redis-server" | "valkey-server") => Profile {
            arguments: ["--shutdown-on-sigterm", "save"].map(Into::into).to_vec(),
            save_signal: Some(number_of(Signal::TERM)),
            unchecked_commands: UNCHECKED_OF_REDIS,
            ..Profile::default()
        },
        // One thread accepts, and others read, with `-t 1`, too. Its threads in the background are ordered as
        // well, so no option is needed to make them alike. It says how long the processor worked for it.
        Some("memcached") => Profile {
            unchecked_commands: &["STATS"],
            is_serial: true,
            ..Profile::default()
        },
        Some("clamd" | "slapd") => Profile {
            is_serial: true,
            ..Profile::default()
        },
        Some(_) | None => Profile::default(),
    }
}

/// Why it is not served as it is told to run, if that is known.
#[must_use]
pub fn unfit(command: &[OsString]) -> Option<&'static str> {
    let (file, arguments) = command.split_first()?;
    let name = Path::new(file).file_name().and_then(OsStr::to_str);
    if !matches!(name, Some("redis-server" | "valkey-server")) {
        return None;
    }
    let words = arguments.iter().filter_map(|it| it.to_str());
    let words: Vec<&str> = words.collect();
    let is_told = words
        .windows(2)
        .any(|pair| pair[0].eq_ignore_ascii_case("--io-threads") && is_several(pair[1]));
    let file = words.first().filter(|it| !it.starts_with("--"));
    let text = file.and_then(|file| fs::read_to_string(file).ok());
    let is_written = text.is_some_and(|text| {
        let mut lines = text.lines().map(str::split_whitespace);
        lines.any(|mut line| {
            let is_meant = line
                .next()
                .is_some_and(|it| it.eq_ignore_ascii_case("io-threads"));
            is_meant && line.next().is_some_and(is_several)
        })
    });
    (is_told || is_written).then_some(IO_THREADS)
}

const IO_THREADS: &str = "with several io-threads, threads would speak with clients, and wait for each other by what \
                          the log does not order, which --serial does not serve either. Give it `io-threads 1`";

/// Why a program that has a thread of this name is not served, if that is known. It may run by another name.
#[must_use]
pub fn unfit_thread(name: &str) -> Option<&'static str> {
    name.starts_with("io_thd_").then_some(IO_THREADS)
}

/// Whether there is a profile for this name.
#[must_use]
pub fn is_known(file: &OsStr) -> bool {
    profile_of(file) != Profile::default()
}

fn is_several(count: &str) -> bool {
    count.parse::<u32>().is_ok_and(|count| count > 1)
}

/// Signals that can be asked for, by the names without `SIG`.
pub const SAVE_SIGNALS: [(&str, Signal); 6] = [
    ("TERM", Signal::TERM),
    ("INT", Signal::INT),
    ("HUP", Signal::HUP),
    ("QUIT", Signal::QUIT),
    ("USR1", Signal::USR1),
    ("USR2", Signal::USR2),
];

/// What people call the signal with this number.
#[must_use]
pub fn name_of(number: u8) -> Option<&'static str> {
    let mut all = SAVE_SIGNALS.iter();
    let found = all.find(|(_, signal)| number_of(*signal) == number);
    found.map(|(name, _)| *name)
}

/// The number of one.
#[must_use]
pub fn number_of(signal: Signal) -> u8 {
    u8::try_from(signal.as_raw()).expect("less than 65")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redis_with_threads_for_its_clients_is_refused_wherever_it_is_told_so() {
        let unfit = |words: &[&str]| {
            let command: Vec<OsString> = words.iter().map(Into::into).collect();
            unfit(&command).is_some()
        };
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let several = file("several", "port 1\n  io-threads 4\n");
        let one = file(
            "one",
            "# io-threads 4\nio-threads 1\nio-threads-do-reads yes\n",
        );
        assert!(unfit(&["redis-server", "--io-threads", "4"]));
        assert!(unfit(&["/usr/bin/redis-server", &several, "--port", "1"]));
        for fits in [
            &["redis-server", "--io-threads", "1"][..],
            &["redis-server", &one],
            &["redis-server", "nosuchfile"],
            &["redis-server"],
            &["other", "--io-threads", "4"],
            &[],
        ] {
            assert!(!unfit(fits), "{fits:?}");
        }
    }
}
