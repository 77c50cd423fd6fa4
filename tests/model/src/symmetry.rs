//! The replicas have no ranks: states that differ only in who is who are one state. Renames replicas so
//! that states which are the same but for names mostly become equal, and the search visits one of them.
use crate::state::{History, Message, Network, OwedVote, REPLICAS, Replica, Role, State};

/// The new name of each replica, by its old one.
type Names = [u8; REPLICAS];

impl State {
    /// A state that is the same but for the replicas' names.
    #[must_use]
    pub fn representative(&self) -> Self {
        let mut order: [usize; REPLICAS] = [0, 1, 2];
        order.sort_by_cached_key(|id| self.rank(*id));
        if order == [0, 1, 2] {
            return self.clone();
        }
        let mut names: Names = [0; REPLICAS];
        for (new, old) in (0..).zip(order) {
            names[old] = new;
        }
        self.renamed(order, names)
    }

    /// What tells a replica from the others, names aside. Equal ranks only make the reduction smaller.
    fn rank(&self, id: usize) -> impl Ord {
        let replica = &self.replicas[id];
        let own_vote = |vote: Option<u8>| vote.map(|to| usize::from(to) == id);
        let plane = replica
            .plane
            .map(|p| (p.term, p.leads, p.log, p.promised, p.commit, p.joined));
        let role = match replica.role {
            Role::Follower => (0, 0),
            Role::Candidate { engage, asked, .. } => (1, u8::from(engage) * 2 + u8::from(asked)),
            Role::Leader { commit } => (2, commit),
        };
        let disk = replica.disk;
        (
            (replica.term, role, replica.log, own_vote(replica.vote)),
            (disk.term, disk.log, own_vote(disk.vote)),
            (
                replica.verified,
                replica.owed_vote.map(|owed| owed.engage),
                plane,
            ),
            self.network.plane_acks.map(|acks| acks[id]),
            self.network.software_acks.map(|acks| acks[id]),
        )
    }

    fn renamed(&self, order: [usize; REPLICAS], names: Names) -> Self {
        let Self {
            replicas,
            network,
            history,
        } = self;
        let History { .. } = history; // Holds no names.
        Self {
            replicas: order.map(|old| renamed_replica(&replicas[old], names)),
            network: renamed_network(network, order, names),
            history: *history,
        }
    }
}

fn renamed_replica(replica: &Replica, names: Names) -> Replica {
    let name = |id: u8| names[usize::from(id)];
    let bits = |old: u8| {
        let set = (0..3).filter(|id| old & 1 << id != 0);
        set.fold(0, |new, id| new | 1 << name(id))
    };
    let mut new = *replica;
    new.vote = new.vote.map(name);
    new.disk.vote = new.disk.vote.map(name);
    new.owed_vote = new.owed_vote.map(|owed| OwedVote {
        to: name(owed.to),
        ..owed
    });
    if let Role::Candidate {
        granted, engaged, ..
    } = &mut new.role
    {
        *granted = bits(*granted);
        *engaged = bits(*engaged);
    }
    new
}

fn renamed_network(network: &Network, order: [usize; REPLICAS], names: Names) -> Network {
    let mut new = network.clone();
    new.messages = network
        .messages
        .iter()
        .map(|message| renamed_message(*message, names))
        .collect();
    for fast in new.fast.iter_mut().flatten() {
        fast.leader = names[usize::from(fast.leader)];
    }
    for acks in new.plane_acks.iter_mut().chain(&mut new.software_acks) {
        *acks = order.map(|old| acks[old]);
    }
    new
}

fn renamed_message(mut message: Message, names: Names) -> Message {
    let rename = |id: &mut u8| *id = names[usize::from(*id)];
    match &mut message {
        Message::VoteRequest { from, .. } | Message::Append { from, .. } => rename(from),
        Message::Vote { from, to, .. } => {
            rename(from);
            rename(to);
        }
    }
    message
}
