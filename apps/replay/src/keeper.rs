//! Keeps a served program: decides what goes into the log next, and what is done to the program. What is
//! decided is a [`Wish`]; whoever has the log, the clients and the program carries it out, in order, and says
//! what became of it as [`Input`]. Time, chance and who is there come in as arguments.
use crate::batches::Batches;
use crate::command::{Command, Gateway};
use crate::comparison::Comparison;
use crate::mutants::mutant;
use crate::outputs::{Reporter, Voter};
use crate::state::{Answer, Program, Replay};
use quorumwire_interfaces::Application as _;
use std::collections::BTreeMap;
use std::time::Duration;

/// A leader that has not heard a replica for so long ends its clients' connections.
const GATEWAY_SILENCE: Duration = Duration::from_secs(5);
/// Who lacks more entries than this does again what the log says, and does not report of it.
const BEHIND_MAX: u64 = 1024;

const BEGIN: u64 = u64::MAX;
const GATEWAY_ENDS: u64 = u64::MAX - 1;
const CUT: u64 = u64::MAX - 2;
const OUTPUTS: u64 = u64::MAX - 3;
const VERDICT: u64 = u64::MAX - 4;

/// What it asks the log for beside batches. One of each is on its way at most.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Asked {
    /// The program begins.
    Begin,
    /// The clients of a replica that is not heard go, or those of this one's process before.
    GatewayEnds(Gateway),
    /// All clients go, and the program saves itself.
    Cut,
    /// What this replica's program has said.
    Outputs,
    /// What becomes of a replica whose program says something else.
    Verdict,
}

impl Asked {
    /// Its number among those of batches.
    #[must_use]
    pub const fn number(self) -> u64 {
        match self {
            Self::Begin => BEGIN,
            Self::GatewayEnds(_) => GATEWAY_ENDS,
            Self::Cut => CUT,
            Self::Outputs => OUTPUTS,
            Self::Verdict => VERDICT,
        }
    }
}

/// What became of what went into the log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Become {
    /// The log says this. None: it is of another version.
    Answered(Option<Answer>),
    /// It is certainly not there.
    NotDone,
    /// Nobody knows.
    Unknown,
}

/// Why clients lose their gateway.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WhyGateway {
    /// The log holds them to be gone.
    Gone,
    /// The program saves itself.
    Saves,
}

/// What it wants done.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Wish {
    /// This goes into the log.
    Submit(Asked, Vec<u8>),
    /// A key is drawn, see [`Input::Key`].
    DrawKey,
    /// All clients' connections end. Another gateway is drawn, see [`Input::NextGateway`].
    DropClients(WhyGateway),
    /// The program is tried where it can do no harm, if it is not yet; see [`Input::HasPassed`].
    TryProgram,
    /// The program has begun: a trial that runs is over.
    EndTrial,
    /// A snapshot is taken of what the program has saved; see [`Input::SnapshotBegun`].
    TakeSnapshot,
    /// The program begins from what it has saved.
    GoOn,
}

/// What has happened.
#[derive(Clone, Copy, Debug)]
pub enum Input {
    /// A turn has ended, in which entries of the log may have been carried out.
    Turn,
    /// It is time to look at everything.
    Keep,
    /// What became of a batch, or of what was [`Asked`] for.
    Became(u64, Become),
    /// Another gateway begins at this time of day; chance tells it from others.
    NextGateway {
        /// In milliseconds since 1970.
        wall_ms: u64,
        /// Drawn.
        chance: u64,
    },
    /// What all chance of the program is to follow from.
    Key([u8; 32]),
    /// The program works, as far as one can try.
    HasPassed,
    /// Somebody wants a state of the program, which is there only at a cut.
    StateWanted,
    /// A snapshot is being taken of the state at hand.
    SnapshotBegun,
    /// The server begins with the state at hand: it has no client yet.
    Begins,
    /// The state at hand is one from elsewhere.
    StateReplaced,
}

/// Who and what is there.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    /// Since any point of time.
    pub now: Duration,
    /// This replica leads.
    pub leads: bool,
    /// Somebody does.
    pub is_led: bool,
    /// So many entries are committed and not carried out here.
    pub lacks: u64,
    /// So many members.
    pub members: u16,
    /// Those that vote. Asked for with [`Input::Keep`] only, as the next.
    pub voters: &'a [Reporter],
    /// Replicas that are connected, in the lives in which they are.
    pub connected: &'a [Reporter],
    /// Somebody waits for a backup.
    pub is_backup_wanted: bool,
}

impl Around<'_> {
    /// Whether this voter is connected. One that is in another life is none yet, and nobody can count on it.
    fn hears(&self, voter: Reporter) -> bool {
        let is_any = mutant("heard-in-another-life");
        let mut connected = self.connected.iter();
        connected.any(|it| *it == voter || is_any && it.replica == voter.replica)
    }
}

