//! Folders of new clusters, made by `restore` and `recover` as the command line runs them: what is in them,
//! and what is refused.
use super::{INDEX_GAP, group_folder, unfinished_folder};
use crate::commands::{Cli, backup, run};
use bytes::{BufMut as _, BytesMut};
use clap::Parser as _;
use quorumwire_group::{apply, commands_of};
use quorumwire_interfaces::{Incarnation, Index, Lineage, LogTime, ReplicaId, Term};
use quorumwire_kv::memcached::{Parsed, Request, parse};
use quorumwire_node::options::Refused;
use quorumwire_node::server::{GROUP, Replicated};
use quorumwire_node::stage::Stage;
use quorumwire_sessions::Outcome;
use quorumwire_storage::{FolderDisk, LogJob, OpenFolder, Ready, Settings, open};
use quorumwire_wire::{
    BackupHead, BackupWriter, CommitQuorum, Member, MemberRole, Membership, RecordKind,
    SnapshotHead, begin_record, finish_record, peer, put_bundled,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const OLD_LINEAGE: Lineage = Lineage(0x1d);
const OLD_LIFE: Incarnation = Incarnation(0x01d);
const MEMBERS: &str = "2=10.0.0.2:7400,1=10.0.0.1:7400,3=10.0.0.3:7400";

fn encoded(request: &str) -> Vec<u8> {
    let Parsed::Request {
        request: Request::Write { command, .. },
        ..
    } = parse(request.as_bytes())
    else {
        panic!("{request} is a write");
    };
    let mut bytes = Vec::new();
    command.encode(&mut bytes);
    bytes
}

fn set(key: &str, value: &str) -> Vec<u8> {
    encoded(&format!("set {key} 0 0 {}\r\n{value}\r\n", value.len()))
}

/// The first command of session 7: it runs once.
fn in_session() -> (RecordKind, Vec<u8>) {
    let mut payload = [7_u64.to_be_bytes(), 1_u64.to_be_bytes()].concat();
    payload.extend(encoded("incr number 1\r\n"));
    (RecordKind::SessionCommand, payload)
}

/// Several commands in one entry, one of them of a session.
fn bundle() -> (RecordKind, Vec<u8>) {
    let mut payload = BytesMut::new();
    let mut next = [8_u64.to_be_bytes(), 1_u64.to_be_bytes()].concat();
    next.extend(encoded("incr number 10\r\n"));
    let first = encoded("append number 0 0 1\r\n1\r\n");
    put_bundled(&mut payload, RecordKind::Command, |out| {
        out.put_slice(&first);
    });
    put_bundled(&mut payload, RecordKind::SessionCommand, |out| {
        out.put_slice(&next);
    });
    (RecordKind::Bundle, payload.to_vec())
}

fn members() -> Membership {
    let member = |id: u16| Member {
        id: ReplicaId(id),
        incarnation: Incarnation(OLD_LIFE.0 + u64::from(id) - 1),
        peer_address: format!("10.0.1.{id}:7400"),
        role: MemberRole::Voter,
    };
    Membership {
        members: vec![member(1), member(2), member(3)],
        quorum: CommitQuorum::All,
        lineage: OLD_LINEAGE,
    }
}

/// A log as a replica writes it, from index 1 on.
fn entries() -> Vec<(RecordKind, Vec<u8>)> {
    vec![
        (RecordKind::Membership, members().encode()),
        (RecordKind::NoOp, Vec::new()),
        (RecordKind::Tick, 1000_u64.to_be_bytes().to_vec()),
        (RecordKind::Command, set("number", "1")),
        in_session(),
        bundle(),
        (RecordKind::Command, set("large", &"x".repeat(600_000))),
    ]
}

fn applied() -> (Replicated, LogTime) {
    let (mut store, mut time) = (Replicated::default(), LogTime(0));
    for (index, (kind, payload)) in (1..).zip(entries()) {
        for command in commands_of(kind, &payload) {
            apply(
                &mut store,
                (Index(index), &mut time),
                command,
                &mut Vec::new(),
            );
        }
    }
    (store, time)
}

fn get(store: &Replicated, key: &str) -> String {
    let mut reply = Vec::new();
    store.query(format!("get {key}").as_bytes(), &mut reply);
    String::from_utf8(reply).unwrap()
}

fn written_backup() -> Vec<u8> {
    let (store, log_time) = applied();
    let head = BackupHead {
        cluster: "old".to_owned(),
        replica: ReplicaId(2),
        taken_ms: 5,
        state: SnapshotHead {
            group: GROUP,
            last_index: Index(7),
            last_term: Term(4),
            log_time,
            membership: members(),
            membership_index: Index(1),
        },
    };
    let mut writer = BackupWriter::new(Vec::new(), &head).unwrap();
    store.freeze().write(&mut writer).unwrap();
    writer.finish().unwrap()
}

struct Folder {
    folder: TempDir,
}

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), written_backup()).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn restore(&self, dir: &str, changed: &[(&str, &str)]) -> anyhow::Result<()> {
        let (from, dir) = (self.path("file"), self.path(dir));
        let mut options = vec![
            ("--from", from.to_str().unwrap()),
            ("--dir", dir.to_str().unwrap()),
            ("--id", "1"),
            ("--members", MEMBERS),
            ("--cluster", "new"),
        ];
        for option in &mut options {
            if let Some(change) = changed.iter().find(|change| change.0 == option.0) {
                option.1 = change.1;
            }
        }
        let words = options.iter().flat_map(|(name, value)| [*name, *value]);
        command(["quorumwire", "restore"].into_iter().chain(words))
    }

    fn recover(&self, dir: &str, more: &[&str]) -> anyhow::Result<()> {
        let dir = self.path(dir);
        let words = [
            "quorumwire",
            "recover",
            "--force-new-cluster",
            "--yes",
            "--dir",
        ];
        let words = words.into_iter().chain([dir.to_str().unwrap()]);
        command(words.chain(more.iter().copied()))
    }

    /// A folder that a replica of the old cluster has left.
    fn old_replica(&self, dir: &str) {
        let ready = opened(&group_folder(&self.path(dir)), "old", OLD_LIFE);
        let mut log = ready.log.into_wal().unwrap();
        for (index, (kind, payload)) in (1..).zip(entries()) {
            let mut record = bytes::BytesMut::new();
            let start = begin_record(&mut record, kind, GROUP, Term(4), Index(index));
            record.extend_from_slice(&payload);
            finish_record(&mut record, start);
            let hard_state = peer::HardState {
                term: 4,
                commit_index: index.min(5) - 1,
                ..peer::HardState::default()
            };
            let job = LogJob {
                ticket: index,
                hard_state: Some(hard_state),
                pieces: vec![record.freeze()],
                ..LogJob::default()
            };
            log.write(&[job]).unwrap();
        }
    }
}

