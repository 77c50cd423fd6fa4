//! One replicated log, without I/O: consensus, what is replicated, the data plane that carries the log while one does,
//! and who waits for what. The server and the simulator drive the same code.
//!
//! | file | what |
//! |---|---|
//! | `group` | the group itself: writes into the log, and when a read may be answered |
//! | `apply` | what an entry does to the state machine, command by command, and whom it settles |
//! | `log_time` | the log's time as a leader tells it |
//! | `plane` | the data plane as its group sees it: what waits for it, what it has brought |
//! | `plane_turn` | what the plane has goes to consensus, what clients want goes into the plane |
//! | `proposals` | who waits for a write, from when it has a place in the log until that place is settled |
//!
//! Generic over `S`, the state machine; `O`, where an answer goes (to a connection, to another replica, to a client of the
//! plane: only who drives a group knows); and `P`, where the plane runs. Whoever drives a group shows it its clocks and
//! carries out what gathers in its [`outputs`](Group::outputs).
mod apply;
mod group;
mod log_time;
mod mutants;
mod plane;
mod plane_turn;
mod proposals;

pub use apply::{Applied, Applying, Split, apply, commands_of};
pub use group::{Gate, Group, Submitted};
pub use log_time::{LeaderClock, Overdue};
pub use plane::{
    AnswerTooLong, Asked, Brought, ForeignDropped, Plane, PlaneOptions, QUESTIONS_MAX, Question,
    Request, Submission,
};
pub use plane_turn::PlaneClient;
pub use proposals::{Proposal, Proposals, Settled};
