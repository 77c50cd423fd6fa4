//! What the dissector has to show of a datagram: what the Rust decoders say of the same bytes.

use std::net::Ipv6Addr;

use quorumwire_cluster_tests::tshark::Shown;
use quorumwire_fastpath::{Keys, check};
use quorumwire_interfaces::Reason;
use quorumwire_wire::packet::{
    ACCEPTORS_MAX, FLAG_BUNDLE, FLAG_FRAGMENT, FLAG_REFUSED, FLAG_TICK, HEADER_BYTES, Header, Kind,
    LIFE_BYTES, MAGIC, ORIGIN_BYTES, PacketReason, VERSION,
};
use quorumwire_wire::{Bundle, LineageMessage, LineagePacket, Tick};

/// Where each field of the header stands, and how many bytes it has. Those of `HEXADECIMAL` are shown so.
const HEADER: [(&str, usize, usize); 15] = [
    ("magic", 0, 2),
    ("version", 2, 1),
    ("kind", 3, 1),
    ("sender", 4, 1),
    ("flags", 5, 1),
    ("payload_bytes", 6, 2),
    ("group", 8, 4),
    ("payload_crc32c", 12, 4),
    ("term", 16, 8),
    ("index", 24, 8),
    ("previous_term", 32, 8),
    ("commit_index", 40, 8),
    ("session", 48, 8),
    ("sequence", 56, 8),
    ("tag", 64, 8),
];
const HEXADECIMAL: [&str; 5] = ["magic", "flags", "payload_crc32c", "session", "tag"];
const FLAGS: [&str; 7] = [
    "epoch", "blind", "tick", "fragment", "refused", "bundle", "tell",
];
/// What follows from these.
const DERIVED: [&str; 40] = [
    "heartbeat_round",
    "instance",
    "configuration",
    "round",
    "vote_round",
    "refused_round",
    "round.count",
    "round.owner",
    "drawn",
    "bound",
    "forgotten",
    "highest",
    "kept",
    "learned",
    "life",
    "refusal",
    "refusal.executed",
    "payload_crc32c.right",
    "payload",
    "origin.address",
    "origin.port",
    "piece.number",
    "piece.count",
    "log_time_ms",
    "wall_clock_ms",
    "bundled.kind",
    "bundled.bytes",
    "bundled",
    "data",
    "trailing",
    "lineage.version",
    "lineage.kind",
    "lineage.question",
    "lineage.lineage",
    // What is wrong with the form, and with what is in it.
    "form",
    "wrong_checksum",
    "cut_piece",
    "wrong_bundle",
    "wrong_configuration",
    "wrong_tick",
];
/// What is wrong with the form, as the dissector tells it apart, and what the C says of it.
const FORM: [(&str, &[PacketReason]); 6] = [
    ("cut", &[PacketReason::NotOurs, PacketReason::Malformed]),
    ("too_long", &[PacketReason::Malformed]),
    ("other_version", &[PacketReason::Version]),
    ("unknown_kind", &[PacketReason::Malformed]),
    ("unknown_flags", &[PacketReason::Malformed]),
    ("wrong_size", &[PacketReason::Malformed]),
];
/// Stands where something is wrong: the field has no value.
const THERE: &str = "1";

/// All fields that are compared, as a filter names them.
pub fn fields() -> Vec<String> {
    let of_header = HEADER.iter().map(|(name, ..)| (*name).to_owned());
    let flags = FLAGS.iter().map(|name| format!("flags.{name}"));
    let derived = DERIVED.iter().filter(|name| **name != "form");
    let derived = derived.map(|name| (*name).to_owned());
    let form = FORM.iter().map(|(name, _)| (*name).to_owned());
    let all = of_header.chain(flags).chain(derived).chain(form);
    all.map(|name| format!("quorumwire.{name}")).collect()
}

/// What was shown of these fields, with addresses as Rust writes them. In place of each way in which the form
/// can be wrong stands, as `form`, that one of them is.
pub fn compared(shown: &Shown) -> Shown {
    let mut compared = Shown::new();
    for name in fields() {
        let Some(values) = shown.get(&name) else {
            continue;
        };
        let name = name.trim_start_matches("quorumwire.");
        if FORM.iter().any(|(form, _)| *form == name) {
            compared.insert("form".to_owned(), vec![THERE.to_owned()]);
            continue;
        }
        let values = values.iter().map(|it| match it.parse::<Ipv6Addr>() {
            Ok(address) if name == "origin.address" => address.to_string(),
            _ => it.clone(),
        });
        compared.insert(name.to_owned(), values.collect());
    }
    compared
}

/// In which way the form is said to be wrong must be one that the C means by its reason. It looks for a cut
/// packet before it looks at the version.
pub fn form_agrees(shown: &Shown, datagram: &[u8]) -> bool {
    let told = FORM
        .iter()
        .filter(|(name, _)| shown.contains_key(&format!("quorumwire.{name}")));
    let mut told = told.map(|(_, reasons)| *reasons).peekable();
    let is_cut = datagram.len() < HEADER_BYTES;
    let reason = match datagram.get(2) {
        Some(version) if is_cut && *version != VERSION => PacketReason::Version,
        _ => reason(datagram),
    };
    told.peek().is_none() || told.any(|reasons| reasons.contains(&reason))
}