fn command<'a>(words: impl Iterator<Item = &'a str>) -> anyhow::Result<()> {
    run(Cli::try_parse_from(words)?).map(drop)
}

fn opened(folder: &Path, cluster: &str, life: Incarnation) -> Ready {
    let settings = Settings {
        cluster: cluster.to_owned(),
        replica: ReplicaId(1),
        group: GROUP,
        new_incarnation: life,
        segment_bytes: 1 << 20,
        promise: Duration::from_millis(20),
        lineage: Lineage::default(),
    };
    match open(Arc::new(FolderDisk::open(folder).unwrap()), settings).unwrap() {
        OpenFolder::Ready(ready) => ready,
        OpenFolder::Damaged(damaged) => panic!("{}", damaged.what()),
    }
}

/// Looks at what the holder of a new cluster's data will start with.
fn check_holder(dir: &Path, cluster: &str, others: &[u16]) {
    let unused = Incarnation(99);
    let ready = opened(&group_folder(dir), cluster, unused);
    assert!(!ready.fresh && ready.incarnation != OLD_LIFE && ready.incarnation != unused);
    let head = ready.stored.snapshot.clone().unwrap();
    assert_eq!(head.last_index, Index(8 + INDEX_GAP));
    assert_eq!((head.last_term, head.log_time), (Term(5), LogTime(1000)));
    assert_eq!(ready.stored.hard_state.term, 5);
    assert_eq!(ready.stored.hard_state.commit_index, head.last_index.0);
    assert!(ready.stored.entries.is_empty());
    assert_eq!(head.membership.quorum, CommitQuorum::All);
    let lineage = head.membership.lineage;
    assert!(lineage.is_known() && lineage != OLD_LINEAGE);
    assert_eq!(ready.lineage, lineage, "also in the identity");
    let voters: Vec<_> = head.membership.voters().collect();
    assert_eq!(voters.len(), 1, "{voters:?}");
    assert_eq!(
        (voters[0].id, voters[0].incarnation),
        (ReplicaId(1), ready.incarnation)
    );
    let joining = head.membership.members.iter();
    let joining: Vec<u16> = joining
        .filter(|member| member.role == MemberRole::Joining)
        .filter(|member| members().member(member.id).unwrap().incarnation != member.incarnation)
        .map(|member| member.id.0)
        .collect();
    assert_eq!(joining, others);

    let mut store = Replicated::default();
    let file = ready.snapshots.open(head.last_index).unwrap().unwrap();
    store.restore(&mut file.body().unwrap()).unwrap();
    assert_eq!(get(&store, "number"), "VALUE number 0 2\r\n31\r\nEND\r\n");
    assert!(get(&store, "large").len() > 600_000);
    // The table of sessions came along: the command that ran does not run again.
    let (mut time, next) = (LogTime(1000), head.last_index.next());
    let mut carry_out = |(kind, payload): (RecordKind, Vec<u8>)| {
        let mut commands = commands_of(kind, &payload);
        let at = (next, &mut time);
        apply(&mut store, at, commands.next().unwrap(), &mut Vec::new())
    };
    assert_eq!(carry_out(in_session()), Outcome::Repeated);
    // The last command's number was 8, one more than its index; the one that was repeated took the next.
    carry_out((RecordKind::Command, set("small", "x")));
    let mut shown = Vec::new();
    store.query(b"gets small", &mut shown);
    let expected = format!("VALUE small 0 1 {}\r\nx\r\nEND\r\n", 8 + INDEX_GAP + 2);
    assert_eq!(String::from_utf8(shown).unwrap(), expected);
}

