//! The certificates of a running server: taken in again upon SIGHUP, and complained about before they expire.
use super::Server;
use super::service::Service;
use crate::tls::{Expiry, ServerTls};
use quorumwire_control::Now;
use std::time::{Duration, SystemTime};

/// A certificate that expires is complained about in the log this often.
const WARNING_INTERVAL: Duration = Duration::from_hours(24);

impl<S: Service> Server<S> {
    /// Takes the files of TLS in again. New connections are secured by them; those that stand go on, because
    /// to break one between replicas would cost the requests on it.
    pub fn reload_tls(&mut self) {
        if self.options.peer_tls.is_none() && self.options.client_tls.is_none() {
            return;
        }
        match self.options.load_tls() {
            Ok(tls) => {
                self.use_tls(tls);
                tracing::info!("certificates and authorities were read again");
            }
            Err(error) => tracing::error!(
                "certificates are not used: {error:#}; those in use stay as they were"
            ),
        }
    }

    /// Secures what comes from now on.
    pub fn use_tls(&mut self, tls: ServerTls) {
        self.expiries = tls.expiries();
        self.next_expiry_warning = Now::default();
        if let Some(peers) = tls.peers {
            for id in self.links.set_tls(peers) {
                tracing::warn!(
                    replica = id.0,
                    "connected with a certificate that is no longer accepted: the connection stays until \
                     either side restarts"
                );
            }
        }
        if let Some(clients) = tls.clients {
            if let Some(admin) = &self.admin_tls {
                admin.set(&clients);
            }
            self.core.service.secure(&clients.ports);
            self.clients.tls = Some(clients.ports);
        }
    }

    /// What is to be said about certificates now.
    pub fn expiry_complaints(&self) -> impl Iterator<Item = String> {
        let now = SystemTime::now();
        self.expiries
            .iter()
            .filter_map(move |expiry: &Expiry| expiry.complaint(now))
    }

    /// Says it in the log, once a day.
    pub fn warn_of_expiry(&mut self) {
        if self.core.group.now < self.next_expiry_warning {
            return;
        }
        self.next_expiry_warning = Now(self.core.group.now.0 + WARNING_INTERVAL);
        for complaint in self.expiry_complaints() {
            tracing::warn!("{complaint}: see `quorumwire keys renew`, and SIGHUP");
        }
    }
}
