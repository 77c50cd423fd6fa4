//! The dissector for Wireshark shows every packet as the Rust decoders read it, real ones and wrong ones, and
//! nothing in a packet makes it raise an error.

mod expected;
mod frames;
mod real;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use quorumwire_cluster_tests::recording::{datagram_frame, write};
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::tshark::{Shown, show};
use quorumwire_fastpath::{paxos_step, paxos_trim};
use quorumwire_wire::packet::{
    FLAG_FRAGMENT, HEADER_BYTES, Header, Kind, MAGIC, PAYLOAD_BYTES_MAX, PaxosRegisters, PaxosRole,
    PaxosSlot, VERSION,
};
use quorumwire_wire::{LineageMessage, LineagePacket};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use expected::{compared, expected, fields, form_agrees, without_commands_of_no_bundle};

/// Ports that no dissector of Wireshark's takes for its own.
const PORTS: (u16, u16) = (47_011, 47_012);
const AS_PACKETS: [&str; 2] = ["-d", "udp.port==47012,quorumwire"];
const WRONG_DATAGRAMS: usize = 12_000;

/// Where a test's recordings lie; they stay there for who wants to see them.
fn recording(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dissector");
    fs::create_dir_all(&folder).expect("a folder for recordings");
    folder.join(format!("{name}.pcap"))
}

fn write_whole(path: &Path, frames: &[Vec<u8>]) -> Result<()> {
    write(path, frames.iter().map(|it| (&it[..], it.len())))?;
    Ok(())
}

/// What is shown of each of these frames, with the columns.
fn shown(path: &Path, frames: &[Vec<u8>], options: &[&str], more: &[&str]) -> Result<Vec<Shown>> {
    write_whole(path, frames)?;
    let names = fields();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let shown = show(path, options, &[&all, more].concat())?;
    ensure!(shown.len() == frames.len(), "a line for each frame");
    Ok(shown)
}

/// Each datagram is shown as it is read.
fn compare(datagrams: &[Vec<u8>], shown: &[Shown]) -> Result<()> {
    for (number, (datagram, shown)) in datagrams.iter().zip(shown).enumerate() {
        let fields = without_commands_of_no_bundle(compared(shown));
        let expected = expected(datagram);
        let is_lineage = datagram.starts_with(b"QLIN");
        ensure!(
            fields == expected || is_lineage && expected.is_empty(),
            "frame {}: {fields:#?}\nshould be {expected:#?}\n{}",
            number + 1,
            hex::encode(datagram)
        );
        let agrees = is_lineage || form_agrees(shown, datagram);
        ensure!(agrees, "frame {}: {shown:#?}", number + 1);
    }
    Ok(())
}

fn vectors(text: &str) -> Vec<(String, Vec<u8>)> {
    let mut vectors: Vec<(String, Vec<u8>)> = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(name) = line.strip_prefix('[') {
            vectors.push((name.trim_end_matches(']').to_owned(), Vec::new()));
        } else if !line.is_empty() {
            let (_, bytes) = vectors.last_mut().expect("a name comes first");
            bytes.extend(hex::decode(line.replace(' ', "")).expect("hexadecimal"));
        }
    }
    vectors
}

fn packets() -> Vec<(String, Vec<u8>)> {
    vectors(include_str!("../../../wire/vectors/packets.txt"))
}

