//! What the keeper of the program wants done, carried out: what goes into the log, what becomes of the
//! clients and of the program. What is wanted, and when, is decided in `apps/replay`.
use super::program::{Serving, elsewhere};
use super::trial::{Tried, try_program};
use super::{Server, new_key};
use crate::server::clients::AnswerKind;
use crate::server::clock;
use crate::server::origin::Origin;
use crate::server::random_number;
use crate::server::route_outcome::RouteOutcome;
use anyhow::Context as _;
use quorumwire_group as group;
use quorumwire_interfaces::Executed;
use quorumwire_replay::{Answer, Around, Asked, Become, Input, Reporter, WhyGateway, Wish};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, TryRecvError};

/// The program is tried elsewhere. Dropped, that is over.
pub struct RunningTrial {
    result: Receiver<anyhow::Result<Tried>>,
    is_over: Arc<AtomicBool>,
}

impl Drop for RunningTrial {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
    }
}

impl Server {
    /// Something has happened: what the keeper wants then is done.
    pub(super) fn keeper_hears(&mut self, input: Input) {
        let mut heard = vec![input];
        while let Some(input) = heard.pop() {
            let wishes = self.wishes_upon(input);
            heard.extend(wishes.into_iter().filter_map(|it| self.carry_out_wish(it)));
        }
    }

    fn wishes_upon(&mut self, input: Input) -> Vec<Wish> {
        let mut wishes = Vec::new();
        let group = &mut self.core.group;
        let membership = group.replica.membership();
        let committed = group.replica.commit_index().0;
        let mut around = Around {
            now: clock::now().0,
            leads: group.leads(),
            is_led: group.replica.leader().is_some(),
            lacks: committed.saturating_sub(group.applied.0),
            members: u16::try_from(membership.members.len()).unwrap_or(u16::MAX),
            voters: &[],
            connected: &[],
            is_backup_wanted: self.upkeep.snapshots.backups.are_waiting(),
        };
        let (mut voters, mut connected) = (Vec::new(), Vec::new());
        if matches!(input, Input::Keep) {
            // Nothing else asks for these.
            let peers = group.peers.connected.values().map(|it| it.peer);
            connected = peers
                .map(|it| Reporter::of(it.id, it.incarnation))
                .collect();
            let members = membership.voters();
            voters = members
                .map(|it| Reporter::of(it.id, it.incarnation))
                .collect();
        }
        (around.voters, around.connected) = (&voters, &connected);
        if let Some(keeper) = &mut self.core.service.keeper {
            keeper.step(input, group.store.inner_mut(), &around, &mut wishes);
        }
        wishes
    }

    /// What has become of it, if that is to be said at once.
    fn carry_out_wish(&mut self, wish: Wish) -> Option<Input> {
        match wish {
            Wish::Submit(asked, command) => {
                match asked {
                    Asked::GatewayEnds(it) if it.replica == self.options.id.0 => tracing::info!(
                        "the connections of the clients that this replica had before it started end"
                    ),
                    Asked::GatewayEnds(it) => tracing::warn!(
                        replica = it.replica,
                        "not heard for long: its clients' connections end"
                    ),
                    Asked::Begin | Asked::Cut | Asked::Outputs | Asked::Verdict => {}
                }
                let number = asked.number();
                let is_pending = self.propose(number, &command);
                (!is_pending).then_some(Input::Became(number, Become::NotDone))
            }
            Wish::DropClients(why) => self.drop_clients(why),
            Wish::DrawKey => match new_key() {
                Ok(key) => Some(Input::Key(key)),
                Err(error) => self.fail_without(error),
            },
            Wish::TryProgram => match self.go_on_with_trial() {
                Ok(has_passed) => has_passed.then_some(Input::HasPassed),
                Err(error) => self.fail_without(error),
            },
            Wish::EndTrial => {
                self.core.service.trial = None;
                None
            }
            Wish::TakeSnapshot => {
                group::Driver::take_snapshot(self);
                let is_taking = self.upkeep.snapshots.is_taking();
                is_taking.then_some(Input::SnapshotBegun)
            }
            Wish::GoOn => {
                self.core.group.store.inner_mut().go_on();
                self.core.service.has_doorbell = false;
                None
            }
        }
    }

    fn fail_without(&mut self, why: anyhow::Error) -> Option<Input> {
        self.fail(why);
        None
    }

