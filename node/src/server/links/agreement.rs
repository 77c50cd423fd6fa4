//! Whether those that meet belong together: of one cluster, and told alike. Who is of another lineage is
//! refused, in words that are the same at both sides; everything else that two replicas see differently is
//! said.
use super::logged::{About, LoggedTexts, Subject};
use super::{Link, LinkEvent, Links, REFUSAL_SHOWN, printable};
use crate::server::hellos::NewestMembers;
use quorumwire_control::{Now, Peer};
use quorumwire_interfaces::{Incarnation, Index, Lineage, ReplicaId};
use quorumwire_wire::limits::MEMBERS_MAX;
use quorumwire_wire::peer::{self, Memory};
use quorumwire_wire::{
    Goodbye, Membership, before_lineages, check_hello, lineage_from_proto, lineage_to_proto,
    two_lineages,
};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// Replicas of other clusters that are remembered, besides those that are members or dialed.
const FOREIGN_MAX: usize = 2 * MEMBERS_MAX;
/// Those of them that came from one address: without TLS anybody can claim any id.
const FOREIGN_FROM_ADDRESS_MAX: usize = FOREIGN_MAX / 4;
/// Pause between two dials of a replica of another cluster.
pub(super) const FOREIGN_DIAL_PAUSE: Duration = Duration::from_secs(2);
/// What passes by itself is not said: a replica whose disk was wiped is taken in again within a moment.
const PATIENCE: Duration = Duration::from_secs(3);
/// First bytes of whoever speaks TLS: a handshake record.
const TLS_BEGINS: [u8; 2] = [0x16, 0x03];
/// What that means where nobody else does.
const TLS_HERE: &str =
    "it speaks TLS, this replica does not: give all replicas tls-ca, tls-cert and tls-key, or none";
/// The setting that tells whom a replica was told to begin a cluster with.
pub const BEGINS_WITH: &str = "members";
/// The setting of those that wait to be taken in.
pub const JOINS: &str = "join";

/// The settings that tell the fingerprints of secrets begin with this; the epoch follows.
pub const SECRET_OF_EPOCH: &str = "secret-file, epoch ";

/// What was met that does not belong together.
#[derive(Default)]
pub struct Agreement {
    /// Replicas that are no part of this cluster.
    foreign: BTreeMap<ReplicaId, Foreign>,
    /// What connected replicas see differently.
    standing: BTreeMap<About, Standing>,
    /// What the log has been told.
    said: LoggedTexts,
}

/// Somebody who was met and is no part of this cluster.
struct Foreign {
    /// When last.
    at: Now,
    /// When it was met so first, of all the times that it was met again soon.
    since: Now,
    /// How long it may be met so unsaid.
    patience: Duration,
    from: IpAddr,
    is_known: bool,
    why: Goodbye,
    words: String,
}

impl Foreign {
    fn is_shown(&self, now: Now) -> bool {
        now.0.saturating_sub(self.since.0) >= self.patience
    }
}

/// What a connected replica and this one see differently.
struct Standing {
    since: Now,
    /// How long it may last unsaid.
    patience: Duration,
    text: String,
}

impl Standing {
    fn is_shown(&self, now: Now) -> bool {
        now.0.saturating_sub(self.since.0) >= self.patience
    }
}

impl Agreement {
    /// Whether a replica of this id was just met that is of another cluster.
    pub fn is_foreign(&self, id: ReplicaId) -> bool {
        self.foreign.contains_key(&id)
    }

    fn say_once(&mut self, about: &About, is_known: bool, text: &str, now: Now) {
        if self.said.is_news(about, is_known, text, now) {
            tracing::error!(text, "replicas contradict each other");
        }
    }

    /// Whether one more may be remembered.
    fn has_room_for(&self, id: ReplicaId, from: IpAddr) -> bool {
        let strangers = self.foreign.values().filter(|it| !it.is_known);
        let from_there = strangers.clone().filter(|it| it.from == from);
        let is_room =
            strangers.count() < FOREIGN_MAX && from_there.count() < FOREIGN_FROM_ADDRESS_MAX;
        is_room || self.is_foreign(id)
    }
}

/// Two replicas that see something differently.
struct Pair<'a>(&'a peer::Hello, &'a peer::Hello);

