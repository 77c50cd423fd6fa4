//! `quorumwire restore`: the data folders of a new cluster out of a backup.
use super::backup;
use super::new_cluster::{self, Beginning, group_folder, sync_folder, unfinished_folder};
use super::progress::during;
use anyhow::Context as _;
use quorumwire_interfaces::ReplicaId;
use quorumwire_node::options::{Refused, members_at_one_address, parse_members};
use quorumwire_node::privileges;
use quorumwire_node::server::mark_as_restored;
use quorumwire_wire::limits::VOTERS_MAX;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Run it once for each replica, with the same file, name and members, on the machine that it will run on.
/// The data are put into the folder of the lowest id; the others receive them from it when their servers
/// start, and vote then. The new cluster needs a name of its own: replicas and clients of the old one are
/// refused by it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example, the first of three replicas; then its server:
  quorumwire restore --from monday.qwb --cluster prod-2 --id 0 --dir data/0 \\
    --members 0=10.0.0.10:7400,1=10.0.0.11:7400,2=10.0.0.12:7400
  quorumwire server --cluster prod-2 --id 0 --dir data/0 --members 0=10.0.0.10:7400,1=... ...")]
pub struct Arguments {
    /// The backup
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// Folder to make: the --dir of the server. Empty, or not there
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// The replica's id
    #[arg(long, value_name = "N")]
    id: u16,
    /// All members of the new cluster, this replica included
    #[arg(long, value_name = "ID=HOST:PORT,...")]
    members: String,
    /// Name of the new cluster; not the old one's
    #[arg(long, value_name = "NAME")]
    cluster: String,
}

/// Makes one folder.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let members = check_members(arguments)?;
    check_empty(&arguments.dir)?;
    let (head, store) = during(|stage| backup::read(&arguments.from, stage))?;
    new_cluster::check_name(&arguments.cluster, &head.cluster)?;
    let id = ReplicaId(arguments.id);
    let holder = *members.keys().min().context("there are members")?;
    let (dir, cluster) = (arguments.dir.as_path(), &arguments.cluster);
    make_folder(dir)?;
    if id != holder {
        mark_as_restored(dir, holder)?;
        outln!(
            "{}: replica {id} of the new cluster {cluster:?} waits for replica {holder}, which brings the data",
            dir.display(),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let begins = Beginning {
        cluster: cluster.clone(),
        holder,
        members: members.clone().into_iter().collect(),
        quorum: head.state.membership.quorum,
        ended: (head.state.last_index, head.state.last_term),
        log_time: head.state.log_time,
    };
    let unfinished = unfinished_folder(dir);
    fs::create_dir(&unfinished).with_context(|| format!("making {}", unfinished.display()))?;
    // From now on a server that is started here all the same does not begin an empty cluster.
    mark_as_restored(dir, holder)?;
    during(|stage| new_cluster::write(&unfinished, &begins, &store.contents(), stage))?;
    fs::rename(&unfinished, group_folder(dir)).context("naming the folder")?;
    sync_folder(dir)?;
    std::mem::forget(store); // the process ends and its memory with it: no item is freed by itself
    outln!("{}: {}", arguments.from.display(), backup::described(&head))?;
    outln!(
        "{}: replica {id} of the new cluster {cluster:?} holds all of it; until `quorumwire status` shows the other \
         members as voters, it alone does",
        dir.display(),
    )?;
    Ok(ExitCode::SUCCESS)
}

fn check_members(arguments: &Arguments) -> Result<BTreeMap<ReplicaId, String>, Refused> {
    let given = &arguments.members;
    let members = parse_members(given).filter(|it| it.len() <= VOTERS_MAX);
    let members = members.ok_or_else(|| {
        let allowed = format!("ID=HOST:PORT,... with 1 to {VOTERS_MAX} different ids");
        Refused::flag("members", given, allowed)
    })?;
    if let Some((one, other)) = members_at_one_address(&members) {
        let allowed = format!("each address once; replicas {one} and {other} are given the same");
        return Err(Refused::flag("members", given, allowed));
    }
    if !members.contains_key(&ReplicaId(arguments.id)) {
        let ids: Vec<String> = members.keys().map(ToString::to_string).collect();
        let allowed = format!("an id among the members: {}", ids.join(", "));
        return Err(Refused::flag("id", arguments.id.to_string(), allowed));
    }
    Ok(members)
}

/// Refuses a folder that holds anything but what a restore cut short left there.
fn check_empty(dir: &Path) -> anyhow::Result<()> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("option dir: {}", dir.display())),
    };
    let mut paths = BTreeSet::new();
    for entry in entries {
        paths.insert(entry?.path());
    }
    let unfinished = unfinished_folder(dir);
    let marks = ["was-member", "was-member.tmp"].map(|name| dir.join(name));
    let mut left = BTreeSet::from(marks);
    left.insert(unfinished.clone());
    if paths.contains(&unfinished) && paths.is_subset(&left) {
        return fs::remove_dir_all(&unfinished)
            .with_context(|| format!("removing what is left in {}", unfinished.display()));
    }
    if paths.is_empty() {
        return Ok(());
    }
    let allowed = "a folder that is empty or not there";
    Err(Refused::flag("dir", dir.display().to_string(), allowed).into())
}

/// Makes the folder, durably.
fn make_folder(dir: &Path) -> anyhow::Result<()> {
    privileges::make_folder(dir)?;
    match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_folder(parent),
        Some(_) | None => Ok(()),
    }
}
