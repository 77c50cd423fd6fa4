//! Redis' protocol, both versions, as far as two servers' answers are compared: an answer is a tree.

use std::fmt::{self, Write as _};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest line and the longest string that are read.
const BYTES_MAX: usize = 16 << 20;

/// An answer, or a message that nobody asked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reply {
    /// The byte that it begins with.
    pub kind: u8,
    /// What it says, if it has no parts.
    pub text: Vec<u8>,
    /// Those of an array, a set, or a map, whose keys and values alternate.
    pub parts: Vec<Reply>,
}

impl Reply {
    /// Whether it is one.
    pub const fn is_error(&self) -> bool {
        matches!(self.kind, b'-' | b'!')
    }

    /// Whether it says that a transaction will carry the command out.
    pub fn is_queued(&self) -> bool {
        self.kind == b'+' && self.text == b"QUEUED"
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{}",
            char::from(self.kind),
            self.text.escape_ascii().to_string().escape_debug()
        )?;
        if matches!(self.kind, b'*' | b'%' | b'~' | b'>') {
            f.write_char('[')?;
            for (number, part) in self.parts.iter().enumerate() {
                let comma = if number > 0 { ", " } else { "" };
                write!(f, "{comma}{part}")?;
            }
            f.write_char(']')?;
        }
        Ok(())
    }
}

/// A connection to a server.
pub struct Connection {
    stream: BufReader<TcpStream>,
    /// What the server calls it.
    pub id: String,
}

impl Connection {
    /// One that speaks this version.
    pub fn new(address: SocketAddr, version: u8) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut connection = Self {
            stream: BufReader::new(stream),
            id: String::new(),
        };
        if version == 3 {
            let hello = connection.ask(&split("HELLO 3")?)?;
            ensure!(!hello.is_error(), "{hello}");
        }
        let id = connection.ask(&split("CLIENT ID")?)?;
        connection.id = String::from_utf8(id.text)?;
        Ok(connection)
    }

    /// Sends these commands at once.
    pub fn send(&mut self, commands: &[Vec<Vec<u8>>]) -> Result<()> {
        let mut text = Vec::new();
        for words in commands {
            text.extend(format!("*{}\r\n", words.len()).bytes());
            for word in words {
                text.extend(format!("${}\r\n", word.len()).bytes());
                text.extend_from_slice(word);
                text.extend_from_slice(b"\r\n");
            }
        }
        Ok(self.stream.get_mut().write_all(&text)?)
    }

    /// Sends one command; the next that the server says.
    pub fn ask(&mut self, words: &[Vec<u8>]) -> Result<Reply> {
        self.send(&[words.to_vec()])?;
        self.hear()
    }

    /// The next that the server says.
    pub fn hear(&mut self) -> Result<Reply> {
        let mut line = Vec::new();
        let mut limited = (&mut self.stream).take(BYTES_MAX as u64);
        limited.read_until(b'\n', &mut line)?;
        let line = line.strip_suffix(b"\r\n").context("the end of a line")?;
        let (kind, rest) = line.split_first().context("an empty line")?;
        let mut reply = Reply {
            kind: *kind,
            text: rest.to_vec(),
            parts: Vec::new(),
        };
        let length = || -> Result<i64> { Ok(std::str::from_utf8(rest)?.parse()?) };
        let parts = match kind {
            b'$' | b'=' | b'!' => {
                if let Ok(bytes) = usize::try_from(length()?) {
                    ensure!(bytes < BYTES_MAX, "{bytes} bytes");
                    let mut text = vec![0; bytes + 2];
                    self.stream.read_exact(&mut text)?;
                    text.truncate(bytes);
                    reply.text = text;
                } else {
                    reply.kind = b'_'; // there is none
                    reply.text.clear();
                }
                0
            }
            b'*' | b'~' | b'>' => length()?,
            b'%' => 2 * length()?,
            _ => 0,
        };
        if matches!(kind, b'*' | b'~' | b'>' | b'%') {
            reply.text.clear();
            if parts < 0 {
                reply.kind = b'_';
            }
        }
        for _ in 0..parts {
            reply.parts.push(self.hear()?);
        }
        Ok(reply)
    }
}

/// The words of a command as Redis' own client takes them: quoted ones may have anything inside.
pub fn split(line: &str) -> Result<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line.bytes().peekable();
    while let Some(byte) = rest.next_if(|_| true) {
        let mut word = Vec::new();
        match byte {
            b' ' => continue,
            b'"' | b'\'' => loop {
                let next = rest.next().context("a quote that does not end")?;
                match next {
                    _ if next == byte => break,
                    b'\\' if byte == b'"' => word.push(unescaped(&mut rest)?),
                    _ => word.push(next),
                }
            },
            _ => {
                word.push(byte);
                while let Some(next) = rest.next_if(|it| *it != b' ') {
                    word.push(next);
                }
            }
        }
        words.push(word);
    }
    Ok(words)
}

fn unescaped(rest: &mut impl Iterator<Item = u8>) -> Result<u8> {
    let mut next = || rest.next().context("something behind a backslash");
    Ok(match next()? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'x' => {
            let digits = [next()?, next()?];
            u8::from_str_radix(std::str::from_utf8(&digits)?, 16)?
        }
        other => other,
    })
}
