//! What systemd is told (`sd_notify`): that the replica serves, what it does, that it stops. Nothing, where
//! no service manager asked for it. What cannot be sent is left out: the manager has timeouts of its own.
use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The environment variable that names the socket.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// Who started this process and wants to hear how it does.
#[derive(Debug, Default)]
pub struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    is_ready: bool,
    stops: bool,
    /// What it was told last.
    status: String,
}

impl ServiceManager {
    /// The one that the environment names, or nobody.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self::at(env::var_os(VARIABLE).as_deref())
    }

    /// The one that listens at this socket, if any is named.
    #[must_use]
    pub fn at(name: Option<&OsStr>) -> Self {
        let socket = name.and_then(|name| match open(name) {
            Ok(socket) => Some(socket),
            Err(error) => {
                tracing::warn!(%error, ?name, "{VARIABLE} is not a socket: the service manager is not told that this server is ready");
                None
            }
        });
        Self {
            socket,
            ..Self::default()
        }
    }

    /// Tells what has changed: once, that the replica serves; each time, what it is in the cluster.
    pub fn tell(&mut self, is_ready: bool, status: &str) {
        if self.socket.is_none() || self.stops {
            return;
        }
        let mut lines = String::new();
        if is_ready && !self.is_ready {
            self.is_ready = true;
            lines.push_str("READY=1\n");
        }
        if status != self.status {
            status.clone_into(&mut self.status);
            lines.push_str("STATUS=");
            lines.push_str(status);
            lines.push('\n');
        }
        self.send(&lines);
    }

    /// The replica takes nothing on any more.
    pub fn stops(&mut self) {
        self.stops = true;
        self.send("STOPPING=1\nSTATUS=stopping\n");
    }

    fn send(&mut self, lines: &str) {
        if let Some((socket, manager)) = &self.socket
            && !lines.is_empty()
            && let Err(error) = socket.send_to_addr(lines.as_bytes(), manager)
        {
            tracing::debug!(%error, "the service manager was not told {lines:?}");
        }
    }
}

/// A name that begins with `@` is in no folder.
fn open(name: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let manager = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
        [b'/', ..] => SocketAddr::from_pathname(name)?,
        _ => return Err(io::Error::from(io::ErrorKind::InvalidInput)),
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?; // a manager that does not listen must not stop us
    Ok((socket, manager))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        socket.set_nonblocking(true).unwrap();
        let mut bytes = [0; 256];
        let length = socket.recv(&mut bytes).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[test]
    fn the_manager_hears_each_change_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let mut manager = ServiceManager::at(Some(path.as_os_str()));
        manager.tell(false, "no leader");
        assert_eq!(heard(&socket), "STATUS=no leader\n");
        manager.tell(false, "no leader");
        assert_eq!(heard(&socket), "");
        manager.tell(true, "follower");
        assert_eq!(heard(&socket), "READY=1\nSTATUS=follower\n");
        manager.tell(false, "no leader");
        manager.tell(true, "follower");
        assert_eq!(heard(&socket), "STATUS=no leader\n");
        assert_eq!(heard(&socket), "STATUS=follower\n", "ready once is enough");
        manager.stops();
        manager.tell(true, "leader");
        assert_eq!(heard(&socket), "STOPPING=1\nSTATUS=stopping\n");
        assert_eq!(heard(&socket), "");
    }

    #[test]
    fn a_socket_in_no_folder_hears_too() {
        let name = format!("quorumwire-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        let mut manager = ServiceManager::at(Some(OsStr::new(&format!("@{name}"))));
        manager.tell(true, "leader");
        assert_eq!(heard(&socket), "READY=1\nSTATUS=leader\n");
    }

    #[test]
    fn nobody_who_asks_and_nobody_who_listens_are_no_error() {
        for name in [None, Some("/no/such/socket"), Some("nonsense"), Some("")] {
            let mut manager = ServiceManager::at(name.map(OsStr::new));
            manager.tell(true, "leader");
            manager.stops();
        }
    }
}
