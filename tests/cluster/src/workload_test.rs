//! Tests of the load and its judgement against servers in this process: an honest one, and liars that
//! must be found out.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;

use super::*;

/// In what way a server is bad, each about once in [`LIE_ONE_IN`] chances.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Lie {
    None,
    /// Closes the connection instead of answering, with or without having done what was asked.
    Hangup,
    /// Acknowledges a write to a register it does not make.
    LosesWrite,
    /// Acknowledges a write to a journal key it does not make.
    LosesJournal,
    /// Counts twice.
    CountsTwice,
    /// Answers a read with what was there before.
    StaleRead,
}

const LIE_ONE_IN: u64 = 40;

#[derive(Debug, Default)]
struct Store {
    items: HashMap<String, (u64, u64)>,
    before: HashMap<String, u64>,
    token: u64,
    chances: u64,
}

impl Store {
    fn lies(&mut self, given: Lie, wanted: Lie) -> bool {
        self.chances += u64::from(given == wanted);
        given == wanted && self.chances.is_multiple_of(LIE_ONE_IN)
    }

    fn write(&mut self, key: &str, value: u64) {
        self.token += 1;
        if let Some((old, _)) = self.items.insert(key.into(), (value, self.token)) {
            self.before.insert(key.into(), old);
        }
    }

    fn answer(&mut self, words: &[&str], value: Option<u64>, lie: Lie) -> String {
        let key = words[1];
        let found = self.items.get(key).copied();
        match (words[0], value, found) {
            ("gets", _, _) => {
                let mut answer = String::new();
                for key in &words[1..] {
                    let Some((value, token)) = self.items.get(*key).copied() else {
                        continue;
                    };
                    let stale = self.lies(lie, Lie::StaleRead);
                    let old = self.before.get(*key).copied().filter(|_| stale);
                    let text = old.unwrap_or(value).to_string();
                    let length = text.len();
                    let item = format!("VALUE {key} 0 {length} {token}\r\n{text}\r\n");
                    answer.push_str(&item);
                }
                answer + "END"
            }
            ("set", Some(value), _) => {
                let journal = key.contains("journal");
                let wanted = if journal {
                    Lie::LosesJournal
                } else {
                    Lie::LosesWrite
                };
                if !self.lies(lie, wanted) {
                    self.write(key, value);
                }
                "STORED".into()
            }
            ("add", Some(_), Some(_)) => "NOT_STORED".into(),
            ("add", Some(value), None) => {
                self.write(key, value);
                "STORED".into()
            }
            ("cas" | "incr" | "delete", _, None) => "NOT_FOUND".into(),
            ("cas", Some(value), Some((_, token))) => {
                if words[5] == token.to_string() {
                    self.write(key, value);
                    "STORED".into()
                } else {
                    "EXISTS".into()
                }
            }
            ("incr", _, Some((value, _))) => {
                let twice = u64::from(self.lies(lie, Lie::CountsTwice));
                self.write(key, value + 1 + twice);
                (value + 1 + twice).to_string()
            }
            ("delete", ..) => {
                self.items.remove(key);
                "DELETED".into()
            }
            other => panic!("the load asked {other:?}"),
        }
    }
}

fn serve(stream: TcpStream, store: &Mutex<Store>, lie: Lie) {
    let mut writer = stream.try_clone().expect("clone");
    let mut lines = BufReader::new(stream).lines();
    while let Some(Ok(line)) = lines.next() {
        let words: Vec<_> = line.split(' ').collect();
        let value = ["set", "add", "cas"].contains(&words[0]).then(|| {
            let body = lines.next().expect("a value").expect("a value");
            body.parse().expect("a number")
        });
        let mut store = store.lock().expect("lock");
        if store.lies(lie, Lie::Hangup) {
            if (store.chances / LIE_ONE_IN).is_multiple_of(2) {
                store.answer(&words, value, lie);
            }
            return;
        }
        let answer = store.answer(&words, value, lie);
        drop(store);
        if writer
            .write_all(format!("{answer}\r\n").as_bytes())
            .is_err()
        {
            return;
        }
    }
}

fn server(lie: Lie) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("bound");
    let store = Arc::new(Mutex::new(Store::default()));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let store = Arc::clone(&store);
            thread::spawn(move || serve(stream, &store, lie));
        }
    });
    address
}

/// Runs a load of 2,000 writes on a server and judges it.
fn judged(lie: Lie) -> (u64, Result<Checked>) {
    let targets = [server(lie)];
    let mut load = Load::modest("t");
    load.rate_per_second_max = 4000;
    let running = Running::start(load, &targets, crate::seed::seed());
    running.wait_for_writes(2000).expect("writes");
    let report = running.finish().expect("finish");
    let unknown = report.unknown;
    (unknown, report.judge(&targets))
}

#[test]
fn an_honest_server_passes() {
    let (unknown, judgement) = judged(Lie::None);
    assert_eq!(unknown, 0);
    assert!(judgement.expect("linearizable").calls > 2000);
}

#[test]
fn broken_connections_leave_outcomes_open_and_pass() {
    let (unknown, judgement) = judged(Lie::Hangup);
    assert!(unknown > 20, "only {unknown} unknown");
    judgement.expect("linearizable");
}

#[test]
fn liars_are_found_out() {
    for (lie, reproach) in [
        (Lie::LosesWrite, "not linearizable"),
        (Lie::LosesJournal, "acknowledged writes are lost"),
        (Lie::CountsTwice, "not linearizable"),
        (Lie::StaleRead, "not linearizable"),
    ] {
        let (_, judgement) = judged(lie);
        let failure = judgement.expect_err("a lie").to_string();
        assert!(failure.contains(reproach), "{lie:?}: {failure}");
    }
}

#[test]
fn an_idle_run_is_void() {
    let targets = [server(Lie::None)];
    let mut load = Load::modest("t");
    load.rate_per_second_max = 100;
    let running = Running::start(load, &targets, 1);
    running.wait_for_writes(20).expect("writes");
    let failure = running.finish().expect("finish").judge(&targets);
    assert!(failure.expect_err("void").to_string().starts_with("void"));
}

#[test]
fn gaps_run_to_the_first_write_asked_for_later() {
    let start = Instant::now();
    let ms = Duration::from_millis;
    let ack = |invoked, answered| Acknowledgement {
        answered: ms(answered),
        invoked: ms(invoked),
    };
    let report = Report {
        load: Load::modest("t"),
        start,
        lasted: ms(100),
        calls: Vec::new(),
        journal: Vec::new(),
        acknowledged: vec![ack(1, 2), ack(3, 12), ack(11, 30), ack(29, 31)],
        unknown: 0,
        refused: 0,
        reasons: BTreeMap::new(),
        redis: BTreeMap::new(),
    };
    let moments = [start + ms(10), start + ms(29), start + ms(90)];
    assert_eq!(report.gaps_after(&moments), [ms(20), ms(2)]);
}
