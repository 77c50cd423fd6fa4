//! What is in the folder, and that a rotation never leaves two replicas that refuse each other.
use super::*;
use crate::tls::{ClientTls, PeerTls, Standing, TlsRefusal, provider, store_of};
use rustls::pki_types::UnixTime;
use rustls::server::WebPkiClientVerifier;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

fn members(ids: &[u16]) -> BTreeMap<ReplicaId, Vec<String>> {
    ids.iter().map(|id| (ReplicaId(*id), Vec::new())).collect()
}

fn made(ids: &[u16]) -> (tempfile::TempDir, KeyFolder) {
    let dir = tempfile::tempdir().unwrap();
    let folder = KeyFolder::create(&dir.path().join("keys"), "c", &members(ids), 365).unwrap();
    (dir, folder)
}

fn loaded(folder: &KeyFolder, id: u16) -> anyhow::Result<PeerTls> {
    PeerTls::load(&folder.peer_files(ReplicaId(id)), "c", ReplicaId(id))
}

/// Whether a replica that has read the files of `here` lets in one that has read those of `there`.
fn accepts(here: &PeerTls, there: &Shown) -> bool {
    here.verify(&there.0).is_ok()
}

/// What a replica shows.
struct Shown(Vec<CertificateDer<'static>>);

fn shown(folder: &KeyFolder, id: u16) -> Shown {
    Shown(read_certificates(&folder.peer_files(ReplicaId(id)).own.certificate).unwrap())
}

#[test]
fn all_is_readable_by_its_owner_only_and_never_overwritten() {
    let (_dir, folder) = made(&[0, 1, 7]);
    for entry in fs::read_dir(&folder.dir).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let mode = fs::metadata(&folder.dir).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    for id in [0, 1, 7] {
        loaded(&folder, id).unwrap();
    }
    let again = KeyFolder::create(&folder.dir, "c", &members(&[0]), 365);
    assert!(again.unwrap_err().to_string().contains("kept"));
}

#[test]
fn one_more_replica_is_one_once() {
    let (_dir, folder) = made(&[0]);
    let mut folder = KeyFolder::open(&folder.dir).unwrap();
    folder
        .add_member(ReplicaId(3), &["a.example".into()])
        .unwrap();
    assert!(folder.add_member(ReplicaId(3), &[]).is_err());
    let again = KeyFolder::open(&folder.dir).unwrap();
    loaded(&again, 3).unwrap();
    assert!(again.describe().unwrap().contains("replicas 0, 3"));
}

#[test]
fn in_each_step_whoever_has_done_it_and_whoever_has_not_accept_each_other() {
    let (_dir, folder) = made(&[0, 1]);
    let mut before = (loaded(&folder, 0).unwrap(), shown(&folder, 1));
    for step in [Step::Add, Step::Use, Step::Remove] {
        folder.rotate(step).unwrap();
        let after = (loaded(&folder, 0).unwrap(), shown(&folder, 1));
        assert!(accepts(&before.0, &after.1), "{step:?}");
        assert!(accepts(&after.0, &before.1), "{step:?}");
        before = after;
    }
    assert!(
        folder
            .describe()
            .unwrap()
            .contains("epoch 2; used: epoch 2")
    );
}

#[test]
fn what_was_before_a_rotation_is_nothing_after_it() {
    let (_dir, folder) = made(&[0, 1]);
    let stolen = shown(&folder, 1);
    for step in [Step::Add, Step::Use, Step::Remove] {
        folder.rotate(step).unwrap();
    }
    assert!(!accepts(&loaded(&folder, 0).unwrap(), &stolen));
    // And a second rotation is as the first.
    for step in [Step::Add, Step::Use, Step::Remove] {
        folder.rotate(step).unwrap();
        loaded(&folder, 1).unwrap();
    }
}

#[test]
fn steps_are_neither_skipped_nor_repeated() {
    let (_dir, folder) = made(&[0]);
    let refused = |step| folder.rotate(step).unwrap_err().to_string();
    assert!(refused(Step::Use).contains("the order is add, use, remove"));
    refused(Step::Remove);
    folder.rotate(Step::Add).unwrap();
    refused(Step::Add);
    refused(Step::Remove);
    folder.rotate(Step::Use).unwrap();
    refused(Step::Use);
}

#[test]
fn a_step_that_was_cut_short_is_completed() {
    for step in [Step::Add, Step::Use, Step::Remove] {
        let (_dir, mut folder) = made(&[0]);
        folder.add_client("kim").unwrap();
        for earlier in [Step::Add, Step::Use] {
            if step != earlier && !(step == Step::Add) {
                folder.rotate(earlier).unwrap();
            }
            if step == Step::Use {
                break;
            }
        }
        folder.rotate_authority(&REPLICAS, step).unwrap(); // and not the secret
        folder.rotate(step).unwrap();
        let stage = SecretFile::load(&folder.secret_file()).unwrap().stage();
        assert_eq!(stage, folder.stage(&REPLICAS).unwrap(), "{step:?}");
        assert_eq!(stage, folder.stage(&CLIENTS).unwrap(), "{step:?}");
        loaded(&folder, 0).unwrap();
    }
}

#[test]
fn certificates_are_renewed_under_the_same_authority() {
    let (_dir, mut folder) = made(&[0, 1]);
    let old = shown(&folder, 1);
    folder.renew_as_of(SystemTime::now()).unwrap();
    let new = shown(&folder, 1);
    assert_ne!(old.0, new.0);
    let other = loaded(&folder, 0).unwrap();
    assert!(accepts(&other, &old) && accepts(&other, &new));
}

fn of_client(folder: &KeyFolder, name: &str) -> Vec<CertificateDer<'static>> {
    read_certificates(&folder.path(&format!("client-{name}.pem"))).unwrap()
}

