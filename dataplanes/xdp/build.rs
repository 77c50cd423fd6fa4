//! Compiles the programs that run in the kernel, with clang. Nothing of it is needed where they are loaded.
use std::env;
use std::fmt::Write;
use std::path::PathBuf;

mod clang;

fn main() {
    for read in [
        "bpf",
        "../../fastpath/include",
        "../../wire/generated/qw_wire.h",
    ] {
        println!("cargo:rerun-if-changed={read}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    std::fs::write(out.join("qw_crc32c_tables.h"), crc32c_tables()).expect("cargo made the folder");
    for program in ["plane", "clone", "pass"] {
        clang::compile(program, &[&out], &out);
    }
    // For who compiles the programs in another way: DEP_QUORUMWIRE_XDP_INCLUDE.
    println!("cargo:include={}", out.display());
}

/// The tables of CRC32C for eight bytes at once: the checksum's change by each value of each byte.
fn crc32c_tables() -> String {
    const POLYNOMIAL: u32 = 0x82f6_3b78; // Castagnoli's, its bits reversed
    let mut tables = [[0_u32; 256]; 8];
    for (byte, entry) in (0..).zip(&mut tables[0]) {
        *entry = (0..8).fold(byte, |crc, _| (crc >> 1) ^ (POLYNOMIAL * (crc & 1)));
    }
    for table in 1..8 {
        for byte in 0..256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before >> 8) ^ tables[0][before as usize & 0xff];
        }
    }
    let mut text = String::from("static const __u32 qw_crc32c_tables[8][256] = {\n");
    for table in tables {
        writeln!(
            text,
            "{{ {} }},",
            table.map(|entry| format!("{entry:#x}")).join(", ")
        )
        .expect("a string takes everything");
    }
    text.push_str("};\n");
    text
}
