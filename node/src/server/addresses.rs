//! At which address each member is. It is looked up there before the list of members says so: when an
//! operator adds a member, and when a member says that it is elsewhere. Corrects the list through the log.
use super::Server;
use super::administration::Waiting;
use super::dial::Source;
use super::service::Service;
use crate::admin::AdminError;
use crate::options::parse_reachable;
use quorumwire_control::{Input, MemberChange, Now, Peer, Refusal, Ticket};
use quorumwire_interfaces::ReplicaId;
use quorumwire_wire::{Member, Membership};
use std::collections::BTreeMap;
use std::time::Duration;

/// Between two looks whether a leader should ask where a member is.
const LOOK_PAUSE: Duration = Duration::from_millis(500);
/// A leader asks again after so long where a member says something new, or the list says something else.
const NEWS_PAUSE: Duration = Duration::from_secs(5);
/// As long where the list could not be corrected.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);
/// As long where it was not found, or where the list and the member say different things. The list is
/// corrected no more often for one member.
const FAULT_PAUSE: Duration = Duration::from_secs(30);
/// As long where all is well.
const USUAL_PAUSE: Duration = Duration::from_mins(5);

/// What is asked, and what came of it.
#[derive(Debug, Default)]
pub struct AddressBook {
    /// Members to be added once they are found where the operator says.
    adding: BTreeMap<ReplicaId, (Ticket, MemberChange)>,
    asked: BTreeMap<ReplicaId, Inquiry>,
    next_look: Now,
}

/// What is said of where a member is.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Whereabouts {
    /// Who it is.
    peer: Peer,
    /// Where the list says.
    listed: String,
    /// Where it says itself.
    said: String,
}

/// What this leader has asked about a member.
#[derive(Debug)]
struct Inquiry {
    of: Whereabouts,
    /// Where it is looked for, or was last.
    address: String,
    at: Now,
    /// What was found where the list says, instead of it.
    not_listed: Option<String>,
    /// It is not there.
    fault: Option<String>,
    /// When the list was last corrected for it.
    corrected_at: Option<Now>,
    /// That could not be: another change was in progress, say.
    is_refused: bool,
}

impl Inquiry {
    /// Where a member is to be looked for now. First where the list says, which stays as it is if the member
    /// is there: by whatever way, the others reach it. Only then where it says itself.
    fn due(&self, of: &Whereabouts, now: Now) -> Option<(Source, String)> {
        let is_news = self.of != *of;
        if !is_news && self.not_listed.is_some() && self.address != of.said {
            return Some((Source::Member, of.said.clone()));
        }
        let pause = if self.is_refused {
            REFUSED_PAUSE
        } else if is_news {
            NEWS_PAUSE
        } else if self.fault.is_some() || of.listed != of.said {
            FAULT_PAUSE
        } else {
            USUAL_PAUSE
        };
        (now >= Now(self.at.0 + pause)).then(|| (Source::List, of.listed.clone()))
    }

    /// What was found where it was looked for last. Whether the list is to be corrected.
    fn take(&mut self, outcome: Result<Peer, String>, now: Now) -> bool {
        let is_listed = self.address == self.of.listed;
        let found = outcome.and_then(|found| {
            let is_it = found == self.of.peer;
            is_it.then_some(()).ok_or_else(|| {
                let (address, life) = (&self.address, found.incarnation);
                format!("{address}: another life of it is there: {life}")
            })
        });
        match found {
            Ok(()) => {
                self.fault = None;
                let is_soon = |at: Now| now < Now(at.0 + FAULT_PAUSE);
                let is_wrong = !is_listed && !self.corrected_at.is_some_and(is_soon);
                if is_wrong {
                    self.corrected_at = Some(now);
                }
                is_wrong
            }
            Err(tried) if is_listed && self.of.listed != self.of.said => {
                self.not_listed = Some(tried);
                false
            }
            Err(tried) => {
                let both = self.not_listed.iter().chain([&tried]);
                self.fault = Some(both.cloned().collect::<Vec<_>>().join("; "));
                false
            }
        }
    }
}

