//! Clients of a served program: in some seeds a model program (`model_program.rs`) is replicated beside the
//! store, in the same log. What is decided of it is the product's keeper; here its wishes are carried out, as
//! in the server, and what the programs of all replicas do is judged.
//!
//! A client connects, sends numbered messages, and reads their answers. What must hold (I18): programs have
//! equal states behind equal turns, also behind a cut; each client's messages are carried out once and in
//! order, and none once the log holds it to be gone; it is answered in order; nobody is accused of lying.
use crate::machine::{Machine, Origin};
use crate::model_program::{ANSWER_BYTES, Deed, Kept, ModelProgram, Saying, address_of};
use crate::plan::Settings;
use crate::queue::{Nanos, SECOND};
use crate::random::{Random, mix};
use crate::state::{ServedReplay, State, served_command};
use crate::world::World;
use quorumwire_control::Now;
use quorumwire_group::{AnswerKind, ForwardKind, SubmitOutcome};
use quorumwire_interfaces::Executed;
use quorumwire_replay::{
    Answer, Around, Asked, Become, Done, Gateway, Input, Keeper, Keeping, Reporter, WhyGateway,
    Wish,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Sets what is chosen here apart from the plan's other choices.
const SERVED: u64 = 0x5e4e_dc11;
/// In so many of a thousand seeds, of those in which all code is the newest, a program is served.
const SERVED_PERMILLE: u64 = 250;
/// Clients of a gateway at once.
const CLIENTS_MAX: usize = 4;
/// Messages that a client sends ahead.
const AHEAD_MAX: u32 = 3;
/// A client does something in so many of a thousand times that a process keeps house.
const ACTS_PERMILLE: u64 = 250;
/// At a cut all clients go, so there are fewer of them than snapshots elsewhere.
const LIMITS_PER_CUT: u64 = 4;
/// Clients of a replica are silent for as long, or not.
const SPELL: Nanos = 8 * SECOND;
/// Most that a program does in a turn of its process.
const WORK_PER_TURN: u64 = 9;
/// Times that a leader asks before its program is known to work.
const TRIAL_LOOKS: u8 = 40;
/// In so many of a thousand times a state is wanted when a process keeps house.
const STATE_WANTED_PERMILLE: u64 = 1;

/// What a run must have reached.
pub const OUTCOMES: [&str; 18] = [
    "served: answered",
    "served: batch asked for anew",
    "served: batch carried out again in vain",
    "served: batch whose outcome nobody knew",
    "served: begun from another's snapshot",
    "served: begun from what was saved",
    "served: client gone",
    "served: clients gone with a cut",
    "served: clients gone, as an answer says",
    "served: clients gone, though they said nothing",
    "served: connection ended by the program",
    "served: gateway ended by a leader",
    "served: gateway of a process before ended",
    "served: program begun",
    "served: snapshot at a cut",
    "served: tried in vain, another leader has begun it",
    "served: turn taken first",
    "served: windows equal everywhere",
];

/// A client, at its gateway.
struct Client {
    /// No other one of the world has it.
    number: u32,
    sent: u32,
    answered: u32,
    /// Of an answer that has not come whole.
    bytes: Vec<u8>,
    has_ended: bool,
    /// Bytes of a message that are sent later.
    later: Vec<u8>,
}

/// What a process has of the program's clients.
pub struct ServedProcess {
    keeper: Keeper,
    clients: BTreeMap<u32, Client>,
    next: u32,
    /// How often it has looked at a trial that runs.
    looks: u8,
    drawn: u64,
    equal_windows: u64,
    /// What it ends is a gateway of its own, of before.
    ends_own: bool,
    /// When the process looks again whether its program takes more, whatever happens: as in the node.
    looks_at: Nanos,
}

impl ServedProcess {
    /// When it is to look next, if that is not planned yet.
    pub fn plans_to_look(&mut self, now: Nanos, interval: Nanos) -> Option<Nanos> {
        if now < self.looks_at {
            return None;
        }
        self.looks_at = now + interval;
        Some(self.looks_at)
    }
}

/// What the world has.
#[derive(Default)]
pub struct ServedWorld {
    random: Option<Random>,
    next_client: u32,
    judge: Judge,
}

/// What programs have done.
#[derive(Default)]
struct Judge {
    /// By turn: what a program holds behind it.
    turns: BTreeMap<u64, Kept>,
    /// By client: the last of its messages that was carried out; none: it is gone.
    clients: BTreeMap<u32, Option<u32>>,
}

impl Judge {
    /// Whether nobody has done it before; the error is what is wrong.
    fn see(&mut self, deed: &Deed) -> Result<bool, String> {
        match deed {
            Deed::Saved => Ok(false),
            Deed::Begun(turn, kept) => match self.turns.get(turn) {
                _ if *turn == 0 => Ok(false),
                Some(known) if known == kept => Ok(false),
                known => Err(format!(
                    "begins behind turn {turn} with {kept:?}, where others had {known:?}"
                )),
            },
            Deed::Turn {
                number,
                kept,
                connected,
                messages,
                gone,
            } => {
                if let Some(known) = self.turns.get(number) {
                    let is_equal = known == kept;
                    let differs = || format!("has {kept:?} behind turn {number}, others {known:?}");
                    return is_equal.then_some(false).ok_or_else(differs);
                }
                self.turns.insert(*number, *kept);
                for client in connected {
                    if self.clients.insert(*client, Some(0)).is_some() {
                        return Err(format!("client {client} connects twice, in turn {number}"));
                    }
                }
                for (client, message) in messages {
                    let last = self.clients.get(client).copied().flatten();
                    if last.map(|it| it + 1) != Some(*message) {
                        return Err(format!(
                            "message {message} of client {client} is carried out behind {last:?}, in turn {number}"
                        ));
                    }
                    self.clients.insert(*client, Some(*message));
                }
                for client in gone {
                    self.clients.insert(*client, None);
                }
                Ok(true)
            }
        }
    }
}

impl Settings {
    /// A program is served, too.
    #[must_use]
    pub fn serves(&self) -> bool {
        !self.begins_older && Random::new(mix(self.seed ^ SERVED)).permille(SERVED_PERMILLE)
    }
}

fn millis(wall: Duration) -> u64 {
    u64::try_from(wall.as_millis()).unwrap_or(u64::MAX)
}

fn drawn(settings: &Settings, (replica, run, number): (u16, u32, u64)) -> u64 {
    mix(settings.seed ^ SERVED ^ mix(u64::from(replica) << 48 ^ u64::from(run) << 24 ^ number))
}

impl Machine {
    /// Its process begins with the program of its state.
    pub fn begin_served(&mut self, settings: &Settings, wall: Duration) {
        let (peer, run) = (self.peer, self.run);
        let Some(process) = &mut self.process else {
            return;
        };
        if !settings.serves() {
            return;
        }
        let chance = drawn(settings, (peer.id.0, run, 0));
        let gateway = Gateway::next(peer.id.0, 0, millis(wall), chance);
        let keeping = Keeping {
            save_signal: Some(15),
            cut_log_bytes: settings.snapshot_log_bytes,
        };
        let mut served = ServedProcess {
            keeper: Keeper::new(gateway, keeping),
            clients: BTreeMap::new(),
            next: 0,
            looks: 0,
            drawn: 0,
            equal_windows: 0,
            ends_own: false,
            looks_at: 0,
        };
        let state = process.group.store.inner_mut();
        let replay = state.served.get_or_insert_default();
        replay.program = Some(ModelProgram::default());
        replay.reporter = Some(Reporter::of(peer.id, peer.incarnation));
        replay.go_on();
        let around = nobody_around(process.group.now);
        let replay = process.group.store.inner_mut().served.as_mut();
        if let Some(replay) = replay {
            (served.keeper).step(Input::Begins, replay, &around, &mut Vec::new());
        }
        process.served = Some(served);
    }
}

const fn nobody_around(now: Now) -> Around<'static> {
    Around {
        now: now.0,
        leads: false,
        is_led: false,
        lacks: 0,
        members: 0,
        voters: &[],
        connected: &[],
        is_backup_wanted: false,
    }
}

