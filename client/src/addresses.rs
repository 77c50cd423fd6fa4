//! What a `HOST:PORT` stands for, and a connection to the first of its addresses that takes one.
use std::future::Future;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// Addresses of one name that are tried, in the order in which the system gives them.
pub const ADDRESSES_OF_NAME_MAX: usize = 8;

/// All addresses that the text stands for: at least one, each once. The system may take seconds to look up a
/// name. An address takes no lookup; its interface may be a number or a name, as in `[fe80::1%eth0]:7400`.
pub fn look_up(text: &str) -> io::Result<Vec<SocketAddr>> {
    if let Ok(known) = text.parse() {
        return Ok(vec![known]);
    }
    let (host, port) = host_and_port(text)?;
    let found = (host, port).to_socket_addrs().map_err(|error| {
        let Some((_, interface)) = host.split_once('%') else {
            return error;
        };
        io::Error::other(format!("this machine has no interface {interface:?}"))
    })?;
    let mut addresses = Vec::new();
    for address in found {
        if !addresses.contains(&address) && addresses.len() < ADDRESSES_OF_NAME_MAX {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return Err(io::Error::other("the name has no address"));
    }
    Ok(addresses)
}

fn host_and_port(text: &str) -> io::Result<(&str, u16)> {
    let split = text.rsplit_once(':');
    let parsed = split.and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = parsed.ok_or_else(|| io::Error::other("it is no HOST:PORT"))?;
    let inner = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    Ok((inner.unwrap_or(host), port))
}

/// Connects to the first of these addresses that takes a connection. Each gets an equal part of the time that
/// is left, so one that says nothing keeps no other from being tried.
pub async fn connect_to_any(addresses: &[SocketAddr], until: Instant) -> io::Result<TcpStream> {
    first_of(addresses, until, connect_within).await
}

async fn connect_within(address: SocketAddr, at_most: Duration) -> io::Result<TcpStream> {
    within(at_most, TcpStream::connect(address)).await
}

async fn within<T>(
    at_most: Duration,
    connecting: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let connected = timeout(at_most, connecting).await;
    connected.unwrap_or_else(|_| Err(io::Error::other("no answer in time")))
}

async fn first_of<T, F: Future<Output = io::Result<T>>>(
    addresses: &[SocketAddr],
    until: Instant,
    connect: impl Fn(SocketAddr, Duration) -> F,
) -> io::Result<T> {
    let mut failures = Vec::new();
    for (place, address) in addresses.iter().enumerate() {
        let left = until.saturating_duration_since(Instant::now());
        let still_to_try = u32::try_from(addresses.len() - place).unwrap_or(u32::MAX);
        match connect(*address, left / still_to_try).await {
            Ok(connected) => return Ok(connected),
            Err(error) => failures.push(format!("{address}: {error}")),
        }
    }
    Err(io::Error::other(failures.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn addresses_are_what_they_say() {
        for text in ["127.0.0.1:7400", "[::1]:7400", "[fe80::1%3]:7400"] {
            assert_eq!(look_up(text).unwrap(), [text.parse().unwrap()], "{text}");
        }
        for text in ["127.0.0.1", "a:b", "", "[::1]", "a:65536"] {
            assert!(look_up(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_interface_may_be_named() {
        let found = look_up("[fe80::1%lo]:7400").unwrap();
        let SocketAddr::V6(found) = found[0] else {
            panic!("{found:?}");
        };
        assert_eq!(
            (found.port(), found.scope_id()),
            (7400, 1),
            "lo is the first"
        );
        let error = look_up("[fe80::1%nowhere]:7400").unwrap_err().to_string();
        assert!(error.contains("no interface \"nowhere\""), "{error}");
    }

    fn in_runtime<T>(body: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(body)
    }

    /// Debian calls `::1` localhost, too, and servers listen at 127.0.0.1.
    #[test]
    fn the_second_address_is_tried_when_the_first_refuses() {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let refuses = closed.local_addr().unwrap();
        drop(closed);
        let open = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let takes = open.local_addr().unwrap();
        in_runtime(async {
            let until = Instant::now() + Duration::from_secs(10);
            let stream = connect_to_any(&[refuses, takes], until).await.unwrap();
            assert_eq!(stream.peer_addr().unwrap(), takes);
            let error = connect_to_any(&[refuses], until)
                .await
                .unwrap_err()
                .to_string();
            assert!(error.contains(&refuses.to_string()), "{error}");
        });
    }

    /// It may be behind a firewall that drops what it does not know.
    #[test]
    fn one_that_says_nothing_leaves_time_for_the_next() {
        let addresses: [SocketAddr; 4] =
            [1, 2, 3, 4].map(|last| SocketAddr::from(([192, 0, 2, last], 1)));
        let whole = Duration::from_mins(1);
        let parts = RefCell::new(Vec::new());
        let connect = async |_, at_most: Duration| -> io::Result<()> {
            parts.borrow_mut().push(at_most);
            Err(io::Error::other("no answer"))
        };
        let tried = in_runtime(async {
            let until = Instant::now() + whole;
            first_of(&addresses, until, connect).await
        });
        let error = tried.unwrap_err().to_string();
        assert!(
            error.starts_with("192.0.2.1:1: no answer, 192.0.2.2:1: "),
            "{error}"
        );
        let parts = parts.into_inner();
        for (part, still_to_try) in parts.iter().zip([4, 3, 2, 1]) {
            let is_part = !part.is_zero() && *part * still_to_try <= whole;
            assert!(is_part, "{parts:?}");
        }
    }

    #[test]
    fn no_more_than_its_part_of_the_time_is_waited_for_one() {
        let silent = std::future::pending::<io::Result<()>>();
        let connected = in_runtime(within(Duration::ZERO, silent));
        assert_eq!(connected.unwrap_err().to_string(), "no answer in time");
    }
}
