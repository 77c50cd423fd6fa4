//! The examples of docs/examples, as they stand there, against real clusters: with ordinary clients, and with
//! a replica among the addresses that has died.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Result, ensure};
use quorumwire_cluster_tests::binary::must_be_as_new_as_its_sources;
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};

/// The one whose packages tools/setup installs.
const DEBIANS_PYTHON: &str = "/usr/bin/python3";

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples")
}

/// What each example prints last when it has done all it does.
fn check(said: &str, replicas: usize) -> Result<()> {
    ensure!(said.contains("left: 1\n"), "{said}");
    for visit in 1..=replicas {
        ensure!(said.contains(&format!("visitor {visit}\n")), "{said}");
    }
    ensure!(said.ends_with(&format!("visits: {replicas}\n")), "{said}");
    Ok(())
}

/// How an example is told where the replicas are.
#[derive(Clone, Copy)]
enum AddressForm<'a> {
    /// By two options, of which this stands in front: for Redis clients and for memcached clients.
    Options(&'a str),
    /// By one list, for clients of the native protocol.
    Native,
}

/// Runs an example with all replicas up, and again after the one has died that its addresses begin with.
fn run_twice(program: &str, first: &[&str], told: AddressForm<'_>) {
    run_started(Plan::new(3, Durability::Memory), |cluster| {
        let leader = cluster.wait_for_leader()?;
        cluster.wait_for_ready(&[0, 1, 2])?;
        let ids = [(leader + 1) % 3, leader, (leader + 2) % 3];
        run_example(cluster, program, first, told, (&ids, &ids))?;
        ensure!(cluster.client(leader)?.delete("visits").expect("delete") == "DELETED");
        cluster.kill(ids[0])?;
        // Its own client needs no list without the dead one.
        let served = match told {
            AddressForm::Options(_) => &ids[1..],
            AddressForm::Native => &ids[..],
        };
        run_example(cluster, program, first, told, (&ids, served))
    });
}

fn run_example(
    cluster: &Cluster<'_>,
    program: &str,
    first: &[&str],
    told: AddressForm<'_>,
    (redis_ids, memcached_ids): (&[u16], &[u16]),
) -> Result<()> {
    let list = |ids: &[u16], address: &dyn Fn(u16) -> SocketAddr| {
        let addresses = ids.iter().map(|id| address(*id).to_string());
        addresses.collect::<Vec<_>>().join(",")
    };
    let arguments = match told {
        AddressForm::Options(option) => vec![
            format!("{option}redis"),
            list(redis_ids, &|id| cluster.redis(id)),
            format!("{option}memcached"),
            list(memcached_ids, &|id| cluster.memcached(id)),
        ],
        AddressForm::Native => vec![list(memcached_ids, &|id| cluster.native(id))],
    };
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = cluster.run_program(program, &[first, &arguments].concat())?;
    ensure!(done.success, "{}{}", done.stdout, done.stderr);
    check(&done.stdout, memcached_ids.len())
}

#[test]
fn python_clients_run_their_example() {
    let script = examples().join("python/stock.py");
    run_twice(
        DEBIANS_PYTHON,
        &[script.to_str().expect("a path")],
        AddressForm::Options("--"),
    );
}

/// A transaction whose answer is lost may have been carried out: it is sent once, and the example says so.
#[test]
fn a_transaction_without_an_answer_is_not_repeated() {
    const SELLS: &str = "import sys, redis, stock
try:
    print('sold', stock.sell(stock.Replicas([sys.argv[1]]).redis, 'lamp', 2))
except redis.RedisError:
    print('not known')";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serves = thread::spawn(move || loses_answers(&listener));
    let done = Command::new(DEBIANS_PYTHON)
        .args(["-B", "-c", SELLS, &address])
        .current_dir(examples().join("python"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert_eq!(
        said,
        "not known\n",
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    drop(std::net::TcpStream::connect(&address).unwrap());
    assert_eq!(serves.join().unwrap(), 1, "sent once");
}

/// A server of Redis clients that closes each connection where the answer to `EXEC` should come. It ends with
/// a connection that says nothing, and tells how often it was asked.
fn loses_answers(listener: &TcpListener) -> usize {
    let mut transactions = 0;
    for stream in listener.incoming() {
        let stream = stream.unwrap();
        let lines = BufReader::new(&stream).lines().map_while(Result::ok);
        let answer = |text: &str| (&stream).write_all(text.as_bytes()).is_ok();
        let mut has_asked = false;
        for line in lines {
            has_asked = true;
            let goes_on = match line.as_str() {
                "PING" => answer("+PONG\r\n"),
                "GET" => answer("$2\r\n10\r\n"),
                "WATCH" | "UNWATCH" | "MULTI" | "CLIENT" => answer("+OK\r\n"),
                "DECRBY" | "INCRBY" => answer("+QUEUED\r\n"),
                "EXEC" => {
                    transactions += 1;
                    false
                }
                _ => true, // lengths and arguments
            };
            if !goes_on {
                break;
            }
        }
        if !has_asked {
            break;
        }
    }
    transactions
}

#[test]
fn go_clients_run_their_example() {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stock");
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(examples().join("go"))
        .status()
        .expect("go is there: tools/setup installs it");
    assert!(built.success(), "the example does not build");
    run_twice(
        program.to_str().expect("a path"),
        &[],
        AddressForm::Options("-"),
    );
}

#[test]
fn the_rust_client_runs_its_example() {
    let program = built_example().unwrap_or_else(build_example);
    run_twice(&program, &[], AddressForm::Native);
}

/// The example beside this program, where `cargo test --workspace` puts it, unless it is older than its
/// sources.
fn built_example() -> Option<String> {
    let me = std::env::current_exe().ok()?;
    let program = me.parent()?.parent()?.join("examples/stock");
    must_be_as_new_as_its_sources(&program).ok()?;
    program.to_str().map(str::to_owned)
}

fn build_example() -> String {
    let built = Command::new(env!("CARGO"))
        .args([
            "build",
            "--quiet",
            "--locked",
            "--package",
            "quorumwire-client",
        ])
        .args(["--example", "stock", "--message-format", "json"])
        .current_dir(examples())
        .output()
        .expect("cargo is there");
    let said = String::from_utf8_lossy(&built.stdout);
    assert!(built.status.success(), "the example does not build: {said}");
    let messages = said
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    messages
        .filter_map(|message: serde_json::Value| message["executable"].as_str().map(str::to_owned))
        .next_back()
        .expect("cargo says where the program is")
}
