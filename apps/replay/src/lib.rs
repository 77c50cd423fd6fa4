//! A program that was not written for it, as a state machine. The log holds what its clients do: they
//! connect, send, end and go. Each command is one turn of the program. Its output is none of the log's: every
//! replica's program says the same.
//!
//! A gateway is the clients' side of one replica. It numbers its batches, so that each is carried out once
//! and in order, whoever leads and however often it is sent. The program itself is behind [`Program`].
//!
//! What is to go into the log next is decided by a [`Keeper`], which knows no clock, chance or I/O.
mod batches;
mod checker;
mod command;
mod comparison;
mod keeper;
mod mutants;
mod outputs;
mod snapshot;
mod sources;
mod state;
#[cfg(test)]
mod tests;
mod unchecked;

pub use batches::{Batches, NoRoom};
pub use checker::{Checker, CheckerCounters};
pub use command::{Command, Done, EVENTS_MAX, Event, EventWith, Gateway, Malformed};
pub use keeper::{Around, Asked, Become, Input, Keeper, Keeping, WhyGateway, Wish};
pub use outputs::{
    Compared, Judgement, Outputs, Place, Reporter, Verdict, Voter, WINDOW_BYTES, WINDOWS_MAX,
    Window,
};
pub use state::{Answer, Beginning, ClientOf, Program, Replay, Saved, Turn, TurnEvent};
pub use unchecked::Unchecked;
