//! A cluster's folder: what is remembered, refused and removed. Starts no process.
use super::{ClusterRecord, FolderState, LocalCluster, Program};
use quorumwire_node::options::{Durability, Refused};
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;

fn open(dir: &Path, count: Option<u16>, durability: Durability) -> anyhow::Result<FolderState> {
    LocalCluster::open(dir, count, durability, &[]).map(|(_, opened)| opened)
}

#[test]
fn a_folder_remembers_its_cluster() {
    let dir = tempfile::tempdir().unwrap();
    let sync = Durability::Sync;
    assert_eq!(open(dir.path(), Some(5), sync).unwrap(), FolderState::New);
    let first = ClusterRecord::read(dir.path()).unwrap().unwrap();
    std::fs::create_dir(dir.path().join("0")).unwrap();
    assert_eq!(open(dir.path(), None, sync).unwrap(), FolderState::Again);
    let second = ClusterRecord::read(dir.path()).unwrap().unwrap();
    assert_eq!(first.cluster, second.cluster);
    assert!(dir.path().join("0").exists());
    let addresses = |recorded: &ClusterRecord| -> BTreeSet<String> {
        let replicas = recorded.replicas.iter();
        replicas
            .flat_map(|replica| {
                let service = replica.service.each().into_iter().map(|(_, at)| at);
                let others = [&replica.peer, &replica.client, &replica.http];
                service.chain(others).cloned().collect::<Vec<_>>()
            })
            .collect()
    };
    assert_eq!(addresses(&first), addresses(&second));
    assert_eq!(addresses(&first).len(), 25);
}

#[test]
fn what_was_in_memory_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Durability::Memory;
    assert_eq!(open(dir.path(), None, memory).unwrap(), FolderState::New);
    let first = ClusterRecord::read(dir.path()).unwrap().unwrap();
    std::fs::create_dir(dir.path().join("2")).unwrap();
    assert_eq!(
        open(dir.path(), Some(3), memory).unwrap(),
        FolderState::Emptied
    );
    let second = ClusterRecord::read(dir.path()).unwrap().unwrap();
    assert_ne!(first.cluster, second.cluster);
    assert!(!dir.path().join("2").exists());
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_removed() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path(), Some(3), Durability::Sync).unwrap();
    std::fs::create_dir(dir.path().join("0")).unwrap();
    let error = open(dir.path(), Some(5), Durability::Sync).unwrap_err();
    assert_eq!(error.downcast::<Refused>().unwrap().option, "replicas");
    let error = open(dir.path(), None, Durability::Memory).unwrap_err();
    assert_eq!(error.downcast::<Refused>().unwrap().option, "durability");
    assert!(dir.path().join("0").exists());
}

#[test]
fn a_folder_with_other_things_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("thesis.tex"), "years of work").unwrap();
    let error = open(dir.path(), None, Durability::Memory).unwrap_err();
    assert_eq!(error.downcast::<Refused>().unwrap().option, "dir");
}

#[test]
fn a_folder_serves_what_it_began_with() {
    let program = |command: &str, port| Program {
        command: command.split(' ').map(str::to_owned).collect(),
        port,
    };
    let open = |dir: &Path, program: Option<&Program>| {
        let opened = LocalCluster::open_serving(dir, None, Durability::Sync, &[], program);
        opened.map(|(cluster, _)| cluster.program().cloned())
    };
    let refused = |dir: &Path, program: &Program| {
        let refused = open(dir, Some(program)).unwrap_err().downcast::<Refused>();
        refused.unwrap()
    };
    let dir = tempfile::tempdir().unwrap();
    let first = program("x -p 7", 7);
    for given in [Some(&first), None, Some(&first)] {
        assert_eq!(open(dir.path(), given).unwrap().as_ref(), Some(&first));
    }
    let other = refused(dir.path(), &program("y -p 7", 7));
    assert!(other.allowed.contains("\"x -p 7\""), "{other}");
    let other = refused(dir.path(), &program("x -p 7", 8));
    assert!(
        other.option == "serve" && other.allowed.starts_with("7,"),
        "{other}"
    );
    let of_store = tempfile::tempdir().unwrap();
    assert_eq!(open(of_store.path(), None).unwrap(), None);
    let other = refused(of_store.path(), &first);
    assert!(other.allowed.starts_with("no program"), "{other}");
}

#[test]
fn a_damaged_record_is_named() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("dev.json"), "{").unwrap();
    let error = open(dir.path(), None, Durability::Sync).unwrap_err();
    assert!(error.to_string().contains("dev.json is damaged"), "{error}");
}

#[test]
fn only_one_may_use_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let held = LocalCluster::open(dir.path(), None, Durability::Sync, &[]).unwrap();
    let error = open(dir.path(), None, Durability::Sync).unwrap_err();
    assert!(error.to_string().contains("in use by another"), "{error}");
    drop(held);
    open(dir.path(), None, Durability::Sync).unwrap();
}

#[test]
fn a_taken_port_is_named() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path(), None, Durability::Sync).unwrap();
    let recorded = ClusterRecord::read(dir.path()).unwrap().unwrap();
    let taken = &recorded.replicas[1].http;
    let _listener = TcpListener::bind(taken.as_str()).unwrap();
    let error = open(dir.path(), None, Durability::Sync).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains(taken) && error.contains("replica 1"),
        "{error}"
    );
}

/// A server refuses certificates for another kind of cluster.
#[test]
fn keys_are_for_what_the_servers_do() {
    for (extra, end) in [
        (&["--learners", "1,2"][..], "/values"),
        (&["--learners=1"], "/values"),
        (&["--reads", "lease"], ""),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let extra: Vec<_> = extra.iter().map(|it| (*it).to_owned()).collect();
        let opened = LocalCluster::open(dir.path(), None, Durability::Sync, &extra);
        let (cluster, _) = opened.unwrap();
        let named = format!("{}{end}", cluster.recorded.cluster);
        assert_eq!(cluster.keys.cluster(), named, "{extra:?}");
    }
}
