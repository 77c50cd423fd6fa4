//! What is known of programs that are served: how they save themselves, in what they differ by right, and
//! whether several threads serve.
use rustix::process::Signal;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

/// What is known of one.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Profile {
    /// What it is told besides, behind what the user tells it: so this is what counts.
    pub arguments: Vec<&'static str>,
    /// Likewise, so that it saves itself upon this signal.
    save_arguments: &'static [(Signal, [&'static str; 2])],
    /// Its user wants it to save by itself, which it cannot here.
    pub has_save_points: bool,
    /// The signal upon which it saves itself in its folder and ends.
    pub save_signal: Option<u8>,
    /// Commands of its clients that each replica answers differently.
    pub unchecked_commands: &'static [&'static str],
    /// Several of its threads serve clients.
    pub is_serial: bool,
}

/// So deep files of Redis may include each other and still be looked at.
const INCLUDES_MAX: usize = 8;

/// What Redis says of its process: memory, descriptors, how long something took, and where its files are.
const UNCHECKED_OF_REDIS: &[&str] = &[
    "ACL", "CLIENT", "CONFIG", "DEBUG", "INFO", "LASTSAVE", "LATENCY", "MEMORY", "MODULE",
    "SLOWLOG",
];

impl Profile {
    /// What it is told besides, if this is the signal upon which it saves itself.
    pub fn arguments_with(&self, save_signal: Option<u8>) -> impl Iterator<Item = OsString> {
        let save = self.save_arguments.iter();
        let save = save.filter(move |(signal, _)| Some(number_of(*signal)) == save_signal);
        let save = save.flat_map(|(_, words)| words);
        self.arguments.iter().chain(save).map(Into::into)
    }
}

