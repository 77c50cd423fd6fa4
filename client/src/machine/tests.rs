//! Rule by rule, with the replica's words written by the test; and at random against a model of the replicas
//! that remembers everything.
use super::*;
use quorumwire_wire::client::{
    Answer, FromClient, FromServer, Goodbye, GoodbyeReason, Leader, Refused, RefusedReason, Submit,
    Welcome, from_client, from_server,
};
use quorumwire_wire::{ClientFrame, take_client_frame, write_client_frame};

mod random;

const MS: Duration = Duration::from_millis(1);

fn settings() -> Settings {
    Settings::new(["a:1", "b:1", "c:1"])
}

fn said(request: u64, body: from_server::Body, attachment: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let body = Some(body);
    write_client_frame(&mut bytes, &FromServer { request, body }, attachment);
    bytes
}

fn refusal(reason: RefusedReason) -> from_server::Body {
    from_server::Body::Refused(Refused {
        reason: reason.into(),
        detail: "why".to_owned(),
    })
}

fn answer() -> from_server::Body {
    from_server::Body::Answer(Answer { repeated: false })
}

fn welcome(replica: u32, leader: u32) -> from_server::Body {
    from_server::Body::Welcome(Welcome {
        protocol: 1,
        replica,
        cluster: "test".to_owned(),
        leader: Some(Leader {
            replica: leader,
            address: format!("leader-{leader}:1"),
        }),
        ..Welcome::default()
    })
}

/// What the client says in some bytes.
fn frames(mut bytes: &[u8]) -> Vec<(FromClient, Vec<u8>)> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let Ok(ClientFrame::Whole {
            consumed,
            message,
            attachment,
        }) = take_client_frame(bytes, usize::MAX)
        else {
            panic!("the client says something strange");
        };
        frames.push((message, attachment.to_vec()));
        bytes = &bytes[consumed..];
    }
    frames
}

/// A machine with a clock, and what it said on the connection in use.
struct Bench {
    machine: Machine,
    now: Since,
    link: LinkId,
    address: String,
    said: Vec<(FromClient, Vec<u8>)>,
    closed: Vec<LinkId>,
}

impl Bench {
    fn new() -> Self {
        let mut bench = Self {
            machine: Machine::new(&settings(), 1, [1; 32]),
            now: Since::ZERO,
            link: LinkId(u64::MAX),
            address: String::new(),
            said: Vec::new(),
            closed: Vec::new(),
        };
        bench.pass(Duration::ZERO);
        bench
    }

    /// One that is welcome at a replica that leads, with an open session.
    fn open() -> Self {
        let mut bench = Self::new();
        bench.greet(0, 0);
        let ticket = bench.submit("first");
        bench.answer_opening();
        let (request, _) = bench.last_submit();
        bench.hear(&said(request, answer(), b""));
        assert_eq!(bench.done(), [(ticket, Ok(vec![]))]);
        bench
    }

