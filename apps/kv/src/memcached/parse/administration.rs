//! Requests that tune memcached or look into it. Most of what they tune is not here: those are answered as
//! memcached answers them, and change nothing.
use super::{Cut, signed, unsigned};
use crate::memcached::{Local, Parsed, RefusalReply, reply};
use crate::{Command, MemoryChange};

/// What memcached takes as a memory limit, at least and at most, and the largest number that it understands
/// there.
const MEGABYTES_LEAST: u64 = 8;
const MEGABYTES_MAX: u64 = 1_000_000_000;
const U32_MAX: u64 = 0xffff_ffff;

/// Memcached's classes of memory have numbers below this.
const CLASSES_MAX: u64 = 64;
/// The last of them that it uses, as it comes.
const CLASS_LAST: i64 = 39;
/// Longest pause of its crawler, in microseconds.
const CRAWLER_SLEEP_MAX: u64 = 1_000_000;
/// Percent of the memory that two of its three queues may be given.
const HOT_AND_WARM_MAX: u64 = 80;

impl<'a> Cut<'a> {
    /// `stats [name]`, `stats cachedump class limit`
    pub(super) fn stats(&self) -> Parsed<'a> {
        let argument = (self.word_count > 1).then_some(self.words[1]);
        if argument == Some(b"cachedump")
            && let Some(refusal) = self.why_no_dump()
        {
            return self.refuse(refusal);
        }
        self.local(Local::Stats { argument })
    }

    /// What is wrong with the class of items to be shown, and with how many.
    fn why_no_dump(&self) -> Option<&'static [u8]> {
        if self.word_count < 4 {
            return Some(reply::BAD_LINE);
        }
        match [unsigned(self.words[2]), unsigned(self.words[3])] {
            [Some(0..CLASSES_MAX), Some(_)] => None,
            [Some(_), Some(_)] => Some(reply::BAD_SLAB),
            [_, _] => Some(reply::BAD_FORMAT),
        }
    }

    /// `verbosity level [noreply]`
    pub(super) fn verbosity(&self) -> Parsed<'a> {
        if !(2..=3).contains(&self.word_count) {
            return self.refuse(reply::ERROR);
        }
        let noreply = self.noreply();
        match unsigned(self.words[1]) {
            Some(_) => self.tuned(noreply),
            None => self.refuse_unless(noreply, reply::BAD_FORMAT),
        }
    }

    /// `cache_memlimit megabytes [noreply]`
    pub(super) fn memory_limit(&self) -> Parsed<'a> {
        if !(2..=3).contains(&self.word_count) {
            return self.refuse(reply::ERROR);
        }
        let noreply = self.noreply();
        match unsigned(self.words[1]) {
            Some(0..MEGABYTES_LEAST) => self.refuse_unless(noreply, reply::MEMORY_TOO_SMALL),
            Some(megabytes @ ..=MEGABYTES_MAX) => {
                let change = MemoryChange {
                    limit_bytes: Some(megabytes << 20),
                    ..MemoryChange::default()
                };
                self.write(Command::Memory(change), noreply)
            }
            Some(0..=U32_MAX) => self.refuse_unless(noreply, reply::MEMORY_TOO_LARGE),
            Some(_) | None => self.refuse_unless(noreply, reply::ERROR),
        }
    }

    /// `slabs automove level [noreply]`, `slabs automove ratio number [noreply]`, `slabs reassign from to`
    pub(super) fn slabs(&self) -> Parsed<'a> {
        match (self.words[1], self.word_count) {
            (b"reassign", 4) => self.refuse(self.why_not_reassigned()),
            (b"automove", 3..) => {
                let noreply = self.noreply();
                let refusal = match (self.words[2], unsigned(self.words[2])) {
                    (b"ratio", _) if self.fraction(3).is_some() => None,
                    (_, Some(0..=2)) => None,
                    (b"ratio", _) | (_, Some(_)) => Some(reply::ERROR),
                    (_, None) => Some(reply::BAD_FORMAT),
                };
                self.tuned_unless(refusal, noreply)
            }
            _ => self.refuse(reply::ERROR),
        }
    }

    /// There is no memory to be moved from class to class.
    fn why_not_reassigned(&self) -> RefusalReply {
        let [Some(from), Some(to)] = [2, 3].map(|place| signed(self.words[place])) else {
            return reply::BAD_FORMAT.into();
        };
        let is_one = |class| (0..=CLASS_LAST).contains(&class);
        if from == to {
            reply::SAME_CLASS.into()
        } else if is_one(from) && is_one(to) {
            RefusalReply::not_served(reply::NO_SPARE_MEMORY)
        } else {
            reply::BAD_CLASS_OF_TWO.into()
        }
    }

    /// `lru tune percent percent number number`, `lru mode flat|segmented`, `lru temp_ttl seconds`, each with
    /// `noreply` at will
    pub(super) fn lru(&self) -> Parsed<'a> {
        if self.word_count < 2 {
            return self.refuse(reply::ERROR);
        }
        let noreply = self.noreply();
        let is_good = match (self.words[1], self.word_count) {
            (b"tune", 6..) => {
                return self.tuned_unless(self.why_not_tuned(), noreply);
            }
            (b"mode", 3..) => matches!(self.words[2], b"flat" | b"segmented"),
            (b"temp_ttl", 3..) => signed(self.words[2]).is_some(),
            _ => false,
        };
        self.tuned_unless((!is_good).then_some(reply::ERROR), noreply)
    }

    fn why_not_tuned(&self) -> Option<&'static [u8]> {
        let percent = [2, 3].map(|place| unsigned(self.words[place]));
        let factors = [4, 5].map(|place| self.fraction(place));
        match (percent, factors) {
            ([Some(hot), Some(warm)], [Some(_), Some(_)])
                if hot.saturating_add(warm) > HOT_AND_WARM_MAX =>
            {
                Some(reply::TOO_MUCH_HOT_AND_WARM)
            }
            ([Some(_), Some(_)], [Some(hot), Some(warm)]) if hot <= 0.0 || warm <= 0.0 => {
                Some(reply::NO_AGE_FACTOR)
            }
            ([Some(_), Some(_)], [Some(_), Some(_)]) => None,
            _ => Some(reply::ERROR),
        }
    }

    /// `lru_crawler enable|disable`, `lru_crawler crawl|metadump classes`, `lru_crawler sleep|tocrawl
    /// number`. Keys are not listed.
    pub(super) fn lru_crawler(&self) -> Parsed<'a> {
        let number = || unsigned(self.words[2]);
        let refusal = match self.words[1..self.word_count.max(1)] {
            [b"crawl", classes] => why_not_crawled(classes),
            [b"metadump", _] => return self.refuse(RefusalReply::not_served(reply::NO_DUMP)),
            [b"sleep" | b"tocrawl", _] if number().is_none() => Some(reply::BAD_FORMAT),
            [b"sleep", _] if number() > Some(CRAWLER_SLEEP_MAX) => Some(reply::LONG_SLEEP),
            [b"enable" | b"disable"] | [b"sleep" | b"tocrawl", _] => None,
            _ => Some(reply::ERROR),
        };
        self.tuned_unless(refusal, false)
    }

    /// `watch [what...]`: nothing is told as it happens.
    pub(super) fn watch(&self) -> Parsed<'a> {
        let refusal = RefusalReply::not_served(reply::NO_WATCHING);
        self.refuse_unless(self.noreply(), refusal)
    }

    fn tuned_unless(&self, refusal: Option<&'static [u8]>, noreply: bool) -> Parsed<'a> {
        match refusal {
            Some(refusal) => self.refuse_unless(noreply, refusal),
            None => self.tuned(noreply),
        }
    }

    fn tuned(&self, noreply: bool) -> Parsed<'a> {
        self.local(Local::Tuning { noreply })
    }

    /// The word at `place` as a number that need not be whole.
    fn fraction(&self, place: usize) -> Option<f64> {
        std::str::from_utf8(self.words[place]).ok()?.parse().ok()
    }
}

