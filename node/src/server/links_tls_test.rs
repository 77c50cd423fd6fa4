//! Who is let in under TLS, over real sockets: strangers of every kind speak from threads of their own, with
//! the same library and certificates made for it.
use super::tests::{DEADLINE, Host, a_key, only_at, proof};
use super::*;
use crate::key_folder::KeyFolder;
use crate::tls::{
    OwnFiles, PeerFiles, provider, read_certificates, read_key, replica_name, store_of,
};
use quorumwire_interfaces::Lineage;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

/// What a stranger heard until it was sent away: of our protocol, that is, within TLS.
type ReceivedBytes = JoinHandle<Vec<u8>>;

/// Somebody who shows this and says that it is this replica.
fn stranger(host: &Host, shows: Option<&OwnFiles>, says: (&str, u16)) -> ReceivedBytes {
    speaker(host, shows, &quorumwire_wire::hello(says.0, says.1, 5), &[])
}

/// The same, who goes on with these.
fn speaker(
    host: &Host,
    shows: Option<&OwnFiles>,
    hello: &peer::Hello,
    goes_on: &[peer::PeerMessage],
) -> ReceivedBytes {
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(store_of(host.authorities.clone()).unwrap());
    let config = match shows {
        None => config.with_no_client_auth(),
        Some(own) => {
            let chain = read_certificates(&own.certificate).unwrap();
            config
                .with_client_auth_cert(chain, read_key(&own.key).unwrap())
                .unwrap()
        }
    };
    let name = ServerName::try_from(replica_name(ReplicaId(0), "test")).unwrap();
    let tls = ClientConnection::new(Arc::new(config), name).unwrap();
    let hello = peer::PeerMessage {
        body: Some(Body::Hello(hello.clone())),
        ..peer::PeerMessage::default()
    };
    let mut frame = BytesMut::new();
    encode_frame(&mut frame, &hello, &[]);
    for message in goes_on {
        encode_frame(&mut frame, message, &[]);
    }
    let address = host.address;
    thread::spawn(move || {
        let socket = std::net::TcpStream::connect(address).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let mut stream = StreamOwned::new(tls, socket);
        let mut heard = Vec::new();
        if stream.write_all(&frame).is_ok() {
            stream.read_to_end(&mut heard).ok(); // an alert, or a reset
        }
        heard
    })
}

struct Cluster {
    _dir: tempfile::TempDir,
    keys: KeyFolder,
}

/// A cluster of this name with replicas 0 to 2.
fn cluster(name: &str) -> Cluster {
    let dir = tempfile::tempdir().unwrap();
    let members = (0..3).map(|id| (ReplicaId(id), Vec::new())).collect();
    let keys = KeyFolder::create(&dir.path().join("keys"), name, &members, 30).unwrap();
    Cluster { _dir: dir, keys }
}

impl Cluster {
    fn files(&self, id: u16) -> PeerFiles {
        self.keys.peer_files(ReplicaId(id))
    }

    fn tls(&self) -> PeerTls {
        PeerTls::load(&self.files(0), "test", ReplicaId(0)).unwrap()
    }

    /// Replica 0.
    fn host(&self) -> Host {
        let mut host = Host::start();
        host.links.set_tls(self.tls());
        host.authorities = read_certificates(&self.files(0).authorities).unwrap();
        host
    }
}

fn refused(links: &Links, refusal: TlsRefusal) -> u64 {
    links.counters.refused_by_tls.of(refusal)
}

/// Turns until the stranger was refused for this; it must have heard nothing.
fn is_refused(host: &mut Host, heard: ReceivedBytes, refusal: TlsRefusal) {
    host.turn_while(|links, told| {
        assert!(told.is_empty(), "nobody may notice");
        refused(links, refusal) == 0
    });
    assert_eq!(heard.join().unwrap(), b"", "{refusal:?}");
    let all = host.links.counters.refused_by_tls.sum();
    assert_eq!(all, 1);
    let said: Vec<_> = host.links.refusals().collect();
    assert!(said.concat().contains(&refusal.to_string()), "{said:?}");
    assert_eq!(host.links.slots.iter().flatten().count(), 0, "closed");
}

