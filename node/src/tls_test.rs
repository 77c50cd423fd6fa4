//! Who is taken for whom, and which files are refused. Moves no byte.
use super::*;
use crate::key_folder::KeyFolder;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

const DAY: Duration = Duration::from_hours(24);

fn folder(dir: &Path, cluster: &str) -> KeyFolder {
    let members = BTreeMap::from([(ReplicaId(0), Vec::new()), (ReplicaId(1), Vec::new())]);
    KeyFolder::create(&dir.join(cluster.len().to_string()), cluster, &members, 365).unwrap()
}

#[test]
fn a_cluster_of_any_name_has_a_name_of_its_own_in_dns() {
    let mut labels = Vec::new();
    let long = "x".repeat(64);
    for cluster in ["a", "A", "a-b", "-a", "a.b", "ü", "", "sha256-1", &long] {
        let name = replica_name(ReplicaId(3), cluster);
        assert!(ServerName::try_from(name.clone()).is_ok(), "{name}");
        labels.push(cluster_label(cluster));
    }
    assert_eq!(labels[0], "a");
    let hashed = labels.iter().filter(|it| it.starts_with(HASHED)).count();
    assert_eq!(hashed, labels.len() - 2);
    labels.sort();
    labels.dedup();
    assert_eq!(labels.len(), 9, "each has its own");
}

#[test]
fn a_certificate_names_one_replica_of_one_cluster() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, other) = (folder(dir.path(), "c"), folder(dir.path(), "other"));
    let tls = PeerTls::load(&ours.peer_files(ReplicaId(0)), "c", ReplicaId(0)).unwrap();
    let shown = |folder: &KeyFolder, id: u16| {
        let files = folder.peer_files(ReplicaId(id));
        read_certificates(&files.own.certificate).unwrap()
    };
    assert_eq!(tls.replica_of(Some(&shown(&ours, 1))), Ok(ReplicaId(1)));
    let strange = shown(&other, 1);
    assert_eq!(tls.replica_of(Some(&strange)), Err(TlsRefusal::WrongName));
    assert_eq!(tls.verify(&strange), Err(TlsRefusal::UnknownAuthority));
    assert_eq!(tls.replica_of(None), Err(TlsRefusal::NoCertificate));
    let operator = ours.secret_file().with_file_name("operator.pem");
    let operator = read_certificates(&operator).unwrap();
    assert_eq!(tls.verify(&operator), Ok(()));
    assert_eq!(tls.replica_of(Some(&operator)), Err(TlsRefusal::WrongName));
    for strange in [
        "replica-01.c.quorumwire",
        "replica-1.d.quorumwire",
        "replica-1.c.quorumwire.x",
    ] {
        assert_eq!(tls.replica_in(strange), None, "{strange}");
    }
}

#[test]
fn files_that_make_no_sense_are_refused_by_the_option_that_names_them() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, other) = (folder(dir.path(), "c"), folder(dir.path(), "other"));
    let (good, strange) = (
        ours.peer_files(ReplicaId(0)),
        other.peer_files(ReplicaId(0)),
    );
    let sibling = ours.peer_files(ReplicaId(1));
    let refused = |files: &PeerFiles, option: &str| {
        let error = PeerTls::load(files, "c", ReplicaId(0))
            .err()
            .expect("refused");
        let text = format!("{error:#}");
        assert!(text.contains(option), "{text}");
    };
    refused(&strange, "replica 0 of the cluster \"c\"");
    refused(&strange, "quorumwire keys new --cluster c ");
    let mut files = good.clone();
    files.own = sibling.own.clone();
    refused(&files, "tls-cert"); // another replica's
    let mut files = good.clone();
    files.own.key.clone_from(&sibling.own.key);
    refused(&files, "the key is another certificate's; allowed:");
    let mut files = good.clone();
    files.authorities.clone_from(&strange.authorities);
    refused(&files, "tls-cert");
    let mut files = good.clone();
    files.authorities = dir.path().join("none");
    refused(&files, "tls-ca");
    fs::write(&files.authorities, "no certificate").unwrap();
    refused(&files, "tls-ca");
    fs::write(&files.authorities, vec![b'x'; 70_000]).unwrap();
    refused(&files, "too long");
    fs::set_permissions(&good.own.key, fs::Permissions::from_mode(0o640)).unwrap();
    refused(&good, "tls-key");
}

#[test]
fn what_expires_is_complained_about_a_month_before() {
    let dir = tempfile::tempdir().unwrap();
    let files = folder(dir.path(), "c").peer_files(ReplicaId(0));
    let tls = PeerTls::load(&files, "c", ReplicaId(0)).unwrap();
    let after = |days: u32| {
        let then = SystemTime::now() + DAY * days;
        let all = tls.expiries.iter();
        all.filter_map(|it| it.complaint(then)).collect::<Vec<_>>()
    };
    assert_eq!(after(334), Vec::<String>::new());
    let [complaint] = &after(336)[..] else {
        panic!("of one certificate");
    };
    assert!(
        complaint.contains("replica 0 of c") && complaint.contains("in 28 days"),
        "{complaint}"
    );
    assert!(after(366)[0].contains("has expired"));
    assert_eq!(after(3651).len(), 2);
}
