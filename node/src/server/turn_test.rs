//! The order of work within a turn of the server.
use super::start::tests::Alone;
use super::*;

/// Turns in which a leader that nobody asks has nothing to apply, at least once.
const TURNS_MAX: usize = 100;

/// Otherwise a voter's promise would count from before it heard its leader, and end before the leader expects.
#[test]
fn what_replicas_have_said_was_said_before_now() {
    let mut alone = Alone::leading();
    let server = &mut alone.server;
    for _ in 0..TURNS_MAX {
        let applied = server.core.group.applied;
        server.turn(&Events::with_capacity(1)).unwrap();
        if server.core.group.applied == applied {
            assert!(server.core.group.now > server.clients.turn_began());
            return;
        }
    }
    panic!("it applies something in each turn");
}
