//! Commands that look for keys. A `SCAN` goes in the order of hashes that are the same on all replicas, so
//! that its cursor is good at each of them and for any time.
use super::super::search::Search;
use super::super::shards::Position;
use super::work::{PER_KEY_SEEN, PER_PATTERN_STEP, PER_PIECE};
use super::{Answer, Arguments, Fault, Item, Outcome, SYNTAX, Store, number, reply};
use crate::redis::{Glob, PATTERN_BYTES_MAX};

/// How many items a `SCAN` looks at if it is not told.
pub(in crate::store) const COUNT_USUAL: usize = 10;

/// How many it looks at if it is told a larger number; items that share their position come on top.
pub(in crate::store) const COUNT_MAX: usize = 4096;

/// What is asked of a `SCAN`.
struct Question<'w> {
    pattern: Option<Glob<'w>>,
    count: usize,
    is_strings: bool,
}

impl Store {
    /// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`
    pub(super) fn scan(&self, words: &Arguments<'_>, answer: &mut Answer<'_>) -> Outcome {
        let cursor = cursor(words[1]).ok_or("ERR invalid cursor")?;
        let question = Question::read(&words[2..])?;
        let mut found = match Position::from_cursor(cursor) {
            Some(from) => self.items_from(from, question.count),
            None => Vec::new(),
        };
        let next = take_page(&mut found, question.count);
        answer.spend(found.len() * PER_KEY_SEEN + PER_PIECE)?;
        let mut steps = 0;
        found.retain(|(_, item)| {
            let mut matches = |pattern: Glob<'_>| {
                let may_go_on = steps * PER_PATTERN_STEP <= answer.work_left;
                may_go_on && pattern.matches_counting(item.key(), &mut steps)
            };
            question.is_strings && question.pattern.is_none_or(&mut matches)
        });
        answer.spend(steps * PER_PATTERN_STEP)?;
        reply::array_header(answer.out, 2);
        let cursor = next.map_or(0, Position::cursor);
        reply::bulk(answer.out, cursor.to_string().as_bytes());
        reply::array_header(answer.out, found.len());
        for (_, item) in found {
            answer.bulk(item.key())?;
        }
        Ok(())
    }

    /// The items from a position on, in order, if there are so many: `count` of them, those that share the
    /// last one's position, and at least one more. A piece may end anywhere, so its end says nothing about
    /// the next.
    pub(in crate::store) fn items_from(
        &self,
        from: Position,
        count: usize,
    ) -> Vec<(Position, &Item)> {
        let mut found = Vec::new();
        for mut shard in self.items.shards_from(from) {
            shard.retain(|(_, item)| item.deadline_ms > self.log_time_ms);
            shard.sort_unstable_by(|(a, first), (b, second)| {
                a.cmp(b).then_with(|| first.key().cmp(second.key()))
            });
            found.extend(shard);
            let is_enough = match count.checked_sub(1) {
                None => !found.is_empty(),
                Some(last) => found
                    .get(last)
                    .is_some_and(|(counted, _)| found.last().is_some_and(|(end, _)| end > counted)),
            };
            if is_enough {
                break;
            }
        }
        found
    }

    /// Any key: the first behind a point that chance chooses, or else the first of all.
    pub(super) fn randomkey(&self, answer: &mut Answer<'_>) -> Outcome {
        answer.spend(PER_PIECE)?;
        let point = Position::of(answer.chance);
        let behind = self.items_from(point, 0);
        let found = match behind.first() {
            Some((_, item)) => Some(item.key()),
            None => self
                .items_from(Position::of(0), 0)
                .first()
                .map(|(_, item)| item.key()),
        };
        answer.bulk_or_null(found)
    }

    /// Looks at all keys at once; its answer is in the order of their bytes.
    pub(super) fn keys(&self, words: &Arguments<'_>, answer: &mut Answer<'_>) -> Outcome {
        pattern(words[1])?;
        let room = answer.end_max.saturating_sub(answer.out.len());
        let mut search = Search::new(answer.resp, words[1], room);
        search.begin(self);
        let done = search.look(answer.work_left);
        // Items come in another order on each replica: what is said must not depend on it.
        answer.spend(done.work)?;
        search.put(answer.out)
    }

    /// How many keys are there; those whose time has passed and that wait for their removal are not.
    pub(super) fn dbsize(&self, answer: &mut Answer<'_>) {
        let count = self.memory.live_count();
        answer.integer(i64::try_from(count).unwrap_or(i64::MAX));
    }
}

/// Leaves `count` items, and those that share the last one's position; gives the next one's.
pub(in crate::store) fn take_page(
    found: &mut Vec<(Position, &Item)>,
    count: usize,
) -> Option<Position> {
    let last = found.get(count - 1)?.0;
    let tied = found[count..]
        .iter()
        .take_while(|(place, _)| *place == last);
    let end = count + tied.count();
    let next = found.get(end).map(|(place, _)| *place);
    found.truncate(end);
    next
}

impl<'w> Question<'w> {
    fn read(words: &Arguments<'w>) -> Result<Self, Fault> {
        let mut question = Self {
            pattern: None,
            count: COUNT_USUAL,
            is_strings: true,
        };
        let (pairs, rest) = words.as_chunks::<2>();
        for [name, value] in pairs {
            let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
            if is(b"COUNT") {
                let count = number(value)?;
                if count < 1 {
                    return Err(SYNTAX.into());
                }
                question.count = usize::try_from(count).unwrap_or(COUNT_MAX).min(COUNT_MAX);
            } else if is(b"MATCH") {
                question.pattern = Some(pattern(value)?);
            } else if is(b"TYPE") {
                question.is_strings = value.eq_ignore_ascii_case(b"string");
            } else {
                return Err(SYNTAX.into());
            }
        }
        if rest.is_empty() {
            Ok(question)
        } else {
            Err(SYNTAX.into())
        }
    }
}

fn pattern(word: &[u8]) -> Result<Glob<'_>, Fault> {
    Glob::new(word)
        .ok_or_else(|| format!("ERR pattern is longer than {PATTERN_BYTES_MAX} bytes").into())
}

/// A cursor as C's `strtoul` reads it.
fn cursor(word: &[u8]) -> Option<u64> {
    let is_negative = word.first() == Some(&b'-');
    let digits = match word.split_first() {
        Some((b'-' | b'+', digits)) => digits,
        Some(_) | None => word,
    };
    if digits.is_empty() {
        return word.is_empty().then_some(0);
    }
    let mut number: u64 = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))?;
    }
    Some(if is_negative {
        number.wrapping_neg()
    } else {
        number
    })
}
