//! What the clients of this replica have done, on its way into the log: batches in order, each until it is
//! known to be carried out. One that went astray, as with a leader that is gone, is sent again, and all
//! behind it.
use crate::command::{Command, Done, EVENTS_MAX, Event, Gateway};
use crate::state::Answer;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// Batches on their way at once; meanwhile what clients send gathers.
const ON_THEIR_WAY_MAX: usize = 8;
/// Bytes of a batch from which on nothing is added to it.
const BATCH_BYTES: usize = 64 << 10;
/// The same of one client, so that there is room for others.
const BATCH_BYTES_OF_ONE: usize = BATCH_BYTES / 2;
/// The same of all datagrams, and of those from one place. What has no room is lost.
const BATCH_BYTES_OF_DATAGRAMS: usize = BATCH_BYTES / 2;
const BATCH_BYTES_OF_DATAGRAMS_OF_ONE: usize = BATCH_BYTES_OF_DATAGRAMS / 2;
/// Before a batch is sent again of which nobody knows what became; twice as long each time, up to the most.
/// It may be in the log already, and stands there twice then.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Who shares room with others. Whoever has one address can send datagrams from all its ports, and in IPv6
/// has 2^64 addresses.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Sharer {
    Client(u32),
    Place(IpAddr),
}

impl Sharer {
    fn at(ip: IpAddr) -> Self {
        Self::Place(match ip {
            IpAddr::V4(_) => ip,
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
        })
    }
}

/// Why a datagram is lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NoRoom {
    /// Too many of all wait.
    ForAny,
    /// Too many from where it came.
    ForThis,
}

impl Done {
    fn sharer(&self) -> Sharer {
        match self {
            Self::Accept { client, .. }
            | Self::Data { client, .. }
            | Self::End { client }
            | Self::Reset { client } => Sharer::Client(*client),
            Self::Datagram { peer, .. } => Sharer::at(peer.ip()),
        }
    }

    fn event(&self) -> Event<'_> {
        match self {
            Self::Accept { client, peer, own } => Event::Accept {
                client: *client,
                peer: *peer,
                own: *own,
            },
            Self::Data { client, bytes } => Event::Data {
                client: *client,
                bytes,
            },
            Self::End { client } => Event::End { client: *client },
            Self::Reset { client } => Event::Reset { client: *client },
            Self::Datagram { peer, own, bytes } => Event::Datagram {
                peer: *peer,
                own: *own,
                bytes,
            },
        }
    }
}

struct Batch {
    command: Vec<u8>,
    is_on_its_way: bool,
}

/// The batches of one gateway. Its numbers here are none of an earlier gateway's, whose answers may still
/// come.
pub struct Batches {
    gateway: Gateway,
    /// The log counts from 1 for each gateway; here that is one more than this.
    before: u64,
    /// Of the first batch below, in the log.
    first: u64,
    queue: VecDeque<Batch>,
    /// And since when.
    gathered: VecDeque<(Done, Duration)>,
    /// For how long what is in batches now had gathered, until whoever sends them asks.
    waits: Vec<Duration>,
    /// What is added now is added at this time.
    now: Duration,
    gathered_bytes: usize,
    /// Of that, by client.
    gathered_of: BTreeMap<Sharer, usize>,
    /// Of that, of datagrams.
    datagram_bytes: usize,
    /// The log misses this one, which is on its way. Until something is heard of it, nothing follows.
    gap: Option<u64>,
    /// Nothing is sent before.
    not_before: Duration,
    /// In a row.
    pauses: u32,
}

impl Batches {
    /// Of a gateway that begins.
    #[must_use]
    pub const fn new(gateway: Gateway) -> Self {
        Self {
            gateway,
            before: 0,
            first: 1,
            queue: VecDeque::new(),
            gathered: VecDeque::new(),
            waits: Vec::new(),
            now: Duration::ZERO,
            gathered_bytes: 0,
            gathered_of: BTreeMap::new(),
            datagram_bytes: 0,
            gap: None,
            not_before: Duration::ZERO,
            pauses: 0,
        }
    }

