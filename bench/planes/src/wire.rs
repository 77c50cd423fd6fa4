//! The client's socket: with one request in flight a call of the system for each datagram, as an ordinary
//! client has it; with more as few as can be, so that the client does not use up what is to be measured.
use anyhow::Result;
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use std::io::{ErrorKind, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// Room for answers that wait: of all requests in flight.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;
/// A datagram, or several of one sender that the system has joined.
const RECEIVED_BYTES_MAX: usize = 64 << 10;
/// All of a call together: less than what fits into one datagram.
const SENT_BYTES_MAX: usize = 60_000;

pub struct Wire {
    socket: UdpSocket,
    to: SocketAddr,
    /// `None`: a call for each datagram.
    batches: Option<UdpSocketState>,
    /// Requests of one size, one behind the other.
    waiting: Vec<u8>,
    request_bytes: usize,
}

/// What one call has brought.
pub struct ReceiveBuffers {
    buffers: Vec<Vec<u8>>,
    about: Vec<RecvMeta>,
    count: usize,
}

impl ReceiveBuffers {
    pub fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        let arrived = self.buffers.iter().zip(&self.about).take(self.count);
        arrived.flat_map(|(buffer, about)| buffer[..about.len].chunks(about.stride.max(1)))
    }
}

impl Wire {
    /// A socket that waits so long for a datagram, and room for what comes.
    pub fn connect(
        to: SocketAddr,
        wait: Duration,
        batches: bool,
    ) -> Result<(Self, ReceiveBuffers)> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect(to)?;
        // Beyond what ordinary programs get, and as root: else 47 answers fill it, and more are lost.
        if sockopt::set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER_BYTES).is_err() {
            sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER_BYTES)?;
        }
        socket.set_read_timeout(Some(wait))?;
        let batches = batches
            .then(|| UdpSocketState::new((&socket).into()))
            .transpose()?;
        let buffers = if batches.is_some() { BATCH_SIZE } else { 1 };
        let received = ReceiveBuffers {
            buffers: vec![vec![0; RECEIVED_BYTES_MAX]; buffers],
            about: vec![RecvMeta::default(); buffers],
            count: 0,
        };
        let wire = Self {
            socket,
            to,
            batches,
            waiting: Vec::new(),
            request_bytes: 0,
        };
        Ok((wire, received))
    }

    /// Sends a request, now or with the next [`flush`](Self::flush).
    pub fn send(&mut self, request: &[u8]) -> Result<()> {
        if self.batches.is_none() {
            self.socket.send(request)?;
            return Ok(());
        }
        if self.waiting.len() + request.len() > SENT_BYTES_MAX
            || self.request_bytes != request.len()
        {
            self.flush()?;
        }
        self.request_bytes = request.len();
        self.waiting.extend_from_slice(request);
        Ok(())
    }

    /// Sends what waits.
    pub fn flush(&mut self) -> Result<()> {
        let Some(state) = &self.batches else {
            return Ok(());
        };
        let most = state.max_gso_segments() * self.request_bytes.max(1);
        for contents in self.waiting.chunks(most) {
            let transmit = Transmit {
                destination: self.to,
                ecn: None,
                contents,
                segment_size: (contents.len() > self.request_bytes).then_some(self.request_bytes),
                src_ip: None,
            };
            state.try_send((&self.socket).into(), &transmit)?;
        }
        self.waiting.clear();
        Ok(())
    }

    /// Takes in what has arrived; waits if that is nothing, as long as was asked for.
    pub fn receive(&self, wait: Duration, received: &mut ReceiveBuffers) -> Result<()> {
        received.count = 0;
        let arrived = match &self.batches {
            None => self.socket.recv(&mut received.buffers[0]).map(|bytes| {
                received.about[0].len = bytes;
                received.about[0].stride = bytes;
                1
            }),
            Some(state) => {
                let readable = PollFd::new(&self.socket, PollFlags::IN);
                poll(&mut [readable], Some(&Timespec::try_from(wait)?))?;
                let buffers = received.buffers.iter_mut();
                let mut buffers: Vec<_> = buffers.map(|buffer| IoSliceMut::new(buffer)).collect();
                state.recv((&self.socket).into(), &mut buffers, &mut received.about)
            }
        };
        match arrived {
            Ok(count) => received.count = count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
