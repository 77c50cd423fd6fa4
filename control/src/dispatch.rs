//! Takes messages apart and hands each to whom it concerns.
use crate::{
    Body, Message, Output, Peer, Replica, follower, replication, snapshot_receiver, snapshot_sender,
};
use quorumwire_interfaces::Term;

impl Replica {
    pub(crate) fn on_message(&mut self, from: Peer, message: Message, outputs: &mut Vec<Output>) {
        if self.is_old_life(from) || from.id == self.config.me.id {
            self.counters.ignored_old_incarnation += 1;
            return;
        }
        self.heed(from, message.term, message.body, outputs);
    }

    fn heed(&mut self, from: Peer, term: Term, body: Body, outputs: &mut Vec<Output>) {
        match body {
            fresh @ Body::Fresh { .. } => self.on_fresh(from, fresh, outputs),
            Body::Bootstrap { record } => self.on_bootstrap(from, &record, outputs),
            Body::VoteRequest {
                last_index: index,
                last_term,
                pre_vote: true,
                ..
            } => self.on_pre_vote_request(from, term, (last_term, index), outputs),
            Body::VoteRequest {
                last_index: index,
                last_term,
                transfer,
                engage,
                ..
            } => {
                let wanted = (transfer, engage);
                self.on_vote_request(from, term, (last_term, index), wanted, outputs);
            }
            Body::VoteReply {
                granted,
                pre_vote,
                engaged,
            } => {
                self.on_vote_reply(from, term, granted, pre_vote, engaged, outputs);
            }
            Body::Append {
                previous_index,
                previous_term,
                commit_index,
                round,
                records,
            } => {
                let append = follower::Append {
                    previous_index,
                    previous_term,
                    commit_index,
                    round,
                };
                self.on_append(from, term, &append, &records, outputs);
            }
            Body::AppendReply {
                round,
                rejected,
                index,
                hint_index,
                hint_term,
            } => {
                let reply = replication::Reply {
                    round,
                    rejected,
                    index,
                    hint_index,
                    hint_term,
                };
                self.on_append_reply(from, term, &reply, outputs);
            }
            Body::SnapshotChunk {
                last_index,
                last_term,
                offset,
                total_bytes,
                round,
                bytes,
            } => {
                let chunk = snapshot_receiver::Chunk {
                    last_index,
                    last_term,
                    offset,
                    total_bytes,
                    round,
                    bytes,
                };
                self.on_snapshot_chunk(from, term, chunk, outputs);
            }
            Body::SnapshotReply {
                last_index,
                offset,
                installed,
                rejected,
                round,
            } => {
                let reply = snapshot_sender::Reply {
                    last_index,
                    offset,
                    installed,
                    rejected,
                    round,
                };
                self.on_snapshot_reply(from, term, &reply, outputs);
            }
            Body::TransferNow => self.on_transfer_now(from, term, outputs),
            Body::EngageOffer { start_index: start } => self.on_offer(from, term, start, outputs),
            Body::Engaged { engaged, index } => self.on_joined(from, term, engaged, index, outputs),
        }
    }
}
