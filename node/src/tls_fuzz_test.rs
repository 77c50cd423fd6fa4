//! Any bytes in files of certificates and of keys, and certificates that say anything about whose they are:
//! what they are is found out or refused, without showing a key.
use super::*;
use quorumwire_fuzz_tests::{Outcomes, Seed, fuzz, grown};
use rcgen::{CertificateParams, DnType, KeyPair};

const ITERATIONS: usize = 5_000;
const INPUT_BYTES_MAX: usize = 256;

/// The example of RFC 8410, 10.3, which is nobody's.
const KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
-----END PRIVATE KEY-----
";
/// A part of it that stands nowhere else.
const SECRET: &str = "fdp+K06/nwoy";

/// A certificate of these names, the same each time.
fn certificate(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("names");
    params.distinguished_name.push(DnType::CommonName, "tried");
    params.serial_number = Some(7_u64.into());
    let key = KeyPair::from_pem(KEY).expect("a key");
    params.self_signed(&key).expect("a certificate").pem()
}

fn seeds() -> Vec<Seed> {
    let one = certificate(&["replica-1.trunk.quorumwire", "localhost", "10.0.0.1"]);
    let in_windows = one.replace('\n', "\r\n");
    let seeds = [
        ("of-a-replica", one.clone()),
        (
            "of-two-replicas",
            certificate(&["replica-1.trunk.quorumwire", "replica-2.trunk.quorumwire"]),
        ),
        ("of-nobody", certificate(&[])),
        ("two", format!("{one}# and\n{one}")),
        ("seventeen", one.repeat(CERTIFICATES_MAX + 1)),
        ("lines-of-windows", in_windows),
        ("no-end", one.replace("-----END", "-----")),
        ("a-key-beside", format!("{KEY}{one}")),
    ];
    seeds.map(|(name, text)| (name, text.into_bytes())).to_vec()
}

fn peers() -> PeerTls {
    let dir = tempfile::tempdir().expect("a folder");
    let members = [(ReplicaId(1), Vec::new())].into();
    let dir = dir.path().join("keys");
    let folder = crate::key_folder::KeyFolder::create(&dir, "trunk", &members, 1).expect("keys");
    PeerTls::load(&folder.peer_files(ReplicaId(1)), "trunk", ReplicaId(1)).expect("good files")
}

#[test]
fn any_certificates_are_taken_or_refused() {
    let outcomes = Outcomes::default();
    let (peers, path) = (peers(), Path::new("ca.pem"));
    let good = certificate(&["replica-1.trunk.quorumwire"]);
    let words: [&[u8]; 7] = [
        good.as_bytes(),
        b"-----BEGIN CERTIFICATE-----\n",
        b"-----END CERTIFICATE-----\n",
        b"MIIB",
        b"\n",
        b"=",
        b"-----BEGIN PRIVATE KEY-----\n",
    ];
    fuzz!(
        "certificates",
        seeds(),
        ITERATIONS,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let bytes = grown(input, &words);
            let found = match certificates_in(&bytes, path) {
                Ok(found) => found,
                Err(error) => {
                    let text = format!("{error:#}");
                    assert!(text.starts_with("ca.pem "), "{text}");
                    return outcomes.count("refused");
                }
            };
            let taken: usize = found.iter().map(|it| it.len()).sum();
            assert!((1..=CERTIFICATES_MAX).contains(&found.len()) && taken <= bytes.len());
            // One more behind them is one more.
            let more = [&bytes[..], b"\n", good.as_bytes()].concat();
            match certificates_in(&more, path) {
                Ok(more) => assert!(more.len() == found.len() + 1 && more.starts_with(&found)),
                Err(_) => assert_eq!(found.len(), CERTIFICATES_MAX),
            }
            let is_known = expiries(&[("tls-ca", &found)]).is_ok();
            let can_be_authorities = store_of(found.clone()).is_ok();
            match (peers.replica_of(Some(&found)), is_known) {
                (Ok(id), true) => outcomes.count(if id.0 == 1 {
                    "a replica's"
                } else {
                    "another's"
                }),
                (Err(TlsRefusal::WrongName), true) => outcomes.count("nobody's"),
                (_, true) => panic!("it has a time and no names"),
                (_, false) => outcomes.count("no X.509"),
            }
            assert!(peers.verify(&found).is_err(), "no authority has signed it");
            outcomes.count(if can_be_authorities {
                "authorities"
            } else {
                "none"
            });
        }
    );
    outcomes.must_be(&[
        "refused",
        "a replica's",
        "nobody's",
        "no X.509",
        "authorities",
        "none",
    ]);
}

fn key_seeds() -> [Seed; 6] {
    [
        ("ed25519", KEY.to_owned()),
        ("older-name", KEY.replace("PRIVATE", "EC PRIVATE")),
        ("behind-text", format!("a key:\n{KEY}")),
        ("no-key", certificate(&[])),
        ("no-end", KEY.replace("-----END", "")),
        ("shorter", KEY.replace("+CXqI9EdVhC", "")),
    ]
    .map(|(name, text)| (name, text.into_bytes()))
}

#[test]
fn any_key_is_taken_or_refused_without_showing_it() {
    let outcomes = Outcomes::default();
    let words: [&[u8]; 6] = [
        KEY.as_bytes(),
        b"-----BEGIN PRIVATE KEY-----\n",
        b"-----END PRIVATE KEY-----\n",
        SECRET.as_bytes(),
        b"\n",
        b"-----BEGIN RSA PRIVATE KEY-----\n",
    ];
    fuzz!(
        "keys",
        key_seeds(),
        ITERATIONS,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let bytes = grown(input, &words);
            let text = String::from_utf8_lossy(&bytes);
            let shown = match key_in(&text, Path::new("key.pem")) {
                Ok(key) => {
                    assert!(key.secret_der().len() <= text.len());
                    match provider().key_provider.load_private_key(key) {
                        Ok(_) => {
                            outcomes.count("a key");
                            return;
                        }
                        Err(error) => {
                            outcomes.count("no key of ours");
                            error.to_string()
                        }
                    }
                }
                Err(error) => {
                    outcomes.count("refused");
                    format!("{error:#}")
                }
            };
            assert!(!shown.contains(SECRET), "{shown}");
        }
    );
    outcomes.must_be(&["a key", "no key of ours", "refused"]);
}