/// What the C says of the form alone: without keys a sound one is refused for its tag.
fn reason(datagram: &[u8]) -> PacketReason {
    match check(&Keys::default(), datagram) {
        Ok(_) => panic!("a tag was right without a key"),
        Err(reason) => reason,
    }
}

struct Expected<'a> {
    header: Header,
    payload: &'a [u8],
    shown: Shown,
}

/// What is to be shown of one datagram.
pub fn expected(datagram: &[u8]) -> Shown {
    if let Some(shown) = of_lineage(datagram) {
        return shown;
    }
    if !datagram.starts_with(&MAGIC.to_be_bytes()) {
        return Shown::new();
    }
    let mut expected = Expected {
        header: Header::default(),
        payload: &[],
        shown: Shown::new(),
    };
    let is_of_version = datagram.get(2).is_none_or(|version| *version == VERSION);
    let known = if is_of_version { HEADER.len() } else { 2 };
    for (name, at, bytes) in HEADER.into_iter().take(known) {
        if let Some(field) = datagram.get(at..at + bytes) {
            expected.field(name, field);
        }
    }
    if let Some((head, rest)) = datagram.split_first_chunk::<HEADER_BYTES>()
        && is_of_version
    {
        expected.header = Header::decode(head);
        expected.payload = rest;
        expected.whole_header();
    }
    if reason(datagram) != PacketReason::Tag {
        expected.add("form", THERE);
    }
    expected.shown
}

/// What is to be shown of a question for the lineage, or of an answer.
fn of_lineage(datagram: &[u8]) -> Option<Shown> {
    let (packet, _) = LineagePacket::decode(datagram)?;
    let (kind, lineage) = match packet.message {
        LineageMessage::Question => (1, 0),
        LineageMessage::Answer(lineage) => (2, lineage.0),
    };
    let shown = [
        ("lineage.version", "1".to_owned()),
        ("lineage.kind", kind.to_string()),
        ("lineage.question", hex::encode(packet.question)),
        ("lineage.lineage", hex::encode(lineage.to_be_bytes())),
    ];
    let shown = shown.map(|(name, value)| (name.to_owned(), vec![value]));
    Some(Shown::from(shown))
}

