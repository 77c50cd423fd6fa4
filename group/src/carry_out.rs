//! What a group wants done, in the one order in which it is done: what consensus asks for, entries applied
//! command by command, answers to whoever waits, reads, and what the plane has brought. The server and the
//! simulator run this very code; what differs between them is their [`Driver`].
use crate::apply::AppliedCommand;
use crate::driver::{Driven, Driver};
use crate::forwarding::{FollowerCommand, FollowerRequest};
use crate::forwards::ForwardResult;
use crate::group::{Group, SubmitOutcome};
use crate::passed_on::{AnswerKind, ForwardKind};
use crate::proposals::Proposal;
use crate::requester::PlaneClient;
use crate::requester::{AnswerTo, Follower, Requester};
use crate::waiting::{FollowerRead, Reader, Ungranted};
use bytes::Bytes;
use quorumwire_control::{Entry, Input, Output, Peer, Refusal, RoleChange, SnapshotMeta, Ticket};
use quorumwire_interfaces::{Index, Reason};
use quorumwire_sessions::{Outcome, SESSION_HEADER_BYTES, Sessions};

/// Commands applied at once (and those of an entry that it began), and their bytes, so that heartbeats and
/// clients are not kept waiting by a long backlog. How long they may take together is the driver's business.
const APPLY_COMMANDS_MAX: usize = 4096;
/// See [`APPLY_COMMANDS_MAX`].
const APPLY_BYTES_MAX: usize = 4 << 20;

/// Has the replica say what it wants now, and does it, until it wants nothing more.
///
/// # Errors
///
/// If the log cannot be written.
pub fn carry_out_all<D: Driver>(driver: &mut D) -> Result<(), D::Error> {
    driver.carry_out_effects(); // of what clients have asked for since
    driver.drive(Group::flush);
    while let Some(group) = driver.group().filter(|it| !it.outputs.is_empty()) {
        let spare = std::mem::take(&mut group.carrying);
        let mut outputs = std::mem::replace(&mut group.outputs, spare);
        for output in outputs.drain(..) {
            driver.carry_out(output)?;
            driver.carry_out_effects();
            if driver.group().is_none() {
                return Ok(());
            }
        }
        if let Some(group) = driver.group() {
            group.carrying = outputs;
        }
        driver.drive(Group::flush);
    }
    Ok(())
}

/// Carries out one thing that consensus wants.
///
/// # Errors
///
/// If the log cannot be written.
pub fn carry_out<D: Driver>(driver: &mut D, output: Output) -> Result<(), D::Error> {
    match output {
        Output::Persist {
            ticket,
            hard_state,
            entries,
        } => {
            if let Some(done) = driver.persist(ticket, hard_state, &entries)? {
                driver.drive(|group| group.step(Input::Persisted(done)));
            }
        }
        Output::Send { to, message } => driver.say(to, message),
        Output::Committed(upto) => {
            if let Some(group) = driver.group() {
                group.committed = group.committed.max(upto);
            }
            apply_some(driver);
        }
        Output::Read(ticket, index) => grant_read(driver, ticket, index),
        Output::Done(ticket) => driver.ticket_done(ticket, Ok(())),
        Output::Refused(ticket, refusal) => refuse_ticket(driver, ticket, refusal),
        Output::RoleChanged(change) => role_changed(driver, &change),
        Output::Truncated(_) => {} // what becomes of them shows when their index is applied
        Output::OtherLineage { from, lineage } => driver.other_lineage(from, lineage),
        Output::MembershipChanged(membership) => driver.membership_changed(&membership)?,
        Output::ReadSnapshot {
            to,
            last_index,
            offset,
            bytes_max,
        } => driver.read_snapshot(to, last_index, offset, bytes_max),
        Output::StoreSnapshotChunk {
            last_index,
            offset,
            bytes,
        } => driver.store_snapshot_chunk(last_index, offset, bytes),
        Output::InstallSnapshot {
            last_index,
            last_term,
        } => driver.install_snapshot(last_index, last_term),
        Output::TakeSnapshot => driver.take_snapshot(),
        Output::Engage(engage) => driver.engage(&engage),
        Output::Disengage(reason) => driver.disengage(reason),
        Output::PlaneHeartbeat { round } => {
            driver.drive(|group| {
                let is_awaited = group.reads.await_round();
                group.plane_does(|plane| plane.heartbeat(round, is_awaited));
            });
            driver.plane_was_used();
        }
        Output::PlanePersisted(upto) => {
            driver.drive(|group| group.plane_does(|plane| plane.set_persisted(upto)));
            driver.plane_was_used();
        }
    }
    Ok(())
}

