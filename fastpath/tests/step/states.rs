//! All small registers and everything small that can happen to them, without a seed.
use crate::cases::Call;
use crate::model::counted;
use crate::walk::{Visit, visit_all, visit_states};
use quorumwire_wire::packet::{
    FLAG_BLIND, FLAG_BUNDLE, FLAG_EPOCH, FLAG_FRAGMENT, FLAG_REFUSED, FLAG_TICK, Header, Kind,
    MAGIC, ORIGIN_BYTES, PAYLOAD_BYTES_MAX, REPAIR_ENTRIES_MAX, Registers, Role, VERSION,
};
use std::ops::ControlFlow;

/// The fast term, and the one before it.
pub const TERM: u64 = 5;
const TERM_BEFORE: u64 = 3;
const GROUP: u32 = 7;

/// All cases.
pub fn each_case(visit: Visit<'_, Registers, Call>) -> ControlFlow<()> {
    let all = [follower_calls(), leader_calls()].concat();
    for registers in off() {
        visit_all(&registers, &all, visit)?;
    }
    let rare = oddities();
    for (states, calls) in [
        (far_ahead(), leader_calls()),
        (followers(), follower_calls()),
        (leaders(), leader_calls()),
    ] {
        visit_states(&states, &calls, (&rare, 16), visit)?;
    }
    ControlFlow::Continue(())
}

fn off() -> Vec<Registers> {
    let roles = [0, 3, 255].into_iter();
    roles
        .flat_map(|role| {
            // With `held`, the host has made nothing durable yet.
            [(0, 3), (1, 2)].map(|(held, persisted_index)| Registers {
                role,
                held,
                persisted_index,
                ..follower_base((3, 1, 0), 2, 1)
            })
        })
        .collect()
}

fn follower_base((replicas, me, leader): (u8, u8, u8), start: u64, ahead: u64) -> Registers {
    Registers {
        term: TERM,
        start_index: start,
        last_index: start + ahead,
        last_term: if ahead == 0 { TERM_BEFORE } else { TERM },
        released_index: start,
        persisted_index: start + ahead,
        group: GROUP,
        ring_slots: 4,
        window: 4,
        role: Role::Follower as u8,
        me,
        leader,
        replicas,
        quorum: replicas / 2 + 1,
        ..Registers::default()
    }
}

fn followers() -> Vec<Registers> {
    let mut all = Vec::new();
    for seats in [(2, 1, 0), (3, 1, 0), (3, 0, 2)] {
        for (start, ahead) in [0, 2]
            .iter()
            .flat_map(|start| (0..4).map(|ahead| (*start, ahead)))
        {
            let base = follower_base(seats, start, ahead);
            for ring_slots in [1, 2, 4] {
                for released_index in start..=base.last_index {
                    if base.last_index - released_index <= u64::from(ring_slots) {
                        let window = ring_slots;
                        let base = Registers {
                            ring_slots,
                            window,
                            released_index,
                            ..base
                        };
                        all.extend(follower_progress(&base));
                    }
                }
            }
        }
    }
    all
}

fn follower_progress(base: &Registers) -> Vec<Registers> {
    let mut all = Vec::new();
    for commit_index in 0..=base.last_index {
        for round in [0, 2] {
            let base = Registers {
                commit_index,
                round,
                ..*base
            };
            all.push(base);
            for persisted_index in base.start_index..=base.last_index {
                all.push(Registers {
                    held: 1,
                    persisted_index,
                    ..base
                });
            }
        }
    }
    all
}

fn leaders() -> Vec<Registers> {
    let mut all = Vec::new();
    for replicas in 1..=5 {
        for (start, ahead) in [0, 2]
            .iter()
            .flat_map(|start| (0..4).map(|ahead| (*start, ahead)))
        {
            let me = replicas / 2;
            let base = follower_base((replicas, me, me), start, ahead);
            for (ring_slots, window, not_released) in [(4, 4, 4), (4, 2, 2), (2, 2, 2), (1, 1, 0)] {
                let released_index = start.max(base.last_index.saturating_sub(not_released));
                // How large the ring is matters to one's own entries; with few replicas all is seen.
                let many = replicas > 3 && ring_slots < 4;
                if many || base.last_index - released_index > u64::from(ring_slots) {
                    continue;
                }
                let base = Registers {
                    ring_slots,
                    window,
                    released_index,
                    role: Role::Leader as u8,
                    round: 2,
                    ..base
                };
                for quorum in quorums(replicas) {
                    all.extend(leader_progress(&Registers { quorum, ..base }));
                }
            }
        }
    }
    all
}

