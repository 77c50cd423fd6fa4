//! libquorumwire as a program finds it once it is installed: the example in C and a program in C++ against a
//! real cluster whose replicas are killed.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::c_programs::{
    self, client_file, install, lines, member_file, repository, start, succeed,
};
use quorumwire_cluster_tests::cluster::run_started;
use quorumwire_cluster_tests::deployment::{ACCEPTORS, COORDINATORS, Deployment};
use quorumwire_cluster_tests::disk::Scratch;
use quorumwire_cluster_tests::leveldb::free_address;
use quorumwire_cluster_tests::network::NAME_PREFIX;
use quorumwire_cluster_tests::value_programs::{
    DEADLINE, judge, kill_replicas, kill_switches, with_learners,
};
use quorumwire_cluster_tests::waiting::wait_within;
use quorumwire_paxos_process::SwitchReport;

const VALUES: usize = 2000;
/// Values for a learner that takes its time for each.
const SLOW_VALUES: usize = 50;
/// SIGPIPE, in the masks that the kernel shows.
const SIGPIPE_BIT: u64 = 1 << 12;
/// What is submitted last.
const END: &str = "the end";

/// Installs the library into this folder, and compiles the example and the program in C++ against it.
fn learner_and_submitter(prefix: &Path) -> Result<(PathBuf, PathBuf)> {
    install(prefix)?;
    let source = "tests/cluster/tests/c_library/submitter.cpp";
    let submitter = compile(prefix, &["c++", "-std=c++11"], source, "submitter")?;
    Ok((compile_learner(prefix)?, submitter))
}

fn compile_learner(prefix: &Path) -> Result<PathBuf> {
    let source = "docs/examples/c/learner.c";
    compile(prefix, &["cc", "-std=c99"], source, "learner")
}

fn compile(prefix: &Path, compiler: &[&str], source: &str, name: &str) -> Result<PathBuf> {
    c_programs::compile(prefix, "quorumwire", compiler, source, name)
}

#[test]
fn programs_in_c_hold_values_declare_them_lost_and_begin_behind_them() {
    run_started(with_learners(), |cluster| {
        let prefix = cluster.scratch_file("prefix");
        install(&prefix)?;
        for (name, says) in [("held", "held\n"), ("lost", "it goes on\n")] {
            let source = format!("tests/cluster/tests/c_library/{name}.c");
            let program = compile(&prefix, &["cc", "-std=c99"], &source, name)?;
            let said = succeed(Command::new(program).arg(client_file(cluster)?))?;
            ensure!(said == says, "{said}");
        }
        Ok(())
    });
}

#[test]
fn a_close_ends_what_other_threads_wait_for_while_nobody_answers() {
    run_started(with_learners(), |cluster| {
        let prefix = cluster.scratch_file("prefix");
        install(&prefix)?;
        let cc = ["cc", "-std=c99", "-D_POSIX_C_SOURCE=200809L", "-pthread"];
        let source = "tests/cluster/tests/c_library/closed.c";
        let program = compile(&prefix, &cc, source, "closed")?;
        let (configuration, said) = (client_file(cluster)?, cluster.scratch_file("said"));
        let configuration = configuration.to_str().context("a path")?;
        let mut closes = start(&program, &[configuration], &said)?;
        cluster.wait_for("it to be connected", || Ok(!lines(&said)?.is_empty()))?;
        cluster.kill_all()?;
        writeln!(closes.input()?)?;
        let ended = closes.0.wait()?;
        ensure!(ended.success(), "{:?}", lines(&said)?);
        Ok(())
    });
}

