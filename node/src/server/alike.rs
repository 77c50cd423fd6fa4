//! The options that all replicas of a cluster should be given alike, as others are told them. Replicas that
//! meet compare them; what would be safe with two values all the same is only said.
use super::groups::SECOND_GROUP;
use super::links::{BEGINS_WITH, JOINS, SECRET_OF_EPOCH};
use crate::keys::{ClusterKeys, EpochKeys};
use crate::options::{Durability, OnFollower, ServedOptions, ServerOptions};
use crate::planes::PlaneChoice;
use quorumwire_wire::peer::Setting;
use sha2::{Digest as _, Sha256};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

/// `begins`: it takes part in making a new cluster, should there be none yet.
pub fn settings(options: &ServerOptions, begins: bool) -> Vec<Setting> {
    let mut settings = vec![
        (
            "durability",
            match options.durability {
                Durability::Sync => "sync",
                Durability::Memory => "memory",
            }
            .to_owned(),
        ),
        (
            "election-timeout-ms",
            milliseconds(options.election_timeout),
        ),
        ("heartbeat-ms", milliseconds(options.heartbeat_interval)),
        ("lease-ms", milliseconds(options.lease)),
        ("clock-drift-ppm", options.clock_drift_ppm.to_string()),
        (
            "reads",
            if options.lease_reads {
                "lease"
            } else {
                "read-index"
            }
            .to_owned(),
        ),
        // Planes of different kinds speak the same.
        (
            "plane",
            match options.plane {
                PlaneChoice::None => "none",
                PlaneChoice::One(_) | PlaneChoice::Auto => "one",
            }
            .to_owned(),
        ),
        (
            "on-follower",
            match options.on_follower {
                OnFollower::Forward => "forward",
                OnFollower::Refuse => "refuse",
            }
            .to_owned(),
        ),
        // A replica that lets in everybody opens the whole cluster.
        ("client-tls", given(options.client_tls.is_some())),
        ("client-tls-ca", given(options.client_authorities.is_some())),
        (
            "client-auth-file",
            given(options.client_auth_file.is_some()),
        ),
    ];
    settings.extend(options.served.iter().flat_map(of_program));
    if options.served.is_some() {
        settings.extend(VARIABLES.map(|(name, option)| (option, variable(name))));
    }
    if let Some(values) = &options.values {
        let learners: Vec<String> = values.learners.iter().map(ToString::to_string).collect();
        settings.push(("learners", of_learners(&learners.join(","))));
        settings.push(("values-mib", (values.kept_bytes_max >> 20).to_string()));
    }
    settings.push((SECOND_GROUP, given(options.second_group.is_some())));
    if begins && !options.join {
        let ids: Vec<String> = options.members.keys().map(ToString::to_string).collect();
        settings.push((BEGINS_WITH, ids.join(",")));
    } else {
        settings.push((JOINS, given(true)));
    }
    let setting = |(option, value): (&str, String)| Setting {
        option: option.to_owned(),
        value,
    };
    settings.into_iter().map(setting).collect()
}

/// Variables of the environment of which follows what a program says, and how they are called here.
const VARIABLES: [(&str, &str); 2] = [("LANG", "environment LANG"), ("TZ", "environment TZ")];

/// Which learners there are; a checksum of many.
fn of_learners(numbers: &str) -> String {
    if numbers.len() > 64 {
        return checksum([OsStr::new(numbers)]);
    }
    numbers.to_owned()
}

/// The value of one; a checksum of one that is long.
fn variable(name: &str) -> String {
    let value = std::env::var_os(name).unwrap_or_default();
    if value.len() > 64 {
        return checksum([&*value]);
    }
    format!("`{}`", value.to_string_lossy())
}

/// Of words that may be secret: so short that many others have the same.
fn checksum<'a>(words: impl IntoIterator<Item = &'a OsStr>) -> String {
    let mut hasher = Sha256::new();
    for word in words {
        hasher.update((word.len() as u64).to_le_bytes());
        hasher.update(word.as_bytes());
    }
    hex::encode(&hasher.finalize()[..4])
}

/// Programs that are run otherwise say something else, or what is compared of it is something else. How a
/// program is known follows from the name of its file.
fn of_program(served: &ServedOptions) -> [(&'static str, String); 8] {
    let file = served.command.first().map(Path::new);
    let name = file.and_then(Path::file_name).unwrap_or_default();
    let arguments = served.command.iter().skip(1).map(|it| &**it);
    let commands = served.save_commands.as_ref();
    let command = |text: Option<&String>| {
        text.map_or_else(|| "off".to_owned(), |text| checksum([OsStr::new(text)]))
    };
    let signal = served.save_signal.map(|it| it.to_string());
    [
        ("COMMAND", name.to_string_lossy().into_owned()),
        (
            "COMMAND, the checksum of its arguments",
            checksum(arguments),
        ),
        ("snapshot-command", command(commands.map(|it| &it.snapshot))),
        ("restore-command", command(commands.map(|it| &it.restore))),
        ("save-signal", signal.unwrap_or_else(|| "none".to_owned())),
        ("serial", given(served.serial_turn_max.is_some())),
        ("unchecked-output", given(served.unchecked_output)),
        ("allow-outbound", given(served.allow_outbound)),
    ]
}

/// Which secrets it has, as fingerprints: one setting for each epoch, because replicas are in different steps
/// of a rotation for a while.
pub fn secrets(keys: &ClusterKeys) -> Vec<Setting> {
    let setting = |it: &EpochKeys| Setting {
        option: format!("{SECRET_OF_EPOCH}{}", it.epoch),
        value: it.fingerprint(),
    };
    keys.accepted.iter().map(setting).collect()
}

fn milliseconds(duration: Duration) -> String {
    duration.as_millis().to_string()
}

fn given(is: bool) -> String {
    if is { "on" } else { "off" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::SaveCommands;

    #[test]
    fn programs_that_are_run_otherwise_are_not_alike() {
        let served = ServedOptions {
            command: ["/usr/bin/redis-server", "--port", "0"]
                .map(Into::into)
                .to_vec(),
            save_signal: Some(15),
            ..ServedOptions::default()
        };
        let of = |served: &ServedOptions| of_program(served).map(|(_, value)| value);
        let [name, arguments, rest @ ..] = of(&served);
        assert_eq!(name, "redis-server");
        assert_eq!(rest, ["off", "off", "15", "off", "off", "off"]);
        let told = |words: &[&str]| {
            let mut other = served.clone();
            other.command.truncate(1);
            other.command.extend(words.iter().map(Into::into));
            of(&other)[1].clone()
        };
        assert_eq!(told(&["--port", "0"]), arguments);
        assert_eq!(arguments.len(), 8, "{arguments}");
        for words in [&["--port", "1"][..], &["--port0"], &["0", "--port"], &[]] {
            assert_ne!(told(words), arguments, "{words:?}");
        }
        let other = ServedOptions {
            command: vec!["redis-server-7".into()],
            save_signal: None,
            save_commands: Some(SaveCommands {
                snapshot: "true".into(),
                restore: "true".into(),
            }),
            unchecked_output: true,
            allow_outbound: true,
            serial_turn_max: Some(Duration::from_secs(1)),
            ..served
        };
        let [name, _, snapshot, restore, rest @ ..] = of(&other);
        assert_eq!(name, "redis-server-7");
        assert!(snapshot == restore && snapshot.len() == 8, "{snapshot}");
        assert_eq!(rest, ["none", "on", "on", "on"]);
    }
}