/// What the column Info says of each vector.
const INFO: [(&str, &str); 26] = [
    (
        "request",
        "request session=0x0123456789abcdef sequence=42 blind",
    ),
    (
        "append",
        "append index=1230066625199609624 term=72623859790382856 commit=1230066625199609623 sender=0 blind",
    ),
    (
        "append_tick",
        "append index=1 term=5 commit=0 sender=6 tick",
    ),
    (
        "append_fragment",
        "append index=2 term=5 commit=1 sender=2 piece=1/2",
    ),
    (
        "append_bundle",
        "append index=3 term=5 commit=2 sender=0 bundle",
    ),
    ("append_ok", "append_ok index=100 term=5 sender=2"),
    ("retransmit", "retransmit index=101 term=5 sender=3"),
    (
        "heartbeat",
        "heartbeat round=18446744073709551615 index=18446744073709551615 term=18446744073709551615 \
         commit=18446744073709551615 sender=0",
    ),
    (
        "heartbeat_ok",
        "heartbeat_ok round=1 index=0 term=1 sender=6",
    ),
    (
        "answer",
        "answer index=100 session=0x0123456789abcdef sequence=42 sender=1",
    ),
    (
        "answer_refused",
        "answer refused: OutcomeUnknown index=0 session=0x0123456789abcdef sequence=43 sender=1",
    ),
    (
        "answer_refused_with_reason",
        "answer refused: AnswerTooLong index=0 session=0x0123456789abcdef sequence=43 sender=1",
    ),
    (
        "forward",
        "forward session=0x0123456789abcdef sequence=42 term=5 sender=1 blind from 192.0.2.33 port 11311",
    ),
    ("submit", "submit session=0x0123456789abcdef sequence=42"),
    ("p1a", "p1a all instances round=3.2 coordinator=2"),
    (
        "p1b_of_all",
        "p1b all instances round=3.2 acceptor=0 highest=100",
    ),
    (
        "p1b",
        "p1b instance=100 round=3.2 acceptor=0 vote=2.1 session=0x0123456789abcdef sequence=42 \
         [too short for a piece]",
    ),
    (
        "p2a",
        "p2a instance=101 round=3.2 coordinator=2 session=0x0123456789abcdef sequence=42",
    ),
    (
        "p2a_tell",
        "p2a instance=101 round=3.2 coordinator=2 session=0x0123456789abcdef sequence=42",
    ),
    (
        "p2b",
        "p2b instance=101 round=3.2 acceptor=1 session=0x0123456789abcdef sequence=42",
    ),
    (
        "p2b_refused",
        "p2b instance=101 round=3.2 acceptor=1 refused: promised=4.1 forgotten=10",
    ),
    (
        "p1b_other",
        "p1b all instances round=3.2 acceptor=0 refused: promised=2.1 forgotten=10",
    ),
    (
        "heartbeat_paxos",
        "heartbeat round=0 index=101 term=770 commit=12531907540854601595 sender=2",
    ),
    (
        "heartbeat_paxos_refused",
        "heartbeat round=0 index=0 term=770 commit=0 sender=2",
    ),
    (
        "admit",
        "admit round=3.2 coordinator=2 bound=100 forgotten=10",
    ),
    ("checkpoint", "checkpoint learner=1 kept=90 learned=101"),
];

#[test]
fn every_vector_is_shown_field_by_field() -> Result<()> {
    let vectors = packets();
    let datagrams: Vec<Vec<u8>> = vectors.iter().map(|(_, bytes)| bytes.clone()).collect();
    // No port is named: magic and version tell them.
    let frames: Vec<Vec<u8>> = datagrams
        .iter()
        .map(|it| datagram_frame(PORTS.0, PORTS.1, it))
        .collect();
    let more = [
        "_ws.col.Protocol",
        "_ws.col.Info",
        "quorumwire.refusal.words",
    ];
    let shown = shown(&recording("vectors"), &frames, &[], &more)?;
    compare(&datagrams, &shown)?;
    let said: Vec<(&str, &str)> = vectors
        .iter()
        .zip(&shown)
        .map(|((name, _), shown)| (&name[..], &shown["_ws.col.Info"][0][..]))
        .collect();
    assert_eq!(said, INFO);
    assert!(shown.iter().all(|it| it["_ws.col.Protocol"] == ["QW"]));
    assert_eq!(shown[11]["quorumwire.refusal.words"], ["too large"]);
    Ok(())
}

