//! The commands by which a program saves itself that no signal tells to, and by which it is given what it
//! saved.
use super::saved::{SavedFolder, empty};
use crate::options::SaveCommands;
use anyhow::{Context as _, bail, ensure};
use quorumwire_interpose::end_group;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Where commands find the folder for what is saved, and the program's process.
const SAVE: &str = "QUORUMWIRE_SAVE";
const PID: &str = "QUORUMWIRE_PID";
/// Folder of what was saved by command, in what is kept. A program that saves itself upon a signal has none.
const SAVE_FOLDER: &str = "quorumwire-save";
/// From look to look at a command.
const LOOK: Duration = Duration::from_millis(10);

/// They, with where they work.
#[derive(Clone, Debug)]
pub struct Commands {
    texts: SaveCommands,
    /// Has the folder for what is saved, and nothing else.
    place: PathBuf,
    /// How long each may take.
    within: Duration,
}

impl Commands {
    pub fn new(commands: &SaveCommands, place: &Path, within: Duration) -> Self {
        Self {
            texts: commands.clone(),
            place: place.to_owned(),
            within,
        }
    }

    fn save(&self) -> PathBuf {
        self.place.join(SAVE_FOLDER)
    }

    /// Has the program that runs in this folder save itself.
    pub fn snapshot(&self, folder: &Path, pid: u32) -> anyhow::Result<()> {
        empty(&self.place)?;
        fs::create_dir(self.save()).context("a folder for what the program saves")?;
        let command = &self.texts.snapshot;
        self.run(
            ("snapshot-command", command),
            folder,
            &[(PID, &pid.to_string())],
        )?;
        ensure!(
            fs::read_dir(self.save())?.next().is_some(),
            "option snapshot-command: {command:?} has put nothing into the folder that ${SAVE} names"
        );
        Ok(())
    }

    /// As [`Self::snapshot`], and what was saved as one file in `kept`.
    pub fn pack(&self, folder: &Path, pid: u32, kept: &Path) -> anyhow::Result<SavedFolder> {
        self.snapshot(folder, pid)?;
        let packed = SavedFolder::pack(&self.place, kept)?;
        empty(&self.place)?;
        Ok(packed)
    }

    /// Gives an empty folder, in which the program begins, what was saved.
    pub fn restore(&self, folder: &Path) -> anyhow::Result<()> {
        ensure!(
            self.save().is_dir(),
            "the program was not saved by a command, and option restore-command is given: replicas need the same \
             options"
        );
        empty(folder)?;
        self.run(("restore-command", &self.texts.restore), folder, &[])?;
        empty(&self.place)
    }

    fn run(
        &self,
        (option, command): (&str, &str),
        folder: &Path,
        variables: &[(&str, &str)],
    ) -> anyhow::Result<()> {
        tracing::info!(option, command, "a command is run for the served program");
        let mut child = Command::new("/bin/sh")
            .args(["-c", command])
            .current_dir(folder)
            .env(SAVE, self.save())
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
            .with_context(|| format!("option {option}: starting {command:?}"))?;
        let end = Instant::now() + self.within;
        loop {
            match child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("option {option}: {command:?} has failed ({status})"),
                None if Instant::now() < end => thread::sleep(LOOK),
                None => break,
            }
        }
        // Also what it has started.
        end_group(&mut child)?;
        bail!(
            "option {option}: {command:?} has not ended in {} s: see option save-timeout-s",
            self.within.as_secs_f64()
        )
    }
}

