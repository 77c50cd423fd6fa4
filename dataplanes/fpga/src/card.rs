//! A card as its host sees it: the register map, the ring, frames.
use crate::ffi::{CardModel, Slot, Words, of_words, words_of};
use crate::shared::{
    CORE_ADDRESSES_AT, CORE_BEHIND_AT, CORE_COUNT_AT, CORE_ENDS_AT, CORE_EPOCHS_AT, CORE_HEADER_AT,
    CORE_IDENTITY_AT, CORE_KEY_AT, CORE_KEY_AT_AT, CORE_KEYS_VALID_AT, CORE_LEFT_FROM_AT,
    CORE_LEFT_UPTO_AT, CORE_LEFT_WHAT_AT, CORE_MADE_ACTIONS_AT, CORE_MADE_COMMIT_FROM_AT,
    CORE_MADE_HEADER_AT, CORE_MADE_INDEX_AT, CORE_MADE_REGISTERS_AT, CORE_MULTICAST_AT,
    CORE_NUMBER_AT, CORE_ORDER_AT, CORE_PEER_ADDRESS_AT, CORE_PEER_AT, CORE_PEER_END_AT,
    CORE_REGISTERS_AT, CORE_RING_MASKS_AT, CORE_RINGS_AT, CORE_STATE_AT, IDENTITY, KEYS_OF_GROUP,
    MAP_VERSION, Order, STATE_REFUSED, STATE_UNDER_WAY,
};
use quorumwire_fastpath::shared::Endpoint;
use quorumwire_fastpath::{Keys, Outcome};
use quorumwire_interfaces::{PlaneError, PlaneKeys};
use quorumwire_wire::packet::{Header, Registers};

/// Words of a tag's own key, behind those of the digest's.
const KEY_WORD_LOW: u64 = 254;
const KEY_WORD_HIGH: u64 = 255;
/// An order is done after fewer looks, each some clocks. OFF takes longest: all that is to leave leaves
/// first.
const LOOKS_MAX: usize = 100_000;
/// What comes at once is done after fewer clocks.
const CLOCKS_MAX: usize = 1_000_000;
const FAILED: PlaneError = PlaneError::Failed(std::borrow::Cow::Borrowed(
    "the core does not do what its host orders",
));

/// What the core leaves to its host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Left {
    /// Blind writes to be answered; else entries to be sent again.
    pub answers: bool,
    pub replica: u8,
    pub from: u64,
    pub upto: u64,
}

/// The card of one group, which is the core's first.
pub struct Card {
    model: CardModel,
    slots: u32,
}

fn at(place: usize) -> u32 {
    u32::try_from(place).expect("a map of some thousand bytes")
}

impl Card {
    /// After its reset: off, without keys.
    pub fn new(slots: u32) -> Result<Self, PlaneError> {
        let mut card = Self {
            model: CardModel::new(slots),
            slots,
        };
        let identity = card.read(CORE_IDENTITY_AT)?;
        let serves_paxos_roles = identity >> 56 != 0;
        let expected = u64::from(MAP_VERSION) << 16 | u64::from(IDENTITY);
        if identity & 0xffff_ffff != expected || serves_paxos_roles {
            return Err(FAILED);
        }
        card.write(CORE_RINGS_AT, 0)?;
        card.write(CORE_RING_MASKS_AT, u64::from(slots) - 1)?;
        Ok(card)
    }

    pub fn take_beats_in_one_clock_of(&mut self, clocks: u32) {
        self.model.take_beats_in_one_clock_of(clocks);
    }

    fn write(&mut self, place: usize, value: u64) -> Result<(), PlaneError> {
        let [low, high] = [value & 0xffff_ffff, value >> 32];
        for (place, half) in [(place, low), (place + 4, high)] {
            let half = u32::try_from(half).expect("half of it");
            if !self.model.write(at(place), half) {
                return Err(FAILED);
            }
        }
        Ok(())
    }