impl World {
    fn chance(&mut self) -> &mut Random {
        let seed = self.plan.settings.seed ^ SERVED;
        let random = &mut self.served.random;
        random.get_or_insert_with(|| Random::new(mix(seed)))
    }

    fn served(&mut self, machine: usize) -> Option<&mut ServedProcess> {
        let process = self.machines[machine].process.as_mut()?;
        process.served.as_mut()
    }

    /// Something has happened: what the keeper wants then is done.
    pub fn keeper_hears(&mut self, machine: usize, input: Input) {
        let mut heard = vec![input];
        while let Some(input) = heard.pop() {
            let wishes = self.wishes_upon(machine, input);
            for wish in wishes {
                heard.extend(self.carry_out_wish(machine, wish));
            }
        }
    }

    fn wishes_upon(&mut self, machine: usize, input: Input) -> Vec<Wish> {
        let mut wishes = Vec::new();
        let limit = self.plan.settings.snapshot_log_bytes;
        let it = &mut self.machines[machine];
        let clock = it.clock(self.now);
        let Some(process) = &mut it.process else {
            return wishes;
        };
        let group = &mut process.group;
        let peers = group.peers.connected.values().map(|it| it.peer);
        let connected: Vec<_> = peers
            .map(|it| Reporter::of(it.id, it.incarnation))
            .collect();
        let membership = group.replica.membership();
        let members = membership.voters();
        let voters: Vec<_> = members
            .map(|it| Reporter::of(it.id, it.incarnation))
            .collect();
        let committed = group.replica.commit_index().0;
        let around = Around {
            leads: group.leads(),
            is_led: group.replica.leader().is_some(),
            lacks: committed.saturating_sub(group.applied.0),
            members: u16::try_from(membership.members.len()).unwrap_or(u16::MAX),
            voters: &voters,
            connected: &connected,
            // Commands of the store make the log long, too.
            is_backup_wanted: group.bytes_since_snapshot > LIMITS_PER_CUT * limit,
            ..nobody_around(clock)
        };
        let replay = group.store.inner_mut().served.as_mut();
        if let (Some(served), Some(replay)) = (&mut process.served, replay) {
            served.keeper.step(input, replay, &around, &mut wishes);
        }
        wishes
    }

