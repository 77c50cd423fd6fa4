//! Memcached clients of real processes: meta commands and statistics, asked of the leader, of a follower and
//! over UDP.
use super::udp_cluster::{Cluster, Memcached};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

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

/// The figures of an answer to `stats`.
fn figures(answer: &str) -> BTreeMap<&str, &str> {
    let lines = answer.strip_suffix("END\r\n").expect(answer).lines();
    lines
        .map(|line| {
            let line = line.strip_prefix("STAT ").expect(line);
            line.split_once(' ').expect(line)
        })
        .collect()
}

#[test]
fn statistics_are_those_that_tools_read() {
    let cluster = Cluster::start(
        &["--durability", "memory", "--plane", "none"],
        &["--memcached-udp"],
    );
    let leader = cluster.leader();
    for id in [leader, (leader + 1) % 3] {
        let address = cluster.memcached_address(id);
        assert_eq!(ask(address, "stats reset\r\n"), "RESET\r\n");
        ask(
            address,
            "set a 0 0 1\r\n1\r\nget a b\r\nincr a 1\r\ndecr b 1\r\nmd b\r\ntouch a 0\r\n\
             cas a 0 0 1 1\r\n1\r\nmg a\r\nme a\r\nma a MD\r\nset a x 0 1\r\n1\r\n",
        );
        let answer = ask(address, "stats\r\n");
        let found = figures(&answer);
        // A follower counts the commands that it has applied, and no reads: the leader answers those.
        let counts = [
            ("cmd_get", "3"),
            ("get_hits", "2"),
            ("get_misses", "1"),
            ("cmd_set", "2"),
            ("cmd_meta", "1"),
            ("cmd_touch", "1"),
            ("touch_hits", "1"),
            ("touch_misses", "0"),
            ("incr_hits", "1"),
            ("decr_hits", "1"),
            ("decr_misses", "1"),
            ("delete_hits", "0"),
            ("delete_misses", "1"),
            ("cas_badval", "1"),
            ("curr_items", "1"),
            ("total_items", "1"),
            ("evictions", "0"),
            ("refused_requests", "1"),
        ];
        for (name, count) in counts {
            let found = found.get(name).expect(name);
            assert!(id != leader || *found == count, "{name} of {answer}");
        }
        for name in ["bytes_read", "bytes_written", "total_connections", "time"] {
            let count: u64 = found[name].parse().unwrap();
            assert!(count > 0, "{name} of {answer}");
        }
        assert!(found["rusage_user"].parse::<f64>().is_ok());
        assert!(found["version"].starts_with("1.6.18-quorumwire-"));
        let port = address.port().to_string();
        let answer = ask(address, "stats settings\r\n");
        let settings = figures(&answer);
        assert_eq!((settings["tcpport"], settings["udpport"]), (&*port, &*port));
        assert_eq!(settings["item_size_max"], "1048576");
        // That either can be on is looked at where it is: tests/cluster/tests/tls.rs.
        for name in ["auth_enabled_ascii", "ssl_enabled"] {
            assert_eq!(settings[name], "no", "{name}");
        }
        let answer = ask(address, "stats slabs\r\n");
        assert_eq!(figures(&answer)["active_slabs"], "0");
        let answer = ask(address, "stats sizes\r\n");
        assert_eq!(answer, "STAT sizes_status disabled\r\nEND\r\n");
        assert_eq!(ask(address, "stats items\r\n"), "END\r\n");
        assert_eq!(ask(address, "stats nothing\r\n"), "ERROR\r\n");
        let _other = TcpStream::connect(address).unwrap();
        // Others may not be taken on yet; in order with what else is asked.
        let answer = ask(address, "mn\r\nstats conns\r\nstats conns\r\nget b\r\n");
        let conns = answer.strip_prefix("MN\r\n").unwrap();
        let conns = conns.strip_suffix("END\r\n").unwrap();
        let (first, second) = conns.split_once("END\r\n").unwrap();
        for answer in [format!("{first}END\r\n"), second.to_owned()] {
            let found = figures(&answer);
            let listens = |value: &&str| *value == format!("tcp:{address}");
            assert!(found.values().any(listens), "{answer}");
            assert!(found.values().any(|value| *value == "conn_parse_cmd"));
        }
        let mut memcached = Memcached::connect(address);
        let answer = memcached.ask(b"stats conns\r\n");
        assert!(answer.starts_with(b"SERVER_ERROR answer too large"));
    }
    cluster.stop();
}
