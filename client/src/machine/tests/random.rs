//! Many commands, with connections that break, answers that get lost, copies that come late, leaders that
//! move and sessions that are forgotten: what the client says of each command must be so.
use super::*;
use std::collections::{BTreeMap, BTreeSet};

/// Sessions that the model keeps: far fewer than real replicas, so that some are forgotten.
const SESSIONS_KEPT: usize = 3;
const COMMANDS: usize = 400;

/// All replicas as one: what ran how often, and what is remembered of sessions.
#[derive(Default)]
struct Model {
    ran: BTreeMap<Vec<u8>, u32>,
    /// Session, its highest number, what ran.
    sessions: Vec<(u64, u64, BTreeSet<u64>)>,
}

impl Model {
    fn submit(&mut self, submit: &Submit, command: &[u8]) -> from_server::Body {
        let at = self.sessions.iter().position(|it| it.0 == submit.session);
        if at.is_none() && submit.sequence > 64 {
            return refusal(RefusedReason::UnknownSession);
        }
        let mut session = match at {
            Some(at) => self.sessions.remove(at),
            None => (submit.session, 0, BTreeSet::new()),
        };
        let repeated = session.2.contains(&submit.sequence);
        let is_old = session.1 >= submit.sequence + 64;
        if !repeated && !is_old {
            session.1 = session.1.max(submit.sequence);
            session.2.insert(submit.sequence);
            if !command.is_empty() {
                *self.ran.entry(command.to_vec()).or_default() += 1;
            }
        }
        self.sessions.push(session);
        if self.sessions.len() > SESSIONS_KEPT {
            self.sessions.remove(0);
        }
        if is_old {
            return refusal(RefusedReason::SequenceTooOld);
        }
        from_server::Body::Answer(Answer { repeated })
    }
}

struct World {
    machine: Machine,
    model: Model,
    chance: ChaCha8Rng,
    now: Since,
    /// Connections that stand.
    links: BTreeSet<LinkId>,
    /// Answers on their way.
    answers: Vec<(LinkId, Vec<u8>)>,
    /// Copies of what was sent on connections that are gone, not delivered yet.
    late: Vec<(Submit, Vec<u8>)>,
    late_copies: u32,
    /// Until then nobody leads, and who is asked says so.
    leaderless_until: Since,
}

impl World {
    fn step(&mut self) {
        for action in self.machine.take_actions() {
            match action {
                Action::Connect(link, _) if self.chance.random_bool(0.7) => {
                    self.links.insert(link);
                    self.machine.connected(self.now, link);
                    let replica = self.chance.random_range(0..3);
                    let welcome = welcome(replica, self.chance.random_range(0..3));
                    self.answers.push((link, said(0, welcome, b"")));
                }
                Action::Connect(link, _) => {
                    self.machine.lost(self.now, link, "refused".to_owned());
                }
                Action::Send(link, bytes) => self.sent(link, &bytes),
                Action::Close(link) => drop(self.links.remove(&link)),
            }
        }
        self.answer_some();
        self.break_some();
        if self.chance.random_bool(0.001) {
            let lasts = Duration::from_millis(self.chance.random_range(0..2000));
            self.leaderless_until = self.now + lasts;
        }
        if !self.late.is_empty() && self.chance.random_bool(0.1) {
            let at = self.chance.random_range(0..self.late.len());
            let (submit, command) = self.late.swap_remove(at);
            self.model.submit(&submit, &command);
            self.late_copies += 1;
        }
        self.now += Duration::from_millis(self.chance.random_range(0..20));
        if self.machine.next_wake() <= self.now {
            self.machine.time_passed(self.now);
        }
    }

    fn sent(&mut self, link: LinkId, bytes: &[u8]) {
        for (message, command) in frames(bytes) {
            let Some(from_client::Body::Submit(submit)) = message.body else {
                continue;
            };
            let chance = self.chance.random_range(0..100);
            let body = match chance {
                _ if self.now < self.leaderless_until => refusal(RefusedReason::NoLeader),
                // On its way for long, and never answered.
                0..6 => {
                    self.late.push((submit, command));
                    continue;
                }
                // Carried out, and not answered.
                6..10 => {
                    self.model.submit(&submit, &command);
                    continue;
                }
                10..13 => refusal(RefusedReason::NotLeader),
                13..15 => {
                    self.model.submit(&submit, &command);
                    refusal(RefusedReason::OutcomeUnknown)
                }
                15 => {
                    self.late.push((submit, command));
                    refusal(RefusedReason::OutcomeUnknown)
                }
                _ => self.model.submit(&submit, &command),
            };
            self.answers.push((link, said(message.request, body, b"")));
        }
    }

