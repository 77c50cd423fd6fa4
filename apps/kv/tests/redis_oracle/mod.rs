//! Redis itself and our parser and store, asked the same.
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::BytesMut;
use quorumwire_interfaces::{Application, Applied, LogTime};
use quorumwire_kv::redis::{Kind, Parsed, Resp, Script, Words, answer_command, classify, parse};
use quorumwire_kv::{Command as LogCommand, Key, MemoryChange, REPLY_BYTES_MAX, Store};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(20);

/// A Redis of our own; it ends with the test, also with one that fails.
pub struct Redis {
    process: Child,
    socket: PathBuf,
    _directory: TempDir,
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It may have ended already; there is nothing else to be done here.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Redis {
    pub fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("redis");
        let process = Command::new("redis-server")
            .current_dir(directory.path())
            .args(["--port", "0", "--save", "", "--appendonly", "no"])
            .args(["--databases", "1", "--proto-max-bulk-len", "1mb"])
            .args(["--loglevel", "warning", "--unixsocket"])
            .arg(&socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("this test needs the program redis-server: run `make setup`");
        Self {
            process,
            socket,
            _directory: directory,
        }
    }

    pub fn connect(&self) -> Connection {
        let deadline = Instant::now() + PATIENCE;
        let stream = loop {
            match UnixStream::connect(&self.socket) {
                Ok(stream) => break stream,
                Err(error) => assert!(Instant::now() < deadline, "Redis does not start: {error}"),
            }
            thread::yield_now();
        };
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Connection { stream }
    }
}

/// A connection to Redis.
pub struct Connection {
    pub stream: UnixStream,
}

impl Connection {
    pub fn ask(&mut self, words: &[Vec<u8>]) -> Vec<u8> {
        self.stream.write_all(&array(words)).unwrap();
        self.answer()
    }

    /// One whole answer.
    fn answer(&mut self) -> Vec<u8> {
        let mut answer = Vec::new();
        let mut buffer = [0; 8192];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => panic!("Redis hung up after {}", answer.escape_ascii()),
                Ok(bytes) => answer.extend_from_slice(&buffer[..bytes]),
                Err(error) => panic!("{error} after {}", answer.escape_ascii()),
            }
            if let Some(end) = answer_end(&answer) {
                assert_eq!(end, answer.len(), "more than one answer");
                return answer;
            }
        }
    }
}

/// Where the answer ends that begins `bytes`, if it is whole.
pub fn answer_end(bytes: &[u8]) -> Option<usize> {
    let line_end = bytes.windows(2).position(|pair| pair == b"\r\n")? + 2;
    let number = || -> i64 {
        let text = std::str::from_utf8(&bytes[1..line_end - 2]).unwrap();
        text.parse().unwrap()
    };
    let parts = match bytes[0] {
        b'$' | b'=' => {
            let Ok(length) = usize::try_from(number()) else {
                return Some(line_end);
            };
            let end = line_end + length + 2;
            return (bytes.len() >= end).then_some(end);
        }
        b'*' | b'~' => number(),
        b'%' => 2 * number(),
        _ => 0,
    };
    let mut end = line_end;
    for _ in 0..parts {
        end += answer_end(&bytes[end..])?;
    }
    Some(end)
}

/// The parts of an answer that is an array.
pub fn parts(answer: &[u8]) -> Vec<&[u8]> {
    let mut rest = &answer[answer.windows(2).position(|pair| pair == b"\r\n").unwrap() + 2..];
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let (part, behind) = rest.split_at(answer_end(rest).unwrap());
        parts.push(part);
        rest = behind;
    }
    parts
}

pub fn array(words: &[Vec<u8>]) -> Vec<u8> {
    let mut text = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        text.extend(format!("${}\r\n", word.len()).bytes());
        text.extend_from_slice(word);
        text.extend_from_slice(b"\r\n");
    }
    text
}

pub fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap()
}

/// Our parser and store, joined as a server joins them.
pub struct Ours {
    pub store: Store,
    index: u64,
    pub log_time_ms: u64,
}

impl Ours {
    pub fn new(log_time_ms: u64) -> Self {
        Self {
            store: Store::new(),
            index: 0,
            log_time_ms,
        }
    }

    pub fn ask(&mut self, resp: Resp, words: &[Vec<u8>]) -> Vec<u8> {
        let text = array(words);
        let Parsed::Request { consumed, words } = parse(&text) else {
            panic!("{}", text.escape_ascii());
        };
        assert_eq!(consumed, text.len());
        match classify(&words) {
            Err(error) => error,
            Ok(Kind::Write) => self.apply(&Script::single(resp, &words)),
            Ok(Kind::Read) => {
                let mut query = vec![resp.byte()];
                query.extend_from_slice(words.text());
                let mut reply = Vec::new();
                self.store.advance(LogTime(self.log_time_ms));
                self.store.query(&query, &mut reply);
                reply
            }
            Ok(Kind::Connection) => {
                let mut reply = Vec::new();
                answer_command(&words, resp, REPLY_BYTES_MAX, &mut reply);
                reply
            }
        }
    }

    pub fn apply(&mut self, script: &Script<'_>) -> Vec<u8> {
        self.apply_command(&LogCommand::Redis(*script))
    }

    /// Sets the memory limit.
    pub fn limit(&mut self, bytes: u64) {
        let change = MemoryChange {
            limit_bytes: Some(bytes),
            for_redis: true,
            ..MemoryChange::default()
        };
        let answer = self.apply_command(&LogCommand::Memory(change));
        assert_eq!(answer, b"+OK\r\n");
    }

    fn apply_command(&mut self, command: &LogCommand<'_>) -> Vec<u8> {
        let mut encoded = BytesMut::new();
        command.encode(&mut encoded);
        assert_eq!(encoded.len(), command.encoded_bytes());
        self.index += 1;
        let mut reply = Vec::new();
        let entry = Applied {
            number: self.index,
            log_time: LogTime(self.log_time_ms),
            awaits_time: false,
            command: &encoded,
        };
        self.store.apply(&entry, &mut reply);
        reply
    }

    /// The versions of keys, as the node asks for them.
    pub fn watch(&self, keys: &[Vec<u8>]) -> Vec<u8> {
        let words: Vec<Vec<u8>> = std::iter::once(b"\0versions".to_vec())
            .chain(keys.iter().cloned())
            .collect();
        let text = array(&words);
        assert!(classify(&Words::from_text(&text).unwrap()).is_err());
        let mut shown = Vec::new();
        self.store.query(&[b"2", &text[..]].concat(), &mut shown);
        let mut list = Vec::new();
        for (key, shown) in keys.iter().zip(parts(&shown)) {
            let shown = std::str::from_utf8(shown).unwrap();
            let version = shown.split("\r\n").nth(1).unwrap().parse().unwrap();
            Script::watch(&mut list, Key::binary(key).unwrap(), version);
        }
        list
    }
}