/// Packets of a round of Paxos, as the steps in C make them: a coordinator, and an acceptor that promises,
/// votes, refuses and forgets.
fn of_paxos() -> Vec<Vec<u8>> {
    let registers = |role, me| PaxosRegisters {
        configuration: 6,
        round: 0x302,
        next_instance: 1,
        group: 7,
        window: 8,
        role: role as u8,
        me,
        ..PaxosRegisters::default()
    };
    let mut coordinator = registers(PaxosRole::Coordinator, 2);
    let mut acceptor = PaxosRegisters {
        round: 0,
        ..registers(PaxosRole::Acceptor, 1)
    };
    let mut slots = [PaxosSlot::default(); 8];
    let mut said = Vec::new();
    let ask = |round: u64, index, session| Header {
        magic: MAGIC,
        version: VERSION,
        kind: Kind::P1a as u8,
        sender: u8::try_from(round & 255).expect("one byte"),
        group: 7,
        term: round,
        index,
        commit_index: 6,
        session,
        ..Header::default()
    };
    let mut hear = |said: &mut Vec<Vec<u8>>, header: Header, value: &[u8]| {
        let slot = &mut slots[usize::try_from(header.index % 8).expect("below 8")];
        let outcome = paxos_step(&mut acceptor, slot, &header);
        for header in [header, outcome.header] {
            let value = &value[..usize::from(header.payload_bytes)];
            said.push([&header.encode(), value].concat());
        }
        assert!(paxos_trim(&mut acceptor, header.index.saturating_sub(2)));
    };
    hear(&mut said, ask(0x302, 0, 51), &[]);
    for sequence in 1..=4 {
        let piece = [&1_u32.to_be_bytes()[..], &4_u32.to_be_bytes(), b"value"].concat();
        let submit = Header {
            magic: MAGIC,
            version: VERSION,
            kind: Kind::Submit as u8,
            sender: 255,
            flags: FLAG_FRAGMENT,
            payload_bytes: 13,
            group: 7,
            payload_crc32c: crc32c::crc32c(&piece),
            session: 11,
            sequence,
            ..Header::default()
        };
        said.push([&submit.encode()[..], &piece].concat());
        let proposed = paxos_step(&mut coordinator, &mut PaxosSlot::default(), &submit);
        hear(&mut said, proposed.header, &piece);
        // Again, by others, and for an instance that is forgotten.
        hear(&mut said, ask(0x201, sequence, 52), &piece);
        hear(&mut said, ask(0x403, sequence, 53), &piece);
        hear(&mut said, ask(0x503, 1, 54), &piece);
    }
    hear(&mut said, ask(0x603, 5, 55), &[]);
    said
}

#[test]
fn what_the_steps_of_paxos_say_is_shown() -> Result<()> {
    let datagrams = of_paxos();
    let frames: Vec<Vec<u8>> = datagrams
        .iter()
        .map(|it| datagram_frame(PORTS.0, PORTS.1, it))
        .collect();
    let shown = shown(&recording("paxos"), &frames, &[], &["_ws.col.Info"])?;
    compare(&datagrams, &shown)?;
    let has = |what: &str| shown.iter().any(|it| it["_ws.col.Info"][0].contains(what));
    for what in [
        "submit session",
        "p2a instance=1 round=3.2 coordinator=2",
        "p2b instance=1 round=3.2 acceptor=1",
        "no vote",
        "vote=3.2",
        "refused: promised=3.2",
        "piece=1/4",
    ] {
        let all: Vec<_> = shown.iter().map(|it| &it["_ws.col.Info"]).collect();
        assert!(has(what), "{what} is missing: {all:#?}");
    }
    Ok(())
}

/// What follows a packet between two ports is shown even if it could not be told by itself; what was only
/// captured in part is not taken for cut.
#[test]
fn what_is_wrong_is_said() -> Result<()> {
    let all: BTreeMap<String, Vec<u8>> = packets().into_iter().collect();
    let append = &all["append"];
    let changed = |at: usize, to: u8| {
        let mut bytes = append.clone();
        bytes[at] = to;
        bytes
    };
    let question = LineagePacket {
        epoch: 1,
        question: [7; 16],
        message: LineageMessage::Question,
    };
    let question = [&question.encode()[..], &[9; 16]].concat();
    let cases = [
        (append.clone(), ""),
        (changed(2, 2), " [version 2, not known here]"),
        (append[..3].to_vec(), " [cut]"),
        (append[..71].to_vec(), " [cut]"),
        (append[..76].to_vec(), " [cut]"),
        ([&append[..], b"!"].concat(), " [bytes behind it]"),
        (changed(3, 0), " [unknown kind]"),
        (changed(5, 0x80), " [unknown flags]"),
        (changed(76, b'?'), " [wrong checksum]"),
        (changed(3, 3), " [no payload of this kind has this size]"),
        (question.clone(), "lineage question"),
        (question[..55].to_vec(), " [cut]"),
    ];
    let datagrams: Vec<Vec<u8>> = cases.iter().map(|(bytes, _)| bytes.clone()).collect();
    let frames: Vec<Vec<u8>> = datagrams
        .iter()
        .map(|it| datagram_frame(PORTS.0, PORTS.1, it))
        .collect();
    let path = recording("wrong");
    let lines = shown(&path, &frames, &[], &["_ws.col.Info"])?;
    compare(&datagrams, &lines)?;
    for ((_, said), shown) in cases.iter().zip(&lines) {
        let info = &shown["_ws.col.Info"][0];
        assert!(info.ends_with(said), "{info} should end with {said}");
        assert!(
            said.is_empty() != info.contains('[') || info == said,
            "{info}"
        );
    }

    let whole = &frames[0];
    let headers = whole.len() - append.len();
    let parts = [1, HEADER_BYTES, append.len()].map(|missing| whole.len() - missing);
    write(&path, parts.iter().map(|it| (&whole[..*it], whole.len())))?;
    let names = ["_ws.col.Info", "_ws.expert.message"];
    let lines = show(&path, &AS_PACKETS, &names)?;
    assert_eq!(headers, 42);
    for shown in &lines[..2] {
        let info = &shown["_ws.col.Info"][0];
        assert!(info.contains("(captured in part)"), "{info}");
        assert!(!shown.contains_key("_ws.expert.message"), "{shown:?}");
    }
    Ok(())
}

