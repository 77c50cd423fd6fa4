//! Everything that three replicas can do within small bounds is safe, and what must be possible is.
use quorumwire_model::{Bounds, Durability, Handover, Safety};
use quorumwire_search::{Varied, whole};
use stateright::{Checker, Model};

/// The searches together visit at least this many different states.
const STATES_MIN: usize = 1_000_000;

struct Space {
    durability: Durability,
    bounds: Bounds,
    /// What must be possible here.
    reached: &'static [&'static str],
}

const COMMITS: &str = "a fast term commits";
const LEFT: &str = "software commits in a fast term that was left";
const JOINED: &str = "a straggler that joined decides a commit";
const SURVIVES: &str = "a fast leader is deposed and its entries survive";

const SPACES: [Space; 3] = [
    // Two fast terms with a software term between them, or three in a row.
    Space {
        durability: Durability::Memory,
        bounds: Bounds {
            term_max: 4,
            index_max: 2,
            crashes_max: 0,
        },
        reached: &[COMMITS, LEFT, JOINED, SURVIVES],
    },
    // Everything waits for disks.
    Space {
        durability: Durability::Sync,
        bounds: Bounds {
            term_max: 3,
            index_max: 2,
            crashes_max: 0,
        },
        reached: &[COMMITS, LEFT, JOINED, SURVIVES],
    },
    // Somebody crashes. There is no room for a new leader's own entry behind one of the fast term.
    Space {
        durability: Durability::Sync,
        bounds: Bounds {
            term_max: 3,
            index_max: 1,
            crashes_max: 1,
        },
        reached: &[COMMITS, LEFT, JOINED],
    },
];

#[test]
fn every_reachable_state_is_safe() {
    let mut state_count = 0;
    for space in &SPACES {
        state_count += search(space);
    }
    println!("{state_count} unique states in all");
    assert!(state_count >= STATES_MIN, "the model has become too small");
}

/// Six names are the most that a state can go by: if more states became one, the reduction would hide some.
#[test]
fn names_make_no_difference() {
    let bounds = Bounds {
        term_max: 3,
        index_max: 1,
        crashes_max: 0,
    };
    let named = Handover::new(Durability::Memory, bounds)
        .checker()
        .spawn_bfs()
        .join();
    let nameless = Handover::new(Durability::Memory, bounds)
        .nameless()
        .checker()
        .spawn_bfs()
        .join();
    let (named_count, count) = (named.unique_state_count(), nameless.unique_state_count());
    println!("{named_count} states with names, {count} without");
    assert!(count < named_count && named_count <= 6 * count);
    for reached in [COMMITS, LEFT, JOINED] {
        named.assert_any_discovery(reached);
        nameless.assert_any_discovery(reached);
    }
}

/// A crash, and room for a new leader's own entry: too long for every day.
#[test]
#[ignore = "takes many minutes"]
fn a_crash_with_room_for_two_entries_is_safe() {
    search(&Space {
        durability: Durability::Sync,
        bounds: Bounds {
            term_max: 3,
            index_max: 2,
            crashes_max: 1,
        },
        reached: &[COMMITS, LEFT, JOINED, SURVIVES],
    });
}

/// Searches all of a space; how many states it has.
fn search(space: &Space) -> usize {
    let (durability, bounds) = (space.durability, space.bounds);
    let name = format!("{durability:?} {bounds:?}");
    let model = Handover::new(durability, bounds);
    whole(&name, model, &Safety::ALL.map(Safety::name), space.reached)
}
