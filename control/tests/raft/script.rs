//! The language of the scenarios: one command a line. What each does is in `tests/scenarios/README.md`.
use crate::show;
use crate::words::{duration, link, named, number, numbers, parse, peer, text};
use crate::world::{Content, Disk, ELECTION_TIMEOUT, GROUP, HEARTBEAT, LINEAGE, World, config};
use bytes::{Bytes, BytesMut};
use quorumwire_control::{Entry, HardState, Input, MemberChange, Message, Role, Ticket};
use quorumwire_interfaces::{Incarnation, Index, Lineage, ReplicaId, Term};
use quorumwire_wire::{
    CommitQuorum, Member, MemberRole, Membership, Record, RecordKind, begin_record, finish_record,
};
use std::collections::BTreeMap;

/// Most rounds of deliveries before a scenario counts as never coming to rest.
const ROUNDS_MAX: usize = 500;

pub struct Script {
    world: World,
    voters: Vec<u16>,
    learners: Vec<u16>,
    quorum: CommitQuorum,
    lineage: Lineage,
    /// What the folders of replicas that start say of it.
    remembered: BTreeMap<u16, Lineage>,
    /// It is told of each replica.
    shows_lineage: bool,
    tickets: u64,
}

/// Runs the commands and gives the trace, or the line that makes no sense.
pub fn run(commands: &str) -> Result<String, String> {
    let mut script = Script {
        world: World::new(),
        voters: Vec::new(),
        learners: Vec::new(),
        quorum: CommitQuorum::Majority,
        lineage: LINEAGE,
        remembered: BTreeMap::new(),
        shows_lineage: false,
        tickets: 0,
    };
    for line in commands.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        script.world.say(format!("> {line}"));
        script
            .command(words[0], &words[1..])
            .map_err(|problem| format!("`{line}`: {problem}"))?;
        if let Some(violation) = &script.world.checks.violation {
            script.world.loud = true;
            script.world.say(format!("VIOLATION: {violation}"));
            break;
        }
    }
    Ok(script.world.trace.join("\n"))
}

type Done = Result<(), String>;

impl Script {
    fn command(&mut self, name: &str, words: &[&str]) -> Done {
        match name {
            "quiet" => self.world.loud = false,
            "loud" => self.world.loud = true,
            "voters" => self.voters = numbers(words)?,
            "learners" => self.learners = numbers(words)?,
            "all-must-agree" => self.quorum = CommitQuorum::All,
            "lineage" => {
                let number: u64 = parse(words.first().ok_or("which one?")?)?;
                self.lineage = Lineage(u128::from(number));
                self.shows_lineage = true;
            }
            "remembers" => {
                let lineage: u64 = parse(words.get(1).ok_or("which one?")?)?;
                let id = number(words, 0)?;
                self.remembered.insert(id, Lineage(u128::from(lineage)));
            }
            "older" => self.world.older = numbers(words)?.into_iter().collect(),
            "start" => return self.start(words),
            "fresh" => return self.fresh(words),
            "join" => self
                .world
                .start(config(number(words, 0)?, 1, &[]), Disk::default()),
            "advance" => return self.advance(words, false),
            "run" => return self.advance(words, true),
            "sleep" => self.world.time += duration(words.first().ok_or("how long?")?)?,
            "elect" => return self.elect(number(words, 0)?),
            "timeout" => self.time_out(number(words, 0)?),
            "settle" => return self.settle(),
            "deliver" => return self.deliver(words),
            "drop" => self.mark(words, |world, place| drop(world.network.remove(place)))?,
            "hold" => self.mark(words, |world, place| world.network[place].held = true)?,
            "release" => self.mark(words, |world, place| world.network[place].held = false)?,
            "cut" | "heal" | "isolate" => return self.links(name, words),
            "propose" => return self.propose(words),
            "tick" => return self.tick(words),
            "read" => self.read(number(words, 0)?),
            "member" => return self.member(words),
            "transfer" => return self.transfer(words),
            "snapshot" => self.snapshot(number(words, 0)?),
            "snapshot-kib" => self.world.snapshot_bytes = usize::from(number(words, 0)?) << 10,
            "damage-snapshot" => self.node(number(words, 0)?).snapshot_damaged = true,
            "crash" => self.world.crash(number(words, 0)?),
            "wipe" => self.world.wipe(number(words, 0)?),
            "put-back" => return self.put_back(words),
            "boot" => self.world.boot(number(words, 0)?),
            "hang" => self.world.hang(number(words, 0)?),
            "go-on" => self.world.go_on(number(words, 0)?),
            "disk" => return self.disk(words),
            "connect" => self.world.connect(number(words, 0)?, number(words, 1)?),
            "say" => return self.forge(words),
            "corrupt" => self.mark(words, |world, place| {
                if let Content::Message(message) = &mut world.network[place].content {
                    corrupt(message);
                }
            })?,
            "state" => self.state(),
            "lease" => {
                let lease = duration(words.first().ok_or("how long?")?)?;
                self.world.lease = Some(lease);
            }
            "drift-ppm" => {
                let ppm = words.first().and_then(|word| word.parse().ok());
                self.world.drift_ppm = Some(ppm.ok_or("how much?")?);
            }
            "no-lease-reads" => self.world.lease_reads = false,
            "break" => return self.break_connection(words),
            "stood-still" => {
                let time = duration(words.get(1).ok_or("how long?")?)?;
                self.world.input(number(words, 0)?, Input::StoodStill(time));
            }
            "planes" => self.world.planes = Some(words.first() != Some(&"memory")),
            "submit" => return self.submit(words),
            "look-away" => self.node(number(words, 0)?).looks = false,
            "look" => self.look(number(words, 0)?),
            "peek" => {
                let id = number(words, 0)?;
                let plane = self.node(id).plane.as_ref().ok_or("it has no plane")?;
                let registers = plane.registers;
                self.world.input(id, Input::PlaneProgress { registers });
            }
            "fence" => return self.fence(words),
            "plane" => return self.plane(words),
            "cut-plane" => {
                let pair = (number(words, 0)?, number(words, 1)?);
                self.world.plane_cut.extend([pair, (pair.1, pair.0)]);
            }
            "heal-plane" => self.world.plane_cut.clear(),
            _ => return Err("no such command".into()),
        }
        Ok(())
    }