#[test]
fn a_replica_of_the_cluster_is_let_in() {
    let ours = cluster("test");
    let mut host = ours.host();
    let heard = stranger(&host, Some(&ours.files(1).own), ("test", 1));
    let is_up = |event: &LinkEvent| matches!(event, LinkEvent::Up(peer, _) if peer.id.0 == 1);
    host.turn_while(|_, told| !told.iter().any(is_up));
    drop(host);
    assert!(!heard.join().unwrap().is_empty(), "a hello");
}

#[test]
fn a_key_passes_between_those_whom_certificates_name() {
    let ours = cluster("test");
    let mut host = ours.host();
    let replica_1 = Peer {
        id: ReplicaId(1),
        incarnation: Incarnation(5),
    };
    assert!(!host.links.send_secret(replica_1, &a_key()));
    assert_eq!(host.links.counters.dropped_not_connected, 1);
    let shows = ours.files(1).own;
    let heard = speaker(
        &host,
        Some(&shows),
        &quorumwire_wire::hello("test", 1, 5),
        &[a_key()],
    );
    let is_key = |event: &LinkEvent| match event {
        LinkEvent::Message { from, message, .. } => *from == replica_1 && *message == a_key(),
        LinkEvent::Up(..) | LinkEvent::Down(_) | LinkEvent::Proved { .. } => false,
    };
    host.turn_while(|_, told| !told.iter().any(is_key));
    assert!(host.links.send_secret(replica_1, &a_key()));
    assert_eq!(host.links.counters.dropped_not_certified, 0);
    host.links.write(Now::default(), &mut Vec::new());
    // What the certificate names is what counts, were it ever another than was said.
    for link in host.links.slots.iter_mut().flatten() {
        link.certified = Some(ReplicaId(2));
    }
    assert!(!host.links.send_secret(replica_1, &a_key()));
    assert_eq!(host.links.counters.dropped_not_certified, 1);
    drop(host);
    let secret = a_key().encode_to_vec();
    let heard = heard.join().unwrap();
    let count = heard.windows(secret.len()).filter(|it| *it == secret);
    assert_eq!(count.count(), 1);
}

#[test]
fn who_shows_nothing_hears_nothing() {
    let mut host = cluster("test").host();
    let heard = stranger(&host, None, ("test", 1));
    is_refused(&mut host, heard, TlsRefusal::NoCertificate);
}

#[test]
fn another_authority_is_none() {
    let (mut host, other) = (cluster("test").host(), cluster("test"));
    let heard = stranger(&host, Some(&other.files(1).own), ("test", 1));
    is_refused(&mut host, heard, TlsRefusal::UnknownAuthority);
}

#[test]
fn the_operator_is_no_replica() {
    let ours = cluster("test");
    let mut host = ours.host();
    let beside = |file| ours.keys.secret_file().with_file_name(file);
    let operator = OwnFiles {
        certificate: beside("operator.pem"),
        key: beside("operator-key.pem"),
    };
    let heard = stranger(&host, Some(&operator), ("test", 1));
    is_refused(&mut host, heard, TlsRefusal::WrongName);
}

#[test]
fn an_expired_certificate_is_none() {
    let mut ours = cluster("test");
    let mut host = ours.host();
    let earlier = SystemTime::now() - Duration::from_hours(31 * 24);
    ours.keys.renew_as_of(earlier).unwrap();
    let heard = stranger(&host, Some(&ours.files(1).own), ("test", 1));
    is_refused(&mut host, heard, TlsRefusal::Expired);
}

#[test]
fn one_that_holds_later_is_none_yet() {
    let mut ours = cluster("test");
    let mut host = ours.host();
    let later = SystemTime::now() + Duration::from_hours(2);
    ours.keys.renew_as_of(later).unwrap();
    let heard = stranger(&host, Some(&ours.files(1).own), ("test", 1));
    is_refused(&mut host, heard, TlsRefusal::Expired);
}