impl AddressBook {
    /// Where this member is to be looked for now, if it is time.
    fn due(&self, of: &Whereabouts, now: Now) -> Option<(Source, String)> {
        match self.asked.get(&of.peer.id) {
            Some(asked) => asked.due(of, now),
            None => Some((Source::List, of.listed.clone())),
        }
    }

    /// It is looked for there.
    fn begin(&mut self, of: Whereabouts, address: String, now: Now) {
        let before = self.asked.remove(&of.peer.id);
        let same = before.as_ref().filter(|before| before.of == of);
        let goes_on = same.filter(|_| address != of.listed);
        let asked = Inquiry {
            address,
            at: now,
            not_listed: goes_on.and_then(|before| before.not_listed.clone()),
            fault: same.and_then(|before| before.fault.clone()),
            corrected_at: before.as_ref().and_then(|before| before.corrected_at),
            is_refused: false,
            of,
        };
        self.asked.insert(asked.of.peer.id, asked);
    }

    /// It was found at this address, or not, while the list says that. Where the list should say that it is.
    fn take(
        &mut self,
        id: ReplicaId,
        (address, listed): (&str, &str),
        outcome: Result<Peer, String>,
        now: Now,
    ) -> Option<Whereabouts> {
        let asked = self.asked.get_mut(&id)?;
        if asked.address != address || asked.of.listed != listed {
            return None; // it is news by now, and looked for anew
        }
        asked.take(outcome, now).then(|| asked.of.clone())
    }

    /// The list was corrected for this member, or could not be.
    pub fn note_correction(&mut self, id: ReplicaId, is_done: bool) {
        if let Some(asked) = self.asked.get_mut(&id).filter(|_| !is_done) {
            asked.corrected_at = None;
            asked.is_refused = true;
        }
    }
}

/// Where replicas are dialed: members where the list says, or else where the options do; and others, as long
/// as this replica is no member, where the options say.
pub fn addresses_to_dial(
    membership: &Membership,
    options: &BTreeMap<ReplicaId, String>,
    is_member: bool,
) -> BTreeMap<ReplicaId, Vec<(Source, String)>> {
    let mut addresses: BTreeMap<ReplicaId, Vec<(Source, String)>> = BTreeMap::new();
    for member in &membership.members {
        let listed = (Source::List, member.peer_address.clone());
        addresses.insert(member.id, vec![listed]);
    }
    for (id, text) in options {
        match addresses.get_mut(id) {
            Some(known) if known.iter().any(|(_, listed)| listed == text) => {}
            Some(known) => known.push((Source::Options, text.clone())),
            None if is_member => {}
            None => {
                addresses.insert(*id, vec![(Source::Options, text.clone())]);
            }
        }
    }
    addresses
}

impl<S: Service> Server<S> {
    /// An operator's change. A replica is added once it is found at the address that others will dial.
    pub fn change_members(&mut self, ticket: Ticket, change: MemberChange) {
        let MemberChange::Add {
            id, peer_address, ..
        } = &change
        else {
            return self.core.group.step(Input::ChangeMembers(ticket, change));
        };
        let (id, now) = (*id, self.core.group.now);
        let is_known = self.core.group.replica.membership().member(id).is_some();
        if !self.core.group.leads() || is_known || self.links.info(id).is_none() {
            // Refused, and why is said elsewhere.
            return self.core.group.step(Input::ChangeMembers(ticket, change));
        }
        let given = (Source::Question, &peer_address[..]);
        if self.links.prove(id, given, now) {
            self.address_book.adding.insert(id, (ticket, change));
        } else {
            let refusal = AdminError::Refused(Refusal::ChangeInProgress);
            self.answer_admin(ticket, Err(refusal));
        }
    }

