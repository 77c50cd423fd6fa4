//! The network between replicas: who is connected, what is cut, and what becomes of each message.
use crate::counts::Counts;
use crate::fault::{ByteFault, Class, NetworkFault};
use crate::machine::GROUP;
use crate::queue::{MICROSECOND, Nanos};
use crate::random::Random;
use bytes::{Bytes, BytesMut};
use quorumwire_control::{Body, Message, Peer};
use quorumwire_group::GroupMessage;
use quorumwire_wire::peer::{PeerMessage, peer_message};
use quorumwire_wire::prost::Message as _;
use quorumwire_wire::{FRAME_HEADER_BYTES, FrameHeader, RECORD_HEADER_BYTES, encode_frame};

/// Messages under way; more are lost, as in full buffers.
const UNDER_WAY_MAX: usize = 20_000;
/// One message in so many travels as the bytes it is in the product.
const AS_BYTES_ONE_IN: u64 = 32;

/// What one replica says to another one.
#[derive(Clone)]
pub enum Saying {
    /// Its consensus does.
    Consensus(Message),
    /// Its key of a fast term.
    Key(Box<PeerMessage>),
    /// About a request that was passed on.
    PassedOn(Box<PeerMessage>, Bytes),
}

/// A message under way.
pub struct Envelope {
    /// Who sent it, in which life.
    pub from: Peer,
    /// Whom it is for, in which life.
    pub to: Peer,
    /// What it says.
    pub message: Saying,
}

/// A direction between two machines, by their numbers.
pub type Link = (usize, usize);

/// Everything between the machines.
pub struct Network {
    size: usize,
    /// How many faults cut this direction.
    cuts: Vec<u8>,
    /// Nothing arrives before this.
    clogged_until: Vec<Nanos>,
    connected: Vec<bool>,
    /// The last arrival of those whose order is kept.
    kept_upto: Vec<Nanos>,
    /// Since when a connected pair hears nothing in some direction; `Nanos::MAX`: it hears.
    silent_since: Vec<Nanos>,
    under_way: Vec<Option<Envelope>>,
    free: Vec<u32>,
    /// Loss, repeats and delays in force.
    pub weather: Vec<(u16, NetworkFault)>,
    /// What will happen to the bytes of next messages.
    pub byte_faults: Vec<ByteFault>,
    delay: (Nanos, Nanos),
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Fate {
    /// When it arrives, and in which slot it waits.
    pub first: Option<(Nanos, u32)>,
    /// The same for a second time.
    pub second: Option<(Nanos, u32)>,
    /// The receiver cannot read it: the connection ends.
    pub breaks: bool,
    /// The wire form does not give back what went in.
    pub codec_fails: bool,
}

impl Network {
    /// A network without connections.
    #[must_use]
    pub fn new(size: usize, delay: (Nanos, Nanos)) -> Self {
        Self {
            size,
            cuts: vec![0; size * size],
            clogged_until: vec![0; size * size],
            connected: vec![false; size * size],
            kept_upto: vec![0; size * size],
            silent_since: vec![Nanos::MAX; size * size],
            under_way: Vec::new(),
            free: Vec::new(),
            weather: Vec::new(),
            byte_faults: Vec::new(),
            delay,
        }
    }

    const fn at(&self, (from, to): Link) -> usize {
        from * self.size + to
    }

    /// Whether this direction is cut.
    #[must_use]
    pub fn is_cut(&self, link: Link) -> bool {
        self.cuts[self.at(link)] > 0
    }

    /// Cuts these directions, once more.
    pub fn cut(&mut self, links: &[Link]) {
        for link in links {
            let at = self.at(*link);
            self.cuts[at] = self.cuts[at].saturating_add(1);
        }
    }

    /// Takes such a cut back.
    pub fn mend(&mut self, links: &[Link]) {
        for link in links {
            let at = self.at(*link);
            self.cuts[at] = self.cuts[at].saturating_sub(1);
        }
    }

    /// Whether the planes at these two places do not hear each other, whatever their processes do.
    #[must_use]
    pub fn planes_are_apart(&self, (from, to): Link) -> bool {
        self.weather.iter().any(|(_, fault)| {
            let NetworkFault::PlanesApart { one, other } = fault else {
                return false;
            };
            let (one, other) = (usize::from(*one), usize::from(*other));
            (from, to) == (one, other) || (from, to) == (other, one)
        })
    }

    /// What is sent over this direction arrives not before this time.
    #[must_use]
    pub fn clogged_until(&self, link: Link) -> Nanos {
        self.clogged_until[self.at(link)]
    }

    /// What is sent over this direction arrives not before this time.
    pub fn clog(&mut self, link: Link, until: Nanos) {
        let at = self.at(link);
        self.clogged_until[at] = self.clogged_until[at].max(until);
    }

