//! What Wireshark's program for terminals says of a recording, with our dissector.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The dissector, as it is installed.
const DISSECTOR: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../wire/generated/quorumwire.lua"
);
/// Between the values of a field that a frame has more than once.
const BETWEEN_VALUES: char = '\u{1f}';
/// An error of a dissector in Lua.
const LUA_ERROR: &str = "_ws.lua.error";
/// Whose dissector read behind what there is. Bytes that are none of ours go to others, which may.
const MALFORMED: &str = "_ws.malformed";
const OURS: &str = "QUORUMWIRE";

/// What is shown of one frame: each field that is there, with all its values.
pub type Shown = BTreeMap<String, Vec<String>>;

/// These fields of all frames of a recording. `options` are further arguments. Fails if the dissector raised
/// an error.
pub fn show(recording: &Path, options: &[&str], fields: &[&str]) -> Result<Vec<Shown>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "fields", "-E", "occurrence=a"]);
    command
        .arg("-E")
        .arg(format!("aggregator={BETWEEN_VALUES}"));
    command.arg("-X").arg(format!("lua_script:{DISSECTOR}"));
    command.arg("-r").arg(recording).args(options);
    // Nobody's own settings and plugins.
    let folder = recording.parent().context("it is in a folder")?;
    command
        .env("WIRESHARK_CONFIG_DIR", folder)
        .env("HOME", folder);
    let fields = [&[LUA_ERROR, MALFORMED], fields].concat();
    for field in &fields {
        command.args(["-e", field]);
    }
    let output = command
        .output()
        .context("tshark is missing; `make setup` installs it")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success() && !complaint.contains("Lua") && !complaint.contains("lua"),
        "{complaint}"
    );
    let said = String::from_utf8(output.stdout)?;
    let shown: Vec<Shown> = said.lines().map(|line| row(&fields, line)).collect();
    for (number, frame) in shown.iter().enumerate() {
        let mut malformed = frame.get(MALFORMED).into_iter().flatten();
        let is_sound = !frame.contains_key(LUA_ERROR) && !malformed.any(|it| it.contains(OURS));
        ensure!(
            is_sound,
            "frame {} of {}: {frame:?}",
            number + 1,
            recording.display()
        );
    }
    Ok(shown)
}

fn row(fields: &[&str], line: &str) -> Shown {
    let values = line.split('\t');
    let there = fields
        .iter()
        .zip(values)
        .filter(|(_, text)| !text.is_empty());
    there
        .map(|(field, text)| {
            let values = text.split(BETWEEN_VALUES).map(|it| match it {
                // As later versions say it.
                "True" => "1".to_owned(),
                "False" => "0".to_owned(),
                _ => it.to_owned(),
            });
            ((*field).to_owned(), values.collect())
        })
        .collect()
}