    fn carry_out_wish(&mut self, machine: usize, wish: Wish) -> Option<Input> {
        match wish {
            Wish::Submit(asked, command) => {
                if matches!(asked, Asked::Verdict) {
                    let said = format!("I18: a program is accused, and none lies: {command:?}");
                    self.checks.require(false, || said);
                }
                let own = self.machines[machine].peer.id.0;
                if let Asked::GatewayEnds(it) = asked {
                    self.served(machine)?.ends_own = it.replica == own;
                }
                let number = asked.number();
                let is_pending = self.submit(machine, number, &command);
                (!is_pending).then_some(Input::Became(number, Become::NotDone))
            }
            Wish::DrawKey => {
                let mut key = [0; 32];
                for part in key.chunks_mut(8) {
                    part.copy_from_slice(&self.draw(machine).to_le_bytes());
                }
                Some(Input::Key(key))
            }
            Wish::DropClients(why) => {
                if why == WhyGateway::Saves {
                    self.counts.see("served: clients gone with a cut");
                }
                let wall_ms = millis(self.machines[machine].wall(self.now));
                let chance = self.draw(machine);
                self.served(machine)?.clients.clear();
                Some(Input::NextGateway { wall_ms, chance })
            }
            Wish::TryProgram => {
                let served = self.served(machine)?;
                served.looks += 1;
                (served.looks >= TRIAL_LOOKS).then_some(Input::HasPassed)
            }
            Wish::EndTrial => {
                if std::mem::take(&mut self.served(machine)?.looks) > 0 {
                    let what = "served: tried in vain, another leader has begun it";
                    self.counts.see(what);
                }
                None
            }
            Wish::TakeSnapshot => {
                self.take_snapshot(machine);
                let process = self.machines[machine].process.as_ref()?;
                process.taking.then(|| {
                    self.counts.see("served: snapshot at a cut");
                    Input::SnapshotBegun
                })
            }
            Wish::GoOn => {
                self.counts.see("served: begun from what was saved");
                let process = self.machines[machine].process.as_mut()?;
                process.group.store.inner_mut().served.as_mut()?.go_on();
                None
            }
        }
    }

