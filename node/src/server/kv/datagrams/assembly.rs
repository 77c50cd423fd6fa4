//! Requests that come in several datagrams: kept until all are there, or for a while. Whoever sends datagrams
//! can name any sender, so all that is kept here is bounded, and what is no request is dropped whole.
use super::frame::Frame;
use quorumwire_control::Now;
use quorumwire_interfaces::counters;
use quorumwire_kv::memcached::REQUEST_BYTES_MAX;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Most datagrams of one request: the longest one in datagrams that fit an MTU of 1500, and some more.
pub const REQUEST_DATAGRAMS_MAX: u16 = 1024;
/// Requests that may be incomplete at once; the first datagram of one more is dropped.
pub const INCOMPLETE_MAX: usize = 64;
/// Bytes of all incomplete requests together.
pub const INCOMPLETE_BYTES_MAX: usize = 4 << 20;
/// How long the datagrams of a request may take to come.
pub const ASSEMBLY_TIMEOUT: Duration = Duration::from_secs(1);

counters! {
    /// Requests that came in several datagrams.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct AssemblyCounters {
        /// Requests over UDP put together of several datagrams
        pub whole: "datagram_requests_assembled",
        /// Parts of requests over UDP dropped because the request has too many, or too many bytes
        pub too_long: "datagram_dropped_request_too_long",
        /// Parts of requests over UDP dropped because too much of incomplete requests waited
        pub no_room: "datagram_dropped_no_room",
        /// Incomplete requests over UDP given up because their number came with something else
        pub contradicted: "datagram_requests_contradicted",
        /// Requests over UDP given up because not all of their datagrams came in time
        pub expired: "datagram_requests_incomplete",
        /// Parts of requests over UDP that came again
        pub repeated: "datagram_dropped_repeated",
    }
}

/// A request of which datagrams are missing.
struct Incomplete {
    count: u16,
    bodies: BTreeMap<u16, Box<[u8]>>,
    /// Bytes of the bodies.
    bytes: usize,
    /// Bytes that came for it, frames included.
    datagram_bytes: usize,
    since: Now,
}

/// A request put together.
#[derive(Debug, Eq, PartialEq)]
pub struct Whole {
    pub body: Vec<u8>,
    /// Bytes of all its datagrams, frames included.
    pub datagram_bytes: usize,
}

/// All incomplete requests, by sender and the sender's number for them.
#[derive(Default)]
pub struct Assembly {
    incomplete: BTreeMap<(SocketAddr, u16), Incomplete>,
    bytes: usize,
    pub counters: AssemblyCounters,
}

impl Assembly {
    /// Takes one of several datagrams; gives the request if that was the last that was missing.
    pub fn take(
        &mut self,
        from: SocketAddr,
        frame: &Frame<'_>,
        datagram_bytes: usize,
        now: Now,
    ) -> Option<Whole> {
        if frame.count > REQUEST_DATAGRAMS_MAX {
            self.counters.too_long += 1;
            return None;
        }
        let name = (from, frame.request);
        if let Some(known) = self.incomplete.get(&name) {
            match known.bodies.get(&frame.number) {
                Some(body) if **body == *frame.body && known.count == frame.count => {
                    self.counters.repeated += 1;
                    return None;
                }
                None if known.count == frame.count => {}
                // The sender has given that one up and uses its number again.
                Some(_) | None => {
                    self.forget(name);
                    self.counters.contradicted += 1;
                }
            }
        }
        let is_new = !self.incomplete.contains_key(&name);
        if self.bytes + frame.body.len() > INCOMPLETE_BYTES_MAX
            || is_new && self.incomplete.len() >= INCOMPLETE_MAX
        {
            self.counters.no_room += 1;
            return None;
        }
        self.bytes += frame.body.len();
        let incomplete = self.incomplete.entry(name).or_insert_with(|| Incomplete {
            count: frame.count,
            bodies: BTreeMap::new(),
            bytes: 0,
            datagram_bytes: 0,
            since: now,
        });
        incomplete.bodies.insert(frame.number, frame.body.into());
        incomplete.bytes += frame.body.len();
        incomplete.datagram_bytes += datagram_bytes;
        if incomplete.bytes > REQUEST_BYTES_MAX {
            self.forget(name);
            self.counters.too_long += 1;
            return None;
        }
        if incomplete.bodies.len() < usize::from(incomplete.count) {
            return None;
        }
        let whole = self.forget(name)?;
        self.counters.whole += 1;
        Some(Whole {
            body: whole.bodies.into_values().flatten().collect(),
            datagram_bytes: whole.datagram_bytes,
        })
    }

