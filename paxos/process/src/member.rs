//! A member of a deployment: a learner and the proposer beside it, as a part of another program. A thread of
//! its own waits for packets; what the program wants is handed to it.
use crate::deployment_file::DeploymentFile;
use crate::member_error::MemberError;
use crate::station::Station;
use crate::waiting::Bell;
use bytes::Bytes;
use quorumwire_datagrams::Datagrams;
use quorumwire_paxos::{
    Fate, Learner, LearnerOptions, Lives, NotAsked, NotTaken, Proposer, VALUE_BYTES_MAX, Values,
};
use quorumwire_paxos_hosts::{LearnerHost, Since};
use quorumwire_storage::{Disk, FolderDisk, LearnerCheckpoint, LearnerFolder, MemoryDisk};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Values that a program may have submitted and not heard of.
pub const SUBMITTED_MAX: usize = 1024;
/// Bytes of values that may wait to be taken, unless it is said otherwise.
pub const WINDOW_BYTES: usize = 1 << 20;
/// Into so many parts is the window cut, of each of which a state may wait for its checkpoint.
const STATES_MAX: u32 = 16;
/// What holds no value is checkpointed at most this often.
const KEEPING_PAUSE: Duration = Duration::from_millis(50);
/// Where that has failed, it is tried again after this.
const KEEPING_AGAIN_PAUSE: Duration = Duration::from_secs(1);
/// A call that waits for others does so at most this long, unless its program says otherwise.
const DEADLINE: Duration = Duration::from_secs(10);
/// What a value counts beside its bytes.
const VALUE_COUNTS_BYTES: usize = 64;

/// The number of what was decided.
pub type Instance = u64;

/// How a member takes part.
#[derive(Clone, Debug)]
pub struct MemberOptions {
    /// The deployment.
    pub deployment: DeploymentFile,
    /// Which of its learners.
    pub learner: u8,
    /// Where it listens, if that is not the address that the deployment's file gives.
    pub listen: Option<SocketAddr>,
    /// Its folder: what has to be kept with a checkpoint of the program.
    pub dir: PathBuf,
    /// It, where it need not survive the process; `dir` only names it then.
    pub memory: Option<MemoryDisk>,
    /// Begin behind this checkpoint of another learner, unless this one's is further.
    pub begin_behind: Option<LearnerCheckpoint>,
    /// It is given no values: what is decided counts as checkpointed.
    pub only_submits: bool,
    /// Bytes of values that may wait to be taken.
    pub window_bytes: usize,
    /// A call that waits for others does so at most this long.
    pub deadline: Duration,
    /// It looks for packets for so long before it sleeps.
    pub busy_poll: Duration,
}

impl MemberOptions {
    /// A learner that has its folder and address, and takes values as most do.
    #[must_use]
    pub fn new(deployment: DeploymentFile, learner: u8, dir: impl Into<PathBuf>) -> Self {
        Self {
            deployment,
            learner,
            listen: None,
            dir: dir.into(),
            memory: None,
            begin_behind: None,
            only_submits: false,
            window_bytes: WINDOW_BYTES,
            deadline: DEADLINE,
            busy_poll: Duration::ZERO,
        }
    }
}

/// What is decided in an instance.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Recovered {
    /// This value.
    Value(Vec<u8>),
    /// A no-op: what somebody gave who asked.
    NoOp(Vec<u8>),
    /// A piece of a value, or one that was delivered before.
    NoValue,
}

/// What is told of a value that was submitted.
type Done = Box<dyn FnOnce(Result<Instance, MemberError>) + Send>;

enum Command {
    Submit(Vec<u8>, Done),
    Checkpoint(Instance, Sender<Result<(), MemberError>>),
    Recover(Instance, Vec<u8>, Sender<Result<Recovered, MemberError>>),
    BeginBehind(LearnerCheckpoint, Sender<Result<(), MemberError>>),
}

