//! The port of the native protocol, and what may come to it: garbage, half of something, too much, nothing at
//! all. It is closed with a reason that is counted, unknown clients get nothing, and everybody else is served
//! meanwhile.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use quorumwire_client::{Client, Settings};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_wire::client::{self, FromClient, FromServer, GoodbyeReason};
use quorumwire_wire::client::{from_client::Body, from_server};
use quorumwire_wire::limits::SESSION_COMMAND_BYTES_MAX;
use quorumwire_wire::{
    CLIENT_PROTOCOL_VERSION_MAX, ClientFrame, take_client_frame, write_client_frame,
};

const TIMEOUT: Duration = Duration::from_secs(10);
/// The first byte of a store's command that is in Redis' words.
const SCRIPT: u8 = 0x1f;
/// The first byte of a store's command that reads items and gives them a new end.
const GET_AND_TOUCH: u8 = 0x1b;
/// Requests of one connection that a replica takes on before some are answered.
const IN_FLIGHT_MAX: u64 = 1024;

fn frame(request: u64, body: Body, attachment: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let body = Some(body);
    write_client_frame(&mut bytes, &FromClient { request, body }, attachment);
    bytes
}

fn hello() -> Vec<u8> {
    let hello = client::Hello {
        protocol_min: 1,
        protocol_max: 1,
        ..client::Hello::default()
    };
    frame(0, Body::Hello(hello), b"")
}

fn submit(request: u64, session: u64, sequence: u64, command: &[u8]) -> Vec<u8> {
    let submit = client::Submit { session, sequence };
    frame(request, Body::Submit(submit), command)
}

/// Changes the bytes of a frame without mending its checksum.
fn damaged(mut bytes: Vec<u8>, at: usize, word: u32) -> Vec<u8> {
    bytes[at..at + 4].copy_from_slice(&word.to_be_bytes());
    bytes
}

fn connect(cluster: &Cluster<'_>) -> Result<TcpStream> {
    let socket = TcpStream::connect_timeout(&cluster.native(0), TIMEOUT)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.set_write_timeout(Some(TIMEOUT))?;
    Ok(socket)
}

/// All messages in some bytes, which are whole.
fn messages(mut bytes: &[u8]) -> Result<Vec<FromServer>> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        match take_client_frame(bytes, usize::MAX)? {
            ClientFrame::Incomplete { .. } => bail!("it ends within a frame"),
            ClientFrame::Whole {
                consumed, message, ..
            } => {
                messages.push(message);
                bytes = &bytes[consumed..];
            }
        }
    }
    Ok(messages)
}

/// Says this; why the connection is closed, and what was heard before that.
fn say(cluster: &Cluster<'_>, bytes: &[u8]) -> Result<(GoodbyeReason, Vec<FromServer>)> {
    let mut socket = connect(cluster)?;
    socket.write_all(bytes)?;
    let mut heard = Vec::new();
    if let Err(error) = socket.read_to_end(&mut heard) {
        ensure!(error.kind() == ErrorKind::ConnectionReset, "{error}");
    }
    let mut messages = messages(&heard)?;
    let last = messages.pop().context("nothing was said")?;
    let Some(from_server::Body::Goodbye(goodbye)) = last.body else {
        bail!("no goodbye: {last:?}");
    };
    ensure!(!goodbye.detail.is_empty());
    Ok((goodbye.reason(), messages))
}