    fn draw(&mut self, machine: usize) -> u64 {
        let it = &mut self.machines[machine];
        let (replica, run) = (it.peer.id.0, it.run);
        let served = it.process.as_mut().and_then(|it| it.served.as_mut());
        let number = served.map_or(0, |it| {
            it.drawn += 1;
            it.drawn
        });
        drawn(&self.plan.settings, (replica, run, number))
    }

    /// Whether it is on its way into the log, here or at the leader.
    fn submit(&mut self, machine: usize, number: u64, command: &[u8]) -> bool {
        let origin = Origin::Served(number);
        let command = served_command(command);
        let forwards = self.plan.settings.forwards();
        let submitted = self.drive(machine, |group| {
            if group.leads() || group.waits_since_fast_term() {
                return group.write(origin, command.len(), |bytes| {
                    bytes.extend_from_slice(&command);
                });
            }
            let leader = match group.leader_to_ask() {
                Ok(leader) if forwards => leader,
                Ok(_) => return SubmitOutcome::NoRoom,
                Err(outcome) => return outcome,
            };
            let sent = group.forward(leader, origin, ForwardKind::Write, command.into());
            sent.map_or(SubmitOutcome::NoRoom, |_| SubmitOutcome::Pending)
        });
        matches!(submitted, Some(SubmitOutcome::Pending))
    }

    fn send_batches(&mut self, machine: usize) {
        loop {
            let clock = self.machines[machine].clock(self.now);
            let Some(served) = self.served(machine) else {
                return;
            };
            let next = served.keeper.batches.next(clock.0);
            let Some((number, command)) = next.map(|(number, it)| (number, it.to_vec())) else {
                return;
            };
            if !self.submit(machine, number, &command) {
                return; // when house is kept next
            }
            if let Some(served) = self.served(machine) {
                served.keeper.batches.sent(number);
            }
        }
    }

    /// What became of what was asked of the log.
    pub fn served_is_answered(
        &mut self,
        machine: usize,
        number: u64,
        said: AnswerKind,
        reply: &[u8],
    ) {
        let what = match said {
            AnswerKind::Refused(reason) if reason.executed() == Executed::No => Become::NotDone,
            AnswerKind::Refused(_) => Become::Unknown,
            AnswerKind::Answer | AnswerKind::Repeated => Become::Answered(Answer::decode(reply)),
        };
        let is_batch = number < Asked::Verdict.number();
        match what {
            Become::Unknown if is_batch => {
                self.counts.see("served: batch whose outcome nobody knew");
            }
            Become::Answered(Some(Answer::Expected(_))) => {
                self.counts.see("served: batch asked for anew");
            }
            Become::Answered(Some(Answer::Ended)) => {
                self.counts.see("served: clients gone, as an answer says");
            }
            Become::Answered(Some(Answer::Done)) if number == Asked::Begin.number() => {
                self.counts.see("served: program begun");
            }
            Become::Answered(Some(Answer::Done)) if number == ENDS => {
                let ends_own = self.served(machine).is_some_and(|it| it.ends_own);
                self.counts.see(if ends_own {
                    "served: gateway of a process before ended"
                } else {
                    "served: gateway ended by a leader"
                });
            }
            Become::Answered(it) => self.checks.require(it.is_some(), || {
                format!("I18: {number} is answered {}", reply.escape_ascii())
            }),
            Become::NotDone | Become::Unknown => {}
        }
        self.keeper_hears(machine, Input::Became(number, what));
    }

    /// The program has its turns, and what it says is handed over.
    pub fn served_has_its_turn(&mut self, machine: usize) {
        if self.served(machine).is_none() {
            return;
        }
        let times = if self.peace {
            WORK_PER_TURN
        } else {
            self.chance().below(WORK_PER_TURN)
        };
        for _ in 0..times {
            let program = self.replay(machine).and_then(|it| it.program.as_mut());
            let Some(deed) = program.and_then(ModelProgram::work) else {
                break;
            };
            self.judge_deed(machine, &deed);
        }
        let state = self.machines[machine].process.as_mut();
        let repeats = state.map(|it| std::mem::take(&mut it.group.store.inner_mut().repeats));
        let what = "served: batch carried out again in vain";
        self.counts.see_many(what, repeats.unwrap_or(0));
        self.tell_clients(machine);
        let saved = self.replay(machine).and_then(|replay| {
            let saved = replay.program.as_mut()?.saved.take()?;
            replay.is_saving().then(|| replay.has_saved(saved))
        });
        if saved.is_some() {
            self.counts.see("served: saved itself");
        }
        self.keeper_hears(machine, Input::Turn);
    }