#[derive(Default)]
struct Queues {
    commands: VecDeque<Command>,
    /// Values that were submitted and not settled.
    submitted: usize,
    deliveries: VecDeque<(Instance, Vec<u8>)>,
    waiting_bytes: usize,
    /// The last one that the program took.
    taken: Instance,
    /// What the folder holds.
    kept: LearnerCheckpoint,
    /// Nothing is delivered until all before this comes from somebody else.
    behind: Option<Instance>,
    closed: bool,
}

struct Shared {
    queues: Mutex<Queues>,
    /// Rung when there is something to take, or room.
    changed: Condvar,
    bell: Bell,
    /// Told when there is something to take.
    listener: Mutex<Option<Box<dyn Fn() + Send>>>,
    window_bytes: usize,
    deadline: Duration,
}

impl Shared {
    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.changed.notify_all();
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = &*listener {
            listener();
        }
    }
}

/// A learner and the proposer beside it.
pub struct Member {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Member {
    /// Joins the deployment. What was not checkpointed is delivered again.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn open(options: &MemberOptions) -> Result<Self, MemberError> {
        let deployment = &options.deployment;
        let all = &deployment.addresses.learners;
        let own = all.get(usize::from(options.learner)).copied();
        let own = own.ok_or(MemberError::NoSuchLearner {
            learner: options.learner,
            last: all.len() - 1,
        })?;
        let place = deployment.place(own)?;
        let failed = |error| MemberError::Folder(options.dir.clone(), error);
        let disk: Arc<dyn Disk> = match &options.memory {
            Some(memory) => Arc::new(memory.clone()),
            None => Arc::new(FolderDisk::open(&options.dir).map_err(failed)?),
        };
        let group = deployment.deployment.group;
        let (folder, mut kept) = LearnerFolder::open(disk, group).map_err(failed)?;
        if let Some(other) = &options.begin_behind
            && other.state_at > kept.state_at
        {
            folder.write(other).map_err(failed)?;
            kept.clone_from(other);
        }
        let values = if kept.state.is_empty() {
            Values::default()
        } else {
            Values::from_bytes(&kept.state).map_err(failed)?
        };
        let timing = deployment.timing;
        let learner = LearnerOptions {
            deployment: deployment.deployment,
            me: options.learner,
            patience: timing.retry,
            retry: timing.retry,
            report: 4 * timing.heartbeat,
        };
        let random = || {
            getrandom::u64().map_err(|error| {
                MemberError::System("no random number".to_owned(), io::Error::from(error))
            })
        };
        let configuration = Lives::first(deployment.deployment.acceptors).number();
        let software = Learner::new(learner, configuration, kept.state_at, values, random()?);
        let proposer = Proposer::new(deployment.deployment, 2 * timing.retry, random()?);
        let listen = options.listen.unwrap_or(own);
        let wire = Datagrams::bind(listen)
            .map_err(|error| MemberError::System(format!("cannot listen on {listen}"), error))?;
        let bell =
            Bell::new().map_err(|error| MemberError::System("no eventfd".to_owned(), error))?;
        let shared = Arc::new(Shared {
            queues: Mutex::new(Queues {
                taken: kept.upto,
                kept: kept.clone(),
                ..Queues::default()
            }),
            changed: Condvar::new(),
            bell,
            listener: Mutex::new(None),
            window_bytes: options.window_bytes.max(1),
            deadline: options.deadline,
        });
        let run = MemberThread {
            host: LearnerHost::new(place, software, proposer),
            station: Station::new(wire, None, options.busy_poll),
            folder,
            dir: options.dir.clone(),
            window: deployment.deployment.window,
            only_submits: options.only_submits,
            next_keeping: Duration::ZERO,
            delivered_upto: kept.upto,
            states: VecDeque::new(),
            kept,
            shared: Arc::clone(&shared),
            unsent: VecDeque::new(),
            submitted: BTreeMap::new(),
            recovering: BTreeMap::new(),
        };
        let thread = thread::Builder::new().name("quorumwire".to_owned());
        let thread = thread
            .spawn(move || run.run())
            .map_err(|error| MemberError::System("no thread".to_owned(), error))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Proposes a value, and returns when this learner knows what became of it: its instance.
    ///
    /// # Errors
    /// Why it is not taken, or that nobody knows.
    pub fn submit(&self, value: &[u8]) -> Result<Instance, MemberError> {
        let (tell, told) = channel();
        self.submit_then(value.to_vec(), move |outcome| {
            tell.send(outcome).ok();
        })?;
        self.wait_for(&told)
    }