fn client_tls(folder: &KeyFolder) -> ClientTls {
    let files = folder.peer_files(ReplicaId(0));
    let clients = folder.path(CLIENTS.file);
    ClientTls::load(&files.own, Some(&files), Some(&clients)).unwrap()
}

#[test]
fn a_client_is_neither_replica_nor_operator() {
    let (_dir, mut folder) = made(&[0, 1]);
    folder.add_client("kim").unwrap();
    assert!(folder.add_client("kim").is_err(), "once");
    for name in ["", "Kim", "../x", "a.b", "-a", &"x".repeat(64)] {
        assert!(folder.add_client(name).is_err(), "{name}");
    }
    let kim = of_client(&folder, "kim");
    let replica = loaded(&folder, 0).unwrap();
    assert_eq!(replica.verify(&kim), Err(TlsRefusal::UnknownAuthority));
    let people = client_tls(&folder).people;
    let operator = read_certificates(&folder.path("operator.pem")).unwrap();
    assert_eq!(people.standing(Some(&kim)), Standing::Reader);
    let of_replica = read_certificates(&folder.peer_files(ReplicaId(1)).own.certificate).unwrap();
    assert_eq!(people.standing(Some(&operator)), Standing::Operator);
    assert_eq!(people.standing(Some(&of_replica)), Standing::Reader);
    assert_eq!(people.standing(None), Standing::Nobody);
    let again = KeyFolder::open(&folder.dir).unwrap();
    assert!(again.describe().unwrap().contains("clients kim"));
}

#[test]
fn without_clients_authority_everybody_may_read() {
    let (_dir, folder) = made(&[0]);
    let files = folder.peer_files(ReplicaId(0));
    let load = |operators| ClientTls::load(&files.own, operators, None).unwrap().people;
    assert_eq!(load(None).standing(None), Standing::Operator);
    assert_eq!(load(Some(&files)).standing(None), Standing::Reader);
}

#[test]
fn a_client_gives_no_commands_where_there_are_no_operators() {
    let (_dir, mut folder) = made(&[0]);
    folder.add_client("kim").unwrap();
    let files = folder.peer_files(ReplicaId(0));
    let clients = folder.path(CLIENTS.file);
    let people = ClientTls::load(&files.own, None, Some(&clients)).unwrap();
    let kim = of_client(&folder, "kim");
    assert_eq!(people.people.standing(Some(&kim)), Standing::Reader);
    assert_eq!(people.people.standing(None), Standing::Nobody);
}

#[test]
fn no_authority_is_that_of_clients_and_operators() {
    let (_dir, mut folder) = made(&[0]);
    folder.add_client("kim").unwrap();
    let files = folder.peer_files(ReplicaId(0));
    let clients = folder.path(CLIENTS.file);
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let both = folder.path("both.pem");
    fs::write(&both, read(&clients) + &read(&files.authorities)).unwrap();
    for mixed in [&files.authorities, &both] {
        let loaded = ClientTls::load(&files.own, Some(&files), Some(mixed));
        let said = format!("{:#}", loaded.err().expect("refused"));
        assert!(said.contains("options tls-ca and client-tls-ca"), "{said}");
    }
    assert!(ClientTls::load(&files.own, Some(&files), Some(&clients)).is_ok());
}

#[test]
fn the_clients_authority_is_renewed_and_replaced_with_the_other() {
    let (_dir, mut folder) = made(&[0]);
    folder.add_client("kim").unwrap();
    let mut shown = vec![of_client(&folder, "kim")];
    folder.renew().unwrap();
    shown.push(of_client(&folder, "kim"));
    for step in [Step::Add, Step::Use, Step::Remove] {
        folder.rotate(step).unwrap();
        shown.push(of_client(&folder, "kim"));
    }
    shown.dedup();
    assert_eq!(shown.len(), 3, "at first, renewed, and by a new authority");
    let roots = store_of(read_certificates(&folder.path(CLIENTS.file)).unwrap()).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
    let verifier = verifier.build().unwrap();
    let holds = |chain: &Vec<CertificateDer<'static>>| {
        let now = UnixTime::now();
        verifier.verify_client_cert(&chain[0], &[], now).is_ok()
    };
    assert_eq!(
        shown.iter().map(holds).collect::<Vec<_>>(),
        [false, false, true]
    );
}
