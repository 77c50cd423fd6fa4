//! What the clients of this replica have done, on its way into the log: batches in order, each until it is
//! known to be carried out. One that went astray, as with a leader that is gone, is sent again, and all
//! behind it.
use quorumwire_replay::{Answer, Command, EVENTS_MAX, Event, Gateway};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Batches on their way at once; meanwhile what clients send gathers.
const ON_THEIR_WAY_MAX: usize = 8;
/// Bytes of a batch from which on nothing is added to it.
const BATCH_BYTES: usize = 64 << 10;

/// What a client has done, kept until it is on its way.
#[derive(Debug)]
pub enum Done {
    Accept {
        client: u32,
        peer: SocketAddr,
        own: SocketAddr,
    },
    Data {
        client: u32,
        bytes: Vec<u8>,
    },
    End {
        client: u32,
    },
    Reset {
        client: u32,
    },
}

impl Done {
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
        }
    }
}

struct Batch {
    command: Vec<u8>,
    is_on_its_way: bool,
}

/// The batches of one gateway.
pub struct Batches {
    gateway: Gateway,
    /// Of the first batch below; the first of all is 1.
    first: u64,
    queue: VecDeque<Batch>,
    gathered: VecDeque<Done>,
    gathered_bytes: usize,
}

impl Batches {
    pub const fn new(gateway: Gateway) -> Self {
        Self {
            gateway,
            first: 1,
            queue: VecDeque::new(),
            gathered: VecDeque::new(),
            gathered_bytes: 0,
        }
    }

    pub const fn gateway(&self) -> Gateway {
        self.gateway
    }

    pub fn add(&mut self, done: Done) {
        self.gathered_bytes += done.event().encoded_bytes();
        self.gathered.push_back(done);
    }

    /// Whether more may be taken from clients now.
    pub const fn have_room(&self) -> bool {
        self.gathered_bytes < BATCH_BYTES
    }

    pub fn are_empty(&self) -> bool {
        self.queue.is_empty() && self.gathered.is_empty()
    }

    /// The next one that is to be sent, and its number.
    pub fn next(&mut self) -> Option<(u64, &[u8])> {
        let waiting = self.queue.iter().position(|it| !it.is_on_its_way);
        let place = match waiting {
            Some(place) => place,
            None if self.gathered.is_empty() || self.queue.len() >= ON_THEIR_WAY_MAX => {
                return None;
            }
            None => {
                self.cut();
                self.queue.len() - 1
            }
        };
        Some((self.first + place as u64, &self.queue[place].command))
    }

    /// Makes a batch of what has gathered.
    fn cut(&mut self) {
        let (mut count, mut bytes) = (0, 0);
        for done in self.gathered.iter().take(EVENTS_MAX) {
            if count > 0 && bytes >= BATCH_BYTES {
                break;
            }
            bytes += done.event().encoded_bytes();
            count += 1;
        }
        let command = Command::Batch {
            gateway: self.gateway,
            number: self.first + self.queue.len() as u64,
            events: self.gathered.iter().take(count).map(Done::event).collect(),
        };
        self.queue.push_back(Batch {
            command: command.encode(),
            is_on_its_way: false,
        });
        self.gathered.drain(..count);
        self.gathered_bytes -= bytes;
    }

    fn at(&mut self, number: u64) -> Option<&mut Batch> {
        let place = number.checked_sub(self.first)?;
        self.queue.get_mut(usize::try_from(place).ok()?)
    }

    /// It is on its way.
    pub fn sent(&mut self, number: u64) {
        if let Some(batch) = self.at(number) {
            batch.is_on_its_way = true;
        }
    }

    /// Nobody knows what became of it, or nothing did: it is sent again, and those behind it follow if they
    /// must.
    pub fn went_astray(&mut self, number: u64) {
        if let Some(batch) = self.at(number) {
            batch.is_on_its_way = false;
        }
    }

    /// What the log says of one. False: the gateway is ended.
    pub fn answered(&mut self, number: u64, answer: Answer) -> bool {
        match answer {
            Answer::Done => {
                // Those in front of it are done, too: they are carried out in order.
                while self.first <= number && self.queue.pop_front().is_some() {
                    self.first += 1;
                }
                true
            }
            Answer::NotBegun | Answer::Expected(_) => {
                self.went_astray(number);
                true
            }
            Answer::Ended | Answer::Malformed => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATEWAY: Gateway = Gateway {
        replica: 1,
        number: 2,
    };

    fn data(bytes: usize) -> Done {
        Done::Data {
            client: 7,
            bytes: vec![b'x'; bytes],
        }
    }

    /// Sends all that may be sent; their numbers.
    fn send(batches: &mut Batches) -> Vec<u64> {
        let mut sent = Vec::new();
        while let Some((number, _)) = batches.next() {
            batches.sent(number);
            sent.push(number);
        }
        sent
    }

    #[test]
    fn what_gathers_while_many_are_on_their_way_is_one_batch() {
        let mut batches = Batches::new(GATEWAY);
        for number in 1..=ON_THEIR_WAY_MAX as u64 {
            batches.add(data(1));
            assert_eq!(send(&mut batches), [number]);
        }
        batches.add(data(1));
        batches.add(data(2));
        assert!(send(&mut batches).is_empty());
        assert!(batches.answered(1, Answer::Done));
        let (number, command) = batches.next().expect("there is room for one more");
        let Ok(Command::Batch { events, .. }) = Command::decode(command) else {
            panic!("no batch");
        };
        assert_eq!((number, events.len()), (ON_THEIR_WAY_MAX as u64 + 1, 2));
    }

    #[test]
    fn one_that_went_astray_is_sent_again_and_so_is_what_the_log_had_to_refuse_behind_it() {
        let mut batches = Batches::new(GATEWAY);
        for _ in 0..3 {
            batches.add(data(1));
            send(&mut batches);
        }
        batches.went_astray(1);
        assert!(batches.answered(2, Answer::Expected(1)));
        assert_eq!(send(&mut batches), [1, 2]);
        // Done is all that is in front of it, too; said twice, it is said once.
        assert!(batches.answered(2, Answer::Done) && batches.answered(1, Answer::Done));
        assert!(!batches.are_empty());
        assert!(batches.answered(3, Answer::Done));
        assert!(batches.are_empty());
        batches.add(data(1));
        assert_eq!(send(&mut batches), [4]);
    }

    #[test]
    fn a_batch_and_what_gathers_are_bounded() {
        let mut batches = Batches::new(GATEWAY);
        batches.add(data(BATCH_BYTES));
        assert!(!batches.have_room());
        batches.add(data(BATCH_BYTES));
        assert_eq!(send(&mut batches), [1, 2]);
        assert!(batches.have_room());
    }

    #[test]
    fn a_gateway_that_is_ended_says_so() {
        let mut batches = Batches::new(GATEWAY);
        batches.add(data(1));
        send(&mut batches);
        assert!(!batches.answered(1, Answer::Ended));
    }
}