    fn wait_for<T>(&self, told: &Receiver<Result<T, MemberError>>) -> Result<T, MemberError> {
        match told.recv_timeout(self.shared.deadline) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => Err(match self.shared.queues().behind {
                Some(upto) => MemberError::LateBehind { upto },
                None => MemberError::Late,
            }),
            Err(RecvTimeoutError::Disconnected) => Err(MemberError::Closed),
        }
    }

    /// Proposes a value, and returns at once. What becomes of it is told on the member's thread, which is not
    /// to be kept waiting, and must not be the last to drop the member.
    ///
    /// # Errors
    /// Why it is not taken: mostly, [`SUBMITTED_MAX`] are under way.
    pub fn submit_then(
        &self,
        value: Vec<u8>,
        done: impl FnOnce(Result<Instance, MemberError>) + Send + 'static,
    ) -> Result<(), MemberError> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(MemberError::TooLong { bytes: value.len() });
        }
        let mut queues = self.shared.queues();
        if queues.closed {
            return Err(MemberError::Closed);
        }
        if queues.submitted >= SUBMITTED_MAX {
            return Err(MemberError::TooManySubmitted);
        }
        queues.submitted += 1;
        queues
            .commands
            .push_back(Command::Submit(value, Box::new(done)));
        drop(queues);
        self.shared.bell.ring();
        Ok(())
    }

    /// The next value and its instance, if one comes in this time. It counts as taken.
    ///
    /// # Errors
    /// The learner is behind what others keep, or was closed.
    pub fn next_within(
        &self,
        at_most: Duration,
    ) -> Result<Option<(Instance, Vec<u8>)>, MemberError> {
        let has_none =
            |it: &mut Queues| it.deliveries.is_empty() && it.behind.is_none() && !it.closed;
        let (mut queues, _) = self
            .shared
            .changed
            .wait_timeout_while(self.shared.queues(), at_most, has_none)
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((instance, value)) = queues.deliveries.pop_front() {
            let was_full = queues.waiting_bytes >= self.shared.window_bytes;
            queues.waiting_bytes -= value.len() + VALUE_COUNTS_BYTES;
            queues.taken = instance;
            drop(queues);
            if was_full {
                self.shared.bell.ring();
            }
            return Ok(Some((instance, value)));
        }
        match queues.behind {
            Some(upto) => Err(MemberError::Behind { upto }),
            None if queues.closed => Err(MemberError::Closed),
            None => Ok(None),
        }
    }

    /// Calls this, on the member's thread, whenever there is something to take. It is not to keep that
    /// waiting.
    pub fn listen(&self, listener: impl Fn() + Send + 'static) {
        let mut place = (self.shared.listener.lock()).unwrap_or_else(PoisonError::into_inner);
        *place = Some(Box::new(listener));
    }

    /// The last instance that the program took, or has checkpointed: what it is given next lies behind.
    #[must_use]
    pub fn taken(&self) -> Instance {
        self.shared.queues().taken
    }

    /// What is kept: another learner, whose program has what this one has made of all values up to there,
    /// can begin behind it.
    #[must_use]
    pub fn kept(&self) -> LearnerCheckpoint {
        self.shared.queues().kept.clone()
    }

    /// Goes on behind a checkpoint of another learner, whose program has given this one what it has made of
    /// all values up to there: mostly, because they are kept by nobody else ([`MemberError::Behind`]). Values
    /// that wait to be taken stay. Nothing happens if this learner is further.
    ///
    /// # Errors
    /// The checkpoint is none, or the folder cannot be written.
    pub fn begin_behind(&self, checkpoint: LearnerCheckpoint) -> Result<(), MemberError> {
        let (tell, told) = channel();
        self.ask(Command::BeginBehind(checkpoint, tell), &told)
    }

    /// What the program made of all values up to this instance, which it was given, is safe: they are not
    /// delivered again. What all learners have is forgotten.
    ///
    /// # Errors
    /// It was not delivered yet, or the folder cannot be written.
    pub fn checkpoint(&self, upto: Instance) -> Result<(), MemberError> {
        let (tell, told) = channel();
        self.ask(Command::Checkpoint(upto, tell), &told)
    }

    /// Asks for an instance that was not delivered yet. What was decided comes back; if nothing was, the
    /// no-op is decided. It is delivered, too, when all before it was.
    ///
    /// # Errors
    /// It was delivered before, or is too far away.
    pub fn recover(&self, instance: Instance, no_op: &[u8]) -> Result<Recovered, MemberError> {
        let (tell, told) = channel();
        self.ask(Command::Recover(instance, no_op.to_vec(), tell), &told)
    }

    /// Ends what waits in calls of other threads, and takes part no more. A value whose submission waited may
    /// still be decided ([`MemberError::Unknown`]).
    pub fn close(&self) {
        self.shared.queues().closed = true;
        self.shared.bell.ring();
    }

    fn ask<T>(
        &self,
        command: Command,
        told: &Receiver<Result<T, MemberError>>,
    ) -> Result<T, MemberError> {
        let mut queues = self.shared.queues();
        if queues.closed {
            return Err(MemberError::Closed);
        }
        queues.commands.push_back(command);
        drop(queues);
        self.shared.bell.ring();
        self.wait_for(told)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.close();
        let thread = self.thread.take();
        let thread = thread.filter(|it| it.thread().id() != thread::current().id());
        if let Some(thread) = thread {
            thread.join().ok();
        }
    }
}

