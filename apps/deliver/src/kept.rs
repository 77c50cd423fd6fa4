//! Values by instance, in chunks. A copy shares the chunks, so it is cheap however much is kept.
use crate::Instance;
use crate::limits::OVERHEAD_BYTES;
use std::collections::VecDeque;
use std::sync::Arc;

/// A chunk takes no further value once it holds so many.
const CHUNK_VALUES: usize = 256;
/// Or so many bytes.
const CHUNK_BYTES: u64 = 256 << 10;
/// Chunks that are freed at once: more of them would keep commands waiting.
const FREED_AT_ONCE: usize = 64;

#[derive(Clone, Debug, Default)]
struct Chunk {
    values: Vec<(Instance, Arc<[u8]>)>,
    bytes: u64,
}

impl Chunk {
    fn last(&self) -> Instance {
        self.values.last().map_or(0, |(instance, _)| *instance)
    }
}

/// Values that are kept.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// None is empty.
    chunks: VecDeque<Arc<Chunk>>,
    /// Nothing up to this instance counts. Some of it may stand in the first chunk.
    trimmed: Instance,
    count: u64,
    bytes: u64,
}

/// Chunks that hold nothing any more and are still to be freed.
pub type Discarded = Vec<FreedLater>;

/// One of them.
#[derive(Debug)]
pub struct FreedLater(#[allow(dead_code)] Arc<Chunk>); // it is dropped, nothing else

impl Kept {
    /// How many there are.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their bytes, with what each takes beside its own.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Nothing up to this instance is kept.
    pub const fn trimmed(&self) -> Instance {
        self.trimmed
    }

    /// What a value takes.
    pub const fn bytes_of(value: &[u8]) -> u64 {
        value.len() as u64 + OVERHEAD_BYTES
    }

    /// Keeps another one, behind all.
    pub fn push(&mut self, instance: Instance, value: &[u8]) {
        let bytes = Self::bytes_of(value);
        let is_full = |chunk: &Arc<Chunk>| {
            chunk.values.len() >= CHUNK_VALUES || chunk.bytes + bytes > CHUNK_BYTES
        };
        if self.chunks.back().is_none_or(is_full) {
            self.chunks.push_back(Arc::default());
        }
        if let Some(chunk) = self.chunks.back_mut() {
            let chunk = Arc::make_mut(chunk);
            debug_assert!(chunk.last() < instance);
            chunk.values.push((instance, value.into()));
            chunk.bytes += bytes;
        }
        self.count += 1;
        self.bytes += bytes;
    }

    /// The first value at this instance or behind it.
    pub fn at_or_behind(&self, from: Instance) -> Option<(Instance, &[u8])> {
        let from = from.max(self.trimmed.saturating_add(1));
        let place = self.chunks.partition_point(|chunk| chunk.last() < from);
        let values = &self.chunks.get(place)?.values;
        let (instance, value) = &values[values.partition_point(|(it, _)| *it < from)];
        Some((*instance, value))
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (Instance, &[u8])> {
        let all = self.chunks.iter().flat_map(|chunk| &chunk.values);
        all.filter(|(instance, _)| *instance > self.trimmed)
            .map(|(instance, value)| (*instance, &**value))
    }

    /// Keeps nothing up to this instance any more. How many values that were, and what is to be freed.
    pub fn trim(&mut self, upto: Instance, discarded: &mut Discarded) -> u64 {
        let before = self.trimmed;
        if upto <= before {
            return 0;
        }
        self.trimmed = upto;
        let mut gone = 0;
        while let Some(chunk) = self.chunks.front() {
            let is_gone =
                |(instance, _): &&(Instance, Arc<[u8]>)| *instance > before && *instance <= upto;
            for (_, value) in chunk.values.iter().filter(is_gone) {
                gone += 1;
                self.bytes -= Self::bytes_of(value);
            }
            if chunk.last() > upto {
                break;
            }
            discarded.extend(self.chunks.pop_front().map(FreedLater));
        }
        self.count -= gone;
        gone
    }
}

/// Frees some of them. Whether there are more.
pub fn free_some(discarded: &mut Discarded) -> bool {
    let rest = discarded.len().saturating_sub(FREED_AT_ONCE);
    discarded.truncate(rest);
    if discarded.is_empty() {
        *discarded = Vec::new();
    }
    !discarded.is_empty()
}
