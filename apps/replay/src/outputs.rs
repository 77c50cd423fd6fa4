//! What replicas' programs have said, compared. Each replica reports a checksum of each window of a
//! connection's output. What is equal everywhere is dropped; the leader says what becomes of the rest.
//!
//! All of it stands in the log, so every replica knows the same. The program gets no turn for it.
use crate::command::{Left, Malformed};
use crate::mutants::mutant;
use quorumwire_interfaces::{Incarnation, ReplicaId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Bytes of a window; one that ends early has fewer (APUS, section 5).
pub const WINDOW_BYTES: usize = 1536;
/// Most windows of a report.
pub const WINDOWS_MAX: usize = 1024;
/// Windows that wait for the reports of others. Of more the oldest go, compared or not.
const COMPARED_MAX: usize = 1 << 15;
/// Replicas that have reported a window; more are not heard. Also most voters of a verdict.
pub(crate) const VOTES_MAX: usize = 32;
/// The last verdicts are kept.
const VERDICTS_MAX: usize = 32;

/// Who reports: a replica, in one of its lives.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Reporter {
    /// Which.
    pub replica: u16,
    /// Its incarnation: of the next one nothing is held against it.
    pub life: u64,
}

impl Reporter {
    /// This life of this replica.
    #[must_use]
    pub const fn of(replica: ReplicaId, life: Incarnation) -> Self {
        Self {
            replica: replica.0,
            life: life.0,
        }
    }
}

/// What was said to a client, from one byte of what is compared to another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Window {
    /// To whom.
    pub connection: u64,
    /// How many bytes that are compared were said to it before.
    pub first_byte: u64,
    /// At most [`WINDOW_BYTES`]; none: nothing more was said to it.
    pub bytes: u16,
    /// In which the window ended.
    pub turn: u64,
    /// CRC-64 of them.
    pub sum: u64,
}

/// One whose word counts, as the leader knew it when it gave a verdict.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Voter {
    /// Who.
    pub reporter: Reporter,
    /// The leader hears it.
    pub is_heard: bool,
}

/// Which window: all replicas call it so, whatever is in it.
pub type Place = (u64, u64);

impl Window {
    /// Which.
    #[must_use]
    pub const fn place(&self) -> Place {
        (self.connection, self.first_byte)
    }

    /// Whether the same was said. When does not matter.
    const fn equals(&self, other: &Self) -> bool {
        self.bytes == other.bytes && self.sum == other.sum
    }
}

/// What becomes of who said something else.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Judgement {
    /// More than half of the voters say the other thing: this life of it ends.
    Outvoted,
    /// Nobody knows who is right: people are told.
    Undecided,
}

/// Of one replica, in one of its lives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Verdict {
    /// What becomes of it.
    pub judgement: Judgement,
    /// Whose output it was.
    pub reporter: Reporter,
    /// As it was reported.
    pub window: Window,
    /// The same one of those who said something else.
    pub others: Window,
}

/// Counted since this process began.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Compared {
    /// Windows that were equal everywhere.
    pub equal: u64,
    /// Those that went because too many waited.
    pub forgotten: u64,
    /// Lives that were outvoted.
    pub outvoted: u64,
    /// Lives of which nobody knew whether they were right.
    pub undecided: u64,
}

#[derive(Debug, Eq, PartialEq)]
struct Votes {
    age: u64,
    /// At most one of each replica.
    each: Vec<(Reporter, Window)>,
}

impl Votes {
    fn are_equal(&self) -> bool {
        self.each.windows(2).all(|two| two[0].1.equals(&two[1].1))
    }

    /// Whether more than half of these say the same as this.
    fn are_most(&self, window: &Window, of: &[Voter]) -> bool {
        let is_voter = |who: &Reporter| of.iter().any(|it| it.reporter == *who);
        let mut each = self.each.iter();
        let same = each
            .by_ref()
            .filter(|(who, said)| is_voter(who) && said.equals(window));
        2 * same.count() > of.len()
    }

    fn has_said(&self, who: Reporter) -> bool {
        self.each.iter().any(|(it, _)| *it == who)
    }
}

/// All of it.
#[derive(Debug, Default)]
pub struct Outputs {
    compared: BTreeMap<Place, Votes>,
    by_age: BTreeMap<u64, Place>,
    next_age: u64,
    /// Not all say the same of these.
    disputed: BTreeSet<Place>,
    /// The last turn of which anybody has reported something.
    last_turn: u64,
    verdicts: VecDeque<Verdict>,
    counts: Compared,
}

