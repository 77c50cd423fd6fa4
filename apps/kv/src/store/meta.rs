//! What the meta commands do and how they answer. As in memcached, the flags are gone through in the order
//! in which they were given: what stands before a `T` shows the end from before it.
use super::clock::Moment;
use super::item::{self, Contents, Item, NEVER, Recache};
use super::memory::Footprint;
use super::{At, Store, deadline_ms};
use crate::memcached::{Flags, Meta, MetaDebug, MetaKind, NO_KEY, reply, unsigned};
use crate::{Exptime, Key, VALUE_BYTES_MAX, Written};

/// An item as the flags of an answer see it.
struct Shown<'a> {
    flags: u32,
    unique: u64,
    deadline_ms: u64,
    recache: Recache,
    value: &'a [u8],
    /// It was not there before.
    is_new: bool,
}

impl<'a> Shown<'a> {
    fn of(item: &'a Item) -> Self {
        Self {
            flags: item.flags,
            unique: item.unique,
            deadline_ms: item.deadline_ms,
            recache: item.recache,
            value: item.value(),
            is_new: false,
        }
    }

    /// What `mg` and `ma` make if there is nothing.
    const fn new(unique: u64, value: &'a [u8]) -> Self {
        Self {
            flags: 0,
            unique,
            deadline_ms: NEVER,
            recache: Recache {
                is_stale: false,
                is_won: false,
            },
            value,
            is_new: true,
        }
    }

    /// Seconds left, a part of one counted as one; `None` for ever.
    const fn seconds_left(&self, moment: Moment) -> Option<u64> {
        if self.deadline_ms == NEVER {
            None
        } else {
            let left_ms = self.deadline_ms.saturating_sub(moment.now_ms);
            Some(left_ms.div_ceil(1000))
        }
    }

    /// Whether less time is left than a client wants there to be.
    fn ends_before(&self, recache: Exptime, moment: Moment) -> bool {
        let wanted_ms = match deadline_ms(recache, moment) {
            NEVER => 0,
            wanted_ms => wanted_ms.saturating_sub(moment.now_ms),
        };
        let left = self.seconds_left(moment);
        left.is_some_and(|left| left < wanted_ms.div_ceil(1000))
    }
}

impl Store {
    /// Answers an `mg` that asks for no change. False: the item is stale and nobody has won it yet, so that
    /// the answer changes the item; nothing is written then.
    pub(super) fn show_meta(&self, meta: &Meta<'_>, reply: &mut Vec<u8>) -> bool {
        let flags = meta.flags_of_read();
        let Some(item) = self.live(meta.key(&mut NO_KEY.clone())) else {
            push_miss(reply, b"EN", &flags, flags.has(b'q'));
            return true;
        };
        if item.recache.is_stale && !item.recache.is_won {
            return false;
        }
        push_get(reply, &flags, &mut Shown::of(item), self.moment());
        true
    }

    /// Answers `mg` for an item that is stale and not won, and wins nothing: for who cannot have the log
    /// carry it, because later writes of the same client are in the log already.
    pub fn answer_without_win(&self, meta: &Meta<'_>, reply: &mut Vec<u8>) {
        let flags = meta.flags_of_read();
        let moment = self.moment();
        match self.live(meta.key(&mut NO_KEY.clone())) {
            None => push_miss(reply, b"EN", &flags, flags.has(b'q')),
            Some(item) => {
                let mut shown = Shown::of(item);
                shown.recache.is_won = true; // `Z`: it is for somebody else to store it anew
                push_get(reply, &flags, &mut shown, moment);
            }
        }
    }

    /// `me`
    pub(super) fn show_debug(&self, debug: &MetaDebug<'_>, reply: &mut Vec<u8>) {
        let Some(item) = self.live(debug.key(&mut NO_KEY.clone())) else {
            return reply.extend_from_slice(b"EN\r\n");
        };
        let shown = Shown::of(item);
        reply.extend_from_slice(b"ME ");
        reply.extend_from_slice(debug.name());
        reply.extend_from_slice(b" exp=-");
        let left = shown.seconds_left(self.moment());
        reply::push_decimal(reply, left.unwrap_or(1));
        reply.extend_from_slice(b" cas=");
        reply::push_decimal(reply, shown.unique);
        for (name, is_so) in [
            (&b" stale="[..], shown.recache.is_stale),
            (b" won=", shown.recache.is_won),
        ] {
            reply.extend_from_slice(name);
            reply.extend_from_slice(if is_so { b"yes" } else { b"no" });
        }
        reply.extend_from_slice(b" size=");
        reply::push_decimal(reply, item.bytes() as u64 + item::OVERHEAD_BYTES);
        reply.extend_from_slice(b"\r\n");
    }

