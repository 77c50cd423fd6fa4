//! Small files of shared structures: what is made of them, typed by hand, and what is wrong with others.
use super::{Elsewhere, Shared, c, parse, rust, systemverilog, table};
use crate::schema;
use anyhow::Result;

const FORMAT: &str = include_str!("../../../../wire/format.toml");

const FASTPATH: &str = include_str!("../../../../fastpath/shared.toml");
const XDP: &str = include_str!("../../../../dataplanes/xdp/shared.toml");

const SMALL: &str = r#"
about = "What two share."
includes = ["before.h"]
[[limits]]
name = "most"
value = 3
rust = "u32"
doc = "At most so many."
[[enums]]
name = "way"
bits = 8
doc = "Where to."
values = [{ name = "in", value = 1, doc = "There." }, { name = "out", value = 4, doc = "Back." }]
[[external]]
name = "lock"
bytes = 8
align = 4
rust = "elsewhere::Lock"
[[structs]]
name = "end"
rust = "whole"
size_bytes = 4
doc = "One end."
fields = [
  { name = "port", bits = 16, network = true, doc = "A port." },
  { name = "ways", bits = 8, count = 2, doc = "Both ways." },
]
[[structs]]
name = "room"
rust = "before:rest"
size_bytes = 32
doc = "A room."
fields = [
  { name = "lock", is = "lock", doc = "Who is in it." },
  { name = "ends", is = "end", count = "most", doc = "All ends." },
  { name = "rest", bits = 32, count = "most", doc = "What is left." },
]
[[counters]]
name = "came"
engine = true
doc = "Those that came."
[[counters]]
name = "went"
interface = true
doc = "Those that went."
"#;

fn parsed(text: &str) -> Result<Shared> {
    let schema = schema::parse(FORMAT)?;
    parse(text, &schema, Elsewhere::of_packets(&schema))
}

/// Name, bytes, and where each field stands.
type Layout = (&'static str, usize, &'static [usize]);

/// As both sides had them when they were typed by hand: programs that run go on with the same memory.
const LAYOUTS: [Layout; 21] = [
    ("outcome", 96, &[0, 72, 80, 88, 92]),
    ("gap", 24, &[0, 8, 16]),
    ("memcached_set", 16, &[0, 4, 6, 8, 10, 12, 14]),
    ("recent_answer", 1648, &[0, 2, 4, 256]),
    ("recent", 3304, &[0, 8]),
    ("endpoint", 24, &[0, 16, 18]),
    (
        "slot",
        1448,
        &[0, 8, 16, 24, 32, 36, 38, 39, 40, 64, 66, 67, 72],
    ),
    ("config", 32, &[0, 4, 8, 12, 16, 24, 28]),
    ("own", 32, &[0, 24, 28]),
    ("trial_head", 16, &[0, 4, 8]),
    ("trial", 272, &[0, 16]),
    (
        "group",
        320,
        &[0, 8, 208, 232, 240, 248, 256, 264, 272, 280],
    ),
    ("control", 1568, &[0, 4, 8, 12, 16, 24, 224, 800]),
    ("box", 128, &[0, 8, 88, 96]),
    ("instance", 1432, &[0, 56]),
    ("box_control", 1696, &[0, 4, 8, 16, 96, 168, 264, 320]),
    ("keys_at", 5632, &[0, 5616, 5624]),
    ("in_step", 64, &[0, 8, 16, 24]),
    ("leave", 32, &[0, 8, 16, 24, 26]),
    ("leaves", 256, &[0]),
    ("event", 24, &[0, 4, 6, 8, 16]),
];