    /// Leader: asks whether members are where they say, and for those that are elsewhere than the list says.
    pub fn look_where_members_are(&mut self) {
        let now = self.core.group.now;
        if now < self.address_book.next_look {
            return;
        }
        self.address_book.next_look = Now(now.0 + LOOK_PAUSE);
        if !self.core.group.leads() {
            self.address_book.asked.clear();
            return;
        }
        let membership = self.core.group.replica.membership();
        let asked = &mut self.address_book.asked;
        asked.retain(|id, _| membership.member(*id).is_some());
        let all = membership.members.iter();
        let all: Vec<Whereabouts> = all.filter_map(|it| self.whereabouts(it)).collect();
        for of in all {
            let Some((source, address)) = self.address_book.due(&of, now) else {
                continue;
            };
            if self.links.prove(of.peer.id, (source, &address), now) {
                self.address_book.begin(of, address, now);
            }
        }
    }

    /// What is said of a member, as long as it is connected.
    fn whereabouts(&self, member: &Member) -> Option<Whereabouts> {
        let peer = peer_of(member);
        let links = &self.links;
        let said = if peer.id == self.options.id {
            (peer.incarnation == self.incarnation).then_some(&self.addresses.peer)
        } else {
            let info = links.info(peer.id).filter(|_| links.is_up(peer));
            info.map(|info| &info.peer)
        };
        let said = said.and_then(|text| parse_reachable(text))?;
        let listed = member.peer_address.clone();
        Some(Whereabouts { peer, listed, said })
    }

    /// It was found at this address, or somebody else, or nobody.
    pub fn take_proof(&mut self, id: ReplicaId, address: &str, outcome: Result<Peer, String>) {
        if let Some((ticket, change)) = self.address_book.adding.remove(&id) {
            return self.add_if_found(ticket, change, outcome);
        }
        let Some(member) = self.core.group.replica.membership().member(id) else {
            return;
        };
        let looked_for = (address, &member.peer_address[..]);
        let now = self.core.group.now;
        if let Some(of) = self.address_book.take(id, looked_for, outcome, now) {
            self.correct_list(of);
        }
    }

    fn add_if_found(
        &mut self,
        ticket: Ticket,
        change: MemberChange,
        outcome: Result<Peer, String>,
    ) {
        let found = match outcome {
            Ok(peer) if self.links.is_up(peer) => {
                return self.core.group.step(Input::ChangeMembers(ticket, change));
            }
            Ok(peer) => format!(
                "its life {} is there, which is not the one that is connected",
                peer.incarnation
            ),
            Err(tried) => tried,
        };
        if let MemberChange::Add { id, .. } = change {
            let why = format!(
                "replica {id} was not found where others would dial it: {found}. Give --peer the address that it \
                 listens at or advertises"
            );
            let refusal = AdminError::Refused(Refusal::Invalid(why));
            self.answer_admin(ticket, Err(refusal));
        }
    }

    fn correct_list(&mut self, of: Whereabouts) {
        let Whereabouts { peer, listed, said } = of;
        tracing::info!(
            replica = peer.id.0,
            listed,
            address = said,
            "a member has moved: the list of members is corrected"
        );
        let ticket = self.core.group.next_ticket();
        self.upkeep
            .waiting
            .insert(ticket, Waiting::Correction(peer.id));
        let change = MemberChange::Move {
            peer,
            peer_address: said,
        };
        self.core.group.step(Input::ChangeMembers(ticket, change));
    }

    /// Members that are not at the address that they tell others.
    pub fn address_faults(&self) -> impl Iterator<Item = String> {
        self.address_book.asked.iter().filter_map(|(id, asked)| {
            let found = asked.fault.as_ref()?;
            let is_here = *id == self.options.id || self.links.is_up(asked.of.peer);
            if !is_here {
                return None;
            }
            Some(format!(
                "replica {id} is connected, and not found where others dial it: {found}"
            ))
        })
    }
}