    /// Gives up what has waited for too long.
    pub fn time_out(&mut self, now: Now) {
        let is_late = |it: &Incomplete| now.0.saturating_sub(it.since.0) > ASSEMBLY_TIMEOUT;
        let late = self.incomplete.iter().filter(|(_, it)| is_late(it));
        let late: Vec<_> = late.map(|(name, _)| *name).collect();
        for name in late {
            self.forget(name);
            self.counters.expired += 1;
        }
    }

    fn forget(&mut self, name: (SocketAddr, u16)) -> Option<Incomplete> {
        let forgotten = self.incomplete.remove(&name)?;
        self.bytes -= forgotten.bytes;
        Some(forgotten)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Now(Duration::from_secs(100));

    fn from(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn frame(request: u16, number: u16, count: u16, body: &[u8]) -> Frame<'_> {
        Frame {
            request,
            number,
            count,
            body,
        }
    }

    #[test]
    fn a_request_is_whole_in_whatever_order_its_datagrams_come() {
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut assembly = Assembly::default();
            let bodies: [&[u8]; 3] = [b"get ", b"a ", b"b\r\n"];
            for (place, number) in order.into_iter().enumerate() {
                let piece = frame(7, number, 3, bodies[usize::from(number)]);
                let other = frame(7, number, 3, b"other");
                assert_eq!(
                    assembly.take(from(2), &other, 13, NOW).is_some(),
                    place == 2
                );
                let whole = assembly.take(from(1), &piece, 10, NOW);
                let expected = (place == 2).then(|| Whole {
                    body: b"get a b\r\n".to_vec(),
                    datagram_bytes: 30,
                });
                assert_eq!(whole, expected);
            }
            assert_eq!((assembly.bytes, assembly.incomplete.len()), (0, 0));
            assert_eq!(assembly.counters.whole, 2);
        }
    }

    #[test]
    fn what_comes_again_changes_nothing_and_what_contradicts_begins_anew() {
        let mut assembly = Assembly::default();
        let at = from(1);
        assert_eq!(assembly.take(at, &frame(1, 0, 2, b"old"), 11, NOW), None);
        assert_eq!(assembly.take(at, &frame(1, 0, 2, b"old"), 11, NOW), None);
        assert_eq!(assembly.counters.repeated, 1);
        assert_eq!(assembly.take(at, &frame(1, 0, 2, b"new"), 11, NOW), None);
        assert_eq!(assembly.take(at, &frame(1, 1, 3, b"x"), 9, NOW), None);
        assert_eq!(assembly.counters.contradicted, 2);
        assert_eq!(assembly.take(at, &frame(1, 0, 3, b"x"), 9, NOW), None);
        let whole = assembly.take(at, &frame(1, 2, 3, b"y"), 9, NOW);
        assert_eq!(whole.map(|it| it.body), Some(b"xxy".to_vec()));
    }

    #[test]
    fn everything_is_bounded() {
        let mut assembly = Assembly::default();
        let long = frame(1, 0, REQUEST_DATAGRAMS_MAX + 1, b"x");
        assert_eq!(assembly.take(from(1), &long, 9, NOW), None);
        assert_eq!(assembly.counters.too_long, 1);
        let body = vec![b'x'; 60_000];
        for number in 0..18 {
            let piece = frame(1, number, 100, &body);
            assert_eq!(assembly.take(from(1), &piece, 60_008, NOW), None);
        }
        assert_eq!(assembly.counters.too_long, 2);
        assert_eq!((assembly.bytes, assembly.incomplete.len()), (0, 0));
        for request in 0..200 {
            let piece = frame(request, 0, 2, &body);
            assert_eq!(assembly.take(from(1), &piece, 60_008, NOW), None);
            assert!(assembly.bytes <= INCOMPLETE_BYTES_MAX);
            assert!(assembly.incomplete.len() <= INCOMPLETE_MAX);
        }
        assert_eq!(assembly.incomplete.len(), INCOMPLETE_MAX);
        assert_eq!(assembly.counters.no_room, 200 - INCOMPLETE_MAX as u64);
        for request in 0..64 {
            for number in 1..10 {
                let piece = frame(request, number, 100, &body);
                assert_eq!(assembly.take(from(1), &piece, 60_008, NOW), None);
                assert!(assembly.bytes <= INCOMPLETE_BYTES_MAX);
            }
        }
        assert!(assembly.counters.no_room > 200);
        assembly.time_out(NOW);
        assert_eq!(assembly.counters.expired, 0);
        assembly.time_out(Now(NOW.0 + ASSEMBLY_TIMEOUT + Duration::from_millis(1)));
        assert_eq!(assembly.counters.expired, INCOMPLETE_MAX as u64);
        assert_eq!((assembly.bytes, assembly.incomplete.len()), (0, 0));
    }
}

#[cfg(test)]
#[path = "fuzz_test.rs"]
mod fuzz_test;
