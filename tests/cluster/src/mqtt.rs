//! As much of MQTT 3.1.1 as many clients of a broker need at once. Blocking; it sends nothing again.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

/// Kinds of packets, with the flags that they have by rule.
const CONNECT: u8 = 0x10;
const CONNACK: u8 = 0x20;
const PUBLISH: u8 = 0x30;
const PUBACK: u8 = 0x40;
const SUBSCRIBE: u8 = 0x82;
const SUBACK: u8 = 0x90;
const PINGREQ: u8 = 0xc0;
const PINGRESP: u8 = 0xd0;
/// Of a packet's first byte: what is published is acknowledged; it is kept for those who come later.
const AT_LEAST_ONCE: u8 = 2;
const RETAINED: u8 = 1;

/// A message's topic and text.
pub type Message = (String, String);

/// How sure it is that a message comes.
#[derive(Clone, Copy, Debug)]
pub enum Promise {
    /// It may be lost.
    AtMostOnce,
    /// It is queued until it is acknowledged.
    AtLeastOnce,
}

/// One connection.
#[derive(Debug)]
pub struct Mqtt {
    stream: TcpStream,
    last: u16,
    heard: Vec<Message>,
}

fn text(bytes: &str) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("a short text");
    [&length.to_be_bytes(), bytes.as_bytes()].concat()
}

impl Mqtt {
    /// Connects by this name, with a session that outlives the connection, if that is wanted. Waits so long
    /// for each answer.
    pub fn connect(
        address: SocketAddr,
        (name, lasts): (&str, bool),
        timeout: Duration,
    ) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        let mut new = Self {
            stream,
            last: 0,
            heard: Vec::new(),
        };
        let flags = if lasts { 0 } else { 2 };
        let body = [&text("MQTT"), &[4, flags, 0, 0][..], &text(name)].concat();
        new.send(CONNECT, &body)?;
        let answer = new.wait_for(CONNACK)?;
        ensure!(answer.get(1) == Some(&0), "refused: {answer:?}");
        Ok(new)
    }

    /// Publishes a text that is kept for who subscribes later, and waits for the acknowledgement.
    pub fn publish(&mut self, topic: &str, message: &str) -> Result<()> {
        let number = self.number();
        let body = [&text(topic), &number[..], message.as_bytes()].concat();
        self.send(PUBLISH | AT_LEAST_ONCE | RETAINED, &body)?;
        let answer = self.wait_for(PUBACK)?;
        ensure!(answer == number, "another is acknowledged: {answer:?}");
        Ok(())
    }

    /// Subscribes to these topics.
    pub fn subscribe(&mut self, topics: &str, promise: Promise) -> Result<()> {
        let (number, promise) = (self.number(), [promise as u8]);
        let body = [&number[..], &text(topics), &promise].concat();
        self.send(SUBSCRIBE, &body)?;
        let answer = self.wait_for(SUBACK)?;
        ensure!(
            answer == [number[..].to_vec(), promise.to_vec()].concat(),
            "{answer:?}"
        );
        Ok(())
    }

    /// All that was heard so far, and acknowledged.
    pub fn heard(&mut self) -> Result<&[Message]> {
        self.send(PINGREQ, &[])?;
        self.wait_for(PINGRESP)?;
        Ok(&self.heard)
    }

    fn number(&mut self) -> [u8; 2] {
        self.last = self.last % u16::MAX + 1;
        self.last.to_be_bytes()
    }

    fn send(&mut self, first: u8, body: &[u8]) -> Result<()> {
        let length = u8::try_from(body.len()).ok().filter(|it| *it < 128);
        let head = [first, length.context("a short packet")?];
        Ok(self.stream.write_all(&[&head, body].concat())?)
    }

    /// The next packet of this kind. What is published meanwhile is heard.
    fn wait_for(&mut self, kind: u8) -> Result<Vec<u8>> {
        loop {
            let mut head = [0; 2];
            self.stream.read_exact(&mut head)?;
            ensure!(head[1] < 128, "a long packet");
            let mut body = vec![0; head[1].into()];
            self.stream.read_exact(&mut body)?;
            if head[0] == kind {
                return Ok(body);
            }
            ensure!(head[0] & 0xf0 == PUBLISH, "{head:?} {body:?}");
            self.hear(head[0], &body)?;
        }
    }

    fn hear(&mut self, first: u8, body: &[u8]) -> Result<()> {
        let (length, behind) = body.split_first_chunk().context("a length")?;
        let length = u16::from_be_bytes(*length).into();
        let (topic, mut behind) = behind.split_at_checked(length).context("a topic")?;
        if first & AT_LEAST_ONCE != 0 {
            let (number, message) = behind.split_first_chunk::<2>().context("a number")?;
            behind = message;
            self.send(PUBACK, number)?;
        }
        let message = String::from_utf8(behind.to_vec())?;
        self.heard
            .push((String::from_utf8(topic.to_vec())?, message));
        Ok(())
    }
}