    fn drop_clients(&mut self, why: WhyGateway) -> Option<Input> {
        match why {
            WhyGateway::Gone => tracing::warn!(
                "the log holds the clients of this replica to be gone: their connections end"
            ),
            WhyGateway::Saves => {
                tracing::warn!("the served program saves itself: its clients' connections end");
            }
        }
        if let Some(clients) = &mut self.core.service.clients {
            clients.drop_all();
        }
        let wall_ms = clock::wall_ms();
        match random_number() {
            Ok(chance) => Some(Input::NextGateway { wall_ms, chance }),
            Err(error) => self.fail_without(error),
        }
    }

    pub(super) fn send_batches(&mut self) {
        let Some(mut keeper) = self.core.service.keeper.take() else {
            return;
        };
        let now = clock::now().0;
        while let Some((number, command)) = keeper.batches.next(now) {
            if !self.propose(number, command) {
                break; // at the next housekeeping
            }
            keeper.batches.sent(number);
        }
        let waits = &mut self.core.service.waits;
        for waited in keeper.batches.waits() {
            waits.record(u64::try_from(waited.as_micros()).unwrap_or(u64::MAX));
        }
        self.core.service.keeper = Some(keeper);
    }

    pub(super) fn completed(&mut self, number: u64, said: AnswerKind, answer: &[u8]) {
        let what = match said {
            AnswerKind::Refused(reason) if reason.executed() == Executed::No => Become::NotDone,
            AnswerKind::Refused(_) => Become::Unknown,
            AnswerKind::Answer | AnswerKind::Repeated => Become::Answered(Answer::decode(answer)),
        };
        self.keeper_hears(Input::Became(number, what));
    }

    /// Goes on with a cut: the program saves itself, a snapshot is taken of that, it begins anew.
    pub(super) fn go_on_with_cut(&mut self) {
        let replay = self.core.group.store.inner_mut();
        let saved = replay.program.as_mut().and_then(Serving::go_on);
        if let Some(saved) = saved.filter(|_| replay.is_saving()) {
            replay.has_saved(saved);
        }
        self.keeper_hears(Input::Turn);
    }

    /// What is to be done every now and then.
    pub(super) fn keep_program(&mut self) {
        if let Some(clients) = &mut self.core.service.clients {
            clients.accept_again();
            clients.cut_closed(clock::now());
            clients.time_out_handshakes(clock::now());
            for port in clients.look_for_ports(&self.core.service.published, clock::now()) {
                tracing::warn!(
                    %port,
                    "the served program does not listen at a port that is published"
                );
            }
        }
        self.send_batches();
        self.tell_verdicts();
        self.tell_health();
        self.keeper_hears(Input::Keep);
    }

    /// Before the log says that the program begins: what does not work then is in no log, from where it would
    /// end every replica again and again. Whether it has passed.
    fn go_on_with_trial(&mut self) -> anyhow::Result<bool> {
        let Some(trial) = &self.core.service.trial else {
            let served = self.options.served.clone();
            let served = served.context("a program is served")?;
            let is_over = Arc::new(AtomicBool::new(false));
            let told = Arc::clone(&is_over);
            let result = elsewhere("try-program", move || {
                try_program(&served, &told, listens_nowhere)
            })?;
            self.core.service.trial = Some(RunningTrial { result, is_over });
            return Ok(false);
        };
        match trial.result.try_recv() {
            Ok(tried) => {
                let tried = tried.context("tried before it is served")?;
                if let Some(name) = tried.known_as {
                    tracing::warn!(
                        name,
                        "the program that runs is one that is known, and is not treated so: its file has another \
                         name. See --save-signal and --serial"
                    );
                }
                self.core.service.trial = None;
                Ok(true)
            }
            Err(TryRecvError::Empty) => Ok(false),
            Err(TryRecvError::Disconnected) => anyhow::bail!("trying the program failed"),
        }
    }

    /// Whether it is on its way into the log.
    fn propose(&mut self, number: u64, command: &[u8]) -> bool {
        let routed = self
            .core
            .write(Origin::Service(number), command.len(), |buffer| {
                buffer.extend_from_slice(command);
            });
        matches!(routed, RouteOutcome::Pending)
    }
}

fn listens_nowhere(program: &str, seconds: u64) {
    tracing::warn!(
        program,
        seconds,
        "the program that is tried listens nowhere yet"
    );
}