/// Of the program that is started so.
#[must_use]
pub fn profile_of(command: &[OsString]) -> Profile {
    match file_name(command) {
        Some("redis-server" | "valkey-server") => of_redis(&directives(command)),
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

fn file_name(command: &[OsString]) -> Option<&str> {
    let file = Path::new(command.first()?);
    file.file_name().and_then(OsStr::to_str)
}

/// Redis saves in the background by a child, which it is refused. It would take no write after the first
/// time, also where a client sets save points. What `SHUTDOWN` of one client does, every restart would do
/// again.
fn of_redis(directives: &[Vec<String>]) -> Profile {
    let mut arguments = vec!["--save", "", "--stop-writes-on-bgsave-error", "no"];
    let renames = |it: &Vec<String>| {
        it[0] == "rename-command"
            && it
                .get(1)
                .is_some_and(|it| it.eq_ignore_ascii_case("SHUTDOWN"))
    };
    if !directives.iter().any(renames) {
        arguments.extend(["--rename-command", "SHUTDOWN", ""]);
    }
    let saves = directives.iter().rfind(|it| it[0] == "save");
    let has_points = saves.is_some_and(|it| it[1..].iter().any(|word| !word.is_empty()));
    Profile {
        arguments,
        save_arguments: &[
            (Signal::TERM, ["--shutdown-on-sigterm", "save"]),
            (Signal::INT, ["--shutdown-on-sigint", "save"]),
        ],
        has_save_points: has_points,
        save_signal: Some(number_of(Signal::TERM)),
        unchecked_commands: UNCHECKED_OF_REDIS,
        ..Profile::default()
    }
}

/// What a Redis is told by its files and by its arguments, in that order: the name in small letters, and the
/// values.
fn directives(command: &[OsString]) -> Vec<Vec<String>> {
    let words: Vec<&str> = command
        .iter()
        .skip(1)
        .filter_map(|it| it.to_str())
        .collect();
    let mut found = Vec::new();
    if let Some(file) = words.first().filter(|it| !it.starts_with("--")) {
        read_directives(Path::new(file), INCLUDES_MAX, &mut found);
    }
    let parts = words.iter().flat_map(|word| {
        let parts = word.split_whitespace();
        let is_empty = word.trim().is_empty();
        parts.chain(is_empty.then_some(""))
    });
    let mut told: Vec<Vec<String>> = Vec::new();
    for part in parts {
        match (part.strip_prefix("--"), told.last_mut()) {
            (Some(name), _) => told.push(vec![name.to_ascii_lowercase()]),
            (None, Some(directive)) => directive.push(bare(part)),
            (None, None) => {} // the file
        }
    }
    found.extend(told);
    found
}

/// Those of a file that can be read, and of files that it includes.
fn read_directives(file: &Path, includes: usize, found: &mut Vec<Vec<String>>) {
    for line in fs::read_to_string(file).unwrap_or_default().lines() {
        let mut words: Vec<String> = line.split_whitespace().map(bare).collect();
        let Some(name) = words.first_mut() else {
            continue;
        };
        name.make_ascii_lowercase();
        match &words[..] {
            [name, file] if name == "include" && includes > 0 => {
                read_directives(Path::new(file), includes - 1, found);
            }
            _ if words[0].starts_with('#') => {}
            _ => found.push(words),
        }
    }
}

/// A word without its quotation marks.
fn bare(word: &str) -> String {
    word.trim_matches(['"', '\'']).to_owned()
}

/// Why it is not served as it is told to run, if that is known.
#[must_use]
pub fn unfit(command: &[OsString]) -> Option<&'static str> {
    if !matches!(file_name(command), Some("redis-server" | "valkey-server")) {
        return None;
    }
    let directives = directives(command);
    let mut threads = directives.iter().filter(|it| it[0] == "io-threads");
    let has_several = threads.any(|it| it.get(1).is_some_and(|count| is_several(count)));
    has_several.then_some(IO_THREADS)
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
    profile_of(&[file.to_owned()]) != Profile::default()
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

    fn told(command: &[&str]) -> (Vec<String>, bool) {
        let command: Vec<OsString> = command.iter().map(Into::into).collect();
        let profile = profile_of(&command);
        let words = profile.arguments_with(profile.save_signal);
        let words = words.map(|it| it.into_string().unwrap()).collect();
        (words, profile.has_save_points)
    }

    #[test]
    fn a_redis_makes_no_save_points_and_clients_cannot_end_it() {
        let own = ["--save", "", "--stop-writes-on-bgsave-error", "no"];
        let rename = ["--rename-command", "SHUTDOWN", ""];
        let save = ["--shutdown-on-sigterm", "save"];
        let all = [&own[..], &rename, &save].concat();
        let without = [&own[..], &save].concat();
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let inner = file("inner", "rename-command shutdown \"\"\n");
        let outer = file(
            "outer",
            &format!("# save 1 1\nSave 60 1\ninclude {inner}\n"),
        );
        for (command, words, has_points) in [
            (&["redis-server", "--port", "6379"][..], &all, false),
            (&["valkey-server", "--save", ""], &all, false),
            (&["redis-server", "--save", "60", "1"], &all, true),
            (&["redis-server", "--save 60 1"], &all, true),
            (&["redis-server", &outer], &without, true),
            (&["redis-server", &outer, "--save", ""], &without, false),
            (
                &["redis-server", "--rename-command", "shutdown", "x"],
                &without,
                false,
            ),
        ] {
            let (said, warns) = told(command);
            assert_eq!(&said, words, "{command:?}");
            assert_eq!(warns, has_points, "{command:?}");
        }
        assert_eq!(told(&["memcached", "--save", "1"]), (Vec::new(), false));
        let interrupted = profile_of(&["redis-server".into()])
            .arguments_with(Some(2))
            .last();
        assert_eq!(interrupted, Some("save".into()), "upon SIGINT, too");
        assert_eq!(
            profile_of(&["redis-server".into()])
                .arguments_with(None)
                .count(),
            7
        );
    }
}
