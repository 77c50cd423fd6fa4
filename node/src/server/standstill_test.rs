//! Reads, faults and clocks while the log takes nothing.
use super::super::plane_turn::tests::{apply, carry_out, fast_leader, leader_of_one};
use super::*;
use crate::server::kv::Core;
use quorumwire_control::{Input, Now};
use quorumwire_group::{Gate, apply as apply_entry, commands_of};
use quorumwire_interfaces::{Application as _, Index, LogTime};
use quorumwire_kv::Key;
use quorumwire_wire::RecordKind;

/// A leader without a plane and with two items: one for ever, one for 8 s. Nothing proposed is carried out.
fn leader() -> Core {
    let (mut core, _) = fast_leader();
    core.group.step(Input::PlaneFailed);
    carry_out(&mut core);
    core.group.begin_term();
    core.group.term_start = Index(0);
    apply(&mut core, "set plain 0 0 1\r\n1\r\n");
    apply(&mut core, "set short 0 8 1\r\n1\r\n");
    core.group.applied = core.group.last_index(); // what was applied by hand is not in the log
    core
}

fn redis(words: &[&str]) -> Vec<u8> {
    let word = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
    let text: String = words.iter().map(word).collect();
    format!("2*{}\r\n{text}", words.len()).into_bytes()
}

fn gate(core: &mut Core, line: &[u8]) -> Gate {
    let must_apply = core.group.applied;
    core.group.gate_granted(must_apply, true, line)
}

fn is_open(core: &mut Core, line: &[u8]) -> bool {
    matches!(gate(core, line), Gate::Open)
}

#[test]
fn reads_of_what_no_time_changes_go_on_while_the_log_takes_nothing() {
    let mut core = leader();
    let before = core.group.last_index();
    core.group.now.0 += Duration::from_secs(9);
    assert!(is_open(&mut core, b"get plain"));
    assert_eq!(core.group.last_index(), before, "no tick for it");
    let Gate::Wait(tick) = gate(&mut core, b"get plain short") else {
        panic!("the end of `short` has come");
    };
    assert_eq!(tick, core.group.last_index());
    assert!(tick > before, "the log is told");
    for line in [&b"get plain"[..], b"mg plain t", b"get missing"] {
        assert!(is_open(&mut core, line));
    }
    for words in [&["GET", "plain"][..], &["TTL", "plain"]] {
        assert!(is_open(&mut core, &redis(words)), "{words:?}");
    }
    // It waits for a while, then it is refused, by itself.
    core.group.now.0 += Duration::from_secs(1);
    assert!(matches!(
        gate(&mut core, &redis(&["GET", "short"])),
        Gate::Wait(_)
    ));
    core.group.now.0 += Duration::from_millis(1);
    assert!(matches!(gate(&mut core, b"get short"), Gate::Overdue));
    assert!(matches!(
        gate(&mut core, &redis(&["PTTL", "short"])),
        Gate::Overdue
    ));
    assert!(is_open(&mut core, b"get plain"));
    assert_eq!(core.group.last_index(), tick, "one tick is enough");
}

#[test]
fn a_read_of_what_time_is_left_puts_nothing_into_the_log() {
    let mut core = leader();
    let before = core.group.last_index();
    for ms in [1, 10, 100, 1000] {
        core.group.now.0 += Duration::from_millis(ms);
        for line in [
            b"mg short t".to_vec(),
            b"me short".to_vec(),
            redis(&["PTTL", "short"]),
        ] {
            assert!(is_open(&mut core, &line));
        }
    }
    let mut left = Vec::new();
    core.group
        .store
        .query(&redis(&["PTTL", "short"]), &mut left);
    assert_eq!(left, b":6889\r\n");
    assert_eq!(core.group.last_index(), before);
    let key = Key::new(b"short").unwrap();
    assert!(core.group.store.inner().get(key).is_some());
}

#[test]
fn a_leader_names_whom_a_quorum_lacks() {
    use quorumwire_control::FollowerStatus;
    use quorumwire_interfaces::{Incarnation, ReplicaId};
    use quorumwire_wire::{Member, Membership};
    let core = leader();
    let member = |id| Member {
        id: ReplicaId(id),
        incarnation: Incarnation(1),
        role: MemberRole::Voter,
        peer_address: String::new(),
    };
    let follower = |id, match_index, active| FollowerStatus {
        id: ReplicaId(id),
        match_index: Index(match_index),
        snapshot: None,
        engaged: false,
        active,
    };
    let status = Status {
        commit_index: Index(7),
        persisted_index: Index(7),
        membership: Membership {
            members: (0..4).map(member).collect(),
            quorum: CommitQuorum::All,
            lineage: quorumwire_interfaces::Lineage(1),
        },
        followers: vec![
            follower(1, 8, true),
            follower(2, 7, true),
            follower(3, 0, false),
        ],
        ..core.group.replica.status()
    };
    let text = who_lacks(&status, true).unwrap();
    assert!(text.contains("all (quorum all)"), "{text}");
    assert!(
        text.ends_with("replica 0 (disk full), 2 (its disk may be full), 3 (not heard)"),
        "{text}"
    );
}

