//! Compiles the C of the step. It finds the headers through the crate's own folder, nothing else.
fn main() {
    println!("cargo:rerun-if-changed=include");
    println!("cargo:rerun-if-changed=src/shim.c");
    println!("cargo:rerun-if-changed=../wire/generated/qw_wire.h");
    compile("qw_real", None);
    if std::env::var_os("CARGO_FEATURE_MUTANTS").is_some() {
        compile("qw_mutated", Some("QW_MUTANTS"));
    }
}

fn compile(library: &str, define: Option<&str>) {
    let mut build = cc::Build::new();
    build
        .file("src/shim.c")
        .include("include")
        .include("../wire/generated")
        .std("c11")
        .opt_level(2)
        .flag("-ffreestanding")
        .flag("-Wall")
        .flag("-Wextra")
        .flag("-Wconversion")
        .warnings_into_errors(true);
    if let Some(define) = define {
        build.define(define, None);
    }
    build.compile(library);
}