#[test]
fn programs_in_c_and_cpp_submit_and_learn_while_replicas_are_killed() {
    run_started(with_learners(), |cluster| {
        let prefix = cluster.scratch_file("prefix");
        let (learner, submitter) = learner_and_submitter(&prefix)?;
        let configuration = client_file(cluster)?;
        let configuration = configuration.to_str().context("a path")?;
        let said = |name: &str| cluster.scratch_file(name);
        let (first, second, results) = (said("first"), said("second"), said("results"));
        let learn = |number, said: &Path| {
            let arguments = [configuration, "learn", number, "1000000"];
            start(&learner, &arguments, said)
        };
        let _first = learn("1", &first)?;
        let _second = learn("2", &second)?;
        let arguments = [configuration, &VALUES.to_string(), "1"];
        let mut submits = start(&submitter, &arguments, &results)?;
        kill_replicas(cluster, &mut submits, &results)?;
        let last = succeed(Command::new(&learner).args([configuration, "submit", END]))?;
        ensure!(last.starts_with("the end has instance "), "{last}");
        cluster.wait_for("both learners to have all", || {
            for said in [&first, &second] {
                if lines(said)?.last().is_none_or(|it| it != END) {
                    return Ok(false);
                }
            }
            Ok(true)
        })?;
        let both = [lines(&first)?, lines(&second)?].map(|lines| {
            let values = lines.into_iter().filter(|it| !it.starts_with("checkpoint"));
            values.collect::<Vec<_>>()
        });
        ensure!(both[0] == both[1], "the learners differ");
        judge(&lines(&results)?, VALUES, &both[0])
    });
}

#[test]
fn the_same_programs_submit_and_learn_while_switches_are_killed() -> Result<()> {
    let mut deployment = Deployment::new("c-switches", 3)?;
    let prefix = PathBuf::from(deployment.path("prefix"));
    let (learner, submitter) = learner_and_submitter(&prefix)?;
    deployment.start_all()?;
    let said = ["0", "1"].map(|number| PathBuf::from(deployment.path(&format!("said-{number}"))));
    let mut learners = Vec::new();
    for (number, said) in said.iter().enumerate() {
        let file = member_file(&deployment, number, &format!("learner-{number}"), "")?;
        let arguments = [&file, "learn", &number.to_string(), "1000000"];
        learners.push(start(&learner, &arguments, said)?);
    }
    let results = PathBuf::from(deployment.path("results"));
    let file = member_file(
        &deployment,
        2,
        "learner-2",
        "only_submits = true\ndeadline_ms = 60000\n",
    )?;
    let arguments = [&file, &VALUES.to_string(), "2"];
    let mut submits = start(&submitter, &arguments, &results)?;
    kill_switches(&mut deployment, &mut submits, &results)?;
    let ended = succeed(Command::new(&learner).args([&file[..], "submit", END]))?;
    ensure!(ended.starts_with("the end has instance "), "{ended}");
    for said in &said {
        wait_within("a learner to have all", DEADLINE, || {
            Ok(lines(said)?.last().is_some_and(|it| it == END))
        })?;
    }
    let both = [lines(&said[0])?, lines(&said[1])?];
    ensure!(both[0] == both[1], "the learners differ");
    judge(&lines(&results)?, VALUES, &both[0])
}

#[test]
fn a_program_in_c_is_told_what_is_known_of_an_instance_of_a_deployment() -> Result<()> {
    let page = ["--listen-http", "127.0.0.1:0"];
    let mut deployment = Deployment::new("c-recovered", 2)?.told(&page);
    let prefix = PathBuf::from(deployment.path("prefix"));
    install(&prefix)?;
    let source = "tests/cluster/tests/c_library/recovered.c";
    let program = compile(&prefix, &["cc", "-std=c99"], source, "recovered")?;
    deployment.start_all()?;
    let first = deployment.member(0)?;
    let submitted = (0..5).map(|it| first.submit(format!("value {it}").as_bytes()));
    let instances = submitted.collect::<Result<Vec<_>, _>>()?;
    let ask = |deployment: &Deployment<'_>, dir: &str, instances: &[u64]| -> Result<Vec<String>> {
        let mut program = Command::new(&program);
        program.arg(member_file(deployment, 1, dir, "")?);
        let said = succeed(program.args(instances.iter().map(u64::to_string)))?;
        Ok(said.lines().map(str::to_owned).collect())
    };
    // Without coordinators the other learner hears of nothing that it does not ask for.
    for number in 0..COORDINATORS {
        deployment.kill(("coordinator", number))?;
    }
    let (third, last) = (instances[2], instances[4]);
    let asked = [third, third, last + 1, last + 100_000];
    let said = ask(&deployment, "learner-1", &asked)?;
    let expected = [
        format!("decided {third} value 2"),
        format!("error -1 instance {third} was delivered before"),
        format!("no-op {} ", last + 1),
        format!("not-decided {} ", last + 1),
    ];
    ensure!(said == expected, "{said:?}");

    for number in 0..COORDINATORS {
        deployment.start(("coordinator", number))?;
    }
    let second = deployment.member(1)?;
    for member in [&first, &second] {
        let mut upto = 0;
        while upto < last {
            let next = member.next_within(DEADLINE)?;
            upto = next.context("a value that is decided is delivered")?.0;
        }
        member.checkpoint(upto)?;
    }
    for number in 0..ACCEPTORS {
        let is_trimmed = |it: &SwitchReport| {
            let window = it.window.as_ref();
            window.is_some_and(|it| it.first_open > last)
        };
        deployment.wait_until(("acceptor", number), "values that are trimmed", is_trimmed)?;
    }
    drop(second);
    // The learner has lost its folder.
    let said = ask(&deployment, "learner-1-anew", &[third, last])?;
    for line in &said {
        let upto = line.strip_prefix("trimmed ").map(str::trim_end);
        let is_so = upto.is_some_and(|it| it.parse::<u64>().is_ok_and(|it| it >= last));
        ensure!(is_so, "{said:?}");
    }
    ensure!(said.len() == 2, "{said:?}");
    Ok(())
}

