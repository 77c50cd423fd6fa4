//! At which address each member is. It is looked up there before the list of members says so: when an operator adds a member, and
//! when a member says that it is elsewhere. Corrects the list through the log.
use super::Server;
use super::administration::Waiting;
use super::dial::Source;
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
/// As long where it was not found. The list is corrected no more often for one member.
const FAULT_PAUSE: Duration = Duration::from_secs(30);
/// As long where all is well.
const USUAL_PAUSE: Duration = Duration::from_mins(5);

/// What is asked, and what came of it.
#[derive(Debug, Default)]
pub struct AddressBook {
    /// Members to be added once they are found where the operator says.
    adding: BTreeMap<ReplicaId, (Ticket, MemberChange)>,
    asked: BTreeMap<ReplicaId, Asked>,
    next_look: Now,
}

/// What this leader has asked about a member.
#[derive(Debug)]
struct Asked {
    /// Who it was.
    peer: Peer,
    /// Where it said that it is.
    address: String,
    at: Now,
    /// It is not there.
    fault: Option<String>,
    /// When the list was last corrected for it.
    corrected_at: Option<Now>,
    /// That could not be: another change was in progress, say.
    is_refused: bool,
}

impl Asked {
    /// When it is asked again of a member that says that it is at this address, while the list says that.
    fn next(&self, (peer, said): (Peer, &str), listed: &str) -> Now {
        let is_news = self.peer != peer || self.address != said;
        let pause = if self.is_refused {
            REFUSED_PAUSE
        } else if is_news || (listed != said && self.fault.is_none()) {
            NEWS_PAUSE
        } else if self.fault.is_some() {
            FAULT_PAUSE
        } else {
            USUAL_PAUSE
        };
        Now(self.at.0 + pause)
    }
}

impl AddressBook {
    /// The list was corrected for this member, or could not be.
    pub fn note_correction(&mut self, id: ReplicaId, is_done: bool) {
        if let Some(asked) = self.asked.get_mut(&id).filter(|_| !is_done) {
            asked.corrected_at = None;
            asked.is_refused = true;
        }
    }
}

/// Where replicas are dialed: members where the list says, or else where the options do; and others, as long as this replica is
/// no member, where the options say.
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

impl Server {
    /// An operator's change. A replica is added once it is found at the address that others will dial.
    pub fn change_members(&mut self, ticket: Ticket, change: MemberChange) {
        let MemberChange::Add {
            id, peer_address, ..
        } = &change
        else {
            return self.core.step(Input::ChangeMembers(ticket, change));
        };
        let (id, now) = (*id, self.core.now);
        let is_known = self.core.replica.membership().member(id).is_some();
        if !self.core.leads() || is_known || self.core.links.info(id).is_none() {
            // Refused, and why is said elsewhere.
            return self.core.step(Input::ChangeMembers(ticket, change));
        }
        if self.core.links.prove(id, peer_address, now) {
            self.address_book.adding.insert(id, (ticket, change));
        } else {
            let refusal = AdminError::Refused(Refusal::ChangeInProgress);
            self.answer_admin(ticket, Err(refusal));
        }
    }

    /// Leader: asks whether members are where they say, and for those that are elsewhere than the list says.
    pub fn look_where_members_are(&mut self) {
        let now = self.core.now;
        if now < self.address_book.next_look {
            return;
        }
        self.address_book.next_look = Now(now.0 + LOOK_PAUSE);
        if !self.core.leads() {
            self.address_book.asked.clear();
            return;
        }
        let membership = self.core.replica.membership();
        let asked = &mut self.address_book.asked;
        asked.retain(|id, _| membership.member(*id).is_some());
        let members = membership.members.iter();
        let due: Vec<(Peer, String)> = members.filter_map(|it| self.to_ask_of(it, now)).collect();
        for (peer, address) in due {
            if self.core.links.prove(peer.id, &address, now) {
                let before = self.address_book.asked.remove(&peer.id);
                let asked = Asked {
                    peer,
                    address,
                    at: now,
                    corrected_at: before.as_ref().and_then(|before| before.corrected_at),
                    fault: before.and_then(|before| before.fault),
                    is_refused: false,
                };
                self.address_book.asked.insert(peer.id, asked);
            }
        }
    }

