//! Compiles what the tests have the kernel do, as `dataplanes/xdp/build.rs` does.
use std::env;
use std::path::PathBuf;

#[path = "../../dataplanes/xdp/clang.rs"]
mod clang;

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    clang::compile("tag", &[], &out);
}
