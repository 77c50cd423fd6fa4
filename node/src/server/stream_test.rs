//! Both kinds of streams over loopback, with other sides that are slow, mute or broken.
use super::*;
use crate::key_folder::KeyFolder;
use crate::tls::PeerTls;
use quorumwire_interfaces::ReplicaId;
use std::collections::BTreeMap;
use std::net::{Shutdown, TcpListener};
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(20);

/// Replicas 0 and 1.
fn replicas() -> [PeerTls; 2] {
    let dir = tempfile::tempdir().unwrap();
    let members = BTreeMap::from([(ReplicaId(0), Vec::new()), (ReplicaId(1), Vec::new())]);
    let folder = KeyFolder::create(&dir.path().join("keys"), "c", &members, 365).unwrap();
    [0, 1].map(|id| PeerTls::load(&folder.peer_files(ReplicaId(id)), "c", ReplicaId(id)).unwrap())
}

/// Two ends of a connection, neither of which blocks.
fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let dialing = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    let open = |socket: std::net::TcpStream| {
        socket.set_nonblocking(true).unwrap();
        socket.set_nodelay(true).unwrap();
        TcpStream::from_std(socket)
    };
    (open(dialing), open(accepted))
}

/// Replica 1 has dialed replica 0; no byte has moved.
fn fresh() -> (Stream, Stream) {
    let [zero, one] = replicas();
    let (dialing, accepted) = sockets();
    let dialing = Stream::tls(dialing, one.dial(ReplicaId(0)).unwrap());
    (dialing, Stream::tls(accepted, zero.accept().unwrap()))
}

fn established() -> (Stream, Stream) {
    let (mut one, mut zero) = fresh();
    until(|| {
        one.flush().unwrap();
        for stream in [&mut one, &mut zero] {
            let error = stream.read(&mut [0; 16]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        }
        one.is_established() && zero.is_established()
    });
    (one, zero)
}

fn until(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < end, "not in time");
        std::thread::yield_now();
    }
}

/// All that comes until the other side ends.
fn rest(stream: &mut Stream) -> io::Result<Vec<u8>> {
    let (mut all, mut buffer) = (Vec::new(), [0; 1000]);
    let end = Instant::now() + DEADLINE;
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(all),
            Ok(count) => all.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                assert!(Instant::now() < end, "not in time");
            }
            Err(error) => return Err(error),
        }
    }
}

#[test]
fn both_know_each_other_after_the_handshake_and_not_before() {
    let (mut one, zero) = fresh();
    assert!(!one.is_established() && !zero.is_established());
    let early = one.write(b"too early").unwrap_err();
    assert_eq!(early.kind(), io::ErrorKind::WouldBlock);
    let (one, zero) = established();
    assert!(one.certificates().is_some() && zero.certificates().is_some());
    assert!(!one.has_unsent() && !one.has_failed() && !one.may_have_more());
}

/// The handshake, and then a message, one byte at a time.
#[test]
fn bytes_may_come_one_by_one() {
    let [zero, one] = replicas();
    let (dialing, relay_in) = sockets();
    let (relay_out, accepted) = sockets();
    let mut one = Stream::tls(dialing, one.dial(ReplicaId(0)).unwrap());
    let mut zero = Stream::tls(accepted, zero.accept().unwrap());
    let mut relays = [relay_in, relay_out];
    let (mut heard, mut buffer) = (Vec::new(), [0; 64]);
    let mut is_said = false;
    until(|| {
        one.flush().unwrap();
        zero.flush().unwrap();
        for _ in 0..2 {
            let mut byte = [0];
            if relays[0].read(&mut byte).is_ok_and(|count| count == 1) {
                relays[1].write_all(&byte).unwrap();
            }
            relays.swap(0, 1);
        }
        if one.is_established() && !is_said {
            is_said = one.write(b"hello").is_ok();
        }
        drop(one.read(&mut buffer)); // moves the handshake on
        if let Ok(count) = zero.read(&mut buffer) {
            heard.extend_from_slice(&buffer[..count]);
        }
        heard == b"hello"
    });
}

