//! Runs clang on programs for the kernel: for the build scripts of the plane and of its benchmark.
use std::env;
use std::path::Path;
use std::process::Command;

/// Names under which clang is looked for, unless the variable CLANG names it.
const CLANGS: [&str; 3] = ["clang-19", "clang", "clang-16"];

/// Compiles `bpf/PROGRAM.bpf.c` to `PROGRAM.bpf.o`; headers are looked for in these folders, too.
pub fn compile(program: &str, headers: &[&Path], out: &Path) {
    println!("cargo:rerun-if-env-changed=CLANG");
    let source = format!("bpf/{program}.bpf.c");
    let libbpf = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    let clang = clang();
    // The checks that `bpf/mutants.h` names can be left out then.
    let mutants = env::var_os("CARGO_FEATURE_MUTANTS").map(|_| "-DQW_XDP_MUTANTS");
    let done = Command::new(&clang)
        .args(["-target", "bpf", "-mcpu=v3", "-std=gnu11", "-O2", "-g"])
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-function"])
        .args(mutants)
        .args(["-I", "../../fastpath/include", "-I", "../../wire/generated"])
        .args(["-I", &libbpf])
        .args(headers.iter().flat_map(|folder| [Path::new("-I"), folder]))
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