#[test]
fn what_is_not_the_protocol_is_closed_and_counted() {
    run_started(Plan::steady(1, Durability::Memory), |cluster| {
        let after_hello = |bytes: &[u8]| [&hello()[..], bytes].concat();
        let ping = || frame(1, Body::Ping(client::Ping {}), b"");
        let long = u32::try_from(SESSION_COMMAND_BYTES_MAX + 1)?;
        let malformed: Vec<Vec<u8>> = vec![
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
            b"set a 0 0 1\r\n1\r\n".to_vec(),
            vec![0; 100],
            vec![0xff; 5000],
            ping(),
            submit(1, 7, 1, b""),
            damaged(hello(), 4, u32::MAX),
            damaged(hello(), 8, 1), // nobody attaches anything to a hello
            damaged(hello(), 12, 0),
            after_hello(&hello()),
            after_hello(&submit(1, 0, 1, b"a")),
            after_hello(&submit(1, 7, 0, b"a")),
            after_hello(&damaged(submit(1, 7, 1, b""), 8, long)),
            after_hello(&damaged(ping(), 4, 5000)),
            after_hello(&frame(1, Body::Ping(client::Ping {}), b"a")),
            after_hello(b"and then nonsense"),
        ];
        for (count, bytes) in (1..).zip(&malformed) {
            let (reason, before) = say(cluster, bytes)?;
            ensure!(reason == GoodbyeReason::Malformed, "{count}: {reason:?}");
            let is_welcome = bytes.starts_with(&hello());
            ensure!(
                before.len() == usize::from(is_welcome),
                "{count}: {before:?}"
            );
            ensure!(cluster.counter(0, "client_port_closed_malformed")? == count);
        }
        let newer = client::Hello {
            protocol_min: CLIENT_PROTOCOL_VERSION_MAX + 1,
            protocol_max: CLIENT_PROTOCOL_VERSION_MAX + 9,
            ..client::Hello::default()
        };
        let (reason, before) = say(cluster, &frame(0, Body::Hello(newer), b""))?;
        ensure!(reason == GoodbyeReason::ProtocolVersion && before.is_empty());
        ensure!(cluster.counter(0, "client_port_closed_protocol_version")? == 1);
        // Nothing at all, and a hello that never ends.
        let (reason, before) = say(cluster, b"")?;
        ensure!(reason == GoodbyeReason::NoHello && before.is_empty());
        let (reason, before) = say(cluster, &hello()[..10])?;
        ensure!(reason == GoodbyeReason::NoHello && before.is_empty());
        ensure!(cluster.counter(0, "client_port_closed_no_hello")? == 2);
        // Half of a request, and gone.
        let whole = submit(1, 7, 1, &[0; 5000]);
        let mut socket = connect(cluster)?;
        socket.write_all(&after_hello(&whole[..3000]))?;
        drop(socket);
        cluster.wait_for("the half request to be counted", || {
            Ok(cluster.counter(0, "client_port_closed_truncated")? == 1)
        })?;
        // What was asked before the nonsense is answered first.
        let asked = [submit(5, 7, 1, b""), ping(), b"nonsense nonsense".to_vec()].concat();
        let (_, before) = say(cluster, &after_hello(&asked))?;
        let answered = |it: &FromServer| {
            it.request == 5 && matches!(it.body, Some(from_server::Body::Answer(_)))
        };
        ensure!(
            before.len() == 3 && before.iter().any(answered),
            "{before:?}"
        );
        Ok(())
    });
}