    fn read(&mut self, place: usize) -> Result<u64, PlaneError> {
        let low = self.model.read(at(place)).ok_or(FAILED)?;
        let high = self.model.read(at(place + 4)).ok_or(FAILED)?;
        Ok(u64::from(high) << 32 | u64::from(low))
    }

    fn write_words<T: Words>(&mut self, place: usize, value: &T) -> Result<(), PlaneError> {
        let words = words_of(value);
        let mut places = (place..).step_by(8).zip(words);
        places.try_for_each(|(place, word)| self.write(place, word))
    }

    fn read_words<T: Words>(&mut self, place: usize) -> Result<T, PlaneError> {
        let places = (place..).step_by(8).take(size_of::<T>() / 8);
        let words: Result<Vec<u64>, _> = places.map(|place| self.read(place)).collect();
        Ok(of_words(&words?))
    }

    /// Has the core take one step of the host's.
    fn give(&mut self, order: Order) -> Result<(), PlaneError> {
        self.write(CORE_ORDER_AT, order as u64)?;
        for _ in 0..LOOKS_MAX {
            let state = self.read(CORE_STATE_AT)?;
            if state & u64::from(STATE_REFUSED) != 0 {
                return Err(FAILED);
            }
            if state & u64::from(STATE_UNDER_WAY) == 0 {
                return Ok(());
            }
        }
        Err(FAILED)
    }

    /// Such a step about a number.
    pub fn order(&mut self, order: Order, number: u64) -> Result<Outcome, PlaneError> {
        self.write(CORE_NUMBER_AT, number)?;
        self.give(order)?;
        self.outcome()
    }

    /// The group gets its registers.
    pub fn engage(&mut self, registers: &Registers) -> Result<(), PlaneError> {
        self.write_words(CORE_REGISTERS_AT, registers)?;
        self.give(Order::Engage)
    }

    /// A command of the host's.
    pub fn submit(&mut self, command: &Header) -> Result<Outcome, PlaneError> {
        self.write_words(CORE_HEADER_AT, command)?;
        self.give(Order::Submit)?;
        self.outcome()
    }

    fn outcome(&mut self) -> Result<Outcome, PlaneError> {
        let does = self.read(CORE_MADE_ACTIONS_AT)?;
        Ok(Outcome {
            header: self.read_words(CORE_MADE_HEADER_AT)?,
            index: self.read(CORE_MADE_INDEX_AT)?,
            commit_from: self.read(CORE_MADE_COMMIT_FROM_AT)?,
            actions: u32::try_from(does & 0xffff_ffff).expect("32 bits"),
            reason: u32::try_from(does >> 32).expect("32 bits"),
        })
    }

    /// The registers behind the last step of the host's.
    pub fn made(&mut self) -> Result<Registers, PlaneError> {
        self.read_words(CORE_MADE_REGISTERS_AT)
    }

    /// The registers of this moment.
    pub fn look(&mut self) -> Result<Registers, PlaneError> {
        self.order(Order::Release, 0)?;
        self.made()
    }

    /// Keys to sign with and to check with. None is valid while they are written.
    pub fn set_keys(&mut self, keys: &PlaneKeys) -> Result<(), PlaneError> {
        self.write(CORE_KEYS_VALID_AT, 0)?;
        let made = Box::new(Keys::from(keys));
        let mut valid = 0;
        for (pair, of) in [&made.cluster, &made.clients].into_iter().enumerate() {
            for epoch in 0..KEYS_OF_GROUP / 2 {
                let number = pair as u64 * 2 + epoch as u64;
                let Some(key) = of.key(epoch) else { continue };
                valid |= 1 << number;
                let bytes = key.to_bytes();
                let words = bytes.as_chunks().0.iter().map(|it| u64::from_ne_bytes(*it));
                // The tag's own key stands first there.
                let places = [KEY_WORD_LOW, KEY_WORD_HIGH].into_iter().chain(0..);
                for (word, value) in places.zip(words) {
                    self.write(CORE_KEY_AT_AT, word << 8 | number)?;
                    self.write(CORE_KEY_AT, value)?;
                }
            }
        }
        let (cluster, clients) = (keys.cluster.epoch % 2, keys.clients.epoch % 2);
        self.write(CORE_EPOCHS_AT, clients << 8 | cluster)?;
        self.write(CORE_KEYS_VALID_AT, valid)
    }