struct MemberThread {
    host: LearnerHost,
    station: Station,
    folder: LearnerFolder,
    dir: PathBuf,
    window: u32,
    only_submits: bool,
    /// What the folder holds.
    kept: LearnerCheckpoint,
    /// When it may be written again without the program's doing.
    next_keeping: Duration,
    /// The state behind some of the instances that were learned, for a checkpoint at or behind one of them.
    /// Each small part of the window has one: what is kept is never far from the program's checkpoint.
    states: VecDeque<(Instance, Bytes)>,
    /// The last instance of which the program was given the value, if there was one.
    delivered_upto: Instance,
    shared: Arc<Shared>,
    /// Values for which the proposer has no room yet.
    unsent: VecDeque<(Vec<u8>, Done)>,
    submitted: BTreeMap<u64, Done>,
    recovering: BTreeMap<Instance, Vec<Sender<Result<Recovered, MemberError>>>>,
}

/// However its thread ends, a panic in what a program has it call among them, nobody waits for it any more.
impl Drop for MemberThread {
    fn drop(&mut self) {
        let mut queues = self.shared.queues();
        queues.closed = true;
        let commands = std::mem::take(&mut queues.commands);
        drop(queues);
        self.recovering.clear();
        for command in commands {
            if let Command::Submit(_, done) = command {
                done(Err(MemberError::Closed));
            }
        }
        self.shared.tell();
    }
}

impl MemberThread {
    fn run(mut self) {
        while self.obey() {
            if let Some(now) = self.station.tick() {
                self.host.tick(now, &mut self.station.driver());
                self.see_behind();
                self.keep_what_holds_no_value(now);
            }
            let host = &mut self.host;
            self.station.receive(|now, from, datagram, around| {
                host.receive(now, from, datagram, around);
            });
            self.learn();
            self.station.wire.flush();
            if let Err(error) = self.station.wait(Some(&self.shared.bell)) {
                tracing::error!(%error, "the member cannot wait for packets, and ends");
                break;
            }
        }
        self.host.leave(&mut self.station.driver());
        self.station.wire.flush();
        for (_, done) in std::mem::take(&mut self.submitted) {
            done(Err(MemberError::Unknown));
        }
        for (_, done) in std::mem::take(&mut self.unsent) {
            done(Err(MemberError::Closed));
        }
    }