impl Expected<'_> {
    #[allow(clippy::needless_pass_by_value)] // numbers, mostly
    fn add(&mut self, name: &str, value: impl ToString) {
        let values = self.shown.entry(name.to_owned()).or_default();
        values.push(value.to_string());
    }

    fn field(&mut self, name: &str, bytes: &[u8]) {
        let number = bytes
            .iter()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        if HEXADECIMAL.contains(&name) {
            let digits = 2 * bytes.len();
            self.add(name, format!("0x{number:0digits$x}"));
        } else {
            self.add(name, number);
        }
    }

    fn has(&self, flag: u8) -> bool {
        self.header.flags & flag != 0
    }

    fn whole_header(&mut self) {
        for (bit, name) in FLAGS.into_iter().enumerate() {
            self.add(&format!("flags.{name}"), self.header.flags >> bit & 1);
        }
        let payload_bytes = usize::from(self.header.payload_bytes);
        let Some(kind) = Kind::from_byte(self.header.kind) else {
            return self.bytes_of(payload_bytes);
        };
        self.meaning(kind);
        self.bytes_of(payload_bytes);
        if let Some(payload) = self.payload.get(..payload_bytes) {
            self.checksum(kind, payload);
            self.contents(kind, payload);
        }
    }

    /// The payload, or what is there of it, and what is too much.
    fn bytes_of(&mut self, payload_bytes: usize) {
        let (payload, trailing) = self
            .payload
            .split_at_checked(payload_bytes)
            .unwrap_or((self.payload, &[]));
        for (name, bytes) in [("payload", payload), ("trailing", trailing)] {
            if !bytes.is_empty() {
                self.add(name, hex::encode(bytes));
            }
        }
    }

    fn checksum(&mut self, kind: Kind, payload: &[u8]) {
        let before = if kind == Kind::Forward {
            ORIGIN_BYTES
        } else {
            0
        };
        let Some(covered) = payload.get(before..) else {
            return;
        };
        let is_right = crc32c::crc32c(covered) == self.header.payload_crc32c;
        self.add("payload_crc32c.right", u8::from(is_right));
        if !is_right {
            self.add("wrong_checksum", THERE);
        }
    }

    fn round(&mut self, name: &str, round: u64) {
        self.add(name, round);
        self.add("round.count", round >> 8);
        self.add("round.owner", round & 255);
    }

    fn meaning(&mut self, kind: Kind) {
        let header = self.header;
        match kind {
            Kind::AppendOk | Kind::Retransmit | Kind::Heartbeat | Kind::HeartbeatOk => {
                self.add("heartbeat_round", header.sequence);
            }
            Kind::Answer if self.has(FLAG_REFUSED) => {
                let reason = Reason::from_code(header.previous_term);
                self.add("refusal", format!("{reason:?}"));
                let executed = format!("{:?}", reason.executed());
                self.add("refusal.executed", executed.to_lowercase());
            }
            Kind::P1a | Kind::P1b | Kind::P2a | Kind::P2b | Kind::Admit => self.of_paxos(kind),
            Kind::Checkpoint => {
                self.add("kept", header.index);
                self.add("learned", header.sequence);
                self.add("configuration", header.commit_index);
            }
            Kind::Answer | Kind::Request | Kind::Append | Kind::Forward | Kind::Submit => {}
        }
    }

    fn of_paxos(&mut self, kind: Kind) {
        let header = self.header;
        if kind != Kind::Admit {
            self.add("instance", header.index);
        }
        self.add("configuration", header.commit_index);
        self.round("round", header.term);
        if kind == Kind::P1a {
            self.add("drawn", format!("0x{:016x}", header.session));
        } else if kind == Kind::Admit {
            self.add("bound", header.previous_term);
            self.add("forgotten", header.session);
        } else if self.has(FLAG_REFUSED) {
            self.round("refused_round", header.previous_term);
            self.add("forgotten", header.sequence);
        } else if kind == Kind::P1b && header.index == 0 {
            self.add("bound", header.previous_term);
            self.add("forgotten", header.session);
            self.add("highest", header.sequence);
        } else if kind == Kind::P2b || kind == Kind::P1b && header.previous_term != 0 {
            self.round("vote_round", header.previous_term);
        }
    }

    fn contents(&mut self, kind: Kind, payload: &[u8]) {
        let mut rest = payload;
        let is_vote = matches!(kind, Kind::P1b | Kind::P2b) && !self.has(FLAG_REFUSED);
        if matches!(kind, Kind::P1a | Kind::Admit | Kind::P1b | Kind::P2b) && !is_vote {
            return self.configuration(payload);
        }
        if kind == Kind::Forward
            && let Some((origin, behind)) = rest.split_first_chunk::<ORIGIN_BYTES>()
        {
            let (address, port) = origin.split_first_chunk::<16>().expect("18 bytes");
            self.add("origin.address", Ipv6Addr::from(*address));
            self.field("origin.port", port);
            rest = behind;
        }
        let takes_pieces = matches!(
            kind,
            Kind::Request | Kind::Append | Kind::Answer | Kind::Forward | Kind::Submit | Kind::P2a
        );
        if self.has(FLAG_FRAGMENT) && (takes_pieces || is_vote) {
            rest = self.piece(kind, rest);
        }
        if kind == Kind::Append && self.has(FLAG_BUNDLE) {
            return self.bundle(rest);
        }
        if kind == Kind::Append && self.has(FLAG_TICK) {
            let Some(tick) = Tick::decode(rest) else {
                return self.add("wrong_tick", THERE);
            };
            self.add("log_time_ms", tick.log_time_ms);
            if let Some(wall_ms) = tick.wall_ms {
                self.add("wall_clock_ms", wall_ms);
            }
            return;
        }
        let is_for_people = kind == Kind::Answer && self.has(FLAG_REFUSED);
        if !rest.is_empty() && !is_for_people {
            self.add("data", hex::encode(rest));
        }
    }

    fn piece<'b>(&mut self, kind: Kind, payload: &'b [u8]) -> &'b [u8] {
        let names = if kind == Kind::Answer {
            &["piece.number"][..]
        } else {
            &["piece.number", "piece.count"]
        };
        let Some((numbers, rest)) = payload.split_at_checked(4 * names.len()) else {
            self.add("cut_piece", THERE);
            return payload;
        };
        for (name, number) in names.iter().zip(numbers.chunks(4)) {
            self.field(name, number);
        }
        rest
    }

    fn configuration(&mut self, payload: &[u8]) {
        let lives = payload.chunks_exact(LIFE_BYTES);
        if payload.len() > ACCEPTORS_MAX * LIFE_BYTES || !lives.remainder().is_empty() {
            return self.add("wrong_configuration", THERE);
        }
        for life in lives {
            self.add("life", format!("0x{}", hex::encode(life)));
        }
    }

    fn bundle(&mut self, payload: &[u8]) {
        let whole = Bundle::of(payload);
        if whole.is_none() {
            self.add("wrong_bundle", THERE);
        }
        for (kind, command) in whole.into_iter().flatten() {
            self.add("bundled.kind", kind as u8);
            self.add("bundled.bytes", command.len());
            if !command.is_empty() {
                self.add("bundled", hex::encode(command));
            }
        }
    }
}

/// Of a bundle that is none the dissector shows what came before what is wrong, and the decoder nothing.
pub fn without_commands_of_no_bundle(mut shown: Shown) -> Shown {
    if shown.contains_key("wrong_bundle") {
        for name in ["bundled.kind", "bundled.bytes", "bundled"] {
            shown.remove(name);
        }
    }
    shown
}
