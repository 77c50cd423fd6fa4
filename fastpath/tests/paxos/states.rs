//! All small registers and slots, and everything small that can happen to them, without a seed.
use crate::cases::{Call, State};
use crate::walk::{Visit, visit_all, visit_states};
use quorumwire_wire::packet::{
    FLAG_BLIND, FLAG_BUNDLE, FLAG_EPOCH, FLAG_FRAGMENT, FLAG_REFUSED, FLAG_TELL, FLAG_TICK, Header,
    Kind, MAGIC, PAYLOAD_BYTES_MAX, PaxosRegisters, PaxosRole, PaxosSlot, VERSION,
};
use std::ops::ControlFlow;

const GROUP: u32 = 7;
const CONFIGURATION: u64 = 3;
/// Rounds of coordinators 1 and 2, ascending.
const ROUNDS: [u64; 3] = [0x101, 0x102, 0x201];
/// What coordinators drew.
const DRAWN: [u64; 2] = [51, 52];

/// All cases.
pub fn each_case(visit: Visit<'_, State, Call>) -> ControlFlow<()> {
    let rare = oddities();
    for state in off().iter().chain(&coordinators()) {
        visit_all(state, &rare, visit)?;
    }
    visit_states(&acceptors(), &acceptor_calls(), (&rare, 64), visit)
}

fn registers(role: u8, trimmed: u64) -> PaxosRegisters {
    PaxosRegisters {
        configuration: CONFIGURATION,
        trimmed,
        group: GROUP,
        window: 4,
        role,
        me: 1,
        ..PaxosRegisters::default()
    }
}

fn off() -> Vec<State> {
    let roles = [PaxosRole::Off as u8, 3, 255].into_iter();
    roles
        .map(|role| State {
            registers: PaxosRegisters {
                round: ROUNDS[0],
                next_instance: 1,
                ..registers(role, 0)
            },
            slot: PaxosSlot::default(),
        })
        .collect()
}

fn coordinators() -> Vec<State> {
    let mut all = Vec::new();
    let last = u64::MAX - 1;
    for (trimmed, nexts) in [
        (0, vec![1, 2, 4, 5, 6]),
        (2, vec![1, 2, 3, 6, 7]),
        (last - 2, vec![last - 2, last - 1, last, last + 1]),
    ] {
        for next_instance in nexts {
            for window in [1, 4] {
                all.push(State {
                    registers: PaxosRegisters {
                        round: ROUNDS[2],
                        next_instance,
                        window,
                        ..registers(PaxosRole::Coordinator as u8, trimmed)
                    },
                    slot: PaxosSlot::default(),
                });
            }
        }
    }
    all
}

/// What an acceptor may know of an instance.
fn slots() -> Vec<PaxosSlot> {
    let mut all = vec![PaxosSlot::default()];
    // Of what can be asked for here, the first is open before and after a trim, the others one of both.
    for instance in [1, 3, 5] {
        for (place, round) in ROUNDS.into_iter().enumerate() {
            for promised_to in [0, DRAWN[0], DRAWN[1]] {
                let promise = PaxosSlot {
                    instance,
                    round,
                    promised_to,
                    ..PaxosSlot::default()
                };
                all.push(promise);
                for vote_round in &ROUNDS[..=place] {
                    all.push(PaxosSlot {
                        vote_round: *vote_round,
                        session: 11,
                        sequence: 2,
                        payload_crc32c: 12,
                        payload_bytes: 5,
                        flags: FLAG_FRAGMENT,
                        ..promise
                    });
                }
            }
        }
    }
    all
}

