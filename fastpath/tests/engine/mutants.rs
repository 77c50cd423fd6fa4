//! Each check of the engine around the C left out once: the test named beside it must fail then.
use quorumwire_mutants::{activate, reached};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A check, the test that needs it, and that test's name.
type Needed = (&'static str, fn(), &'static str);

macro_rules! needed {
    ($($check:literal by $test:ident,)+) => {
        &[$(($check, crate::$test, stringify!($test)),)+]
    };
}

const NEEDED: &[Needed] = needed! {
    "gap-asked-for-each-packet" by a_question_whose_first_entry_is_lost_leads_to_no_other,
    "checksum-not-looked-at" by a_payload_that_was_changed_on_the_way_to_the_signer_is_refused,
    "engaged-twice" by a_grant_does_not_take_the_place_of_one_in_force,
    "engaged-before-all-was-taken" by a_new_term_begins_only_when_the_last_one_was_taken,
    "engaged-without-keys" by grants_that_make_no_sense_are_refused,
    "engaged-for-another-group" by grants_that_make_no_sense_are_refused,
    "released-before-taken" by only_what_was_taken_is_released,
    "handed-over-from-another-group" by an_engine_that_is_off_hands_requests_to_its_host,
    "handed-over-though-no-clients" by pieces_without_a_session_are_taken_by_nobody,
};

#[test]
fn every_mutant_of_the_engine_is_killed() {
    for (name, test, test_name) in NEEDED {
        test();
        activate(Some(name));
        let noticed = catch_unwind(AssertUnwindSafe(test)).is_err();
        let reached = reached();
        activate(None);
        assert!(reached, "{name} was never reached by {test_name}");
        assert!(noticed, "{name} makes no difference to {test_name}");
        println!("killed {name} by the engine's {test_name}");
    }
}
