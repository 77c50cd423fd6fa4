//! Every option: where its value comes from, its limits, and what is said about a wrong one.
use super::table::{CONFIG, Kind, TABLE, Unset, documentation};
use super::{
    Durability, Flags, OnFollower, Origin, Refused, ServerOptions, Serves, ValuesOptions,
    program_words, resolve,
};
use crate::planes::{KINDS, kind_with_option};
use quorumwire_interfaces::ReplicaId;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

type Pairs<'a> = &'a [(&'static str, &'a str)];

const ENOUGH: Pairs<'static> = &[
    ("id", "1"),
    ("dir", "data"),
    ("members", "0=127.0.0.1:1,1=127.0.0.1:2"),
];

fn load(flags: Pairs<'_>, environment: Pairs<'_>) -> Result<ServerOptions, Refused> {
    let given = ENOUGH.iter().chain(flags);
    let given = given.map(|(name, text)| (*name, (*text).to_owned()));
    load_exactly(&Flags(given.collect(), Serves::Store), environment)
}

fn load_exactly(flags: &Flags, environment: Pairs<'_>) -> Result<ServerOptions, Refused> {
    let environment: BTreeMap<&str, &str> = environment.iter().copied().collect();
    let values = resolve(flags, &|variable| {
        environment.get(variable).map(OsString::from)
    })?;
    ServerOptions::from_values(&values)
}