/// Exchanges the state for a snapshot of another replica. Before anything is read out of the new one, those
/// hear who wait for what it stands for: a read that its client sent in front of such a write would show it.
///
/// # Panics
///
/// If the state is newer.
pub fn install<D: Driver>(
    driver: &mut D,
    meta: &SnapshotMeta,
    store: &mut Box<Sessions<D::Application>>,
) {
    if let Some(group) = driver.group() {
        group.install(meta, store);
    }
    tell_unknown(driver);
}

/// Tells those for whose write a snapshot stands that nobody can tell what became of it.
fn tell_unknown<D: Driver>(driver: &mut D) {
    let unknown = driver.group().map(Group::take_unknown);
    for proposal in unknown.into_iter().flatten() {
        refuse(driver, proposal.origin, Reason::OutcomeUnknown);
    }
}

/// Applies committed entries, as many as there is time for, and answers whoever waits for them.
fn apply_some<D: Driver>(driver: &mut D) {
    let can_apply = driver.group().is_some_and(|group| group.can_apply());
    if !can_apply || !driver.begins_to_apply() {
        return; // the next turn goes on
    }
    let Some(group) = driver.group() else {
        return;
    };
    let first = group.applied.next();
    let at_most = group.applied.0 + APPLY_COMMANDS_MAX as u64;
    let last = Index(group.committed.0.min(at_most));
    let mut batch = std::mem::take(&mut group.applying);
    let mut bytes = 0;
    for entry in group.replica.entries(first, last) {
        if bytes > APPLY_BYTES_MAX {
            break;
        }
        bytes += entry.record().len();
        batch.push(entry.clone());
    }
    let mut commands = 0;
    for entry in batch.drain(..) {
        let takes = driver.group().is_some_and(|it| it.store.takes_commands());
        if commands >= APPLY_COMMANDS_MAX || !takes || !driver.has_time_for(&entry) {
            break; // what is left of them is taken again
        }
        commands += driver.apply_entry(&entry);
        if driver.group().is_none() {
            return;
        }
    }
    if let Some(group) = driver.group() {
        group.applying = batch;
    }
    driver.ends_applying();
    driver.drive(|group| group.step(Input::Applied(group.applied)));
    serve_ready_reads(driver);
}

/// Applies an entry and answers who waits for it; how many commands it held.
pub fn apply_entry<D: Driver>(driver: &mut D, entry: &Entry) -> usize {
    let Some(group) = driver.group() else {
        return 0;
    };
    let mut applying = group.begin_entry(entry);
    let mut reply = std::mem::take(&mut group.reply);
    let displaced = group.take_displaced();
    tell_unknown(driver);
    for proposal in displaced {
        driver.note_displaced(&proposal);
        refuse(driver, proposal.origin, Reason::NotCommitted);
    }
    loop {
        let next = driver.group().and_then(|group| group.next_waits(&applying));
        if let Some(requester) = next.map(|proposal| proposal.origin) {
            driver.answer_reads_before(requester);
        }
        reply.clear();
        let next = |group: &mut Driven<D>| group.apply_next(&mut applying, &mut reply);
        let Some(applied) = driver.group().and_then(next) else {
            break;
        };
        driver.note_applied(entry.index, &applied, &reply);
        if let Some(proposal) = &applied.proposal {
            answer_applied(driver, proposal, &applied, &reply);
        }
    }
    let Some(group) = driver.group() else {
        return usize::from(applying.commands());
    };
    group.reply = reply;
    for proposal in group.end_entry() {
        driver.note_missing(&proposal);
        refuse(driver, proposal.origin, Reason::OutcomeUnknown);
    }
    usize::from(applying.commands())
}