/// How a program is kept.
#[derive(Clone, Copy, Debug)]
pub struct Keeping {
    /// The signal upon which it saves itself and ends; none: it cannot.
    pub save_signal: Option<u8>,
    /// It does so when so many bytes stand in the log behind the last time.
    pub cut_log_bytes: u64,
}

/// It. What clients have done is put into its [`batches`](Self::batches).
pub struct Keeper {
    keeping: Keeping,
    /// On their way into the log.
    pub batches: Batches,
    has_passed: bool,
    begins: bool,
    ends: bool,
    cuts: bool,
    judges: bool,
    is_state_wanted: bool,
    /// The last cut that clients were told of, and the last one of which a snapshot is taken.
    told_cut: u64,
    taken_cut: u64,
    /// When replicas were heard last.
    heard: BTreeMap<u16, Duration>,
    /// What the log says has been done up to now, once.
    has_caught_up: bool,
    comparison: Comparison,
}

impl Keeper {
    /// For a replica whose first gateway this is.
    #[must_use]
    pub fn new(gateway: Gateway, keeping: Keeping) -> Self {
        Self {
            keeping,
            batches: Batches::new(gateway),
            has_passed: false,
            begins: false,
            ends: false,
            cuts: false,
            judges: false,
            is_state_wanted: false,
            told_cut: 0,
            taken_cut: 0,
            heard: BTreeMap::new(),
            has_caught_up: false,
            comparison: Comparison::default(),
        }
    }

    /// Whether the program can save itself.
    #[must_use]
    pub const fn makes_states(&self) -> bool {
        self.keeping.save_signal.is_some()
    }

    /// Something has happened: what is to be done.
    pub fn step<P: Program>(
        &mut self,
        input: Input,
        replay: &mut Replay<P>,
        around: &Around<'_>,
        wishes: &mut Vec<Wish>,
    ) {
        match input {
            Input::Turn => self.look_at_cut(replay, wishes),
            Input::Keep => self.keep(replay, around, wishes),
            Input::Became(number, what) => self.became((number, what), replay, around, wishes),
            Input::NextGateway { wall_ms, chance } => {
                let own = self.batches.gateway();
                let last = own.number.max(replay.newest_of(own.replica));
                let next = Gateway::next(own.replica, last, wall_ms, chance);
                self.batches = self.batches.followed_by(next);
            }
            Input::Key(key) => {
                if !self.begins && !replay.has_begun() {
                    self.begins = true;
                    submit(wishes, Asked::Begin, &Command::Begin { key });
                }
            }
            Input::HasPassed => self.has_passed = true,
            Input::StateWanted => self.is_state_wanted |= self.makes_states(),
            Input::SnapshotBegun | Input::StateReplaced => self.taken_cut = replay.cut(),
            Input::Begins => (self.told_cut, self.taken_cut) = (replay.cut(), replay.cut()),
        }
    }

    /// With a cut the log holds all clients to be gone.
    fn look_at_cut<P: Program>(&mut self, replay: &Replay<P>, wishes: &mut Vec<Wish>) {
        let cut = replay.cut();
        if std::mem::replace(&mut self.told_cut, cut) != cut {
            self.is_state_wanted = false;
            wishes.push(Wish::DropClients(WhyGateway::Saves));
        }
    }

    fn keep<P: Program>(
        &mut self,
        replay: &mut Replay<P>,
        around: &Around<'_>,
        wishes: &mut Vec<Wish>,
    ) {
        // Clients that have nothing to say learn so, and not from an answer, that they are gone.
        let is_ended = replay.has_ended(self.batches.gateway());
        if is_ended && self.told_cut == replay.cut() && !mutant("silent-clients-stay") {
            wishes.push(Wish::DropClients(WhyGateway::Gone));
        }
        self.keep_cut(replay, around, wishes);
        self.compare_outputs(replay, around, wishes);
        for it in around.connected {
            self.heard.insert(it.replica, around.now);
        }
        if replay.has_begun() && !self.has_passed {
            self.has_passed = true; // another leader has tried it
            wishes.push(Wish::EndTrial);
        }
        if replay.has_begun() {
            self.end_gateway(replay, around, wishes);
        } else if around.leads && !self.begins {
            let next = if self.has_passed {
                Wish::DrawKey
            } else {
                Wish::TryProgram
            };
            wishes.push(next);
        }
    }

    fn keep_cut<P: Program>(
        &mut self,
        replay: &Replay<P>,
        around: &Around<'_>,
        wishes: &mut Vec<Wish>,
    ) {
        if replay.may_freeze() {
            // Whoever waited for a state has had it, once a snapshot is taken of it.
            let is_taken = self.taken_cut == replay.cut();
            wishes.push(if is_taken {
                Wish::GoOn
            } else {
                Wish::TakeSnapshot
            });
            return;
        }
        let is_long = replay.bytes_since_cut() > self.keeping.cut_log_bytes && around.leads;
        let is_wanted = self.is_state_wanted || around.is_backup_wanted;
        let Some(signal) = self.keeping.save_signal.filter(|_| is_long || is_wanted) else {
            return;
        };
        if replay.has_begun() && !replay.is_saving() && !self.cuts {
            self.cuts = true;
            let behind = replay.cut();
            submit(wishes, Asked::Cut, &Command::Cut { behind, signal });
        }
    }

