//! One replicated log, without I/O: consensus, what is replicated, the data plane that carries the log while
//! one does, and who waits for what. The server and the simulator drive the same code.
//!
//! | file | what |
//! |---|---|
//! | `group` | the group itself: writes into the log, and when a read may be answered |
//! | `carry_out` | what is done when, in the one order for all who drive a group |
//! | `driver` | who drives a group, and what it does for it: disk, connections, clients, time |
//! | `requester` | who asks, and the name of a request that was passed on |
//! | `order` | what may be done with the requests of one client, which are carried out in the order sent |
//! | `row` | the requests of one client that wait, and how far the reads among them are |
//! | `forwards` | what was passed on to leaders, and whom each answer is for |
//! | `forwarding` | what a follower passes on to the leader, and what that does with it |
//! | `passed_on` | the messages of that |
//! | `waiting` | the reads that wait: for a round, for entries to be applied, for time |
//! | `reads` | how a read comes to wait, and when it may go on |
//! | `peers` | the connections to other replicas, as a group is shown them |
//! | `effects` | what is to be sent |
//! | `sending` | how that comes about |
//! | `apply` | what an entry does to the state machine, command by command, and whom it settles |
//! | `clocks` | what a leader tells the log's time by |
//! | `log_time` | the log's time as a leader tells it |
//! | `plane` | the data plane as its group sees it: what waits for it, what it has brought |
//! | `plane_turn` | what the plane has goes to consensus, what clients want goes into the plane |
//! | `term_keys` | the keys that planes sign with, one for each fast term |
//! | `key_agreement` | whom they are told to, and when the plane is engaged with which |
//! | `proposals` | who waits for a write, from when it has an index in the log until it is known what stands there |
//!
//! Generic over `S`, the state machine; `O`, where an answer goes (to a connection, to another replica, to a
//! client of the plane: only who drives a group knows); and `P`, where the plane runs. Whoever drives a group
//! is a [`Driver`]: it shows the group its clocks and its connections, steps it by what happens, and has
//! [`carry_out_all`] do the rest.
mod apply;
mod carry_out;
mod clocks;
mod driver;
mod effects;
mod forwarding;
mod forwards;
mod group;
mod key_agreement;
mod log_time;
mod mutants;
mod order;
mod passed_on;
mod peers;
mod plane;
mod plane_turn;
mod proposals;
mod reads;
mod requester;
mod row;
mod sending;
mod term_keys;
mod waiting;

pub use apply::{AppliedCommand, Split, apply, commands_of};
pub use carry_out::{
    apply_entry, carry_out, carry_out_all, end_turn, install, keep_house, peer_is_gone, poll_plane,
    serve_ready_reads, take_request,
};
pub use clocks::{LeaderClock, Overdue};
pub use driver::{Driven, Driver, ReaderOf};
pub use effects::Effect;
pub use forwarding::put_in_session;
pub use forwards::{
    Forward, ForwardCounters, ForwardResult, Forwards, LateRequest, REQUEST_TIMEOUT,
};
pub use group::{Gate, Group, SubmitOutcome, TRANSFER_FULL_INTERVAL};
pub use key_agreement::BegunKey;
pub use order::{BeginRead, ReadState};
pub use passed_on::{AnswerKind, ForwardKind, GroupMessage, PassedOn};
pub use peers::{DroppedMessages, PeerConnection, Peers, QUEUE_BYTES_MAX};
pub use plane::{
    AnswerTooLong, Plane, PlaneCounters, PlaneOptions, PlaneOutput, QUESTIONS_MAX, Question,
    Request, StoredRequest, Submission,
};
pub use proposals::{Proposal, Proposals, Settlement};
pub use requester::{AnswerTo, Follower, PlaneClient, RequestId, Requester};
pub use row::{FirstRead, Ordered, Row};
pub use term_keys::{Draw, KeyRefusal, Known, TERM_KEY_BYTES, TermKey, TermKeys};
pub use waiting::{FollowerRead, ReadCounters, Reader, Reads};