    fn node(&mut self, id: u16) -> &mut crate::world::Node {
        self.world.nodes.get_mut(&id).expect("known replica")
    }

    /// `start ID TERM TERM ... [term N] [commit N] [vote N]`: from a disk with these entries' terms,
    /// the first entry being the membership.
    fn start(&mut self, words: &[&str]) -> Done {
        let id = number(words, 0)?;
        let log_words = words[1..].iter().take_while(|w| w.parse::<u64>().is_ok());
        let terms: Vec<u64> = log_words.map(|w| w.parse().expect("checked")).collect();
        let mut hard_state = HardState {
            term: Term(terms.last().copied().unwrap_or(0)),
            vote: None,
            commit_index: Index(0),
        };
        for pair in words[1 + terms.len()..].chunks(2) {
            let [key, value] = pair else {
                return Err("a word without its number".into());
            };
            let value: u64 = parse(value)?;
            match *key {
                "term" => hard_state.term = Term(value),
                "commit" => hard_state.commit_index = Index(value),
                "vote" => hard_state.vote = Some(peer(u16::try_from(value).map_err(text)?, 1)),
                _ => return Err(format!("`{key}` is not known")),
            }
        }
        let disk = Disk {
            hard_state,
            entries: self.entries(&terms),
            snapshot: None,
        };
        let config = quorumwire_control::Config {
            lineage: self.remembered.get(&id).copied().unwrap_or_default(),
            ..config(id, 1, &[])
        };
        self.world.start(config, disk);
        Ok(())
    }

    fn entries(&self, terms: &[u64]) -> Vec<Entry> {
        let mut entries = Vec::new();
        for (place, term) in terms.iter().enumerate() {
            let index = Index(place as u64 + 1);
            let (kind, payload) = if place == 0 {
                (RecordKind::Membership, self.membership().encode())
            } else {
                (RecordKind::Command, format!("x{index}").into_bytes())
            };
            let block = record(kind, &payload, (*term, index.0));
            let record = Record::decode(&block).expect("just made");
            entries.push(Entry::of_record(&block, 0, &record));
        }
        entries
    }

    fn membership(&self) -> Membership {
        let member = |id: &u16, role| Member {
            id: ReplicaId(*id),
            incarnation: Incarnation(1),
            peer_address: format!("host{id}:7400"),
            role,
        };
        let voters = self.voters.iter().map(|id| member(id, MemberRole::Voter));
        let learners = self
            .learners
            .iter()
            .map(|id| member(id, MemberRole::Learner));
        let mut members: Vec<Member> = voters.chain(learners).collect();
        members.sort_by_key(|m| m.id);
        Membership {
            members,
            quorum: self.quorum,
            lineage: self.lineage,
        }
    }