/// What is wrong with a list of classes.
fn why_not_crawled(classes: &[u8]) -> Option<&'static [u8]> {
    if classes == b"all" {
        return None;
    }
    let listed = classes.split(|&byte| byte == b',');
    let mut listed = listed.filter(|class| !class.is_empty()).peekable();
    if listed.peek().is_none() {
        return Some(reply::NOTHING_TO_CRAWL);
    }
    let is_class = |class: &[u8]| matches!(unsigned(class), Some(1..CLASSES_MAX));
    (!listed.all(is_class)).then_some(reply::BAD_CLASS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WhyRefused;
    use crate::memcached::{Request, parse};

    /// What the line is answered, if it needs nothing but the line, and whether that is a refusal.
    fn answer(line: &str) -> (&'static [u8], Option<WhyRefused>) {
        match parse(format!("{line}\r\n").as_bytes()) {
            Parsed::Request {
                request: Request::Local(Local::Tuning { noreply }),
                ..
            } => (if noreply { b"" } else { reply::OK }, None),
            Parsed::Refused {
                reply,
                why,
                close: false,
                ..
            } => (reply, Some(why)),
            other @ (Parsed::Incomplete { .. }
            | Parsed::Request { .. }
            | Parsed::Refused { .. }) => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn what_tunes_nothing_is_answered_and_is_no_refusal() {
        for line in [
            "verbosity 1",
            "slabs automove 0",
            "slabs automove 2 x",
            "slabs automove ratio 0.5",
            "lru mode flat",
            "lru tune 10 25 0.1 2.0",
            "lru temp_ttl -1",
            "lru_crawler enable",
            "lru_crawler disable",
            "lru_crawler crawl all",
            "lru_crawler crawl 1,63",
            "lru_crawler sleep 1000000",
            "lru_crawler tocrawl 7",
        ] {
            assert_eq!(answer(line), (reply::OK, None), "{line}");
        }
        for line in [
            "slabs automove 1 noreply",
            "lru mode segmented noreply",
            "verbosity 1 noreply",
        ] {
            assert_eq!(answer(line), (&b""[..], None), "{line}");
        }
    }

    #[test]
    fn what_is_not_served_says_so() {
        for (line, text) in [
            ("watch", reply::NO_WATCHING),
            ("watch fetchers", reply::NO_WATCHING),
            ("lru_crawler metadump all", reply::NO_DUMP),
            ("slabs reassign 1 2", reply::NO_SPARE_MEMORY),
            ("shutdown", reply::SHUTDOWN_NOT_ENABLED),
        ] {
            assert_eq!(answer(line), (text, Some(WhyRefused::NotServed)), "{line}");
        }
        assert_eq!(answer("watch noreply").0, b"");
    }

    #[test]
    fn a_dump_of_a_class_is_a_question_of_its_own() {
        let asked = parse(b"stats cachedump 1 1\r\n");
        let Parsed::Request {
            request: Request::Local(Local::Stats { argument }),
            ..
        } = asked
        else {
            panic!("{asked:?}");
        };
        assert_eq!(argument, Some(&b"cachedump"[..]));
        for (line, text) in [
            ("stats cachedump 1", reply::BAD_LINE),
            ("stats cachedump 64 1", reply::BAD_SLAB),
            ("stats cachedump 1 x", reply::BAD_FORMAT),
        ] {
            let refused = (text, Some(WhyRefused::Malformed));
            assert_eq!(answer(line), refused, "{line}");
        }
    }
}