    fn answer_some(&mut self) {
        for (link, bytes) in std::mem::take(&mut self.answers) {
            if self.chance.random_bool(0.5) {
                self.answers.push((link, bytes));
            } else if self.links.contains(&link) {
                let (one, other) = bytes.split_at(self.chance.random_range(0..bytes.len()));
                self.machine.received(self.now, link, one);
                self.machine.received(self.now, link, other);
            }
        }
    }

    fn break_some(&mut self) {
        let broken = self.links.iter().copied();
        let broken: Vec<LinkId> = broken.filter(|_| self.chance.random_bool(0.01)).collect();
        for link in broken {
            self.links.remove(&link);
            self.machine.lost(self.now, link, "cut".to_owned());
        }
    }
}

fn run(seed: u64, reached: &mut BTreeMap<&'static str, u32>) {
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let settings = Settings {
        deadline: Duration::from_millis(chance.random_range(100..3000)),
        patience: Duration::from_millis(100),
        retry_max: Duration::from_millis(50),
        ..settings()
    };
    let mut world = World {
        machine: Machine::new(&settings, seed, [7; 32]),
        model: Model::default(),
        chance,
        now: Since::ZERO,
        links: BTreeSet::new(),
        answers: Vec::new(),
        late: Vec::new(),
        late_copies: 0,
        leaderless_until: Since::ZERO,
    };
    world.machine.time_passed(Since::ZERO);
    let mut tickets = BTreeMap::new();
    let mut done = Vec::new();
    while done.len() < COMMANDS {
        if tickets.len() < COMMANDS && world.machine.pending_count() < 20 {
            let command = format!("command {}", tickets.len()).into_bytes();
            let ticket = world.machine.submit(world.now, command.clone()).unwrap();
            tickets.insert(ticket, command);
        }
        // Others' sessions push ours out.
        if world.chance.random_bool(0.02) {
            let submit = Submit {
                session: world.chance.random_range(1..1000),
                sequence: 1,
            };
            world.model.submit(&submit, b"");
        }
        world.step();
        done.extend(world.machine.take_done());
        assert!(world.now < Duration::from_hours(1), "seed {seed}: it hangs");
    }
    for (submit, command) in std::mem::take(&mut world.late) {
        world.model.submit(&submit, &command);
        world.late_copies += 1;
    }
    for (ticket, result) in done {
        let command = &tickets[&ticket];
        let ran = world.model.ran.get(command).copied().unwrap_or(0);
        let outcome = result.as_ref().err().map(Error::outcome);
        let (name, is_so) = match outcome {
            None => ("answered", ran == 1),
            Some(crate::Outcome::CarriedOut) => ("carried out", ran == 1),
            Some(crate::Outcome::NotCarriedOut) => ("not carried out", ran == 0),
            Some(crate::Outcome::Unknown) if ran == 0 => ("unknown, did not run", true),
            Some(crate::Outcome::Unknown) => ("unknown, ran", ran == 1),
        };
        assert!(is_so, "seed {seed}: {result:?}, and it ran {ran} times");
        *reached.entry(name).or_default() += 1;
    }
    let counters = world.machine.counters;
    for (name, count) in [
        ("sent elsewhere", counters.sent_elsewhere),
        ("answered again", counters.answered_repeated),
        ("sessions", counters.sessions.saturating_sub(1)),
        ("followed", counters.leaders_followed),
        ("late copies", world.late_copies.into()),
    ] {
        *reached.entry(name).or_default() += u32::try_from(count).unwrap();
    }
}

#[test]
fn what_is_said_of_a_command_is_so() {
    let first = quorumwire_seed::seed();
    let mut reached = BTreeMap::new();
    for round in 0..300_u64 {
        run(first.wrapping_add(round), &mut reached);
    }
    println!("{reached:?}");
    for name in [
        "answered",
        "not carried out",
        "unknown, did not run",
        "unknown, ran",
        "sent elsewhere",
        "answered again",
        "sessions",
        "followed",
        "late copies",
    ] {
        let count = reached.get(name).copied().unwrap_or(0);
        assert!(count > 0, "never reached: {name}");
    }
}