    fn fresh(&mut self, words: &[&str]) -> Done {
        let id = number(words, 0)?;
        let initial = numbers(&words[1..])?;
        self.world.start(config(id, 1, &initial), Disk::default());
        Ok(())
    }

    /// Lets the time pass and wakes whoever wants to be woken; messages arrive at once or not at all.
    fn advance(&mut self, words: &[&str], deliver: bool) -> Done {
        let target = self.world.time + duration(words.first().ok_or("how long?")?)?;
        loop {
            if deliver {
                self.settle()?;
            }
            let next = self
                .world
                .nodes
                .iter()
                .filter_map(|(id, node)| Some((node.wake_time()?, *id)))
                .min()
                .filter(|(at, _)| *at <= target);
            let Some((at, id)) = next else { break };
            self.world.time = self.world.time.max(at);
            self.world.input(id, Input::Timeout);
        }
        self.world.time = target;
        Ok(())
    }

    /// Nobody has heard a leader for long; this one's timeout comes first. Then all messages arrive.
    fn elect(&mut self, id: u16) -> Done {
        self.world.time += 2 * ELECTION_TIMEOUT;
        self.world.input(id, Input::Timeout);
        self.settle()
    }

    /// The clock of one replica alone goes on until its heartbeat or election is due.
    fn time_out(&mut self, id: u16) {
        let leads = self
            .node(id)
            .replica
            .as_ref()
            .map(quorumwire_control::Replica::role)
            == Some(Role::Leader);
        self.node(id).clock_offset += if leads {
            HEARTBEAT
        } else {
            2 * ELECTION_TIMEOUT
        };
        self.world.input(id, Input::Timeout);
    }

    fn settle(&mut self) -> Done {
        for _ in 0..ROUNDS_MAX {
            if !self.deliver_matching(None, None) {
                return Ok(());
            }
        }
        Err("does not come to rest".into())
    }

    fn deliver_matching(&mut self, from: Option<u16>, to: Option<u16>) -> bool {
        let mut kept = Vec::new();
        let mut delivered = false;
        for envelope in std::mem::take(&mut self.world.network) {
            let matches = from.is_none_or(|id| id == envelope.from.id.0)
                && to.is_none_or(|id| id == envelope.to.id.0);
            if matches && !envelope.held {
                self.world.deliver(envelope);
                delivered = true;
            } else {
                kept.push(envelope);
            }
        }
        kept.append(&mut self.world.network);
        self.world.network = kept;
        delivered
    }

    fn deliver(&mut self, words: &[&str]) -> Done {
        let (from, to) = link(words)?;
        if !self.deliver_matching(from, to) {
            return Err("nothing to deliver".into());
        }
        Ok(())
    }

    /// Does something to every message on a link, the newest first.
    fn mark(&mut self, words: &[&str], act: impl Fn(&mut World, usize)) -> Done {
        let (from, to) = link(words)?;
        let mut found = false;
        for place in (0..self.world.network.len()).rev() {
            let envelope = &self.world.network[place];
            if from.is_none_or(|id| id == envelope.from.id.0)
                && to.is_none_or(|id| id == envelope.to.id.0)
            {
                found = true;
                act(&mut self.world, place);
            }
        }
        if found {
            Ok(())
        } else {
            Err("no such message".into())
        }
    }

    fn links(&mut self, name: &str, words: &[&str]) -> Done {
        let ids: Vec<u16> = self.world.nodes.keys().copied().collect();
        match (name, words) {
            ("heal", []) => {
                let cut = std::mem::take(&mut self.world.cut);
                for (place, a) in ids.iter().enumerate() {
                    for b in &ids[place + 1..] {
                        if cut.contains(&(*a, *b)) || cut.contains(&(*b, *a)) {
                            self.world.connect(*a, *b);
                        }
                    }
                }
            }
            ("isolate", [id]) => {
                let id: u16 = parse(id)?;
                for other in ids.into_iter().filter(|other| *other != id) {
                    self.world.cut.extend([(id, other), (other, id)]);
                }
            }
            ("cut", [pair]) if pair.contains("->") => {
                let (Some(from), Some(to)) = link(words)? else {
                    return Err("from whom to whom?".into());
                };
                self.world.cut.insert((from, to));
            }
            ("cut", [a, b]) => {
                let (a, b) = (parse(a)?, parse(b)?);
                self.world.cut.extend([(a, b), (b, a)]);
            }
            _ => return Err("which links?".into()),
        }
        Ok(())
    }

