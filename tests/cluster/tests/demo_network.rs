//! `quorumwire demo-network`: its page in a real browser, which puts, gets, stops, cuts and mends; who may
//! ask for it; and that nothing is left of it, however it ends. What it looked like stands in
//! `target/tmp/demo-network.png` afterwards.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::binary::binary;
use quorumwire_cluster_tests::browser::{Browser, Scheme};
use quorumwire_cluster_tests::disk::Scratch;
use quorumwire_cluster_tests::network::{Machine, NAME_PREFIX, Network};
use quorumwire_cluster_tests::process::{Process, log_tail};
use quorumwire_cluster_tests::waiting::wait_within;
use rustix::process::Signal;

/// Whatever is waited for comes within this time, on a busy machine, too.
const DEADLINE: Duration = Duration::from_secs(30);
const WIDTH: u32 = 1280;

/// A demonstration, on a machine whose addresses do not change: browsers break off what they load when they
/// do.
struct Demo<'n> {
    process: Process,
    network: &'n Network,
    scratch: Scratch,
    address: String,
}

impl<'n> Demo<'n> {
    fn start(network: &'n Network, name: &str, more: &[&str]) -> Result<Self> {
        let scratch = Scratch::new(&format!("{NAME_PREFIX}-{}-{name}", std::process::id()))?;
        let log = scratch.path().join("log");
        let arguments = ["demo-network"].iter().chain(more);
        let arguments: Vec<String> = arguments.map(|it| (*it).to_owned()).collect();
        let namespace = network.namespace(Machine::Client);
        let mut process = Process::start(name, &namespace, &binary()?, &arguments, &log)?;
        let mut address = None;
        wait_within("the page's address", DEADLINE, || {
            ensure!(process.is_running()?, "it has ended: {}", log_tail(&log));
            let said = fs::read_to_string(&log)?;
            let line = said.lines().find_map(|line| line.strip_prefix("Open "));
            address = line.map(str::to_owned);
            Ok(address.is_some())
        })?;
        Ok(Self {
            process,
            network,
            scratch,
            address: address.context("it was found")?,
        })
    }

    /// The status of the answer to a request, and all of the answer. `HOST` and `TOKEN` are of the page.
    fn ask(&self, request: &str) -> Result<(u16, String)> {
        let parts: Vec<_> = self.address.split('/').collect();
        let (host, token) = (parts[2], parts[3]);
        let request = request.replace("HOST", host).replace("TOKEN", token);
        let asked = || -> Result<String> {
            let mut stream = TcpStream::connect(host)?;
            stream.set_read_timeout(Some(DEADLINE))?;
            stream.write_all(request.replace('\n', "\r\n").as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        let answer = self.network.run_in(Machine::Client, asked)??;
        let status = answer.split(' ').nth(1).context("a status")?.parse()?;
        Ok((status, answer))
    }

    fn post(&self, path: &str, body: &str) -> Result<(u16, String)> {
        let length = body.len();
        self.ask(&format!(
            "POST /TOKEN/{path} HTTP/1.1\nhost: HOST\ncontent-type: application/json\ncontent-length: {length}\n\n{body}"
        ))
    }

    /// Namespaces, folders and processes that it has made and that are there.
    fn remains(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        let pid = self.process.pid();
        for (folder, prefix) in [
            (Path::new("/run/netns"), format!("qwdemo-{pid}-")),
            (
                &std::env::temp_dir(),
                format!("quorumwire-demo-network-{pid}-"),
            ),
        ] {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if name.starts_with(&prefix) {
                    found.push(path.display().to_string());
                }
            }
        }
        found.extend(self.left_processes()?);
        Ok(found)
    }

    /// Those that it has started and that run.
    fn left_processes(&self) -> Result<Vec<String>> {
        let parent = format!("--die-with-parent\0{}\0", self.process.pid());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let path = entry?.path().join("cmdline");
            // Most have ended, or are no processes.
            let words = fs::read(&path).unwrap_or_default();
            if String::from_utf8_lossy(&words).contains(&parent) {
                found.push(path.display().to_string());
            }
        }
        Ok(found)
    }

    fn is_gone(&self) -> Result<()> {
        let remains = self.remains()?;
        ensure!(remains.is_empty(), "left behind: {remains:?}");
        Ok(())
    }
}

/// Fills a form and sends it; what stands below it in the end has this in it.
fn submit(
    browser: &mut Browser,
    form: &str,
    host: u8,
    fields: &[(&str, &str)],
    part: &str,
) -> Result<()> {
    let fills = fields
        .iter()
        .map(|(name, value)| format!("form.elements['{name}'].value = '{value}';"));
    let fills = fills.collect::<Vec<_>>().concat();
    let script = format!(
        "{{ const form = document.getElementById('{form}'); {fills} form.elements['host'].value = '{host}';
            form.querySelector('button').click(); }}"
    );
    browser.evaluate(&script)?;
    let says = format!("document.querySelector('#{form} output').textContent");
    browser.wait_for(&format!("!['', '...'].includes({says})"), DEADLINE)?;
    let said = browser.evaluate(&says)?;
    let said = said.as_str().unwrap_or_default();
    ensure!(said.contains(part), "{form}: {said}");
    Ok(())
}