impl Links {
    /// What is known of the cluster by now. Connections to another one of its name are closed.
    pub fn set_cluster(&mut self, lineage: Lineage, remembers: bool, sink: &mut Vec<LinkEvent>) {
        self.hello.lineage = lineage_to_proto(lineage);
        let memory = if remembers {
            Memory::Members
        } else {
            Memory::Nothing
        };
        self.hello.memory = memory.into();
        for slot in 0..self.slots.len() {
            let theirs = self.slots[slot]
                .as_ref()
                .and_then(|link| link.hello.as_ref());
            let Some(theirs) = theirs else { continue };
            if let Err((reason, words)) = self.check_cluster(theirs) {
                let id = id_of(theirs);
                let theirs_named = lineage_of(theirs).is_known();
                let patience = self.patience_with(reason, Some(theirs_named));
                self.note_foreign(slot, id, (reason, words.clone()), patience);
                let why = self.refuse(slot, reason, words);
                self.close(slot, &why, sink);
            }
        }
    }

    /// The secrets it has by now; those who are connected are told, too.
    pub fn set_secrets(&mut self, secrets: Vec<peer::Setting>) {
        let settings = &mut self.hello.settings;
        settings.retain(|it| !it.option.starts_with(SECRET_OF_EPOCH));
        settings.extend(secrets);
        for link in self.slots.iter_mut().flatten() {
            if link.peer.is_some() {
                link.say_hello(&self.hello);
            }
        }
    }

    /// A connected replica says hello again: its settings are others now. Whether it may come was decided by
    /// its first.
    pub(super) fn take_settings(&mut self, slot: usize, hello: peer::Hello) -> Result<(), String> {
        let link = self.slots[slot].as_mut();
        let known = link.and_then(|link| link.hello.as_deref_mut());
        let is_it = |known: &peer::Hello| {
            (known.replica, known.incarnation) == (hello.replica, hello.incarnation)
        };
        match known {
            Some(known) if is_it(known) && check_hello(&self.hello, &hello).is_ok() => {
                known.settings = hello.settings;
                Ok(())
            }
            Some(_) | None => {
                self.counters.closed_malformed += 1;
                Err("its second hello does not fit its first".to_owned())
            }
        }
    }

    /// The members that are known to be committed by now, and the entry that set them: whoever connects is
    /// told.
    pub fn set_committed(&mut self, (set_at, committed): (Index, &Membership)) {
        if self.hello.members_index != set_at.0 {
            self.hello.members_index = set_at.0;
            let ids = committed.members.iter();
            self.hello.member_ids = ids.map(|member| u32::from(member.id.0)).collect();
        }
    }

    /// What those who are connected know of members, as of when they connected.
    pub(super) fn newest_members(&self) -> Option<NewestMembers> {
        let links = self.slots.iter().flatten();
        let newest = links
            .filter_map(Link::up_hello)
            .filter(|it| !it.member_ids.is_empty())
            .max_by_key(|it| it.members_index)?;
        Some(NewestMembers {
            index: Index(newest.members_index),
            known_by: id_of(newest),
            include_us: newest.member_ids.contains(&self.hello.replica),
        })
    }

    /// Whether this replica is connected, was in our cluster, and remembers nothing.
    pub fn has_forgotten(&self, id: ReplicaId) -> bool {
        let own = lineage_of(&self.hello);
        let mut links = self.slots.iter().flatten().filter_map(Link::up_hello);
        own.is_known()
            && links.any(|it| {
                id_of(it) == id && lineage_of(it) == own && it.memory() == Memory::Nothing
            })
    }

    /// Whether nobody who is connected remembers anything.
    pub fn nobody_remembers(&self) -> bool {
        let mut links = self.slots.iter().flatten().filter_map(Link::up_hello);
        links.all(|it| it.memory() == Memory::Nothing)
    }

    /// What this replica says of its cluster: its lineage, and whether it remembers members.
    pub fn cluster(&self) -> (Lineage, bool) {
        let remembers = self.hello.memory() == Memory::Members;
        (lineage_of(&self.hello), remembers)
    }

    /// Refuses who is of another cluster, or may be.
    pub(super) fn check_cluster(&self, theirs: &peer::Hello) -> Result<(), (Goodbye, String)> {
        if lineage_of(&self.hello).contradicts(lineage_of(theirs)) {
            return Err((Goodbye::OtherLineage, two_lineages(&self.hello, theirs)));
        }
        self.check_memory(theirs)
    }

