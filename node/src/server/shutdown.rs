//! Stopping without losing anything: answer what was taken on, transfer leadership, say goodbye.
use super::Server;
use super::administration::Waiting;
use super::core::Core;
use super::service::Service;
use quorumwire_control::Input;
use quorumwire_group as group;

impl<S: Service> Server<S> {
    /// One step of stopping; called after each turn once the process was told to. True: done.
    pub fn drain(&mut self) -> anyhow::Result<bool> {
        let now = self.core.group.now;
        let since = if let Some(since) = self.draining_since {
            since
        } else {
            tracing::info!("stopping: answering the requests under way");
            self.draining_since = Some(now);
            self.service_manager.stops();
            self.clients.stop_accepting();
            self.clients.close_all();
            now
        };
        let waited = now.0.saturating_sub(since.0);
        let is_late = waited > self.options.drain_timeout;
        // What clients have done goes into the log before leadership goes: afterwards nothing is taken on.
        let is_done = self.clients.are_idle() && self.cores().all(S::is_idle);
        // A client that does not take its answers must not keep leadership here.
        if !is_done && waited < self.options.drain_timeout / 2 {
            return Ok(false);
        }
        let mut leads = false;
        if !is_late {
            self.try_each_group(|server| {
                leads |= server.transfer_to_stop()?;
                anyhow::Ok(())
            })?;
        }
        if leads {
            return Ok(false);
        }
        let is_settled = self.cores().all(Core::is_settled) && self.clients.are_idle();
        if !is_settled && !is_late {
            return Ok(false); // about to be settled by the next leader
        }
        if is_late {
            tracing::warn!(
                "stopping: some requests were not answered, or leadership was not transferred, in time"
            );
        }
        self.each_group(Self::send_effects);
        self.links.goodbye(now);
        Ok(true)
    }

    /// Has another one lead the group at hand, if leadership is here and another can have it. Whether it is.
    fn transfer_to_stop(&mut self) -> anyhow::Result<bool> {
        if !self.core.group.leads() || !self.has_other_voters() {
            return Ok(false);
        }
        if !self.core.draining {
            self.core.draining = true;
            tracing::info!("stopping: transferring leadership");
            let ticket = self.core.group.next_ticket();
            self.upkeep.waiting.insert(ticket, Waiting::Drain);
            self.core.group.step(Input::Transfer(ticket, None));
            group::carry_out_all(self)?;
        }
        Ok(true)
    }

    fn has_other_voters(&self) -> bool {
        self.core.group.replica.membership().voters().count() > 1
    }
}

impl<S: Service> Core<S> {
    /// Whether nothing waits for an answer of the group.
    fn is_settled(&self) -> bool {
        let plane = self.group.plane.as_ref();
        let waits_for_plane = plane.and_then(quorumwire_group::Plane::waits_since);
        self.group.proposals.is_empty() && waits_for_plane.is_none() && S::is_idle(self)
    }
}

#[cfg(test)]
#[path = "shutdown_test.rs"]
mod tests;
