//! The memory limit from this server's side: what it begins with, who asks for another one, and what its
//! plane must not do by itself meanwhile. What happens at the limit is the state machine's business.
use super::Core;
use super::Server;
use crate::admin::AdminError;
use crate::server::origin::Origin;
use crate::server::route_outcome::RouteOutcome;
use quorumwire_interfaces::Term;
use quorumwire_kv::memcached::reply;
use quorumwire_kv::{Command, MemoryChange, MemoryLimit, MemoryPolicy};
use tokio::sync::oneshot;

/// What was asked for by this server's options, and said about it.
#[derive(Default)]
pub struct MemoryOption {
    /// The term in which this leader has asked for what its options say.
    asked_in: Option<Term>,
    /// That the options say something else than the cluster does was told.
    is_difference_told: bool,
    /// That the limit of the options would delete items, and does not hold therefore.
    is_loss_told: bool,
}

impl Core {
    /// A write that may be a change of the limit. The plane answers a `set` once it is committed, before
    /// anybody knows whether it is refused: with a limit it takes none, and until the term ends none after a
    /// change of it.
    pub fn write_or_limit(&mut self, origin: Origin, command: &Command<'_>) -> RouteOutcome {
        let is_limit = matches!(command, Command::Memory(_));
        if is_limit {
            self.limit_is_on_its_way();
        }
        if command.shows_time() {
            self.group.want_exact_time();
        }
        self.write(origin, command.encoded_bytes(), |buffer| {
            command.encode(buffer);
        })
    }

    /// Before such a command goes into the log.
    pub fn limit_is_on_its_way(&mut self) {
        if self.group.leads() {
            self.group.begin_term();
            self.service.limit_changed_in = Some(self.group.clock.term);
            self.lend_to_plane();
        }
    }

    /// Whether a plain `set` is stored for certain, once it is committed.
    pub fn stores_every_set(&self) -> bool {
        let has_limit = self.group.store.inner().memory_limit().bytes != 0;
        !has_limit && !self.is_limit_changing() && self.group.applied >= self.group.term_start
    }

    /// Whether a change of the limit was put into the log in this term, or may be: one may have waited since
    /// the last fast term. What was in the log when the term began is applied before the plane takes any
    /// `set`.
    fn is_limit_changing(&self) -> bool {
        let term = self.group.clock.term;
        let changed = |it: Term| it == term || self.group.carried_over;
        self.service.limit_changed_in.is_some_and(changed)
    }
}

impl Server {
    /// What a person asks for; the leader only.
    pub fn change_memory(
        &mut self,
        change: MemoryChange,
        answer: oneshot::Sender<Result<(), AdminError>>,
    ) {
        let command = Command::Memory(change);
        self.write_for_operator(answer, |core, origin| core.write_or_limit(origin, &command));
    }

    /// A leader of a cluster whose limit was never set asks for that of its own options, once in its term.
    pub fn keep_memory_option(&mut self) {
        let Some((bytes, policy)) = self.options.memory.filter(|_| self.at_hand == 0) else {
            return;
        };
        let core = &mut self.core;
        let found = core.group.store.inner().memory_limit();
        let option = &mut core.service.memory_option;
        let wanted = MemoryLimit {
            is_set: true,
            bytes,
            policy,
        };
        if found.is_set && found != wanted && !option.is_difference_told {
            option.is_difference_told = true;
            tracing::warn!(
                limit = found.bytes,
                policy = found.policy.name(),
                option_limit = bytes,
                option_policy = policy.name(),
                "the cluster's memory limit differs from the one in this server's options"
            );
        }
        let term = core.group.replica.term();
        let is_current = core.group.leads() && core.group.applied >= core.group.term_start;
        if found.is_set || !is_current || option.asked_in == Some(term) {
            return;
        }
        let used = core.group.store.inner().stats().limited_bytes;
        if deletes_at_once(wanted, used) {
            if !std::mem::replace(&mut option.is_loss_told, true) {
                tracing::error!(
                    option_limit = bytes,
                    used,
                    "the memory limit in this server's options would delete items at once: it is not applied"
                );
            }
            return;
        }
        let change = MemoryChange {
            if_never_set: true,
            limit_bytes: Some(bytes),
            policy: Some(policy),
            for_redis: false,
        };
        let ticket = core.group.next_ticket(); // nobody waits for it
        let routed = core.write_or_limit(Origin::Admin(ticket), &Command::Memory(change));
        if matches!(routed, RouteOutcome::Pending) {
            core.service.memory_option.asked_in = Some(term);
        }
    }
}

/// Whether items go as soon as this limit holds. A slip of an option shall not empty a cluster.
const fn deletes_at_once(limit: MemoryLimit, used_bytes: u64) -> bool {
    limit.bytes != 0 && matches!(limit.policy, MemoryPolicy::Evict) && used_bytes > limit.bytes
}

/// What a person is told whose request was answered so.
pub fn outcome(answer: &[u8]) -> Result<(), AdminError> {
    if answer == reply::OK {
        return Ok(());
    }
    let text = String::from_utf8_lossy(answer);
    Err(AdminError::Failed(text.trim_end().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_options_that_deletes_at_once_does_not_hold() {
        let limit = |bytes, policy| MemoryLimit {
            is_set: true,
            bytes,
            policy,
        };
        let (refuse, evict) = (MemoryPolicy::Refuse, MemoryPolicy::Evict);
        assert!(deletes_at_once(limit(10, evict), 11));
        for (limit, used) in [
            (limit(10, evict), 10),
            (limit(0, evict), 11),
            (limit(10, refuse), 11),
        ] {
            assert!(!deletes_at_once(limit, used), "{limit:?}");
        }
    }
}
