//! Replicas are where the list of members does not say, and still find each other.

use anyhow::ensure;
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::status::Status;

/// Where the peers' ports are after the move.
const MOVED_TO: u16 = 17_400;

/// The addresses in the list of a replica are those at which the servers are now.
fn list_is_right(cluster: &Cluster<'_>, id: u16) -> bool {
    let is_right = |status: Status| {
        let mut members = status.members.iter();
        members.all(|member| member.peer == cluster.peer(member.id).to_string())
    };
    cluster.status(id).is_ok_and(is_right)
}

#[test]
fn replicas_that_all_moved_at_once_find_each_other_and_the_list_is_corrected() {
    run_started(Plan::new(3, Durability::Sync), |cluster| {
        cluster.put("before", "1")?;
        cluster.kill_all()?;
        cluster.move_peers(MOVED_TO);
        // Two of three are a majority, and know of each other only by their options.
        for id in [0, 1] {
            cluster.start(id)?;
        }
        cluster.wait_for_leader()?;
        ensure!(cluster.get("before")?.as_deref() == Some("1"));
        cluster.wait_for("the missing one to be told of", || {
            let faults = cluster
                .status(0)
                .map(|status| status.faults)
                .unwrap_or_default();
            let told = |fault: &String| {
                fault.contains("no connection to replica 2: ")
                    && fault.contains("(the list of members): ")
                    && fault.contains(":17400 (option members): ")
            };
            Ok(faults.iter().any(told))
        })?;
        cluster.start(2)?;
        cluster.wait_for("all lists to have the new addresses", || {
            Ok(cluster.founders().all(|id| list_is_right(cluster, id)))
        })?;
        cluster.put("after", "2")
    });
}

#[test]
fn a_member_is_added_only_where_it_is_found() {
    let mut plan = Plan::new(3, Durability::Sync);
    plan.spares = 1;
    run_started(plan, |cluster| {
        cluster.start_joining(3)?;
        let http = cluster.http(cluster.wait_for_leader()?).to_string();
        let add = |peer: &str| {
            cluster.command(&[
                "member", "add", "--id", "3", "--addr", &http, "--peer", peer,
            ])
        };
        let nobody = cluster.peer(3).to_string().replace(":7400", ":7499");
        let another = cluster.peer(1).to_string();
        for mistyped in [&nobody, &another] {
            let error = match add(mistyped) {
                Ok(said) => said,
                Err(error) => format!("{error:#}"),
            };
            ensure!(
                error.contains("replica 3 was not found")
                    && error.contains(&format!("{mistyped} (as given): ")),
                "{mistyped}: {error}"
            );
            let members = cluster.status(cluster.wait_for_leader()?)?.members;
            ensure!(members.len() == 3, "{members:?}");
        }
        let said = add(&cluster.peer(3).to_string())?;
        ensure!(said.contains("replica 3 is a voter"), "{said}");
        Ok(())
    });
}