    /// Where ours has a lineage, who names none is welcome if it remembers nothing, or as a member in the
    /// life that is one. Its code must keep lineages: a number is given to a cluster only once the code of
    /// all members does, so by then an upgrade is over, and this is one that went back. It would drop the
    /// number.
    pub(super) fn check_memory(&self, theirs: &peer::Hello) -> Result<(), (Goodbye, String)> {
        if !lineage_of(&self.hello).is_known() || lineage_of(theirs).is_known() {
            return Ok(());
        }
        let listed = self.members.get(&id_of(theirs));
        let is_member = listed == Some(&Incarnation(theirs.incarnation));
        match theirs.memory() {
            Memory::Nothing => Ok(()),
            Memory::Members if is_member => Ok(()),
            Memory::Members => Err((Goodbye::OtherLineage, two_lineages(&self.hello, theirs))),
            Memory::Unspecified => {
                let words = before_lineages(&self.hello, theirs);
                Err((Goodbye::BeforeLineages, words))
            }
        }
    }

    /// Whether it is one of ours, by our own lists.
    fn is_known(&self, id: ReplicaId) -> bool {
        self.members.contains_key(&id) || self.dials.contains_key(&id)
    }

    /// Somebody was met by this connection who is no part of this cluster, or said that we are none of its.
    pub(super) fn note_foreign(
        &mut self,
        slot: usize,
        id: ReplicaId,
        (why, words): (Goodbye, String),
        patience: Duration,
    ) {
        let Some(link) = self.slots[slot].as_ref() else {
            return;
        };
        let from = link.from;
        let is_known = self.is_known(id);
        if is_known || self.agreement.has_room_for(id, from) {
            let (at, about) = (self.now, (id, Subject::Cluster));
            let before = self.agreement.foreign.get(&id);
            let foreign = Foreign {
                at,
                since: before.map_or(at, |it| it.since),
                patience,
                from,
                is_known,
                why,
                words,
            };
            if foreign.is_shown(at) {
                self.agreement
                    .say_once(&about, is_known, &foreign.words, at);
            }
            self.agreement.foreign.insert(id, foreign);
        }
    }

    /// How long it may last unsaid that a replica was met that is none of ours; `theirs_named`: whether it
    /// names its lineage, if that is known. One that is just being taken in knows its members a moment before
    /// it keeps their lineage.
    pub(super) fn patience_with(&self, why: Goodbye, theirs_named: Option<bool>) -> Duration {
        let are_named = lineage_of(&self.hello).is_known() && theirs_named != Some(false);
        if why == Goodbye::OtherLineage && !are_named {
            PATIENCE
        } else {
            Duration::ZERO
        }
    }

    /// A connected replica has sent something of another lineage than `ours`.
    pub fn note_other_lineage(&mut self, from: Peer, ours: Lineage, theirs: Lineage) {
        let Some(slot) = self.up.get(&from.id).copied() else {
            return;
        };
        let hello = self.slots[slot]
            .as_ref()
            .and_then(|link| link.hello.as_deref());
        let Some(hello) = hello else { return };
        let of = |hello: &peer::Hello, lineage| peer::Hello {
            lineage: lineage_to_proto(lineage),
            ..hello.clone()
        };
        let words = two_lineages(&of(&self.hello, ours), &of(hello, theirs));
        let said = (Goodbye::OtherLineage, words);
        self.note_foreign(slot, from.id, said, Duration::ZERO);
    }

    /// The other side ends the connection; in words.
    pub(super) fn take_goodbye(&mut self, slot: usize, goodbye: &peer::Goodbye) -> String {
        let reason = printable(&goodbye.reason);
        let text = match &printable(&goodbye.detail)[..] {
            "" => format!("it said goodbye: {reason}"),
            detail => format!("it said goodbye ({reason}): {detail}"),
        };
        if goodbye.reason == Goodbye::OtherLineage.name() {
            self.told_foreign(slot, &goodbye.detail);
        } else if goodbye.reason != Goodbye::Stopping.name()
            && goodbye.reason != Goodbye::Superseded.name()
        {
            self.note_refusal(slot, text.clone());
        }
        text
    }

    /// What came makes no sense: it may be TLS, where this replica speaks none.
    pub(super) fn note_if_tls(&mut self, slot: usize) {
        let link = self.slots[slot].as_ref();
        if link.is_some_and(|link| link.peer.is_none() && link.input.starts_with(&TLS_BEGINS)) {
            self.note_refusal(slot, TLS_HERE.to_owned());
        }
    }

