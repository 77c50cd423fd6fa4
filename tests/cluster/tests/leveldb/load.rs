//! Clients of replicated `LevelDB` that ask one server after the other until they are answered, and what they
//! saw.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use quorumwire_cluster_tests::history::{Answer as Seen, Call, Operation, Recorder};
use quorumwire_cluster_tests::leveldb::{
    Answer, Ask, Client, DEADLINE, NO_SESSION, REFUSED, SUPERSEDED,
};
use quorumwire_cluster_tests::linearizability;
use quorumwire_cluster_tests::waiting::wait_within;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

const CLIENTS: u32 = 4;
const KEYS: u32 = 3;
/// A value that goes in pieces.
const LONG_BYTES: usize = 5000;
const PAUSE: Duration = Duration::from_millis(20);

/// What one client saw.
struct Outcome {
    calls: Vec<Call>,
    /// Keys of its own that it was told are written.
    journal: Vec<String>,
    asked_again: u64,
}

struct Asker {
    id: u32,
    servers: Vec<String>,
    at: usize,
    link: Option<Client>,
    session: u64,
    sequence: u64,
    asked_again: u64,
}

impl Asker {
    fn once(&mut self, ask: Ask<'_>) -> Option<Answer> {
        if self.link.is_none() {
            self.link = Client::connect(&self.servers[self.at]).ok();
        }
        let answer = self.link.as_mut().and_then(|link| link.ask(ask).ok());
        if answer.is_none() {
            self.link = None;
            self.at = (self.at + 1) % self.servers.len();
            thread::sleep(PAUSE);
        }
        answer
    }

    /// Until it is answered. What is asked is the same each time.
    fn ask(&mut self, ask: Ask<'_>) -> Result<Answer> {
        let begun = Instant::now();
        let mut times = 0_u64;
        while begun.elapsed() < DEADLINE {
            times += 1;
            match self.once(ask) {
                Some(Answer::Other(status @ (NO_SESSION | SUPERSEDED | REFUSED), text)) => {
                    bail!("{ask:?}: {status}: {text}")
                }
                Some(Answer::Other(..)) => thread::sleep(PAUSE),
                Some(answer) => {
                    self.asked_again += times - 1;
                    return Ok(answer);
                }
                None => {}
            }
        }
        bail!("{ask:?}: no answer")
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.sequence += 1;
        let ask = Ask::Put(self.session, self.sequence, key.as_bytes(), value);
        let answer = self.ask(ask)?;
        ensure!(answer == Answer::Done(Vec::new()), "{answer:?}");
        Ok(())
    }

    fn delete(&mut self, key: &str) -> Result<Seen> {
        self.sequence += 1;
        let ask = Ask::Delete(self.session, self.sequence, key.as_bytes());
        Ok(match self.ask(ask)? {
            Answer::NotFound => Seen::NotFound,
            Answer::Done(_) | Answer::Other(..) => Seen::Deleted,
        })
    }
}

fn name(key: u32) -> String {
    format!("key-{key}")
}

fn number(answer: &Answer) -> Result<Option<u64>> {
    let Answer::Done(value) = answer else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(value);
    let number = text.split(';').next().context("a number")?;
    Ok(Some(number.parse()?))
}