/// Answers a proposal of ours that is applied. Each piece of a plane client's command was a request of its
/// own: those that do not complete it are acknowledged only, in whatever order they came.
fn answer_applied<D: Driver>(
    driver: &mut D,
    proposal: &Proposal<D::Requester>,
    applied: &AppliedCommand<'_, D::Requester>,
    reply: &[u8],
) {
    let said = match answer_of(proposal.origin.answer_to(), applied.outcome) {
        CommandAnswer::Kind(said) => said,
        CommandAnswer::PieceKept(client) => {
            let payload = applied.command.payload().get(SESSION_HEADER_BYTES..);
            if let Some(number) = payload.and_then(|rest| rest.first_chunk::<4>()) {
                if let Some(group) = driver.group() {
                    group.acknowledge_piece(client, proposal.index, *number);
                }
                driver.plane_was_used();
            }
            return;
        }
    };
    driver.note_answered(proposal, said);
    answer_at(driver, proposal.origin, (said, proposal.index), reply);
}

/// What whoever asked is told of a command that is applied.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum CommandAnswer {
    /// This.
    Kind(AnswerKind),
    /// That the piece is in the log, and the command is not complete.
    PieceKept(PlaneClient),
}

/// A client of the plane asks with each piece and sends again what was dropped. Who else asks does so with
/// the last piece only, behind all others: if it completes nothing, those before it are gone.
const fn answer_of(to: AnswerTo, outcome: Outcome) -> CommandAnswer {
    CommandAnswer::Kind(match (outcome, to) {
        (Outcome::Incomplete, AnswerTo::PlaneClient(client)) => {
            return CommandAnswer::PieceKept(client);
        }
        (Outcome::Incomplete, AnswerTo::Here | AnswerTo::Follower(_)) => {
            AnswerKind::Refused(Reason::PiecesGone)
        }
        (Outcome::Applied, _) => AnswerKind::Answer,
        (Outcome::Repeated, _) => AnswerKind::Repeated,
        (Outcome::AnswerTooLong, _) => AnswerKind::Refused(Reason::AnswerTooLong),
        (Outcome::Refused(refusal), _) => AnswerKind::Refused(refusal.reason()),
    })
}

/// Tells whoever asked, here or elsewhere, what its request has become.
pub fn answer<D: Driver>(driver: &mut D, requester: D::Requester, said: AnswerKind, reply: &[u8]) {
    answer_at(driver, requester, (said, Index(0)), reply);
}

/// The same of a command that stands at this index.
fn answer_at<D: Driver>(
    driver: &mut D,
    requester: D::Requester,
    (said, index): (AnswerKind, Index),
    reply: &[u8],
) {
    match requester.answer_to() {
        AnswerTo::Here => driver.answer_here(requester, said, reply),
        AnswerTo::Follower(from) => {
            driver.drive(|group| group.answer_follower(from, said, reply));
        }
        AnswerTo::PlaneClient(client) => {
            let refused = match said {
                AnswerKind::Answer | AnswerKind::Repeated => {
                    let is_too_long =
                        |group: &mut Driven<D>| !group.answer_plane_client(client, index, reply);
                    let is_too_long = driver.group().is_some_and(is_too_long);
                    is_too_long.then(|| {
                        driver.note_refused(Reason::AnswerTooLong);
                        Reason::AnswerTooLong
                    })
                }
                AnswerKind::Refused(reason) => Some(reason),
            };
            if let Some(reason) = refused {
                let words = driver.words(reason);
                if let Some(group) = driver.group() {
                    group.refuse_plane_client(client, index, (reason, &words));
                }
            }
            driver.plane_was_used();
        }
    }
}

/// Tells whoever asked, here or elsewhere, why there is no answer.
pub fn refuse<D: Driver>(driver: &mut D, requester: D::Requester, reason: Reason) {
    driver.note_refused(reason);
    answer(driver, requester, AnswerKind::Refused(reason), b"");
}

/// Leadership changed hands, or may have.
fn role_changed<D: Driver>(driver: &mut D, change: &RoleChange) {
    let patience = driver.patience();
    let returned = driver.drive(|group| group.role_changed(change, patience));
    take_all_returned(driver, returned.unwrap_or_default());
    driver.role_changed(change);
}

/// A connection is gone, and with it what was to be answered over it.
pub fn peer_is_gone<D: Driver>(driver: &mut D, peer: Peer) {
    let returned = driver.drive(|group| {
        group.step(Input::PeerDown(peer));
        group.give_up_sent_to(peer)
    });
    take_all_returned(driver, returned.unwrap_or_default());
}