    /// Of the gateway that comes after this one.
    #[must_use]
    pub fn followed_by(&self, gateway: Gateway) -> Self {
        Self {
            before: self.before + self.first + self.queue.len() as u64 - 1,
            now: self.now,
            ..Self::new(gateway)
        }
    }

    /// Whose.
    #[must_use]
    pub const fn gateway(&self) -> Gateway {
        self.gateway
    }

    /// What is added from now on is added at this time.
    pub const fn look_at_clock(&mut self, now: Duration) {
        self.now = now;
    }

    /// A client has done this.
    pub fn add(&mut self, done: Done) {
        let bytes = done.event().encoded_bytes();
        self.gathered_bytes += bytes;
        *self.gathered_of.entry(done.sharer()).or_default() += bytes;
        if matches!(done, Done::Datagram { .. }) {
            self.datagram_bytes += bytes;
        }
        self.gathered.push_back((done, self.now));
    }

    /// Whether more may be taken from clients' connections now. Datagrams have room of their own.
    #[must_use]
    pub const fn have_room(&self) -> bool {
        self.gathered_bytes - self.datagram_bytes < BATCH_BYTES
    }

    /// The same for this one.
    #[must_use]
    pub fn have_room_for(&self, client: u32) -> bool {
        let of_it = self.gathered_of.get(&Sharer::Client(client)).copied();
        self.have_room() && of_it.unwrap_or(0) < BATCH_BYTES_OF_ONE
    }

    /// Whether a datagram may be taken that came from there.
    pub fn room_for_datagram(&self, from: IpAddr) -> Result<(), NoRoom> {
        if self.datagram_bytes >= BATCH_BYTES_OF_DATAGRAMS {
            return Err(NoRoom::ForAny);
        }
        let of_it = self.gathered_of.get(&Sharer::at(from)).copied();
        if of_it.unwrap_or(0) >= BATCH_BYTES_OF_DATAGRAMS_OF_ONE {
            return Err(NoRoom::ForThis);
        }
        Ok(())
    }

    /// Whether nothing is on its way, and nothing gathers.
    #[must_use]
    pub fn are_empty(&self) -> bool {
        self.queue.is_empty() && self.gathered.is_empty()
    }

    /// The next one that is to be sent, and its number.
    pub fn next(&mut self, now: Duration) -> Option<(u64, &[u8])> {
        if now < self.not_before {
            return None;
        }
        let waiting = self.queue.iter().position(|it| !it.is_on_its_way);
        let place = waiting.unwrap_or(self.queue.len());
        if self.gap.is_some_and(|gap| gap < self.first + place as u64) {
            return None;
        }
        if place == self.queue.len() {
            // With the first one the log knows the gateway. What came before it would be an ended one's.
            let may_begin = self.first > 1 || place == 0;
            if self.gathered.is_empty() || place >= ON_THEIR_WAY_MAX || !may_begin {
                return None;
            }
            self.cut(now);
        }
        let number = self.before + self.first + place as u64;
        Some((number, &self.queue[place].command))
    }

    /// How long each thing that clients did had to wait for its batch, of all batches since this was asked.
    pub fn waits(&mut self) -> impl Iterator<Item = Duration> {
        self.waits.drain(..)
    }

