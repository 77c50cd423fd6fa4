//! Has Verilator make C++ of the core, and compiles that, where it is asked for.

fn main() {
    #[cfg(feature = "simulated")]
    simulated::build();
}

#[cfg(feature = "simulated")]
mod simulated {
    use std::env;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    /// As `modules.py` has them: packages first.
    const PACKAGES: [&str; 3] = [
        "generated/qw_pkg.sv",
        "generated/qw_host_pkg.sv",
        "qw_gate_pkg.sv",
    ];
    const TOP: &str = "qw_card";
    const MISSING: &str = "the feature `simulated` needs Verilator 5.48: `tools/setup hdl` installs it, or the variable \
                           VERILATOR_ROOT says where it is";

    /// Where Verilator is: as the variable says, or where `tools/setup hdl` puts it.
    fn verilator(here: &Path) -> PathBuf {
        println!("cargo:rerun-if-env-changed=VERILATOR_ROOT");
        if let Some(root) = env::var_os("VERILATOR_ROOT") {
            return root.into();
        }
        let tools = here.join("../../target/hdl/tools/lib");
        let versions = std::fs::read_dir(&tools).into_iter().flatten().flatten();
        let roots = versions.map(|it| it.path().join("site-packages/verilator"));
        let mut roots = roots.filter(|it| it.join("bin/verilator").exists());
        roots
            .next()
            .unwrap_or_else(|| panic!("{MISSING}; it is not in {}", tools.display()))
    }

    pub fn build() {
        let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
        let (root, rtl, made) = (verilator(&here), here.join("rtl"), out.join("verilated"));
        for read in ["rtl", "src/card.cpp"] {
            println!("cargo:rerun-if-changed={read}");
        }
        let packages = PACKAGES.map(|it| rtl.join(it));
        let files = std::fs::read_dir(&rtl).expect("the sources").flatten();
        let mut modules: Vec<PathBuf> = files
            .map(|it| it.path())
            .filter(|it| it.extension().is_some_and(|it| it == "sv") && !packages.contains(it))
            .collect();
        modules.sort();
        // What it made of other sources before is not to be compiled.
        let _ = std::fs::remove_dir_all(&made);
        let mut verilator = Command::new(root.join("bin/verilator"));
        verilator
            .env("VERILATOR_ROOT", &root)
            .args([
                "--cc",
                "-O3",
                "--x-assign",
                "fast",
                "--x-initial",
                "fast",
                "--noassert",
            ])
            .args([
                "-Wno-fatal",
                "-Wno-lint",
                "--quiet",
                "--output-split",
                "20000",
            ])
            .args(["--top-module", TOP, "--Mdir"])
            .arg(&made)
            .args(packages)
            .args(modules);
        let done = verilator
            .status()
            .unwrap_or_else(|error| panic!("{MISSING}: {error}"));
        assert!(done.success(), "Verilator refuses the core");
        let files = std::fs::read_dir(&made)
            .expect("it made a folder")
            .flatten();
        let mut sources: Vec<PathBuf> = files
            .map(|it| it.path())
            .filter(|it| it.extension().is_some_and(|it| it == "cpp"))
            .collect();
        sources.sort();
        let library = root.join("include");
        cc::Build::new()
            .cpp(true)
            .std("c++17")
            .opt_level(2)
            .warnings(false)
            .include(&library)
            .include(library.join("vltstd"))
            .include(&made)
            .files(sources)
            .files(["verilated.cpp", "verilated_threads.cpp"].map(|it| library.join(it)))
            .file("src/card.cpp")
            .compile("quorumwire-verilated");
    }
}
