//! The wheel for Python as a program finds it once it is installed: its own tests, and programs against a
//! group whose replicas are killed, and a deployment whose switches are.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::thread;
use std::{fs, io};

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::c_programs::{
    Program, client_file, lines, member_file, repository, succeed,
};
use quorumwire_cluster_tests::cluster::run_started;
use quorumwire_cluster_tests::deployment::Deployment;
use quorumwire_cluster_tests::value_programs::{
    DEADLINE, judge, kill_replicas, kill_switches, with_learners,
};
use quorumwire_cluster_tests::waiting::wait_within;

/// The one whose packages tools/setup installs.
const DEBIANS_PYTHON: &str = "/usr/bin/python3";
const VALUES: usize = 1500;
/// A learner is killed once it has so many.
const BEFORE_A_KILL: usize = VALUES / 4;
const PAYMENTS: i64 = 400;

/// A Python that finds the wheel.
static PYTHON: LazyLock<PathBuf> = LazyLock::new(|| installed().expect("the wheel is installed"));

fn installed() -> Result<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let (wheels, environment) = (folder.join("wheel"), folder.join("environment"));
    let mut build = Command::new(repository().join("client/python/wheel"));
    let to = format!("TO={}", wheels.display());
    let wheel = succeed(build.args([&to, "PROFILE=dev"]))?;
    // cffi is Debian's.
    let mut make = Command::new(DEBIANS_PYTHON);
    make.args(["-m", "venv", "--system-site-packages", "--without-pip"]);
    succeed(make.arg(&environment))?;
    let python = environment.join("bin/python");
    let mut install = Command::new(DEBIANS_PYTHON);
    install.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]);
    install.arg("--python").arg(&python);
    succeed(install.args(["install", "--no-index", wheel.trim()]))?;
    Ok(python)
}

/// Python with a program. Nothing is written beside the sources, and a client that is not closed is an error.
fn python(script: impl AsRef<Path>) -> Command {
    let mut command = Command::new(&*PYTHON);
    command.args(["-B", "-W", "error"]);
    command.arg(repository().join(script));
    command
}

/// Runs beside the test; what it says goes to the end of this file.
fn start(command: &mut Command, said: &Path) -> Result<Program> {
    let file = File::options().create(true).append(true).open(said)?;
    command.stdin(Stdio::null());
    command.stdout(file.try_clone()?).stderr(file);
    Ok(Program(command.spawn()?))
}

fn programs(name: &str) -> Command {
    python(Path::new("tests/cluster/tests/python_library").join(name))
}

#[test]
fn the_wheel_does_what_its_tests_say() -> Result<()> {
    let mut tests = Command::new(&*PYTHON);
    tests.args(["-B", "-W", "error", "-m", "unittest", "discover"]);
    tests.args(["--start-directory", "client/python/tests"]);
    tests.args(["--pattern", "*_test.py"]);
    succeed(tests.current_dir(repository())).map(drop)
}

#[test]
fn its_types_are_whole_and_those_who_use_it_see_them() -> Result<()> {
    let mypy = |what: &[&str]| {
        let mut mypy = Command::new(DEBIANS_PYTHON);
        mypy.args(["-m", "mypy", "--strict", "--cache-dir"]);
        mypy.arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("mypy"));
        mypy.arg("--python-executable").arg(&*PYTHON);
        let done = mypy.args(what).current_dir(repository()).output()?;
        let said = String::from_utf8(done.stdout)?;
        anyhow::Ok((done.status.success(), said))
    };
    let users = [
        "docs/examples/python/accounts.py",
        "tests/cluster/tests/python_library/asks.py",
        "tests/cluster/tests/python_library/begins_anew.py",
        "tests/cluster/tests/python_library/learner.py",
        "tests/cluster/tests/python_library/submitter.py",
    ];
    for what in [&users[..], &["client/python/src"]] {
        let (is_well, said) = mypy(what)?;
        ensure!(is_well, "{said}");
    }
    let wrong = "import quorumwire\nquorumwire.open('a').submit('text')\n";
    let (is_well, said) = mypy(&["-c", wrong])?;
    ensure!(!is_well && said.contains("incompatible type"), "{said}");
    Ok(())
}

#[test]
fn a_group_answers_whatever_is_asked_and_slow_learners_hold_nobody_up() {
    run_started(with_learners(), |cluster| {
        succeed(programs("asks.py").arg(client_file(cluster)?)).map(drop)
    });
}

/// A learner's file: its lines without their instances.
fn learned(file: &Path) -> Result<Vec<String>> {
    let values = lines(file)?.into_iter().map(|line| {
        let (instance, value) = line.split_once(' ').context("an instance")?;
        instance.parse::<u64>()?;
        Ok(value.to_owned())
    });
    values.collect()
}

/// A program that learns into this file.
struct Learner {
    arguments: Vec<String>,
    file: PathBuf,
    said: PathBuf,
    runs: Option<Program>,
}

impl Learner {
    fn start(configuration: &str, number: u8, file: PathBuf, how: &str) -> Result<Self> {
        let path = file.to_str().context("a path")?;
        let number = number.to_string();
        let arguments = [configuration, &number, path, how].map(str::to_owned);
        fs::write(&file, "")?;
        let mut learner = Self {
            arguments: arguments.into(),
            said: file.with_extension("said"),
            file,
            runs: None,
        };
        learner.go_on()?;
        Ok(learner)
    }

    fn go_on(&mut self) -> Result<()> {
        let mut command = programs("learner.py");
        self.runs = Some(start(command.args(&self.arguments), &self.said)?);
        Ok(())
    }

