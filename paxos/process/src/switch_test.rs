use super::*;
use std::path::Path;

const FILE: &str = r#"
name = "orders"
coordinators = ["127.0.0.1:7500", "192.0.2.2:7500"]
acceptors = ["127.0.0.3:7501", "192.0.2.4:7501", "192.0.2.5:7501"]
learners = ["127.0.0.6:7500"]
key-file = "orders.keys"
"#;

fn options(file: &str, (role, number): (Role, u8), listen: Option<&str>) -> SwitchOptions {
    SwitchOptions {
        deployment: DeploymentFile::parse(file, Path::new("/etc")).expect("a deployment"),
        role,
        number,
        listen: listen.map(|it| it.parse().expect("an address")),
        dir: None,
        memory: None,
        durability: Durability::Memory,
        busy_poll: Duration::ZERO,
        plane: None,
        declare_lost: None,
    }
}

/// All addresses of a machine are as good, but of the machine that has the one in the file (192.0.2.0/24 has
/// none: RFC 5737).
#[test]
fn where_a_switch_listens_others_know_it_or_not() {
    for (number, listen, is_known) in [
        (0, None, true),
        (1, None, true),
        (0, Some("127.0.0.3:7501"), true),
        (0, Some("127.0.0.3:7502"), false),
        (0, Some("127.0.0.4:7501"), false),
        (0, Some("0.0.0.0:7501"), true),
        (0, Some("0.0.0.0:7502"), false),
        (1, Some("0.0.0.0:7501"), false),
    ] {
        let options = options(FILE, (Role::Acceptor, number), listen);
        let found = options.is_where_known().expect("there is one");
        assert_eq!(found, is_known, "{number} {listen:?}");
    }
}

/// What is proposed to all would come to another acceptor of its number, too, which has promised nothing.
#[test]
fn an_acceptor_hears_together_with_the_others_only_where_they_know_it() {
    let together = format!("{FILE}multicast = \"239.7.7.7\"\n");
    let hears = |file: &str, role, listen| {
        let options = options(file, role, listen);
        let listen = options
            .listen
            .unwrap_or(options.own_address().expect("there is one"));
        options.hears_together(listen)
    };
    let acceptor = (Role::Acceptor, 0);
    let group = "239.7.7.7:7501".parse().expect("an address");
    let own = Ipv4Addr::new(127, 0, 0, 3);
    for listen in [None, Some("127.0.0.3:7501"), Some("0.0.0.0:7501")] {
        let joined = hears(&together, acceptor, listen).expect("it is known there");
        assert_eq!(joined, Some((group, own)), "{listen:?}");
    }
    let refused = hears(&together, acceptor, Some("127.0.0.9:7501"));
    let refused = refused.expect_err("another one may be there").to_string();
    assert!(
        refused.starts_with("option listen: 127.0.0.9:7501 is not where")
            && refused.ends_with("allowed: 127.0.0.3:7501"),
        "{refused}"
    );
    assert!(hears(FILE, acceptor, Some("127.0.0.9:7501")).is_ok_and(|it| it.is_none()));
    let coordinator = (Role::Coordinator, 0);
    assert!(hears(&together, coordinator, Some("127.0.0.9:7501")).is_ok_and(|it| it.is_none()));
}
