//! The process of a replica: one event loop that joins consensus, state machine, disk, replicas and clients;
//! its options, keys, log and privileges; and what it tells about itself. A binary gives it its options, and
//! says who serves people ([`admin::AdminService`]).
mod accounts;
pub mod admin;
pub mod descriptors;
pub mod foreign_text;
#[cfg(test)]
mod fuzz_test;
pub mod key_folder;
pub mod keys;
pub mod logging;
mod option_files;
pub mod options;
pub mod planes;
pub mod privileges;
pub mod report;
pub mod server;
mod service_manager;
pub mod sparing;
pub mod stage;
pub mod tls;