    pub(super) fn run_meta(&mut self, meta: &Meta<'_>, value: &[u8], at: At, reply: &mut Vec<u8>) {
        let mut buffer = NO_KEY;
        let key = meta.key(&mut buffer);
        match meta.kind() {
            MetaKind::Get => self.meta_get(meta, key, at, reply),
            MetaKind::Set => self.meta_set(meta, key, value, at, reply),
            MetaKind::Delete => self.meta_delete(meta, key, at, reply),
            MetaKind::Arithmetic => self.meta_arithmetic(meta, key, at, reply),
        }
    }

    fn meta_get(&mut self, meta: &Meta<'_>, key: Key<'_>, at: At, reply: &mut Vec<u8>) {
        let flags = meta.flags();
        // As in memcached, what there is no memory for is just not there.
        let is_refused = flags.vivify.is_some() && self.memory.is_over_limit();
        let mut shown = match (self.live(key), flags.vivify) {
            (Some(item), _) => Shown::of(item),
            (None, Some(_)) if !is_refused => Shown::new(at.number, b""),
            (None, Some(_) | None) => {
                self.counts.memory.refused += u64::from(is_refused);
                self.counts.outcomes.get_misses += 1;
                return push_miss(reply, b"EN", &flags, flags.has(b'q'));
            }
        };
        let wins = push_get(reply, &flags, &mut shown, at.moment());
        let is_new = shown.is_new;
        if flags.touch.is_some() {
            self.counts.outcomes.note_touch(false);
        } else {
            self.counts.outcomes.get_hits += 1;
        }
        if is_new {
            let recache = Recache {
                is_stale: false,
                is_won: true,
            };
            self.make(key, b"", &flags, recache, at);
            return;
        }
        if wins && let Some(slot) = self.items.get_mut(self.items.hash(key), key) {
            item::make_mut(slot).recache.is_won = true;
        }
        if let Some(exptime) = flags.touch {
            self.touch(key, exptime, at);
        }
    }

    /// What `mg` and `ma` make if there is nothing. Of `N` and `T`, the one behind the other counts.
    fn make(&mut self, key: Key<'_>, value: &[u8], flags: &Flags<'_>, recache: Recache, at: At) {
        let exptime = flags.words().fold(Exptime(0), |end, word| match word[0] {
            b'N' => flags.vivify.unwrap_or(end),
            b'T' => flags.touch.unwrap_or(end),
            _ => end,
        });
        let contents = Contents {
            flags: 0,
            unique: at.number,
            deadline_ms: deadline_ms(exptime, at.moment()),
            awaits: at.awaits_for(exptime),
            recache,
            value: [value, b""],
        };
        self.put(key, &contents, at.now_ms);
        self.counts.total_items += 1;
    }

    fn meta_set(
        &mut self,
        meta: &Meta<'_>,
        key: Key<'_>,
        value: &[u8],
        at: At,
        reply: &mut Vec<u8>,
    ) {
        let flags = meta.flags();
        let code = self.meta_store(&flags, key, value, at);
        let is_stored = code == b"HD";
        if flags.compare.is_some() && !matches!(flags.mode, Some(b'E' | b'A' | b'P')) {
            self.counts.outcomes.note_cas(is_stored, code == b"NF");
        }
        if is_stored && flags.has(b'q') {
            return;
        }
        reply.extend_from_slice(code);
        for word in flags.words() {
            if word[0] == b'c' {
                let unique = if is_stored { at.number } else { 0 };
                push_number(reply, b'c', unique);
            }
            push_repeated(reply, &flags, word);
        }
        reply.extend_from_slice(b"\r\n");
    }

