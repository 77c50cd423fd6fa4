//! Each check of storage left out once: the test named beside it must fail then, and only then. The
//! simulator hunts them, too; damage that needs an exact place is found here only.
use crate::{damage, power_cuts, snapshots, syncs, votes, writer};
use quorumwire_mutants::{activate, reached};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A check, the test that needs it, and that test's name. The tests do all their work on one thread.
type Needed = (&'static str, fn(), &'static str);

const CUTS: fn() = power_cuts::what_was_reported_durable_survives_every_power_cut;
const CUTS_NAME: &str = "power_cuts::what_was_reported_durable_survives_every_power_cut";

const NEEDED: &[Needed] = &[
    ("acknowledged-before-sync", CUTS, CUTS_NAME),
    ("base-not-written", CUTS, CUTS_NAME),
    (
        "compacted-beyond-the-snapshot",
        writer::nothing_is_removed_that_no_snapshot_in_the_folder_covers,
        "writer::nothing_is_removed_that_no_snapshot_in_the_folder_covers",
    ),
    (
        "compacted-what-was-replaced",
        writer::a_segment_stays_while_a_later_one_drops_what_it_ends_with,
        "writer::a_segment_stays_while_a_later_one_drops_what_it_ends_with",
    ),
    (
        "compacted-what-will-be-replaced",
        writer::what_waits_to_replace_entries_is_not_cut_off,
        "writer::what_waits_to_replace_entries_is_not_cut_off",
    ),
    (
        "failed-sync-tried-again",
        syncs::every_sync_that_fails_is_final,
        "syncs::every_sync_that_fails_is_final",
    ),
    (
        "later-batches-not-looked-for",
        damage::without_the_mark_only_the_last_batch_is_in_doubt,
        "damage::without_the_mark_only_the_last_batch_is_in_doubt",
    ),
    (
        "mark-not-looked-at",
        damage::files_cut_short_are_seen,
        "damage::files_cut_short_are_seen",
    ),
    ("replaced-entries-stay", CUTS, CUTS_NAME),
    ("segment-name-not-synced", CUTS, CUTS_NAME),
    (
        "snapshot-not-checked",
        snapshots::a_received_snapshot_with_any_wrong_byte_is_refused,
        "snapshots::a_received_snapshot_with_any_wrong_byte_is_refused",
    ),
    ("snapshot-not-synced", CUTS, CUTS_NAME),
    (
        "torn-end-stays",
        writer::nothing_behind_a_torn_place_comes_back_later,
        "writer::nothing_behind_a_torn_place_comes_back_later",
    ),
    (
        "unsynced-not-written-again",
        power_cuts::after_a_failed_sync_nothing_is_trusted_that_is_not_written_again,
        "power_cuts::after_a_failed_sync_nothing_is_trusted_that_is_not_written_again",
    ),
    ("vote-not-written", CUTS, CUTS_NAME),
    (
        "vote-said-before-sync",
        votes::what_was_synced_survives_every_power_cut,
        "votes::what_was_synced_survives_every_power_cut",
    ),
    (
        "what-later-batches-cover-is-cut",
        votes::what_a_later_batch_covers_is_not_cut_off,
        "votes::what_a_later_batch_covers_is_not_cut_off",
    ),
    (
        "what-the-mark-covers-is-cut",
        votes::every_damage_to_what_was_durable_is_seen,
        "votes::every_damage_to_what_was_durable_is_seen",
    ),
];

#[test]
fn every_check_is_needed() {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut wrong = Vec::new();
    for (name, test, test_name) in NEEDED {
        activate(Some(name));
        let noticed = catch_unwind(AssertUnwindSafe(test)).is_err();
        let was_reached = reached();
        activate(None);
        if noticed && was_reached {
            println!("killed {name} by storage's {test_name}");
        } else {
            wrong.push(format!("{name}: {test_name}, reached: {was_reached}"));
        }
    }
    std::panic::set_hook(quiet);
    assert!(wrong.is_empty(), "not noticed: {wrong:#?}");
}

#[test]
fn with_every_check_the_same_tests_hold() {
    activate(None);
    let mut done: Vec<&str> = Vec::new();
    for (_, test, test_name) in NEEDED {
        if !done.contains(test_name) {
            test();
            done.push(test_name);
        }
    }
    assert!(!reached());
}
