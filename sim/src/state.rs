//! What is replicated: the product's key-value store, which may be run by code that knows nothing of the time
//! of day; and in some seeds a served program, or values for learners, beside it.
use crate::model_program::ModelProgram;
use quorumwire_deliver::Values;
use quorumwire_interfaces::{Application, Applied, Frozen, LogTime};
use quorumwire_kv::Store;
use quorumwire_replay::{Answer, Command, Replay};
use std::cell::Cell;
use std::io::{self, Read as _, Write};
use std::path::Path;

/// Commands of the served program begin with this, and none of the store's do.
const SERVED: u8 = 0xff;
/// Those of values for learners begin with this.
const VALUES: u8 = 0xfe;
/// A snapshot of both begins with this, and none of the store's does.
const BOTH: [u8; 8] = *b"\0both\0\0\0";
/// One with values for learners.
const BOTH_WITH_VALUES: [u8; 8] = *b"\0values\0";

/// The served program, as the log knows it.
pub type ServedReplay = Replay<ModelProgram>;

/// Whether a command is of what stands beside the store.
pub fn is_beside_the_store(command: &[u8]) -> bool {
    matches!(command.first(), Some(&(SERVED | VALUES)))
}

/// A command of the served program, as it stands in the log.
pub fn served_command(command: &[u8]) -> Vec<u8> {
    [&[SERVED], command].concat()
}

/// A command of values for learners, as it stands in the log.
pub fn values_command(command: &[u8]) -> Vec<u8> {
    [&[VALUES], command].concat()
}

/// A command of values for learners that was carried out.
pub struct Carried {
    /// Its number.
    pub number: u64,
    pub command: Vec<u8>,
    /// None: one that makes no sense.
    pub answer: Option<quorumwire_deliver::Answer>,
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
    /// The values for learners.
    pub values: Option<Box<Values>>,
    /// What became of the last commands of these. No part of the state, as the next.
    pub carried: Vec<Carried>,
    /// The served program's batches that came again.
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

    fn apply_values(&mut self, entry: &Applied<'_>, reply: &mut Vec<u8>) {
        let Some(values) = &mut self.values else {
            return;
        };
        let command = &entry.command[1..];
        values.apply(&Applied { command, ..*entry }, reply);
        self.carried.push(Carried {
            number: entry.number,
            command: command.to_vec(),
            answer: quorumwire_deliver::Answer::decode(reply).ok(),
        });
    }
}

/// Both.
struct FrozenBoth {
    head: [u8; BOTH.len()],
    store: Box<dyn Frozen>,
    beside: Box<dyn Frozen>,
}

impl Frozen for FrozenBoth {
    fn write(&self, writer: &mut dyn Write) -> io::Result<()> {
        let mut store = Vec::new();
        self.store.write(&mut store)?;
        writer.write_all(&self.head)?;
        writer.write_all(&(store.len() as u64).to_le_bytes())?;
        writer.write_all(&store)?;
        self.beside.write(writer)
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
        match entry.command.first() {
            Some(&SERVED) => self.apply_served(entry, reply),
            Some(&VALUES) => self.apply_values(entry, reply),
            Some(_) | None => self.store.apply(entry, reply),
        }
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
        let (head, beside) = match (&self.served, &self.values) {
            (None, None) => return store,
            (None, Some(values)) => (BOTH_WITH_VALUES, values.freeze()),
            (Some(served), _) if is_compared => (BOTH, Box::new(Compared(served.known())) as _),
            (Some(served), _) => (BOTH, served.freeze()),
        };
        Box::new(FrozenBoth {
            head,
            store,
            beside,
        })
    }

    fn restore(&mut self, reader: &mut dyn io::Read) -> io::Result<()> {
        let mut first = [0; BOTH.len()];
        reader.read_exact(&mut first)?;
        if first != BOTH && first != BOTH_WITH_VALUES {
            return self.store.restore(&mut first.chain(reader));
        }
        let mut count = [0; 8];
        reader.read_exact(&mut count)?;
        let mut store = reader.take(u64::from_le_bytes(count));
        self.store.restore(&mut store)?;
        if first == BOTH_WITH_VALUES {
            return self.values.get_or_insert_default().restore(reader);
        }
        let served = self.served.get_or_insert_default();
        served.keep_files_in(Path::new(""));
        served.restore(reader)
    }
}
