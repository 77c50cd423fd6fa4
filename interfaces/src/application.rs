//! What is replicated.
use crate::LogTime;
use std::io;
use std::path::Path;

/// One committed command, handed to [`Application::apply`] in log order.
#[derive(Clone, Copy, Debug)]
pub struct Applied<'a> {
    /// Grows from command to command, and is at least the index of the log entry it stands in, of which some
    /// hold several.
    pub number: u64,
    /// The log's time at that index: what the tick before it said.
    pub log_time: LogTime,
    /// Whether that tick may be long past. Then what counts from the moment of this command counts from
    /// the next [`advance`](Application::advance).
    pub awaits_time: bool,
    /// The command, as the application encoded it.
    pub command: &'a [u8],
}

/// What a group replicates. All replicas apply the same commands in the same order; what `apply` does may
/// depend on nothing but its arguments and earlier calls.
///
/// Four methods make one. The others are for an application that knows time, or whose work could keep others
/// waiting. What they do by themselves suits one without.
pub trait Application: Send {
    /// Runs one committed command and appends the answer for its client to `reply`. Called once per
    /// command on every replica; a command that makes no sense must be answered, never panic.
    fn apply(&mut self, entry: &Applied<'_>, reply: &mut Vec<u8>);

    /// Answers a read without changing anything.
    fn query(&self, request: &[u8], reply: &mut Vec<u8>);

    /// Whether it takes another entry's commands now. False: those that it has are still on their way to
    /// where they are carried out, such as another program. Whoever drives the group asks again in every
    /// turn, and wakes up when that may have changed; what is committed waits until then.
    fn takes_commands(&self) -> bool {
        true
    }

    /// Whether clients' commands are for it: those that belong to a session, or come by a data plane. Always
    /// the same. False: they are refused, as if they made no sense.
    fn takes_clients(&self) -> bool {
        true
    }

    /// Whether [`freeze`](Self::freeze) may be called now. False: the state of this moment is nowhere to be
    /// had, as of another program that saves itself at moments of its own. It is asked again later.
    fn may_freeze(&self) -> bool {
        true
    }

    /// Takes the state of this moment, cheaply, to be written by another thread while `apply` goes on.
    fn freeze(&self) -> Box<dyn Frozen>;

    /// Replaces the state by one that [`Frozen::write`] wrote. On an error the state is unusable until
    /// a later `restore` succeeds.
    fn restore(&mut self, reader: &mut dyn io::Read) -> io::Result<()>;

    /// The log's time moves on without a command: whatever was to end by then ends now.
    fn advance(&mut self, _log_time: LogTime) {}

    /// By how much the log's time is ahead of the time of day from here on, in milliseconds. `None`, as at
    /// first: the log does not say, and both count as one. Part of the state of who keeps it: a point of time
    /// that a command names is one of the time of day.
    fn set_ahead(&mut self, _ahead_ms: Option<i64>) {}

    /// Where files may be kept that belong to the state, and are too large for memory: the replica's folder.
    /// Told once, before [`restore`](Self::restore).
    fn keep_files_in(&mut self, _folder: &Path) {}

    /// The log's time, as of the last [`advance`](Self::advance) or of the snapshot that was restored since;
    /// 0 of an application that does not keep it.
    fn log_time(&self) -> LogTime {
        LogTime(0)
    }

    /// As [`set_ahead`](Self::set_ahead) was told last, or as the snapshot says that was restored since;
    /// `None` of an application that does not keep it.
    fn ahead_ms(&self) -> Option<i64> {
        None
    }

    /// Whether the log is to say what the time of day is. It need not for commands that name no point of
    /// time. One that says so keeps what [`set_ahead`](Self::set_ahead) tells.
    fn reads_time_of_day(&self) -> bool {
        false
    }

    /// Reads are answered as of this moment of the leader's clock from now on, or as of the log's time if
    /// that is later. Not part of the state.
    fn set_clock(&mut self, _time: LogTime) {}

    /// Whether the answer to a read may show what is over by that clock, but not yet in the log's time: then
    /// the log is to say first what time it is. Takes what [`query`](Self::query) takes.
    fn is_overdue(&self, _request: &[u8]) -> bool {
        false
    }

    /// Whether something applied since the last [`advance`](Self::advance) counts from the next one: then
    /// the log's time is to move soon. Not part of the state.
    fn awaits_time(&self) -> bool {
        false
    }

    /// The next log time at which [`advance`](Self::advance) would change what a query shows; `None`
    /// while nothing waits for time.
    fn next_deadline(&self) -> Option<LogTime> {
        None
    }

    /// Whether the answer to this command may show what time it is, or what time is left: then the log says
    /// it just before.
    #[must_use]
    fn shows_time(_command: &[u8]) -> bool
    where
        Self: Sized,
    {
        false
    }

    /// Work done here since the process started, in bytes that were looked at or moved. It counts what
    /// commands, reads and the log's time made the application do, also what was refused, and what others
    /// counted for it. 0, always: it counts nothing, and the clock is looked at after each
    /// command and read.
    fn work_done(&self) -> u64 {
        0
    }

    /// Counts work that somebody else did for a client.
    fn add_work(&self, _work: usize) {}

    /// What a command is likely to be in work, beside its own bytes: 0 if that is little.
    fn work_of(&self, _command: &[u8]) -> usize {
        0
    }

    /// The same for what [`query`](Self::query) takes.
    fn work_of_query(&self, _request: &[u8]) -> usize {
        0
    }

    /// What a command is in work at most, whatever the state is by then.
    #[must_use]
    fn work_max_of(_command: &[u8]) -> usize
    where
        Self: Sized,
    {
        0
    }

    /// Bytes that the state takes in memory, by estimate: what it takes to free it. 0: little.
    fn memory_bytes(&self) -> u64 {
        0
    }
}

/// The state of an application at one moment.
pub trait Frozen: Send {
    /// Writes the state as bytes that `restore` reads, the same bytes for the same state on every
    /// replica.
    fn write(&self, writer: &mut dyn io::Write) -> io::Result<()>;
}
