//! Generates the committed code of `wire/` from its schemas, or with `--check` tells which committed
//! file is not what it would generate. Another language is one more module and one more line here.
mod c;
mod comment;
mod messages;
mod names;
mod rust;
mod schema;
#[cfg(test)]
mod schema_test;

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::{env, fs};

/// One committed file.
struct Made {
    /// Where it lies, seen from the folder `wire/`.
    path: &'static str,
    /// The schema it is made from, seen from the same folder.
    from: &'static str,
    text: String,
}

fn main() -> Result<()> {
    let check = match env::args().nth(1).as_deref() {
        None => false,
        Some("--check") => true,
        Some(other) => bail!("unknown option {other:?}; the only one is --check"),
    };
    let wire = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wire");
    let files = generate(&wire)?;
    if check {
        return compare(&wire, &files);
    }
    for made in files {
        let target = wire.join(made.path);
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&target, made.text).with_context(|| format!("writing {}", target.display()))?;
    }
    Ok(())
}

fn generate(wire: &Path) -> Result<Vec<Made>> {
    let text = fs::read_to_string(wire.join("format.toml")).context("reading wire/format.toml")?;
    let schema = schema::parse(&text).context("wire/format.toml")?;
    Ok(vec![
        Made {
            path: "src/generated/peer.rs",
            from: "peer.proto",
            text: messages::generate(wire, "peer.proto", "quorumwire.v1")?,
        },
        Made {
            path: "src/generated/client.rs",
            from: "client.proto",
            text: messages::generate(wire, "client.proto", "quorumwire.client.v1")?,
        },
        Made {
            path: "src/generated/packet.rs",
            from: "format.toml",
            text: rust::generate(&schema),
        },
        Made {
            path: "generated/qw_wire.h",
            from: "format.toml",
            text: c::generate(&schema),
        },
    ])
}

/// Fails with the names of all files that are not what they should be.
fn compare(wire: &Path, files: &[Made]) -> Result<()> {
    let stale: Vec<String> = files
        .iter()
        .filter(|made| fs::read_to_string(wire.join(made.path)).ok().as_ref() != Some(&made.text))
        .map(|made| {
            format!(
                "wire/{} is not what wire/{} generates",
                made.path, made.from
            )
        })
        .collect();
    if !stale.is_empty() {
        bail!("{}: run `make generate`", stale.join("; "));
    }
    Ok(())
}