    /// Stores, or does not; the code that says which.
    fn meta_store(
        &mut self,
        flags: &Flags<'_>,
        key: Key<'_>,
        value: &[u8],
        at: At,
    ) -> &'static [u8] {
        let written = Written {
            key,
            flags: flags.item_bits,
            exptime: flags.touch.unwrap_or(Exptime(0)),
            value,
        };
        let found = self.live(key).map(|item| item.unique);
        match (flags.mode.unwrap_or(b'S'), found, flags.compare) {
            (b'E', Some(_), _) | (b'R', None, None) => b"NS",
            (b'E', None, _) | (b'S', _, None) | (b'R', Some(_), None) => {
                self.store(written, at);
                b"HD"
            }
            (b'S' | b'R', None, Some(_)) => b"NF",
            (b'S' | b'R', Some(unique), Some(wanted)) if unique == wanted => {
                self.store(written, at);
                b"HD"
            }
            (b'S' | b'R', Some(unique), Some(wanted)) => {
                if !flags.has(b'I') || wanted == 0 || wanted > unique {
                    return b"EX";
                }
                self.store_stale(&written, at);
                b"HD"
            }
            // 0 compares with nothing here, as in memcached.
            (_, Some(unique), Some(wanted)) if wanted != 0 && wanted != unique => b"EX",
            (mode, _, _) => {
                let (front, back): (&[u8], &[u8]) = if mode == b'P' {
                    (value, b"")
                } else {
                    (b"", value)
                };
                if self.extend(key, front, back, at) == reply::STORED {
                    b"HD"
                } else {
                    b"NS"
                }
            }
        }
    }

    /// Stores a value that is older than what is there: it is stale, and ends when that would have.
    fn store_stale(&mut self, written: &Written<'_>, at: At) {
        let Some(item) = self.live(written.key) else {
            return;
        };
        let contents = Contents {
            flags: written.flags,
            unique: at.number,
            deadline_ms: item.deadline_ms,
            awaits: item.awaits,
            recache: Recache {
                is_stale: true,
                ..item.recache
            },
            value: [written.value, b""],
        };
        self.put(written.key, &contents, at.now_ms);
        self.counts.total_items += 1;
    }

    fn meta_delete(&mut self, meta: &Meta<'_>, key: Key<'_>, at: At, reply: &mut Vec<u8>) {
        let flags = meta.flags();
        let Some(unique) = self.live(key).map(|item| item.unique) else {
            self.counts.outcomes.note_delete(true);
            return push_miss(reply, b"NF", &flags, false);
        };
        if flags.compare.is_some_and(|wanted| wanted != unique) {
            self.counts.outcomes.note_delete(true);
            return push_miss(reply, b"EX", &flags, false);
        }
        let hash = self.items.hash(key);
        if !flags.has(b'I') {
            self.remove(hash, key);
            self.counts.outcomes.note_delete(false);
        } else if let Some(slot) = self.items.get_mut(hash, key) {
            let before = Footprint::of(slot);
            let item = item::make_mut(slot);
            item.unique = at.number;
            item.recache = Recache {
                is_stale: true,
                is_won: false,
            };
            self.memory.changed(hash, before, Footprint::of(item));
            if let Some(exptime) = flags.touch {
                self.touch(key, exptime, at);
            }
        }
        push_miss(reply, b"HD", &flags, flags.has(b'q'));
    }

    fn meta_arithmetic(&mut self, meta: &Meta<'_>, key: Key<'_>, at: At, reply: &mut Vec<u8>) {
        let flags = meta.flags();
        let is_down = matches!(flags.mode, Some(b'D' | b'-'));
        let Some(item) = self.live(key) else {
            let Some(_) = flags.vivify else {
                self.counts.outcomes.note_count(is_down, true);
                return push_miss(reply, b"NF", &flags, false);
            };
            if self.memory.is_over_limit() {
                self.counts.memory.refused += 1;
                return reply.extend_from_slice(reply::OUT_OF_MEMORY_FOR_ITEM);
            }
            let (digits, start) = reply::decimal(flags.initial);
            let digits = &digits[start..];
            push_counted(
                reply,
                &flags,
                &mut Shown::new(at.number, digits),
                at.moment(),
            );
            return self.make(key, digits, &flags, Recache::default(), at);
        };
        let is_other = |wanted: u64| wanted != 0 && wanted != item.unique;
        if !item.value().is_empty() && flags.compare.is_some_and(is_other) {
            return push_miss(reply, b"EX", &flags, false);
        }
        let Some(number) = unsigned(item.value()) else {
            return reply.extend_from_slice(reply::NOT_NUMERIC);
        };
        let number = if is_down {
            number.saturating_sub(flags.delta)
        } else {
            number.wrapping_add(flags.delta)
        };
        let (digits, start) = reply::decimal(number);
        let digits = &digits[start..];
        if digits.len() > item.value().len() && self.memory.is_over_limit() {
            self.counts.memory.refused += 1;
            return reply.extend_from_slice(reply::OUT_OF_MEMORY_FOR_NUMBER);
        }
        if !flags.has(b'q') {
            let mut shown = Shown {
                unique: at.number,
                value: digits,
                ..Shown::of(item)
            };
            push_counted(reply, &flags, &mut shown, at.moment());
        }
        self.write_number(key, digits, at);
        self.counts.outcomes.note_count(is_down, false);
        if let Some(exptime) = flags.touch {
            self.touch(key, exptime, at);
        }
    }

    fn write_number(&mut self, key: Key<'_>, digits: &[u8], at: At) {
        let hash = self.items.hash(key);
        if let Some(slot) = self.items.get_mut(hash, key) {
            let before = Footprint::of(slot);
            item::write_number(slot, digits, at.number);
            self.memory.changed(hash, before, Footprint::of(slot));
        }
    }
}