    fn halves(endpoint: &Endpoint) -> [u64; 3] {
        let address = u128::from_be_bytes(endpoint.address);
        let half = |of: u128| u64::try_from(of & u128::from(u64::MAX)).expect("64 bits");
        let mut end = [0; 8];
        end[..2].copy_from_slice(&endpoint.port);
        end[2..].copy_from_slice(&endpoint.mac);
        [half(address >> 64), half(address), u64::from_be_bytes(end)]
    }

    /// Where the plane is.
    pub fn set_own(&mut self, endpoint: &Endpoint) -> Result<(), PlaneError> {
        let [high, low, end] = Self::halves(endpoint);
        self.write(CORE_ADDRESSES_AT, high)?;
        self.write(CORE_ADDRESSES_AT + 8, low)?;
        self.write(CORE_MULTICAST_AT, 0)?;
        self.write(CORE_ENDS_AT, end)
    }

    /// Where a replica's is.
    pub fn set_peer(&mut self, slot: u8, endpoint: &Endpoint) -> Result<(), PlaneError> {
        let [high, low, end] = Self::halves(endpoint);
        self.write(CORE_PEER_ADDRESS_AT, high)?;
        self.write(CORE_PEER_ADDRESS_AT + 8, low)?;
        self.write(CORE_PEER_END_AT, end)?;
        self.write(CORE_PEER_AT, slot.into())
    }

    /// The next thing that is left to the host.
    pub fn left(&mut self) -> Result<Option<Left>, PlaneError> {
        let what = self.read(CORE_LEFT_WHAT_AT)?;
        if what & 1 == 0 {
            return Ok(None);
        }
        let left = Left {
            answers: what & 2 != 0,
            replica: what.to_le_bytes()[2],
            from: self.read(CORE_LEFT_FROM_AT)?,
            upto: self.read(CORE_LEFT_UPTO_AT)?,
        };
        self.write(CORE_LEFT_WHAT_AT, 0)?;
        Ok(Some(left))
    }

    /// Replicas that ask for what the ring holds no more: a bit for each.
    pub fn behind(&mut self) -> Result<u8, PlaneError> {
        let behind = self.read(CORE_BEHIND_AT)? & 0xff;
        if behind != 0 {
            self.write(CORE_BEHIND_AT, behind)?;
        }
        Ok(behind.to_le_bytes()[0])
    }

    /// How often something happened since the reset.
    pub fn count(&mut self, number: usize) -> Result<u64, PlaneError> {
        self.read(CORE_COUNT_AT + 8 * number)
    }

    /// Frames that the model has dropped.
    pub fn frames_dropped(&self) -> u64 {
        self.model.counts().0
    }

    /// The slot of an index.
    pub fn slot(&self, index: u64) -> &Slot {
        self.model.slot(self.place_of(index))
    }

    /// It, to be written by the host.
    pub fn slot_mut(&mut self, index: u64) -> &mut Slot {
        self.model.slot_mut(self.place_of(index))
    }

    fn place_of(&self, index: u64) -> usize {
        usize::try_from(index & u64::from(self.slots - 1)).expect("less than the slots")
    }

    /// A frame comes from the network.
    pub fn receive(&mut self, frame: &[u8]) {
        self.model.receive(frame);
    }

    /// The clock runs until nothing more happens by itself.
    pub fn run(&mut self) -> Result<(), PlaneError> {
        // A beat beside the ring would be an entry's that is lost.
        if self.model.run(CLOCKS_MAX) == CLOCKS_MAX || self.model.counts().1 != 0 {
            return Err(FAILED);
        }
        Ok(())
    }

    /// The next frame that it has sent, or that is for the host; how long it is. 0: there is none.
    pub fn take(&mut self, for_host: bool, frame: &mut [u8]) -> usize {
        self.model.take(for_host, frame)
    }
}
