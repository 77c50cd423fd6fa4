//! Each of the programs' own checks, and of what their host does, left out once: the test named beside it
//! must fail then.
use quorumwire_mutants::{activate, reached};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A check, the test that needs it, and that test's name.
type Needed = (&'static str, fn(), &'static str);

macro_rules! needed {
    ($($check:literal by $module:ident::$test:ident,)+) => {
        &[$(($check, $module::$test, concat!(stringify!($module), "::", stringify!($test))),)+]
    };
}

/// The tests themselves, with as much of what they do as it takes: of some less than otherwise, of others
/// more.
mod so_much {
    use crate::veth::Way;
    use std::time::Duration;

    pub fn boxes() {
        crate::boxes::compared();
    }

    pub fn differential() {
        crate::differential::compare(30_000);
    }

    pub fn forged() {
        crate::forged::nothing_is_taken_or_answered(Way::V4, true, 100_000);
    }

    pub fn hammered() {
        crate::hammered_leader::copies_left_before(300, Duration::from_secs(30));
    }

    pub fn stale() {
        crate::at_once::none_is_taken_of_an_earlier_of(20_000);
    }

    pub fn steps() {
        crate::hammered_leader::steps_are_over_before(10_000, Duration::from_secs(30));
    }

    pub fn taken() {
        crate::at_once::none_is_taken_torn_of(400_000);
    }

    pub fn torn() {
        crate::at_once::no_entry_leaves_torn_within(Duration::from_secs(10));
    }
}
use crate::{alone, at_once, copies, memcached, tagged, time_namespaces, wakes};

const NEEDED: &[Needed] = needed! {
    "xdp-tag" by so_much::forged,
    "xdp-checksum" by so_much::forged,
    "xdp-address" by so_much::forged,
    "xdp-pieces" by so_much::forged,
    "xdp-options" by so_much::forged,
    "xdp-room" by so_much::forged,
    "xdp-learn-from" by alone::ethernet_addresses_are_learnt_from_their_owners,
    "xdp-learn-moved" by alone::ethernet_addresses_are_learnt_from_their_owners,
    "xdp-fit" by so_much::differential,
    "xdp-epoch" by so_much::differential,
    "xdp-udp-sum" by so_much::differential,
    "xdp-quiet" by so_much::differential,
    "xdp-answered-here" by so_much::differential,
    "xdp-off" by so_much::differential,
    "xdp-copies" by so_much::hammered,
    "xdp-wake" by wakes::what_must_be_durable_wakes_every_host_at_once,
    "xdp-lock" by at_once::steps_on_two_processors_are_one_behind_the_other,
    "xdp-index-first" by so_much::torn,
    "xdp-index-last" by so_much::taken,
    "xdp-still-holds" by so_much::torn,
    "xdp-datagram-sum" by so_much::differential,
    "xdp-unsent" by alone::what_could_not_be_sent_is_counted,
    "xdp-leads" by memcached::a_follower_takes_nothing,
    "xdp-reads-until" by memcached::a_get_is_answered_only_while_that_is_linearizable,
    "xdp-applied" by memcached::a_get_is_answered_only_while_that_is_linearizable,
    "xdp-sets-until" by memcached::what_the_program_may_not_take_reaches_the_host_as_it_was_sent,
    "xdp-amplification" by memcached::an_answer_is_no_amplifier_and_never_longer_than_a_datagram,
    "xdp-answer-whole" by memcached::no_answer_is_ever_torn,
    "xdp-vlan" by tagged::only_packets_of_the_own_vlan_are_taken,
    "xdp-to-group" by copies::the_network_copies_what_goes_to_a_multicast_address,
    "xdp-secret" by copies::nobody_else_can_order_copies,
    "xdp-sets-still" by memcached::no_set_goes_behind_what_the_host_has_submitted_since,
    "xdp-held" by so_much::boxes,
    "xdp-broken" by at_once::a_plane_whose_ring_has_a_hole_stops,
    "xdp-stops" by at_once::a_plane_whose_ring_has_a_hole_stops,
    "xdp-clock" by time_namespaces::a_lease_is_over_in_time_there,
    "xdp-registers-whole" by at_once::registers_are_never_seen_torn,
    "xdp-stale-slots" by so_much::stale,
    "xdp-steps-over" by so_much::steps,
};

#[test]
fn every_check_of_the_programs_is_needed() {
    let mut sound = Vec::new();
    for (name, test, test_name) in NEEDED {
        if !sound.contains(test_name) {
            test();
            sound.push(*test_name);
        }
        activate(Some(name));
        let noticed = catch_unwind(AssertUnwindSafe(test)).is_err();
        let reached = reached();
        activate(None);
        assert!(reached, "{name} is no check of the programs");
        assert!(noticed, "{name} makes no difference to {test_name}");
        println!("killed {name} by the kernel's {test_name}");
    }
}
