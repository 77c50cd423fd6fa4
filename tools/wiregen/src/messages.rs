//! Rust for the messages of `wire/peer.proto`.
use anyhow::Result;
use std::path::Path;
use std::{env, fs};

const DO_NOT_EDIT: &str = "// Generated from wire/peer.proto by `make generate`; do not edit.\n";

/// The text of `wire/src/generated/peer.rs`.
pub fn generate(wire: &Path) -> Result<String> {
    let descriptors = protox::compile([wire.join("peer.proto")], [wire])?;
    let out = env::temp_dir().join(format!("wiregen-{}", std::process::id()));
    fs::create_dir_all(&out)?;
    let compiled = prost_build::Config::new()
        .bytes(["."])
        .out_dir(&out)
        .compile_fds(descriptors);
    let text = fs::read_to_string(out.join("quorumwire.v1.rs"));
    fs::remove_dir_all(&out)?;
    compiled?;
    Ok(format!("{DO_NOT_EDIT}{}", text?))
}
