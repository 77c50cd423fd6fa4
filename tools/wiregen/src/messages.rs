//! Rust for the messages of `wire/peer.proto` and `wire/client.proto`.
use anyhow::{Context, Result};
use std::path::Path;
use std::{env, fs};

/// Messages that no log may show: whoever writes the code around them says what it shows instead.
const SECRET: [&str; 1] = [".quorumwire.v1.FastTermKey"];

/// The text of the file in `wire/src/generated/` that is made from this schema of this package.
pub fn generate(wire: &Path, schema: &str, package: &str) -> Result<String> {
    let descriptors = protox::compile([wire.join(schema)], [wire])?;
    let out = env::temp_dir().join(format!("wiregen-{}", std::process::id()));
    fs::create_dir_all(&out)?;
    let compiled = prost_build::Config::new()
        .bytes(["."])
        .skip_debug(SECRET)
        .out_dir(&out)
        .compile_fds(descriptors);
    let text = fs::read_to_string(out.join(format!("{package}.rs")));
    fs::remove_dir_all(&out)?;
    compiled?;
    let do_not_edit = format!("// Generated from wire/{schema} by `make generate`; do not edit.\n");
    Ok(format!("{do_not_edit}{}", text?))
}

/// The messages of a schema that can be the body of this one, by their numbers.
pub fn bodies(wire: &Path, schema: &str, message: &str) -> Result<Vec<(i32, String)>> {
    let descriptors = protox::compile([wire.join(schema)], [wire])?;
    let messages = descriptors.file.iter().flat_map(|file| &file.message_type);
    let found = messages.into_iter().find(|it| it.name() == message);
    let found = found.with_context(|| format!("{schema} has no message {message}"))?;
    let bodies = found.field.iter().filter(|it| it.oneof_index.is_some());
    Ok(bodies
        .map(|it| (it.number(), it.name().to_owned()))
        .collect())
}