#[test]
fn the_committed_structures_stand_where_they_stood() {
    let schema = schema::parse(FORMAT).unwrap();
    let packets = Elsewhere::of_packets(&schema);
    let fastpath = parse(FASTPATH, &schema, packets).unwrap();
    let below = Elsewhere::of_packets(&schema).and(&fastpath, "quorumwire_fastpath");
    let xdp = parse(XDP, &schema, below).unwrap();
    let all: Vec<_> = fastpath.structs.iter().chain(&xdp.structs).collect();
    assert_eq!(all.len(), LAYOUTS.len());
    for (made, (name, bytes, offsets)) in all.into_iter().zip(LAYOUTS) {
        let places: Vec<_> = made.fields.iter().map(|field| field.offset).collect();
        assert_eq!((made.name.as_str(), made.bytes), (name, bytes));
        assert_eq!(places, offsets, "{name}");
    }
    let names: Vec<_> = xdp.counters.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names.len(), 23);
    assert_eq!(
        (names[0], names[12], names[22]),
        ("received", "events_lost", "came_by_other_queue")
    );
}

/// Some lines of what gates and people get, typed by hand.
#[test]
fn gates_and_people_are_told_where_things_stand() {
    let shared = parsed(SMALL).unwrap();
    let gates = systemverilog::generate(&shared, "a/file", "small_pkg");
    let page = table::generate(&shared, "a/file", "Small");
    for (text, line) in [
        (&gates, "package small_pkg;"),
        (&page, "# Small"),
        (&page, "| at | name | bytes | |"),
    ] {
        assert!(text.lines().any(|it| it == line), "{line:?} in {text}");
    }
    for one in &shared.structs {
        let bytes = format!(
            "localparam int {}_BYTES = {};",
            one.name.to_uppercase(),
            one.bytes
        );
        assert!(gates.contains(&bytes), "{bytes} in {gates}");
        for field in &one.fields {
            let row = format!("| `{:#05x}` | `{}` |", field.offset, field.name);
            assert!(page.contains(&row), "{row} in {page}");
        }
    }
}

