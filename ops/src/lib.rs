//! How a replica is watched and operated: HTTP with metrics, status, changes and the dashboard, and what the
//! dashboard and `quorumwire top` show of a whole cluster. All of it is made of what the replicas report.
mod counters;
pub mod http;
pub mod live;