#[test]
fn a_learner_of_a_deployment_whose_callback_takes_long_slows_no_other() -> Result<()> {
    let mut deployment = Deployment::new("c-slow", 3)?;
    let prefix = PathBuf::from(deployment.path("prefix"));
    install(&prefix)?;
    let learner = compile_learner(&prefix)?;
    let cc = ["cc", "-std=c99", "-D_POSIX_C_SOURCE=200809L"];
    let source = "tests/cluster/tests/c_library/slow.c";
    let program = compile(&prefix, &cc, source, "slow")?;
    deployment.start_all()?;
    let said = ["fast", "slow"].map(|name| PathBuf::from(deployment.path(name)));
    let mut learners = Vec::new();
    for (number, rest_ms) in ["0", "300"].into_iter().enumerate() {
        let file = member_file(&deployment, number, &format!("learner-{number}"), "")?;
        let (number_text, count) = (number.to_string(), SLOW_VALUES.to_string());
        let arguments = [&file[..], &number_text, &count, rest_ms];
        learners.push(start(&program, &arguments, &said[number])?);
    }
    let more = "only_submits = true\ndeadline_ms = 60000\n";
    let file = member_file(&deployment, 2, "learner-2", more)?;
    let values: Vec<_> = (0..SLOW_VALUES).map(|it| format!("value-{it}")).collect();
    succeed(
        Command::new(&learner)
            .args([&file[..], "submit"])
            .args(&values),
    )?;
    let mut has_ended = |number: usize| -> Result<()> {
        wait_within("a learner that has all", DEADLINE, || {
            let ended = learners[number].0.try_wait()?;
            let text = || format!("{:?}", lines(&said[number]));
            ensure!(ended.is_none_or(|it| it.success()), "{}", text());
            Ok(ended.is_some())
        })?;
        let given = lines(&said[number])?;
        ensure!(given == values, "{given:?}");
        Ok(())
    };
    has_ended(0)?;
    let given = lines(&said[1])?;
    ensure!(
        given.len() < SLOW_VALUES / 2 && values.starts_with(&given),
        "{given:?}"
    );
    has_ended(1)
}

fn scratch(name: &str) -> Result<Scratch> {
    Scratch::new(&format!("{NAME_PREFIX}-{}-{name}", std::process::id()))
}

/// A program that is replica and learner of this number, of three.
struct Inside {
    configuration: String,
    said: PathBuf,
    address: String,
}

impl Inside {
    fn all(folder: &Path, more: &str) -> Result<Vec<Self>> {
        let peers: Vec<String> = (0..3).map(|_| free_address()).collect::<Result<_>>()?;
        let named = peers.iter().enumerate();
        let members: Vec<String> = named.map(|(id, peer)| format!("{id}={peer}")).collect();
        let each = peers.iter().enumerate().map(|(id, peer)| {
            let address = free_address()?;
            let file = |name: &str| folder.join(format!("{name}-{id}")).display().to_string();
            let (options, configuration) = (file("server.toml"), file("client.toml"));
            let text = format!(
                "id = {id}\nmembers = {:?}\ndir = {:?}\nlearners = \"1,2,3,9\"\nlisten_peer = {peer:?}\n\
                 listen_client = {address:?}\nlisten_http = \"127.0.0.1:0\"\n{more}",
                members.join(","),
                file("data"),
            );
            fs::write(&options, text)?;
            let text = format!("replica = {options:?}\ndeadline_ms = 30000\npatience_ms = 500\n");
            fs::write(&configuration, text)?;
            let said = folder.join(format!("said-{id}"));
            Ok(Self {
                configuration,
                said,
                address,
            })
        });
        each.collect()
    }

