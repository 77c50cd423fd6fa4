//! Tests of the bytes: golden vectors, wrong bytes, handshakes, snapshot and backup files.
mod backups;
mod clients;
mod handshakes;
mod limits;
mod mutations;
mod packets;
mod reasons;
mod snapshots;
mod vectors;