    /// The replica at the other end sees another cluster in us.
    fn told_foreign(&mut self, slot: usize, detail: &str) {
        let link = self.slots[slot].as_ref();
        let said = link.and_then(|link| link.hello.as_deref().map(id_of));
        let dialed = link.and_then(|link| link.dialed);
        let hello = link.and_then(|link| link.hello.as_deref());
        let named = hello.map(|hello| lineage_of(hello).is_known());
        match said.or(dialed) {
            Some(id) => {
                let said = (Goodbye::OtherLineage, printable(detail));
                let patience = self.patience_with(Goodbye::OtherLineage, named);
                self.note_foreign(slot, id, said, patience);
            }
            None => self.note_refusal(slot, printable(detail)),
        }
    }

    /// It was let in: whatever was said of that id before is over, unless it is for the other side to say.
    pub(super) fn note_welcome(&mut self, id: ReplicaId) {
        let is_sure = self.cluster() != (Lineage::default(), true);
        if is_sure {
            self.agreement.foreign.remove(&id);
        }
    }

    /// Why a replica of this id that was just met cannot be one of ours.
    pub fn foreign(&self, id: ReplicaId) -> Option<&str> {
        let met = self.agreement.foreign.get(&id);
        met.map(|it| it.words.as_str())
    }

    /// Looks at what connected replicas see differently.
    pub(super) fn compare_all(&mut self, now: Now) {
        let lasts = |it: &Foreign| now.0.saturating_sub(it.at.0) < REFUSAL_SHOWN;
        self.agreement.foreign.retain(|_, it| lasts(it));
        for link in self.slots.iter_mut().flatten() {
            let is_member = |peer: Peer| self.members.get(&peer.id) == Some(&peer.incarnation);
            link.was_member |= link.peer.is_some_and(is_member);
        }
        let mut found: Vec<(About, Duration, String)> = Vec::new();
        for link in self.slots.iter().flatten() {
            if let Some(theirs) = link.up_hello() {
                found.extend(self.differences(theirs, link.was_member));
            }
        }
        let before = std::mem::take(&mut self.agreement.standing);
        for (about, patience, text) in found {
            let standing = Standing {
                since: before.get(&about).map_or(now, |it| it.since),
                patience,
                text,
            };
            if standing.is_shown(now) {
                let is_known = self.is_known(about.0);
                let text = &standing.text;
                self.agreement.say_once(&about, is_known, text, now);
            }
            self.agreement.standing.insert(about, standing);
        }
        self.agreement.said.forget_ended(now);
    }

    /// Everything of this kind, for people.
    pub fn contradictions(&self) -> impl Iterator<Item = String> {
        let foreign = self.agreement.foreign.values();
        let foreign = foreign.filter(|it| it.is_shown(self.now));
        let foreign = foreign.map(|it| format!("{}: {}", it.why.name(), it.words));
        let standing = self.agreement.standing.values();
        let standing = standing.filter(|it| it.is_shown(self.now));
        foreign.chain(standing.map(|it| it.text.clone()))
    }

    /// What that replica and this one were told differently, and how long it may last unsaid. Whoever
    /// `was_member` here is not about to begin a cluster, and stays connected when it is removed.
    fn differences(
        &self,
        theirs: &peer::Hello,
        was_member: bool,
    ) -> Vec<(About, Duration, String)> {
        let id = id_of(theirs);
        let pair = if self.hello.replica < theirs.replica {
            Pair(&self.hello, theirs)
        } else {
            Pair(theirs, &self.hello)
        };
        let settings = pair.settings().into_iter().chain(pair.epochs());
        let mut found: Vec<_> = settings
            .map(|(option, text)| ((id, Subject::Setting(option)), Duration::ZERO, text))
            .collect();
        if !was_member {
            let text = pair.beginnings();
            found.extend(text.map(|text| ((id, Subject::Beginning), PATIENCE, text)));
        }
        found
    }
}

impl Link {
    /// What the replica at the other end said of itself, once it was let in.
    fn up_hello(&self) -> Option<&peer::Hello> {
        self.peer.and(self.hello.as_deref())
    }
}

