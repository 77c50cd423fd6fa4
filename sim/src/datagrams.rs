//! The network between planes: datagrams that get lost, come twice, late, out of order, spoiled, or
//! again after a long time. Who is cut off from whom is in `network.rs`.
use crate::counts::Counts;
use crate::fault::{Class, NetworkFault};
use crate::queue::{MILLISECOND, Nanos, SECOND};
use crate::random::Random;

/// Datagrams under way; more are lost, as in full buffers.
const UNDER_WAY_MAX: usize = 20_000;
/// Most machines: seven voters and two spares.
const REPLICAS_MAX: usize = 9;
/// Datagrams that an eavesdropper keeps to send them again.
const OLD_MAX: usize = 48;
/// It keeps one in so many.
const KEPT_ONE_IN: u64 = 64;

/// How often what happens to datagrams, out of a thousand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// Lost.
    pub loss: u64,
    /// Delivered twice.
    pub repeat: u64,
    /// Delivered late.
    pub late: u64,
    /// A bit flipped.
    pub spoil: u64,
    /// An old one delivered again beside it.
    pub replay: u64,
}

/// A datagram under way.
#[derive(Clone, Debug, Default)]
pub struct Datagram {
    /// Which machine sent it.
    pub from: usize,
    /// Which one it is for.
    pub to: usize,
    /// What it is made of.
    pub bytes: Vec<u8>,
    /// It is not as it was sent.
    pub spoiled: bool,
}

/// All datagrams.
#[derive(Default)]
pub struct Datagrams {
    under_way: Vec<Datagram>,
    free: Vec<u32>,
    old: Vec<Datagram>,
    /// When the last one arrives that a machine sent another: what is not late comes in order.
    in_order: [[Nanos; REPLICAS_MAX]; REPLICAS_MAX],
    /// What happens to them.
    pub weather: Weather,
}

/// When a datagram arrives at most, and in which slot it waits: itself, again, and an old one.
pub type Fates = [Option<(Nanos, u32)>; 3];

impl Datagrams {
    /// Sends a datagram, not to arrive before `earliest`; `faults`: what is in force besides.
    pub fn send(
        &mut self,
        (from, to): (usize, usize),
        bytes: &[u8],
        (earliest, delay): (Nanos, (Nanos, Nanos)),
        faults: &[(u16, NetworkFault)],
        random: &mut Random,
        counts: &mut Counts,
    ) -> Fates {
        let mut fates = Fates::default();
        let mut weather = self.weather;
        let mut late_by = 20 * MILLISECOND;
        for (_, fault) in faults {
            match fault {
                NetworkFault::Loss { permille } => weather.loss += u64::from(*permille),
                NetworkFault::Repeat { permille, .. } => weather.repeat += u64::from(*permille),
                NetworkFault::Late { permille, late } => {
                    weather.late += u64::from(*permille);
                    late_by = *late;
                }
                NetworkFault::SpoilDatagrams { permille } => weather.spoil += u64::from(*permille),
                NetworkFault::ReplayDatagrams { permille } => {
                    weather.replay += u64::from(*permille);
                }
                NetworkFault::PlanesApart { .. } => {}
            }
        }
        if random.next().is_multiple_of(KEPT_ONE_IN) {
            self.keep_old((from, to), bytes, random);
        }
        if random.permille(weather.replay) && !self.old.is_empty() {
            fates[2] = self.replay(earliest, random);
        }
        if random.permille(weather.loss) {
            counts.see("datagram lost");
            return fates;
        }
        if self.under_way.len() - self.free.len() >= UNDER_WAY_MAX {
            counts.messages_dropped += 1;
            return fates;
        }
        let mut at = earliest + random.between(delay.0, delay.1);
        let last = self.in_order.get_mut(from).and_then(|row| row.get_mut(to));
        if let Some(last) = last {
            at = at.max(*last);
            *last = at;
        }
        if random.permille(weather.late) {
            counts.see("datagram late");
            at += random.below(late_by);
        }
        if random.permille(weather.repeat) {
            counts.see("datagram repeated");
            let again = at + random.below(5 * MILLISECOND);
            fates[1] = Some((again, self.put((from, to), bytes, None)));
        }
        let spoiled = random.permille(weather.spoil).then(|| random.next());
        if let Some(luck) = spoiled {
            counts.hit(match luck % 8 {
                0 | 1 => Class::F7Cut,
                _ => Class::F6Corrupt,
            });
        }
        fates[0] = Some((at, self.put((from, to), bytes, spoiled)));
        fates
    }

    /// Nothing happens to them any more. What is on its way is lost: it arrives without a byte.
    pub fn heal(&mut self) {
        self.weather = Weather::default();
        self.in_order = [[0; REPLICAS_MAX]; REPLICAS_MAX];
        for datagram in &mut self.under_way {
            datagram.bytes.clear();
        }
    }

    /// Puts a datagram under way that nobody who may has sent; in which slot it waits.
    pub fn forge(&mut self, link: (usize, usize), bytes: &[u8]) -> u32 {
        let slot = self.put(link, bytes, None);
        self.under_way[slot as usize].spoiled = true;
        slot
    }

    fn replay(&mut self, earliest: Nanos, random: &mut Random) -> Option<(Nanos, u32)> {
        let place = usize::try_from(random.below(self.old.len() as u64)).unwrap_or(0);
        let old = self.old.get(place)?.clone();
        let at = earliest + random.below(SECOND);
        Some((at, self.put((old.from, old.to), &old.bytes, None)))
    }

    fn keep_old(&mut self, (from, to): (usize, usize), bytes: &[u8], random: &mut Random) {
        let kept = Datagram {
            from,
            to,
            bytes: bytes.to_vec(),
            spoiled: false,
        };
        if self.old.len() < OLD_MAX {
            return self.old.push(kept);
        }
        let place = usize::try_from(random.below(OLD_MAX as u64)).unwrap_or(0);
        self.old[place] = kept;
    }

    fn put(&mut self, (from, to): (usize, usize), bytes: &[u8], spoiled: Option<u64>) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.under_way.push(Datagram::default());
            u32::try_from(self.under_way.len() - 1).unwrap_or(u32::MAX)
        });
        let datagram = &mut self.under_way[slot as usize];
        datagram.bytes.clear();
        datagram.bytes.extend_from_slice(bytes);
        (datagram.from, datagram.to) = (from, to);
        datagram.spoiled = spoiled.is_some();
        if let Some(luck) = spoiled {
            spoil(&mut datagram.bytes, luck);
        }
        slot
    }

    /// Takes a datagram that arrives; [`done_with`](Self::done_with) takes it back.
    pub fn arrive(&mut self, slot: u32) -> Datagram {
        self.under_way
            .get_mut(slot as usize)
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Its memory is used again.
    pub fn done_with(&mut self, slot: u32, datagram: Datagram) {
        if let Some(place) = self.under_way.get_mut(slot as usize) {
            *place = datagram;
            self.free.push(slot);
        }
    }
}

/// Cuts a datagram short, or makes it longer, or flips a bit of it.
fn spoil(bytes: &mut Vec<u8>, luck: u64) {
    let place = luck >> 8;
    let at = usize::try_from(place % bytes.len().max(1) as u64).unwrap_or(0);
    match luck % 8 {
        0 => bytes.truncate(at),
        1 => bytes.resize(bytes.len() + 1 + at, 0),
        _ => bytes[at] ^= 1 << (luck >> 4 & 7),
    }
}
