//! Generates the committed code of `wire/` and `fastpath/` from their schemas, or with `--check` tells which
//! committed file is not what it would generate. Another language is one more module and one more line here.
mod c;
mod checks;
mod comment;
mod lua;
mod messages;
mod names;
mod rust;
mod schema;
#[cfg(test)]
mod schema_test;
mod shared;
mod systemverilog;

use anyhow::{Context, Result, bail};
use shared::Elsewhere;
use std::path::Path;
use std::{env, fs};

/// The packets of the fast path.
const FORMAT: &str = "wire/format.toml";
/// The checks of the fast path.
const CHECKS: &str = "fastpath/checks.toml";
/// What the fast path's C and its callers share in memory.
const FASTPATH: &str = "fastpath/shared.toml";
/// What the key-value store and planes have in common.
const STORE: &str = "apps/kv/shared.toml";
/// What the programs in the kernel and their host share.
const XDP: &str = "dataplanes/xdp/shared.toml";
/// What a core in gates and its host share.
const FPGA: &str = "dataplanes/fpga/shared.toml";
/// What a served program and its replica share.
const RINGS: &str = "client/interpose/shared.toml";

/// One committed file.
struct Made {
    /// Where it lies in the repository.
    path: &'static str,
    /// The schema it is made from, which lies there, too.
    from: &'static str,
    text: String,
}

fn main() -> Result<()> {
    let check = match env::args().nth(1).as_deref() {
        None => false,
        Some("--check") => true,
        Some(other) => bail!("unknown option {other:?}; the only one is --check"),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = generate(&root)?;
    if check {
        return compare(&root, &files);
    }
    // What is as it should be keeps its time: else all that is made from it would be compiled anew.
    for made in files.into_iter().filter(|made| is_stale(&root, made)) {
        let target = root.join(made.path);
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&target, made.text).with_context(|| format!("writing {}", target.display()))?;
    }
    Ok(())
}

fn generate(root: &Path) -> Result<Vec<Made>> {
    let read =
        |path| fs::read_to_string(root.join(path)).with_context(|| format!("reading {path}"));
    let schema = schema::parse(&read(FORMAT)?).context(FORMAT)?;
    let checks = checks::parse(&read(CHECKS)?, &schema).context(CHECKS)?;
    let store = shared::parse(&read(STORE)?, &schema, Elsewhere::default()).context(STORE)?;
    let packets = Elsewhere::of_packets(&schema);
    let fastpath = shared::parse(&read(FASTPATH)?, &schema, packets).context(FASTPATH)?;
    let below = Elsewhere::of_packets(&schema).and(&fastpath, "quorumwire_fastpath");
    let xdp = shared::parse(&read(XDP)?, &schema, below).context(XDP)?;
    let fpga = shared::parse(&read(FPGA)?, &schema, Elsewhere::of_packets(&schema));
    let gates = of_gates(
        &fpga.context(FPGA)?,
        systemverilog::generate(&schema, &checks),
    );
    let rings = shared::parse(&read(RINGS)?, &schema, Elsewhere::default()).context(RINGS)?;
    let wire = &root.join("wire");
    let peer_messages = messages::bodies(wire, "peer.proto", "PeerMessage")?;
    let others = vec![
        Made {
            path: "wire/src/generated/peer.rs",
            from: "wire/peer.proto",
            text: messages::generate(wire, "peer.proto", "quorumwire.v1")?,
        },
        Made {
            path: "wire/src/generated/client.rs",
            from: "wire/client.proto",
            text: messages::generate(wire, "client.proto", "quorumwire.client.v1")?,
        },
        Made {
            path: "wire/src/generated/packet.rs",
            from: FORMAT,
            text: rust::generate(&schema),
        },
        Made {
            path: "wire/generated/qw_wire.h",
            from: FORMAT,
            text: c::generate(&schema),
        },
        Made {
            path: "wire/generated/quorumwire.lua",
            from: FORMAT,
            text: lua::generate(&schema, &peer_messages),
        },
        Made {
            path: "fastpath/include/qw_checks.h",
            from: CHECKS,
            text: checks::c(&checks, &schema),
        },
        Made {
            path: "fastpath/src/generated/checks.rs",
            from: CHECKS,
            text: checks::rust(&checks),
        },
        Made {
            path: "apps/kv/src/generated/shared.rs",
            from: STORE,
            text: shared::rust::generate(&store, STORE),
        },
        Made {
            path: "fastpath/src/generated/store.rs",
            from: STORE,
            text: shared::rust::generate(&store, STORE),
        },
        Made {
            path: "fastpath/include/qw_store.h",
            from: STORE,
            text: shared::c::generate(&store, STORE, "STORE"),
        },
        Made {
            path: "fastpath/include/qw_shared.h",
            from: FASTPATH,
            text: shared::c::generate(&fastpath, FASTPATH, "SHARED"),
        },
        Made {
            path: "fastpath/src/generated/shared.rs",
            from: FASTPATH,
            text: shared::rust::generate(&fastpath, FASTPATH),
        },
        Made {
            path: "dataplanes/xdp/bpf/shared.h",
            from: XDP,
            text: shared::c::generate(&xdp, XDP, "XDP_SHARED"),
        },
        Made {
            path: "dataplanes/xdp/src/generated/shared.rs",
            from: XDP,
            text: shared::rust::generate(&xdp, XDP),
        },
        Made {
            path: "client/interpose/include/qw_rings.h",
            from: RINGS,
            text: shared::c::generate(&rings, RINGS, "RINGS"),
        },
        Made {
            path: "client/interpose/src/generated/rings.rs",
            from: RINGS,
            text: shared::rust::generate(&rings, RINGS),
        },
    ];
    Ok(others.into_iter().chain(gates).collect())
}

/// What is made for gates, and for the host of a core.
fn of_gates(fpga: &shared::Shared, packets: String) -> [Made; 4] {
    [
        Made {
            path: "dataplanes/fpga/rtl/generated/qw_pkg.sv",
            from: FORMAT,
            text: packets,
        },
        Made {
            path: "dataplanes/fpga/rtl/generated/qw_host_pkg.sv",
            from: FPGA,
            text: shared::systemverilog::generate(fpga, FPGA, "qw_host_pkg"),
        },
        Made {
            path: "dataplanes/fpga/src/generated/shared.rs",
            from: FPGA,
            text: shared::rust::generate(fpga, FPGA),
        },
        Made {
            path: "dataplanes/fpga/registers.md",
            from: FPGA,
            text: shared::table::generate(fpga, FPGA, "The register map of a core"),
        },
    ]
}

/// Fails with the names of all files that are not what they should be.
fn compare(root: &Path, files: &[Made]) -> Result<()> {
    let stale: Vec<String> = files
        .iter()
        .filter(|made| is_stale(root, made))
        .map(|made| format!("{} is not what {} generates", made.path, made.from))
        .collect();
    if !stale.is_empty() {
        bail!("{}: run `make generate`", stale.join("; "));
    }
    Ok(())
}

fn is_stale(root: &Path, made: &Made) -> bool {
    fs::read_to_string(root.join(made.path)).ok().as_ref() != Some(&made.text)
}