    fn to_ask_of(&self, member: &Member, now: Now) -> Option<(Peer, String)> {
        let peer = peer_of(member);
        let said = self.said_address(member)?;
        let asked = self.address_book.asked.get(&peer.id);
        let next = asked.map(|asked| asked.next((peer, &said), &member.peer_address));
        next.is_none_or(|next| next <= now).then_some((peer, said))
    }

    /// Where a member says that it is, as long as it is connected.
    fn said_address(&self, member: &Member) -> Option<String> {
        let peer = peer_of(member);
        let links = &self.core.links;
        let said = if peer.id == self.options.id {
            (peer.incarnation == self.incarnation).then_some(&self.addresses.peer)
        } else {
            let info = links.info(peer.id).filter(|_| links.is_up(peer));
            info.map(|info| &info.peer)
        };
        said.and_then(|text| parse_reachable(text))
    }

    /// It was found at this address, or somebody else, or nobody.
    pub fn take_proof(&mut self, id: ReplicaId, address: &str, outcome: Result<Peer, String>) {
        if let Some((ticket, change)) = self.address_book.adding.remove(&id) {
            return self.add_if_found(ticket, change, outcome);
        }
        let Some(asked) = self.address_book.asked.get_mut(&id) else {
            return;
        };
        if asked.address != address {
            return;
        }
        match outcome {
            Ok(found) if found == asked.peer => {
                asked.fault = None;
                self.correct_list(found, address);
            }
            Ok(found) => {
                asked.fault = Some(format!(
                    "another life of it is there: {}",
                    found.incarnation
                ));
            }
            Err(tried) => asked.fault = Some(tried),
        }
    }

    fn add_if_found(
        &mut self,
        ticket: Ticket,
        change: MemberChange,
        outcome: Result<Peer, String>,
    ) {
        let found = match outcome {
            Ok(peer) if self.core.links.is_up(peer) => {
                return self.core.step(Input::ChangeMembers(ticket, change));
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

    fn correct_list(&mut self, peer: Peer, address: &str) {
        let now = self.core.now;
        let member = self.core.replica.membership().member(peer.id);
        let Some(listed) = member.map(|member| member.peer_address.clone()) else {
            return;
        };
        let Some(asked) = self.address_book.asked.get_mut(&peer.id) else {
            return;
        };
        let is_soon = asked
            .corrected_at
            .is_some_and(|at| now < Now(at.0 + FAULT_PAUSE));
        if listed == address || is_soon {
            return;
        }
        asked.corrected_at = Some(now);
        tracing::info!(
            replica = peer.id.0,
            listed,
            address,
            "a member has moved: the list of members is corrected"
        );
        let ticket = self.core.next_ticket();
        self.waiting.insert(ticket, Waiting::Correction(peer.id));
        let change = MemberChange::Move {
            peer,
            peer_address: address.to_owned(),
        };
        self.core.step(Input::ChangeMembers(ticket, change));
    }

    /// Members that are not at the address that they tell others.
    pub fn address_faults(&self) -> impl Iterator<Item = String> {
        self.address_book.asked.iter().filter_map(|(id, asked)| {
            let found = asked.fault.as_ref()?;
            let is_here = *id == self.options.id || self.core.links.is_up(asked.peer);
            if !is_here {
                return None;
            }
            Some(format!(
                "replica {id} is connected, and not found where it tells others to dial it: {found}"
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

    #[test]
    fn a_member_is_asked_after_at_a_bounded_rate() {
        let peer = peer_of(&member(1));
        let mut asked = Asked {
            peer,
            address: "here:1".to_owned(),
            at: Now::default(),
            fault: None,
            corrected_at: None,
            is_refused: false,
        };
        let next = |asked: &Asked, said, listed| asked.next((peer, said), listed).0;
        assert_eq!(next(&asked, "here:1", "here:1"), USUAL_PAUSE);
        assert_eq!(next(&asked, "there:1", "here:1"), NEWS_PAUSE);
        assert_eq!(next(&asked, "here:1", "there:1"), NEWS_PAUSE);
        asked.fault = Some("refused".to_owned());
        assert_eq!(next(&asked, "here:1", "there:1"), FAULT_PAUSE);
        asked.is_refused = true;
        assert_eq!(next(&asked, "here:1", "there:1"), REFUSED_PAUSE);
    }
}