/// It has heard our hello, as replica 1 may; what it says is not believed.
#[test]
fn one_replica_cannot_say_that_it_is_another() {
    let ours = cluster("test");
    let mut host = ours.host();
    let heard = stranger(&host, Some(&ours.files(1).own), ("test", 2));
    host.turn_while(|links, told| {
        assert!(told.is_empty());
        refused(links, TlsRefusal::WrongName) == 0
    });
    heard.join().unwrap();
    assert_eq!(host.links.slots.iter().flatten().count(), 0, "closed");
}

/// Nor that another one is of another cluster.
#[test]
fn one_replica_cannot_say_that_another_is_foreign() {
    let ours = cluster("test");
    let mut host = ours.host();
    host.links.set_cluster(Lineage(0xa), true, &mut Vec::new());
    let foreign = peer::Hello {
        lineage: quorumwire_wire::lineage_to_proto(Lineage(0xb)),
        ..quorumwire_wire::hello("test", 2, 5)
    };
    let heard = speaker(&host, Some(&ours.files(1).own), &foreign, &[]);
    host.turn_while(|links, told| {
        assert!(told.is_empty());
        links.slots.iter().flatten().count() > 0 || links.counters.bytes_in == 0
    });
    heard.join().unwrap();
    assert_eq!(refused(&host.links, TlsRefusal::WrongName), 1);
    assert_eq!(host.links.foreign(ReplicaId(2)), None);
}

/// It has the right certificate, and says that it belongs to another cluster.
#[test]
fn another_clusters_hello_is_refused() {
    let ours = cluster("test");
    let mut host = ours.host();
    let heard = stranger(&host, Some(&ours.files(1).own), ("other", 1));
    host.turn_while(|links, told| {
        assert!(told.is_empty());
        links.counters.closed_handshake_refused == 0
    });
    heard.join().unwrap();
}

#[test]
fn who_speaks_in_the_clear_hears_an_alert_at_most() {
    let mut host = cluster("test").host();
    let hello = quorumwire_wire::hello("test", 1, 5);
    let address = host.address;
    let heard = thread::spawn(move || {
        let message = peer::PeerMessage {
            body: Some(Body::Hello(hello)),
            ..peer::PeerMessage::default()
        };
        let mut frame = BytesMut::new();
        encode_frame(&mut frame, &message, &[]);
        let mut socket = std::net::TcpStream::connect(address).unwrap();
        socket.write_all(&frame).unwrap();
        let mut heard = Vec::new();
        socket.read_to_end(&mut heard).ok();
        assert!(heard.len() <= 7, "{heard:?}");
        Vec::new()
    });
    is_refused(&mut host, heard, TlsRefusal::Malformed);
}

#[test]
fn who_says_nothing_is_closed_in_time_and_takes_no_room_from_those_we_dial() {
    let mut host = cluster("test").host();
    let mute: Vec<_> = (0..LINKS_MAX)
        .map(|_| std::net::TcpStream::connect(host.address).unwrap())
        .collect();
    host.turn_while(|links, _| {
        let taken = links.slots.iter().flatten().count();
        assert!(taken <= STRANGERS_MAX);
        links.counters.closed_too_many == 0 || taken < STRANGERS_MAX
    });
    let later = Now(HANDSHAKE_TIMEOUT + Duration::from_secs(20));
    host.links.housekeeping(later, &mut Vec::new());
    assert_eq!(host.links.slots.iter().flatten().count(), 0);
    let closed = host.links.counters.closed_handshake_timeout;
    assert_eq!(closed, STRANGERS_MAX as u64);
    drop(mute);
}

#[test]
fn a_dialed_host_that_is_not_that_replica_hears_nothing() {
    let ours = cluster("test");
    let (mut host, mut wrong) = (ours.host(), ours.host());
    // Replica 0 is at the address at which replica 1 should be.
    let address = wrong.address.to_string();
    host.links
        .set_addresses(&only_at(ReplicaId(1), address), Now::default());
    host.links.housekeeping(Now::default(), &mut Vec::new());
    let end = std::time::Instant::now() + Duration::from_secs(10);
    while refused(&host.links, TlsRefusal::WrongName) == 0 {
        assert!(std::time::Instant::now() < end);
        for host in [&mut host, &mut wrong] {
            host.turn_while(|_, told| {
                assert!(told.is_empty());
                false
            });
        }
    }
}

