//! A browser without a screen, driven by the `DevTools` protocol over a pair of pipes: no port, no driver
//! program, gone when the test is. Loads, asks and draws; knows nothing of what pages say.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context as _, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::process::Process;

/// How long one command may take; the first one includes the browser's start.
const COMMAND_DEADLINE: Duration = Duration::from_secs(20);

/// How often a wait looks again.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The protocol's pipes are descriptors 3 and 4. The sandbox needs more than the root of a test machine has.
const START: &str = "exec 3<&0 4>&1 </dev/null >/dev/null; \
    exec chromium-headless-shell --no-sandbox --disable-gpu --hide-scrollbars --no-proxy-server \
    --user-data-dir=\"$1\" --remote-debugging-pipe about:blank";

/// What a reader's system is set to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scheme {
    /// Dark letters on light ground.
    Light,
    /// The other way round.
    Dark,
}

/// A browser with one page.
#[derive(Debug)]
pub struct Browser {
    // Dropped in this order: without its pipe the browser ends, whatever else it has started.
    input: ChildStdin,
    messages: Receiver<Value>,
    session: Option<String>,
    last_id: u64,
    complaints: Vec<String>,
    _process: Process,
}

impl Browser {
    /// Starts one in the client's machine.
    pub fn start(cluster: &Cluster<'_>) -> Result<Self> {
        let profile = cluster.scratch_file("browser");
        Self::start_with(&profile, |program, arguments, standard| {
            cluster.start_beside(program, arguments, standard)
        })
    }

    /// Starts one in a network namespace, with its files in this folder.
    pub fn start_in(namespace: &Path, profile: &Path) -> Result<Self> {
        Self::start_with(profile, |program, arguments, standard| {
            Process::start_with(namespace, program, arguments, standard)
        })
    }

    fn start_with(
        profile: &Path,
        start: impl FnOnce(&Path, &[String], [Stdio; 3]) -> Result<Process>,
    ) -> Result<Self> {
        let profile = profile.display().to_string();
        let arguments = ["-c", START, "browser", &profile].map(String::from);
        let standard = [Stdio::piped(), Stdio::piped(), Stdio::null()];
        let mut process = start(Path::new("bash"), &arguments, standard)?;
        let (input, output) = process.take_pipes().context("pipes were asked for")?;
        let mut browser = Self {
            input,
            messages: read(output),
            session: None,
            last_id: 0,
            complaints: Vec::new(),
            _process: process,
        };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }))?;
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", &target)?;
        browser.session = session["sessionId"].as_str().map(String::from);
        ensure!(browser.session.is_some(), "no session: {session}");
        for domain in ["Runtime", "Log", "Page"] {
            browser.call(&format!("{domain}.enable"), &json!({}))?;
        }
        Ok(browser)
    }

    /// Loads a page, with all that belongs to it.
    pub fn open(&mut self, url: &str) -> Result<()> {
        let loaded = self.call("Page.navigate", &json!({ "url": url }))?;
        ensure!(loaded["errorText"].is_null(), "{url}: {loaded}");
        let is_there = format!("location.href === '{url}' && document.readyState === 'complete'");
        self.wait_for(&is_there, COMMAND_DEADLINE)
    }

    /// Pages are loaded without the files whose addresses are like one of these.
    pub fn lose(&mut self, files: &[&str]) -> Result<()> {
        self.call("Network.enable", &json!({}))?;
        self.call("Network.setBlockedURLs", &json!({ "urls": files }))?;
        Ok(())
    }

    /// What an expression is in the page.
    pub fn evaluate(&mut self, expression: &str) -> Result<Value> {
        let asked = json!({ "expression": expression, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", &asked)?;
        ensure!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {answer}"
        );
        Ok(answer["result"]["value"].clone())
    }

    /// Waits until an expression is true in the page.
    pub fn wait_for(&mut self, expression: &str, deadline: Duration) -> Result<()> {
        let end = Instant::now() + deadline;
        while self.evaluate(expression)? != Value::Bool(true) {
            if Instant::now() >= end {
                let text = self.evaluate("document.body.innerText")?;
                let complaints = self.take_complaints()?;
                bail!(
                    "waited {deadline:?} in vain for {expression}; the page says {text}; its console: {complaints:#?}"
                );
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Shows the page to a reader with a window of this width.
    pub fn set_reader(&mut self, width: u32, scheme: Scheme) -> Result<()> {
        let window =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &window)?;
        let value = match scheme {
            Scheme::Light => "light",
            Scheme::Dark => "dark",
        };
        let features = json!([{ "name": "prefers-color-scheme", "value": value }]);
        self.call(
            "Emulation.setEmulatedMedia",
            &json!({ "features": features }),
        )?;
        Ok(())
    }

    /// Draws the whole page into a PNG file.
    pub fn draw(&mut self, path: &Path) -> Result<()> {
        let asked = json!({ "format": "png", "captureBeyondViewport": true });
        let drawn = self.call("Page.captureScreenshot", &asked)?;
        let bytes = BASE64.decode(drawn["data"].as_str().context("no picture")?)?;
        fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))
    }

    /// Errors and warnings that page and browser have written to the console since this was asked last.
    pub fn take_complaints(&mut self) -> Result<Vec<String>> {
        self.evaluate("null")?; // what was said before has come then
        Ok(std::mem::take(&mut self.complaints))
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Result<Value> {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&message)?;
        bytes.push(0);
        self.input.write_all(&bytes)?;
        let end = Instant::now() + COMMAND_DEADLINE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let heard = self.messages.recv_timeout(left);
            let heard = heard.with_context(|| format!("{method}: no answer, or no browser"))?;
            if heard["id"] == json!(self.last_id) {
                ensure!(heard["error"].is_null(), "{method}: {}", heard["error"]);
                return Ok(heard["result"].clone());
            }
            self.complaints.extend(complaint(&heard));
        }
    }
}

/// What a message complains of, if it does.
fn complaint(heard: &Value) -> Option<String> {
    let said = &heard["params"];
    let complains = match heard["method"].as_str()? {
        "Runtime.exceptionThrown" => true,
        "Runtime.consoleAPICalled" => ["error", "warning", "assert"]
            .iter()
            .any(|kind| said["type"] == json!(kind)),
        "Log.entryAdded" => ["error", "warning"]
            .iter()
            .any(|level| said["entry"]["level"] == json!(level)),
        _ => false,
    };
    complains.then(|| said.to_string())
}

/// The browser's messages, each ended by a zero byte.
fn read(output: ChildStdout) -> Receiver<Value> {
    let (sender, messages) = mpsc::channel();
    thread::spawn(move || {
        for message in BufReader::new(output).split(0) {
            let message = message.ok().and_then(|it| serde_json::from_slice(&it).ok());
            let Some(message) = message else {
                return; // the browser is gone
            };
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    messages
}