fn run(
    mut asker: Asker,
    start: Instant,
    seed: u64,
    stop: &AtomicBool,
    count: &AtomicU64,
) -> Result<Outcome> {
    let mut random = ChaCha8Rng::seed_from_u64(seed + u64::from(asker.id));
    let mut recorder = Recorder::new(start, asker.id);
    let mut journal = Vec::new();
    while asker.session == 0 {
        if let Some(link) = &mut asker.link {
            asker.session = link.open().unwrap_or_default();
        }
        asker.once(Ask::Status);
    }
    for next in 1_u64.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let key = random.random_range(0..KEYS);
        let value = u64::from(asker.id) << 32 | next;
        match random.random_range(0..10) {
            0..=3 => {
                let open = recorder.invoke(key, Operation::Get);
                let answer = asker.ask(Ask::Read(name(key).as_bytes()))?;
                recorder.answered(open, Seen::Value(number(&answer)?));
            }
            4 => {
                let open = recorder.invoke(key, Operation::Get);
                let answer = asker.ask(Ask::Get(name(key).as_bytes()))?;
                recorder.answered(open, Seen::Value(number(&answer)?));
            }
            5..=7 => {
                let mut bytes = format!("{value};").into_bytes();
                if next.is_multiple_of(8) {
                    bytes.resize(LONG_BYTES, b'x');
                }
                let open = recorder.invoke(key, Operation::Set(value));
                asker.put(&name(key), &bytes)?;
                recorder.answered(open, Seen::Stored);
            }
            8 => {
                let open = recorder.invoke(key, Operation::Delete);
                let answer = asker.delete(&name(key))?;
                recorder.answered(open, answer);
            }
            _ => {
                let own = format!("journal-{}-{next}", asker.id);
                asker.put(&own, own.as_bytes())?;
                journal.push(own);
            }
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
    Ok(Outcome {
        calls: recorder.into_calls(),
        journal,
        asked_again: asker.asked_again,
    })
}

/// Clients at work.
pub struct Load {
    start: Instant,
    servers: Vec<String>,
    stop: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
    clients: Vec<JoinHandle<Result<Outcome>>>,
}

impl Load {
    /// Begins.
    pub fn start(servers: &[String], seed: u64) -> Self {
        let start = Instant::now();
        let stop = Arc::new(AtomicBool::new(false));
        let count = Arc::new(AtomicU64::new(0));
        let begin = |id: u32| {
            let asker = Asker {
                id,
                servers: servers.to_vec(),
                at: id as usize % servers.len(),
                link: None,
                session: 0,
                sequence: 0,
                asked_again: 0,
            };
            let (stop, count) = (Arc::clone(&stop), Arc::clone(&count));
            thread::spawn(move || run(asker, start, seed, &stop, &count))
        };
        let clients = (0..CLIENTS).map(begin).collect();
        Self {
            start,
            servers: servers.to_vec(),
            stop,
            count,
            clients,
        }
    }

    /// Waits for so many more answers.
    pub fn wait_for(&self, more: u64) -> Result<()> {
        let goal = self.count.load(Ordering::Relaxed) + more;
        wait_within("answers", DEADLINE, || {
            if let Some(ended) = self.clients.iter().position(JoinHandle::is_finished) {
                bail!("client {ended} has ended");
            }
            Ok(self.count.load(Ordering::Relaxed) >= goal)
        })
    }

    /// Ends, reads everything at every server, and judges. Gives back the keys that must be there.
    pub fn judge(mut self) -> Result<Vec<String>> {
        self.stop.store(true, Ordering::Relaxed);
        let (mut calls, mut journal, mut asked_again) = (Vec::new(), Vec::new(), 0);
        for client in self.clients.drain(..) {
            let outcome = client.join().expect("no panic")?;
            calls.extend(outcome.calls);
            journal.extend(outcome.journal);
            asked_again += outcome.asked_again;
        }
        for (reader, server) in (CLIENTS..).zip(&self.servers) {
            let mut recorder = Recorder::new(self.start, reader);
            let mut client = Client::connect(server)?;
            for key in 0..KEYS {
                let open = recorder.invoke(key, Operation::Get);
                let answer = client.ask(Ask::Read(name(key).as_bytes()))?;
                recorder.answered(open, Seen::Value(number(&answer)?));
            }
            calls.extend(recorder.into_calls());
            must_be_there(&mut client, &journal)?;
        }
        let checked = linearizability::check(&calls)?;
        println!(
            "{checked:?}, {} keys in the journal, {asked_again} times asked again",
            journal.len()
        );
        ensure!(asked_again > 0, "void: nobody had to ask again");
        Ok(journal)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients.drain(..) {
            client.join().ok();
        }
    }
}

/// All of these were acknowledged.
pub fn must_be_there(client: &mut Client, journal: &[String]) -> Result<()> {
    for key in journal {
        let answer = client.ask(Ask::Get(key.as_bytes()))?;
        let expected = Answer::Done(key.clone().into_bytes());
        ensure!(answer == expected, "{key}: {answer:?}");
    }
    Ok(())
}