/// Whoever asks may do so before this was looked at for the first time.
#[test]
fn where_everything_is_committed_writes_are_carried_out() {
    let mut core = leader_of_one();
    core.group.now.0 += Duration::from_secs(9);
    assert_eq!(core.why_no_writes(), None);
    core.group.tick_before_write(); // nobody makes it durable
    assert!(core.group.last_index() > core.group.replica.commit_index());
    core.watch_commits_and_clock();
    let begun = core.last_commit.at;
    core.group.now = Now(begun.0 + USUAL);
    assert_eq!(core.why_no_writes(), None);
    core.group.now.0 += USUAL;
    let why = core.why_no_writes().unwrap();
    assert!(why.ends_with("replica 0 (its disk is behind)"), "{why}");
}

#[test]
fn a_difference_between_the_log_and_the_clock_is_a_fault() {
    let mut core = leader();
    core.watch_commits_and_clock();
    assert_eq!(core.clock_fault(), None);
    let ahead = core.group.leader_time_ms() + 31_536_000_000;
    core.group
        .store
        .advance(quorumwire_interfaces::LogTime(ahead));
    core.group.look_at_wall_clock(clock::wall());
    let fault = core.clock_fault().unwrap();
    assert!(
        fault.contains(" s ahead of this replica's clock"),
        "{fault}"
    );
    let tick = core.group.tick();
    let ahead_ms = tick.ahead_ms(tick.log_time_ms).unwrap();
    assert!(ahead_ms > 31_535_000_000, "{tick:?}");
    // A second lasts longer until both agree.
    let before = core.group.leader_time_ms();
    core.group.now.0 += Duration::from_secs(10);
    assert_eq!(core.group.leader_time_ms() - before, 9000);
}

/// Carries out the tick that would leave now.
fn apply_tick(core: &mut Core, log_time: &mut LogTime) {
    let tick = core.group.tick().encode();
    assert_eq!(tick.as_ref().len(), 16, "every member reads it");
    let mut commands = commands_of(RecordKind::Tick, tick.as_ref());
    let (at, tick) = ((Index(100), log_time), commands.next().unwrap());
    apply_entry(&mut core.group.store, at, tick, &mut Vec::new());
    core.group.applied = core.group.last_index();
}

/// For who names a point of time to a data plane, which asks nobody.
#[test]
fn an_idle_leader_tells_the_log_the_wall_clock_once_and_when_it_was_set_back() {
    let mut core = leader();
    let mut log_time = LogTime(core.group.leader_time_ms());
    let ticks = |core: &mut Core| {
        let before = core.group.last_index();
        core.group.now.0 += Duration::from_millis(20);
        core.group.tick_if_time_is_awaited();
        core.group.last_index().0 - before.0
    };
    core.group.applied = Index(0);
    core.group.term_start = core.group.last_index();
    assert_eq!(ticks(&mut core), 0, "the log may say it already");
    core.group.applied = core.group.last_index();
    assert_eq!(ticks(&mut core), 1, "it was never told");
    assert_eq!(ticks(&mut core), 0, "it will be told");
    apply_tick(&mut core, &mut log_time);
    for _ in 0..1000 {
        core.group.now.0 += Duration::from_secs(3);
        assert_eq!(ticks(&mut core), 0, "an idle log grows");
    }
    apply_tick(&mut core, &mut log_time);
    // The wall clock has not gone on meanwhile: as if somebody had set it back.
    core.group.look_at_wall_clock(clock::wall());
    assert_eq!(ticks(&mut core), 1);
    apply_tick(&mut core, &mut log_time);
    assert!(core.group.store.inner().ahead_ms() > Some(2_900_000));
    assert_eq!(ticks(&mut core), 0);
    // From now on both come closer, which is told to nobody who does not ask.
    core.group.now.0 += Duration::from_hours(1);
    assert_eq!(ticks(&mut core), 0);
}

/// A log that a wrong clock has put a year ahead.
#[test]
fn a_point_of_time_is_the_wall_clocks_wherever_the_log_has_come_to() {
    let mut core = leader();
    let mut log_time = LogTime(core.group.leader_time_ms() + 31_536_000_000);
    core.group.store.advance(log_time);
    core.group.look_at_wall_clock(clock::wall());
    apply_tick(&mut core, &mut log_time);
    let end_s = clock::wall_ms() / 1000 + 3600;
    apply(&mut core, &format!("set s 0 {end_s} 1\r\n1\r\n"));
    assert!(is_open(&mut core, b"get s"));
    let mut left = Vec::new();
    core.group.store.query(b"mg s t", &mut left);
    let left = String::from_utf8(left).unwrap();
    let seconds: u64 = left.trim_start_matches("HD t").trim().parse().expect(&left);
    assert!((3500..=3601).contains(&seconds), "{left}");
}