fn refused(result: anyhow::Result<()>, option: &str) {
    let error = result.expect_err("not refused");
    let refused = error.downcast_ref::<Refused>();
    let refused = refused.unwrap_or_else(|| panic!("{error:#} is no refused option"));
    assert_eq!(refused.option, option, "{refused}");
}

#[test]
fn the_lowest_id_holds_what_was_restored_and_the_others_wait_for_it() {
    let place = Folder::new();
    place.restore("1", &[]).unwrap();
    check_holder(&place.path("1"), "new", &[2, 3]);
    assert!(place.path("1").join("was-member").exists());

    place.restore("2", &[("--id", "2")]).unwrap();
    let names: Vec<_> = fs::read_dir(place.path("2")).unwrap().collect();
    assert_eq!(names.len(), 1);
    let holder = quorumwire_node::server::holder_of_restored(&place.path("2")).unwrap();
    assert_eq!(holder, Some(ReplicaId(1)), "whom it waits for");
}

#[test]
fn what_makes_no_sense_is_refused_by_the_options_name() {
    let place = Folder::new();
    let eight: Vec<String> = (1..=8).map(|id| format!("{id}=10.0.0.{id}:1")).collect();
    let refusals = [
        ("--members", "1=10.0.0.1", "members"),
        ("--members", "1=10.0.0.1:1,1=10.0.0.2:1", "members"),
        ("--members", &eight.join(","), "members"),
        ("--id", "4", "id"),
        ("--cluster", "old", "cluster"),
        ("--cluster", "", "cluster"),
        ("--cluster", "new/run", "cluster"),
        ("--cluster", &"x".repeat(65), "cluster"),
    ];
    for (name, value, option) in refusals {
        refused(place.restore("1", &[(name, value)]), option);
        assert!(!place.path("1").exists(), "{name} {value}");
    }
    place.restore("1", &[]).unwrap();
    refused(place.restore("1", &[]), "dir");
    fs::create_dir(place.path("used")).unwrap();
    fs::write(place.path("used").join("something"), "").unwrap();
    refused(place.restore("used", &[]), "dir");
    refused(place.recover("never", &[]), "dir");
}

#[test]
fn a_restore_that_was_cut_short_is_done_anew() {
    let place = Folder::new();
    let dir = place.path("1");
    let unfinished = unfinished_folder(&dir);
    fs::create_dir_all(&unfinished).unwrap();
    fs::write(unfinished.join("snapshot-something.tmp"), "half").unwrap();
    fs::write(dir.join("was-member"), "").unwrap();
    fs::write(dir.join("was-member.tmp"), "").unwrap();
    place.restore("1", &[]).unwrap();
    check_holder(&dir, "new", &[2, 3]);
}

#[test]
fn a_damaged_backup_is_refused_and_nothing_is_made_of_it() {
    let place = Folder::new();
    let file = written_backup();
    let path = place.path("file");
    let is_refused = |bytes: &[u8], what: &str| {
        fs::write(&path, bytes).unwrap();
        let error = backup::read(&path, &Stage::default())
            .err()
            .unwrap_or_else(|| panic!("{what}: taken"));
        let text = format!("{error:#}");
        assert!(
            text.contains("damaged") || text.contains("not a Quorumwire"),
            "{what}: {text}"
        );
        assert!(text.contains(path.to_str().unwrap()), "{what}: {text}");
    };
    // Every boundary of the format lies in the first bytes, the last, or at the end of a block.
    let blocks = (0..4).map(|block| 200 + block * (262_144 + 8));
    let places = (0..300).chain(file.len() - 300..file.len());
    let places = places.chain(blocks.flat_map(|at| at - 200..at + 200));
    for at in places.filter(|at| *at < file.len()).step_by(3) {
        is_refused(&file[..at], &format!("cut to {at}"));
        let mut flipped = file.clone();
        flipped[at] ^= 1 << (at % 8);
        is_refused(&flipped, &format!("flipped at {at}"));
    }
    is_refused(&[file.as_slice(), &[0]].concat(), "longer");
    let error = place.restore("1", &[]).expect_err("taken");
    assert!(format!("{error:#}").contains("damaged"), "{error:#}");
    assert!(!place.path("1").exists());
}

