//! The modes of `redis-cli` that people look into a server with: they show what is there.

use anyhow::{Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};

/// Runs this in a shell, where `$CLI` is a client of the replica.
fn shell(cluster: &Cluster<'_>, id: u16, line: &str) -> Result<String> {
    let address = cluster.redis(id);
    let (host, port) = (address.ip(), address.port());
    let line = format!("CLI='timeout 5 redis-cli -h {host} -p {port}'; {line}");
    let done = cluster.run_program("bash", &["-c", &line])?;
    Ok(done.stdout + &done.stderr)
}

fn contains(said: &str, wanted: &[&str]) -> Result<()> {
    for one in wanted {
        ensure!(said.contains(one), "no {one:?} in {said}");
    }
    Ok(())
}

#[test]
fn the_modes_of_redis_cli_show_what_is_there() {
    run_started(Plan::new(3, Durability::Memory), |cluster| {
        for id in 0..3 {
            let many = "for n in $(seq 1 500); do echo \"SET key-$n $n\"; done | $CLI --pipe";
            contains(&shell(cluster, id, many)?, &["errors: 0, replies: 500"])?;
            shell(cluster, id, "$CLI SETRANGE long 99999 x")?;
            let found = shell(cluster, id, "$CLI --bigkeys")?;
            let wanted = [
                "Sampled 501 keys",
                "Biggest string found",
                "'\"long\"' has 100000 bytes",
            ];
            contains(&found, &wanted)?;
            let found = shell(cluster, id, "$CLI --memkeys")?;
            contains(&found, &["Sampled 501 keys", "'\"long\"' has 100132 bytes"])?;
            let keys = shell(
                cluster,
                id,
                "$CLI --scan --pattern 'key-1*' | sort -u | wc -l",
            )?;
            ensure!(keys.trim() == "111", "{keys}");
            let stat = shell(
                cluster,
                id,
                "timeout 2 stdbuf -oL $CLI --stat -i 0.1 || true",
            )?;
            contains(&stat, &["keys", "clients", "501"])?;
            // Where it is no terminal it measures for a second and prints one line of numbers.
            let latency = shell(cluster, id, "timeout 3 $CLI --latency")?;
            let numbers: Vec<_> = latency.split_whitespace().collect();
            ensure!(numbers.len() == 4, "{latency}");
            ensure!(
                numbers.iter().all(|it| it.parse::<f64>().is_ok()),
                "{latency}"
            );
        }
        Ok(())
    });
}

#[test]
fn what_is_asked_about_the_server_is_answered_truly_or_refused() {
    run_started(Plan::new(1, Durability::Memory), |cluster| {
        let ask = |words: &str| shell(cluster, 0, &format!("$CLI {words}"));
        ensure!(ask("SET key value")? == "OK\n");
        ensure!(
            ask("MEMORY USAGE key SAMPLES 0")? == "136\n",
            "key, value and 128 bytes"
        );
        ensure!(ask("MEMORY USAGE none")? == "\n");
        ensure!(ask("SLOWLOG LEN")? == "0\n" && ask("SLOWLOG GET 10")? == "\n");
        ensure!(ask("LATENCY LATEST")? == "\n" && ask("LATENCY RESET")? == "0\n");
        contains(&ask("LATENCY DOCTOR")?, &["quorumwire_turn_seconds"])?;
        for words in ["DEBUG JMAP", "MEMORY DOCTOR"] {
            contains(&ask(words)?, &["ERR", "is not served"])?;
        }
        contains(&ask("MEMORY NOSUCH")?, &["unknown subcommand"])?;
        let before: u64 = ask("LASTSAVE")?.trim().parse()?;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        ensure!(before <= now.as_secs() && before + 60 > now.as_secs());
        let http = cluster.http(0).to_string();
        cluster.wait_for("a snapshot to be younger", || {
            cluster.command(&["snapshot", "--addr", &http])?;
            Ok(ask("LASTSAVE")?.trim().parse::<u64>()? > before)
        })?;
        let info = ask("INFO")?;
        let wanted = [
            "used_memory:",
            "used_memory_rss:",
            "blocked_clients:0",
            "total_commands_processed:",
            "rdb_last_save_time:",
            "mem_clients_normal:",
        ];
        contains(&info, &wanted)
    });
}
