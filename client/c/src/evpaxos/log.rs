//! What is said to people goes through the log of `paxos.h`, as loud as the program wants it. So does what
//! the hosts of the deployment report.
use std::fmt::{self, Write as _};
use std::sync::OnceLock;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber, subscriber};

/// How important something is: the numbers of `paxos_log_level`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum Importance {
    Error = 1,
    Info = 2,
    Debug = 3,
}

/// Writes a line.
type Hook = Box<dyn Fn(Importance, &str) + Send + Sync>;

static HOOK: OnceLock<Hook> = OnceLock::new();

/// From now on, and for as long as the process lives, lines go there.
pub fn begin(hook: Hook) {
    if HOOK.set(hook).is_ok() {
        // Somebody else's stays.
        subscriber::set_global_default(Reports).ok();
    }
}

fn say(importance: Importance, text: &str) {
    if let Some(hook) = HOOK.get() {
        hook(importance, text);
    }
}

pub fn error(text: &str) {
    say(Importance::Error, text);
}

pub fn info(text: &str) {
    say(Importance::Info, text);
}

pub fn debug(text: &str) {
    say(Importance::Debug, text);
}

/// What the hosts report.
struct Reports;

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let written = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            write!(self.fields, " {}={value:?}", field.name())
        };
        written.ok(); // into memory
    }
}

impl Subscriber for Reports {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target().starts_with("quorumwire")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let importance = match *event.metadata().level() {
            Level::ERROR | Level::WARN => Importance::Error,
            _ => Importance::Debug,
        };
        say(importance, &(line.message + &line.fields));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