fn put(browser: &mut Browser, host: u8, value: &str, part: &str) -> Result<()> {
    submit(
        browser,
        "put",
        host,
        &[("key", "greeting"), ("value", value)],
        part,
    )
}

/// Puts until the value is decided: on a busy machine one may take longer than the page waits.
fn is_decided(browser: &mut Browser, host: u8, value: &str) -> Result<()> {
    let what = format!("{value}, put at host {host}, is decided");
    wait_within(&what, DEADLINE, || {
        Ok(put(browser, host, value, "decided in instance").is_ok())
    })
}

/// A host has learned a value, or learns it soon.
fn comes_to(browser: &mut Browser, host: u8, value: &str) -> Result<()> {
    wait_within(&format!("{value} at host {host}"), DEADLINE, || {
        Ok(submit(
            browser,
            "get",
            host,
            &[("key", "greeting")],
            &format!("\"{value}\""),
        )
        .is_ok())
    })
}

/// Clicks on a part of the picture, and waits until it looks so.
fn click(browser: &mut Browser, part: &str, machine: &str, state: &str) -> Result<()> {
    let found = format!("document.querySelector('[data-part={part}][data-machine={machine}]')");
    browser.evaluate(&format!(
        "{found}.dispatchEvent(new MouseEvent('click', {{ bubbles: true }}))"
    ))?;
    browser.wait_for(&format!("{found}.dataset.state === '{state}'"), DEADLINE)
}

/// The name of who coordinates, or nothing.
const COORDINATES: &str = "document.getElementById('coordinates').dataset.machine";
/// More values come to both hosts than one reader puts.
const MOVES: &str = "['host-0', 'host-1'].every((name) =>
    Number(document.querySelector(`#hosts [data-machine=${name}]`)?.cells[3].textContent) > 20)";

#[test]
fn a_reader_breaks_the_network_and_mends_it_by_clicks() -> Result<()> {
    let network = Network::new(1)?;
    let mut demo = Demo::start(&network, "demo-clicks", &[])?;
    let profile = demo.scratch.path().join("browser");
    let mut browser = Browser::start_in(&network.namespace(Machine::Client), &profile)?;
    browser.set_reader(WIDTH, Scheme::Light)?;
    browser.open(&demo.address)?;
    let somebody = format!("['coordinator-0', 'coordinator-1'].includes({COORDINATES})");
    browser.wait_for(&somebody, DEADLINE)?;
    is_decided(&mut browser, 0, "first")?;
    comes_to(&mut browser, 1, "first")?;

    let mut first = String::new();
    wait_within("somebody to coordinate", DEADLINE, || {
        let name = browser.evaluate(COORDINATES)?;
        name.as_str().unwrap_or_default().clone_into(&mut first);
        Ok(!first.is_empty())
    })?;
    let first = first.as_str();
    click(&mut browser, "machine", first, "stopped")?;
    let other = format!("{somebody} && {COORDINATES} !== '{first}'");
    browser.wait_for(&other, DEADLINE)?;
    is_decided(&mut browser, 0, "by the backup")?;
    comes_to(&mut browser, 1, "by the backup")?;
    click(&mut browser, "machine", first, "running")?;

    browser.evaluate("document.getElementById('load').click()")?;
    browser.wait_for(MOVES, DEADLINE)?;
    click(&mut browser, "link", "acceptor-0", "cut")?;
    is_decided(&mut browser, 1, "by two acceptors")?;
    let picture = Path::new(env!("CARGO_TARGET_TMPDIR")).join("demo-network.png");
    browser.draw(&picture)?;
    browser.evaluate("document.getElementById('load').click()")?;
    let refused = browser.take_complaints()?;
    ensure!(refused.is_empty(), "{refused:#?}");

    click(&mut browser, "link", "acceptor-2", "cut")?;
    let no_majority = "no majority: 1 of 3 acceptors can be reached";
    put(&mut browser, 1, "by one acceptor", no_majority)?;
    click(&mut browser, "link", "acceptor-2", "up")?;
    is_decided(&mut browser, 0, "by two again")?;
    click(&mut browser, "link", "acceptor-0", "up")?;

    // A host that was killed has what it had learned, and learns what it has missed.
    click(&mut browser, "machine", "host-1", "stopped")?;
    put(&mut browser, 1, "by nobody", "host-1 is stopped")?;
    is_decided(&mut browser, 0, "without a host")?;
    click(&mut browser, "machine", "host-1", "running")?;
    comes_to(&mut browser, 1, "without a host")?;
    let complaints = browser.take_complaints()?;
    let is_of_answers = |it: &String| it.contains("status of 504") || it.contains("status of 409");
    ensure!(complaints.iter().all(is_of_answers), "{complaints:#?}");

    ensure!(
        !demo.remains()?.is_empty(),
        "what is looked for is found while it runs"
    );
    demo.process.signal(Signal::INT)?;
    let status = demo.process.wait(DEADLINE)?;
    ensure!(status.success(), "{status}");
    demo.is_gone()
}

