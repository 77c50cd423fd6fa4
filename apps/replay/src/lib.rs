//! A program that was not written for it, as a state machine. The log holds what its clients do: they
//! connect, send, end and go. Each command is one turn of the program. Its output is none of the log's: every
//! replica's program says the same.
//!
//! A gateway is the clients' side of one replica. It numbers its batches, so that each is carried out once
//! and in order, whoever leads and however often it is sent. The program itself is behind [`Program`].
mod command;
mod mutants;
mod outputs;
mod snapshot;
mod sources;
mod state;
#[cfg(test)]
mod tests;

pub use command::{Command, EVENTS_MAX, Event, Gateway, Malformed};
pub use outputs::{
    Compared, Judgement, Outputs, Place, Reporter, Verdict, Voter, WINDOW_BYTES, WINDOWS_MAX,
    Window,
};
pub use state::{Answer, Beginning, ClientOf, Program, Replay, Saved, Turn, TurnEvent};
