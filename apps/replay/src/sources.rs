//! From where datagrams have come, and through which gateway: there the program's answers leave. All replicas
//! know the same of it, so an answer leaves once, although each replica's program says it.
use crate::command::Gateway;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Sources that are known of one gateway. With more, those not heard of for longest are forgotten.
pub const SOURCES_MAX: usize = 1 << 14;
/// Changes of a source's gateway that are known: a program may be some turns behind the log.
const CHANGES_MAX: usize = 8;

/// Who sends, and to which of the program's ports.
pub type Source = (SocketAddr, u16);

/// The turns in which it was heard here after it was heard elsewhere or never, in order.
type Turns = VecDeque<u64>;

/// Those of one gateway.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Sources {
    /// Heard of since `older` was put aside.
    recent: BTreeMap<Source, Turns>,
    older: BTreeMap<Source, Turns>,
}

impl Sources {
    fn get(&self, source: &Source) -> Option<&Turns> {
        self.recent.get(source).or_else(|| self.older.get(source))
    }

    /// The last turn up to this one in which it came here from elsewhere.
    fn since(&self, source: &Source, turn: u64) -> Option<u64> {
        let turns = self.get(source)?;
        turns.iter().rev().find(|it| **it <= turn).copied()
    }

    /// `elsewhere`: the turn in which another gateway began to hear it.
    fn heard(&mut self, source: Source, turn: u64, elsewhere: Option<u64>) {
        let mut turns = match self.recent.remove(&source) {
            Some(turns) => turns,
            None => self.older.remove(&source).unwrap_or_default(),
        };
        if turns.back().is_none_or(|own| elsewhere > Some(*own)) {
            turns.push_back(turn);
            if turns.len() > CHANGES_MAX {
                turns.pop_front();
            }
        }
        if self.recent.len() >= SOURCES_MAX / 2 {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(source, turns);
    }

    fn forget(&mut self, source: &Source) {
        self.recent.remove(source);
        self.older.remove(source);
    }
}

/// Those of all gateways, by replica.
#[derive(Debug, Default)]
pub struct AllSources(BTreeMap<u16, (Gateway, Sources)>);

impl AllSources {
    /// A datagram of this source came through this gateway, and is given to the program in this turn.
    pub fn heard(&mut self, source: Source, gateway: Gateway, turn: u64) {
        let others = self.0.values().filter(|(other, _)| *other != gateway);
        let elsewhere = others.filter_map(|(_, it)| it.since(&source, turn)).max();
        let (_, own) = self
            .0
            .entry(gateway.replica)
            .or_insert_with(|| (gateway, Sources::default()));
        own.heard(source, turn, elsewhere);
    }

    /// Through which gateway it was heard last when this turn was given to the program.
    pub fn gateway_of(&self, source: &Source, turn: u64) -> Option<Gateway> {
        let heard = self.0.values().filter_map(|(gateway, it)| {
            let since = it.since(source, turn)?;
            Some((since, *gateway))
        });
        heard.max_by_key(|(since, _)| *since).map(|(_, it)| it)
    }

    /// This replica's gateway has ended. Who was heard there last is heard nowhere: that gateway may have
    /// sent what another one would send again.
    pub fn end(&mut self, replica: u16) {
        let Some((_, ended)) = self.0.remove(&replica) else {
            return;
        };
        for (source, turns) in ended.recent.iter().chain(&ended.older) {
            let last = self.gateway_of(source, u64::MAX);
            let since = last.and_then(|it| self.0.get(&it.replica)?.1.since(source, u64::MAX));
            if since < turns.back().copied() {
                for (_, others) in self.0.values_mut() {
                    others.forget(source);
                }
            }
        }
    }

    /// How many are known.
    #[cfg(test)]
    fn count(&self) -> usize {
        let each = self.0.values();
        each.map(|(_, it)| it.recent.len() + it.older.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gateway(replica: u16) -> Gateway {
        Gateway {
            replica,
            number: 100 + u64::from(replica),
        }
    }

    fn source(number: u32) -> Source {
        let [a, b, c, d] = number.to_be_bytes();
        (SocketAddr::from(([a, b, c, d], 1000)), 53)
    }

    #[test]
    fn an_answer_leaves_through_the_gateway_that_was_last_when_its_turn_was_given() {
        let mut all = AllSources::default();
        for (turn, replica) in [(3, 0), (4, 0), (5, 1), (7, 2), (8, 0), (9, 0)] {
            all.heard(source(1), gateway(replica), turn);
        }
        let expected = [
            None,
            None,
            None,
            Some(0),
            Some(0),
            Some(1),
            Some(1),
            Some(2),
        ];
        for (turn, expected) in (0..).zip(expected.into_iter().chain([Some(0); 4])) {
            let of_turn = all.gateway_of(&source(1), turn);
            assert_eq!(of_turn, expected.map(gateway), "{turn}");
        }
        assert_eq!(all.gateway_of(&source(2), 9), None);
        let (peer, port) = source(1);
        assert_eq!(all.gateway_of(&(peer, port + 1), 9), None);
    }

    #[test]
    fn who_was_heard_last_through_a_gateway_that_ended_is_heard_nowhere() {
        let mut all = AllSources::default();
        all.heard(source(1), gateway(0), 1);
        all.heard(source(1), gateway(1), 2);
        all.heard(source(2), gateway(1), 3);
        all.heard(source(2), gateway(0), 4);
        all.end(1);
        assert_eq!(all.gateway_of(&source(1), 9), None);
        assert_eq!(all.gateway_of(&source(2), 9), Some(gateway(0)));
        all.heard(source(1), gateway(0), 5);
        assert_eq!(all.gateway_of(&source(1), 9), Some(gateway(0)));
        all.end(0);
        assert_eq!(all.count(), 0);
    }

    #[test]
    fn sources_are_bounded_and_who_is_heard_stays() {
        let mut all = AllSources::default();
        let many = u32::try_from(SOURCES_MAX).unwrap() * 3;
        for number in 1..many {
            let turn = 2 * u64::from(number);
            all.heard(source(number), gateway(0), turn);
            all.heard(source(0), gateway(0), turn);
            all.heard(source(0), gateway(1), turn + 1);
            assert!(all.count() <= 2 * SOURCES_MAX);
        }
        assert_eq!(all.gateway_of(&source(1), 2), None, "it is forgotten");
        let last = u64::from(2 * many);
        assert_eq!(all.gateway_of(&source(0), last), Some(gateway(1)));
        assert_eq!(
            all.gateway_of(&source(0), 2),
            None,
            "so many changes are not known"
        );
        let next_to_last = source(many - 2);
        assert_eq!(all.gateway_of(&next_to_last, last), Some(gateway(0)));
    }
}