#[test]
fn a_backup_with_more_than_a_state_is_refused() {
    let place = Folder::new();
    let (store, _) = applied();
    let head = backup::read(&place.path("file"), &Stage::default())
        .unwrap()
        .0;
    let mut writer = BackupWriter::new(Vec::new(), &head).unwrap();
    store.freeze().write(&mut writer).unwrap();
    std::io::Write::write_all(&mut writer, b"more").unwrap();
    fs::write(place.path("file"), writer.finish().unwrap()).unwrap();
    let error = backup::read(&place.path("file"), &Stage::default())
        .err()
        .unwrap();
    assert!(
        format!("{error:#}").contains("behind the state"),
        "{error:#}"
    );
}

#[test]
fn a_survivor_holds_its_whole_log_and_is_alone() {
    let place = Folder::new();
    place.old_replica("1");
    // What an earlier try left behind is not used.
    fs::create_dir(unfinished_folder(&place.path("1"))).unwrap();
    fs::write(unfinished_folder(&place.path("1")).join("identity"), "half").unwrap();
    place.recover("1", &["--cluster", "new"]).unwrap();
    check_holder(&place.path("1"), "new", &[]);
    assert!(!unfinished_folder(&place.path("1")).exists());
    // What was there is there still.
    let kept = place.path("1").join(format!("group-0.before-{OLD_LIFE}"));
    let ready = opened(&kept, "old", Incarnation(99));
    assert_eq!(
        (ready.incarnation, ready.stored.entries.len()),
        (OLD_LIFE, entries().len())
    );
}

/// The old folder stands under the unfinished one's name for a moment, and has its second name by then.
#[test]
fn a_recovery_that_was_cut_short_behind_the_exchange_has_lost_nothing() {
    let place = Folder::new();
    let dir = place.path("1");
    place.old_replica("1");
    place.recover("1", &["--cluster", "new"]).unwrap();
    let kept = dir.join(format!("group-0.before-{OLD_LIFE}"));
    fs::create_dir(unfinished_folder(&dir)).unwrap();
    for entry in fs::read_dir(&kept).unwrap() {
        let entry = entry.unwrap();
        let name = unfinished_folder(&dir).join(entry.file_name());
        fs::hard_link(entry.path(), name).unwrap();
    }
    check_holder(&dir, "new", &[]);
    place.recover("1", &["--cluster", "newer"]).unwrap();
    assert!(!unfinished_folder(&dir).exists());
    let ready = opened(&kept, "old", Incarnation(99));
    assert_eq!(ready.stored.entries.len(), entries().len());
}

#[test]
fn a_recovered_cluster_has_a_new_name_whether_one_is_given_or_not() {
    let place = Folder::new();
    place.old_replica("1");
    refused(place.recover("1", &["--cluster", "old"]), "cluster");
    assert_eq!(
        opened(&group_folder(&place.path("1")), "old", OLD_LIFE)
            .stored
            .entries
            .len(),
        entries().len()
    );
    place.recover("1", &[]).unwrap();
    let disk = FolderDisk::open(&group_folder(&place.path("1"))).unwrap();
    let quorumwire_storage::Owned::By(owner) = quorumwire_storage::owner_of(&disk).unwrap() else {
        panic!("nobody's");
    };
    assert!(
        owner.cluster.starts_with("old-") && owner.cluster.len() == 12,
        "{owner:?}"
    );
}

#[test]
fn a_damaged_or_unused_folder_is_not_recovered_and_stays_as_it_is() {
    let place = Folder::new();
    place.old_replica("1");
    let log = group_folder(&place.path("1")).join("log-0000000000000001");
    let mut bytes = fs::read(&log).unwrap();
    bytes[300] ^= 1;
    fs::write(&log, &bytes).unwrap();
    let error = place.recover("1", &[]).expect_err("taken");
    assert!(
        format!("{error:#}").contains("nothing was changed"),
        "{error:#}"
    );
    assert!(fs::read(&log).unwrap() == bytes);

    drop(opened(&group_folder(&place.path("new")), "old", OLD_LIFE));
    let error = place.recover("new", &[]).expect_err("taken");
    assert!(
        format!("{error:#}").contains("nothing to recover"),
        "{error:#}"
    );

    fs::create_dir_all(group_folder(&place.path("empty"))).unwrap();
    let error = place.recover("empty", &[]).expect_err("taken");
    assert!(
        format!("{error:#}").contains("nothing to recover"),
        "{error:#}"
    );
}