    /// Does what the program wants; false: it wants nothing any more.
    fn obey(&mut self) -> bool {
        loop {
            let mut queues = self.shared.queues();
            if queues.closed {
                return false;
            }
            let command = queues.commands.pop_front();
            drop(queues);
            match command {
                None => break,
                Some(Command::Submit(value, done)) => self.unsent.push_back((value, done)),
                Some(Command::Checkpoint(upto, tell)) => {
                    let outcome = self.checkpoint(upto);
                    tell.send(outcome).ok();
                }
                Some(Command::BeginBehind(checkpoint, tell)) => {
                    tell.send(self.begin_behind(checkpoint)).ok();
                }
                Some(Command::Recover(instance, no_op, tell)) => {
                    self.recover(instance, &no_op, tell);
                }
            }
        }
        self.submit();
        true
    }

    fn submit(&mut self) {
        let now = self.station.now();
        while let Some((value, done)) = self.unsent.pop_front() {
            let taken = self.host.submit(now, &value, &mut self.station.driver());
            match taken {
                Ok(ticket) => {
                    self.submitted.insert(ticket, done);
                }
                Err(NotTaken::WindowFull) => {
                    self.unsent.push_front((value, done));
                    return;
                }
                Err(NotTaken::TooLong { bytes }) => {
                    self.settled(1);
                    done(Err(MemberError::TooLong { bytes }));
                }
            }
        }
    }

    fn settled(&self, count: usize) {
        if count > 0 {
            self.shared.queues().submitted -= count;
            self.shared.changed.notify_all();
        }
    }

    fn checkpoint(&mut self, upto: Instance) -> Result<(), MemberError> {
        if upto > self.shared.queues().taken {
            return Err(MemberError::NotDelivered(upto));
        }
        if upto <= self.kept.upto {
            return Ok(());
        }
        let learned = self.learned();
        // Behind the last value there may be instances that hold none.
        let last = if upto == self.delivered_upto {
            learned.max(upto)
        } else {
            upto
        };
        if learned <= last {
            self.states.push_back((learned, self.state_now()));
        }
        let mut fitting = None;
        while let Some(state) = self.states.pop_front_if(|(instance, _)| *instance <= last) {
            fitting = Some(state);
        }
        let (state_at, state) =
            fitting.unwrap_or_else(|| (self.kept.state_at, self.kept.state.clone()));
        self.keep(LearnerCheckpoint {
            upto,
            state_at,
            state,
        })?;
        if self.states.is_empty() && learned > state_at {
            self.states.push_back((learned, self.state_now()));
        }
        Ok(())
    }

    fn begin_behind(&mut self, checkpoint: LearnerCheckpoint) -> Result<(), MemberError> {
        let failed = |error| MemberError::Folder(self.dir.clone(), error);
        let values = Values::from_bytes(&checkpoint.state).map_err(failed)?;
        if !self.host.begin_behind(checkpoint.state_at, values) {
            return Ok(());
        }
        self.states.clear();
        self.delivered_upto = self.delivered_upto.max(checkpoint.upto);
        let mut queues = self.shared.queues();
        queues.taken = queues.taken.max(checkpoint.upto);
        drop(queues);
        self.keep(checkpoint)?;
        self.see_behind();
        Ok(())
    }

    fn keep(&mut self, checkpoint: LearnerCheckpoint) -> Result<(), MemberError> {
        let written = self.folder.write(&checkpoint);
        written.map_err(|error| MemberError::Folder(self.dir.clone(), error))?;
        self.host.keep(checkpoint.state_at);
        self.shared.queues().kept.clone_from(&checkpoint);
        self.kept = checkpoint;
        Ok(())
    }

