//! The C step as safe Rust: values in, values out. Nothing is decided here.
use crate::ffi;
use crate::shared::{Gap, Outcome};
use quorumwire_wire::packet::{
    ACTION_STORE, HEADER_BYTES, Header, PAYLOAD_BYTES_MAX, PacketReason, Registers,
};

/// Most bytes that [`siphash`] takes.
pub const SIPHASH_BYTES_MAX: usize = PAYLOAD_BYTES_MAX;

impl Outcome {
    /// Why the packet was not taken, or not as the sender meant it.
    #[must_use]
    pub fn reason(&self) -> PacketReason {
        reason(self.reason)
    }

    /// Whether an entry was given its index.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.has(ACTION_STORE)
    }

    /// Whether one of these actions is to be carried out.
    #[must_use]
    pub fn has(&self, actions: u32) -> bool {
        self.actions & actions != 0
    }
}

/// A `SipHash` key: `struct qw_key`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct SipKey {
    low: u64,
    high: u64,
}

impl SipKey {
    /// The key made of these bytes, as `SipHash`'s authors read them.
    #[must_use]
    pub fn new(bytes: [u8; 16]) -> Self {
        let [low, high] =
            [0, 8].map(|from| u64::from_le_bytes(std::array::from_fn(|place| bytes[from + place])));
        Self { low, high }
    }
}

/// Words of a digest's key: `struct qw_digest_key`.
const DIGEST_KEY_WORDS: usize = PAYLOAD_BYTES_MAX.div_ceil(8) + 1;

/// What tags are made with: `struct qw_tag_key`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct TagKey {
    sip: SipKey,
    digest: [u64; DIGEST_KEY_WORDS],
}

impl TagKey {
    /// The key made of a secret of these bytes.
    #[must_use]
    pub fn new(secret: [u8; 16]) -> Self {
        let mut made = Self::default();
        ffi::tag_key_make(&mut made, &SipKey::new(secret));
        made
    }

    /// As it stands in memory, for a program in the kernel.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let words = [self.sip.low, self.sip.high].into_iter();
        words
            .chain(self.digest)
            .flat_map(u64::to_ne_bytes)
            .collect()
    }
}

impl Default for TagKey {
    fn default() -> Self {
        Self {
            sip: SipKey::default(),
            digest: [0; DIGEST_KEY_WORDS],
        }
    }
}

/// Keys of two epochs: `struct qw_key_pair`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct KeyPair {
    key: [TagKey; 2],
    valid: u64,
}

impl KeyPair {
    /// Keys by the lowest bit of their epoch's number; `None` where none is valid.
    #[must_use]
    pub fn new(keys: [Option<[u8; 16]>; 2]) -> Self {
        let mut pair = Self::default();
        for (epoch, key) in keys.into_iter().enumerate() {
            if let Some(key) = key {
                pair.key[epoch] = TagKey::new(key);
                pair.valid |= 1 << epoch;
            }
        }
        pair
    }

    /// The key of an epoch, if it is valid.
    #[must_use]
    pub fn key(&self, epoch: usize) -> Option<&TagKey> {
        let key = self.key.get(epoch)?;
        (self.valid >> epoch & 1 == 1).then_some(key)
    }
}

/// All keys of a plane: `struct qw_keys`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Keys {
    /// Of what replicas say to each other.
    pub cluster: KeyPair,
    /// Of requests and answers.
    pub clients: KeyPair,
}

fn reason(number: u32) -> PacketReason {
    u8::try_from(number)
        .ok()
        .and_then(PacketReason::from_byte)
        .expect("the C gives only reasons of the schema")
}

fn reason_of(number: i32) -> PacketReason {
    reason(u32::try_from(number).unwrap_or(u32::MAX))
}

/// What a plane does about one packet that has passed [`check`].
#[must_use]
pub fn step(registers: &mut Registers, header: &Header) -> Outcome {
    let mut outcome = Outcome::default();
    ffi::step(registers, header, &mut outcome);
    outcome
}

impl Gap {
    /// Nothing was asked for, and nothing is missing up to here.
    #[must_use]
    pub fn behind(last_index: u64) -> Self {
        Self {
            leader_last: last_index,
            ..Self::default()
        }
    }
}

/// What to say beyond what the step says: `enum qw_asking`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Question {
    /// Nothing else.
    AsSaid,
    /// Not the question that the step made: it was just asked.
    Not,
    /// Ask for what comes behind the entry that was stored.
    More,
}