/// Answers what has waited for too long, and writes whose leader was replaced: nobody can tell what became of
/// those.
fn give_up_late<D: Driver>(driver: &mut D) {
    let patience = driver.patience();
    let returned = driver.drive(|group| group.give_up_left_behind(patience));
    take_all_returned(driver, returned.unwrap_or_default());
    for (requester, reason) in driver.drive(Group::take_late).unwrap_or_default() {
        refuse(driver, requester, reason);
    }
}

fn take_all_returned<D: Driver>(driver: &mut D, all: Vec<ForwardResult<D::Requester>>) {
    for returned in all {
        driver.take_returned(returned, b"");
    }
}

/// A request that a follower has passed on.
pub fn take_request<D: Driver>(driver: &mut D, from: Follower, kind: ForwardKind, bytes: Bytes) {
    match driver.drive(|group| group.take_request(from, kind, bytes)) {
        None | Some(FollowerRequest::Done) => {}
        Some(FollowerRequest::Read(index, read)) => driver.answer_follower_read(index, read),
        Some(FollowerRequest::Write(command)) => {
            let admitted = driver.admits_writes();
            if let FollowerCommand::Plain(bytes) = &command {
                driver.before_write_of_follower(bytes);
            }
            driver.drive(|group| {
                let submitted = match admitted {
                    Ok(()) => group.write_of_follower(from, &command),
                    Err(reason) => SubmitOutcome::Refused(reason),
                };
                group.stalled |= submitted == SubmitOutcome::NoRoom;
                group.answer_unless_pending(from, submitted);
            });
        }
    }
}

fn grant_read<D: Driver>(driver: &mut D, ticket: Ticket, index: Index) {
    let granted = driver
        .group()
        .map(|group| group.take_granted(ticket, index));
    match granted {
        None => {}
        Some(None) => driver.index_read(ticket, index),
        Some(Some((index, Reader::Here(reader)))) => driver.read_granted(reader, ticket, index),
        Some(Some((index, Reader::Follower(read)))) => follower_read_at(driver, index, read),
    }
}

fn refuse_ticket<D: Driver>(driver: &mut D, ticket: Ticket, refusal: Refusal) {
    let is_busy = matches!(refusal, Refusal::Busy { .. });
    match driver.drive(|group| group.take_ungranted(ticket, &refusal)) {
        None => {}
        Some(Ungranted::Follower) => driver.note_follower_without_round(),
        Some(Ungranted::Here(reader)) => driver.read_not_granted(reader, ticket, is_busy),
        Some(Ungranted::NoRead) => driver.ticket_done(ticket, Err(refusal)),
    }
}

/// A follower's read that has leave to be answered at this index is answered, or waits for it.
fn follower_read_at<D: Driver>(driver: &mut D, index: Index, read: FollowerRead) {
    let read = driver.drive(|group| group.follower_read_at(index, read));
    if let Some(read) = read.flatten() {
        driver.answer_follower_read(index, read);
    }
}

/// Serves the reads that waited for what is applied now, or for time.
pub fn serve_ready_reads<D: Driver>(driver: &mut D) {
    let ready = driver.group().map(Group::take_ready);
    for (index, reader) in ready.into_iter().flatten() {
        match reader {
            Reader::Here(reader) => driver.read_is_ready(reader, index),
            Reader::Follower(read) => follower_read_at(driver, index, read),
        }
    }
}

/// If the log's time stands still: reads that wait for it are refused, by themselves.
fn refuse_overdue_reads<D: Driver>(driver: &mut D) {
    for reader in driver.drive(Group::take_overdue).unwrap_or_default() {
        driver.read_is_overdue(reader);
    }
}

/// Takes in what the plane has stored, shows consensus its registers, and takes on what came to a plane that
/// could not take it itself.
pub fn poll_plane<D: Driver>(driver: &mut D) {
    let Some(plane) = driver.group().and_then(|group| group.plane.as_mut()) else {
        return;
    };
    plane.poll();
    driver.plane_was_polled();
    let Some(plane) = driver.group().and_then(|group| group.plane.as_mut()) else {
        return;
    };
    let requests = std::mem::take(&mut plane.brought.requests);
    let had_entries = !plane.brought.records.is_empty();
    driver.drive(Group::take_from_plane);
    driver.plane_was_emptied(had_entries);
    driver.drive(Group::show_registers);
    for request in &requests {
        let admitted = driver.admits_writes();
        let submitted = driver.drive(|group| {
            let submitted = match admitted {
                Ok(()) => group.take_plane_request(request),
                Err(reason) => SubmitOutcome::Refused(reason),
            };
            group.stalled |= submitted == SubmitOutcome::NoRoom;
            submitted
        });
        match submitted {
            None | Some(SubmitOutcome::Pending) => {}
            Some(SubmitOutcome::NoRoom) => refuse(driver, request.client.into(), Reason::Busy),
            Some(SubmitOutcome::Refused(reason)) => refuse(driver, request.client.into(), reason),
        }
    }
    driver.plane_was_used();
}

