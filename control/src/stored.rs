//! Checks what a replica finds on its disk at start. Repairs nothing: what contradicts itself is
//! refused.
use crate::log::Log;
use crate::members::Members;
use crate::{Config, Entry, HardState, PersistedState, SnapshotMeta};
use quorumwire_interfaces::{GroupId, Index, Lineage, Term};
use quorumwire_wire::limits::{ADDRESS_BYTES_MAX, VOTERS_MAX};
use quorumwire_wire::{Malformed, Membership, Record, RecordKind};

/// A stored state that makes sense.
pub(crate) struct CheckedState {
    pub(crate) hard_state: HardState,
    /// What the disk itself says; may be of an older term than the snapshot shows.
    pub(crate) hard_state_on_disk: HardState,
    pub(crate) applied_index: Index,
    pub(crate) log: Log,
    pub(crate) members: Members,
    pub(crate) snapshot: Option<SnapshotMeta>,
}

/// Refuses a configuration that could not work.
pub(crate) fn check_config(config: &Config) -> Result<(), Malformed> {
    let initial = &config.initial_members;
    let problem = if initial.len() > VOTERS_MAX {
        format!("initial_members: {}, at most {VOTERS_MAX}", initial.len())
    } else if !initial.is_empty() && !initial.contains(&config.me.id) {
        format!(
            "initial_members: replica {} is not among them",
            config.me.id
        )
    } else if config.peer_address.len() > ADDRESS_BYTES_MAX {
        format!("peer_address: at most {ADDRESS_BYTES_MAX} bytes")
    } else if config.clock_drift_ppm >= 1_000_000 {
        format!("clock_drift_ppm: {}, below 1000000", config.clock_drift_ppm)
    } else if config.heartbeat_interval.is_zero() || config.heartbeat_interval >= config.lease {
        "heartbeat_interval: above zero and below lease".to_string()
    } else if config.lease > config.election_timeout {
        "lease: at most election_timeout".to_string()
    } else if config.plane
        && (config.engage_interval.is_zero() || config.engage_interval > config.engage_interval_max)
    {
        "engage_interval: above zero and at most engage_interval_max".to_string()
    } else {
        return Ok(());
    };
    Err(Malformed {
        what: "configuration",
        problem,
    })
}

pub(crate) fn check(
    group: GroupId,
    lineage: Lineage,
    stored: PersistedState,
) -> Result<CheckedState, Malformed> {
    let PersistedState {
        mut hard_state,
        snapshot,
        mut entries,
        new_life: _,
    } = stored;
    let hard_state_on_disk = hard_state;
    for entry in &entries {
        check_record(group, entry)?;
    }
    let whole = |s: &SnapshotMeta| s.last_index > Index(0) && s.membership_index <= s.last_index;
    if !snapshot.as_ref().is_none_or(whole) {
        return Err(malformed(
            "a snapshot of nothing, or of later members".to_string(),
        ));
    }
    for pair in entries.windows(2) {
        if pair[1].index != pair[0].index.next() || pair[1].term < pair[0].term {
            return Err(malformed(format!(
                "entry {} of term {} follows entry {} of term {}",
                pair[1].index, pair[1].term, pair[0].index, pair[0].term
            )));
        }
    }
    let (snapshot_index, snapshot_term) = snapshot
        .as_ref()
        .map_or((Index(0), Term(0)), |s| (s.last_index, s.last_term));
    if !continue_snapshot(snapshot_index, snapshot_term, &entries)? {
        entries.clear();
    }
    let log = log_of(entries, snapshot_index, snapshot_term);
    let members = members_of(&log, snapshot.as_ref(), lineage)?;
    if log.last_index() == snapshot_index && snapshot_term > hard_state.term {
        // The snapshot reached the disk before the term it was received in did. In that term nothing
        // was promised yet.
        hard_state.term = snapshot_term;
        hard_state.vote = None;
    }
    if log.last_term() > hard_state.term {
        return Err(malformed(format!(
            "log of term {} under hard state of term {}",
            log.last_term(),
            hard_state.term
        )));
    }
    if hard_state.commit_index > log.last_index() {
        return Err(malformed(format!(
            "commit index {} behind the last entry {}",
            hard_state.commit_index,
            log.last_index()
        )));
    }
    hard_state.commit_index = hard_state.commit_index.max(snapshot_index);
    Ok(CheckedState {
        hard_state,
        hard_state_on_disk,
        applied_index: snapshot_index,
        log,
        members,
        snapshot,
    })
}