/// One to three changes of bytes.
fn mutate(rng: &mut ChaCha8Rng, bytes: &[u8]) -> Vec<u8> {
    let mut wrong = bytes.to_vec();
    for _ in 0..rng.random_range(1..=3) {
        let at = rng.random_range(0..wrong.len().max(1));
        match rng.random_range(0..8) {
            0 => wrong.truncate(at),
            1 => wrong.push(rng.random()),
            2 => wrong.insert(at.min(wrong.len()), rng.random()),
            _ if wrong.is_empty() => {}
            // What follows from kind and flags.
            3 => wrong[3.min(at)] = rng.random_range(0..17),
            4 => wrong[5.min(at)] = rng.random(),
            5 => wrong[at] = rng.random(),
            _ => wrong[at] ^= 1 << rng.random_range(0..8),
        }
    }
    wrong
}

fn wrong_datagram(rng: &mut ChaCha8Rng, right: &[Vec<u8>]) -> Vec<u8> {
    match rng.random_range(0..20) {
        0 => {
            let bytes = rng.random_range(0..200);
            (0..bytes).map(|_| rng.random()).collect()
        }
        // A header of ours with whatever fields, and a payload of any length.
        1..=6 => {
            let bytes = match rng.random_range(0..50) {
                0 => rng.random_range(0..=PAYLOAD_BYTES_MAX + 1),
                _ => rng.random_range(0..40),
            };
            let mut head: [u8; HEADER_BYTES] = std::array::from_fn(|_| rng.random());
            head[..2].copy_from_slice(&MAGIC.to_be_bytes());
            head[2] = VERSION;
            head[3] = rng.random_range(0..17);
            head[5] &= 0x7f;
            head[6..8].copy_from_slice(&u16::try_from(bytes).expect("short").to_be_bytes());
            let payload: Vec<u8> = (0..bytes).map(|_| rng.random_range(0..6)).collect();
            [&head[..], &payload].concat()
        }
        _ => {
            let place = rng.random_range(0..right.len());
            mutate(rng, &right[place])
        }
    }
}

/// What is wrong, and must have been shown at least once.
const PROBLEMS: [&str; 11] = [
    "cut",
    "too_long",
    "other_version",
    "unknown_kind",
    "unknown_flags",
    "wrong_size",
    "wrong_checksum",
    "cut_piece",
    "wrong_bundle",
    "wrong_tick",
    "wrong_configuration",
];

#[test]
fn no_datagram_makes_it_raise_an_error() -> Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed());
    let vectors = packets().into_iter().map(|(_, bytes)| bytes);
    let mut right: Vec<Vec<u8>> = vectors.chain(of_paxos()).collect();
    let question = LineagePacket {
        epoch: 0,
        question: [7; 16],
        message: LineageMessage::Question,
    };
    right.push([&question.encode()[..], &[9; 16]].concat());
    let datagrams: Vec<Vec<u8>> = (0..WRONG_DATAGRAMS)
        .map(|_| wrong_datagram(&mut rng, &right))
        .collect();
    let frames: Vec<Vec<u8>> = datagrams
        .iter()
        .map(|it| datagram_frame(PORTS.0, PORTS.1, it))
        .collect();
    let shown = shown(&recording("datagrams"), &frames, &AS_PACKETS, &[])?;
    compare(&datagrams, &shown)?;
    for problem in PROBLEMS {
        let name = format!("quorumwire.{problem}");
        let times = shown.iter().filter(|it| it.contains_key(&name)).count();
        println!("{problem} {times}");
        assert!(times > 0, "never shown: {problem}");
    }
    Ok(())
}