/// What a group does at the end of a turn, when all that came is taken in.
///
/// # Errors
///
/// If the log cannot be written.
pub fn end_turn<D: Driver>(driver: &mut D) -> Result<(), D::Error> {
    apply_some(driver);
    if driver.group().is_some_and(|group| group.reads.has_late) {
        serve_ready_reads(driver);
    }
    driver.goes_on();
    driver.drive(Group::tick_if_time_is_awaited);
    submit_to_plane(driver);
    carry_out_all(driver)?;
    release_plane(driver);
    Ok(())
}

/// What a group does every now and then.
pub fn keep_house<D: Driver>(driver: &mut D) {
    driver.drive(Group::tick_if_deadline_passed);
    refuse_overdue_reads(driver);
    if driver.drive(Group::transfer_if_full) == Some(true) {
        driver.note_transfer_for_room();
    }
    give_up_late(driver);
}

/// Hands over what clients have asked for in this turn.
fn submit_to_plane<D: Driver>(driver: &mut D) {
    let waits = |group: &mut Driven<D>| group.waits_since_fast_term();
    let waited = driver.group().is_some_and(waits);
    for submission in driver.drive(Group::submit_to_plane).unwrap_or_default() {
        let reason = driver.group().map(|group| group.why_not_submitted());
        if let (Some(requester), Some(reason)) = (submission.origin, reason) {
            refuse(driver, requester, reason); // it never reached a log
        }
    }
    if waited && !driver.group().is_some_and(waits) {
        driver.room_since_fast_term();
    }
    driver.plane_was_used();
}

/// Frees what this turn was done with: at its end, because until the next one a full ring would take nothing.
fn release_plane<D: Driver>(driver: &mut D) {
    if driver.group().is_none_or(|group| group.plane.is_none()) {
        return;
    }
    driver.drive(Group::release_plane);
    driver.plane_was_released();
    // At once: in the next turn clients of the plane could have taken the room, turn after turn.
    driver.drive(|group| {
        if group.leads_fast_term() {
            group.submit_waiting();
        }
    });
    driver.plane_was_used();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requester::RequestId;
    use quorumwire_sessions::SessionRefusal;
    use std::net::SocketAddr;

    /// An empty answer would leave a client of a text protocol waiting.
    #[test]
    fn a_command_whose_pieces_were_dropped_is_not_answered_with_nothing() {
        let client = PlaneClient {
            from: SocketAddr::from(([192, 0, 2, 1], 1)),
            session: 7,
            sequence: 1,
        };
        let follower = AnswerTo::Follower(Follower {
            peer: Peer::default(),
            id: RequestId::default(),
        });
        let plane = AnswerTo::PlaneClient(client);
        for to in [AnswerTo::Here, follower, plane] {
            let said = |outcome| answer_of(to, outcome);
            let refused = |reason| CommandAnswer::Kind(AnswerKind::Refused(reason));
            assert_eq!(
                said(Outcome::Applied),
                CommandAnswer::Kind(AnswerKind::Answer)
            );
            assert_eq!(
                said(Outcome::Repeated),
                CommandAnswer::Kind(AnswerKind::Repeated)
            );
            let too_old = Outcome::Refused(SessionRefusal::TooOld);
            assert_eq!(said(too_old), refused(Reason::SequenceTooOld));
            assert_eq!(said(Outcome::AnswerTooLong), refused(Reason::AnswerTooLong));
            let incomplete = if to == plane {
                CommandAnswer::PieceKept(client)
            } else {
                refused(Reason::PiecesGone)
            };
            assert_eq!(said(Outcome::Incomplete), incomplete);
        }
    }
}