impl Outputs {
    /// Takes what a replica says of its program's output. `members`: so many are expected to say something.
    pub(crate) fn report(&mut self, who: Reporter, members: u16, windows: &[Window]) {
        if self.is_outvoted(who) {
            return;
        }
        for window in windows {
            self.last_turn = self.last_turn.max(window.turn);
            self.vote(who, usize::from(members), window);
        }
    }

    fn vote(&mut self, who: Reporter, members: usize, window: &Window) {
        let place = window.place();
        if !self.compared.contains_key(&place) {
            self.make_room();
            let age = self.next_age;
            self.next_age += 1;
            self.by_age.insert(age, place);
            let votes = Votes {
                age,
                each: Vec::new(),
            };
            self.compared.insert(place, votes);
        }
        let votes = self
            .compared
            .get_mut(&place)
            .expect("it was there, or is new");
        let count = votes.each.len();
        let mut each = votes.each.iter_mut();
        match each.find(|(it, _)| it.replica == who.replica) {
            Some((before, _)) if *before == who => return, // it says so again
            Some(before) => *before = (who, *window),
            None if count < VOTES_MAX => votes.each.push((who, *window)),
            None => return,
        }
        if !votes.are_equal() {
            self.disputed.insert(place);
            return;
        }
        self.disputed.remove(&place);
        if votes.each.len() >= members {
            self.counts.equal += 1;
            self.drop(place);
        }
    }

    fn make_room(&mut self) {
        while self.compared.len() >= COMPARED_MAX {
            let Some((_, oldest)) = self.by_age.first_key_value() else {
                return;
            };
            self.counts.forgotten += 1;
            self.drop(*oldest);
        }
    }

    fn drop(&mut self, place: Place) {
        if let Some(votes) = self.compared.remove(&place) {
            self.by_age.remove(&votes.age);
        }
        self.disputed.remove(&place);
    }

    /// Takes what the leader says, if it is still so: since it said that, another one may have been outvoted,
    /// by another leader. The first verdict of a kind counts; one that is outvoted stays so.
    pub(crate) fn judge(&mut self, verdict: Verdict, voters: &[Voter]) {
        let who = verdict.reporter;
        if !self.is_so(&verdict, voters) && !mutant("verdict-not-looked-at-again") {
            return;
        }
        if self.verdicts.len() >= VERDICTS_MAX {
            self.verdicts.pop_front();
        }
        self.verdicts.push_back(verdict);
        match verdict.judgement {
            Judgement::Undecided => self.counts.undecided += 1,
            Judgement::Outvoted => {
                self.counts.outvoted += 1;
                self.unhear(who);
            }
        }
    }

    /// Whether a verdict is news, and what has been said is as it says.
    fn is_so(&self, verdict: &Verdict, voters: &[Voter]) -> bool {
        let (who, others) = (verdict.reporter, verdict.others);
        let Some(said) = self.compared.get(&verdict.window.place()) else {
            return false;
        };
        let mut each = said.each.iter();
        let differs =
            each.any(|it| *it == (who, verdict.window)) && !verdict.window.equals(&others);
        match verdict.judgement {
            Judgement::Outvoted => {
                differs && said.are_most(&others, voters) && self.is_bearable(who, voters)
            }
            Judgement::Undecided => {
                let mut each = said.each.iter();
                differs && each.any(|(_, it)| it.equals(&others)) && !self.is_judged(who)
            }
        }
    }

    /// Whether this one may be outvoted. Whoever is ends, and comes back with nothing: if those who are heard
    /// besides are no majority, they could neither go on without it nor take it in.
    fn is_bearable(&self, who: Reporter, voters: &[Voter]) -> bool {
        let stay = voters.iter().filter(|it| {
            it.is_heard && it.reporter.replica != who.replica && !self.is_outvoted(it.reporter)
        });
        2 * stay.count() > voters.len() || mutant("outvoted-beyond-a-majority")
    }

    /// What one has said counts no more.
    fn unhear(&mut self, who: Reporter) {
        let mut unsaid = Vec::new();
        for (place, votes) in &mut self.compared {
            votes.each.retain(|(it, _)| *it != who);
            unsaid.extend(votes.each.is_empty().then_some(*place));
        }
        for place in unsaid {
            self.drop(place);
        }
        let compared = &self.compared;
        let is_disputed = |place: &Place| compared.get(place).is_some_and(|it| !it.are_equal());
        self.disputed.retain(is_disputed);
    }