/// A client that asks and never takes its answers is read no further, and holds up nobody.
#[test]
fn who_takes_no_answers_holds_up_nobody() {
    run_started(Plan::steady(1, Durability::Memory), |cluster| {
        let client = Client::connect(&Settings::new([cluster.native(0).to_string()]))?;
        client.set("large", vec![b'x'; 1 << 20])?;
        let mut greedy = connect(cluster)?;
        greedy.write_all(&hello())?;
        greedy.set_nonblocking(true)?;
        let mut get = Vec::new();
        let mut sent = 0;
        'asking: loop {
            sent += 1;
            get.clear();
            get.extend(frame(sent, Body::Query(client::Query {}), b"get large"));
            let mut rest = &get[..];
            let mut tries = 0;
            while !rest.is_empty() {
                match greedy.write(rest) {
                    Ok(count) => {
                        rest = &rest[count..];
                        tries = 0;
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        tries += 1;
                        if tries > 3 {
                            break 'asking;
                        }
                        client.set("other", sent.to_string())?; // others are served meanwhile
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            ensure!(sent < 10_000_000, "it is read on and on");
        }
        let taken = cluster.counter(0, "client_port_queries")?;
        ensure!(taken <= IN_FLIGHT_MAX + 64, "{taken} taken on");
        println!("{sent} asked, {taken} taken on");
        // Once it takes its answers, it gets them all.
        greedy.set_nonblocking(false)?;
        let mut heard = vec![0; 40 << 20];
        greedy.read_exact(&mut heard)?;
        ensure!(cluster.counter(0, "client_port_queries")? >= 30);
        client.set("other", "last")?;
        Ok(())
    });
}

/// Whose end does not come: nothing more happens at that connection, and it is closed all the same.
#[test]
fn a_hello_that_is_announced_too_long_is_closed_at_once() {
    run_started(Plan::steady(1, Durability::Memory), |cluster| {
        let mut socket = connect(cluster)?;
        for _ in 0..5 {
            cluster.counter(0, "client_port_queries")?; // turns in which it says nothing
        }
        ensure!(cluster.counter(0, "client_connections_accepted")? == 1);
        socket.write_all(&damaged(hello(), 4, 4096)[..16])?;
        let mut heard = Vec::new();
        socket.read_to_end(&mut heard)?;
        ensure!(messages(&heard)?.len() == 1);
        ensure!(cluster.counter(0, "client_port_closed_malformed")? == 1);
        Ok(())
    });
}

/// What asks for too much at once; versions of keys, which `WATCH` compares, may be asked for.
#[test]
fn questions_for_too_much_are_refused() {
    run_started(Plan::steady(1, Durability::Memory), |cluster| {
        let mut socket = connect(cluster)?;
        socket.write_all(&hello())?;
        // A request asks for so many keys at most.
        let longest = |first: &[u8]| [first, &b" k".repeat(32 << 10)].concat();
        let too_long = |first: &[u8]| [first, &b" k".repeat((32 << 10) + 1)].concat();
        let gat = [&[GET_AND_TOUCH][..], &[0; 8]].concat();
        let versions = |digit: char| format!("{digit}*2\r\n$9\r\n\0versions\r\n$1\r\nk\r\n");
        let query = |bytes: &[u8]| frame(1, Body::Query(client::Query {}), bytes);
        let cases: [(Vec<u8>, bool); 8] = [
            (query(versions('2').as_bytes()), true),
            (query(versions('3').as_bytes()), true),
            (query(b"2*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"), true),
            (query(&too_long(b"get")), false),
            (query(&longest(b"get")), true),
            (submit(1, 7, 1, &too_long(&gat)), false),
            (submit(1, 7, 2, &longest(&gat)), true),
            (query(b"get k"), true),
        ];
        for (bytes, _) in &cases {
            socket.write_all(bytes)?;
        }
        socket.shutdown(Shutdown::Write)?;
        let mut heard = Vec::new();
        socket.read_to_end(&mut heard)?;
        let heard: Vec<_> = messages(&heard)?
            .into_iter()
            .filter(|it| it.request == 1)
            .collect();
        ensure!(heard.len() == cases.len(), "{heard:?}");
        for (place, (said, (_, is_served))) in heard.iter().zip(&cases).enumerate() {
            let fits = match &said.body {
                Some(from_server::Body::Answer(_)) => *is_served,
                Some(from_server::Body::Refused(refused)) => {
                    !is_served && refused.detail.starts_with("not executed")
                }
                _ => false,
            };
            ensure!(fits, "{place}: {said:?}");
        }
        Ok(())
    });
}

/// Commands, repeated and not, as the protocol has them.
#[test]
fn a_command_that_is_sent_again_is_answered_as_it_was() {
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        let write = |request, sequence, words: &[&str]| {
            let bulk = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
            let bulks: String = words.iter().map(bulk).collect();
            let text = format!("*{}\r\n{bulks}", words.len());
            // A single command of Redis' in the store's own form: nothing is watched.
            let script = [&[SCRIPT, b'3', 0, 0, 0, 0, 0], text.as_bytes()].concat();
            submit(request, 7, sequence, &script)
        };
        let long = "y".repeat(200); // longer than an answer that is kept
        let bytes = [
            hello(),
            submit(1, 7, 1, b""),
            write(2, 65, &["APPEND", "a", "x"]),
            write(3, 65, &["APPEND", "a", "x"]),
            write(4, 66, &["GETSET", "b", &long]),
            write(5, 67, &["GETSET", "b", "z"]),
            write(6, 67, &["GETSET", "b", "z"]),
            submit(7, 8, 65, b"anything"),
            submit(8, 7, 1, b""),
            b"nonsense nonsense".to_vec(),
        ];
        let (_, heard) = say(cluster, &bytes.concat())?;
        let said = |request: u64| -> Result<String> {
            let mut heard = heard.iter().filter(|it| it.request == request);
            let body = heard.next().and_then(|it| it.body.clone());
            Ok(match body.context("no answer")? {
                from_server::Body::Answer(answer) if answer.repeated => "repeated".to_owned(),
                from_server::Body::Answer(_) => "answered".to_owned(),
                from_server::Body::Refused(refused) => format!("{:?}", refused.reason()),
                other @ (from_server::Body::Welcome(_)
                | from_server::Body::Goodbye(_)
                | from_server::Body::Leader(_)
                | from_server::Body::Pong(_)
                | from_server::Body::Value(_)
                | from_server::Body::Upto(_)
                | from_server::Body::Trimmed(_)) => format!("{other:?}"),
            })
        };
        let all: Vec<String> = (1..=8).map(said).collect::<Result<_>>()?;
        ensure!(
            all == [
                "answered",
                "answered",
                "repeated",
                "answered",
                "answered",
                "AnswerGone",
                "UnknownSession",
                "SequenceTooOld"
            ],
            "{all:?}"
        );
        let client = Client::connect(&Settings::new([cluster.native(0).to_string()]))?;
        ensure!(client.get("a")?.as_deref() == Some(&b"x"[..]));
        ensure!(cluster.counter(0, "client_port_commands_repeated")? == 1);
        ensure!(cluster.counter(0, "client_port_refused_answer_gone")? == 1);
        ensure!(cluster.counter(0, "client_port_refused_unknown_session")? == 1);
        Ok(())
    });
}
