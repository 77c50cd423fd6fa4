//! Wrong arguments: exit code 2, and the answer names the option, the value and what is allowed. Starts
//! no server.
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quorumwire"))
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn a_wrong_argument_names_option_value_and_allowed_values() {
    let server = ["server", "--dir", "d", "--members", "0=127.0.0.1:1"];
    let check = [
        "config",
        "check",
        "--dir",
        "d",
        "--members",
        "0=127.0.0.1:1",
    ];
    let with = |base: &[&'static str], more: &[&'static str]| [base, more].concat();
    let cases: [(Vec<&str>, &[&str]); 15] = [
        (with(&server, &[]), &["id", "0 to 65535"]),
        (with(&server, &["--id", "-1"]), &["id", "-1", "0 to 65535"]),
        (with(&check, &["--id", "x"]), &["id", "\"x\"", "0 to 65535"]),
        (
            with(&check, &["--id", "0", "--durability", "maybe"]),
            &["durability", "maybe", "sync or memory"],
        ),
        (
            with(&server, &["--id", "0", "--listen-http", "0.0.0.0:1"]),
            &["listen-http", "0.0.0.0:1", "--insecure"],
        ),
        (
            with(&server, &["--id", "0", "--config", "/no/such"]),
            &["config", "/no/such"],
        ),
        (
            vec!["dev", "--replicas", "2"],
            &["--replicas", "2", "1, 3, 5, 7"],
        ),
        (
            vec!["bench", "--connections", "0"],
            &["--connections", "0", "1..=4096"],
        ),
        (vec!["quorum", "half"], &["half", "majority, all"]),
        (
            vec!["member", "add", "--id", "1", "--peer", "nowhere"],
            &["--peer", "nowhere", "HOST:PORT"],
        ),
        (
            vec!["status", "--addr", "nowhere"],
            &["--addr", "nowhere", "HOST:PORT"],
        ),
        (
            vec!["bench", "--addr", "a:1,b"],
            &["--addr", "b", "HOST:PORT"],
        ),
        (
            vec!["bench", "--seconds", "3", "--interval-ms", "2"],
            &["interval-ms", "2", "3 or more, for 1000 intervals"],
        ),
        (
            vec!["bench", "--survive", "--server-pids", "1"],
            &["--survive", "--server-pids"],
        ),
        (vec!["explode"], &["explode"]),
    ];
    for (arguments, parts) in cases {
        let output = run(&arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        for part in parts {
            assert!(text.contains(part), "{arguments:?}: no {part} in {text}");
        }
    }
}

#[test]
fn what_holds_is_shown_with_its_origin() {
    let output = Command::new(env!("CARGO_BIN_EXE_quorumwire"))
        .args([
            "config",
            "check",
            "--id",
            "0",
            "--members",
            "0=h:1",
            "--join",
        ])
        .env("QUORUMWIRE_DIR", "data")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let words = |name: &str| -> Vec<&str> {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().collect()
    };
    assert_eq!(words("join"), ["join", "flag", "true"]);
    let variable = "environment variable QUORUMWIRE_DIR";
    assert_eq!(words("dir").join(" "), format!("dir {variable} data"));
    assert_eq!(words("durability"), ["durability", "default", "sync"]);
}

#[test]
fn a_cluster_that_is_not_there_is_said_so() {
    // Port 1 is nobody's.
    let output = run(&["status", "--addr", "127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("127.0.0.1:1 cannot be reached"), "{text}");
    let dir = tempfile::tempdir().unwrap();
    let output = run(&["status", "--dir", dir.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("no cluster and of no server"), "{text}");
}

/// Where the plane `xdp` cannot run, the option to blame is named: `plane` only if no other one would help.
/// With `auto` nothing is refused before all are.
#[test]
fn a_data_plane_that_cannot_run_names_the_option_that_stands_in_its_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (secret, data) = (path("secret.toml"), path("data"));
    assert!(run(&["keys", "new", "--file", &secret]).status.success());
    let again = run(&["keys", "new", "--file", &secret]);
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    let nowhere = ["--listen-plane", "192.0.2.1:7401"];
    let cases: [(&str, &[&str], &[&str]); 4] = [
        (
            "xdp",
            &[],
            &[
                "option listen-plane: 192.0.2.1:7401",
                "no interface has the address",
            ],
        ),
        (
            "xdp",
            &["--interface", "qw-none"],
            &["option interface: qw-none", "there is no interface"],
        ),
        (
            "xdp",
            &["--interface", "lo"],
            &[
                "option listen-plane: 192.0.2.1:7401",
                "interface lo",
                "it has: 127.0.0.1",
            ],
        ),
        (
            "auto",
            &[],
            &[
                "option plane: auto",
                "xdp: option listen-plane",
                "socket: option listen-plane",
            ],
        ),
    ];
    for (plane, more, texts) in cases {
        let free = "127.0.0.1:0";
        let server = [
            "server",
            "--id",
            "0",
            "--members",
            "0=127.0.0.1:1",
            "--insecure",
            "--dir",
            &data,
            "--plane",
            plane,
            "--secret-file",
            &secret,
            "--listen-peer",
            free,
            "--listen-memcached",
            free,
            "--listen-redis",
            free,
            "--listen-client",
            free,
            "--listen-http",
            free,
        ];
        let output = run(&[&server[..], &nowhere, more].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{more:?}: {error}");
        for text in texts {
            assert!(error.contains(text), "{text:?} in {error}");
        }
    }
}

const LISTEN: [&str; 5] = [
    "--listen-peer",
    "--listen-memcached",
    "--listen-redis",
    "--listen-client",
    "--listen-http",
];

/// What a server of replica 0 is told that listens on free ports.
fn first_of_one(dir: &str) -> Vec<&str> {
    let free = "127.0.0.1:0";
    let mut words = vec![
        "server",
        "--id",
        "0",
        "--members",
        "0=127.0.0.1:1",
        "--dir",
        dir,
    ];
    words.extend(LISTEN.iter().flat_map(|option| [*option, free]));
    words
}

/// Whoever corrects what was refused finds a folder that is still anybody's.
#[test]
fn a_start_that_is_refused_claims_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (keys, data) = (path("keys"), path("data"));
    let made = run(&["keys", "new", "--dir", &keys, "--members", "0,1"]);
    assert!(made.status.success());
    let key = |name: &str| path(&format!("keys/{name}"));
    let (ca, certificate, private) = (
        key("ca.pem"),
        key("replica-0.pem"),
        key("replica-0-key.pem"),
    );
    let (other, nothing) = (key("replica-1-key.pem"), path("nothing"));
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = held.local_addr().unwrap().to_string();
    let tls = |ca, certificate, key| ["--tls-ca", ca, "--tls-cert", certificate, "--tls-key", key];
    let right = tls(&ca, &certificate, &private);
    let cases: [(&[&str], &[&str], &str); 6] = [
        (&right, &["--cluster", "other"], "option tls-cert"),
        (&tls(&nothing, &certificate, &private), &[], "option tls-ca"),
        (
            &tls(&ca, &certificate, &other),
            &[],
            "options tls-cert and tls-key",
        ),
        (
            &right,
            &["--client-auth-file", &nothing],
            "option client-auth-file",
        ),
        (&right, &["--secret-file", &nothing], "option secret-file"),
        (&right, &["--listen-redis", &taken], "option listen-redis"),
    ];
    for (tls, more, option) in cases {
        let mut words = first_of_one(&data);
        if let Some(place) = words.iter().position(|word| more.first() == Some(word)) {
            words.drain(place..place + 2); // an option is given once
        }
        let output = run(&[&words[..], tls, more].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{more:?}: {error}");
        assert!(error.contains(option), "{option} in {error}");
        assert!(
            !folder.path().join("data/group-0/identity").exists(),
            "{option}"
        );
    }
    drop(held);
}

#[test]
fn only_the_last_folder_of_a_path_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("no/such/folder").display().to_string();
    let output = run(&first_of_one(&deep));
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("the folder above it does not exist"),
        "{error}"
    );
    assert!(!folder.path().join("no").exists());
}

/// What a start would refuse, the check does; a variable that is no option is warned of.
#[test]
fn the_check_looks_at_files_and_user_and_says_all_that_is_wrong() {
    let mut words = vec!["config", "check"];
    words.extend(&first_of_one("data")[1..]);
    let right = Command::new(env!("CARGO_BIN_EXE_quorumwire"))
        .args(&words)
        .env("QUORUMWIRE_DURABILTY", "memory")
        .output()
        .unwrap();
    let said = String::from_utf8(right.stderr).unwrap();
    assert!(right.status.success(), "{said}");
    assert!(
        said.contains("did you mean QUORUMWIRE_DURABILITY?"),
        "{said}"
    );
    words.extend(["--user", "nosuch", "--secret-file", "/nope"]);
    words.extend([
        "--tls-ca",
        "/nope",
        "--tls-cert",
        "/nope",
        "--tls-key",
        "/nope",
    ]);
    let wrong = run(&words);
    let said = String::from_utf8(wrong.stderr).unwrap();
    assert_eq!(wrong.status.code(), Some(2), "{said}");
    for option in ["option user: nosuch", "option tls-", "option secret-file"] {
        assert!(said.contains(option), "{option} in {said}");
    }
    let none = String::from_utf8(run(&["server"]).stderr).unwrap();
    for option in ["--id must", "--dir must", "--members must"] {
        assert!(none.contains(option), "{option} in {none}");
    }
}

#[test]
fn whether_a_program_can_be_served_is_said_without_a_cluster() {
    let redis = ["redis-server", "--port", "6379"];
    let fits = run(&[&["run", "--check", "--"][..], &redis].concat());
    let said = String::from_utf8_lossy(&fits.stdout);
    assert!(fits.status.success(), "{said}");
    assert!(
        said.contains("it can be served: it listens at 0.0.0.0:6379"),
        "{said}"
    );
    assert!(said.contains("it saves itself upon TERM"), "{said}");
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = place.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let one_visitor = file(
        "one.py",
        "import socket\nsocket.create_server(('', 7777)).accept()\n",
    );
    let workers = file(
        "nginx.conf",
        "daemon off; pid nginx.pid; error_log stderr; events { } http { access_log off; \
         client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; \
         scgi_temp_path scgi; server { listen 7777; } }",
    );
    let wrapper = script(
        place.path(),
        "wrapper",
        "exec redis-server --port 7777 \"$@\"",
    );
    for (command, why) in [
        (&["true"][..], "If it goes into the background"),
        (&["false"], "paths among its arguments"),
        (&["nosuchprogram"], "is refused: it is not found in PATH"),
        (&["/etc/passwd"], "is refused: it is not executable"),
        (&["/tmp"], "is refused: it is a folder"),
        (&[&wrapper, "--io-threads", "4"], "`io-threads 1`"),
        (&["redis-server", "--io-threads", "4"], "`io-threads 1`"),
        (
            &["/usr/bin/python3", &one_visitor],
            "when a client connected, or went",
        ),
        (&["nginx", "-p", "./", "-c", &workers], "and no child of it"),
    ] {
        let fits = run(&[&["run", "--check", "--"], command].concat());
        let said = String::from_utf8_lossy(&fits.stderr);
        assert!(
            !fits.status.success() && said.contains(why),
            "{command:?}: {said}"
        );
    }
}

#[test]
fn what_cannot_be_served_is_refused_before_there_is_a_folder() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("data");
    let base = ["run", "--id", "0", "--members", "0=127.0.0.1:1", "--dir"];
    let base = [&base[..], &[folder.to_str().unwrap()]].concat();
    for (more, named) in [
        (
            &["--", "nosuchprogram"][..],
            &["option COMMAND", "nosuchprogram"][..],
        ),
        (
            &["--publish", "80=0.0.0.0:8080", "--", "true"],
            &["publish", "0.0.0.0:8080", "--insecure"],
        ),
    ] {
        let output = run(&[&base[..], more].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        for name in named {
            assert!(error.contains(name), "{name}: {error}");
        }
        assert!(!folder.exists(), "{error}");
    }
}

/// What is wrong with the commands by which a program is saved is said of the option, before there is a log.
#[test]
fn a_program_that_is_saved_by_command_is_tried_with_that() {
    let place = tempfile::tempdir().unwrap();
    let script = place.path().join("server.py");
    let text = "import socket\nopen('state', 'a').write('x')\ns = socket.create_server(('', 7777))\n\
                while True: s.accept()\n";
    std::fs::write(&script, text).unwrap();
    let check = |snapshot: &str, restore: &str, timeout_s: &str| {
        let commands = ["--snapshot-command", snapshot, "--restore-command", restore];
        let more = ["--save-timeout-s", timeout_s, "--", "/usr/bin/python3"];
        let words = [
            &["run", "--check"][..],
            &commands,
            &more,
            &[script.to_str().unwrap()],
        ]
        .concat();
        let output = run(&words);
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    };
    let (saves, brings) = ("cp state $QUORUMWIRE_SAVE", "cp $QUORUMWIRE_SAVE/state .");
    let (fits, said) = check(saves, brings, "20");
    assert!(fits && said.contains("it is saved by command"), "{said}");
    for (snapshot, restore, timeout_s, why) in [
        (
            "false",
            brings,
            "20",
            "option snapshot-command: \"false\" has failed",
        ),
        (
            "true",
            brings,
            "20",
            "option snapshot-command: \"true\" has put nothing into",
        ),
        (
            saves,
            "exit 3",
            "20",
            "option restore-command: \"exit 3\" has failed (exit status: 3)",
        ),
        (
            "sleep 1000",
            brings,
            "1",
            "has not ended in 1 s: see option save-timeout-s",
        ),
    ] {
        let (fits, said) = check(snapshot, restore, timeout_s);
        assert!(!fits && said.contains(why), "{why}: {said}");
    }
    let alone = run(&["run", "--check", "--snapshot-command", "true", "--", "true"]);
    let said = String::from_utf8_lossy(&alone.stderr);
    assert!(
        alone.status.code() == Some(2) && said.contains("--restore-command"),
        "{said}"
    );
}

/// A shell script, which stays in the given folder.
fn script(folder: &Path, name: &str, lines: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/bash\n{lines}\n")).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

/// Profiles go by the file's name, and what a script starts before is served by nobody.
#[test]
fn a_script_that_becomes_a_program_is_tried_as_that() {
    let place = tempfile::tempdir().unwrap();
    let server = "/bin/true; date; exec redis-server --port 7778";
    let check = run(&[
        "run",
        "--check",
        "--",
        &script(place.path(), "wrapper", server),
    ]);
    let said = String::from_utf8_lossy(&check.stdout);
    assert!(check.status.success(), "{check:?}");
    assert!(said.contains("it cannot save itself"), "{said}");
    assert!(said.contains("it runs as redis-server"), "{said}");
    let complaints = String::from_utf8_lossy(&check.stderr);
    assert!(!complaints.contains("ld.so"), "{complaints}");
}

/// Whoever says something means something.
#[test]
fn what_has_no_effect_for_a_program_is_refused() {
    let of = |option: &str, program: &str| {
        let said = run(&["run", "--check", option, "5", "--", program]);
        let code = said.status.code();
        (code, String::from_utf8(said.stderr).unwrap())
    };
    for (option, program, other) in [
        ("--serial-turn-s", "redis-server", "memcached"),
        ("--whole-log-max-mib", "redis-server", "memcached"),
        ("--cut-log-mib", "memcached", "redis-server"),
        ("--save-timeout-s", "memcached", "redis-server"),
    ] {
        let (code, said) = of(option, program);
        let named = option.replace("--", "option ");
        assert!(code == Some(2) && said.contains(&named), "{said}");
        let (_, said) = of(option, other);
        assert!(!said.contains(&named), "{said}");
    }
}

/// What is said on the command line counts more.
#[test]
fn options_of_a_program_stand_in_a_file_too() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("run.toml");
    let check = |text: &str, more: &[&str]| {
        std::fs::write(&file, text).unwrap();
        let base = ["run", "--check", "--config", file.to_str().unwrap()];
        let program = ["--", "redis-server", "--port", "7776"];
        let output = run(&[&base[..], more, &program].concat());
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let refused = check("serial_turn_s = 5\n", &[]);
    assert!(refused.contains("option serial-turn-s"), "{refused}");
    let text = "save_signal = \"none\"\n";
    let told = check(text, &[]);
    assert!(told.contains("it cannot save itself"), "{told}");
    let told = check(text, &["--save-signal", "TERM"]);
    assert!(told.contains("it saves itself upon TERM"), "{told}");
}

/// A server that reads until its client says that it sends no more hears of no broken connection.
#[test]
fn the_client_of_a_trial_goes_in_order() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("server.py");
    let text = "import asyncio\n\
                async def serve(reader, writer):\n    \
                await reader.read(); writer.close()\n\
                async def main():\n    \
                await (await asyncio.start_server(serve, '', 7779)).serve_forever()\n\
                asyncio.run(main())\n";
    std::fs::write(&path, text).unwrap();
    let path = path.display().to_string();
    let check = run(&["run", "--check", "--", "/usr/bin/python3", &path]);
    assert!(check.status.success(), "{check:?}");
    let complaints = String::from_utf8_lossy(&check.stderr);
    assert!(complaints.is_empty(), "{complaints}");
}

/// Whether CRIU is installed here or not.
#[test]
fn criu_is_refused_with_the_reason() {
    let output = run(&["run", "--check", "--snapshot", "criu", "--", "redis-server"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("is refused: CRIU cannot"), "{said}");
    assert!(said.contains("--snapshot-command"), "{said}");
}
