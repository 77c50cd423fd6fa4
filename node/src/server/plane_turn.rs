//! A server and its data plane: consensus starts and stops it, people give it other keys.
use super::core::Core;
use super::plane::{Hosting, Plane};
use super::service::Service;
use super::{Server, alike, clock};
use quorumwire_control::{Engage, Input, LeaveReason};
use quorumwire_interfaces::Registers;

impl<S: Service> Server<S> {
    /// Takes the secret file in again.
    pub fn reload_keys(&mut self) {
        let Some((plane, hosting)) = self.core.hosted() else {
            tracing::info!("SIGHUP: there is no secret file to read again");
            return;
        };
        match self.options.load_keys() {
            Ok(keys) => {
                hosting.set_keys(plane, &keys);
                self.links.set_secrets(alike::secrets(&keys));
                self.show_links();
                tracing::info!(in_use = keys.in_use, "the secret file was read again");
            }
            Err(error) => {
                tracing::error!(
                    "the secret file is not used: {error:#}; the keys stay as they were"
                );
            }
        }
    }
}

impl<S: Service> Core<S> {
    /// The plane, and what this server keeps of it.
    pub fn hosted(&mut self) -> Option<(&mut Plane, &mut Hosting)> {
        self.group.plane.as_mut().zip(self.hosting.as_mut())
    }

    /// What the plane has told came before this moment: a voter's promise to a leader counts from after
    /// the plane heard it, because the leader may count on it from then on.
    pub fn saw_plane(&mut self) {
        self.group.now = self.group.now.max(clock::now());
    }

    /// Consensus wants the plane to run.
    pub fn engage_plane(&mut self, engage: &Engage) {
        let term = engage.term;
        let may = self.begin_term_key(engage);
        let engaged = match self.hosted() {
            Some((plane, hosting)) => may && hosting.engage(plane, engage),
            None => false,
        };
        if !engaged {
            self.end_term_key();
        }
        if engaged {
            tracing::info!(
                group = self.group.id.0,
                term = term.0,
                behind = engage.last_index.0,
                leads = engage.me == engage.leader,
                "data plane engaged"
            );
        }
        self.group.step(Input::Engaged { term, engaged });
    }

    /// Consensus wants the plane to stop: everything it has is taken first.
    pub fn disengage_plane(&mut self, reason: LeaveReason) {
        self.end_term_key();
        let registers = match &mut self.group.plane {
            Some(plane) => plane.disengage(),
            None => Registers::default(),
        };
        tracing::info!(
            group = self.group.id.0,
            term = registers.term.0,
            last_index = registers.last_index.0,
            reason = reason.name(),
            "data plane disengaged"
        );
        self.saw_plane();
        self.group.plane_stopped(registers);
    }

    /// Tells people, once, that the plane did not do what it was told.
    pub fn tell_plane_error(&mut self) {
        let Some(error) = self.group.take_plane_error() else {
            return;
        };
        let has_fault = self
            .hosted()
            .is_some_and(|(plane, hosting)| hosting.tell_fault(plane));
        if !has_fault {
            tracing::error!(?error, "the data plane failed");
        }
    }
}

#[cfg(test)]
#[path = "plane_turn_test.rs"]
pub mod tests;
