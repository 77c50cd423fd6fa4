//! What every data plane must do, whatever it runs on. A plane's crate gives a [`Fabric`] that joins
//! planes, and the macro [`conformance`] makes the tests; no test knows which plane it runs on.
pub mod clients;
pub mod cluster;
pub mod common_case;
#[expect(missing_docs, reason = "for tests in this crate; names say it")]
pub mod differential;
pub mod durability;
pub mod faults;
pub mod fence;
pub mod forge;
pub mod forgery;
#[expect(missing_docs, reason = "for tests in this crate; names say it")]
pub mod frames;

use quorumwire_interfaces::DataPlane;
use quorumwire_wire::packet::Header;
use std::net::{SocketAddr, UdpSocket};

/// What a plane of a test is to be made with.
#[derive(Clone, Copy, Debug)]
pub struct PlaneSpec {
    /// How many planes.
    pub replicas: usize,
    /// Entries a ring holds; a power of two.
    pub ring_slots: u32,
    /// Most entries that wait for a commit.
    pub window: u32,
}

/// A packet that one plane has sent to another and that has not arrived.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Slot of the plane that sent it.
    pub from: usize,
    /// Slot of the plane it is for.
    pub to: usize,
    /// All of it, from the header on.
    pub bytes: Vec<u8>,
}

impl Frame {
    /// Its header.
    #[must_use]
    pub fn header(&self) -> Header {
        Header::decode(self.bytes.first_chunk().expect("planes send whole headers"))
    }
}

/// What has come to a socket that does not block.
#[must_use]
pub fn next_datagram(socket: &UdpSocket) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 4096];
    match socket.recv(&mut bytes) {
        Ok(length) => {
            bytes.truncate(length);
            Some(bytes)
        }
        Err(error) => {
            assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{error}");
            None
        }
    }
}

/// Planes, numbered by their slots, of group [`cluster::GROUP`], without keys and not engaged; what lies
/// between them; and somebody outside who can reach them and be reached.
pub trait Fabric {
    /// Makes planes.
    fn new(wanted: PlaneSpec) -> Self
    where
        Self: Sized;

    /// One of the planes.
    fn plane(&mut self, slot: usize) -> &mut dyn DataPlane;

    /// Where the plane `viewer` reaches the plane `slot`, so that it goes by [`collect`](Self::collect).
    fn address(&self, viewer: usize, slot: usize) -> SocketAddr;

    /// Takes out everything that planes have sent to each other, in the order of sending for each pair.
    fn collect(&mut self) -> Vec<Frame>;

    /// Lets a packet arrive.
    fn deliver(&mut self, frame: &Frame);

    /// Sends a datagram from outside to a plane.
    fn send_from_outside(&mut self, slot: usize, bytes: &[u8]);

    /// The next datagram that a plane has sent to the outside.
    fn receive_outside(&mut self) -> Option<Vec<u8>>;

    /// Where the outside is, as planes see it.
    fn outside(&self) -> SocketAddr;
}

/// Makes the suite's tests for one fabric.
#[macro_export]
macro_rules! conformance {
    ($fabric:ty) => {
        $crate::conformance! { $fabric:
            common_case: commands_reach_all_in_order_and_are_committed,
                every_kind_and_size_goes_through, one_replica_commits_alone,
                the_quorum_of_all_waits_for_all, heartbeats_are_heard_and_answered,
                a_full_window_takes_no_more, no_more_is_on_its_way_than_a_device_holds,
                a_full_ring_takes_no_more,
                a_follower_with_a_full_ring_catches_up, a_planes_limits_are_kept;
            faults: nothing_is_lost_by_loss_repetition_and_reordering,
                a_lost_acknowledgement_is_said_again, a_gap_is_filled,
                the_last_entry_is_sent_again_whatever_its_size,
                what_the_ring_holds_no_more_is_the_hosts;
            fence: a_plane_that_is_off_moves_nothing,
                engaging_is_refused_twice_and_disengaging_is_not,
                every_acknowledgement_that_left_is_in_the_registers,
                what_the_ring_holds_is_handed_over_after_the_fence,
                a_later_term_begins_empty_and_takes_nothing_from_the_one_before;
            durability: what_is_held_is_acknowledged_when_it_is_durable,
                a_leader_counts_itself_only_when_durable;
            clients: a_request_is_answered_by_the_host,
                blind_writes_are_answered_at_commit, one_replica_answers_blind_writes, a_follower_sends_requests_on,
                foreign_datagrams_are_the_hosts, requests_to_a_plane_that_is_off_are_the_hosts;
            forgery: nothing_forged_is_taken_or_answered,
                a_command_with_a_wrong_checksum_is_not_taken, strangers_move_nothing,
                other_terms_and_groups_move_nothing, keys_rotate_under_load;
        }
    };
    ($fabric:ty: $($module:ident: $($test:ident),+;)+) => {
        $(mod $module {
            use super::*;
            $(#[test]
            fn $test() {
                $crate::$module::$test::<$fabric>();
            })+
        })+
    };
}
