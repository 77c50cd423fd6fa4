//! As much of LDAP as many clients of a directory need at once. Blocking; it sends nothing again.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

/// Tags of BER, and of LDAP in it.
const INTEGER: u8 = 0x02;
const TEXT: u8 = 0x04;
const ENUMERATED: u8 = 0x0a;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const BIND: u8 = 0x60;
const MODIFY: u8 = 0x66;
const PASSWORD: u8 = 0x80;
/// What is done with a value of an attribute.
const ADD: u8 = 0;
const REPLACE: u8 = 2;

/// One connection.
#[derive(Debug)]
pub struct Ldap {
    stream: TcpStream,
    last: u8,
}

fn tagged(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let length = u16::try_from(body.len()).expect("a short request");
    let [high, low] = length.to_be_bytes();
    [&[tag, 0x82, high, low][..], &body].concat()
}

fn text(it: &str) -> Vec<u8> {
    tagged(TEXT, &[it.as_bytes()])
}

fn change(how: u8, attribute: &str, value: &str) -> Vec<u8> {
    let values = tagged(SET, &[&text(value)]);
    let what = tagged(SEQUENCE, &[&text(attribute), &values]);
    tagged(SEQUENCE, &[&[ENUMERATED, 1, how], &what])
}

impl Ldap {
    /// Connects and says who it is. Waits so long for each answer.
    pub fn connect(
        address: SocketAddr,
        (name, password): (&str, &str),
        timeout: Duration,
    ) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        let mut new = Self { stream, last: 0 };
        let password = tagged(PASSWORD, &[password.as_bytes()]);
        new.ask(BIND, &[&[INTEGER, 1, 3], &text(name), &password])?;
        Ok(new)
    }

    /// Adds a value to one attribute of an entry, and replaces those of another by it.
    pub fn add_and_replace(
        &mut self,
        entry: &str,
        [added, replaced]: [&str; 2],
        value: &str,
    ) -> Result<()> {
        let changes = [change(ADD, added, value), change(REPLACE, replaced, value)];
        let changes = tagged(SEQUENCE, &[&changes.concat()]);
        self.ask(MODIFY, &[&text(entry), &changes])
    }

    /// An error unless it is done.
    fn ask(&mut self, what: u8, parts: &[&[u8]]) -> Result<()> {
        self.last = self.last % 127 + 1;
        let number = [INTEGER, 1, self.last];
        let request = tagged(SEQUENCE, &[&number, &tagged(what, parts)]);
        self.stream.write_all(&request)?;
        let mut head = [0; 2];
        self.stream.read_exact(&mut head)?;
        ensure!(head[0] == SEQUENCE && head[1] < 128, "{head:?}");
        let mut answer = vec![0; head[1].into()];
        self.stream.read_exact(&mut answer)?;
        let (outcome, result) = answer
            .strip_prefix(&number)
            .and_then(|it| it.split_first())
            .with_context(|| format!("an answer: {answer:?}"))?;
        // The tag of an answer is one above its request's. Its length is in one byte, like that of the whole.
        let is_done = *outcome == what + 1 && result.get(1..4) == Some(&[ENUMERATED, 1, 0]);
        ensure!(is_done, "{answer:?}: {}", String::from_utf8_lossy(&answer));
        Ok(())
    }
}
