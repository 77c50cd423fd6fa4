//! Compiles the preloaded library. It becomes part of the binary, which hands it to the programs that it
//! serves.
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=include");
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-changed=../../wire/generated/qw_wire.h");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names it"));
    let library = out.join("libquorumwire-interpose.so");
    let compiler = cc::Build::new().opt_level(2).get_compiler();
    let mut sources: Vec<PathBuf> = fs::read_dir("src")
        .expect("the crate has sources")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|it| it == "c"))
        .collect();
    sources.sort(); // equal sources, equal library
    let status = Command::new(compiler.path())
        .args([
            "-std=gnu11",
            "-O2",
            "-g1",
            "-fPIC",
            "-shared",
            "-fvisibility=hidden",
            "-pthread",
        ])
        .args([
            "-Wall",
            "-Wextra",
            "-Wconversion",
            "-Werror",
            "-Wl,-z,now",
            "-Wl,-soname,libquorumwire-interpose.so",
        ])
        .args(["-Iinclude", "-I../../wire/generated", "-o"])
        .arg(&library)
        .args(&sources)
        .status()
        .expect("a C compiler: see tools/setup");
    assert!(status.success(), "the preloaded library does not compile");
}