/// Also with switches in processes, an acceptor that forgets, and how SIGTERM ends it.
#[test]
fn only_its_own_page_with_the_token_may_ask() -> Result<()> {
    let network = Network::new(1)?;
    let more = ["--plane", "socket", "--durability", "memory"];
    let mut demo = Demo::start(&network, "demo-askers", &more)?;
    for (request, status) in [
        ("GET /TOKEN/state HTTP/1.1\nhost: HOST\n\n", 200),
        ("GET / HTTP/1.1\nhost: HOST\n\n", 403),
        ("GET /state HTTP/1.1\nhost: HOST\n\n", 403),
        (
            "GET /00000000000000000000000000000000/state HTTP/1.1\nhost: HOST\n\n",
            403,
        ),
        (
            "GET /TOKEN/state HTTP/1.1\nhost: quorumwire.example\n\n",
            403,
        ),
        (
            "GET /TOKEN/state HTTP/1.1\nhost: HOST\norigin: http://quorumwire.example\n\n",
            403,
        ),
        (
            "POST /TOKEN/load HTTP/1.1\nhost: HOST\norigin: null\ncontent-length: 0\n\n",
            403,
        ),
        ("GET /TOKEN/put HTTP/1.1\nhost: HOST\n\n", 405),
        (
            "POST /TOKEN/state HTTP/1.1\nhost: HOST\ncontent-length: 0\n\n",
            405,
        ),
    ] {
        let (found, said) = demo.ask(request)?;
        ensure!(found == status, "{request}: {said}");
    }
    let (status, said) = demo.post("put", "{\"host\":1,\"key\":\"k\",\"value\":\"v\"}")?;
    ensure!(status == 200 && said.contains("\"instance\""), "{said}");
    let (status, said) = demo.post("put", "{\"host\":2,\"key\":\"k\",\"value\":\"v\"}")?;
    ensure!(status == 400 && said.contains("allowed: 0 to 1"), "{said}");
    let (status, said) = demo.post("machine", "{\"name\":\"router\",\"change\":\"cut\"}")?;
    ensure!(status == 400 && said.contains("acceptor-2"), "{said}");
    for (change, does) in [("stop", "stopped"), ("start", "votes")] {
        let body = format!("{{\"name\":\"acceptor-0\",\"change\":\"{change}\"}}");
        let (status, said) = demo.post("machine", &body)?;
        ensure!(status == 200, "{said}");
        wait_within(&format!("an acceptor that is {does}"), DEADLINE, || {
            let (_, said) = demo.ask("GET /TOKEN/state HTTP/1.1\nhost: HOST\n\n")?;
            let (_, body) = said.split_once("\r\n\r\n").context("a body")?;
            let state: serde_json::Value = serde_json::from_str(body)?;
            let mut machines = state["machines"].as_array().context("machines")?.iter();
            let acceptor = machines.find(|it| it["name"] == "acceptor-0");
            Ok(acceptor.is_some_and(|it| it["does"] == does))
        })?;
    }
    demo.process.signal(Signal::TERM)?;
    let status = demo.process.wait(DEADLINE)?;
    ensure!(status.success(), "{status}");
    demo.is_gone()
}

/// The next one removes what is left of one that was killed.
#[test]
fn nothing_stays_of_one_that_was_killed() -> Result<()> {
    let network = Network::new(1)?;
    let more = ["--plane", "socket", "--seconds", "1"];
    let mut killed = Demo::start(&network, "demo-killed", &more[..2])?;
    killed.process.signal(Signal::KILL)?;
    killed.process.wait(DEADLINE)?;
    wait_within("its end", DEADLINE, || {
        Ok(killed.left_processes()?.is_empty())
    })?;
    let left = killed.remains()?;
    let pid = killed.process.pid();
    for kind in [
        format!("qwdemo-{pid}-"),
        format!("quorumwire-demo-network-{pid}-"),
    ] {
        let is_there = left.iter().any(|it| it.contains(&kind));
        ensure!(is_there, "it could remove nothing: {left:?}");
    }
    let mut next = Demo::start(&network, "demo-next", &more)?;
    let said = fs::read_to_string(next.scratch.path().join("log"))?;
    for path in left {
        let name = Path::new(&path)
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        ensure!(said.contains(&*name), "{name} is not named: {said}");
    }
    killed.is_gone()?;
    let status = next.process.wait(DEADLINE)?;
    ensure!(status.success(), "{status}");
    next.is_gone()
}
