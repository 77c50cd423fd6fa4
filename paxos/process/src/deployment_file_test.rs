use super::*;
use quorumwire_client::planes::ClientKey;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

const GOOD: &str = r#"
name = "orders"
coordinators = ["10.0.0.1:7500", "10.0.0.2:7500"]
acceptors = ["10.0.0.3:7500", "10.0.0.4:7500", "10.0.0.5:7500"]
learners = ["10.0.0.6:7500"]
key-file = "orders.keys"
"#;

fn parse(text: &str) -> Result<DeploymentFile, String> {
    DeploymentFile::parse(text, Path::new("/etc"))
}

#[test]
fn a_file_says_who_there_is() {
    let file = parse(GOOD).unwrap();
    let Deployment {
        coordinators,
        acceptors,
        learners,
        window,
        ..
    } = file.deployment;
    assert_eq!((coordinators, acceptors, learners), (2, 3, 1));
    assert_eq!(window, WINDOW);
    assert_eq!(file.addresses.acceptors.len(), 3);
    assert_eq!(file.timing.silence, Duration::from_millis(40));
    assert_eq!(file.timing.heartbeat, Duration::from_millis(5));
    assert_eq!(file.key, Key::File("/etc/orders.keys".into()));
}

#[test]
fn hosts_that_disagree_do_not_hear_each_other() {
    let group = |text: &str| parse(text).unwrap().deployment.group;
    let usual = group(GOOD);
    let moved = GOOD.replace("10.0.0.6", "10.0.0.7");
    assert_eq!(group(&moved), usual, "an address may change");
    for other in [
        GOOD.replace("orders\"", "order\""),
        GOOD.replace(", \"10.0.0.5:7500\"", ""),
        GOOD.replace(", \"10.0.0.2:7500\"", ""),
        GOOD.replace("7500\"]\nkey", "7500\", \"10.0.0.9:1\"]\nkey"),
        format!("{GOOD}window = 8"),
    ] {
        assert_ne!(group(&other), usual, "{other}");
    }
}

#[test]
fn a_deployment_without_a_file_is_checked_alike() {
    let all = |port: u16, count: u16| (port..port + count).map(|it| ([127, 0, 0, 1], it).into());
    let parts = |copies| DeploymentParts {
        name: "made up".to_owned(),
        addresses: Addresses {
            coordinators: all(100, 3).collect(),
            acceptors: all(200, 3).collect(),
            learners: all(300, 3).collect(),
            all_acceptors: None,
        },
        copies,
        window: 16,
        silence: Duration::from_millis(80),
        key: [7; 16],
    };
    let group = |copies| DeploymentFile::of_parts(parts(copies)).map(|it| it.deployment.group);
    assert!(group(0).is_err() && group(4).is_err());
    assert_ne!(group(2).unwrap(), group(3).unwrap(), "what they forget");
    let mut twice = parts(3);
    twice.addresses.learners = all(200, 3).collect();
    let error = DeploymentFile::of_parts(twice).unwrap_err();
    assert!(error.contains("stands there twice"), "{error}");
    let of = |key| {
        let file = DeploymentFile::of_parts(DeploymentParts { key, ..parts(2) });
        file.unwrap().load_keys().unwrap().cluster.key
    };
    assert_ne!(of([7; 16]), of([8; 16]));
}

#[test]
fn what_makes_no_sense_is_refused_with_what_is_allowed() {
    let eight = "\"10.0.1.1:1\",\"10.0.1.2:1\",\"10.0.1.3:1\",\"10.0.1.4:1\",\"10.0.1.5:1\",";
    let cases = [
        (GOOD.replace("orders\"", "\""), "name has 0 bytes"),
        (GOOD.replace("[\"10.0.0.6:7500\"]", "[]"), "learners"),
        (
            GOOD.replace("acceptors = [", &format!("acceptors = [{eight}")),
            "1 to 7",
        ),
        (GOOD.replace("10.0.0.6", "10.0.0.5"), "stands there twice"),
        (GOOD.replace("10.0.0.6:7500", "10.0.0.6:0"), "with a port"),
        (GOOD.replace("10.0.0.6:7500", "0.0.0.0:7500"), "nobody"),
        (GOOD.replace("10.0.0.6:7500", "host"), "learners"),
        (format!("{GOOD}window = 12"), "power of two"),
        (format!("{GOOD}window = 131072"), "at most 65536"),
        (format!("{GOOD}silence-ms = 1"), "10 to 60000"),
        (format!("{GOOD}learner = 1"), "learner"),
        (
            GOOD.replace("10.0.0.1:7500", "[fd00::1]:7500"),
            "[fd00::1]:7500 is of another family than others; allowed: all IPv4, or all IPv6",
        ),
        (GOOD.replace("key-file = \"orders.keys\"", ""), "key-file"),
    ];
    for (text, expected) in cases {
        let error = parse(&text).unwrap_err();
        assert!(error.contains(expected), "{error}, not {expected}");
    }
}

#[test]
fn keys_are_of_the_deployment_and_of_a_purpose() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        let text = GOOD.replace("orders\"", &format!("{name}\""));
        DeploymentFile::parse(&text, folder.path()).unwrap()
    };
    assert!(file("orders").load_keys().is_err(), "there is no file");
    let keys = ClientKeys::new(1, vec![ClientKey::new(1, [7; 16])]).unwrap();
    let path = folder.path().join("orders.keys");
    keys.write(&path).unwrap();
    let mine = file("orders").load_keys().unwrap();
    assert_ne!(mine.cluster.key, mine.clients.key);
    assert_ne!(mine.cluster.key, [7; 16]);
    fs::copy(&path, folder.path().join("others.keys")).unwrap();
    assert_ne!(
        file("others").load_keys().unwrap().cluster.key,
        mine.cluster.key
    );
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let error = file("orders").load_keys().unwrap_err().to_string();
    assert!(error.contains("allowed: 600 or less"), "{error}");
}

#[test]
fn acceptors_hear_together_at_an_address_for_many() {
    let with = |more: &str| parse(&format!("{GOOD}multicast = \"{more}\"\n"));
    let all = with("239.1.2.3").unwrap().addresses.all_acceptors;
    assert_eq!(all, Some(([239, 1, 2, 3], 7500).into()));
    assert_eq!(parse(GOOD).unwrap().addresses.all_acceptors, None);
    for wrong in ["10.0.0.1", "224.0.0.1", "ff02::1"] {
        let error = with(wrong).unwrap_err();
        assert!(error.contains("multicast"), "{error}");
    }
    for other in ["10.0.0.5:7501", "[fd00::5]:7500"] {
        let text = GOOD.replace("10.0.0.5:7500", other);
        let error = parse(&format!("{text}multicast = \"239.1.2.3\"\n")).unwrap_err();
        assert!(error.contains("with one port"), "{error}");
    }
    let text = GOOD.replace("10.0.0.1:7500", "[fd00::1]:7500");
    let error = parse(&format!("{text}multicast = \"239.1.2.3\"\n")).unwrap_err();
    assert!(error.contains("a coordinator"), "{error}");
}