    /// Whether the program has delivered this value since it was started.
    fn has(&self, value: &str) -> Result<bool> {
        Ok(lines(&self.said)?.iter().any(|it| it == value))
    }
}

#[test]
fn programs_in_c_are_the_replicas_themselves() -> Result<()> {
    let scratch = scratch("c-inside")?;
    let folder = scratch.path();
    let prefix = folder.join("prefix");
    let (learner, submitter) = learner_and_submitter(&prefix)?;
    let all = Inside::all(folder, "")?;
    let learns = |id: usize| {
        let number = (id + 1).to_string();
        let arguments = [&all[id].configuration, "learn", &number, "1000000"];
        start(&learner, &arguments, &all[id].said)
    };
    let mut programs = (0..3).map(learns).collect::<Result<Vec<_>>>()?;
    // One that has no replica, to submit and to look.
    let addresses: Vec<&str> = all.iter().map(|it| it.address.as_str()).collect();
    let outside = folder.join("outside.toml").display().to_string();
    let text = format!("addresses = {addresses:?}\ndeadline_ms = 30000\npatience_ms = 500\n");
    fs::write(&outside, text)?;
    let results = folder.join("results");
    let arguments = [&outside, &VALUES.to_string(), "1"];
    let mut submits = start(&submitter, &arguments, &results)?;
    let mut killed = 0;
    let code = loop {
        let before = lines(&results)?.len();
        let mut code = None;
        wait_within("more values", DEADLINE, || {
            code = submits.0.try_wait()?;
            Ok(code.is_some() || lines(&results)?.len() > before + VALUES / 8)
        })?;
        if let Some(code) = code {
            break code;
        }
        let id = killed % 3;
        programs[id] = {
            programs[id].0.kill()?;
            programs[id].0.wait()?;
            learns(id)?
        };
        killed += 1;
    };
    ensure!(
        code.success() && killed >= 3,
        "{code}, {killed} killed: {:?}",
        lines(&results)?.last()
    );
    succeed(Command::new(&learner).args([&outside[..], "submit", END]))?;
    wait_within("all programs to have the last value", DEADLINE, || {
        Ok(all
            .iter()
            .map(|it| it.has(END))
            .collect::<Result<Vec<_>>>()?
            .iter()
            .all(|it| *it))
    })?;
    // Nobody has checkpointed for the last learner: it is given all.
    let seen = folder.join("seen");
    let _looks = start(&learner, &[&outside, "learn", "9", "1000000"], &seen)?;
    wait_within("all values", DEADLINE, || {
        Ok(lines(&seen)?.last().is_some_and(|it| it == END))
    })?;
    judge(&lines(&results)?, VALUES, &lines(&seen)?)
}

