//! Lost, repeated and reordered packets.
use crate::cluster::{Cluster, Fate, START};
use crate::{Fabric, Frame, PlaneSpec};
use quorumwire_interfaces::{Index, PlaneError};
use quorumwire_wire::packet::Kind;

/// A random number of the suite's own: what a test needs is that it is the same for the same seed.
pub struct Dice(u64);

impl Dice {
    /// By the environment's `QUORUMWIRE_SEED`, or a seed that differs from run to run; printed.
    #[must_use]
    pub fn new() -> Self {
        Self(quorumwire_seed::seed())
    }

    /// 0 to below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let end = end as u64;
        usize::try_from(mixed % end).expect("below a usize")
    }
}

impl Default for Dice {
    fn default() -> Self {
        Self::new()
    }
}

/// Whatever happens on the way, heartbeats bring everything everywhere, in order and once.
pub fn nothing_is_lost_by_loss_repetition_and_reordering<F: Fabric>() {
    let mut dice = Dice::new();
    let mut fates = [0_usize; 4];
    for replicas in [2, 3, 5] {
        let mut cluster = Cluster::<F>::idle(PlaneSpec {
            replicas,
            ring_slots: 64,
            window: 64,
        });
        // With the quorum of all, nobody falls behind the ring.
        cluster.engage_all(|grant| grant.quorum = u8::try_from(replicas).expect("few"));
        let mut fate = |_: &Frame| {
            let fate = match dice.below(10) {
                0..=2 => Fate::Lost,
                3 => Fate::Twice,
                4..=5 => Fate::Late,
                _ => Fate::Arrives,
            };
            fates[fate as usize] += 1;
            fate
        };
        let mut submitted = 0_u8;
        let mut round = 0;
        while submitted < 200 {
            match cluster.submit(&[submitted]) {
                Ok(_) => submitted += 1,
                Err(PlaneError::Full) => {
                    round += 1;
                    cluster.fabric.plane(0).heartbeat(round).expect("it leads");
                }
                Err(error) => panic!("{error:?}"),
            }
            cluster.turn(&mut fate);
            assert!(round < 10_000, "no progress");
        }
        for _ in 0..20 {
            round += 1;
            cluster.fabric.plane(0).heartbeat(round).expect("it leads");
            cluster.settle_with(&mut fate);
        }
        round += 1;
        cluster.fabric.plane(0).heartbeat(round).expect("it leads");
        cluster.settle();
        round += 1;
        cluster.fabric.plane(0).heartbeat(round).expect("it leads");
        cluster.settle();
        cluster.assert_all_committed(200);
    }
    println!("arrived, lost, twice, late: {fates:?}");
    assert!(fates.iter().all(|times| *times > 20), "{fates:?}");
}

/// The entry is there already when it comes again: only the acknowledgement is said again.
pub fn a_lost_acknowledgement_is_said_again<F: Fabric>() {
    let mut cluster = Cluster::<F>::engaged(2);
    cluster.submit(b"x").expect("room");
    let append = cluster.collect().remove(0);
    cluster.fabric.deliver(&append);
    cluster.poll(1);
    assert_eq!(cluster.collect().len(), 1, "the acknowledgement, lost");
    assert_eq!(cluster.registers(0).commit_index, Index(START));
    cluster.fabric.deliver(&append);
    cluster.settle();
    assert_eq!(cluster.registers(0).commit_index, Index(START + 1));
    assert_eq!(cluster.hosts[1].entries.len(), 1);
}

/// What is missing is asked for and sent again, also when nothing else comes.
pub fn a_gap_is_filled<F: Fabric>() {
    for by_heartbeat in [false, true] {
        let mut cluster = Cluster::<F>::engaged(2);
        for number in 0..5 {
            cluster.submit(&[number]).expect("room");
        }
        cluster.collect();
        if by_heartbeat {
            cluster.fabric.plane(0).heartbeat(1).expect("it leads");
        } else {
            cluster.submit(&[5]).expect("room");
        }
        cluster.settle();
        let asked = |frame: &Frame| frame.header().kind == Kind::Retransmit as u8;
        assert_eq!(cluster.sent.iter().filter(|frame| asked(frame)).count(), 1);
        cluster.fabric.plane(0).heartbeat(2).expect("it leads");
        cluster.settle();
        cluster.assert_all_committed(if by_heartbeat { 5 } else { 6 });
    }
}

/// A question is short; what it asks for may be as long as a packet can be, and the last that is missing.
pub fn the_last_entry_is_sent_again_whatever_its_size<F: Fabric>() {
    let mut cluster = Cluster::<F>::engaged(2);
    let most = cluster.fabric.plane(0).limits().payload_bytes_max;
    for (count, bytes) in [1, 15, 700, most].into_iter().enumerate() {
        cluster.submit(&vec![7; bytes]).expect("room");
        cluster.collect(); // and lost
        let round = count as u64 + 1;
        cluster.fabric.plane(0).heartbeat(round).expect("it leads");
        cluster.settle();
        let last = START + round;
        assert_eq!(cluster.registers(1).last_index.0, last, "{bytes} bytes");
        assert_eq!(cluster.registers(0).commit_index.0, last, "{bytes} bytes");
    }
}

/// Who is further behind than the ring reaches is named to the host.
pub fn what_the_ring_holds_no_more_is_the_hosts<F: Fabric>() {
    let mut cluster = Cluster::<F>::engaged_with(PlaneSpec {
        replicas: 3,
        ring_slots: 4,
        window: 4,
    });
    for number in 0..9 {
        cluster.submit(&[number]).expect("room");
        cluster.settle_with(&mut |frame| {
            if frame.to == 2 {
                Fate::Lost
            } else {
                Fate::Arrives
            }
        });
    }
    assert!(cluster.hosts[0].behind.is_empty());
    cluster.fabric.plane(0).heartbeat(1).expect("it leads");
    cluster.settle();
    assert_eq!(cluster.hosts[0].behind, [2]);
    assert_eq!(cluster.registers(2).last_index, Index(START));
}
