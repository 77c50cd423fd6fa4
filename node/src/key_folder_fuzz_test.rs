//! What people write into `folder.toml`: it is taken if certificates can be made of it, or refused.
use super::*;
use quorumwire_fuzz_tests::{Outcomes, Seed, fuzz, grown};

const ITERATIONS: usize = 10_000;
const INPUT_BYTES_MAX: usize = 256;

const WHOLE: &str = "\
cluster = \"trunk\"
days = 365
clients = [\"shop\", \"web-1\"]

[members]
0 = []
1 = [\"one.example\", \"10.0.0.1\"]
7 = [\"::1\"]
";

fn seeds() -> [Seed; 8] {
    [
        ("whole", WHOLE.to_owned()),
        ("no-clients", WHOLE.replace("clients", "# ")),
        (
            "days-until-no-calendar-has-them",
            WHOLE.replace("365", "4294967295"),
        ),
        ("no-days", WHOLE.replace("365", "0")),
        ("an-id-that-is-none", WHOLE.replace("7 =", "65536 =")),
        ("an-id-written-otherwise", WHOLE.replace("7 =", "07 =")),
        (
            "a-client-that-leaves-the-folder",
            WHOLE.replace("web-1", "../../etc"),
        ),
        ("a-client-twice", WHOLE.replace("web-1", "shop")),
    ]
    .map(|(name, text)| (name, text.into_bytes()))
}

/// What is taken can be used: within all limits, and for certificates.
fn is_of_use(record: &Record, now: SystemTime) {
    assert!((1..=CLUSTER_NAME_BYTES_MAX).contains(&record.cluster.len()));
    assert!(record.members.len() <= MEMBERS_MAX && record.clients.len() <= CLIENTS_MAX);
    for id in record.members.keys() {
        let number: u16 = id.parse().expect("an id");
        assert_eq!(*id, number.to_string(), "two names for one replica");
    }
    for (at, name) in record.clients.iter().enumerate() {
        assert!(client_name(name, &record.cluster).is_some(), "{name:?}");
        assert!(!record.clients[..at].contains(name));
    }
    let mut params = CertificateParams::default();
    set_validity(&mut params, now, record.days);
    assert!(params.not_before < params.not_after);
}

#[test]
fn any_record_is_taken_as_it_is_written_or_refused() {
    let outcomes = Outcomes::default();
    let words: [&[u8]; 18] = [
        WHOLE.as_bytes(),
        b"cluster = ",
        b"days = ",
        b"clients = ",
        b"[members]\n",
        b"\"trunk\"\n",
        b"\"\"\n",
        b"365\n",
        b"4294967295\n",
        b"0\n",
        b"0 = []\n",
        b"1 = [\"one.example\"]\n",
        b"65536 = []\n",
        b"[\"shop\"]\n",
        b"[\"a\", \"a\"]\n",
        b"[\"..\"]\n",
        b"\n",
        b"more = 1\n",
    ];
    let now = SystemTime::now();
    fuzz!(
        "key_folder_records",
        seeds(),
        ITERATIONS,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let bytes = grown(input, &words);
            match Record::parse(&String::from_utf8_lossy(&bytes)) {
                Ok(record) => {
                    is_of_use(&record, now);
                    let written = toml::to_string(&record).expect("TOML");
                    assert_eq!(Record::parse(&written).expect("what we wrote"), record);
                    outcomes.count("taken");
                }
                Err(error) => outcomes.count(if format!("{error:#}").contains("allowed: ") {
                    "refused"
                } else {
                    "no record"
                }),
            }
        }
    );
    outcomes.must_be(&["taken", "refused", "no record"]);
}