    /// Whether this life of a replica was outvoted.
    #[must_use]
    pub fn is_outvoted(&self, who: Reporter) -> bool {
        let of_it = |it: &Verdict| it.reporter == who && it.judgement == Judgement::Outvoted;
        self.verdicts.iter().any(of_it)
    }

    fn is_judged(&self, who: Reporter) -> bool {
        self.verdicts.iter().any(|it| it.reporter == who)
    }

    /// The last verdicts, the oldest first.
    pub fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        self.verdicts.iter()
    }

    /// Windows of which not all say the same.
    #[cfg(test)]
    pub fn disputed(&self) -> impl Iterator<Item = Place> {
        self.disputed.iter().copied()
    }

    /// Whether not all say the same of some window.
    #[must_use]
    pub fn are_disputed(&self) -> bool {
        !self.disputed.is_empty()
    }

    /// Windows of which not all say the same, and people are not told yet: the leader waits there for who has
    /// said nothing.
    pub fn undecided(&self, leader: Reporter) -> impl Iterator<Item = Place> {
        let places = self.disputed.iter();
        let each = places.filter_map(|place| Some((*place, self.compared.get(place)?)));
        let open = each.filter(move |(_, votes)| self.undecided_of(leader, votes).is_some());
        open.map(|(place, _)| place)
    }

    /// The last turn of which anybody has reported something.
    #[must_use]
    pub const fn last_turn(&self) -> u64 {
        self.last_turn
    }

    /// What has been counted.
    #[must_use]
    pub const fn counts(&self) -> Compared {
        self.counts
    }

    /// What the leader, which is one of the voters, is to say next. `is_overdue`: nobody else is waited for
    /// at this place.
    #[must_use]
    pub fn next_verdict(
        &self,
        (leader, voters): (Reporter, &[Voter]),
        mut is_overdue: impl FnMut(Place) -> bool,
    ) -> Option<Verdict> {
        let places = self.disputed.iter();
        let disputed = places.filter_map(|place| Some((*place, self.compared.get(place)?)));
        let mut told = None;
        for (place, votes) in disputed {
            let mut each = votes.each.iter();
            if let Some((_, most)) = each.find(|(_, said)| votes.are_most(said, voters)) {
                let differ = votes.each.iter().filter(|(_, said)| !said.equals(most));
                let verdicts = differ.map(|(reporter, window)| Verdict {
                    judgement: Judgement::Outvoted,
                    reporter: *reporter,
                    window: *window,
                    others: *most,
                });
                for outvoted in verdicts {
                    if self.is_bearable(outvoted.reporter, voters) {
                        return Some(outvoted);
                    }
                    if told.is_none() && !self.is_judged(outvoted.reporter) {
                        told = Some(Verdict {
                            judgement: Judgement::Undecided,
                            ..outvoted
                        });
                    }
                }
            } else if told.is_none() {
                let have_all_said = voters.iter().all(|it| votes.has_said(it.reporter));
                if have_all_said || is_overdue(place) {
                    told = self.undecided_of(leader, votes);
                }
            }
        }
        told
    }

    /// What the leader's program said stays; if it has said nothing there, that of the first who has.
    fn undecided_of(&self, leader: Reporter, votes: &Votes) -> Option<Verdict> {
        let of_leader = votes.each.iter().find(|(who, _)| *who == leader);
        let (_, stays) = of_leader.or_else(|| votes.each.first())?;
        let mut each = votes.each.iter();
        let (reporter, window) =
            each.find(|(who, said)| !said.equals(stays) && !self.is_judged(*who))?;
        Some(Verdict {
            judgement: Judgement::Undecided,
            reporter: *reporter,
            window: *window,
            others: *stays,
        })
    }
}

// As bytes.

const OUTVOTED: u8 = 1;
const UNDECIDED: u8 = 2;

pub(crate) fn put_reporter(out: &mut Vec<u8>, who: Reporter) {
    out.extend_from_slice(&who.replica.to_le_bytes());
    out.extend_from_slice(&who.life.to_le_bytes());
}

