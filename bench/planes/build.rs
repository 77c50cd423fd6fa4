//! Compiles the programs that run in the kernel, as `dataplanes/xdp/build.rs` does.
use std::env;
use std::path::{Path, PathBuf};

#[path = "../../dataplanes/xdp/clang.rs"]
mod clang;

fn main() {
    let plane = Path::new("../../dataplanes/xdp/bpf");
    for read in [
        Path::new("bpf"),
        plane,
        Path::new("../../fastpath/include"),
        Path::new("../../wire/generated/qw_wire.h"),
    ] {
        println!("cargo:rerun-if-changed={}", read.display());
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let tables = env::var("DEP_QUORUMWIRE_XDP_INCLUDE").expect("the plane says where its are");
    for program in ["load", "alone"] {
        clang::compile(program, &[plane, Path::new(&tables)], &out);
    }
}