    /// Ends one whose clients are gone: the one before this replica's own, of which a batch was late or whose
    /// process is gone; and of a leader those that nobody hears.
    fn end_gateway<P: Program>(
        &mut self,
        replay: &Replay<P>,
        around: &Around<'_>,
        wishes: &mut Vec<Wish>,
    ) {
        if self.ends || !around.is_led || around.lacks > BEHIND_MAX {
            return;
        }
        let (own, now) = (self.batches.gateway(), around.now);
        let heard = &mut self.heard;
        let gone = replay.gateways().find(|gateway| {
            if gateway.replica == own.replica {
                return gateway.number < own.number && !mutant("gateway-before-stays");
            }
            let heard = *heard.entry(gateway.replica).or_insert(now);
            around.leads && now.saturating_sub(heard) >= GATEWAY_SILENCE
        });
        if let Some(gateway) = gone {
            self.ends = true;
            let command = Command::GatewayEnds(gateway);
            submit(wishes, Asked::GatewayEnds(gateway), &command);
        }
    }

    /// Reports what this replica's program has said, and judges who differs if this replica leads.
    fn compare_outputs<P: Program>(
        &mut self,
        replay: &mut Replay<P>,
        around: &Around<'_>,
        wishes: &mut Vec<Wish>,
    ) {
        if !replay.has_begun() || replay.is_outvoted() {
            return;
        }
        if around.is_led && around.lacks <= BEHIND_MAX {
            self.report_outputs(replay, around, wishes);
        }
        if around.leads {
            self.judge_outputs(replay, around, wishes);
        } else {
            self.comparison.forget();
        }
    }

    fn report_outputs<P: Program>(
        &mut self,
        replay: &mut Replay<P>,
        around: &Around<'_>,
        wishes: &mut Vec<Wish>,
    ) {
        let last_turn = replay.outputs().last_turn();
        let reporter = replay.reporter;
        let checker = replay.program.as_mut().map(P::checker);
        let (Some(checker), Some(reporter)) = (checker, reporter) else {
            return;
        };
        if !std::mem::replace(&mut self.has_caught_up, true) {
            checker.skip_before(last_turn);
        }
        if let Some(windows) = checker.next_report(around.now) {
            let command = Command::Outputs {
                reporter,
                members: around.members,
                windows,
            };
            submit(wishes, Asked::Outputs, &command);
        }
    }

    fn judge_outputs<P: Program>(
        &mut self,
        replay: &Replay<P>,
        around: &Around<'_>,
        wishes: &mut Vec<Wish>,
    ) {
        if self.judges || !self.comparison.is_due(around.now) {
            return;
        }
        let outputs = replay.outputs();
        let Some(reporter) = replay.reporter.filter(|_| outputs.are_disputed()) else {
            return self.comparison.forget();
        };
        let comparison = &mut self.comparison;
        comparison.see(outputs.undecided(reporter), around.now);
        let is_overdue = |place| comparison.is_overdue(place, around.now);
        let voters = around.voters.iter().map(|it| Voter {
            reporter: *it,
            is_heard: *it == reporter || around.hears(*it),
        });
        let voters: Vec<_> = voters.collect();
        if let Some(verdict) = outputs.next_verdict((reporter, &voters), is_overdue) {
            self.judges = true;
            submit(
                wishes,
                Asked::Verdict,
                &Command::Verdict { verdict, voters },
            );
        }
    }

    fn became<P: Program>(
        &mut self,
        (number, what): (u64, Become),
        replay: &mut Replay<P>,
        around: &Around<'_>,
        wishes: &mut Vec<Wish>,
    ) {
        match number {
            BEGIN => self.begins = false,
            GATEWAY_ENDS => self.ends = false,
            CUT => self.cuts = false,
            VERDICT => self.judges = false,
            OUTPUTS => {
                let is_done = what == Become::Answered(Some(Answer::Done));
                if let Some(program) = &mut replay.program {
                    program.checker().report_ended(is_done);
                }
            }
            batch => {
                let goes_on = self.batch_became(batch, what, around.now);
                if !goes_on {
                    wishes.push(Wish::DropClients(WhyGateway::Gone));
                }
            }
        }
    }

    /// Whether the log still knows the gateway.
    fn batch_became(&mut self, number: u64, what: Become, now: Duration) -> bool {
        match what {
            Become::NotDone => self.batches.refused(number),
            Become::Unknown | Become::Answered(None) => self.batches.went_astray(number, now),
            Become::Answered(Some(answer)) => return self.batches.answered(number, answer, now),
        }
        true
    }
}

fn submit(wishes: &mut Vec<Wish>, asked: Asked, command: &Command<'_>) {
    wishes.push(Wish::Submit(asked, command.encode()));
}

#[cfg(test)]
#[path = "keeper_test.rs"]
pub mod tests;