    fn propose(&mut self, words: &[&str]) -> Done {
        let id = number(words, 0)?;
        for word in &words[1..] {
            let payload = match word.strip_suffix("KiB") {
                Some(count) => vec![b'x'; parse::<usize>(count)? << 10],
                None => word.as_bytes().to_vec(),
            };
            if let Err(refusal) = self.world.propose(id, &payload) {
                self.world
                    .say(format!("  {id}: proposal refused: {refusal}"));
            }
        }
        self.world.flush(id);
        Ok(())
    }

    /// `tick ID`, `tick ID told`.
    fn tick(&mut self, words: &[&str]) -> Done {
        let id = number(words, 0)?;
        let log_says_it = match words.get(1).copied() {
            None => false,
            Some("told") => true,
            Some(_) => return Err("told?".into()),
        };
        let replica = self.node(id).replica.as_ref().ok_or("it does not run")?;
        let told = if replica.may_tell_wall_clock(log_says_it) {
            "the log's time and the wall clock"
        } else {
            "the log's time"
        };
        self.world.say(format!("  {id}: a tick says {told}"));
        Ok(())
    }

    fn submit(&mut self, words: &[&str]) -> Done {
        let id = number(words, 0)?;
        for word in &words[1..] {
            if self.world.submit(id, word.as_bytes()).is_none() {
                self.world.say(format!("  {id}: the plane takes nothing"));
            }
        }
        Ok(())
    }

    fn look(&mut self, id: u16) {
        self.node(id).looks = true;
        self.world.turn(id);
    }

    /// `fence ID slow`: stopping its plane takes until `fence ID done`.
    fn fence(&mut self, words: &[&str]) -> Done {
        let id = number(words, 0)?;
        match words.get(1).copied() {
            Some("slow") => self.node(id).slow_fence = true,
            Some("done") => self.world.finish_fence(id),
            _ => return Err("slow or done?".into()),
        }
        Ok(())
    }

    /// `plane ID fails`, `plane ID refuses`, `plane ID works`.
    fn plane(&mut self, words: &[&str]) -> Done {
        let id = number(words, 0)?;
        let plane = self.node(id).plane.as_mut().ok_or("it has no plane")?;
        match words.get(1).copied() {
            Some("fails") => {
                plane.failed = true;
                self.world.input(id, Input::PlaneFailed);
            }
            Some("refuses") => plane.refuses = true,
            Some("works") => plane.refuses = false,
            _ => return Err("fails, refuses or works?".into()),
        }
        Ok(())
    }

    fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    fn read(&mut self, id: u16) {
        let ticket = self.ticket();
        self.world.checks.read_asked(ticket);
        self.world.input(id, Input::Read(ticket));
    }

    fn member(&mut self, words: &[&str]) -> Done {
        let id = number(words, 0)?;
        let target = || number(words, 2).map(ReplicaId);
        let change = match words.get(1).copied() {
            Some("add") => MemberChange::Add {
                id: target()?,
                role: match words.get(3).copied() {
                    Some("joining") => MemberRole::Joining,
                    Some("learner") => MemberRole::Learner,
                    Some("voter") => MemberRole::Voter,
                    _ => return Err("as what?".into()),
                },
                peer_address: format!("host{}:7400", target()?),
            },
            Some("move") => MemberChange::Move {
                peer: named(words.get(2).ok_or("whom?")?)?,
                peer_address: (*words.get(3).ok_or("where to?")?).to_owned(),
            },
            Some("promote") => MemberChange::Promote(target()?),
            Some("remove") => MemberChange::Remove(target()?),
            Some("quorum") => MemberChange::Quorum(match words.get(2).copied() {
                Some("all") => CommitQuorum::All,
                Some("majority") => CommitQuorum::Majority,
                _ => return Err("which quorum?".into()),
            }),
            _ => return Err("what change?".into()),
        };
        let ticket = self.ticket();
        self.world.input(id, Input::ChangeMembers(ticket, change));
        Ok(())
    }

    fn transfer(&mut self, words: &[&str]) -> Done {
        let id = number(words, 0)?;
        let target = words.get(1).map(|w| parse(w)).transpose()?.map(ReplicaId);
        let ticket = self.ticket();
        self.world.input(id, Input::Transfer(ticket, target));
        Ok(())
    }