    /// Makes a batch of what has gathered.
    fn cut(&mut self, now: Duration) {
        let (mut count, mut bytes) = (0, 0);
        for (done, _) in self.gathered.iter().take(EVENTS_MAX) {
            if count > 0 && bytes >= BATCH_BYTES {
                break;
            }
            let of_it = done.event().encoded_bytes();
            bytes += of_it;
            count += 1;
            if matches!(done, Done::Datagram { .. }) {
                self.datagram_bytes -= of_it;
            }
            if let Some(left) = self.gathered_of.get_mut(&done.sharer()) {
                *left -= of_it;
                if *left == 0 {
                    self.gathered_of.remove(&done.sharer());
                }
            }
        }
        let command = Command::Batch {
            gateway: self.gateway,
            number: self.first + self.queue.len() as u64,
            events: self
                .gathered
                .iter()
                .take(count)
                .map(|(done, _)| done.event())
                .collect(),
        };
        self.queue.push_back(Batch {
            command: command.encode(),
            is_on_its_way: false,
        });
        let batch = self.gathered.drain(..count);
        self.waits
            .extend(batch.map(|(_, since)| now.saturating_sub(since)));
        self.gathered_bytes -= bytes;
    }

    /// By its number in the log.
    fn at(&mut self, logged: u64) -> Option<&mut Batch> {
        let place = logged.checked_sub(self.first)?;
        self.queue.get_mut(usize::try_from(place).ok()?)
    }

    /// It is on its way.
    pub fn sent(&mut self, number: u64) {
        if let Some(batch) = self.at(number - self.before) {
            batch.is_on_its_way = true;
        }
    }

    /// Nothing became of it: it is sent again, and those behind it follow if they must.
    pub fn refused(&mut self, number: u64) {
        let Some(logged) = number.checked_sub(self.before) else {
            return; // an earlier gateway's
        };
        if let Some(batch) = self.at(logged) {
            batch.is_on_its_way = false;
        }
        if self.gap == Some(logged) {
            self.gap = None;
        }
    }

    /// Nobody knows what became of it, or nothing can yet: it is sent again after a while.
    pub fn went_astray(&mut self, number: u64, now: Duration) {
        self.refused(number);
        if number > self.before && now >= self.not_before {
            let pause = PAUSE.saturating_mul(1 << self.pauses.min(16));
            self.not_before = now + pause.min(PAUSE_MAX);
            self.pauses += 1;
        }
    }

