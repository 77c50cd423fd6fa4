//! The options that all replicas of a cluster should be given alike, as others are told them. Replicas that
//! meet compare them; what would be safe with two values all the same is only said.
use super::groups::SECOND_GROUP;
use super::links::{BEGINS_WITH, JOINS, SECRET_OF_EPOCH};
use crate::keys::{ClusterKeys, EpochKeys};
use crate::options::{Durability, OnFollower, ServedOptions, ServerOptions};
use crate::planes::PlaneChoice;
use quorumwire_wire::peer::Setting;
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

/// Programs that are run otherwise say something else, or what is compared of it is something else. How a
/// program is known follows from the name of its file.
fn of_program(served: &ServedOptions) -> [(&'static str, String); 6] {
    let file = served.command.first().map(Path::new);
    let name = file.and_then(Path::file_name).unwrap_or_default();
    let signal = served.save_signal.map(|it| it.to_string());
    [
        ("COMMAND", name.to_string_lossy().into_owned()),
        ("save-signal", signal.unwrap_or_else(|| "none".to_owned())),
        ("snapshot-command", given(served.save_commands.is_some())),
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
        let usual = ["redis-server", "15", "off", "off", "off", "off"];
        assert_eq!(of(&served), usual);
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
        let unusual = ["redis-server-7", "none", "on", "on", "on", "on"];
        assert_eq!(of(&other), unusual);
    }
}