/// After a step: whether and what a follower asks its leader for.
pub fn gap_after(gap: &mut Gap, header: &Header, outcome: &Outcome) -> Question {
    match ffi::gap_after(gap, header, outcome) {
        0 => Question::AsSaid,
        1 => Question::Not,
        _ => Question::More,
    }
}

/// Leader: gives a command of its own host its index; the fields are those of a REQUEST.
#[must_use]
pub fn submit(registers: &mut Registers, header: &Header) -> Outcome {
    let mut outcome = Outcome::default();
    ffi::submit(registers, header, &mut outcome);
    outcome
}

/// Everything up to here is durable.
#[must_use]
pub fn persisted(registers: &mut Registers, upto: u64) -> Outcome {
    let mut outcome = Outcome::default();
    ffi::persisted(registers, upto, &mut outcome);
    outcome
}

/// Leader: begins a heartbeat round, which must be above the last.
#[must_use]
pub fn heartbeat(registers: &mut Registers, round: u64) -> Outcome {
    let mut outcome = Outcome::default();
    ffi::heartbeat(registers, round, &mut outcome);
    outcome
}

/// The slots of everything up to here may be reused; `false` if that was never stored.
#[must_use]
pub fn release(registers: &mut Registers, upto: u64) -> bool {
    ffi::release(registers, upto) != 0
}

/// Whether a request asks for what only a replica's host does.
#[must_use]
pub fn is_for_hosts_only(header: &Header) -> bool {
    ffi::for_hosts_only(header) != 0
}

/// Whether a plane may be switched on with these registers.
#[must_use]
pub fn registers_sound(registers: &Registers) -> bool {
    ffi::registers_sound(registers) != 0
}

/// Checks a datagram's form, then its tag, and splits it. Reads no state.
pub fn check<'a>(keys: &Keys, datagram: &'a [u8]) -> Result<(Header, &'a [u8]), PacketReason> {
    let Some(frame) = datagram.first_chunk::<HEADER_BYTES>() else {
        return Err(PacketReason::NotOurs);
    };
    let mut header = Header::default();
    let form = reason_of(ffi::check_form(datagram, &mut header));
    if form != PacketReason::None {
        return Err(form);
    }
    let payload = datagram
        .get(HEADER_BYTES..HEADER_BYTES + usize::from(header.payload_bytes))
        .ok_or(PacketReason::Malformed)?;
    let tag = reason_of(ffi::check_tag(keys, &header, frame, payload));
    if tag != PacketReason::None {
        return Err(tag);
    }
    Ok((header, payload))
}

/// The tag of an encoded header and its payload, of at most `PAYLOAD_BYTES_MAX` bytes.
#[must_use]
pub fn tag(key: &TagKey, header: &[u8; HEADER_BYTES], payload: &[u8]) -> u64 {
    ffi::tag(key, header, payload)
}

/// SipHash-2-4 of at most [`SIPHASH_BYTES_MAX`] bytes.
#[must_use]
pub fn siphash(key: &SipKey, message: &[u8]) -> u64 {
    ffi::siphash(key, message)
}

/// The header's bytes as the C writes them.
#[must_use]
pub fn encode(header: &Header) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    ffi::encode(header, &mut bytes);
    bytes
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use quorumwire_wire::packet::{Kind, MAGIC, VERSION};

    fn header() -> Header {
        Header {
            magic: MAGIC,
            version: VERSION,
            kind: Kind::Append as u8,
            payload_bytes: 5,
            ..Header::default()
        }
    }

    /// A whole packet, not signed.
    pub fn packet() -> Vec<u8> {
        [&header().encode()[..], &[7; 5]].concat()
    }

    /// What the C says of a form, and what it has decoded. [`check`] looks at the lengths itself before it
    /// calls; here only the C does, as in planes without Rust around it.
    pub fn form(frame: &[u8]) -> (PacketReason, Header) {
        let mut decoded = Header::default();
        let form = reason_of(ffi::check_form(frame, &mut decoded));
        (form, decoded)
    }

    /// Cuts a packet everywhere.
    pub fn assert_the_c_takes_nothing_cut() {
        let packet = packet();
        for bytes in 0..HEADER_BYTES {
            let untouched = (PacketReason::NotOurs, Header::default());
            assert_eq!(form(&packet[..bytes]), untouched, "{bytes} bytes");
        }
        for bytes in HEADER_BYTES..packet.len() {
            assert_eq!(
                form(&packet[..bytes]).0,
                PacketReason::Malformed,
                "{bytes} bytes"
            );
        }
    }

    #[test]
    fn the_c_takes_nothing_cut() {
        assert_the_c_takes_nothing_cut();
        assert_eq!(form(&packet()), (PacketReason::None, header()));
    }
}