    /// Dies amidst the values, and begins behind those that it has written.
    fn die_and_go_on(&mut self) -> Result<()> {
        wait_within("values to learn", DEADLINE, || {
            Ok(lines(&self.file)?.len() > BEFORE_A_KILL)
        })?;
        self.runs = None;
        self.go_on()
    }

    fn wait_for(&mut self, value: &str) -> Result<Vec<String>> {
        let waited = wait_within("a learner to have all", DEADLINE, || {
            let last = lines(&self.file)?.pop().unwrap_or_default();
            Ok(last.ends_with(value))
        });
        let said = fs::read_to_string(&self.said)?;
        waited.context(said)?;
        learned(&self.file)
    }
}

/// Submits a last value. Both learners come to it, and have learned what was submitted.
fn end(configuration: &str, results: &Path, learners: &mut [Learner; 2]) -> Result<()> {
    const SUBMITS: &str = "import quorumwire, sys
with quorumwire.open(sys.argv[1]) as client:
    client.submit(b'the end')";
    let mut last = Command::new(&*PYTHON);
    succeed(last.args(["-c", SUBMITS, configuration]))?;
    let [first, second] = learners.each_mut().map(|it| it.wait_for(" the end"));
    let (first, second) = (first?, second?);
    ensure!(first == second, "the learners differ");
    judge(&lines(results)?, VALUES, &first)
}

#[test]
fn programs_submit_and_learn_while_replicas_are_killed() {
    run_started(with_learners(), |cluster| {
        let configuration = client_file(cluster)?;
        let configuration = configuration.to_str().context("a path")?;
        let file = |name: &str| cluster.scratch_file(name);
        let results = file("results");
        let mut learners = [
            Learner::start(configuration, 1, file("first"), "blocks")?,
            Learner::start(configuration, 2, file("second"), "asyncio")?,
        ];
        let mut submitter = programs("submitter.py");
        submitter.args([configuration, &VALUES.to_string()]);
        let mut submits = start(&mut submitter, &results)?;
        thread::scope(|scope| {
            let [_, second] = &mut learners;
            let dies = scope.spawn(|| second.die_and_go_on());
            kill_replicas(cluster, &mut submits, &results)?;
            dies.join().expect("no panic")
        })?;
        end(configuration, &results, &mut learners)
    });
}

#[test]
fn programs_submit_and_learn_while_switches_are_killed() -> Result<()> {
    let mut deployment = Deployment::new("python-switches", 3)?;
    deployment.start_all()?;
    let file = |name: &str| PathBuf::from(deployment.path(name));
    let results = file("results");
    let mut learners = [
        Learner::start(
            &member_file(&deployment, 0, "learner-0", "")?,
            0,
            file("first"),
            "asyncio",
        )?,
        Learner::start(
            &member_file(&deployment, 1, "learner-1", "")?,
            1,
            file("second"),
            "blocks",
        )?,
    ];
    let configuration = member_file(
        &deployment,
        2,
        "learner-2",
        "only_submits = true\ndeadline_ms = 60000\n",
    )?;
    let mut submitter = programs("submitter.py");
    submitter.args([&configuration, &VALUES.to_string()]);
    let mut submits = start(&mut submitter, &results)?;
    thread::scope(|scope| {
        let [first, second] = &mut learners;
        let first_dies = scope.spawn(|| first.die_and_go_on());
        let second_dies = scope.spawn(|| second.die_and_go_on());
        kill_switches(&mut deployment, &mut submits, &results)?;
        first_dies.join().expect("no panic")?;
        second_dies.join().expect("no panic")
    })?;
    end(&configuration, &results, &mut learners)
}

#[test]
fn who_begins_anew_at_a_deployment_is_given_each_value_once() -> Result<()> {
    let mut deployment = Deployment::new("python-anew", 1)?;
    deployment.start_all()?;
    let configuration = member_file(&deployment, 0, "learner-0", "deadline_ms = 60000\n")?;
    succeed(programs("begins_anew.py").arg(configuration)).map(drop)
}

/// What its databases hold.
fn shown(database: &Path) -> Result<String> {
    succeed(example().arg(database))
}

fn example() -> Command {
    python("docs/examples/python/accounts.py")
}

#[test]
fn the_example_carries_out_each_payment_once_while_the_leader_and_a_keeper_die() {
    run_started(with_learners(), |cluster| {
        let configuration = client_file(cluster)?;
        let databases = ["1", "2"].map(|it| cluster.scratch_file(&format!("database-{it}")));
        let said = cluster.scratch_file("said");
        let keep = |number: usize| {
            let mut command = example();
            command.arg(&configuration);
            command.args(["keep", &(number + 1).to_string()]);
            start(command.arg(&databases[number]), &said)
        };
        let _first = keep(0)?;
        let second = keep(1)?;
        let pay = |from: &str, to: &str, amount: i64, times: i64| {
            let mut command = example();
            command.arg(&configuration).args(["pay", from, to]);
            succeed(command.args([amount.to_string(), times.to_string()]))
        };
        let before = pay("anna", "bob", 2, PAYMENTS)?;
        ensure!(before.lines().count() == 400, "{before}");
        drop(second);
        let leader = cluster.wait_for_leader()?;
        cluster.kill(leader)?;
        // Of the second half anna can pay one half only.
        pay("anna", "bob", 1, PAYMENTS)?;
        let _second = keep(1)?;
        pay("carl", "dora", 1, 1)?;
        let end = "anna -1000\nbob 1000\ncarl -1\ndora 1\n";
        for database in &databases {
            // There may be no table yet.
            let all = || Ok(shown(database).is_ok_and(|it| it == end));
            wait_within("all payments", DEADLINE, all)
                .with_context(|| format!("{:?}", shown(database)))?;
        }
        Ok(())
    });
}