/// The answer of `mg` for an item; whether whoever asks has won.
fn push_get(reply: &mut Vec<u8>, flags: &Flags<'_>, shown: &mut Shown<'_>, moment: Moment) -> bool {
    let with_value = flags.has(b'v');
    push_status(reply, shown, with_value);
    let mut wins = false;
    for word in flags.words() {
        match word[0] {
            b'R' if !shown.is_new && !shown.recache.is_won => {
                let recache = flags.recache.unwrap_or(Exptime(0));
                wins |= shown.ends_before(recache, moment);
            }
            b'N' => wins |= shown.is_new,
            b's' => push_number(reply, b's', shown.value.len() as u64),
            b'f' => push_number(reply, b'f', u64::from(shown.flags)),
            // Reads leave no trace.
            b'h' | b'l' => push_number(reply, word[0], 0),
            _ => {}
        }
        push_common(reply, flags, shown, word, moment);
    }
    if shown.recache.is_won {
        reply.extend_from_slice(b" Z");
    }
    if shown.recache.is_stale {
        reply.extend_from_slice(b" X");
        wins |= !shown.recache.is_won;
    }
    if wins {
        reply.extend_from_slice(b" W");
    }
    push_end(reply, shown, with_value);
    wins
}

/// The answer of `ma` for a number.
fn push_counted(reply: &mut Vec<u8>, flags: &Flags<'_>, shown: &mut Shown<'_>, moment: Moment) {
    push_status(reply, shown, flags.has(b'v'));
    for word in flags.words() {
        push_common(reply, flags, shown, word, moment);
    }
    push_end(reply, shown, flags.has(b'v'));
}

fn push_status(reply: &mut Vec<u8>, shown: &Shown<'_>, with_value: bool) {
    if with_value {
        debug_assert!(shown.value.len() <= VALUE_BYTES_MAX);
        reply.extend_from_slice(b"VA ");
        reply::push_decimal(reply, shown.value.len() as u64);
    } else {
        reply.extend_from_slice(b"HD");
    }
}

/// What `mg` and `ma` answer to a flag alike.
fn push_common(
    reply: &mut Vec<u8>,
    flags: &Flags<'_>,
    shown: &mut Shown<'_>,
    word: &[u8],
    moment: Moment,
) {
    match word[0] {
        b'T' => {
            let exptime = flags.touch.unwrap_or(Exptime(0));
            shown.deadline_ms = deadline_ms(exptime, moment);
        }
        b'N' if shown.is_new => {
            let exptime = flags.vivify.unwrap_or(Exptime(0));
            shown.deadline_ms = deadline_ms(exptime, moment);
        }
        b'c' => push_number(reply, b'c', shown.unique),
        b't' => match shown.seconds_left(moment) {
            Some(left) => push_number(reply, b't', left),
            None => reply.extend_from_slice(b" t-1"),
        },
        _ => push_repeated(reply, flags, word),
    }
}

fn push_end(reply: &mut Vec<u8>, shown: &Shown<'_>, with_value: bool) {
    reply.extend_from_slice(b"\r\n");
    if with_value {
        reply.extend_from_slice(shown.value);
        reply.extend_from_slice(b"\r\n");
    }
}

/// An answer that shows nothing of an item, unless it is to be left out.
fn push_miss(reply: &mut Vec<u8>, code: &[u8], flags: &Flags<'_>, is_quiet: bool) {
    if is_quiet {
        return;
    }
    reply.extend_from_slice(code);
    for word in flags.words() {
        push_repeated(reply, flags, word);
    }
    reply.extend_from_slice(b"\r\n");
}

/// What an answer repeats of its request: the opaque token and the key.
fn push_repeated(reply: &mut Vec<u8>, flags: &Flags<'_>, word: &[u8]) {
    match word[0] {
        b'O' => {
            reply.push(b' ');
            reply.extend_from_slice(word);
        }
        b'k' => {
            reply.extend_from_slice(b" k");
            reply.extend_from_slice(flags.name);
            if flags.has(b'b') {
                reply.extend_from_slice(b" b");
            }
        }
        _ => {}
    }
}

fn push_number(reply: &mut Vec<u8>, letter: u8, number: u64) {
    reply.extend_from_slice(&[b' ', letter]);
    reply::push_decimal(reply, number);
}
