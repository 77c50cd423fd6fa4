//! Clients of a quorumwire cluster.
//!
//! - [`planes`]: commands over UDP, straight to the replicas' data planes.
pub mod planes;
