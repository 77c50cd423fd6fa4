//! Real processes, real packets, real faults: starts clusters in network namespaces, breaks them, and
//! judges what their clients saw. Knows the product only by its command line, its HTTP pages, the
//! memcached and Redis protocols and, to forge them, the packets of its data planes.

pub mod binary;
pub mod browser;
pub mod c_programs;
pub mod client;
pub mod cluster;
pub mod datagrams;
pub mod deployment;
pub mod disk;
pub mod fast_terms;
pub mod forgery;
pub mod kernel_planes;
pub mod ldap;
pub mod leveldb;
pub mod mqtt;
pub mod network;
pub mod open_files;
pub mod plan;
pub mod process;
pub mod recording;
pub mod redis_client;
pub mod served;
pub mod served_process;
pub mod slowness;
pub mod status;
pub mod switches;
pub mod terminal;
pub mod tls;
pub mod tshark;
pub mod usage;
pub mod value_programs;
pub mod waiting;
pub mod workload;

pub use quorumwire_linearizability::{self as linearizability, history, seed};