pub(crate) fn put_window(out: &mut Vec<u8>, window: &Window) {
    out.extend_from_slice(&window.connection.to_le_bytes());
    out.extend_from_slice(&window.first_byte.to_le_bytes());
    out.extend_from_slice(&window.bytes.to_le_bytes());
    out.extend_from_slice(&window.turn.to_le_bytes());
    out.extend_from_slice(&window.sum.to_le_bytes());
}

pub(crate) fn put_verdict(out: &mut Vec<u8>, verdict: &Verdict) {
    out.push(match verdict.judgement {
        Judgement::Outvoted => OUTVOTED,
        Judgement::Undecided => UNDECIDED,
    });
    put_reporter(out, verdict.reporter);
    put_window(out, &verdict.window);
    put_window(out, &verdict.others);
}

pub(crate) fn put_voters(out: &mut Vec<u8>, voters: &[Voter]) {
    out.push(u8::try_from(voters.len()).expect("at most VOTES_MAX"));
    for voter in voters {
        put_reporter(out, voter.reporter);
        out.push(u8::from(voter.is_heard));
    }
}

impl Left<'_> {
    pub(crate) fn voters(&mut self) -> Result<Vec<Voter>, Malformed> {
        let count = usize::from(self.byte()?);
        if count > VOTES_MAX {
            return Err(Malformed);
        }
        let voter = |_| {
            let reporter = self.reporter()?;
            let is_heard = match self.byte()? {
                0 => false,
                1 => true,
                _ => return Err(Malformed),
            };
            Ok(Voter { reporter, is_heard })
        };
        (0..count).map(voter).collect()
    }

    pub(crate) fn reporter(&mut self) -> Result<Reporter, Malformed> {
        Ok(Reporter {
            replica: u16::from_le_bytes(self.array()?),
            life: u64::from_le_bytes(self.array()?),
        })
    }

    pub(crate) fn window(&mut self) -> Result<Window, Malformed> {
        let window = Window {
            connection: u64::from_le_bytes(self.array()?),
            first_byte: u64::from_le_bytes(self.array()?),
            bytes: u16::from_le_bytes(self.array()?),
            turn: u64::from_le_bytes(self.array()?),
            sum: u64::from_le_bytes(self.array()?),
        };
        let is_window = usize::from(window.bytes) <= WINDOW_BYTES;
        is_window.then_some(window).ok_or(Malformed)
    }

    pub(crate) fn verdict(&mut self) -> Result<Verdict, Malformed> {
        let judgement = match self.byte()? {
            OUTVOTED => Judgement::Outvoted,
            UNDECIDED => Judgement::Undecided,
            _ => return Err(Malformed),
        };
        let verdict = Verdict {
            judgement,
            reporter: self.reporter()?,
            window: self.window()?,
            others: self.window()?,
        };
        let is_one = verdict.window.place() == verdict.others.place();
        is_one.then_some(verdict).ok_or(Malformed)
    }
}

impl Outputs {
    /// For a snapshot: everybody goes on with the same.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let count = |count: usize| u32::try_from(count).expect("it is limited").to_le_bytes();
        out.extend_from_slice(&self.last_turn.to_le_bytes());
        out.extend_from_slice(&count(self.by_age.len()));
        for votes in self
            .by_age
            .values()
            .filter_map(|place| self.compared.get(place))
        {
            out.extend_from_slice(&count(votes.each.len()));
            for (who, window) in &votes.each {
                put_reporter(&mut out, *who);
                put_window(&mut out, window);
            }
        }
        out.extend_from_slice(&count(self.verdicts.len()));
        for verdict in &self.verdicts {
            put_verdict(&mut out, verdict);
        }
        out
    }

    /// What a snapshot says.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut left = Left(bytes);
        let mut outputs = Self {
            last_turn: u64::from_le_bytes(left.array()?),
            ..Self::default()
        };
        for _ in 0..left.count()? {
            let count = left.count()?;
            let votes = (0..count).map(|_| Ok((left.reporter()?, left.window()?)));
            let votes = votes.collect::<Result<Vec<_>, _>>()?;
            for (who, window) in votes {
                outputs.vote(who, usize::MAX, &window);
            }
        }
        for _ in 0..left.count()? {
            outputs.verdicts.push_back(left.verdict()?);
        }
        left.0.is_empty().then_some(outputs).ok_or(Malformed)
    }
}

#[cfg(test)]
#[path = "outputs_test.rs"]
pub mod tests;