#[test]
fn a_replica_inside_that_cannot_start_is_an_error_that_says_why() -> Result<()> {
    let scratch = scratch("c-refused")?;
    let folder = scratch.path();
    let prefix = folder.join("prefix");
    install(&prefix)?;
    let learner = compile_learner(&prefix)?;
    let said = |all: &[Inside]| -> Result<String> {
        let mut program = Command::new(&learner);
        let done = program
            .args([&all[0].configuration, "submit", "x"])
            .output()?;
        ensure!(!done.status.success(), "{done:?}");
        Ok(String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let wrong = said(&Inside::all(folder, "durability = \"some\"\n")?)?;
    ensure!(
        wrong.contains("durability") && wrong.contains("sync or memory"),
        "{wrong}"
    );
    let all = Inside::all(folder, "")?;
    let configuration = all[0].configuration.replace("client.toml", "server.toml");
    let text = fs::read_to_string(&configuration)?;
    fs::write(&configuration, text.replace("learners = \"1,2,3,9\"\n", ""))?;
    let without = said(&all)?;
    ensure!(without.contains("option learners"), "{without}");
    fs::write(&configuration, &text)?;
    let mut runs = start(
        &learner,
        &[&all[0].configuration, "learn", "1", "1"],
        &all[0].said,
    )?;
    wait_within("a replica that runs", DEADLINE, || {
        Ok(lines(&all[0].said)?
            .iter()
            .any(|it| it.contains("replica started")))
    })?;
    // Whoever goes away while it is answered ends no program that has SIGPIPE's default.
    // The program's own thread has it blocked until those of the replica have begun.
    let is_blocked = |it: &u64| it & SIGPIPE_BIT != 0;
    let mut blocked = (0, Vec::new());
    wait_within(
        "threads of the library that block it alone",
        DEADLINE,
        || {
            blocked = blocked_signals(runs.0.id())?;
            let (own, others) = &blocked;
            Ok(!is_blocked(own) && !others.is_empty() && others.iter().all(is_blocked))
        },
    )
    .with_context(|| format!("{blocked:x?}"))?;
    ensure!(
        runs.0.try_wait()?.is_none(),
        "{:?}",
        lines(&all[0].said)?.last()
    );
    let twice = said(&all)?;
    ensure!(
        twice.contains("data folder") && twice.contains("in use by process"),
        "{twice}"
    );
    Ok(())
}

#[test]
fn a_program_needs_nothing_but_the_archive_which_shows_our_functions_alone() -> Result<()> {
    let scratch = scratch("c-archive")?;
    let prefix = scratch.path();
    install(prefix)?;
    let archive = prefix.join("lib/libquorumwire.a");
    let mut symbols = Command::new("nm");
    let symbols = succeed(
        symbols
            .args(["--extern-only", "--defined-only"])
            .arg(&archive),
    )?;
    let names = symbols.lines().filter_map(|it| it.split_once(" T "));
    let names: Vec<&str> = names.map(|(_, name)| name).collect();
    let all = symbols.lines().filter(|it| it.split(' ').count() == 3);
    let are_ours = names
        .iter()
        .all(|it| it.starts_with("quorumwire_") || it.starts_with("qw_"));
    ensure!(
        names.contains(&"quorumwire_open") && are_ours && all.count() == names.len(),
        "{symbols}"
    );
    // Without the shared libraries.
    for library in fs::read_dir(prefix.join("lib"))? {
        let library = library?.path();
        if library.to_string_lossy().contains(".so") {
            fs::remove_file(library)?;
        }
    }
    let mut config = Command::new("pkg-config");
    config.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let flags = succeed(config.args(["--static", "--cflags", "--libs", "quorumwire"]))?;
    let program = prefix.join("reopened");
    let source = repository().join("tests/cluster/tests/c_library/reopened.c");
    let mut link = Command::new("cc");
    link.args(["-std=c99", "-pthread", "-o"])
        .arg(&program)
        .arg(source);
    succeed(link.args(flags.split_whitespace()))?;
    let refused = Command::new(program).arg("/nowhere.toml").output()?;
    let said = String::from_utf8_lossy(&refused.stderr);
    ensure!(said.contains("/nowhere.toml: No such file"), "{said}");
    Ok(())
}

/// Which signals the first thread of a program blocks, and which each of the others.
fn blocked_signals(pid: u32) -> Result<(u64, Vec<u64>)> {
    let (mut own, mut others) = (0, Vec::new());
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let thread = thread?;
        let status = fs::read_to_string(thread.path().join("status"))?;
        let line = status.lines().find_map(|it| it.strip_prefix("SigBlk:"));
        let blocked = u64::from_str_radix(line.context("no SigBlk")?.trim(), 16)?;
        if thread.file_name() == *pid.to_string() {
            own = blocked;
        } else {
            others.push(blocked);
        }
    }
    Ok((own, others))
}

#[test]
fn a_replica_inside_has_ended_when_its_handle_is_closed() -> Result<()> {
    let scratch = scratch("c-reopened")?;
    let folder = scratch.path();
    let prefix = folder.join("prefix");
    install(&prefix)?;
    let source = "tests/cluster/tests/c_library/reopened.c";
    let cc = ["cc", "-std=c99", "-pthread"];
    let program = compile(&prefix, &cc, source, "reopened")?;
    let all = Inside::all(folder, "drain_timeout_ms = 500\n")?;
    let said = succeed(Command::new(program).arg(&all[0].configuration))?;
    ensure!(said == "3 times\n", "{said}");
    Ok(())
}
