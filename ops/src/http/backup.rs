//! A backup over HTTP: the file as it is, written by a thread of its own while the replica serves. Where
//! it is put and whether it is whole is the client's business.
use super::handle::Handle;
use super::{carried_out, plain_error};
use axum::body::{Body, HttpBody};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Json, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use hyper::body::Frame;
use quorumwire_interfaces::Index;
use quorumwire_node::admin::{AdminRequest, FrozenState};
use quorumwire_wire::BackupWriter;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Bytes handed to the connection at a time.
const CHUNK_BYTES: usize = 256 << 10;
/// Chunks that may wait for a slow client.
const CHUNKS_WAITING_MAX: usize = 4;

/// Whether a connection has taken something of a long answer lately.
#[derive(Clone, Debug, Default)]
pub struct HandedOver(Arc<AtomicBool>);

impl HandedOver {
    /// Whether it has, since this was last asked.
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }

    /// It has.
    pub fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Answer of `GET /v1/read-index`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct ReadIndexBody {
    /// Everything acknowledged before the request is at or before this index.
    pub index: u64,
}

/// Asks the leader what a backup must contain.
pub async fn read_index(State(handle): State<Handle>) -> Response {
    let asked = carried_out(&handle, handle.ask(AdminRequest::ReadIndex)).await;
    asked.map_or_else(
        |refused| refused,
        |index| Json(ReadIndexBody { index }).into_response(),
    )
}

/// What `GET /v1/backup` is asked with.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupQuery {
    /// The backup is to contain everything up to this index.
    at_least: u64,
}

/// Streams a backup of this replica's state.
pub async fn backup(
    State(handle): State<Handle>,
    Extension(handed_over): Extension<HandedOver>,
    query: Result<Query<BackupQuery>, QueryRejection>,
) -> Response {
    let at_least = match query {
        Ok(Query(query)) => Index(query.at_least),
        Err(rejection) => return plain_error(rejection.status(), &rejection.body_text()),
    };
    let taken = || {
        let error = "this replica is already giving a backup";
        plain_error(StatusCode::CONFLICT, error)
    };
    if handle.may_back_up().is_none() {
        return taken(); // no state is frozen in vain
    }
    let asked = handle.ask(|answer| AdminRequest::Freeze(at_least, answer));
    let frozen = match carried_out(&handle, asked).await {
        Ok(frozen) => frozen,
        Err(refused) => return refused,
    };
    // Not before: who waits for a state must not keep others from one that is there.
    let Some(permit) = handle.may_back_up() else {
        return taken();
    };
    let (chunks_in, chunks) = mpsc::channel(CHUNKS_WAITING_MAX);
    let work = move || {
        let failed = chunks_in.clone();
        if let Err(error) = write(&frozen, chunks_in) {
            // Cuts the answer short, which its reader notices. Gone: nobody reads it any more.
            failed.blocking_send(Err(error)).ok();
        }
        drop((frozen, permit));
    };
    let thread = std::thread::Builder::new().name("backup".to_owned());
    if let Err(error) = thread.spawn(work) {
        let error = format!("no thread could be started: {error}");
        return plain_error(StatusCode::SERVICE_UNAVAILABLE, &error);
    }
    let body = Body::new(Chunks {
        chunks,
        handed_over,
    });
    let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
    (kind, body).into_response()
}

fn write(frozen: &FrozenState, chunks: Sender<io::Result<Bytes>>) -> io::Result<()> {
    let out = ChunkWriter {
        chunks,
        chunk: BytesMut::with_capacity(CHUNK_BYTES),
    };
    let mut writer = BackupWriter::new(out, &frozen.head)?;
    frozen.state.write(&mut writer)?;
    writer.finish()?.flush()
}

/// Where the file goes: piece by piece to the connection.
struct ChunkWriter {
    chunks: Sender<io::Result<Bytes>>,
    chunk: BytesMut,
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(CHUNK_BYTES - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..taken]);
        if self.chunk.len() == CHUNK_BYTES {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let chunk = self.chunk.split().freeze();
        self.chunk.reserve(CHUNK_BYTES);
        let sent = self.chunks.blocking_send(Ok(chunk));
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// The same at the connection's end.
struct Chunks {
    chunks: Receiver<io::Result<Bytes>>,
    handed_over: HandedOver,
}

impl HttpBody for Chunks {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let chunk = self.chunks.poll_recv(context);
        if matches!(chunk, Poll::Ready(Some(Ok(_)))) {
            self.handed_over.note();
        }
        chunk.map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }
}