#[test]
fn c_is_what_was_typed() {
    let c = c::generate(&parsed(SMALL).unwrap(), "a/file", "SMALL");
    let typed = "/* Generated from a/file by `make generate`; do not edit.
 * What two share. */
#ifndef QW_SMALL_H
#define QW_SMALL_H

#include \"qw_wire.h\"
#include \"before.h\"

/* At most so many. */
#define QW_MOST 3

/* Where to. */
enum qw_way {
\t/* There. */
\tQW_WAY_IN = 1,
\t/* Back. */
\tQW_WAY_OUT = 4,
};

_Static_assert(sizeof(struct qw_lock) == 8, \"qw_lock has 8 bytes\");

/* One end. */
struct qw_end {
\t/* A port. */
\t__be16 port;
\t/* Both ways. */
\t__u8 ways[2];
};
_Static_assert(sizeof(struct qw_end) == 4, \"qw_end has 4 bytes\");
_Static_assert(__builtin_offsetof(struct qw_end, port) == 0, \"port is at 0\");
_Static_assert(__builtin_offsetof(struct qw_end, ways) == 2, \"ways is at 2\");

/* A room. */
struct qw_room {
\t/* Who is in it. */
\tstruct qw_lock lock;
\t/* All ends. */
\tstruct qw_end ends[QW_MOST];
\t/* What is left. */
\t__u32 rest[QW_MOST];
};
_Static_assert(sizeof(struct qw_room) == 32, \"qw_room has 32 bytes\");
_Static_assert(__builtin_offsetof(struct qw_room, lock) == 0, \"lock is at 0\");
_Static_assert(__builtin_offsetof(struct qw_room, ends) == 8, \"ends is at 8\");
_Static_assert(__builtin_offsetof(struct qw_room, rest) == 20, \"rest is at 20\");

/* What is counted, behind the reasons. */
enum qw_count {
\t/* Those that came. */
\tQW_COUNT_CAME = QW_REASON_COUNT,
\t/* Those that went. */
\tQW_COUNT_WENT,
\tQW_COUNT_COUNT,
};

#endif
";
    assert_eq!(c, typed);
}

#[test]
fn rust_is_what_was_typed() {
    let rust = rust::generate(&parsed(SMALL).unwrap(), "a/file");
    let typed = "// Generated from a/file by `make generate`; do not edit.
use elsewhere::Lock;
use quorumwire_interfaces::Counter;

/// At most so many.
pub const MOST: u32 = 3;
/// Where to. There.
pub const WAY_IN: u8 = 1;
/// Where to. Back.
pub const WAY_OUT: u8 = 4;

const _: () = assert!(size_of::<Lock>() == 8);

/// One end.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(C)]
pub struct End {
    /// A port.
    pub port: [u8; 2],
    /// Both ways.
    pub ways: [u8; 2],
}
const _: () = {
    assert!(size_of::<End>() == 4);
    assert!(std::mem::offset_of!(End, port) == 0);
    assert!(std::mem::offset_of!(End, ways) == 2);
};
/// Bytes of `end`.
pub const END_BYTES: usize = 4;
/// Where `port` stands in `end`.
pub const END_PORT_AT: usize = 0;
/// Where `ways` stands in `end`.
pub const END_WAYS_AT: usize = 2;

/// A room. Up to `rest`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(C)]
pub struct RoomHead {
    /// Who is in it.
    pub lock: Lock,
    /// All ends.
    pub ends: [End; 3],
}
const _: () = {
    assert!(size_of::<RoomHead>() == 20);
    assert!(std::mem::offset_of!(RoomHead, lock) == 0);
    assert!(std::mem::offset_of!(RoomHead, ends) == 8);
};
/// Bytes of `room`.
pub const ROOM_BYTES: usize = 32;
/// Where `lock` stands in `room`.
pub const ROOM_LOCK_AT: usize = 0;
/// Where `ends` stands in `room`.
pub const ROOM_ENDS_AT: usize = 8;
/// Where `rest` stands in `room`.
pub const ROOM_REST_AT: usize = 20;

/// What is counted, behind the reasons: names, in the order of their numbers.
pub const COUNTS: [&str; 2] = [
    COUNT_CAME,
    COUNT_WENT,
];
/// Those that the interface counts, too, or alone.
pub const COUNTS_OF_INTERFACE: [&str; 1] = [
    COUNT_WENT,
];
/// Those that the engine does not count, too, for people.
pub const COUNTERS_OF_PROGRAMS: &[Counter] = &[
    Counter {
        name: COUNT_WENT,
        help: \"Those that went\",
    },
];
/// Those that came.
pub const COUNT_CAME: &str = \"came\";
/// Those that went.
pub const COUNT_WENT: &str = \"went\";
";
    assert_eq!(rust, typed);
}

#[test]
fn wrong_files_are_refused_by_name() {
    let cases = [
        (
            "size_bytes = 4",
            "size_bytes = 5",
            "[end] the fields have 4",
        ),
        (
            "bits = 16, network",
            "bits = 24, network",
            "[end] port: it has",
        ),
        ("is = \"lock\"", "is = \"look\"", "no structure \"look\""),
        (
            "count = \"most\"",
            "count = \"least\"",
            "\"least\" is no limit",
        ),
        ("count = 2", "count = 0", "`count` must be"),
        ("name = \"room\"", "name = \"end\"", "two end"),
        (
            "name = \"ways\"",
            "name = \"port\"",
            "[end] there are two port",
        ),
        ("before:rest", "before:next", "`rust` is \"before:next\""),
        (
            "align = 4",
            "align = 8",
            "[room] 20 bytes stand before rest",
        ),
        ("rust = \"u32\"", "rust = \"i32\"", "\"i32\" is no type"),
        (
            "value = 3",
            "value = 4294967296",
            "most: 4294967296 is more",
        ),
        ("value = 4", "value = 1", "way out: 1 must be more"),
        ("bits = 8\n", "bits = 16\n", "way: 16 bits"),
        ("bytes = 8\n", "bytes = 6\n", "rest: at byte 18"),
        ("At most so many.", "At most", "most: `doc` must be"),
        ("name = \"went\"", "name = \"came\"", "two came"),
    ];
    for (from, to, expected) in cases {
        let wrong = SMALL.replacen(from, to, 1);
        assert_ne!(wrong, SMALL, "{from:?} is not in the file");
        let found = format!("{:#}", parsed(&wrong).unwrap_err());
        assert!(found.contains(expected), "{from:?} to {to:?}: {found}");
    }
}
