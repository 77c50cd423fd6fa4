//! A connection's bytes, in the clear or under TLS, read and written as if there were no difference: what
//! is not there yet, or finds no room, is `WouldBlock`. Knows no certificate and no protocol.
//!
//! Under TLS some things are to be known. Bytes may be there to read although the socket has none
//! ([`Stream::may_have_more`]); written ones may still wait here ([`Stream::has_unsent`], pushed on by
//! `flush`); and the handshake moves on whenever the stream is read or flushed.
use mio::event::Source;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustls::pki_types::CertificateDer;
use rustls::{Connection, ServerConfig, ServerConnection};
use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

/// Bytes taken from a socket at once, to be decrypted.
const INTAKE_BYTES: usize = 32 << 10;
/// Bytes encrypted ahead of what the socket takes; with the intake and one record of 16 KiB on each side,
/// all that a connection holds besides its owner's buffers.
pub const AHEAD_BYTES_MAX: usize = 128 << 10;

/// One connection.
pub enum Stream {
    /// In the clear.
    Plain(TcpStream),
    /// Under TLS.
    Tls(Box<TlsStream>),
}

/// A socket and what TLS remembers of it.
pub struct TlsStream {
    socket: TcpStream,
    tls: Connection,
    /// Came and is not decrypted yet; its first `taken` bytes are done with.
    intake: Vec<u8>,
    taken: usize,
    /// The last read stopped for want of room, not of bytes.
    has_more: bool,
    failed: bool,
    /// It has ended without saying so.
    is_cut: bool,
    /// At most so much of what was written is encrypted and not sent.
    unsent_bytes: usize,
}

impl Stream {
    /// A connection under TLS whose handshake has not begun.
    pub fn tls(socket: TcpStream, mut tls: Connection) -> Self {
        tls.set_buffer_limit(Some(AHEAD_BYTES_MAX));
        Self::Tls(Box::new(TlsStream {
            socket,
            tls,
            intake: Vec::new(),
            taken: 0,
            has_more: false,
            failed: false,
            is_cut: false,
            unsent_bytes: 0,
        }))
    }

    /// A connection that came in, secured by this, if by anything.
    pub fn accepted(
        socket: TcpStream,
        tls: Option<&Arc<ServerConfig>>,
    ) -> Result<Self, rustls::Error> {
        Ok(match tls {
            None => Self::Plain(socket),
            Some(config) => Self::tls(socket, ServerConnection::new(Arc::clone(config))?.into()),
        })
    }

    /// What is below.
    pub fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &stream.socket,
        }
    }

    /// Whether both sides know whom they talk to, as far as they want to.
    pub fn is_established(&self) -> bool {
        match self {
            Self::Plain(_) => true,
            Self::Tls(stream) => !stream.tls.is_handshaking(),
        }
    }

    /// What the other side has shown.
    pub fn certificates(&self) -> Option<&[CertificateDer<'static>]> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(stream) => stream.tls.peer_certificates(),
        }
    }

    /// Whether a read that filled only part of its buffer may have left something.
    pub fn may_have_more(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.has_more,
        }
    }

    /// Whether something written waits until the socket takes it.
    pub fn has_unsent(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => !stream.failed && stream.tls.wants_write(),
        }
    }

    /// Memory of what came and of what is to go, as far as it is not its owner's.
    pub fn held_bytes(&self) -> usize {
        match self {
            Self::Plain(_) => 0,
            Self::Tls(stream) => stream.intake.capacity() + stream.unsent_bytes,
        }
    }

    /// Whether it broke because of TLS.
    pub fn has_failed(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.failed,
        }
    }

    /// Whether it has ended without the other side's word, which TLS asks for: somebody between us may have
    /// cut it.
    pub fn is_cut(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.is_cut,
        }
    }

    /// Says that nothing more will be written, as far as there is room to say so, to whom we talk already.
    pub fn say_end(&mut self) {
        if let Self::Tls(stream) = self
            && !stream.failed
            && !stream.tls.is_handshaking()
        {
            stream.tls.send_close_notify();
            stream.send_records().ok(); // about to be closed either way
        }
    }
}

impl TlsStream {
    /// Fills the buffer as far as there is something.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        let mut is_dry = false;
        while filled < buffer.len() {
            match self.tls.reader().read(&mut buffer[filled..]) {
                // It said that this is the end. What comes without being said is the end too: all that
                // was whole has been read, and what is not whole is nothing to our protocols. To others
                // it is: see `is_cut`.
                Ok(0) => break,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.is_cut = true;
                    break;
                }
                Ok(count) => {
                    filled += count;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if is_dry && self.taken == self.intake.len() {
                self.has_more = false;
                if filled == 0 {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                return Ok(filled);
            }
            is_dry |= self.take_records()?;
        }
        self.has_more = filled > 0;
        Ok(filled)
    }

    /// Decrypts some of what came. True: the socket has nothing more now.
    fn take_records(&mut self) -> io::Result<bool> {
        let mut is_dry = false;
        if self.taken == self.intake.len() {
            self.taken = 0;
            self.intake.clear();
            self.intake.reserve_exact(INTAKE_BYTES);
            // As it is: to fill it with zeros first would take longer than a heartbeat's records do.
            match rustix::io::read(&self.socket, spare_capacity(&mut self.intake)) {
                Ok(0) => {
                    self.tls.read_tls(&mut io::empty())?; // lets TLS know that this is the end
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => is_dry = true,
                Err(error) => return Err(error.into()),
            }
        }
        if self.taken < self.intake.len() {
            self.taken += self.tls.read_tls(&mut &self.intake[self.taken..])?;
        }
        if self.taken == self.intake.len() {
            self.intake = Vec::new(); // idle connections hold no buffer
            self.taken = 0;
        }
        let processed = self.tls.process_new_packets();
        self.failed |= processed.is_err();
        let sent = self.send_records(); // the handshake's own answers, and what is said to whom we refuse
        processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            sent => sent?,
        }
        Ok(is_dry)
    }

    fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        // Nothing is encrypted ahead of what still waits, nor kept until the handshake is done.
        self.send_records()?;
        if self.tls.is_handshaking() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let taken = self.tls.writer().write_vectored(slices)?;
        self.unsent_bytes += taken;
        match self.send_records() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            Ok(()) | Err(_) => Ok(taken),
        }
    }

    fn send_records(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.unsent_bytes = 0;
        Ok(())
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(&[IoSlice::new(bytes)]),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write_vectored(slices),
            Self::Tls(stream) => stream.write(slices),
        }
    }

    /// Pushes on what waits here. What finds no room goes on waiting, which is no error.
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(stream) => match stream.send_records() {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
                Ok(()) | Err(_) => Ok(()),
            },
        }
    }
}

impl Source for Stream {
    fn register(&mut self, to: &Registry, token: Token, interest: Interest) -> io::Result<()> {
        self.socket_mut().register(to, token, interest)
    }

    fn reregister(&mut self, to: &Registry, token: Token, interest: Interest) -> io::Result<()> {
        self.socket_mut().reregister(to, token, interest)
    }

    fn deregister(&mut self, from: &Registry) -> io::Result<()> {
        self.socket_mut().deregister(from)
    }
}

impl Stream {
    fn socket_mut(&mut self) -> &mut TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &mut stream.socket,
        }
    }
}

#[cfg(test)]
#[path = "stream_test.rs"]
mod tests;