#[test]
fn a_replica_is_found_at_an_address_by_its_certificate_and_hello() {
    let mut host = cluster("test").host();
    let own = host.address.to_string();
    let found = proof(&mut host, ReplicaId(0), &own).unwrap();
    assert_eq!(
        (found.id, found.incarnation),
        (ReplicaId(0), Incarnation(1))
    );
    let error = proof(&mut host, ReplicaId(1), &own).unwrap_err();
    assert!(error.contains("replica-0.test"), "{error}");
}

#[test]
fn a_connection_whose_authority_is_gone_is_known_and_goes_on_until_it_ends() {
    let (ours, others) = (cluster("test"), cluster("test"));
    let mut host = ours.host();
    let heard = stranger(&host, Some(&ours.files(1).own), ("test", 1));
    let is_up = |event: &LinkEvent| matches!(event, LinkEvent::Up(..));
    host.turn_while(|_, told| !told.iter().any(is_up));
    assert_eq!(host.links.set_tls(ours.tls()), [], "the same files again");
    assert_eq!(host.links.set_tls(others.tls()), [ReplicaId(1)]);
    host.authorities = read_certificates(&others.files(0).authorities).unwrap();
    assert!(host.links.info(ReplicaId(1)).is_some());
    let again = stranger(&host, Some(&ours.files(1).own), ("test", 1));
    is_refused_beside(&mut host, again);
    drop(host);
    assert!(!heard.join().unwrap().is_empty());
}

/// Whoever comes under the old authority is refused, beside the one that is connected.
fn is_refused_beside(host: &mut Host, again: ReceivedBytes) {
    host.turn_while(|links, _| refused(links, TlsRefusal::UnknownAuthority) == 0);
    assert_eq!(again.join().unwrap(), b"");
}

#[test]
fn strangers_who_take_all_places_do_not_keep_a_replica_out() {
    let ours = cluster("test");
    let mut host = ours.host();
    let mute: Vec<_> = (0..LINKS_MAX)
        .map(|_| std::net::TcpStream::connect(host.address).unwrap())
        .collect();
    host.turn_while(|links, _| links.slots.iter().flatten().count() < STRANGERS_MAX);
    let heard = stranger(&host, Some(&ours.files(1).own), ("test", 1));
    let is_up = |event: &LinkEvent| matches!(event, LinkEvent::Up(..));
    host.turn_while(|_, told| !told.iter().any(is_up));
    assert!(host.links.counters.closed_too_many > 0);
    drop((host, mute));
    assert!(!heard.join().unwrap().is_empty());
}

/// A connection from another address of this machine, at which no replica is.
fn from_elsewhere(host: &Host, last_byte: u8) -> std::net::TcpStream {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let from: SocketAddr = format!("127.0.0.{last_byte}:0").parse().unwrap();
    socket.bind(&from.into()).unwrap();
    socket.connect(&host.address.into()).unwrap();
    socket.into()
}

/// A host that knows that replica 1 is at 127.0.0.1.
fn with_neighbour(ours: &Cluster) -> Host {
    let mut host = ours.host();
    let known = only_at(ReplicaId(1), "127.0.0.1:1".to_owned());
    host.links.set_addresses(&known, Now::default());
    host
}

fn places(host: &Host, is_wanted: impl Fn(&Link) -> bool) -> usize {
    let links = host.links.slots.iter().flatten();
    links.filter(|link| is_wanted(link)).count()
}

