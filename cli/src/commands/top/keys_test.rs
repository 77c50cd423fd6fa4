//! What keys do, and whom the asking thread asks.
use super::{Screen, observe};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use quorumwire_ops::live::LiveCluster;
use std::net::TcpListener;

fn key(code: KeyCode, modifiers: KeyModifiers) -> Event {
    Event::Key(KeyEvent::new(code, modifiers))
}

#[test]
fn two_keys_leave_and_no_other() {
    let mut screen = Screen::default();
    let plain = |code| key(code, KeyModifiers::NONE);
    assert!(!screen.goes_on(&plain(KeyCode::Char('q'))));
    assert!(!screen.goes_on(&key(KeyCode::Char('c'), KeyModifiers::CONTROL)));
    for code in [
        KeyCode::Char('c'),
        KeyCode::Char('?'),
        KeyCode::Esc,
        KeyCode::Enter,
    ] {
        assert!(screen.goes_on(&plain(code)), "{code:?}");
    }
    assert!(screen.goes_on(&Event::Resize(1, 1)));
    let mut released = KeyEvent::from(KeyCode::Char('q'));
    released.kind = KeyEventKind::Release;
    assert!(screen.goes_on(&Event::Key(released)));
}

#[test]
fn an_address_where_nobody_is_becomes_a_warning() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = gone.local_addr().unwrap().to_string();
    drop(gone);
    let mut cluster = LiveCluster::default();
    let document = observe(&[(None, address.clone())], &mut cluster);
    assert!(document.replicas.is_empty());
    let texts: Vec<&str> = document
        .warnings
        .iter()
        .map(|it| it.text.as_str())
        .collect();
    assert_eq!(texts[0], "no leader serves");
    assert!(texts[1].contains(&address), "{texts:?}");
    // Of a replica whose number is known it is said where it belongs.
    let document = observe(&[(Some(7), address)], &mut cluster);
    assert_eq!(document.replicas.len(), 1);
    assert!(!document.replicas[0].reachable);
}
