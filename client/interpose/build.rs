//! Compiles the preloaded library, once for programs of which one thread serves and once for those of which
//! several do. Both become part of the binary, which hands one of them to the program that it serves.
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=include");
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-changed=../../wire/generated/qw_wire.h");
    compile("alone", "libquorumwire-interpose.so");
    compile("serial", "libquorumwire-interpose-serial.so");
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .expect("the crate has sources")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|it| it == "c"))
        .collect()
}

/// What all share, and what is in the folder of these threads.
fn compile(threads: &str, name: &str) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names it"));
    let library = out.join(name);
    let compiler = cc::Build::new().opt_level(2).get_compiler();
    let folder = Path::new("src").join(threads);
    let mut sources = [sources(Path::new("src")), sources(&folder)].concat();
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
        .args(["-Wall", "-Wextra", "-Wconversion", "-Werror", "-Wl,-z,now"])
        .arg(format!("-Wl,-soname,{name}"))
        .arg(format!("-I{}", folder.display()))
        .args(["-Isrc", "-Iinclude", "-I../../wire/generated", "-o"])
        .arg(&library)
        .args(&sources)
        .status()
        .expect("a C compiler: see tools/setup");
    assert!(status.success(), "the preloaded library does not compile");
}
