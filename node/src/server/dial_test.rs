//! In which order addresses are dialed, with names that mean what the test says.
use super::*;

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

const LIST: Source = Source::List;
const OPTIONS: Source = Source::Options;

/// `db` has an IPv6 address and an IPv4 address; nothing else is known.
fn dial(addresses: &[(Source, &str)]) -> Dial {
    let look_up: LookUp = Arc::new(|name| match name {
        "db:7400" => Ok(vec![address("[::1]:7400"), address("127.0.0.1:7400")]),
        "empty:7400" => Ok(Vec::new()),
        _ => Err(io::Error::other("no such name")),
    });
    let addresses = addresses
        .iter()
        .map(|(source, text)| (*source, (*text).to_owned()));
    Dial::looked_up_by(look_up, &addresses.collect::<Vec<_>>(), Now::default())
}

/// The next address, once it is looked up.
fn resolved(dial: &mut Dial) -> Resolution {
    loop {
        match dial.resolve() {
            Resolution::NotYet => thread::yield_now(),
            done @ (Resolution::Address(_) | Resolution::Unknown) => return done,
        }
    }
}

/// Dials in vain so many times; where.
fn dialed_in_vain(dial: &mut Dial, count: usize) -> Vec<String> {
    let mut dialed = Vec::new();
    while dialed.len() < count {
        match resolved(dial) {
            Resolution::Address(address) => {
                dialed.push(address.to_string());
                dial.failed("refused");
            }
            Resolution::Unknown => dialed.push("unknown".to_owned()),
            Resolution::NotYet => unreachable!(),
        }
    }
    dialed
}

#[test]
fn every_address_of_a_name_is_tried_the_next_one_at_once() {
    let mut dial = dial(&[(LIST, "db:7400")]);
    let later = Now(Duration::from_secs(9));
    dial.next = later;
    assert_eq!(
        resolved(&mut dial),
        Resolution::Address(address("[::1]:7400"))
    );
    dial.next = later;
    assert!(!dial.failed("refused"), "there is another");
    assert_eq!((dial.next, dial.tried), (Now::default(), false), "at once");
    assert_eq!(
        resolved(&mut dial),
        Resolution::Address(address("127.0.0.1:7400"))
    );
    dial.next = later;
    assert!(dial.failed("refused"));
    assert_eq!((dial.next, dial.tried), (later, true), "after the pause");
    assert_eq!(
        dialed_in_vain(&mut dial, 2),
        ["[::1]:7400", "127.0.0.1:7400"]
    );
    for ip in ["::1", "127.0.0.1"] {
        assert!(dial.is_at(ip.parse().unwrap()), "{ip}");
    }
}

#[test]
fn where_the_list_does_not_answer_the_option_is_tried() {
    let mut dial = dial(&[(LIST, "10.0.0.1:1"), (OPTIONS, "db:7400")]);
    let all = ["10.0.0.1:1", "[::1]:7400", "127.0.0.1:7400", "10.0.0.1:1"];
    assert_eq!(dialed_in_vain(&mut dial, 4), all);
    assert_eq!(
        dial.tried_in_words(),
        "10.0.0.1:1 (the list of members): refused; db:7400 (option members): [::1]:7400: refused, \
         127.0.0.1:7400: refused"
    );
    // A connection that stood is looked for where the list says.
    resolved(&mut dial);
    dial.connected();
    assert_eq!(dialed_in_vain(&mut dial, 1), ["10.0.0.1:1"]);
}

#[test]
fn a_name_without_an_address_gives_way_to_the_next_candidate() {
    let mut dial = dial(&[
        (LIST, "gone:1"),
        (OPTIONS, "empty:7400"),
        (OPTIONS, "10.0.0.1:1"),
    ]);
    let all = ["unknown", "unknown", "10.0.0.1:1", "unknown"];
    assert_eq!(dialed_in_vain(&mut dial, 4), all);
    let words = dial.tried_in_words();
    assert!(
        words.contains("gone:1 (the list of members): no such name;"),
        "{words}"
    );
    assert!(
        words.contains("empty:7400 (option members): the name has no address;"),
        "{words}"
    );
}

#[test]
fn other_addresses_are_dialed_from_the_first_and_the_same_go_on() {
    let mut dial = dial(&[(LIST, "10.0.0.1:1"), (OPTIONS, "10.0.0.2:1")]);
    assert_eq!(dialed_in_vain(&mut dial, 1), ["10.0.0.1:1"]);
    let same = [
        (LIST, "10.0.0.1:1".to_owned()),
        (OPTIONS, "10.0.0.2:1".to_owned()),
    ];
    dial.set_addresses(&same);
    assert_eq!(dialed_in_vain(&mut dial, 1), ["10.0.0.2:1"]);
    dial.set_addresses(&[(LIST, "10.0.0.3:1".to_owned())]);
    assert_eq!(dialed_in_vain(&mut dial, 2), ["10.0.0.3:1", "10.0.0.3:1"]);
}

#[test]
fn it_is_known_for_how_long_there_was_no_connection() {
    let at = |seconds| Now(Duration::from_secs(seconds));
    let mut dial = Dial::new(&[(LIST, "10.0.0.1:1".to_owned())], at(3));
    assert_eq!(dial.alone_for(at(5)), Duration::from_secs(2));
    dial.connected();
    assert_eq!(dial.alone_for(at(9)), Duration::ZERO);
    dial.lost(at(10));
    dial.lost(at(11));
    assert_eq!(dial.alone_for(at(12)), Duration::from_secs(2));
}