fn peer_of(member: &Member) -> Peer {
    Peer {
        id: member.id,
        incarnation: member.incarnation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorumwire_interfaces::Incarnation;
    use quorumwire_wire::MemberRole;

    fn member(id: u16) -> Member {
        Member {
            id: ReplicaId(id),
            incarnation: Incarnation(1),
            peer_address: format!("list-{id}:1"),
            role: MemberRole::Voter,
        }
    }

    #[test]
    fn the_list_comes_first_then_the_options_of_members() {
        let membership = Membership {
            members: vec![member(0), member(1)],
            ..Membership::default()
        };
        let options = [(0, "list-0:1"), (1, "option-1:1"), (2, "option-2:1")];
        let options = options.map(|(id, text)| (ReplicaId(id), text.to_owned()));
        let dialed = |is_member| addresses_to_dial(&membership, &options.clone().into(), is_member);
        let list = |id| (Source::List, format!("list-{id}:1"));
        let option = |id| (Source::Options, format!("option-{id}:1"));
        let mut expected = BTreeMap::from([
            (ReplicaId(0), vec![list(0)]),
            (ReplicaId(1), vec![list(1), option(1)]),
        ]);
        assert_eq!(dialed(true), expected);
        expected.insert(ReplicaId(2), vec![option(2)]);
        assert_eq!(dialed(false), expected);
    }

    const LISTED: &str = "list-1:1";
    const SAID: &str = "said-1:1";

    fn of_1(said: &str) -> Whereabouts {
        Whereabouts {
            peer: peer_of(&member(1)),
            listed: LISTED.to_owned(),
            said: said.to_owned(),
        }
    }

    fn at(seconds: u64) -> Now {
        Now(Duration::from_secs(seconds))
    }

    /// A leader's looks at one member.
    struct Looks {
        book: AddressBook,
        of: Whereabouts,
        /// Where it is.
        homes: &'static [&'static str],
        now: Now,
    }

    impl Looks {
        fn of(said: &str, homes: &'static [&'static str]) -> Self {
            Self {
                book: AddressBook::default(),
                of: of_1(said),
                homes,
                now: at(100),
            }
        }

        /// Where it is looked for within so long, and whether the list is to be corrected.
        fn during(&mut self, time: Duration) -> Vec<(u64, String, bool)> {
            let mut seen = Vec::new();
            let end = Now(self.now.0 + time);
            while self.now < end {
                if let Some((_, address)) = self.book.due(&self.of, self.now) {
                    self.book.begin(self.of.clone(), address.clone(), self.now);
                    let is_there = self.homes.contains(&&address[..]);
                    let outcome = if is_there {
                        Ok(self.of.peer)
                    } else {
                        Err(format!("{address}: refused"))
                    };
                    let (id, listed) = (self.of.peer.id, &self.of.listed[..]);
                    let correction = self.book.take(id, (&address, listed), outcome, self.now);
                    let is_to_move = correction.is_some_and(|to| to.said == address);
                    seen.push((self.now.0.as_secs() - 100, address, is_to_move));
                }
                self.now = Now(self.now.0 + LOOK_PAUSE);
            }
            seen
        }

        fn fault(&self) -> Option<&str> {
            self.book.asked[&self.of.peer.id].fault.as_deref()
        }
    }

    #[test]
    fn a_listed_address_that_works_is_not_overwritten() {
        for homes in [&[LISTED, SAID][..], &[LISTED]] {
            let mut looks = Looks::of(SAID, homes);
            let seen = looks.during(FAULT_PAUSE * 2);
            let listed = |second| (second, LISTED.to_owned(), false);
            assert_eq!(seen, [listed(0), listed(30)], "there at {homes:?}");
            assert_eq!(looks.fault(), None);
        }
    }

    #[test]
    fn the_list_is_corrected_where_the_member_is_only_where_it_says() {
        let mut looks = Looks::of(SAID, &[SAID]);
        let seen = looks.during(NEWS_PAUSE);
        let expected = [(0, LISTED.to_owned(), false), (0, SAID.to_owned(), true)];
        assert_eq!(seen, expected);
        assert_eq!(looks.fault(), None);
        // The list has it.
        SAID.clone_into(&mut looks.of.listed);
        let seen = looks.during(NEWS_PAUSE * 2);
        assert_eq!(seen, [(5, SAID.to_owned(), false)]);
    }

    #[test]
    fn a_member_that_is_nowhere_is_a_fault_with_all_that_was_tried() {
        let mut looks = Looks::of(SAID, &[]);
        let seen = looks.during(NEWS_PAUSE);
        assert!(
            seen.iter().all(|(_, _, is_to_move)| !is_to_move),
            "{seen:?}"
        );
        let fault = looks.fault().expect("a fault");
        assert_eq!(fault, "list-1:1: refused; said-1:1: refused");
        looks.homes = &[LISTED];
        looks.during(FAULT_PAUSE);
        assert_eq!(looks.fault(), None);
    }

    #[test]
    fn only_this_very_life_of_a_member_counts() {
        let mut book = AddressBook::default();
        let (of, now) = (of_1(SAID), at(1));
        let another = Peer {
            incarnation: Incarnation(2),
            ..of.peer
        };
        for address in [LISTED, SAID] {
            let (_, due) = book.due(&of, now).expect("it is time");
            assert_eq!(due, address);
            book.begin(of.clone(), due, now);
            let found = book.take(of.peer.id, (address, LISTED), Ok(another), now);
            assert_eq!(found, None, "{address}");
        }
        let fault = book.asked[&of.peer.id].fault.as_deref();
        assert!(fault.is_some_and(|it| it.contains("another life of it is there")));
    }

    #[test]
    fn what_was_asked_before_the_list_changed_corrects_nothing() {
        let mut book = AddressBook::default();
        let (of, now) = (of_1(SAID), at(1));
        let refused = || Err("refused".to_owned());
        book.begin(of.clone(), LISTED.to_owned(), now);
        assert_eq!(
            book.take(of.peer.id, (LISTED, LISTED), refused(), now),
            None
        );
        book.begin(of.clone(), SAID.to_owned(), now);
        let found = book.take(of.peer.id, (SAID, "another:1"), Ok(of.peer), now);
        assert_eq!(found, None);
    }

    /// The member says another address each time it is looked for, and is there.
    #[test]
    fn the_list_is_corrected_for_one_member_once_in_half_a_minute() {
        let mut looks = Looks::of(SAID, &[]);
        let mut corrected = Vec::new();
        for home in ["even:1", "odd:1"].repeat(20) {
            home.clone_into(&mut looks.of.said);
            looks.homes = if home == "odd:1" {
                &["odd:1"]
            } else {
                &["even:1"]
            };
            let seen = looks.during(NEWS_PAUSE + LOOK_PAUSE * 2);
            let moves = seen.iter().filter(|(_, _, is_to_move)| *is_to_move);
            corrected.extend(moves.map(|(second, ..)| *second));
        }
        let pauses = corrected.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(corrected.len() >= 3, "void: {corrected:?}");
        assert!(pauses.min() >= Some(FAULT_PAUSE.as_secs()), "{corrected:?}");
    }

    #[test]
    fn a_member_is_asked_after_at_a_bounded_rate() {
        let mut asked = Inquiry {
            of: of_1(LISTED),
            address: LISTED.to_owned(),
            at: Now::default(),
            not_listed: None,
            fault: None,
            corrected_at: None,
            is_refused: false,
        };
        let after = |asked: &Inquiry, of: &Whereabouts, pause: Duration| {
            let just_before = Now(pause.saturating_sub(Duration::from_millis(1)));
            asked.due(of, just_before).is_none() && asked.due(of, Now(pause)).is_some()
        };
        assert!(after(&asked, &of_1(LISTED), USUAL_PAUSE));
        assert!(after(&asked, &of_1(SAID), NEWS_PAUSE));
        asked.fault = Some("refused".to_owned());
        assert!(after(&asked, &of_1(LISTED), FAULT_PAUSE));
        asked.of = of_1(SAID);
        asked.fault = None;
        assert!(after(&asked, &of_1(SAID), FAULT_PAUSE));
        asked.is_refused = true;
        assert!(after(&asked, &of_1(SAID), REFUSED_PAUSE));
    }
}
