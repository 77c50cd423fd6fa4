//! What is known of programs that are served: how they save themselves, in what they differ by right, and
//! whether several threads serve.
use rustix::process::Signal;
use std::ffi::{OsStr, OsString};
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

/// Signals that can be asked for, by the names without `SIG`.
pub const SAVE_SIGNALS: [(&str, Signal); 6] = [
    ("TERM", Signal::TERM),
    ("INT", Signal::INT),
    ("HUP", Signal::HUP),
    ("QUIT", Signal::QUIT),
    ("USR1", Signal::USR1),
    ("USR2", Signal::USR2),
];

/// The number of one.
#[must_use]
pub fn number_of(signal: Signal) -> u8 {
    u8::try_from(signal.as_raw()).expect("less than 65")
}