#[test]
fn strangers_from_elsewhere_take_neither_place_nor_time_of_replicas() {
    let ours = cluster("test");
    let mut host = with_neighbour(&ours);
    let mut mute: Vec<_> = (0..STRANGERS_MAX)
        .map(|_| from_elsewhere(&host, 2))
        .collect();
    host.turn_while(|links, _| links.slots.iter().flatten().count() < STRANGERS_MAX);
    // Their time is over, and no more is earned: who comes is closed at once, but for a replica.
    host.links.strangers.use_up(Duration::from_hours(1));
    host.links.strangers.begin_turn(Now(DEADLINE));
    host.links.strangers.use_up(Duration::from_hours(1));
    mute.extend((0..40).map(|_| from_elsewhere(&host, 3)));
    let heard = stranger(&host, Some(&ours.files(1).own), ("test", 1));
    let is_up = |event: &LinkEvent| matches!(event, LinkEvent::Up(..));
    host.turn_while(|links, told| {
        links.counters.closed_no_time < 40 || !told.iter().any(is_up) && links.up.is_empty()
    });
    assert_eq!(places(&host, |link| link.peer.is_none()), STRANGERS_MAX);
    assert_eq!(host.links.counters.closed_too_many, 0);
    drop((host, mute));
    assert!(!heard.join().unwrap().is_empty());
}

#[test]
fn a_handshake_waits_for_its_time_and_is_done_then() {
    let ours = cluster("test");
    let mut host = with_neighbour(&ours);
    let heard = stranger(&host, Some(&ours.files(1).own), ("test", 1));
    host.turn_while(|links, _| links.slots.iter().flatten().count() == 0);
    host.links.neighbours = TimeBudget::new(NEIGHBOURS_TIME);
    host.links.neighbours.use_up(NEIGHBOURS_TIME);
    let link = host.links.slots.iter_mut().flatten().next().unwrap();
    link.readable = true;
    let is_started = link.stream.is_established();
    assert!(!is_started);
    let before = host.links.counters.handshakes_postponed;
    host.links.read(Now::default(), &mut Vec::new());
    assert_eq!(host.links.counters.handshakes_postponed, before + 1);
    assert!(!host.links.has_more(), "nothing can be done now");
    host.links
        .neighbours
        .begin_turn(Now(Duration::from_secs(1)));
    assert!(host.links.has_more());
    let is_up = |event: &LinkEvent| matches!(event, LinkEvent::Up(..));
    host.turn_while(|_, told| !told.iter().any(is_up));
    drop(host);
    assert!(!heard.join().unwrap().is_empty());
}

/// Whoever sends one is not driven out by whoever sends many.
#[test]
fn of_strangers_those_give_way_who_are_many() {
    let ours = cluster("test");
    let mut host = with_neighbour(&ours);
    let lonely = from_elsewhere(&host, 9);
    host.turn_while(|links, _| links.slots.iter().flatten().count() < 1);
    let mute: Vec<_> = (0..3 * STRANGERS_MAX)
        .map(|_| from_elsewhere(&host, 2))
        .collect();
    let gave_way = 2 * STRANGERS_MAX as u64 + 1;
    host.turn_while(|links, _| links.counters.closed_too_many < gave_way);
    let from = lonely.local_addr().unwrap().ip();
    assert_eq!(places(&host, |link| link.from == from), 1);
    assert_eq!(places(&host, |link| link.from != from), STRANGERS_MAX - 1);
    drop(mute);
}

#[test]
fn a_flood_is_accepted_as_far_as_there_is_time() {
    let mut host = cluster("test").host();
    let mute: Vec<_> = (0..50).map(|_| from_elsewhere(&host, 2)).collect();
    host.links.accepts.use_up(Duration::from_hours(1));
    host.links.accept(Now::default());
    assert_eq!(
        places(&host, |_| true),
        0,
        "they wait in the listener's queue"
    );
    assert!(!host.links.has_more());
    host.links.begin_turn(Now(Duration::from_secs(1)));
    assert!(places(&host, |_| true) > 0);
    drop(mute);
}

/// The log and what is shown do not grow with the number of strangers.
#[test]
fn who_is_refused_again_and_again_is_shown_once() {
    let mut host = cluster("test").host();
    for count in 1..=30 {
        let mut socket = from_elsewhere(&host, 2);
        socket.write_all(&[0; 64]).unwrap();
        host.turn_while(|links, _| refused(links, TlsRefusal::Malformed) < count);
    }
    assert_eq!(host.links.refusals().count(), 1);
}
