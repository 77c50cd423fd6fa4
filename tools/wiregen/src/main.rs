//! Generates `wire/src/generated/` from `wire/peer.proto`, or with `--check` tells whether the
//! committed files are what it would generate.
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::{env, fs};

const DO_NOT_EDIT: &str = "// Generated from wire/peer.proto by `make generate`; do not edit.\n";

fn main() -> Result<()> {
    let check = match env::args().nth(1).as_deref() {
        None => false,
        Some("--check") => true,
        Some(other) => bail!("unknown option {other:?}; the only one is --check"),
    };
    let wire = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wire");
    let target = wire.join("src/generated/peer.rs");
    let made = generate(&wire)?;
    if !check {
        return fs::write(&target, made).with_context(|| format!("writing {}", target.display()));
    }
    let committed = fs::read_to_string(&target).unwrap_or_default();
    if committed != made {
        bail!(
            "wire/src/generated/peer.rs is not what wire/peer.proto generates: run `make generate`"
        );
    }
    Ok(())
}

fn generate(wire: &Path) -> Result<String> {
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