    /// Everything works again. What is on its way, some of it late by seconds, is lost, as with the
    /// connections it was sent over.
    pub fn heal(&mut self) {
        for envelope in self.under_way.iter_mut().flatten() {
            envelope.to.incarnation.0 = 0;
        }
        self.cuts.fill(0);
        self.clogged_until.fill(0);
        self.weather.clear();
        self.byte_faults.clear();
    }

    /// Whether two machines are connected.
    #[must_use]
    pub fn is_connected(&self, a: usize, b: usize) -> bool {
        self.connected[self.at((a, b))]
    }

    /// Connects or disconnects two machines.
    pub fn set_connected(&mut self, a: usize, b: usize, connected: bool) {
        for link in [(a, b), (b, a)] {
            let at = self.at(link);
            self.connected[at] = connected;
            self.silent_since[at] = Nanos::MAX;
        }
    }

    /// For how long one of two connected machines has been sent nothing.
    pub fn silent_for(&mut self, a: usize, b: usize, now: Nanos) -> Nanos {
        let at = self.at((a, b));
        if !self.is_cut((a, b)) && !self.is_cut((b, a)) {
            self.silent_since[at] = Nanos::MAX;
            return 0;
        }
        self.silent_since[at] = self.silent_since[at].min(now);
        now - self.silent_since[at]
    }

    /// Sends a message and says what becomes of it.
    pub fn send(
        &mut self,
        now: Nanos,
        link: Link,
        mut envelope: Envelope,
        random: &mut Random,
        counts: &mut Counts,
    ) -> Fate {
        let mut fate = Fate::default();
        counts.messages += 1;
        if !self.byte_faults.is_empty() && !self.spoil(&mut envelope, random, counts) {
            fate.breaks = true;
            return fate;
        }
        if random.next().is_multiple_of(AS_BYTES_ONE_IN) && !survives_as_bytes(&envelope.message) {
            fate.codec_fails = true;
            return fate;
        }
        let mut delay = random.between(self.delay.0, self.delay.1);
        let mut again = None;
        // Consensus lives with worse than a connection does to it. All else counts on what a connection
        // keeps: no message comes twice, and none before one that was sent earlier. It may be lost where a
        // cut is over before the connection ends.
        let is_key = matches!(envelope.message, Saying::Key(_));
        if is_key {
            delay = self.delay.0; // as on a connection, unless the weather has it otherwise
        }
        let is_kept = matches!(envelope.message, Saying::PassedOn(..));
        for place in 0..self.weather.len() {
            match self.weather[place].1 {
                NetworkFault::Loss { .. } | NetworkFault::Repeat { .. } if is_kept => {}
                NetworkFault::Loss { permille } if random.permille(u64::from(permille)) => {
                    counts.hit(Class::F1Loss);
                    see_if(is_key, "key lost", counts);
                    return fate;
                }
                NetworkFault::Repeat { permille, late } if random.permille(u64::from(permille)) => {
                    counts.hit(Class::F2Repeat);
                    see_if(is_key, "key repeated", counts);
                    again = Some(random.below(late));
                }
                NetworkFault::Late { permille, late } if random.permille(u64::from(permille)) => {
                    counts.hit(Class::F3Late);
                    see_if(is_key, "key late", counts);
                    delay += random.below(late);
                }
                NetworkFault::Loss { .. }
                | NetworkFault::Repeat { .. }
                | NetworkFault::Late { .. }
                | NetworkFault::SpoilDatagrams { .. }
                | NetworkFault::ReplayDatagrams { .. }
                | NetworkFault::PlanesApart { .. } => {}
            }
        }
        if self.under_way.len() - self.free.len() >= UNDER_WAY_MAX {
            counts.messages_dropped += 1;
            return fate;
        }
        let clogged_until = self.clogged_until[self.at(link)];
        let mut arrives = (now + delay).max(clogged_until);
        if is_kept {
            let at = self.at(link);
            arrives = arrives.max(self.kept_upto[at] + 1);
            self.kept_upto[at] = arrives;
        }
        if let Some(later) = again {
            let copy = Envelope {
                from: envelope.from,
                to: envelope.to,
                message: envelope.message.clone(),
            };
            fate.second = Some((arrives + later, self.keep(copy)));
        }
        fate.first = Some((arrives, self.keep(envelope)));
        fate
    }