/// Leaders whose followers miss much, and one whose log is at its end.
fn far_ahead() -> Vec<Registers> {
    let many = u64::try_from(REPAIR_ENTRIES_MAX).unwrap();
    let ring_slots = u32::try_from(2 * REPAIR_ENTRIES_MAX).unwrap();
    let leader = |start, ahead, quorum| {
        let mut registers = Registers {
            ring_slots,
            window: ring_slots,
            role: Role::Leader as u8,
            quorum,
            round: 2,
            ..follower_base((3, 1, 1), start, ahead)
        };
        registers.match_index[1] = registers.last_index;
        registers
    };
    vec![
        leader(0, many + 1, 2),
        leader(0, many + 1, 3),
        leader(u64::MAX - 2, 1, 2),
    ]
}

fn quorums(replicas: u8) -> Vec<u8> {
    let mut quorums = vec![replicas / 2 + 1, replicas];
    quorums.dedup();
    quorums
}

fn leader_progress(base: &Registers) -> Vec<Registers> {
    let mut all = Vec::new();
    let last = base.last_index;
    for matches in others_match(base) {
        for commit_index in 0..=last {
            let base = Registers {
                commit_index,
                match_index: matches,
                ..*base
            };
            all.push(with_persisted(&base, 0, last));
            // With more replicas there are enough other cases.
            for persisted_index in base.start_index..=last {
                if base.replicas <= 3 || persisted_index == base.start_index {
                    all.push(with_persisted(&base, 1, persisted_index));
                }
            }
        }
    }
    all.retain(|registers| counted(*registers) == *registers);
    all
}

fn with_persisted(base: &Registers, held: u8, persisted_index: u64) -> Registers {
    let mut registers = Registers {
        held,
        persisted_index,
        ..*base
    };
    registers.match_index[usize::from(base.me)] = persisted_index;
    // Slots outside of the group: nothing may come of them.
    for slot in usize::from(base.replicas)..7 {
        registers.match_index[slot] = base.last_index;
    }
    registers.heard_round[0] = 1;
    registers
}

/// All combinations of what the others have acknowledged.
fn others_match(base: &Registers) -> Vec<[u64; 7]> {
    let mut values = vec![0, base.start_index, base.start_index + 1, base.last_index];
    values.retain(|value| *value <= base.last_index);
    values.sort_unstable();
    values.dedup();
    let mut all = vec![[0; 7]];
    for slot in 0..base.replicas {
        if slot != base.me {
            all = all
                .iter()
                .flat_map(|matches| {
                    values.iter().map(|value| {
                        let mut more = *matches;
                        more[usize::from(slot)] = *value;
                        more
                    })
                })
                .collect();
        }
    }
    all
}

fn packet(kind: u8, sender: u8) -> Header {
    Header {
        magic: MAGIC,
        version: VERSION,
        kind,
        sender,
        group: GROUP,
        term: if kind == Kind::Request as u8 { 0 } else { TERM },
        session: 11,
        sequence: 2,
        payload_crc32c: 12,
        ..Header::default()
    }
}

