//! A connection that sends ahead and compares what comes back with what must. Knows no request.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, ErrorKind, Read, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

/// How long the next bytes may take.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// What is read at once.
const BITE_BYTES: usize = 256 << 10;

/// The longest line that is read.
const LINE_BYTES_MAX: u64 = 256;

/// The longest number that is read.
const NUMBER_BYTES_MAX: u64 = 21;

/// Reads in bites, with something to do between two of them.
struct Bites {
    stream: TcpStream,
    between: Box<dyn FnMut() + Send>,
}

impl Read for Bites {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        (self.between)();
        let room = buffer.len().min(BITE_BYTES);
        self.stream.read(&mut buffer[..room])
    }
}

/// One connection.
pub struct Pipe {
    reader: BufReader<Bites>,
    writer: TcpStream,
}

impl Pipe {
    /// Connects to a replica's memcached address.
    pub fn connect(address: SocketAddr) -> Result<Self> {
        let writer = TcpStream::connect_timeout(&address, SILENCE_MAX)?;
        writer.set_nodelay(true)?;
        writer.set_read_timeout(Some(SILENCE_MAX))?;
        writer.set_write_timeout(Some(SILENCE_MAX))?;
        let bites = Bites {
            stream: writer.try_clone()?,
            between: Box::new(|| {}),
        };
        Ok(Self {
            reader: BufReader::with_capacity(BITE_BYTES, bites),
            writer,
        })
    }

    /// Closes our side; the other one may go on.
    pub fn say_no_more(&self) -> Result<()> {
        Ok(self.writer.shutdown(Shutdown::Write)?)
    }

    /// Does this before every further read from the connection.
    pub fn between_bites(&mut self, work: impl FnMut() + Send + 'static) {
        self.reader.get_mut().between = Box::new(work);
    }

    /// Sends all of it and reads nothing.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer.write_all(bytes).context("sending")
    }

    /// Waits until there is something to read, and reads nothing.
    pub fn wait_for_bytes(&self) -> Result<()> {
        let count = self.writer.peek(&mut [0]).context("nothing came")?;
        ensure!(count == 1, "closed");
        Ok(())
    }

    /// Reads as many bytes as these; an error unless they are these.
    pub fn expect(&mut self, expected: &[u8]) -> Result<()> {
        let mut compared = 0;
        while compared < expected.len() {
            let wanted = &expected[compared..];
            let got = match self.reader.fill_buf() {
                Ok([]) => bail!("closed before {:?}", shown(wanted)),
                Ok(bytes) => &bytes[..bytes.len().min(wanted.len())],
                Err(error) => {
                    return Err(error).with_context(|| format!("waiting for {:?}", shown(wanted)));
                }
            };
            let count = got.len();
            ensure!(
                got == &wanted[..count],
                "{:?} came instead of {:?}",
                shown(got),
                shown(wanted)
            );
            self.reader.consume(count);
            compared += count;
        }
        Ok(())
    }

    /// The answer to a `get` of these keys, without flags.
    pub fn expect_items(&mut self, keys: &[&str], values: &BTreeMap<&str, Vec<u8>>) -> Result<()> {
        for (number, key) in keys.iter().enumerate() {
            let value = &values[key];
            let head = format!("VALUE {key} 0 {}\r\n", value.len());
            self.expect(head.as_bytes())
                .and_then(|()| self.expect(value))
                .and_then(|()| self.expect(b"\r\n"))
                .with_context(|| format!("item {number}, {key}"))?;
        }
        self.expect(b"END\r\n")
    }

    /// Reads a short line, without its end.
    pub fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let mut part = self.reader.by_ref().take(LINE_BYTES_MAX);
        part.read_line(&mut line).context("waiting for a line")?;
        let whole = line.strip_suffix("\r\n").map(str::to_owned);
        whole.with_context(|| format!("no whole line: {:?}", shown(line.as_bytes())))
    }

    /// Reads a number up to the end of its line, which stays.
    pub fn number(&mut self) -> Result<u64> {
        let mut digits = Vec::new();
        loop {
            let next = *self.reader.fill_buf()?.first().context("closed")?;
            if !next.is_ascii_digit() || digits.len() as u64 == NUMBER_BYTES_MAX {
                break;
            }
            digits.push(next);
            self.reader.consume(1);
        }
        let text = String::from_utf8(digits)?;
        text.parse().with_context(|| format!("a number: {text:?}"))
    }

    /// Ends sending and reads what is left: an error unless that is nothing.
    pub fn expect_silence(&mut self) -> Result<()> {
        self.writer.shutdown(Shutdown::Write)?;
        match self.reader.fill_buf() {
            Ok([]) => Ok(()),
            Ok(bytes) => bail!("{:?} came too much", shown(bytes)),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(()),
            Err(error) => Err(error).context("waiting for the end"),
        }
    }
}

fn shown(bytes: &[u8]) -> String {
    const SHOWN_BYTES: usize = 80;
    String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)]).into_owned()
}
