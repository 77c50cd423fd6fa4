//! Compiles the programs that run in the kernel, with clang, as `dataplanes/xdp/build.rs` does.
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names under which clang is looked for, unless the variable CLANG names it.
const CLANGS: [&str; 3] = ["clang-19", "clang", "clang-16"];

fn main() {
    for read in [
        "bpf",
        "../../dataplanes/xdp/bpf",
        "../../fastpath/include",
        "../../wire/generated/qw_wire.h",
    ] {
        println!("cargo:rerun-if-changed={read}");
    }
    println!("cargo:rerun-if-env-changed=CLANG");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    for program in ["load", "alone"] {
        compile(program, &out);
    }
}

fn compile(program: &str, out: &Path) {
    let source = format!("bpf/{program}.bpf.c");
    let libbpf = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    let tables = env::var("DEP_QUORUMWIRE_XDP_INCLUDE").expect("the plane says where its are");
    let clang = clang();
    let done = Command::new(&clang)
        .args(["-target", "bpf", "-mcpu=v3", "-std=gnu11", "-O2", "-g"])
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-function"])
        .args(["-I", "../../dataplanes/xdp/bpf"])
        .args(["-I", "../../fastpath/include", "-I", "../../wire/generated"])
        .args(["-I", &libbpf])
        .args(["-I", &tables])
        .args([
            "-idirafter",
            &format!("/usr/include/{}-linux-gnu", env::consts::ARCH),
        ])
        .args(["-c", &source, "-o"])
        .arg(out.join(format!("{program}.bpf.o")))
        .status();
    match done {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{clang} failed on {source}: {status}"),
        Err(error) => panic!("cannot run {clang}: {error}; it is in Debian's package clang-19"),
    }
}

fn clang() -> String {
    if let Ok(named) = env::var("CLANG") {
        return named;
    }
    let runs = |name: &&&str| Command::new(name).arg("--version").output().is_ok();
    let found = CLANGS.iter().find(runs);
    (*found.unwrap_or(&CLANGS[0])).to_owned()
}
