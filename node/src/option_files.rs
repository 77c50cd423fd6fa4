//! The files that the options name, and the user: read, and refused by the option's name.
use crate::accounts::Accounts;
use crate::keys::{ClusterKeys, SecretFile};
use crate::options::ServerOptions;
use crate::privileges;
use crate::tls::{ClientTls, PeerTls, ServerTls};
use anyhow::Context as _;

impl ServerOptions {
    /// The keys out of the secret file.
    pub(crate) fn load_keys(&self) -> anyhow::Result<ClusterKeys> {
        let file = self
            .secret_file
            .as_ref()
            .context("option secret-file is not given")?;
        SecretFile::load(file)
            .and_then(|secrets| secrets.keys(&self.cluster))
            .context("option secret-file")
    }

    /// All certificates and keys that the options name.
    pub(crate) fn load_tls(&self) -> anyhow::Result<ServerTls> {
        let peers = self.peer_tls.as_ref();
        let clients = self.client_tls.as_ref();
        let client_authorities = self.client_authorities.as_deref();
        Ok(ServerTls {
            peers: peers
                .map(|files| PeerTls::load(files, &self.cluster, self.id))
                .transpose()?,
            clients: clients
                .map(|own| ClientTls::load(own, peers, client_authorities))
                .transpose()?,
        })
    }

    /// Who may use the ports for clients; `None`: everybody.
    pub(crate) fn load_accounts(&self) -> anyhow::Result<Option<Accounts>> {
        let file = self.client_auth_file.as_ref();
        file.map(|file| Accounts::load(file).context("option client-auth-file"))
            .transpose()
    }

    /// What a start would refuse of them: all of it, each by its option.
    pub fn file_faults(&self) -> Vec<anyhow::Error> {
        let secret = self.secret_file.as_ref();
        let found = [
            privileges::check_user(self),
            secret.map_or(Ok(()), |_| self.load_keys().map(drop)),
            self.load_tls().map(drop),
            self.load_accounts().map(drop),
        ];
        found.into_iter().filter_map(Result::err).collect()
    }
}