    fn replay(&mut self, machine: usize) -> Option<&mut ServedReplay> {
        let process = self.machines[machine].process.as_mut()?;
        process.group.store.inner_mut().served.as_deref_mut()
    }

    fn judge_deed(&mut self, machine: usize, deed: &Deed) {
        let peer = self.machines[machine].peer;
        match self.served.judge.see(deed) {
            Ok(is_first) => {
                if is_first {
                    self.counts.see("served: turn taken first");
                }
            }
            Err(problem) => self
                .checks
                .require(false, || format!("I18: the program of {peer:?} {problem}")),
        }
    }

    fn tell_clients(&mut self, machine: usize) {
        loop {
            let Some(process) = self.machines[machine].process.as_mut() else {
                return;
            };
            let replay = process.group.store.inner_mut().served.as_mut();
            let (Some(replay), Some(served)) = (replay, &mut process.served) else {
                return;
            };
            let gateway = served.keeper.batches.gateway();
            let Some(program) = &mut replay.program else {
                return;
            };
            let Some((turn, said)) = program.said.pop_front() else {
                let done = program.done;
                quorumwire_replay::Program::checker(program).done(done);
                return;
            };
            let checker = quorumwire_replay::Program::checker(program);
            match said {
                Saying::Data(connection, bytes) => {
                    checker.said(turn, connection, &bytes);
                    if let Some(client) = replay.client_here(connection, gateway) {
                        self.client_is_told(machine, client, &bytes);
                    }
                }
                Saying::Close(connection) => {
                    checker.closed(turn, connection);
                    let client = replay.client_here(connection, gateway);
                    let client = client.filter(|it| served.clients.remove(it).is_some());
                    if let Some(client) = client {
                        served.keeper.batches.add(Done::Reset { client });
                        self.counts.see("served: connection ended by the program");
                    }
                }
            }
        }
    }

    fn client_is_told(&mut self, machine: usize, client: u32, bytes: &[u8]) {
        let Some(client) = self
            .served(machine)
            .and_then(|it| it.clients.get_mut(&client))
        else {
            return;
        };
        client.bytes.extend_from_slice(bytes);
        let mut problem = None;
        let mut answers = 0;
        while let Some((answer, left)) = client.bytes.split_first_chunk::<ANSWER_BYTES>() {
            let number = |at: usize| {
                let bytes = answer.get(at..).and_then(|it| it.first_chunk::<4>());
                bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
            };
            let (who, message) = (number(0), number(4));
            let expected = (client.number, client.answered + 1);
            if (who, message) != expected || message > client.sent {
                problem = Some(format!("{expected:?} is answered as {:?}", (who, message)));
            }
            client.answered = message;
            client.bytes = left.to_vec();
            answers += 1;
        }
        self.counts.see_many("served: answered", answers);
        if let Some(problem) = problem {
            self.checks
                .require(false, || format!("I18: message {problem}"));
        }
    }

    /// The state of a process is one of another replica. The program, which `before` had, goes on with that.
    pub fn served_state_is_replaced(&mut self, machine: usize, before: &mut State) {
        let program = before.served.as_mut().and_then(|it| it.program.take());
        let reporter = before.served.as_ref().and_then(|it| it.reporter);
        let Some(replay) = self.replay(machine) else {
            return;
        };
        replay.program = program;
        replay.reporter = reporter;
        replay.go_on();
        self.counts.see("served: begun from another's snapshot");
        self.keeper_hears(machine, Input::StateReplaced);
    }

    /// What is not well yet, in peace: a client that waits at a member's, or does not know that it is gone.
    #[must_use]
    pub fn served_difference(&self, machine: usize) -> Option<String> {
        let it = &self.machines[machine];
        let process = it.process.as_ref()?;
        let served = process.served.as_ref()?;
        let replay = process.group.store.inner().served.as_ref()?;
        let gateway = served.keeper.batches.gateway();
        if replay.has_ended(gateway) && !served.clients.is_empty() {
            return Some(format!(
                "clients of {:?} do not know that they are gone",
                it.peer
            ));
        }
        let is_asked = self.plan.settings.forwards() || process.group.leads();
        let waits = |it: &Client| it.sent > it.answered + u32::from(!it.later.is_empty());
        let waiting = served.clients.values().find(|it| is_asked && waits(it))?;
        Some(format!(
            "client {} of {:?} has sent {} messages, and has {} answers",
            waiting.number, it.peer, waiting.sent, waiting.answered
        ))
    }