/// Gives a program's folder what was saved, by its command if it has one.
pub fn unpack(
    saved: &SavedFolder,
    folder: &Path,
    commands: Option<&Commands>,
) -> anyhow::Result<()> {
    let Some(commands) = commands else {
        saved.unpack(folder)?;
        ensure!(
            !folder.join(SAVE_FOLDER).exists(),
            "the program was saved by option snapshot-command, and option restore-command is not given here: \
             replicas need the same options"
        );
        return Ok(());
    };
    saved.unpack(&commands.place)?;
    commands.restore(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    struct Place {
        folders: [TempDir; 3],
    }

    impl Place {
        fn new() -> Self {
            let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
            Self { folders }
        }

        fn commands(&self, snapshot: &str, restore: &str) -> Commands {
            let commands = SaveCommands {
                snapshot: snapshot.into(),
                restore: restore.into(),
            };
            Commands::new(&commands, self.folders[1].path(), Duration::from_secs(20))
        }

        fn program(&self) -> &Path {
            self.folders[0].path()
        }

        fn pack(&self, commands: &Commands) -> anyhow::Result<SavedFolder> {
            commands.pack(self.program(), 7, self.folders[2].path())
        }
    }

    #[test]
    fn what_one_command_saves_another_brings() {
        let place = Place::new();
        let commands = place.commands(
            "cp state \"$QUORUMWIRE_SAVE\"/copy; echo $QUORUMWIRE_PID >\"$QUORUMWIRE_SAVE\"/pid",
            "cat \"$QUORUMWIRE_SAVE\"/copy \"$QUORUMWIRE_SAVE\"/pid >restored",
        );
        fs::write(place.program().join("state"), "it ").unwrap();
        let saved = place.pack(&commands).unwrap();
        unpack(&saved, place.program(), Some(&commands)).unwrap();
        let restored = fs::read_to_string(place.program().join("restored")).unwrap();
        assert_eq!(restored, "it 7\n");
        let names = fs::read_dir(place.program()).unwrap().count();
        assert_eq!(names, 1, "what it had before is gone");
        let error = unpack(&saved, place.program(), None).unwrap_err();
        assert!(error.to_string().contains("restore-command"), "{error}");
        fs::write(place.program().join("state"), "").unwrap();
        fs::remove_dir_all(place.program().join(SAVE_FOLDER)).unwrap();
        let by_signal = SavedFolder::pack(place.program(), place.folders[2].path()).unwrap();
        let error = unpack(&by_signal, place.program(), Some(&commands)).unwrap_err();
        assert!(
            error.to_string().contains("not saved by a command"),
            "{error}"
        );
    }

    #[test]
    fn what_fails_says_which_option_it_was() {
        let place = Place::new();
        for (snapshot, why) in [
            ("exit 3", "has failed (exit status: 3)"),
            ("true", "has put nothing into the folder"),
            ("no-such-program", "has failed (exit status: 127)"),
        ] {
            let error = place.pack(&place.commands(snapshot, "true")).unwrap_err();
            let error = format!("{error:#}");
            assert!(
                error.contains(why) && error.contains("option snapshot-command"),
                "{error}"
            );
        }
        let failing = place.commands("touch \"$QUORUMWIRE_SAVE\"/x", "exit 4");
        let saved = place.pack(&failing).unwrap();
        let error = unpack(&saved, place.program(), Some(&failing)).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("option restore-command: \"exit 4\" has failed")
        );
    }

    #[test]
    fn one_that_does_not_end_is_ended_with_what_it_started() {
        let place = Place::new();
        let mut commands = place.commands("sleep 1000 & echo $! >child; wait", "true");
        commands.within = Duration::from_millis(300);
        let error = place.pack(&commands).unwrap_err().to_string();
        assert!(
            error.contains("has not ended in 0.3 s: see option save-timeout-s"),
            "{error}"
        );
        let child = fs::read_to_string(place.program().join("child")).unwrap();
        let about = format!("/proc/{}/stat", child.trim());
        let is_gone = || fs::read_to_string(&about).map_or(true, |text| text.contains(") Z "));
        // It was killed with the others, and ends when it has a processor.
        let end = Instant::now() + Duration::from_secs(20);
        while !is_gone() {
            assert!(Instant::now() < end, "it goes on");
            thread::yield_now();
        }
    }
}