    fn snapshot(&mut self, id: u16) {
        match self.world.take_snapshot(id) {
            Some(meta) => {
                let last_index = meta.last_index;
                self.world.input(id, Input::SnapshotTaken(meta));
                self.world.say(format!("  {id}: has snapshot {last_index}"));
            }
            None => self.world.say(format!("  {id}: nothing new to take")),
        }
    }

    /// `disk ID slow`, `disk ID step [COUNT]`, `disk ID fast`.
    fn disk(&mut self, words: &[&str]) -> Done {
        let id = number(words, 0)?;
        let mut count = usize::MAX;
        match words.get(1).copied() {
            Some("slow") => {
                self.node(id).slow_disk = true;
                return Ok(());
            }
            Some("fast") => self.node(id).slow_disk = false,
            Some("step") => count = usize::from(number(words, 2).unwrap_or(1)),
            _ => return Err("slow, fast or step?".into()),
        }
        while count > 0
            && let Some(done) = self.world.do_job(id)
        {
            count -= 1;
            self.world
                .say(format!("  {id}: disk has done {}", job(&done)));
            self.world.input(id, done);
        }
        Ok(())
    }

    /// `break 0 1`, or `break 0 1/1`: only replica 0 notices, and only now, that its connection to that life
    /// broke.
    fn break_connection(&mut self, words: &[&str]) -> Done {
        let id = number(words, 0)?;
        match words.get(1) {
            Some(other) if other.contains('/') => {
                self.world.input(id, Input::PeerDown(named(other)?));
            }
            Some(other) => self.world.disconnect(id, parse(other)?),
            None => return Err("whose?".into()),
        }
        Ok(())
    }

    /// `put-back 1 2`: the disk of replica 1, which is stopped, is one again whose log ends with entry 2.
    fn put_back(&mut self, words: &[&str]) -> Done {
        let last_index = Index(parse(words.get(1).ok_or("to which index?")?)?);
        let node = self.node(number(words, 0)?);
        if node.replica.is_some() || node.disk.snapshot.is_some() {
            return Err("it runs, or its log has no beginning".into());
        }
        node.disk.entries.retain(|entry| entry.index <= last_index);
        Ok(())
    }

    /// `say FROM/LIFE->TO vote TERM`: a message nobody has sent, as if long delayed.
    fn forge(&mut self, words: &[&str]) -> Done {
        let (from, to) = words
            .first()
            .and_then(|w| w.split_once("->"))
            .ok_or("from whom to whom?")?;
        let from = named(from)?;
        let to: u16 = parse(to)?;
        let body = match words.get(1).copied() {
            Some("vote") => quorumwire_control::Body::VoteReply {
                granted: true,
                pre_vote: false,
                engaged: false,
            },
            Some("ack") => quorumwire_control::Body::AppendReply {
                round: 1,
                rejected: false,
                index: Index(parse(words.get(3).ok_or("which index?")?)?),
                hint_index: Index(0),
                hint_term: Term(0),
            },
            Some("deny") => quorumwire_control::Body::AppendReply {
                round: parse(words.get(4).ok_or("in which round?")?)?,
                rejected: true,
                index: Index(parse(words.get(3).ok_or("which index?")?)?),
                hint_index: Index(0),
                hint_term: Term(0),
            },
            Some("append") => quorumwire_control::Body::Append {
                previous_index: Index(match words.get(3).copied() {
                    Some("after") => parse(words.get(4).ok_or("after which index?")?)?,
                    _ => 0,
                }),
                previous_term: Term(match words.get(5) {
                    Some(term) => parse(term)?,
                    None => 0,
                }),
                commit_index: match words.get(3).copied() {
                    Some("commit") => Index(parse(words.get(4).ok_or("upto where?")?)?),
                    _ => Index(0),
                },
                round: 1,
                records: Vec::new(),
            },
            Some("members") => {
                let number: u64 = parse(words.get(3).ok_or("of which lineage?")?)?;
                let term = parse(words.get(2).ok_or("in which term?")?)?;
                let membership = Membership {
                    lineage: Lineage(u128::from(number)),
                    ..self.membership()
                };
                let record = record(RecordKind::Membership, &membership.encode(), (term, 2));
                quorumwire_control::Body::Append {
                    previous_index: Index(1),
                    previous_term: Term(1),
                    commit_index: Index(2),
                    round: 1,
                    records: vec![record],
                }
            }
            Some("fresh") => quorumwire_control::Body::Fresh {
                to_incarnation: Incarnation(parse(words.get(2).ok_or("to which life?")?)?),
                peer_address: format!("host{}:7400", from.id),
                join: false,
                initial_members: Vec::new(),
            },
            Some("stand") => quorumwire_control::Body::VoteRequest {
                last_index: Index(parse(words.get(3).ok_or("last index?")?)?),
                last_term: Term(parse(words.get(4).ok_or("last term?")?)?),
                pre_vote: false,
                transfer: false,
                engage: false,
            },
            Some("offer") => quorumwire_control::Body::EngageOffer {
                start_index: Index(parse(words.get(3).ok_or("which start?")?)?),
            },
            _ => return Err("vote, ack, append, fresh, stand or offer?".into()),
        };
        if let quorumwire_control::Body::Fresh { .. } = body {
            let message = Message {
                term: Term(0),
                body,
            };
            self.world.input(to, Input::Message { from, message });
            return Ok(());
        }
        let term = Term(parse(words.get(2).ok_or("in which term?")?)?);
        self.world.input(
            to,
            Input::Message {
                from,
                message: Message { term, body },
            },
        );
        Ok(())
    }