fn acceptors() -> Vec<State> {
    let mut all = Vec::new();
    for trimmed in [0, 2] {
        for (window, held, bound, highest) in
            [(4, 0, 0, 0), (4, 1, 0, 5), (2, 0, 3, 3), (1, 0, 0, 9)]
        {
            for round in [0].into_iter().chain(ROUNDS) {
                for promised_to in [0, DRAWN[0]] {
                    for single_round in [0, ROUNDS[1]] {
                        let registers = PaxosRegisters {
                            round,
                            promised_to,
                            single_round,
                            window,
                            held,
                            bound,
                            highest,
                            ..registers(PaxosRole::Acceptor as u8, trimmed)
                        };
                        let slots = slots().into_iter();
                        all.extend(slots.map(|slot| State { registers, slot }));
                    }
                }
            }
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
        payload_bytes: 5,
        group: GROUP,
        term: if kind == Kind::Submit as u8 {
            0
        } else {
            ROUNDS[2]
        },
        index: 3,
        commit_index: CONFIGURATION,
        session: 11,
        sequence: 2,
        payload_crc32c: 12,
        ..Header::default()
    }
}

/// What is wrong, or nearly so, whatever the role: every kind there is and two there are not.
fn oddities() -> Vec<Call> {
    let mut all: Vec<Call> = [0, 1, 2, 3, 5, u64::MAX - 1, u64::MAX]
        .into_iter()
        .map(Call::Trim)
        .collect();
    for kind in 0..=17 {
        for sender in [0, 1, 2, 255] {
            let plain = packet(kind, sender);
            let mut odd = |changed: Header| all.push(Call::Step(changed));
            odd(plain);
            for term in [0, 1, 255, 256, ROUNDS[0], ROUNDS[1], u64::MAX] {
                odd(Header { term, ..plain });
            }
            for flags in [
                FLAG_BLIND,
                FLAG_TICK,
                FLAG_FRAGMENT,
                FLAG_BUNDLE,
                FLAG_TELL,
                FLAG_REFUSED,
                FLAG_EPOCH,
            ] {
                odd(Header { flags, ..plain });
            }
            let largest = u16::try_from(PAYLOAD_BYTES_MAX).unwrap();
            for payload_bytes in [0, largest, largest + 1] {
                odd(Header {
                    payload_bytes,
                    ..plain
                });
            }
            for index in [0, 1, u64::MAX - 1, u64::MAX] {
                odd(Header { index, ..plain });
            }
            for commit_index in [0, CONFIGURATION - 1, CONFIGURATION + 1] {
                for index in [0, 3] {
                    odd(Header {
                        index,
                        commit_index,
                        ..plain
                    });
                }
            }
            odd(Header {
                session: 0,
                ..plain
            });
            odd(Header {
                group: GROUP + 1,
                ..plain
            });
            odd(Header {
                version: VERSION + 1,
                ..plain
            });
        }
    }
    all
}

fn acceptor_calls() -> Vec<Call> {
    let mut all = Vec::new();
    for term in ROUNDS {
        let sender = u8::try_from(term % 256).unwrap();
        for index in [1, 2, 3, 4, 5, 6, 7] {
            let ask = Header {
                term,
                index,
                payload_bytes: 0,
                ..packet(Kind::P1a as u8, sender)
            };
            let propose = Header {
                flags: FLAG_FRAGMENT,
                term,
                index,
                ..packet(Kind::P2a as u8, sender)
            };
            for session in [0, DRAWN[0], DRAWN[1]] {
                all.push(Call::Step(Header { session, ..ask }));
            }
            all.push(Call::Step(propose));
            all.push(Call::Step(Header {
                flags: FLAG_FRAGMENT | FLAG_TELL,
                ..propose
            }));
            // Each part of a value makes another one.
            all.push(Call::Step(Header {
                session: 0,
                ..propose
            }));
            if index == 3 {
                all.push(Call::Step(Header {
                    sequence: 3,
                    ..propose
                }));
                all.push(Call::Step(Header {
                    payload_crc32c: 13,
                    ..propose
                }));
                all.push(Call::Step(Header {
                    payload_bytes: 6,
                    ..propose
                }));
                all.push(Call::Step(Header {
                    flags: FLAG_EPOCH,
                    ..propose
                }));
            }
        }
        for session in DRAWN {
            all.push(Call::Step(Header {
                term,
                index: 0,
                session,
                payload_bytes: 0,
                ..packet(Kind::P1a as u8, sender)
            }));
        }
    }
    all
}
