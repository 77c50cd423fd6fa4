//! Meta commands with real processes: asked of the leader, of a follower and over UDP, the same answers.
mod udp_cluster;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use udp_cluster::{Cluster, Memcached};

/// The answer of a whole conversation.
fn ask(address: SocketAddr, requests: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(format!("{requests}quit\r\n").as_bytes())
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_stale_item_is_won_once_whoever_is_asked() {
    let cluster = Cluster::start(
        &["--durability", "memory", "--plane", "none"],
        &["--memcached-udp"],
    );
    let leader = cluster.leader();
    let follower = (leader + 1) % 3;
    let [at_leader, at_follower] = [leader, follower].map(|id| cluster.memcached_address(id));
    for (first, second) in [(at_leader, at_follower), (at_follower, at_leader)] {
        let stored = ask(first, "ms key 5 T1000 F7\r\nvalue\r\nmg key v t f\r\n");
        assert!(stored.starts_with("HD\r\nVA 5 t"), "{stored}");
        assert!(stored.ends_with(" f7\r\nvalue\r\n"), "{stored}");
        assert_eq!(
            ask(second, "mg key v k O1\r\n"),
            "VA 5 kkey O1\r\nvalue\r\n"
        );
        assert_eq!(ask(second, "md key I\r\n"), "HD\r\n");
        assert_eq!(ask(first, "mg key v\r\n"), "VA 5 X W\r\nvalue\r\n");
        assert_eq!(ask(second, "mg key v\r\n"), "VA 5 Z X\r\nvalue\r\n");
        assert_eq!(ask(first, "mg key\r\n"), "HD Z X\r\n");
        // One behind the other: what is won by the first is gone for the second.
        assert_eq!(
            ask(first, "md key I q\r\nmg key\r\nmg key\r\nmn\r\n"),
            "HD X W\r\nHD Z X\r\nMN\r\n"
        );
        // A later write does not show in an earlier read.
        assert_eq!(
            ask(
                second,
                "md key I\r\nmg key v s\r\nset key 0 0 1\r\nx\r\nmg key v\r\n"
            )
            .replace(" Z X", " X W"),
            "HD\r\nVA 5 s5 X W\r\nvalue\r\nSTORED\r\nVA 1\r\nx\r\n"
        );
        assert_eq!(
            ask(second, "mg none q\r\nmg none N30\r\nmg none\r\n"),
            "HD W\r\nHD Z\r\n"
        );
        assert_eq!(
            ask(first, "md none q\r\nmg none k\r\nmn\r\n"),
            "EN knone\r\nMN\r\n"
        );
        assert_eq!(
            ask(first, "ms AAE= 2 b\r\nxy\r\nmg AAE= b k v\r\nmd AAE= b\r\n"),
            "HD\r\nVA 2 kAAE= b\r\nxy\r\nHD\r\n"
        );
        assert_eq!(
            ask(
                first,
                "ma n N0 J9\r\nma n v\r\nma n q D5\r\nmg n v\r\nmd n\r\n"
            ),
            "HD\r\nVA 2\r\n10\r\nVA 2\r\n15\r\nHD\r\n"
        );
        assert!(ask(first, "me key\r\n").starts_with("ME key exp=-"));
    }
    for id in [leader, follower] {
        let mut memcached = Memcached::connect(cluster.memcached_address(id));
        assert_eq!(memcached.ask(b"ms udp 1\r\nx\r\n"), b"HD\r\n");
        assert_eq!(memcached.ask(b"md udp I\r\n"), b"HD\r\n");
        let won = memcached.ask(b"mg udp v\r\n");
        // It may have been asked twice.
        let is_won = won == b"VA 1 X W\r\nx\r\n" || won == b"VA 1 Z X\r\nx\r\n";
        assert!(is_won, "{won:?}");
        assert_eq!(memcached.ask(b"mg udp v\r\n"), b"VA 1 Z X\r\nx\r\n");
    }
    cluster.stop();
}
