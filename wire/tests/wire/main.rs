//! Tests of the bytes: golden vectors, wrong bytes, handshakes, snapshot files.
mod handshakes;
mod limits;
mod mutations;
mod packets;
mod snapshots;
mod vectors;
