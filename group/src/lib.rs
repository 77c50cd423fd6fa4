//! One replicated log, without I/O: consensus, what is replicated, the data plane that carries the log while
//! one does, and who waits for what. The server and the simulator drive the same code.
//!
//! | file | what |
//! |---|---|
//! | `group` | the group itself: writes into the log, and when a read may be answered |
//! | `asker` | who asks, and the name of a request that was passed on |
//! | `order` | what may be done with the requests of one client, which are carried out in the order sent |
//! | `forwarding` | what a follower passes on to the leader, and what that does with it |
//! | `passed_on` | the messages of that |
//! | `reads` | reads that wait: for a round, for entries to be applied, for time |
//! | `peers` | the connections to other replicas, as a group is shown them |
//! | `effects` | what is to be sent |
//! | `apply` | what an entry does to the state machine, command by command, and whom it settles |
//! | `log_time` | the log's time as a leader tells it |
//! | `plane` | the data plane as its group sees it: what waits for it, what it has brought |
//! | `plane_turn` | what the plane has goes to consensus, what clients want goes into the plane |
//! | `proposals` | who waits for a write, from when it has a place in the log until that place is settled |
//!
//! Generic over `S`, the state machine; `O`, where an answer goes (to a connection, to another replica, to a
//! client of the plane: only who drives a group knows); and `P`, where the plane runs. Whoever drives a group
//! shows it its clocks and its connections, and carries out what gathers in its [`outputs`](Group::outputs)
//! and [`effects`](Group::effects).
mod apply;
mod asker;
mod effects;
mod forwarding;
mod group;
mod log_time;
mod mutants;
mod order;
mod passed_on;
mod peers;
mod plane;
mod plane_turn;
mod proposals;
mod reads;

pub use apply::{Applied, Applying, Split, apply, commands_of};
pub use asker::{Asker, Follower, RequestId};
pub use effects::Effect;
pub use forwarding::{Forward, ForwardCounters, Forwards, Late, REQUEST_TIMEOUT, Returned, Taken};
pub use group::{Gate, Group, Submitted};
pub use log_time::{LeaderClock, Overdue};
pub use order::{Around, BeginRead, ReadState, ReadStep};
pub use passed_on::{ForwardKind, Heard, PassedOn, Said};
pub use peers::{Connected, Dropped, Peers, QUEUE_BYTES_MAX};
pub use plane::{
    AnswerTooLong, Asked, Brought, Plane, PlaneCounters, PlaneOptions, QUESTIONS_MAX, Question,
    Request, Submission,
};
pub use plane_turn::PlaneClient;
pub use proposals::{Proposal, Proposals, Settled};
pub use reads::{FollowerRead, ReadCounters, Reader, Reads};