fn refused(flags: Pairs<'_>) -> Refused {
    load(flags, &[]).expect_err("these options make no sense")
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

#[test]
fn defaults_are_those_of_the_table() {
    let options = load(&[], &[]).unwrap();
    assert_eq!(options.id, ReplicaId(1));
    assert_eq!(options.cluster, "quorumwire");
    assert_eq!(options.durability, Durability::Sync);
    assert_eq!(options.on_follower, OnFollower::Forward);
    assert_eq!(options.election_timeout, Duration::from_millis(400));
    assert_eq!(options.heartbeat_interval, Duration::from_millis(5));
    assert_eq!(options.lease, Duration::from_millis(20));
    assert_eq!(options.listen_peer, "127.0.0.1:7400".parse().unwrap());
    assert_eq!(options.listen_memcached, "127.0.0.1:11211".parse().unwrap());
    assert_eq!(options.listen_http, "127.0.0.1:7480".parse().unwrap());
    assert_eq!(options.snapshot_log_bytes, 64 << 20);
    assert_eq!(options.connections_max, 10_000);
    assert!(!options.join);
}

#[test]
fn a_flag_wins_over_environment_over_file_over_default() {
    let file = file("connections_max = 3\nlog_tail_mib = 4\nsegment_mib = 5\n");
    let path = file.path().to_str().unwrap();
    let environment = [
        ("QUORUMWIRE_CONFIG", path),
        ("QUORUMWIRE_CONNECTIONS_MAX", "7"),
        ("QUORUMWIRE_LOG_TAIL_MIB", "6"),
    ];
    let options = load(&[("connections-max", "9")], &environment).unwrap();
    assert_eq!(options.connections_max, 9, "the flag");
    assert_eq!(options.log_tail_bytes, 6 << 20, "the environment");
    assert_eq!(options.segment_bytes, 5 << 20, "the file");
    assert_eq!(options.uncommitted_bytes_max, 64 << 20, "the default");
}

#[test]
fn a_file_can_hold_every_option() {
    let mut text = String::new();
    for spec in TABLE.iter() {
        let value = match spec.kind {
            Kind::Number { max, .. } if spec.name == "heartbeat-ms" => (max / 2).to_string(),
            Kind::Number { max, .. } => max.to_string(),
            Kind::Switch if spec.name == "memcached-udp" => "false".to_owned(), // not with accounts, or TLS
            Kind::Switch => "true".to_owned(),
            Kind::Choice(_) if spec.name == "plane" => format!("\"{}\"", KINDS[0].name), // some are for it only
            Kind::Choice(words) => format!("\"{}\"", words[1]),
            Kind::Text { .. } if spec.name == "learners" => "\"1,2\"".to_owned(),
            Kind::Text { .. } | Kind::Path => "\"text\"".to_owned(),
            Kind::Listen => "\"127.0.0.1:0\"".to_owned(),
            Kind::Reachable => "\"host:1\"".to_owned(),
            Kind::Address => "\"[::1]:1\"".to_owned(),
            Kind::Multicast => "\"239.1.2.3\"".to_owned(),
            Kind::Members => "\"0=a:1,65535=[::1]:2\"".to_owned(),
        };
        writeln!(text, "{} = {value}", spec.key()).unwrap();
    }
    let file = file(&text);
    let flags = [("config", file.path().to_str().unwrap().to_owned())];
    let options = load_exactly(&Flags(flags.into(), Serves::Store), &[]).unwrap();
    assert_eq!(options.id, ReplicaId(u16::MAX));
    assert_eq!(options.durability, Durability::Memory);
    assert_eq!(options.on_follower, OnFollower::Refuse);
    assert_eq!(options.members[&ReplicaId(u16::MAX)], "[::1]:2");
    assert_eq!(options.advertise_http.as_deref(), Some("host:1"));
    assert!(options.join);
}

#[test]
fn learners_take_the_place_of_the_store() {
    assert_eq!(load(&[], &[]).unwrap().values, None);
    let values = load(&[("learners", "2,1"), ("values-mib", "8")], &[]).unwrap();
    let expected = ValuesOptions {
        learners: vec![1, 2],
        kept_bytes_max: 8 << 20,
    };
    assert_eq!(values.values, Some(expected));
    let twice = ("learners", "1,1");
    let error = refused(&[twice]);
    assert_eq!((&error.option[..], &error.given[..]), twice);
    let udp = ("memcached-udp", "true");
    let error = refused(&[("learners", "1"), udp]);
    assert_eq!((&error.option[..], &error.given[..]), udp);
}

#[test]
fn what_the_plane_in_the_kernel_needs_is_said_by_name() {
    let secret = ("secret-file", "secret.toml");
    let xdp = ("plane", "xdp");
    let anywhere = ("listen-plane", "0.0.0.0:7401");
    let error = refused(&[xdp, secret, anywhere, ("insecure", "true")]);
    assert_eq!((&error.option[..], &error.given[..]), anywhere);
    let interface = ("interface", "eth0");
    let error = refused(&[("plane", "socket"), secret, interface]);
    assert_eq!((&error.option[..], &error.given[..]), interface);
    let vlan = ("xdp-vlan", "4094");
    let error = refused(&[("plane", "socket"), secret, vlan]);
    assert_eq!((&error.option[..], &error.given[..]), vlan);
    for plane in [xdp, ("plane", "auto")] {
        let options = load(&[plane, secret, interface, vlan], &[]).unwrap();
        assert_eq!(options.plane_values.text("interface"), Some("eth0"));
        assert_eq!(options.plane_values.parsed("xdp-vlan"), Some(4094));
    }
    let options = load(&[xdp, secret, interface], &[]).unwrap();
    assert_eq!(options.plane_values.text("interface"), Some("eth0"));
    let defaults = [
        ("interface", "eth0"),
        ("xdp-mode", "auto"),
        ("xdp-copies", "auto"),
        ("xdp-vlan", "0"),
    ];
    let defaults = defaults.map(|(name, value)| (name, value.to_owned()));
    assert_eq!(options.plane_values, defaults.into_iter().collect());
    let generic = [("xdp-mode", "generic"), ("xdp-copies", "clone")];
    let group = ("xdp-multicast", "239.1.2.3");
    let options = load(&[xdp, secret, generic[0], generic[1], group], &[]).unwrap();
    for (name, given) in [generic[0], generic[1], group] {
        assert_eq!(options.plane_values.text(name), Some(given));
    }
    for (name, given) in [
        ("xdp-mode", "native"),
        ("xdp-copies", "broadcast"),
        ("xdp-multicast", "10.0.0.1"),
        ("xdp-multicast", "224.0.0.1"),
        ("xdp-multicast", "ff02::1"),
        ("xdp-vlan", "4095"),
    ] {
        let error = refused(&[xdp, secret, (name, given)]);
        assert_eq!((&error.option[..], &error.given[..]), (name, given));
    }
    let error = refused(&[("plane", "socket"), secret, group]);
    assert_eq!((&error.option[..], &error.given[..]), group);
    let queue = ("xdp-queue", "1");
    for plane in [xdp, ("plane", "auto")] {
        let options = load(&[plane, secret, queue], &[]).unwrap();
        assert_eq!(options.plane_values.parsed("xdp-queue"), Some(1));
    }
    let options = load(&[xdp, secret], &[]).unwrap();
    assert_eq!(options.plane_values.text("xdp-queue"), None);
    for refused_at in [("socket", "1"), ("xdp", "65536"), ("xdp", "any")] {
        let queue = ("xdp-queue", refused_at.1);
        let error = refused(&[("plane", refused_at.0), secret, queue]);
        assert_eq!((&error.option[..], &error.given[..]), queue);
    }
    let ipv6 = ("listen-plane", "[::1]:7401");
    let error = refused(&[xdp, secret, ipv6, group]);
    assert_eq!((&error.option[..], &error.given[..]), group);
}

#[test]
fn an_unknown_key_is_refused_by_name() {
    let file = file("elecktion_timeout_ms = 3\n");
    let path = file.path().to_str().unwrap();
    let error = refused(&[("config", path)]);
    assert_eq!(error.option, "elecktion_timeout_ms");
    assert_eq!(error.origin, Origin::File(file.path().to_owned()));
    let meant = "did you mean `election_timeout_ms`?";
    assert_eq!(error.allowed, meant);
}

#[test]
fn the_key_that_is_most_like_an_unknown_one_is_named() {
    let said = |key: &str| {
        let file = file(&format!("{key} = 3\n"));
        refused(&[("config", file.path().to_str().unwrap())]).allowed
    };
    for (key, meant) in [
        ("listen_peers", "listen_peer"),
        ("listen-peer", "listen_peer"),
        ("Listen_Peer", "listen_peer"),
        ("memory_limit", "memory_limit_mib"),
        ("durabilty", "durability"),
        ("member", "members"),
        ("tls_certs", "tls_cert"),
    ] {
        let meant = format!("did you mean `{meant}`?");
        assert_eq!(said(key), meant, "{key}");
    }
    for (key, meant) in [
        (
            "listen",
            "`listen_peer`, `listen_memcached` or `listen_redis`",
        ),
        ("listen-m", "`listen_memcached`"),
    ] {
        let meant = format!("did you mean {meant}?");
        assert_eq!(said(key), meant, "{key}");
    }
    for key in ["zzz", "colour", &"listen_peer".repeat(20)] {
        assert!(said(key).contains("--help"), "{key}: {}", said(key));
    }
}

#[test]
fn wrong_files_are_refused() {
    for (text, option) in [
        ("connections_max = \"3\"", "connections-max"),
        ("join = 1", "join"),
        ("durability = true", "durability"),
        ("config = \"other\"", "config"),
        ("connections_max", "config"),
    ] {
        let file = file(text);
        let error = refused(&[("config", file.path().to_str().unwrap())]);
        assert_eq!(error.option, option, "{text}: {error}");
    }
    assert_eq!(refused(&[("config", "/no/such/file")]).option, "config");
    let large = file(&"#".repeat(usize::try_from(super::resolve::CONFIG_BYTES_MAX).unwrap() + 1));
    let error = refused(&[("config", large.path().to_str().unwrap())]);
    assert!(error.allowed.contains("larger"), "{error}");
}

#[test]
fn every_number_has_both_its_limits() {
    for spec in TABLE.iter() {
        let Kind::Number { min, max, .. } = spec.kind else {
            continue;
        };
        let others: &[(&str, &str)] = match spec.name {
            // The three depend on each other.
            "heartbeat-ms" => &[("election-timeout-ms", "60000"), ("lease-ms", "60000")],
            "lease-ms" => &[("election-timeout-ms", "60000"), ("heartbeat-ms", "1")],
            "election-timeout-ms" => &[("lease-ms", "10"), ("heartbeat-ms", "1")],
            "id" => &[("members", "0=a:1,65535=b:1")],
            name => match kind_with_option(name) {
                Some(kind) => &[("plane", kind.name), ("secret-file", "secret.toml")],
                None => &[],
            },
        };
        let with = |value: String| {
            let mut flags = others.to_vec();
            flags.push((spec.name, &value));
            load(&flags, &[]).map(|_| ())
        };
        let highest = if spec.name == "heartbeat-ms" {
            max - 1
        } else {
            max
        };
        with(min.to_string()).unwrap_or_else(|e| panic!("lowest: {e}"));
        with(highest.to_string()).unwrap_or_else(|e| panic!("highest: {e}"));
        let below = i128::from(min) - 1;
        let wrong = [
            below.to_string(),
            (max + 1).to_string(),
            String::new(),
            "many".to_owned(),
            "1.5".to_owned(),
        ];
        for value in wrong {
            let error = with(value.clone()).expect_err(&value);
            assert_eq!(error.option, spec.name);
            assert_eq!(error.given, value);
            assert!(error.allowed.contains(&max.to_string()), "{error}");
        }
    }
}

#[test]
fn every_choice_takes_its_words_and_no_other() {
    for spec in TABLE.iter() {
        let Kind::Choice(words) = spec.kind else {
            continue;
        };
        for word in words {
            let needed = [&PEER_TLS[..], &[(spec.name, word), ("secret-file", "f")]].concat();
            load(&needed, &[]).unwrap();
        }
        let error = refused(&[(spec.name, "other")]);
        assert_eq!(error.option, spec.name);
        assert!(words.iter().all(|word| error.allowed.contains(word)));
    }
}

#[test]
fn what_must_be_given_is_asked_for_by_name() {
    for spec in TABLE.iter() {
        if !matches!(spec.unset, Unset::Refused) {
            continue;
        }
        let rest = ENOUGH.iter().filter(|(name, _)| *name != spec.name);
        let rest = rest.map(|(name, text)| (*name, (*text).to_owned()));
        let error = load_exactly(&Flags(rest.collect(), Serves::Store), &[]).unwrap_err();
        assert_eq!(error.option, spec.name);
        assert_eq!(error.given, "");
        assert_eq!(error.origin, Origin::Default);
    }
}

#[test]
fn a_heartbeat_is_less_than_half_of_the_lease() {
    let error = refused(&[("lease-ms", "100"), ("heartbeat-ms", "50")]);
    assert_eq!(error.option, "heartbeat-ms");
    assert!(error.allowed.contains("100"), "{error}");
    load(&[("lease-ms", "100"), ("heartbeat-ms", "49")], &[]).unwrap();
}

#[test]
fn a_lease_is_at_most_the_election_timeout() {
    let error = refused(&[("election-timeout-ms", "100"), ("lease-ms", "101")]);
    assert_eq!(error.option, "lease-ms");
    assert!(error.allowed.contains("100"), "{error}");
    load(&[("election-timeout-ms", "100"), ("lease-ms", "100")], &[]).unwrap();
}

#[test]
fn members_are_checked() {
    for text in [
        "",
        "0",
        "0=",
        "=a:1",
        "x=a:1",
        "65536=a:1",
        "-1=a:1",
        "1=a",
        "1=a:0",
        "1=a:65536",
        "1=:1",
        "1=0.0.0.0:1",
        "1=[::]:1",
        "1=::1:1",
        "1=a:1,1=b:1",
        "1=a:1,",
        "1=a b:1",
        "0=a:1,2=c:1",
        "0=host:1,1=HOST:1",
        "1=127.0.0.1:1,2=127.0.0.1:1",
        "1=127.0.0.1:1,2=[::ffff:127.0.0.1]:1",
    ] {
        assert_eq!(refused(&[("members", text)]).option, "members", "{text:?}");
    }
    let many = |count: u16| {
        let members: Vec<String> = (0..count).map(|id| format!("{id}=a:{}", id + 1)).collect();
        members.join(",")
    };
    load(&[("members", &many(7))], &[]).unwrap();
    assert_eq!(refused(&[("members", &many(8))]).option, "members");
    load(&[("members", &many(16)), ("join", "true")], &[]).unwrap();
    let error = refused(&[("members", &many(17)), ("join", "true")]);
    assert_eq!(error.option, "members");
    // A replica that joins need not be among those it contacts.
    load(&[("members", "0=a:1"), ("join", "true")], &[]).unwrap();
}

#[test]
fn one_address_given_twice_is_refused_with_both_names() {
    let error = refused(&[("members", "0=a:1,1=b:1,2=a:1")]).to_string();
    assert!(error.contains("replicas 0 and 2"), "{error}");
    let secret = ("secret-file", "secret.toml");
    let (socket, udp) = (("plane", "socket"), ("memcached-udp", "true"));
    let cases: [(&str, &str, &str, Pairs<'_>); 4] = [
        ("listen-redis", "127.0.0.1:11211", "listen-memcached", &[]),
        ("listen-http", "127.0.0.1:7400", "listen-peer", &[]),
        (
            "listen-client",
            "0.0.0.0:6379",
            "listen-redis",
            &[("insecure", "true")],
        ),
        (
            "listen-plane",
            "127.0.0.1:11211",
            "listen-memcached",
            &[socket, secret, udp],
        ),
    ];
    for (name, given, other, with) in cases {
        let flags = [with, &[(name, given)]].concat();
        let error = refused(&flags);
        let later = if name == "listen-plane" { other } else { name };
        assert_eq!(error.option, later);
        assert!(
            error
                .to_string()
                .contains(if later == name { other } else { name }),
            "{error}"
        );
    }
    // Datagrams and connections do not meet, and a plane that does not run listens nowhere.
    let at_clients = ("listen-plane", "127.0.0.1:11211");
    load(&[at_clients, socket, secret], &[]).unwrap();
    load(&[at_clients, udp], &[]).unwrap();
    let any = ["listen-peer", "listen-memcached", "listen-redis"].map(|it| (it, "127.0.0.1:0"));
    load(&any, &[]).unwrap();
}

#[test]
fn an_interface_that_is_not_there_is_said() {
    let options = load(
        &[("listen-peer", "[fe80::1%lo]:7400"), ("insecure", "true")],
        &[],
    );
    assert_eq!(options.unwrap().listen_peer.to_string(), "[fe80::1%1]:7400");
    let error = refused(&[("listen-peer", "[fe80::1%nowhere]:7400")]).to_string();
    assert!(error.contains("no interface \"nowhere\""), "{error}");
}

const PEER_TLS: [(&str, &str); 3] = [("tls-ca", "a"), ("tls-cert", "c"), ("tls-key", "k")];

type Given<'a> = &'a [(&'static str, &'static str)];

#[test]
fn listening_beyond_loopback_takes_what_is_encrypted_and_authenticated_or_insecure() {
    let tls = &PEER_TLS[..];
    let accounts = ("client-auth-file", "f");
    let client = [
        ("client-tls", "on"),
        ("client-tls-cert", "c"),
        ("client-tls-key", "k"),
    ];
    let of_clients = [&client[..], &[accounts]].concat();
    let with_peers = [tls, &client[..]].concat();
    // What is enough for each, and what is not.
    let ports: [(&str, Given<'_>, &[Given<'_>]); 5] = [
        ("listen-peer", tls, &[&[], &of_clients]),
        (
            "listen-memcached",
            &of_clients,
            &[&[], &with_peers, &[accounts]],
        ),
        (
            "listen-redis",
            &of_clients,
            &[&[], &with_peers, &[accounts]],
        ),
        (
            "listen-client",
            &of_clients,
            &[&[], &with_peers, &[accounts]],
        ),
        ("listen-http", &with_peers, &[&[], tls, &of_clients]),
    ];
    for (name, enough, too_little) in ports {
        let beyond = (name, "10.0.0.1:7000");
        let with = |given: Given<'_>| load(&[given, &[beyond]].concat(), &[]);
        for given in too_little {
            let error = with(given).unwrap_err();
            assert_eq!((&error.option[..], &error.given[..]), beyond);
            assert!(error.allowed.contains("--insecure"), "{error}");
        }
        with(enough).unwrap();
        with(&[("insecure", "true")]).unwrap();
        load(&[(name, "[::1]:0")], &[]).unwrap();
        load(&[(name, "127.9.9.9:0")], &[]).unwrap();
        for text in ["", "localhost:1", "127.0.0.1", "127.0.0.1:65536"] {
            assert_eq!(refused(&[(name, text)]).option, name);
        }
    }
}

/// A client that shows a certificate is known as well as one that says a password.
#[test]
fn certificates_of_clients_are_enough_with_tls_and_nothing_without() {
    let authority = ("client-tls-ca", "ca");
    let secured = [&PEER_TLS[..], &[("client-tls", "on"), authority]].concat();
    for name in ["listen-memcached", "listen-redis"] {
        let given = [&secured[..], &[(name, "10.0.0.1:7000")]].concat();
        load(&given, &[]).unwrap();
    }
    assert_eq!(refused(&[authority]).option, "client-tls-ca");
}

/// Its packets are authenticated; where there is none, nobody listens.
#[test]
fn a_plane_may_be_anywhere_with_its_secret() {
    let beyond = ("listen-plane", "10.0.0.1:7401");
    load(&[beyond], &[]).unwrap();
    load(&[beyond, ("plane", "socket"), ("secret-file", "s")], &[]).unwrap();
    assert_eq!(
        refused(&[beyond, ("plane", "socket")]).option,
        "listen-plane"
    );
}

#[test]
fn files_of_tls_are_given_together() {
    for missing in 0..3 {
        let mut some = PEER_TLS.to_vec();
        let (name, _) = some.remove(missing);
        assert_eq!(refused(&some).option, name);
    }
    let on = ("client-tls", "on");
    assert_eq!(refused(&[on]).option, "client-tls-cert");
    assert_eq!(
        refused(&[on, ("client-tls-cert", "c")]).option,
        "client-tls-key"
    );
    assert_eq!(
        refused(&[on, ("client-tls-key", "k")]).option,
        "client-tls-cert"
    );
    assert_eq!(
        refused(&[("client-tls-cert", "c")]).option,
        "client-tls-cert"
    );
    let shared = load(&[&PEER_TLS[..], &[on]].concat(), &[]).unwrap();
    assert_eq!(shared.client_tls, shared.peer_tls.map(|files| files.own));
    let error = refused(&[&PEER_TLS[..], &[on, ("memcached-udp", "true")]].concat());
    assert_eq!(error.option, "memcached-udp");
}

#[test]
fn nobody_is_told_to_connect_to_an_unspecified_address() {
    let insecure = ("insecure", "true");
    for (listen, advertise) in [
        ("listen-memcached", "advertise-memcached"),
        ("listen-redis", "advertise-redis"),
        ("listen-client", "advertise-client"),
        ("listen-http", "advertise-http"),
    ] {
        let error = refused(&[(listen, "0.0.0.0:7000"), insecure]);
        assert_eq!(error.option, advertise);
        assert_eq!(refused(&[(advertise, "0.0.0.0:7000")]).option, advertise);
        load(
            &[(listen, "0.0.0.0:7000"), (advertise, "h:7000"), insecure],
            &[],
        )
        .unwrap();
    }
    // The peer address has the member list to fall back to, unless this replica is not in it.
    load(&[("listen-peer", "0.0.0.0:7000"), insecure], &[]).unwrap();
    let joining = [("join", "true"), ("members", "0=a:1")];
    let unreachable = [&joining[..], &[("listen-peer", "0.0.0.0:7000"), insecure]].concat();
    assert_eq!(refused(&unreachable).option, "advertise-peer");
}

#[test]
fn addresses_told_to_others() {
    let bound = "127.0.0.1:5".parse().unwrap();
    let options = load(&[], &[]).unwrap();
    assert_eq!(
        options.peer_address(bound),
        "127.0.0.1:2",
        "from the members"
    );
    assert_eq!(options.memcached_address(bound), "127.0.0.1:5");
    assert_eq!(options.http_address(bound), "127.0.0.1:5");
    let flags = [
        ("advertise-peer", "p:1"),
        ("advertise-memcached", "m:1"),
        ("advertise-http", "h:1"),
    ];
    let options = load(&flags, &[]).unwrap();
    assert_eq!(options.peer_address(bound), "p:1");
    assert_eq!(options.memcached_address(bound), "m:1");
    assert_eq!(options.http_address(bound), "h:1");
    let flags = [("join", "true"), ("members", "0=a:1")];
    let options = load(&flags, &[]).unwrap();
    assert_eq!(options.peer_address(bound), "127.0.0.1:5");
}

#[test]
fn cluster_names_have_a_limit() {
    load(&[("cluster", &"n".repeat(64))], &[]).unwrap();
    assert_eq!(refused(&[("cluster", &"n".repeat(65))]).option, "cluster");
    assert_eq!(refused(&[("cluster", "")]).option, "cluster");
}

#[test]
fn an_environment_that_is_no_text_is_refused() {
    let error = resolve(&Flags::default(), &|variable| {
        (variable == "QUORUMWIRE_CLUSTER").then(|| OsString::from_vec(vec![0xff]))
    })
    .unwrap_err();
    assert_eq!(error.option, "cluster");
}

#[test]
fn names_are_unique_and_defaults_allowed() {
    let mut names: Vec<&str> = TABLE.iter().map(|spec| spec.name).collect();
    names.push(CONFIG.name);
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn the_committed_documentation_is_up_to_date() {
    let committed = include_str!("../../docs/configuration.md");
    assert!(
        committed == documentation(),
        "docs/configuration.md differs: write it anew with `quorumwire config docs`"
    );
}

#[test]
fn all_that_is_wrong_is_said_at_once_and_what_the_file_has_in_its_order() {
    let file =
        file("listen-redis = \"127.0.0.1:6379\"\nconnections_max = 0\n\nid = \"1\"\n[server]\n");
    let path = file.path().to_str().unwrap();
    let flags = [("config", path.to_owned()), ("durability", "no".to_owned())];
    let error = load_exactly(&Flags(flags.into(), Serves::Store), &[]).unwrap_err();
    let text = error.to_string();
    let said: Vec<&str> = text.split("\nerror: ").collect();
    let begins = [
        format!("{path}, line 1: no key \"listen-redis\"; did you mean `listen_redis`?"),
        format!("connections-max (from file {path}, line 2): \"0\" is refused; allowed: 1 to "),
        format!(
            "id (from file {path}, line 4): \"1\" is refused; allowed: 0 to 65535 as an integer"
        ),
        format!("{path}, line 5: no key \"server\"; options stand in no table"),
        "--dir must be given; allowed: a path".to_owned(),
        "--members must be given; allowed: ".to_owned(),
        "durability (from flag): \"no\" is refused; allowed: sync or memory".to_owned(),
    ];
    assert_eq!(said.len(), begins.len(), "{text}");
    for begin in &begins {
        assert!(
            said.iter().any(|it| it.starts_with(begin)),
            "no {begin} in {text}"
        );
    }
    for (said, begin) in said.iter().zip(&begins[..4]) {
        assert!(said.starts_with(begin), "{said} is not {begin}");
    }
}

/// What `quorumwire run` has besides stands in its file only.
#[test]
fn options_of_a_program_stand_in_the_file_of_its_server() {
    let text = "publish = [\"1=127.0.0.1:2\", \"3=127.0.0.1:4\"]\nserial = true\nunchecked_output = false\n\
                serial_turn_s = 7\nmembers = \"0=127.0.0.1:1\"\ndir = \"d\"\nid = 0\nfolowers = \"x\"\nxyz = 1\n";
    let file = file(text);
    let path = file.path().to_str().unwrap();
    let flags = |serves| Flags([("config", path.to_owned())].into(), serves);
    let words = program_words(&flags(Serves::Program), &|_| None).unwrap();
    let words: Vec<String> = words.into_iter().flat_map(|(_, words)| words).collect();
    let expected = [
        "--publish=1=127.0.0.1:2",
        "--publish=3=127.0.0.1:4",
        "--serial",
        "--serial-turn-s=7",
    ];
    assert_eq!(words, expected);
    let said = |serves| load_exactly(&flags(serves), &[]).unwrap_err().to_string();
    let of_program = said(Serves::Program);
    assert_eq!(of_program.lines().count(), 2, "{of_program}");
    assert!(
        of_program.contains("did you mean `followers`?"),
        "{of_program}"
    );
    assert!(
        of_program.contains("`quorumwire run --help`"),
        "{of_program}"
    );
    let of_store = said(Serves::Store);
    assert_eq!(of_store.lines().count(), 6, "{of_store}");
    assert!(
        of_store.contains("it is an option of `quorumwire run`"),
        "{of_store}"
    );
    assert!(
        of_store.contains("`quorumwire server --help`"),
        "{of_store}"
    );
}

#[test]
fn what_cannot_be_an_option_of_a_program_is_refused_by_name() {
    let file = file("publish = { a = 1 }\n");
    let path = file.path().to_str().unwrap();
    let flags = Flags([("config", path.to_owned())].into(), Serves::Program);
    let refused = program_words(&flags, &|_| None).unwrap_err();
    assert_eq!(refused.option, "publish");
    assert!(
        refused.to_string().contains("an array of strings"),
        "{refused}"
    );
}

#[test]
fn a_file_with_very_many_faults_is_cut_short() {
    let keys: String = (0..1000).fold(String::new(), |mut text, n| {
        writeln!(text, "zzz{n} = 1").unwrap();
        text
    });
    let file = file(&keys);
    let text = refused(&[("config", file.path().to_str().unwrap())]).to_string();
    assert_eq!(text.lines().count(), 17, "{text}");
    assert!(text.ends_with("and 984 more"), "{text}");
}

#[test]
fn what_a_file_that_is_no_toml_holds_is_not_shown() {
    let accounts = file("# people\nann:opensesame\n");
    let path = accounts.path().to_str().unwrap();
    let text = refused(&[("config", path)]).to_string();
    assert!(text.starts_with(&format!("{path}, line 2: ")), "{text}");
    assert!(text.contains("column 15"), "{text}");
    for hidden in ["ann", "sesame"] {
        assert!(!text.contains(hidden), "{text}");
    }
}

#[test]
fn variables_that_are_no_options_are_said() {
    let names = ["DURABILTY", "DURABILITY", "CONFIG", "HTTP_TLS_CA", "TABLE"];
    let names = names.map(|name| OsString::from(format!("QUORUMWIRE_{name}")));
    let others = [OsString::from("PATH"), OsString::from_vec(vec![0xff])];
    let said = super::unknown_variables(names.into_iter().chain(others));
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].ends_with("did you mean QUORUMWIRE_DURABILITY?"),
        "{said:?}"
    );
    assert!(said[1].contains("\"QUORUMWIRE_TABLE\""), "{said:?}");
}