    /// Where the program has checkpointed all that it was given, what came since holds no value for it, and
    /// must not fill the window. What it has checkpointed itself is kept as it said: it compares that with
    /// what it finds when it starts again. Where it is given nothing, nothing fills the window.
    fn keep_what_holds_no_value(&mut self, now: Since) {
        let learned = self.learned();
        let is_all = self.delivered_upto <= self.kept.upto && learned > self.kept.state_at;
        if !is_all || now < self.next_keeping {
            return;
        }
        self.next_keeping = now + KEEPING_PAUSE;
        let upto = if self.only_submits {
            learned
        } else {
            self.kept.upto
        };
        let checkpoint = LearnerCheckpoint {
            upto,
            state_at: learned,
            state: self.state_now(),
        };
        if let Err(error) = self.keep(checkpoint) {
            tracing::error!(%error, "a checkpoint is not written");
            self.next_keeping = now + KEEPING_AGAIN_PAUSE;
        }
        self.states.clear();
    }

    /// The last instance that was given on.
    fn learned(&self) -> Instance {
        self.host.learner().next() - 1
    }

    fn state_now(&self) -> Bytes {
        self.host.learner().values().to_bytes().into()
    }

    fn recover(
        &mut self,
        instance: Instance,
        no_op: &[u8],
        tell: Sender<Result<Recovered, MemberError>>,
    ) {
        let next = self.host.learner().next();
        let now = self.station.now();
        let driver = &mut self.station.driver();
        let error = match self.host.recover(now, instance, no_op, driver) {
            Ok(()) => {
                self.recovering.entry(instance).or_default().push(tell);
                return;
            }
            Err(NotAsked::Given) => MemberError::Delivered(instance),
            Err(NotAsked::TooLong { bytes, bytes_max }) => {
                MemberError::NoOpTooLong { bytes, bytes_max }
            }
            Err(NotAsked::TooMany) => MemberError::TooManyRecoveries,
            Err(NotAsked::Beyond | NotAsked::NoRoundLeft) => MemberError::TooFar {
                instance,
                first: next,
                last: next + u64::from(self.window) - 1,
            },
        };
        tell.send(Err(error)).ok();
    }

    /// Gives on what is decided, as long as the program takes it.
    fn learn(&mut self) {
        let now = self.station.now();
        let mut given = Vec::new();
        let mut room = {
            let waiting = self.shared.queues().waiting_bytes;
            self.shared.window_bytes.saturating_sub(waiting)
        };
        while room > 0 {
            let Some((learned, settled)) = self.host.take(now, &mut self.station.driver()) else {
                break;
            };
            let instance = learned.decided.instance;
            for tell in self.recovering.remove(&instance).unwrap_or_default() {
                tell.send(Ok(match &learned.fate {
                    Fate::Value(value) => Recovered::Value(value.clone()),
                    Fate::NoOp => Recovered::NoOp(learned.decided.payload.clone()),
                    Fate::Repeated | Fate::Piece | Fate::Refused(_) => Recovered::NoValue,
                }))
                .ok();
            }
            if let Fate::Value(value) = learned.fate
                && instance > self.kept.upto
                && !self.only_submits
            {
                room = room.saturating_sub(value.len() + VALUE_COUNTS_BYTES);
                given.push((instance, value));
            }
            self.settled(settled.len());
            for settled in settled {
                if let Some(done) = self.submitted.remove(&settled.ticket) {
                    done(settled.instance.ok_or(MemberError::Unknown));
                }
            }
            let part = Instance::from(self.window / STATES_MAX).max(1);
            if self
                .states
                .back()
                .is_none_or(|(last, _)| instance >= last + part)
            {
                self.states.push_back((instance, self.state_now()));
            }
        }
        let Some((last, _)) = given.last() else {
            return;
        };
        self.delivered_upto = *last;
        let mut queues = self.shared.queues();
        for (instance, value) in given {
            queues.waiting_bytes += value.len() + VALUE_COUNTS_BYTES;
            queues.deliveries.push_back((instance, value));
        }
        drop(queues);
        self.shared.tell();
    }

    fn see_behind(&mut self) {
        let behind = self.host.learner().is_behind();
        if let Some(upto) = behind {
            for tell in std::mem::take(&mut self.recovering).into_values().flatten() {
                tell.send(Err(MemberError::Behind { upto })).ok();
            }
        }
        let mut queues = self.shared.queues();
        if queues.behind != behind {
            queues.behind = behind;
            drop(queues);
            self.shared.tell();
        }
    }
}
