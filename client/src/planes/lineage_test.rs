//! What a replica tells and a client believes.
use super::lineage::{ask, keys_of, keys_told_by, tell, told};
use quorumwire_interfaces::{Lineage, PlaneKeyPair};
use std::net::UdpSocket;
use std::thread;

const LINEAGE: Lineage = Lineage(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
const QUESTION: [u8; 16] = [3; 16];

fn file(epoch: u64, key: u8, other: Option<u8>) -> PlaneKeyPair {
    PlaneKeyPair {
        epoch,
        key: [key; 16],
        other: other.map(|it| [it; 16]),
    }
}

/// Made with another implementation of RFC 5869.
#[test]
fn keys_and_datagrams_are_what_they_always_were() {
    let file = file(1, 7, None);
    assert_eq!(hex::encode(keys_of(&file, LINEAGE).key), KEY);
    assert_eq!(hex::encode(ask(&file, QUESTION)), ASKED);
    let answer = tell(&file, &ask(&file, QUESTION), LINEAGE).unwrap();
    assert_eq!(hex::encode(answer), TOLD);
    assert!(keys_of(&file, Lineage::default()) == file);
}
const KEY: &str = "f8388d2d78fc4b3c91a1005cff6b612c";
const ASKED: &str = "514c494e010101000303030303030303030303030303030300000000000000000000000000\
    00000092d5439b8e2e025e53fc02961f36de2e";
const TOLD: &str = "514c494e010201000303030303030303030303030303030300112233445566778899aabbcc\
    ddeeff1f21d78c2a7074951d7da276dd0928f4";

#[test]
fn a_lineage_is_believed_only_from_whoever_has_the_key() {
    let mine = file(1, 7, None);
    let question = ask(&mine, QUESTION);
    let answer = tell(&mine, &question, LINEAGE).unwrap();
    assert_eq!(told(&mine, &answer, QUESTION), Some(LINEAGE));
    assert_eq!(told(&mine, &answer, [4; 16]), None, "of another question");
    assert_eq!(told(&mine, &question, QUESTION), None, "it is no answer");
    assert_eq!(tell(&mine, &answer, LINEAGE), None, "it is no question");
    let strangers = file(1, 8, None);
    assert_eq!(tell(&strangers, &question, LINEAGE), None);
    assert_eq!(told(&strangers, &answer, QUESTION), None);
    for byte in 0..answer.len() {
        let (mut question, mut answer) = (question, answer);
        question[byte] ^= 1;
        answer[byte] ^= 1;
        assert_eq!(tell(&mine, &question, LINEAGE), None, "{byte}");
        assert_eq!(told(&mine, &answer, QUESTION), None, "{byte}");
        assert_eq!(tell(&mine, &question[..byte], LINEAGE), None);
    }
    let longer = [&question[..], b"x"].concat();
    assert_eq!(tell(&mine, &longer, LINEAGE), None);
}

#[test]
fn while_keys_are_replaced_both_are_understood() {
    let (before, between, after) = (file(1, 7, None), file(2, 8, Some(7)), file(2, 8, None));
    for client in [before, between] {
        let answer = tell(&between, &ask(&client, QUESTION), LINEAGE).unwrap();
        assert_eq!(told(&client, &answer, QUESTION), Some(LINEAGE));
    }
    assert_eq!(tell(&after, &ask(&before, QUESTION), LINEAGE), None);
    let keys = keys_of(&between, LINEAGE);
    assert_eq!(keys.other, Some(keys_of(&before, LINEAGE).key));
    assert!(keys.key == keys_of(&after, LINEAGE).key && keys.epoch == 2);
    let keys = [before, after].map(|it| [LINEAGE, Lineage(1)].map(|of| keys_of(&it, of).key));
    let mut keys = keys.concat();
    keys.dedup();
    assert_eq!(keys.len(), 4, "each has its own");
}

#[test]
fn whoever_makes_requests_by_itself_learns_the_keys_of_a_replica() {
    let replica = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = replica.local_addr().unwrap();
    let mine = file(1, 7, None);
    let answering = thread::spawn(move || {
        let mut bytes = [0; 100];
        for ready in [false, true] {
            let (count, from) = replica.recv_from(&mut bytes).unwrap();
            let answer = tell(&mine, &bytes[..count], LINEAGE).unwrap();
            let answer = if ready {
                &answer[..]
            } else {
                b"something else"
            };
            replica.send_to(answer, from).unwrap();
        }
    });
    let keys = keys_told_by(address, &mine).unwrap();
    assert!(keys == keys_of(&mine, LINEAGE));
    answering.join().unwrap();
    let error = keys_told_by(address, &mine).unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}
