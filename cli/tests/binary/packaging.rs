//! What is installed besides the binary: completions, manual pages, units, the package's files. Programs that
//! read these are asked where they are there; what must hold without them is looked at here.
use quorumwire_node::planes::PlaneChoice;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_quorumwire");
const UNITS: [&str; 2] = ["quorumwire.service", "quorumwire@.service"];
/// The most that `systemd-analyze security` may count, in tenths; 100 is a service without any walls.
const EXPOSURE_MAX: &str = "20";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn committed(path: &str) -> String {
    let path = repository().join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn run(program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command
        .output()
        .unwrap_or_else(|e| panic!("{program}: {e}"))
}

fn stdout_of(arguments: &[&str]) -> String {
    let output = run(BINARY, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Whether a program that not every machine has is there.
fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
    if !found {
        eprintln!("{program} is not here and was not asked");
    }
    found
}

/// What bash offers for the last of these words.
fn offered(script: &Path, words: &[&str]) -> Vec<String> {
    let last = words.len() - 1;
    let ask = format!(
        "set -eu; source {}; complete -p quorumwire >/dev/null; COMP_WORDS=({}); COMP_CWORD={last}; \
         _quorumwire quorumwire '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display(),
        words.join(" "),
        words[last],
        words[last - 1],
    );
    let output = run("bash", &["-c", &ask]);
    assert!(output.status.success(), "{words:?}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_their_words() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("quorumwire");
    fs::write(&script, stdout_of(&["completions", "bash"])).unwrap();
    for (words, wanted) in [
        (&["quorumwire", "tra"][..], &["transfer"][..]),
        (&["quorumwire", "keys", "re"], &["renew", "remove"]),
        (
            &["quorumwire", "server", "--listen-p"],
            &["--listen-peer", "--listen-plane"],
        ),
        (
            &["quorumwire", "server", "--plane", ""],
            &["none", "socket", "xdp", "auto"],
        ),
        (
            &["quorumwire", "config", "check", "--log-format", "j"],
            &["json"],
        ),
    ] {
        assert_eq!(offered(&script, words), wanted, "{words:?}");
    }
}

#[test]
fn other_shells_take_their_scripts() {
    let dir = tempfile::tempdir().unwrap();
    for (shell, check) in [("zsh", "-n"), ("fish", "--no-execute")] {
        let script = dir.path().join(shell);
        fs::write(&script, stdout_of(&["completions", shell])).unwrap();
        if has(shell) {
            let output = run(shell, &[check, script.to_str().unwrap()]);
            assert!(output.status.success(), "{output:?}");
        }
    }
    for shell in ["elvish", "powershell"] {
        assert!(stdout_of(&["completions", shell]).contains("transfer"));
    }
}

#[test]
fn manual_pages_are_written_without_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("man1");
    stdout_of(&["man", "--dir", pages.to_str().unwrap()]);
    let files: Vec<_> = fs::read_dir(&pages)
        .unwrap()
        .map(|one| one.unwrap().path())
        .collect();
    assert!(files.len() > 20, "{files:?}");
    assert_eq!(
        stdout_of(&["man"]),
        fs::read_to_string(pages.join("quorumwire.1")).unwrap()
    );
    if !has("groff") {
        return;
    }
    for file in files {
        let output = run(
            "groff",
            &[
                "-man",
                "-ww",
                "-P-cbou",
                "-Tutf8",
                "-rLL=100n",
                file.to_str().unwrap(),
            ],
        );
        assert!(output.status.success(), "{output:?}");
        let warned = String::from_utf8_lossy(&output.stderr);
        assert!(warned.is_empty(), "{}: {warned}", file.display());
        let text = String::from_utf8(output.stdout).unwrap();
        for part in ["NAME", "SYNOPSIS", "DESCRIPTION"] {
            assert!(text.contains(part), "{}: no {part}", file.display());
        }
    }
}

/// The settings of a unit, in their order.
fn settings(unit: &str) -> Vec<(String, String)> {
    let text = committed(&format!("packaging/{unit}"));
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(['#', '[']));
    let pairs = lines.map(|line| {
        line.split_once('=')
            .unwrap_or_else(|| panic!("{unit}: {line}"))
    });
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn setting(unit: &str, wanted: &str) -> String {
    let all = settings(unit);
    let found = all.into_iter().find(|(name, _)| name == wanted);
    found.unwrap_or_else(|| panic!("{unit}: no {wanted}")).1
}

#[test]
fn units_give_what_the_plane_takes_and_no_more() {
    let needed: BTreeSet<String> = PlaneChoice::Auto
        .candidates()
        .flat_map(|kind| (kind.capabilities)().iter_names())
        .map(|(name, _)| format!("CAP_{name}"))
        .collect();
    for unit in UNITS {
        for name in ["AmbientCapabilities", "CapabilityBoundingSet"] {
            let given = setting(unit, name);
            let given: BTreeSet<String> = given.split(' ').map(str::to_owned).collect();
            assert_eq!(given, needed, "{unit}: {name}");
        }
        for (name, value) in [
            ("Type", "notify"),
            ("User", "quorumwire"),
            ("NoNewPrivileges", "yes"),
            ("ProtectSystem", "strict"),
            ("PrivateTmp", "yes"),
            ("MemoryDenyWriteExecute", "yes"),
            ("LimitNOFILE", "131072"), // the most of connections-max, and what the replica itself opens
            ("Restart", "on-failure"),
            ("RestartPreventExitStatus", "2"),
        ] {
            assert_eq!(setting(unit, name), value, "{unit}: {name}");
        }
    }
}

#[test]
fn the_template_differs_by_its_names_only() {
    let as_template = |value: &str| {
        value
            .replace("key-value store", "key-value store (%i)")
            .replace("/quorumwire.toml", "/%i.toml")
    };
    let ours = settings(UNITS[0]).into_iter().map(|(name, value)| {
        let value = match &name[..] {
            "StateDirectory" => format!("{value}/%i"),
            _ => as_template(&value),
        };
        (name, value)
    });
    assert_eq!(ours.collect::<Vec<_>>(), settings(UNITS[1]));
}

#[test]
fn systemd_takes_the_units_and_finds_them_walled_in() {
    if !has("systemd-analyze") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for (unit, installed) in UNITS
        .into_iter()
        .zip(["quorumwire.service", "quorumwire@.service"])
    {
        // The binary is not installed where tests run.
        let text = committed(&format!("packaging/{unit}")).replace("/usr/bin/quorumwire", BINARY);
        fs::write(dir.path().join(installed), text).unwrap();
        let name = installed.replace('@', "@one");
        files.push(dir.path().join(name).display().to_string());
    }
    // The second one serves a program.
    let folder = dir.path().join("quorumwire@one.service.d");
    fs::create_dir(&folder).unwrap();
    let text = committed("packaging/run.conf");
    let text = text.replace("/usr/bin/quorumwire", BINARY);
    fs::write(folder.join("run.conf"), text).unwrap();
    for file in &files {
        let output = run("systemd-analyze", &["verify", "--man=no", file]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{file}: {said}");
    }
    let threshold = format!("--threshold={EXPOSURE_MAX}");
    let arguments = ["security", "--offline=true", &threshold, &files[0]];
    let output = run("systemd-analyze", &arguments);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
}

#[test]
fn the_configuration_that_is_installed_makes_sense() {
    let path = repository().join("packaging/quorumwire.toml");
    let shown = checked(&path);
    let holds = |name: &str| {
        let line = shown
            .lines()
            .find(|line| line.starts_with(&format!("{name} ")));
        line.unwrap().split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!(holds("dir"), "/var/lib/quorumwire");
    assert_eq!(holds("user"), setting(UNITS[0], "User"));
    // So do its lines that stand there to be chosen.
    let text = committed("packaging/quorumwire.toml");
    let lines = text.lines().filter(|line| !line.starts_with("# "));
    let lines = lines.map(|line| line.strip_prefix('#').unwrap_or(line));
    let chosen = lines.collect::<Vec<_>>().join("\n");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("chosen.toml");
    fs::write(&file, chosen).unwrap();
    let shown = checked(&file);
    assert!(shown.contains("10.0.0.1:11211"), "{shown}");
}

/// What would hold by this file. Only users and files may be missing, which are those of another machine.
fn checked(path: &Path) -> String {
    let output = run(
        BINARY,
        &["config", "check", "--config", path.to_str().unwrap()],
    );
    let said = String::from_utf8(output.stderr).unwrap();
    let may_be_missing = |line: &str| {
        line.contains("option user: quorumwire: is not in") || line.contains("No such file")
    };
    assert!(said.lines().all(may_be_missing), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_container_copies_what_is_there() {
    let mut copied = 0;
    for line in committed("packaging/Dockerfile").lines() {
        let Some(rest) = line.strip_prefix("COPY ") else {
            continue;
        };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let Some((_, sources)) = words.split_last() else {
            panic!("{line}");
        };
        if sources[0].starts_with("--from=") {
            continue; // made by the first stage
        }
        for source in sources {
            assert!(repository().join(source).exists(), "{line}");
            copied += 1;
        }
    }
    assert!(copied >= 3, "{copied} files");
}

#[test]
fn the_package_holds_what_is_there() {
    let manifest: toml::Table = committed("cli/Cargo.toml").parse().unwrap();
    let deb = &manifest["package"]["metadata"]["deb"];
    let assets = deb["assets"].as_array().unwrap();
    let mut there = 0;
    for asset in assets {
        let source = asset[0].as_str().unwrap();
        if source.contains("target/") {
            continue; // made by `make deb`
        }
        let path = |part: &str| repository().join("cli").join(part);
        match source.split_once("/*") {
            Some((folder, _)) => {
                let mut inside = fs::read_dir(path(folder)).unwrap();
                assert!(inside.next().is_some(), "{source}");
            }
            None => assert!(path(source).is_file(), "{source}"),
        }
        there += 1;
    }
    assert!(there >= 4, "{there} files");
    for script in ["postinst", "postrm"] {
        let text = committed(&format!("packaging/deb/{script}"));
        assert!(text.starts_with("#!/bin/sh\n") && text.contains("\nset -e\n"));
        let path = repository().join("packaging/deb").join(script);
        assert!(run("sh", &["-n", path.to_str().unwrap()]).status.success());
    }
}

/// What `make build` does to a binary, with that of the tests.
#[test]
fn debug_information_goes_beside_the_binary_and_stays_there() {
    if !has("objcopy") || !has("objdump") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let binary = dir.path().join("quorumwire");
    fs::copy(BINARY, &binary).unwrap();
    let whole = fs::metadata(&binary).unwrap().len();
    let name = binary.to_str().unwrap();
    let tool = repository().join("tools/split-debug");
    let mut sizes = Vec::new();
    for _ in 0..2 {
        let split = run(tool.to_str().unwrap(), &[name]);
        assert!(split.status.success(), "{split:?}");
        let debug = fs::metadata(dir.path().join("quorumwire.debug")).unwrap();
        sizes.push((fs::metadata(&binary).unwrap().len(), debug.len()));
    }
    assert_eq!(sizes[0], sizes[1], "split once");
    let (stripped, debug) = sizes[0];
    assert!(
        stripped < whole / 2 && debug > stripped,
        "{whole} {sizes:?}"
    );
    let sections = run("objdump", &["--section-headers", name]);
    let sections = String::from_utf8(sections.stdout).unwrap();
    assert!(sections.contains(".gnu_debuglink"), "{sections}");
    assert!(!sections.contains(".debug_info"), "{sections}");
    assert!(run(name, &["--version"]).status.success());
}