impl Pair<'_> {
    /// Secrets, and none of them of the same epoch: neither takes what the other signs.
    fn epochs(&self) -> Option<(String, String)> {
        let Self(one, other) = self;
        let [ours, theirs] = [one, other].map(|it| epochs_of(it));
        let share = ours.iter().any(|epoch| theirs.contains(epoch));
        if ours.is_empty() || theirs.is_empty() || share {
            return None;
        }
        let text = format!(
            "option secret-file: replica {} has the secret of epoch {}, replica {} that of epoch {}; give all replicas \
             the same file, and take each step of a rotation at all of them before the next",
            one.replica,
            printable(&ours.join(" and ")),
            other.replica,
            printable(&theirs.join(" and ")),
        );
        Some(("secret-file".to_owned(), text))
    }

    /// Options with two values, by name.
    fn settings(&self) -> Vec<(String, String)> {
        let Self(one, other) = self;
        let mut found = Vec::new();
        for setting in &one.settings {
            let option = setting.option.as_str();
            let Some(value) = setting_of(other, option) else {
                continue;
            };
            let begins = [one, other].map(|it| begins_with(it).is_some());
            if value == setting.value || option == BEGINS_WITH && begins != [true, true] {
                continue;
            }
            let what = if option == BEGINS_WITH {
                "no cluster begins before both are told alike"
            } else {
                "give all replicas the same"
            };
            let text = format!(
                "option {option}: replica {} has {}, replica {} has {}; {what}",
                one.replica,
                printable(&setting.value),
                other.replica,
                printable(value)
            );
            found.push((option.to_owned(), text));
        }
        found
    }

    /// One is to begin a cluster, and the other one takes part in one already, or waits to be taken in.
    fn beginnings(&self) -> Option<String> {
        let Self(one, other) = *self;
        let (fresh, with, older) = match (begins_with(one), begins_with(other)) {
            (Some(with), None) => (one, with, other),
            (None, Some(with)) => (other, with, one),
            (Some(_), Some(_)) | (None, None) => return None,
        };
        let (fresh_id, older_id) = (fresh.replica, older.replica);
        let begins = format!(
            "replica {fresh_id} was told to begin a cluster of {}",
            printable(with)
        );
        let lineage = lineage_of(older);
        if older.memory() == Memory::Members {
            return Some(format!(
                "{begins}, replica {older_id} is in one already (lineage {lineage}). If replica {fresh_id} is to take \
                 part in that one, start it with --join and use `member add`; if all is to begin anew, empty the \
                 data folder of replica {older_id}"
            ));
        }
        if lineage.is_known() {
            return Some(format!(
                "{begins}, replica {older_id} was in one before (lineage {lineage}) and waits for it. If all is to \
                 begin anew, empty the data folder of replica {older_id}, too"
            ));
        }
        let is_awaited = with.split(',').any(|id| id == older_id.to_string());
        let waits = setting_of(older, JOINS).is_some() && is_awaited;
        waits.then(|| {
            format!(
                "{begins}, replica {older_id} waits to be taken in by one (--join, or it has forgotten one, or \
                 `restore` prepared its folder): no cluster begins without it. To restore, run `quorumwire restore` for \
                 replica {fresh_id}, too; otherwise start all without --join, on empty data folders"
            )
        })
    }
}

pub(super) fn lineage_of(hello: &peer::Hello) -> Lineage {
    lineage_from_proto(hello.lineage.as_ref())
}

/// Checked when it came; our own is ours.
fn id_of(hello: &peer::Hello) -> ReplicaId {
    ReplicaId(u16::try_from(hello.replica).unwrap_or(u16::MAX))
}

fn setting_of<'a>(hello: &'a peer::Hello, option: &str) -> Option<&'a str> {
    let mut settings = hello.settings.iter();
    let setting = settings.find(|setting| setting.option == option)?;
    Some(&setting.value)
}

/// Of its secrets.
fn epochs_of(hello: &peer::Hello) -> Vec<&str> {
    let settings = hello.settings.iter();
    let epochs = settings.filter_map(|it| it.option.strip_prefix(SECRET_OF_EPOCH));
    epochs.collect()
}

/// Whom it would begin a cluster with; none if it takes part in one, took part in one, or waits for one.
fn begins_with(hello: &peer::Hello) -> Option<&str> {
    let knows = hello.memory() == Memory::Members || lineage_of(hello).is_known();
    setting_of(hello, BEGINS_WITH).filter(|_| !knows)
}

#[cfg(test)]
#[path = "agreement_test.rs"]
mod tests;