#[test]
fn much_is_read_in_full_although_the_socket_is_dry() {
    let (mut one, mut zero) = established();
    let text: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
    let (mut written, mut heard) = (0, Vec::new());
    let mut buffer = [0; 700];
    until(|| {
        if written < text.len() {
            match one.write(&text[written..]) {
                Ok(count) => written += count,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        one.flush().unwrap();
        // As a caller does that waits for events: a short read is the last one unless more is announced.
        while let Ok(count) = zero.read(&mut buffer) {
            heard.extend_from_slice(&buffer[..count]);
            if count < buffer.len() && !zero.may_have_more() {
                break;
            }
        }
        heard.len() == text.len()
    });
    assert_eq!(heard, text);
}

#[test]
fn a_slow_reader_holds_bounded_memory_here() {
    let (mut one, _zero) = established();
    let block = vec![7; 1 << 20];
    let mut taken = 0;
    let error = loop {
        match one.write(&block) {
            Ok(count) => {
                assert!((1..=AHEAD_BYTES_MAX).contains(&count), "{count} at once");
                taken += count;
                assert!(taken < 64 << 20, "the kernel's buffers end somewhere");
            }
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    assert!(one.has_unsent());
    let again = one.write(&block).unwrap_err();
    assert_eq!(
        again.kind(),
        io::ErrorKind::WouldBlock,
        "nothing is taken on top"
    );
    one.flush().unwrap(); // what waits is no error
}

#[test]
fn an_end_is_an_end_whether_it_was_said_or_not() {
    for is_said in [true, false] {
        let (mut one, mut zero) = established();
        assert_eq!(one.write(b"last words").unwrap(), 10);
        if is_said {
            one.say_end();
        }
        one.socket().shutdown(Shutdown::Write).unwrap();
        assert_eq!(rest(&mut zero).unwrap(), b"last words");
        // Half closed: the other direction still works.
        zero.write_all(b"answer").unwrap();
        zero.say_end();
        assert_eq!(rest(&mut one).unwrap(), b"answer");
    }
}

#[test]
fn who_speaks_no_tls_is_refused_and_hears_nothing_of_ours() {
    let garbage: [&[u8]; 4] = [
        b"get key\r\n",
        b"\x16\x03\x01\xff\xff garbage that announces more than a record may have",
        &[0; 512],
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    ];
    for bytes in garbage {
        let [zero, _] = replicas();
        let (mut dialing, accepted) = sockets();
        let mut zero = Stream::tls(accepted, zero.accept().unwrap());
        dialing.write_all(bytes).unwrap();
        let error = rest(&mut zero).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{bytes:?}");
        assert!(zero.has_failed() && !zero.has_unsent() && !zero.is_established());
        drop(zero);
        let mut answer = Vec::new();
        until(|| match dialing.read_to_end(&mut answer) {
            Ok(_) => true,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        });
        // An alert at most: a record of two bytes.
        assert!(
            answer.len() <= 7 && (answer.is_empty() || answer[0] == 21),
            "{answer:?}"
        );
    }
}

#[test]
fn a_handshake_that_breaks_off_is_an_end() {
    let (mut one, mut zero) = fresh();
    one.flush().unwrap();
    drop(one);
    assert!(rest(&mut zero).is_ok_and(|heard| heard.is_empty()) || zero.has_failed());
    assert!(!zero.is_established());
}

#[test]
fn a_changed_record_ends_the_connection() {
    let [zero, one] = replicas();
    let (dialing, mut relay_in) = sockets();
    let (mut relay_out, accepted) = sockets();
    let mut one = Stream::tls(dialing, one.dial(ReplicaId(0)).unwrap());
    let mut zero = Stream::tls(accepted, zero.accept().unwrap());
    let mut buffer = [0; 4096];
    let mut is_said = false;
    let mut failed = None;
    until(|| {
        one.flush().unwrap();
        if let Ok(count) = relay_in.read(&mut buffer) {
            if is_said && count > 0 {
                buffer[count - 1] ^= 1;
            }
            relay_out.write_all(&buffer[..count]).unwrap();
        }
        if let Ok(count) = relay_out.read(&mut buffer) {
            relay_in.write_all(&buffer[..count]).unwrap();
        }
        drop(one.read(&mut buffer)); // moves the handshake on
        let result = zero.read(&mut buffer);
        failed = result
            .err()
            .filter(|it| it.kind() != io::ErrorKind::WouldBlock);
        if zero.is_established() && !is_said {
            is_said = true;
            one.write_all(b"hello").unwrap();
        }
        failed.is_some()
    });
    assert!(zero.has_failed());
}

#[test]
fn in_the_clear_nothing_is_kept_back() {
    let (dialing, accepted) = sockets();
    let (mut one, mut zero) = (Stream::Plain(dialing), Stream::Plain(accepted));
    assert!(one.is_established() && one.certificates().is_none());
    let slices = [IoSlice::new(b"a"), IoSlice::new(b"b")];
    assert_eq!(one.write_vectored(&slices).unwrap(), 2);
    one.say_end();
    assert!(!one.has_unsent() && !one.may_have_more() && !one.has_failed());
    drop(one);
    assert_eq!(rest(&mut zero).unwrap(), b"ab");
}