/// What is wrong, or nearly so, whatever the role: every kind there is and two there are not.
fn oddities() -> Vec<Call> {
    let mut all = Vec::new();
    for kind in 0..=9 {
        for sender in [0, 1, 2, 5, 7, 255] {
            let plain = packet(kind, sender);
            all.push(Call::Step(plain));
            for term in [0, TERM - 1, TERM + 1, u64::MAX] {
                all.push(Call::Step(Header {
                    term,
                    index: 3,
                    previous_term: TERM,
                    ..plain
                }));
            }
            for flags in FLAGS_OF_COMMANDS.into_iter().chain([FLAG_EPOCH]) {
                all.push(Call::Step(Header { flags, ..plain }));
                all.push(Call::Step(Header {
                    flags,
                    session: 0,
                    ..plain
                }));
            }
            let (origin, most) = (ORIGIN_BYTES, PAYLOAD_BYTES_MAX);
            for bytes in [
                origin - 1,
                origin,
                most - origin,
                most - origin + 1,
                most,
                most + 1,
            ] {
                let payload_bytes = u16::try_from(bytes).unwrap();
                all.push(Call::Step(Header {
                    payload_bytes,
                    ..plain
                }));
            }
            all.push(Call::Step(Header {
                group: GROUP + 1,
                ..plain
            }));
            all.push(Call::Step(Header {
                version: VERSION + 1,
                ..plain
            }));
        }
    }
    all
}

/// What is said of a command, whoever may say it.
const FLAGS_OF_COMMANDS: [u8; 5] = [
    FLAG_BLIND,
    FLAG_TICK,
    FLAG_FRAGMENT,
    FLAG_BUNDLE,
    FLAG_REFUSED,
];

/// What the host does.
fn host_calls() -> Vec<Call> {
    let mut all = Vec::new();
    let command = packet(Kind::Request as u8, 255);
    for flags in [0].into_iter().chain(FLAGS_OF_COMMANDS) {
        all.push(Call::Submit(Header { flags, ..command }));
    }
    let payload_bytes = u16::try_from(PAYLOAD_BYTES_MAX + 1).unwrap();
    all.push(Call::Submit(Header {
        payload_bytes,
        ..command
    }));
    for number in [0, 1, 2, 3, 4, 5, 6, u64::MAX] {
        all.push(Call::Persisted(number));
        all.push(Call::Heartbeat(number));
        all.push(Call::Release(number));
    }
    all
}

const INDEXES: [u64; 10] = [0, 1, 2, 3, 4, 5, 6, 7, u64::MAX - 1, u64::MAX];

fn follower_calls() -> Vec<Call> {
    let mut all = host_calls();
    all.push(Call::Step(packet(Kind::Request as u8, 255)));
    all.push(Call::Step(packet(Kind::Forward as u8, 2)));
    for sender in [0, 1, 2, 3] {
        for index in INDEXES {
            for commit_index in [0, 4, u64::MAX] {
                for sequence in [0, 2, 3] {
                    let changed = Header {
                        index,
                        commit_index,
                        sequence,
                        ..Header::default()
                    };
                    let heartbeat = packet(Kind::Heartbeat as u8, sender);
                    all.push(Call::Step(with(heartbeat, &changed)));
                    for previous_term in [TERM_BEFORE, TERM] {
                        let append = packet(Kind::Append as u8, sender);
                        let append = Header {
                            previous_term,
                            ..with(append, &changed)
                        };
                        all.push(Call::Step(append));
                    }
                }
            }
        }
    }
    all
}

fn with(packet: Header, changed: &Header) -> Header {
    Header {
        index: changed.index,
        commit_index: changed.commit_index,
        sequence: changed.sequence,
        ..packet
    }
}

fn leader_calls() -> Vec<Call> {
    let mut all = host_calls();
    for (kind, sender) in [(Kind::Request, 255), (Kind::Forward, 0), (Kind::Forward, 1)] {
        let payload_bytes = u16::try_from(ORIGIN_BYTES).unwrap();
        all.push(Call::Step(Header {
            payload_bytes,
            ..packet(kind as u8, sender)
        }));
    }
    for kind in [Kind::AppendOk, Kind::HeartbeatOk, Kind::Retransmit] {
        for sender in 0..=5 {
            for index in INDEXES {
                all.push(Call::Step(Header {
                    index,
                    ..packet(kind as u8, sender)
                }));
            }
            for (index, sequence) in [(1, 0), (3, 0), (1, 3), (3, u64::MAX)] {
                all.push(Call::Step(Header {
                    index,
                    sequence,
                    ..packet(kind as u8, sender)
                }));
            }
        }
    }
    all
}
