//! Each check of the engine around the C left out once: the test named beside it must fail then.
use crate::a_question_whose_first_entry_is_lost_leads_to_no_other;
use quorumwire_mutants::activate;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A check, the test that needs it, and that test's name.
type Needed = (&'static str, fn(), &'static str);

const NEEDED: &[Needed] = &[(
    "gap-asked-for-each-packet",
    a_question_whose_first_entry_is_lost_leads_to_no_other,
    "a_question_whose_first_entry_is_lost_leads_to_no_other",
)];

#[test]
fn every_mutant_of_the_engine_is_killed() {
    for (name, test, test_name) in NEEDED {
        test();
        activate(Some(name));
        let noticed = catch_unwind(AssertUnwindSafe(test)).is_err();
        activate(None);
        assert!(noticed, "{name} makes no difference to {test_name}");
        println!("killed {name} by the engine's {test_name}");
    }
}
