//! Tests of the client against a server that plays a script.

use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;

use super::*;

const TIMEOUT: Duration = Duration::from_millis(300);

/// A client connected to a server that, for each pair, expects a request and gives an answer; after
/// the last it closes if told so, else stays silent.
fn scripted(script: &'static [(&str, &str)], closes: bool) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("bound");
    let (keep, kept) = mpsc::channel::<TcpStream>();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("accept");
        for (request, answer) in script {
            let mut bytes = vec![0; request.len()];
            stream.read_exact(&mut bytes).expect("a request");
            assert_eq!(String::from_utf8_lossy(&bytes), *request);
            stream.write_all(answer.as_bytes()).expect("answer");
        }
        if closes {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        let _ = keep.send(stream);
        drop(kept.recv());
    });
    Client::connect(address, TIMEOUT).expect("connect")
}

#[test]
fn reads_and_writes() {
    let mut client = scripted(
        &[
            ("set k 0 0 2\r\nab\r\n", "STORED\r\n"),
            ("gets k\r\n", "VALUE k 0 2 17\r\nab\r\nEND\r\n"),
            ("gets k\r\n", "END\r\n"),
            ("cas k 0 0 1 17\r\nc\r\n", "EXISTS\r\n"),
            ("incr k 5\r\n", "12\r\n"),
            ("delete k\r\n", "NOT_FOUND\r\n"),
            (
                "gets a b\r\n",
                "VALUE a 1 2 3\r\n\r\n\r\nVALUE b 0 0 4\r\n\r\nEND\r\n",
            ),
        ],
        false,
    );
    assert_eq!(client.set("k", b"ab").expect("set"), "STORED");
    let item = client.gets("k").expect("gets").expect("there");
    assert_eq!((item.value.as_slice(), item.token), (&b"ab"[..], 17));
    assert_eq!(client.get("k").expect("get"), None);
    assert_eq!(client.cas("k", b"c", 17).expect("cas"), "EXISTS");
    assert_eq!(client.increment("k", 5).expect("incr"), "12");
    assert_eq!(client.delete("k").expect("delete"), "NOT_FOUND");
    let items = client.gets_many(&["a", "b"]).expect("gets");
    assert_eq!(items.len(), 2);
    assert_eq!(
        (items[0].value.as_slice(), items[1].token),
        (&b"\r\n"[..], 4)
    );
}

#[test]
fn tells_refused_from_unknown() {
    let mut client = scripted(
        &[
            ("delete a\r\n", "SERVER_ERROR not leader 10.0.0.1:1\r\n"),
            ("delete a\r\n", "SERVER_ERROR no leader\r\n"),
            ("delete a\r\n", "SERVER_ERROR busy\r\n"),
            ("delete a\r\n", "SERVER_ERROR disk full: later\r\n"),
            ("delete a\r\n", "CLIENT_ERROR bad command line format\r\n"),
            (
                "delete a\r\n",
                "SERVER_ERROR outcome unknown: the leader changed\r\n",
            ),
            ("delete a\r\n", "SERVER_ERROR something new\r\n"),
            ("gets a\r\n", "SERVER_ERROR outcome unknown\r\n"),
        ],
        false,
    );
    for _ in 0..5 {
        assert!(matches!(client.delete("a"), Outcome::Refused(_)));
    }
    for _ in 0..2 {
        assert!(matches!(client.delete("a"), Outcome::Unknown(_)));
    }
    assert!(matches!(client.get("a"), Outcome::Unknown(_)));
    assert!(client.is_usable());
}

#[test]
fn a_broken_connection_leaves_the_outcome_unknown_and_is_not_used_again() {
    let scripts: [(&'static [(&str, &str)], bool); 6] = [
        (&[("delete a\r\n", "")], true),
        (&[("delete a\r\n", "")], false), // silence: a timeout
        (&[("delete a\r\n", "DELE")], false),
        (&[("delete a\r\n", "DELE")], true),
        (&[("delete a\r\n", "DELETED\n")], false),
        (&[("delete a\r\n", "\u{7f}\r")], true),
    ];
    for (script, closes) in scripts {
        let mut client = scripted(script, closes);
        assert!(
            matches!(client.delete("a"), Outcome::Unknown(_)),
            "{script:?}"
        );
        assert!(!client.is_usable());
        assert!(matches!(client.delete("a"), Outcome::Refused(_)));
    }
}

#[test]
fn refuses_answers_that_are_none() {
    let scripts: [&'static [(&str, &str)]; 5] = [
        &[("gets a\r\n", "VALUE a 0 9999999999 1\r\n")],
        &[("gets a\r\n", "VALUE a 0 1 1\r\nxyz\r\nEND\r\n")],
        &[("gets a\r\n", "VALUE a 0\r\n")],
        &[(
            "gets a\r\n",
            "VALUE a 0 0 1\r\n\r\nVALUE b 0 0 1\r\n\r\nEND\r\n",
        )],
        &[("gets a\r\n", "HELLO\r\n")],
    ];
    for script in scripts {
        let mut client = scripted(script, false);
        assert!(matches!(client.get("a"), Outcome::Unknown(_)), "{script:?}");
        assert!(!client.is_usable());
    }
}