    fn state(&mut self) {
        let mut lines = Vec::new();
        for (id, node) in &self.world.nodes {
            let Some(replica) = &node.replica else {
                lines.push(format!("  {id}: down"));
                continue;
            };
            let status = replica.status();
            let terms: Vec<String> = replica
                .entries(status.first_index, status.last_index)
                .map(|e| e.term.to_string())
                .collect();
            let snapshot = match status.first_index.previous() {
                Index(0) => String::new(),
                base => format!("(..{base}) "),
            };
            lines.push(format!(
                "  {id}: {:?} term={} log: {snapshot}{} commit={} durable={} members {}{}{}{}",
                status.role,
                status.term,
                terms.join(" "),
                status.commit_index,
                status.persisted_index,
                show::membership(&status.membership),
                if status.lease { " lease" } else { "" },
                match (replica.is_left_out(), replica.was_listed()) {
                    (true, true) => " removed",
                    (true, false) => " left out",
                    (false, _) => "",
                },
                fast_state(&status),
            ));
            if self.shows_lineage {
                lines.push(format!("    lineage {}", replica.lineage()));
            }
        }
        for line in lines {
            self.world.say(line);
        }
    }
}

fn record(kind: RecordKind, payload: &[u8], (term, index): (u64, u64)) -> Bytes {
    let mut block = BytesMut::new();
    let start = begin_record(&mut block, kind, GROUP, Term(term), Index(index));
    block.extend_from_slice(payload);
    finish_record(&mut block, start);
    block.freeze()
}

/// What the plane is doing, for replicas that have one that was ever used.
fn fast_state(status: &quorumwire_control::Status) -> String {
    let engaged = status
        .followers
        .iter()
        .filter(|follower| follower.engaged)
        .map(|follower| match status.fast_term {
            Some(fast) if follower.match_index < fast.start_index => {
                format!(" +{} (has {})", follower.id, follower.match_index)
            }
            Some(_) | None => format!(" +{}", follower.id),
        });
    match (status.fast_term, status.fast_counters.last_left) {
        (Some(fast), _) => format!(
            " fast after {}{}",
            fast.start_index,
            engaged.collect::<String>()
        ),
        (None, Some(reason)) => format!(" left: {}", reason.name()),
        (None, None) => String::new(),
    }
}

/// Flips a bit of the first record of a message.
fn corrupt(message: &mut Message) {
    if let quorumwire_control::Body::Append { records, .. } = &mut message.body
        && let Some(first) = records.first_mut()
    {
        let mut bytes = first.to_vec();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        *first = Bytes::from(bytes);
    }
}

fn job(done: &Input) -> String {
    match done {
        Input::Persisted(ticket) => format!("#{}", ticket.0),
        Input::SnapshotChunkStored { next_offset, .. } => format!("a chunk upto {next_offset}"),
        Input::SnapshotInstalled { last_index, .. } => format!("installing {last_index}"),
        Input::Timeout
        | Input::StoodStill(_)
        | Input::PeerUp(..)
        | Input::PeerDown(_)
        | Input::Message { .. }
        | Input::Applied(_)
        | Input::Read(_)
        | Input::ChangeMembers(..)
        | Input::Transfer(..)
        | Input::SnapshotTaken(_)
        | Input::SnapshotRead { .. }
        | Input::PlanePeer { .. }
        | Input::Engaged { .. }
        | Input::PlaneEntries(_)
        | Input::PlaneProgress { .. }
        | Input::PlaneBehind(_)
        | Input::PlaneFailed
        | Input::Disengaged { .. } => "something else".into(),
    }
}