    fn look(&mut self) {
        for action in self.machine.take_actions() {
            match action {
                Action::Connect(link, address) => {
                    self.link = link;
                    self.address = address;
                }
                Action::Send(link, bytes) if link == self.link => {
                    self.said.extend(frames(&bytes));
                }
                Action::Send(..) => {}
                Action::Close(link) => self.closed.push(link),
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.machine.time_passed(self.now);
        self.look();
    }

    fn hear(&mut self, bytes: &[u8]) {
        self.machine.received(self.now, self.link, bytes);
        self.look();
    }

    fn connected(&mut self) {
        self.machine.connected(self.now, self.link);
        self.look();
    }

    fn lose(&mut self) {
        self.machine.lost(self.now, self.link, "cut".to_owned());
        self.look();
    }

    fn greet(&mut self, replica: u32, leader: u32) {
        self.connected();
        self.hear(&said(0, welcome(replica, leader), b""));
    }

    fn submit(&mut self, command: &str) -> Ticket {
        let ticket = self.machine.submit(self.now, command.into()).unwrap();
        self.look();
        ticket
    }

    fn query(&mut self) -> Ticket {
        let ticket = self.machine.query(self.now, b"q".to_vec()).unwrap();
        self.look();
        ticket
    }

    fn done(&mut self) -> Vec<(Ticket, Done)> {
        self.machine.take_done()
    }

    /// The request and the name of what was submitted last.
    fn last_submit(&self) -> (u64, Submit) {
        let submits = self.said.iter().rev();
        let mut submits = submits.filter_map(|(message, _)| match message.body {
            Some(from_client::Body::Submit(submit)) => Some((message.request, submit)),
            _ => None,
        });
        submits.next().expect("something was submitted")
    }

    fn last_request(&self) -> u64 {
        self.said.last().expect("something was said").0.request
    }

    fn answer_opening(&mut self) {
        let (request, submit) = self.last_submit();
        assert_eq!(submit.sequence, 1);
        assert!(self.said.last().unwrap().1.is_empty(), "it runs nothing");
        self.hear(&said(request, answer(), b""));
    }
}

#[test]
fn a_session_is_opened_first_and_commands_have_numbers_that_begin_none() {
    let mut bench = Bench::new();
    bench.submit("a");
    assert!(bench.said.is_empty(), "nothing is said to nobody");
    bench.greet(0, 0);
    let opening = bench.last_submit().1;
    bench.answer_opening();
    let (_, first) = bench.last_submit();
    assert_eq!((first.session, first.sequence), (opening.session, 65));
    bench.submit("b");
    assert_eq!(bench.last_submit().1.sequence, 66);
    assert_ne!(opening.session, 0);
}

#[test]
fn an_opening_is_never_sent_twice() {
    let mut bench = Bench::new();
    bench.submit("a");
    bench.greet(0, 0);
    let first = bench.last_submit().1;
    bench.lose();
    bench.pass(settings().retry_max * 2);
    bench.greet(1, 1);
    let second = bench.last_submit().1;
    assert_eq!((first.sequence, second.sequence), (1, 1));
    assert_ne!(first.session, second.session);
    // Nor after a refusal.
    bench.hear(&said(
        bench.last_request(),
        refusal(RefusedReason::TooManySessions),
        b"",
    ));
    bench.pass(settings().retry_max * 2);
    let third = bench.last_submit().1;
    assert_eq!(third.sequence, 1);
    assert_ne!(third.session, second.session);
}

#[test]
fn what_was_under_way_is_asked_elsewhere_under_its_name() {
    let mut bench = Bench::open();
    let ticket = bench.submit("a");
    let (_, before) = bench.last_submit();
    bench.lose();
    bench.greet(1, 1);
    let (request, after) = bench.last_submit();
    assert_eq!(before, after);
    let again = from_server::Body::Answer(Answer { repeated: true });
    bench.hear(&said(request, again, b"was"));
    assert_eq!(bench.done(), [(ticket, Ok(b"was".to_vec()))]);
    let counters = bench.machine.counters;
    assert_eq!((counters.sent_again, counters.sent_elsewhere), (1, 1));
    assert_eq!((counters.answered_repeated, counters.links_lost), (1, 1));
}

/// What each refusal makes of a command that was sent once, and of one of which an earlier sending may have
/// run.
#[test]
fn refusals_say_what_is_known() {
    let no = |text: &str| Some(Err(Error::NotCarriedOut(text.to_owned())));
    let unknown = Some(Err(Error::OutcomeUnknown));
    let gone = Some(Err(Error::AnswerGone));
    for (reason, sent_once, in_doubt) in [
        (RefusedReason::Other, no("why"), unknown.clone()),
        (RefusedReason::AnswerGone, gone.clone(), gone),
        (
            RefusedReason::SequenceTooOld,
            unknown.clone(),
            unknown.clone(),
        ),
        (RefusedReason::UnknownSession, None, unknown),
        (RefusedReason::OutcomeUnknown, None, None),
        (RefusedReason::Busy, None, None),
        (RefusedReason::NotLeader, None, None),
        (RefusedReason::NotCommitted, None, None),
    ] {
        for is_in_doubt in [false, true] {
            let mut bench = Bench::open();
            bench.submit("a");
            if is_in_doubt {
                bench.lose();
                bench.greet(1, 1);
            }
            let (request, _) = bench.last_submit();
            bench.hear(&said(request, refusal(reason), b""));
            let done = bench.done().pop().map(|(_, done)| done);
            let expected = if is_in_doubt { &in_doubt } else { &sent_once };
            assert_eq!(&done, expected, "{reason:?}, in doubt: {is_in_doubt}");
        }
    }
}

#[test]
fn at_the_deadline_it_is_known_whether_anything_can_have_run() {
    // Never sent.
    let mut bench = Bench::new();
    let never = bench.submit("a");
    bench.pass(settings().deadline);
    let done = bench.done();
    assert!(matches!(&done[..], [(ticket, Err(Error::NotCarriedOut(_)))] if *ticket == never));

    // Sent, and each sending surely refused.
    let mut bench = Bench::open();
    let refused = bench.submit("a");
    for _ in 0..3 {
        let (request, _) = bench.last_submit();
        bench.hear(&said(request, refusal(RefusedReason::NoLeader), b""));
        bench.pass(settings().retry_max * 2);
    }
    let (request, _) = bench.last_submit();
    bench.hear(&said(request, refusal(RefusedReason::NoLeader), b""));
    bench.now += settings().deadline;
    bench.machine.time_passed(bench.now);
    let expected = Error::NotCarriedOut("why".to_owned());
    assert_eq!(bench.done(), [(refused, Err(expected))]);

    // One sending without an answer.
    let mut bench = Bench::open();
    let open = bench.submit("a");
    bench.lose();
    bench.now += settings().deadline;
    bench.machine.time_passed(bench.now);
    assert_eq!(bench.done(), [(open, Err(Error::OutcomeUnknown))]);
    assert_eq!(bench.machine.counters.outcomes_unknown, 1);
}

#[test]
fn a_command_that_a_forgotten_session_refused_runs_in_a_new_one() {
    let mut bench = Bench::open();
    let ticket = bench.submit("a");
    let (request, before) = bench.last_submit();
    bench.hear(&said(request, refusal(RefusedReason::UnknownSession), b""));
    bench.pass(settings().retry_max * 2);
    bench.answer_opening();
    bench.pass(settings().retry_max * 2);
    let (request, after) = bench.last_submit();
    assert_ne!(before.session, after.session);
    bench.hear(&said(request, answer(), b"ok"));
    assert_eq!(bench.done(), [(ticket, Ok(b"ok".to_vec()))]);
}

#[test]
fn a_session_that_was_silent_is_not_used_again() {
    let mut bench = Bench::open();
    let (_, before) = bench.last_submit();
    for _ in 0..31 {
        // Asked whether it lives, the replica says so.
        bench.pass(Duration::from_secs(1));
        let request = bench.last_request();
        bench.hear(&said(
            request,
            from_server::Body::Pong(client::Pong {}),
            b"",
        ));
    }
    bench.submit("a");
    let (_, opening) = bench.last_submit();
    assert_eq!(opening.sequence, 1);
    assert_ne!(opening.session, before.session);
}

/// Replicas remember so many numbers behind a session's newest.
#[test]
fn an_unanswered_command_holds_up_those_that_would_leave_it_behind() {
    let mut bench = Bench::open();
    bench.submit("held");
    let held = bench.last_submit().0;
    for _ in 0..63 {
        bench.submit("a");
        let (request, _) = bench.last_submit();
        bench.hear(&said(request, answer(), b""));
    }
    let newest = bench.last_submit().1.sequence;
    bench.submit("waits");
    assert_eq!(bench.last_submit().1.sequence, newest);
    bench.hear(&said(held, answer(), b""));
    assert_eq!(bench.last_submit().1.sequence, newest + 1);
}

#[test]
fn the_leader_is_followed_and_what_is_under_way_goes_along() {
    let mut bench = Bench::open();
    let ticket = bench.submit("a");
    let (_, before) = bench.last_submit();
    let old = bench.link;
    let leader = Leader {
        replica: 2,
        address: "leader-2:1".to_owned(),
    };
    bench.hear(&said(0, from_server::Body::Leader(leader), b""));
    assert_eq!(bench.address, "leader-2:1");
    assert!(
        bench.closed.is_empty(),
        "the old one serves until the new one does"
    );
    bench.greet(2, 2);
    assert_eq!(bench.closed, [old]);
    let (request, after) = bench.last_submit();
    assert_eq!(before, after);
    bench.hear(&said(request, answer(), b""));
    assert_eq!(bench.done(), [(ticket, Ok(vec![]))]);
    assert_eq!(bench.machine.counters.leaders_followed, 1);
}

#[test]
fn a_leader_that_cannot_be_reached_is_left_alone_for_a_while() {
    let mut bench = Bench::new();
    bench.greet(0, 2);
    assert_eq!(bench.address, "leader-2:1");
    let (challenger, first) = (bench.link, bench.machine.link.as_ref().unwrap().id);
    bench.lose();
    bench.link = first;
    for _ in 0..9 {
        bench.pass(HINT_PAUSE / 10);
        assert_ne!(bench.link, challenger);
        assert_eq!(bench.link, first);
        let pong = from_server::Body::Pong(client::Pong {});
        bench.hear(&said(bench.last_request(), pong, b""));
    }
    bench.pass(HINT_PAUSE / 5);
    assert!(bench.link > challenger, "it is looked for again");
}

#[test]
fn a_replica_that_says_nothing_is_given_up() {
    let mut bench = Bench::new();
    bench.connected();
    let first = bench.link;
    bench.pass(settings().patience);
    assert_eq!(bench.closed, [first], "no welcome");
    bench.pass(settings().retry_max * 2);
    bench.greet(0, 0);
    bench.query();
    let second = bench.link;
    bench.pass(settings().patience.saturating_sub(MS));
    assert_eq!(bench.closed, [first]);
    bench.pass(MS);
    assert_eq!(bench.closed, [first, second], "no answer");
    assert_eq!(bench.machine.counters.links_lost, 1);
    // And one that is idle is asked whether it lives.
    bench.pass(settings().retry_max * 2);
    bench.greet(0, 0);
    let (request, third) = (bench.last_request(), bench.link);
    bench.hear(&said(request, answer(), b"")); // to the query
    bench.pass(PING_AFTER);
    let ping = bench
        .said
        .last()
        .and_then(|(message, _)| message.body.clone());
    assert!(matches!(ping, Some(from_client::Body::Ping(_))));
    bench.pass(settings().patience);
    assert_eq!(bench.closed.last(), Some(&third));
}

#[test]
fn a_replica_that_refuses_everything_is_left() {
    let mut bench = Bench::new();
    bench.greet(0, 0);
    bench.query();
    let link = bench.link;
    for _ in 0..REFUSED_IN_A_ROW_MAX {
        assert_eq!(bench.link, link);
        let request = bench.last_request();
        bench.hear(&said(request, refusal(RefusedReason::NoLeader), b""));
        bench.pass(settings().retry_max * 2);
    }
    assert_eq!(bench.closed, [link]);
}

#[test]
fn who_is_not_let_in_is_told_at_once() {
    let mut bench = Bench::new();
    let ticket = bench.submit("a");
    bench.connected();
    let goodbye = Goodbye {
        reason: GoodbyeReason::NotLetIn.into(),
        detail: "no".to_owned(),
    };
    bench.hear(&said(0, from_server::Body::Goodbye(goodbye), b""));
    let expected = Error::NotLetIn("no".to_owned());
    assert_eq!(bench.done(), [(ticket, Err(expected))]);
}

/// It waits longer and longer, and does not turn without a pause.
#[test]
fn a_cluster_that_is_away_is_not_stormed() {
    let mut bench = Bench::new();
    let mut connects = 0;
    let end = Duration::from_secs(10);
    while bench.now < end {
        let link = bench.link;
        bench.lose();
        let wake = bench.machine.next_wake();
        assert!(wake >= bench.now, "a wake that is over");
        bench.pass(wake.saturating_sub(bench.now));
        connects += u32::from(bench.link != link);
    }
    assert!((10..200).contains(&connects), "{connects}");
}

#[test]
fn garbage_ends_the_connection_and_nothing_else() {
    let early = said(1, answer(), b"");
    let twice = [said(0, welcome(0, 0), b""), said(0, welcome(0, 0), b"")].concat();
    for bytes in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], &early, &twice] {
        let mut bench = Bench::new();
        let ticket = bench.submit("a");
        bench.connected();
        let link = bench.link;
        bench.hear(bytes);
        assert_eq!(bench.closed, [link]);
        assert_eq!(bench.machine.counters.malformed, 1);
        assert_eq!(bench.done(), []);
        bench.pass(settings().deadline);
        assert_eq!(bench.done().len(), 1, "{ticket:?}");
    }
}

#[test]
fn what_is_too_long_or_nothing_is_refused() {
    let mut machine = Machine::new(&settings(), 1, [1; 32]);
    let long = vec![0; SESSION_COMMAND_BYTES_MAX + 1];
    let error = machine.submit(Since::ZERO, long).unwrap_err();
    assert!(matches!(error, Error::TooLong { .. }));
    // An empty one would open a session.
    let error = machine.submit(Since::ZERO, vec![]).unwrap_err();
    assert!(matches!(error, Error::Invalid(_)));
    assert_eq!(machine.pending_count(), 0);
}