    /// In the end all programs take all their turns.
    pub fn end_programs(&mut self) {
        for machine in 0..self.machines.len() {
            while let Some(deed) = self
                .replay(machine)
                .and_then(|it| it.program.as_mut()?.work())
            {
                self.judge_deed(machine, &deed);
            }
        }
    }

    /// What is to be done every now and then.
    pub fn keep_served(&mut self, machine: usize) {
        if self.served(machine).is_none() {
            return;
        }
        let now = self.now;
        // Now and then all clients of a replica are silent for a while.
        let spell = mix(self.plan.settings.seed ^ (now / SPELL) ^ (machine as u64) << 56);
        let is_silent = spell.is_multiple_of(2) && !self.peace;
        if now < self.clients_stop_at && !is_silent && self.chance().permille(ACTS_PERMILLE) {
            self.client_does_something(machine);
        }
        self.send_batches(machine);
        if !self.peace && self.chance().permille(STATE_WANTED_PERMILLE) {
            self.keeper_hears(machine, Input::StateWanted);
        }
        let gateway = self.served(machine).map(|it| it.keeper.batches.gateway());
        let is_ended = gateway.zip(self.replay(machine));
        if is_ended.is_some_and(|(gateway, replay)| replay.has_ended(gateway)) {
            self.counts
                .see("served: clients gone, though they said nothing");
        }
        self.keeper_hears(machine, Input::Keep);
        let equal = self.replay(machine).map(|it| it.outputs().counts().equal);
        if let (Some(equal), Some(served)) = (equal, self.served(machine)) {
            let before = std::mem::replace(&mut served.equal_windows, equal);
            let more = equal.saturating_sub(before);
            self.counts
                .see_many("served: windows equal everywhere", more);
        }
    }

    fn client_does_something(&mut self, machine: usize) {
        let luck = self.chance().next();
        let number = self.served.next_client + 1;
        let Some(served) = self.served(machine) else {
            return;
        };
        let batches = &mut served.keeper.batches;
        if !batches.have_room() {
            return;
        }
        let places = served.clients.len();
        let which = usize::try_from(luck % CLIENTS_MAX as u64).unwrap_or(0);
        let Some((&client, it)) = served.clients.iter_mut().nth(which) else {
            if places < CLIENTS_MAX {
                let client = served.next;
                served.next += 1;
                let it = Client {
                    number,
                    sent: 0,
                    answered: 0,
                    bytes: Vec::new(),
                    has_ended: false,
                    later: Vec::new(),
                };
                served.clients.insert(client, it);
                batches.add(Done::Accept {
                    client,
                    peer: address_of(number),
                    own: SocketAddr::from(([127, 0, 0, 1], 7000)),
                });
                self.served.next_client = number;
                self.counts.see("served: client connects");
            }
            return;
        };
        match luck >> 8 & 63 {
            0 => {
                served.clients.remove(&client);
                batches.add(Done::Reset { client });
                self.counts.see("served: client gone");
            }
            _ if it.has_ended => {}
            1 if it.later.is_empty() => {
                it.has_ended = true;
                batches.add(Done::End { client });
            }
            _ => {
                let mut bytes = std::mem::take(&mut it.later);
                if it.sent < it.answered + AHEAD_MAX {
                    it.sent += 1;
                    bytes.extend_from_slice(&it.number.to_le_bytes());
                    bytes.extend_from_slice(&it.sent.to_le_bytes());
                }
                // Some come in parts.
                let kept = usize::try_from(luck >> 16 & 3).unwrap_or(0) * 2;
                it.later = bytes.split_off(bytes.len().saturating_sub(kept));
                if !bytes.is_empty() {
                    batches.add(Done::Data { client, bytes });
                }
            }
        }
    }
}

/// The number of what ends a gateway.
const ENDS: u64 = Asked::GatewayEnds(Gateway {
    replica: 0,
    number: 0,
})
.number();
