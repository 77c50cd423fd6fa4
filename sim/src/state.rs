//! What is replicated: the product's key-value store, which may be run by code that knows nothing of the time
//! of day; and in some seeds a served program beside it.
use crate::model_program::ModelProgram;
use quorumwire_interfaces::{Application, Applied, Frozen, LogTime};
use quorumwire_kv::Store;
use quorumwire_replay::{Answer, Command, Replay};
use std::cell::Cell;
use std::io::{self, Read as _, Write};
use std::path::Path;

/// Commands of the served program begin with this, and none of the store's do.
const SERVED: u8 = 0xff;
/// A snapshot of both begins with this, and none of the store's does.
const BOTH: [u8; 8] = *b"\0both\0\0\0";

/// The served program, as the log knows it.
pub type ServedReplay = Replay<ModelProgram>;

/// Whether a command is the served program's.
pub fn is_served(command: &[u8]) -> bool {
    command.first() == Some(&SERVED)
}

/// A command of the served program, as it stands in the log.
pub fn served_command(command: &[u8]) -> Vec<u8> {
    [&[SERVED], command].concat()
}

/// The store of one process.
#[derive(Default)]
pub struct State {
    /// The product's.
    pub store: Store,
    /// Its code reads, and tells, only the log's time in a tick.
    pub is_older: bool,
    /// What carries commands out is busy, as another program may be: it takes no more, and gives no snapshot.
    /// No part of the state.
    pub is_occupied: bool,
    /// The served program.
    pub served: Option<Box<ServedReplay>>,
    /// Its batches that came again. No part of the state, as the next.
    pub repeats: u64,
    /// What is frozen is only compared.
    pub is_compared: Cell<bool>,
}

impl State {
    fn apply_served(&mut self, entry: &Applied<'_>, reply: &mut Vec<u8>) {
        let Some(served) = &mut self.served else {
            return;
        };
        let turn = served.turn();
        let command = &entry.command[1..];
        served.apply(&Applied { command, ..*entry }, reply);
        let is_done = Answer::decode(reply) == Some(Answer::Done);
        let is_batch = matches!(Command::decode(command), Ok(Command::Batch { .. }));
        self.repeats += u64::from(is_done && is_batch && served.turn() == turn);
    }
}

/// Both.
struct FrozenBoth {
    store: Box<dyn Frozen>,
    served: Box<dyn Frozen>,
}

impl Frozen for FrozenBoth {
    fn write(&self, writer: &mut dyn Write) -> io::Result<()> {
        let mut store = Vec::new();
        self.store.write(&mut store)?;
        writer.write_all(&BOTH)?;
        writer.write_all(&(store.len() as u64).to_le_bytes())?;
        writer.write_all(&store)?;
        self.served.write(writer)
    }
}

/// What all replicas know alike of a served program, wherever it stands.
struct Compared(Vec<u8>);

impl Frozen for Compared {
    fn write(&self, writer: &mut dyn Write) -> io::Result<()> {
        writer.write_all(&self.0)
    }
}

impl Application for State {
    fn apply(&mut self, entry: &Applied<'_>, reply: &mut Vec<u8>) {
        assert!(!self.is_occupied, "it takes no commands");
        if is_served(entry.command) {
            return self.apply_served(entry, reply);
        }
        self.store.apply(entry, reply);
    }

    fn advance(&mut self, log_time: LogTime) {
        self.store.advance(log_time);
        if let Some(served) = &mut self.served {
            served.advance(log_time);
        }
    }

    fn set_ahead(&mut self, ahead_ms: Option<i64>) {
        if !self.is_older {
            self.store.set_ahead(ahead_ms);
            if let Some(served) = &mut self.served {
                served.set_ahead(ahead_ms);
            }
        }
    }

    fn log_time(&self) -> LogTime {
        self.store.log_time()
    }

    fn ahead_ms(&self) -> Option<i64> {
        self.store.ahead_ms()
    }

    fn reads_time_of_day(&self) -> bool {
        !self.is_older
    }

    fn set_clock(&mut self, time: LogTime) {
        self.store.set_clock(time);
    }

    fn is_overdue(&self, request: &[u8]) -> bool {
        self.store.is_overdue(request)
    }

    fn awaits_time(&self) -> bool {
        self.store.awaits_time()
    }

    fn next_deadline(&self) -> Option<LogTime> {
        let served = self.served.as_ref().and_then(|it| it.next_deadline());
        [self.store.next_deadline(), served]
            .into_iter()
            .flatten()
            .min()
    }

    fn query(&self, request: &[u8], reply: &mut Vec<u8>) {
        self.store.query(request, reply);
    }

    fn takes_commands(&self) -> bool {
        !self.is_occupied && self.served.as_ref().is_none_or(|it| it.takes_commands())
    }

    fn may_freeze(&self) -> bool {
        !self.is_occupied && self.served.as_ref().is_none_or(|it| it.may_freeze())
    }

    fn freeze(&self) -> Box<dyn Frozen> {
        let is_compared = self.is_compared.get();
        assert!(!self.is_occupied || is_compared, "it gives no snapshot");
        let store = self.store.freeze();
        let Some(served) = &self.served else {
            return store;
        };
        let served = if is_compared {
            Box::new(Compared(served.known()))
        } else {
            served.freeze()
        };
        Box::new(FrozenBoth { store, served })
    }

    fn restore(&mut self, reader: &mut dyn io::Read) -> io::Result<()> {
        let mut first = [0; BOTH.len()];
        reader.read_exact(&mut first)?;
        if first != BOTH {
            return self.store.restore(&mut first.chain(reader));
        }
        let mut count = [0; 8];
        reader.read_exact(&mut count)?;
        let mut store = reader.take(u64::from_le_bytes(count));
        self.store.restore(&mut store)?;
        let served = self.served.get_or_insert_default();
        served.keep_files_in(Path::new(""));
        served.restore(reader)
    }
}