fn check_record(group: GroupId, entry: &Entry) -> Result<(), Malformed> {
    let (start, end) = (entry.start as usize, entry.end as usize);
    let Some(bytes) = entry.block.get(start..end) else {
        return Err(malformed(format!(
            "entry {} lies outside its block",
            entry.index
        )));
    };
    let record = Record::decode(bytes)
        .map_err(|error| malformed(format!("entry {}: {error}", entry.index)))?;
    let same = record.index == entry.index
        && record.term == entry.term
        && record.kind == entry.kind
        && record.record_bytes == bytes.len();
    if !same || !record.kind.is_entry() {
        return Err(malformed(format!(
            "entry {} is not what its record says",
            entry.index
        )));
    }
    if record.group != group {
        return Err(malformed(format!(
            "entry {} of group {}, not {group}",
            entry.index, record.group
        )));
    }
    Ok(())
}

/// Whether the entries go on where the snapshot ends. If they end before it or contradict it, a newer
/// snapshot was installed over an older log, and only the snapshot counts.
fn continue_snapshot(
    snapshot_index: Index,
    snapshot_term: Term,
    entries: &[Entry],
) -> Result<bool, Malformed> {
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
        return Ok(false);
    };
    if first.index.0 > snapshot_index.0 + 1 {
        return Err(malformed(format!(
            "first entry is {}, the snapshot ends at {snapshot_index}",
            first.index
        )));
    }
    if last.index < snapshot_index {
        return Ok(false);
    }
    let at_snapshot = entries.iter().find(|entry| entry.index == snapshot_index);
    Ok(at_snapshot.is_none_or(|entry| entry.term == snapshot_term))
}

fn log_of(entries: Vec<Entry>, snapshot_index: Index, snapshot_term: Term) -> Log {
    let mut log = Log::new(snapshot_index, snapshot_term);
    for (place, entry) in entries.into_iter().enumerate() {
        if place == 0 && entry.index == Index(1) {
            log = Log::new(Index(0), Term(0));
        } else if place == 0 && entry.index <= snapshot_index {
            // What stands before the first entry is not known; so it serves as the base itself.
            log = Log::new(entry.index, entry.term);
            continue;
        }
        log.push(entry);
    }
    log
}

/// `lineage` is what the folder is of: members of another cluster have no business in it.
fn members_of(
    log: &Log,
    snapshot: Option<&SnapshotMeta>,
    lineage: Lineage,
) -> Result<Members, Malformed> {
    let check = |membership: &Membership| {
        if lineage.contradicts(membership.lineage) {
            return Err(malformed(format!(
                "members of lineage {} in a folder of lineage {lineage}",
                membership.lineage
            )));
        }
        Ok(())
    };
    let mut members = Members::default();
    let mut known_upto = Index(0);
    if let Some(snapshot) = snapshot {
        check(&snapshot.membership)?;
        members.push(snapshot.membership_index, snapshot.membership.clone());
        known_upto = snapshot.last_index;
    }
    for entry in log.range(known_upto.next(), log.last_index()) {
        if entry.kind == RecordKind::Membership {
            let membership = Membership::decode(entry.payload())?;
            check(&membership)?;
            members.push(entry.index, membership);
        }
    }
    Ok(members)
}

fn malformed(problem: String) -> Malformed {
    Malformed {
        what: "stored state",
        problem,
    }
}