    fn keep(&mut self, envelope: Envelope) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.under_way[slot as usize] = Some(envelope);
            return slot;
        }
        self.under_way.push(Some(envelope));
        u32::try_from(self.under_way.len() - 1).unwrap_or(u32::MAX)
    }

    /// Takes a message that arrives.
    pub fn arrive(&mut self, slot: u32) -> Option<Envelope> {
        let envelope = self.under_way.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        Some(envelope)
    }

    /// Loses what this machine has sent and nobody has received.
    pub fn lose_from(&mut self, from: Peer) {
        for slot in &mut self.under_way {
            if slot.as_ref().is_some_and(|e| e.from.id == from.id) {
                // The slot is freed when its time comes.
                if let Some(envelope) = slot {
                    envelope.to.incarnation.0 = 0;
                }
            }
        }
    }

    /// Does something to a message's bytes, as faults ask. False: the receiver could not read it.
    fn spoil(&mut self, envelope: &mut Envelope, random: &mut Random, counts: &mut Counts) -> bool {
        let has_records = is_append_of_records(&envelope.message);
        let wanted = |fault: &ByteFault| *fault != ByteFault::CorruptRecords || has_records;
        let Some(place) = self.byte_faults.iter().position(wanted) else {
            return true;
        };
        let fault = self.byte_faults.remove(place);
        let mut frame = to_frame(&envelope.message);
        let class = match fault {
            ByteFault::CorruptRecords => {
                spoil_records(&mut envelope.message, random);
                counts.hit(Class::F6Corrupt);
                return true;
            }
            ByteFault::CutFrame => {
                if random.permille(500) {
                    let kept = random.below(frame.len() as u64);
                    frame.truncate(usize::try_from(kept).unwrap_or(0));
                } else {
                    frame[8..12].fill(0xff);
                }
                Class::F7Cut
            }
            ByteFault::OtherVersion => {
                // The framing's version stands in its magic.
                frame[3] = frame[3].wrapping_add(1);
                Class::F23Version
            }
            ByteFault::CorruptFrame => {
                let bit = random.below(frame.len() as u64 * 8);
                let byte = usize::try_from(bit / 8).unwrap_or(0);
                frame[byte] ^= 1 << (bit % 8);
                Class::F6Corrupt
            }
        };
        counts.hit(class);
        let heard = from_frame(frame.freeze());
        heard.is_some_and(|(message, attachment)| {
            let is_key = matches!(message.body, Some(peer_message::Body::FastTermKey(_)));
            is_key || GroupMessage::from_proto(message, attachment).is_ok()
        })
    }
}

fn see_if(is_seen: bool, what: &'static str, counts: &mut Counts) {
    if is_seen {
        counts.see(what);
    }
}

/// How long a machine takes to notice that another one's process is gone.
pub fn notice_delay(random: &mut Random) -> Nanos {
    random.between(20, 500) * MICROSECOND
}

fn is_append_of_records(message: &Saying) -> bool {
    let Saying::Consensus(message) = message else {
        return false;
    };
    matches!(&message.body, Body::Append { records, .. } if !records.is_empty())
}

fn to_frame(message: &Saying) -> BytesMut {
    let (meta, attachment) = match message {
        Saying::Consensus(message) => message.to_proto(GROUP),
        Saying::Key(message) => (PeerMessage::clone(message), Vec::new()),
        Saying::PassedOn(message, attachment) => {
            (PeerMessage::clone(message), vec![attachment.clone()])
        }
    };
    let mut frame = BytesMut::new();
    encode_frame(&mut frame, &meta, &attachment);
    for piece in attachment {
        frame.extend_from_slice(&piece);
    }
    frame
}

fn from_frame(mut frame: Bytes) -> Option<(PeerMessage, Bytes)> {
    let header = FrameHeader::decode(&frame).ok()??;
    if frame.len() < header.frame_bytes() || frame.len() < FRAME_HEADER_BYTES {
        return None;
    }
    let (meta, attachment) = header.open(frame.split_to(header.frame_bytes())).ok()?;
    Some((PeerMessage::decode(meta).ok()?, attachment))
}

fn survives_as_bytes(message: &Saying) -> bool {
    let Some((meta, attachment)) = from_frame(to_frame(message).freeze()) else {
        return false;
    };
    let message = match message {
        Saying::Key(sent) => return meta == **sent && attachment.is_empty(),
        Saying::PassedOn(sent, attached) => return meta == **sent && attachment == *attached,
        Saying::Consensus(message) => message,
    };
    let Ok(back) = Message::from_proto(meta, attachment) else {
        return false;
    };
    match (&message.body, &back.body) {
        // Pieces are joined on the way.
        (
            Body::Append { records, .. },
            Body::Append {
                records: joined, ..
            },
        ) => records.concat() == joined.concat() && message.term == back.term,
        _ => *message == back,
    }
}

/// Flips a bit within some record, so that its own checksum no longer fits.
fn spoil_records(message: &mut Saying, random: &mut Random) {
    if let Saying::Consensus(message) = message
        && let Body::Append { records, .. } = &mut message.body
        && let Some(block) = records.first_mut()
        && block.len() >= RECORD_HEADER_BYTES
    {
        let mut bytes = BytesMut::from(&block[..]);
        let bit = random.below(RECORD_HEADER_BYTES as u64 * 8);
        let byte = usize::try_from(bit / 8).unwrap_or(0);
        bytes[byte] ^= 1 << (bit % 8);
        *block = bytes.freeze();
    }
}