    /// What the log says of one. False: the gateway is ended.
    pub fn answered(&mut self, number: u64, answer: Answer, now: Duration) -> bool {
        let Some(logged) = number.checked_sub(self.before).filter(|it| *it > 0) else {
            return true; // an earlier gateway's
        };
        match answer {
            Answer::Done => {
                // Those in front of it are done, too: they are carried out in order.
                while self.first <= logged && self.queue.pop_front().is_some() {
                    self.first += 1;
                }
                self.gap = self.gap.filter(|gap| *gap > logged);
                (self.not_before, self.pauses) = (Duration::ZERO, 0);
                true
            }
            Answer::NotBegun => {
                self.went_astray(number, now);
                true
            }
            Answer::Expected(missing) => {
                self.refused(number);
                if self.at(missing).is_some_and(|it| it.is_on_its_way) {
                    self.gap = Some(missing);
                }
                true
            }
            Answer::Ended | Answer::Malformed => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    const GATEWAY: Gateway = Gateway {
        replica: 1,
        number: 2,
    };
    const START: Duration = Duration::from_secs(100);

    fn data(bytes: usize) -> Done {
        data_of(7, bytes)
    }

    fn data_of(client: u32, bytes: usize) -> Done {
        Done::Data {
            client,
            bytes: vec![b'x'; bytes],
        }
    }

    /// Of a gateway that the log knows: its first batch is done.
    fn begun() -> Batches {
        let mut batches = Batches::new(GATEWAY);
        batches.add(data(1));
        assert_eq!(send(&mut batches), [1]);
        assert!(batches.answered(1, Answer::Done, START));
        batches
    }

    /// Sends all that may be sent; their numbers.
    fn send(batches: &mut Batches) -> Vec<u64> {
        send_at(batches, START)
    }

    fn send_at(batches: &mut Batches, now: Duration) -> Vec<u64> {
        let mut sent = Vec::new();
        while let Some((number, _)) = batches.next(now) {
            batches.sent(number);
            sent.push(number);
        }
        sent
    }

    /// Three more, on their way.
    fn three() -> Batches {
        let mut batches = begun();
        for number in 2..5 {
            batches.add(data(1));
            assert_eq!(send(&mut batches), [number]);
        }
        batches
    }

    #[test]
    fn what_gathers_while_many_are_on_their_way_is_one_batch() {
        let mut batches = begun();
        for number in 2..2 + ON_THEIR_WAY_MAX as u64 {
            batches.add(data(1));
            assert_eq!(send(&mut batches), [number]);
        }
        batches.look_at_clock(START + PAUSE);
        batches.add(data(1));
        batches.look_at_clock(START + PAUSE * 2);
        batches.add(data(2));
        assert!(send(&mut batches).is_empty());
        assert!(batches.answered(2, Answer::Done, START));
        assert_eq!(batches.waits().count(), ON_THEIR_WAY_MAX + 1);
        let now = START + PAUSE * 5;
        let (number, command) = batches.next(now).expect("there is room for one more");
        let Ok(Command::Batch { events, .. }) = Command::decode(command) else {
            panic!("no batch");
        };
        assert_eq!((number, events.len()), (ON_THEIR_WAY_MAX as u64 + 2, 2));
        let waits: Vec<_> = batches.waits().collect();
        assert_eq!(waits, [PAUSE * 4, PAUSE * 3], "each since it was added");
    }

    #[test]
    fn nothing_follows_the_first_until_the_log_knows_the_gateway() {
        let mut batches = Batches::new(GATEWAY);
        batches.add(data(1));
        assert_eq!(send(&mut batches), [1]);
        batches.add(data(1));
        assert!(send(&mut batches).is_empty());
        assert!(batches.answered(1, Answer::Done, START));
        assert_eq!(send(&mut batches), [2]);
    }

    #[test]
    fn one_that_was_refused_is_sent_again_and_so_is_what_the_log_had_to_refuse_behind_it() {
        let mut batches = three();
        batches.refused(2);
        assert!(batches.answered(3, Answer::Expected(2), START));
        assert_eq!(send(&mut batches), [2, 3]);
        // Done is all that is in front of it, too; said twice, it is said once.
        assert!(batches.answered(3, Answer::Done, START));
        assert!(batches.answered(2, Answer::Done, START));
        assert!(!batches.are_empty());
        assert!(batches.answered(4, Answer::Done, START));
        assert!(batches.are_empty());
        batches.add(data(1));
        assert_eq!(send(&mut batches), [5]);
    }

    #[test]
    fn behind_a_gap_nothing_is_sent_again_until_something_is_heard_of_it() {
        let heard: [fn(&mut Batches) -> &'static [u64]; 2] = [
            |batches| {
                batches.refused(2);
                &[2, 3, 4]
            },
            |batches| {
                assert!(batches.answered(2, Answer::Done, START));
                &[3, 4]
            },
        ];
        for heard in heard {
            let mut batches = three();
            for number in 3..5 {
                assert!(batches.answered(number, Answer::Expected(2), START));
                assert!(send(&mut batches).is_empty(), "{number}");
            }
            let again = heard(&mut batches);
            assert_eq!(send(&mut batches), again);
        }
    }

    #[test]
    fn what_may_be_in_the_log_is_sent_again_more_and_more_seldom() {
        let mut batches = begun();
        batches.add(data(1));
        assert_eq!(send(&mut batches), [2]);
        let mut now = START;
        for times in [1, 2, 4, 8] {
            batches.went_astray(2, now);
            let end = now + PAUSE * times;
            let before_end = end.saturating_sub(Duration::from_millis(1));
            assert!(send_at(&mut batches, before_end).is_empty(), "{times}");
            now = end;
            assert_eq!(send_at(&mut batches, now), [2], "{times}");
        }
        for _ in 0..20 {
            batches.went_astray(2, now);
            now += PAUSE_MAX;
            assert_eq!(send_at(&mut batches, now), [2]);
        }
        assert!(batches.answered(2, Answer::Done, now));
        batches.add(data(1));
        assert_eq!(send_at(&mut batches, now), [3]);
        assert!(batches.answered(3, Answer::NotBegun, now));
        assert!(send_at(&mut batches, now).is_empty());
        assert_eq!(send_at(&mut batches, now + PAUSE), [3]);
    }

    #[test]
    fn a_batch_and_what_gathers_are_bounded() {
        let mut batches = begun();
        batches.add(data(BATCH_BYTES));
        assert!(!batches.have_room());
        batches.add(data(BATCH_BYTES));
        assert_eq!(send(&mut batches), [2, 3]);
        assert!(batches.have_room());
    }

    #[test]
    fn one_client_leaves_room_for_others() {
        let mut batches = begun();
        batches.add(data_of(7, BATCH_BYTES_OF_ONE));
        assert!(!batches.have_room_for(7) && batches.have_room_for(8));
        batches.add(data_of(8, BATCH_BYTES_OF_ONE));
        assert!(!batches.have_room_for(9), "it is full");
        assert_eq!(send(&mut batches), [2]);
        assert!(batches.have_room_for(7) && batches.have_room_for(8));
    }

    fn datagram(ip: [u8; 4], bytes: usize) -> Done {
        Done::Datagram {
            peer: SocketAddr::from((ip, 1000)),
            own: SocketAddr::from(([127, 0, 0, 1], 53)),
            bytes: vec![b'x'; bytes],
        }
    }

    #[test]
    fn datagrams_of_one_leave_room_for_others_and_those_of_all_for_connections() {
        let (one, another) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let room = |batches: &Batches, ip: [u8; 4]| batches.room_for_datagram(ip.into());
        let mut batches = begun();
        // The longest one there is has room when nothing else of it waits.
        batches.add(datagram(one, BATCH_BYTES_OF_DATAGRAMS_OF_ONE));
        assert_eq!(room(&batches, one), Err(NoRoom::ForThis));
        assert_eq!(room(&batches, another), Ok(()));
        batches.add(datagram(another, BATCH_BYTES_OF_DATAGRAMS));
        assert_eq!(room(&batches, [10, 0, 0, 3]), Err(NoRoom::ForAny));
        assert!(batches.have_room_for(7), "a connection has room of its own");
        batches.add(data(BATCH_BYTES));
        assert!(!batches.have_room());
        assert_eq!(send(&mut batches), [2]);
        for ip in [one, another] {
            assert_eq!(room(&batches, ip), Ok(()));
        }
        batches.add(data(BATCH_BYTES));
        assert_eq!(room(&batches, one), Ok(()), "and so have datagrams");
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let sharer = |text: &str| Sharer::at(address(text));
        assert_eq!(sharer("2001:db8::1"), sharer("2001:db8::ffff:2"));
        assert_ne!(sharer("2001:db8::1"), sharer("2001:db8:0:1::1"));
        assert_ne!(sharer("10.0.0.1"), sharer("10.0.0.2"));
    }

    #[test]
    fn a_gateway_that_is_ended_says_so_and_late_answers_end_none_after_it() {
        let mut batches = three();
        assert!(!batches.answered(2, Answer::Ended, START));
        let gateway = Gateway {
            number: 3,
            ..GATEWAY
        };
        let mut batches = batches.followed_by(gateway);
        batches.add(data(1));
        let (number, command) = batches.next(START).expect("its first");
        let Ok(Command::Batch { number: logged, .. }) = Command::decode(command) else {
            panic!("no batch");
        };
        assert_eq!((number, logged), (5, 1));
        batches.sent(number);
        for late in 1..5 {
            assert!(batches.answered(late, Answer::Ended, START), "{late}");
            assert!(batches.answered(late, Answer::Done, START), "{late}");
            batches.refused(late);
            batches.went_astray(late, START);
            assert!(send(&mut batches).is_empty(), "it is on its way");
        }
        assert!(batches.answered(5, Answer::Done, START));
        assert!(batches.are_empty());
    }
}
