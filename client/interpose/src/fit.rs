//! Whether a program can be served at all, as far as its file says.
use object::read::elf::{ElfFile32, ElfFile64, FileHeader, ProgramHeader};
use object::{Object as _, elf};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Bytes read of a file: nothing that is looked at lies beyond.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// Scripts that are scripts' interpreters.
const SCRIPTS_MAX: usize = 4;

/// Why a program cannot be served.
#[derive(Debug, Error)]
pub enum Unfit {
    /// Its file cannot be read.
    #[error("{0}: {1}")]
    Unreadable(PathBuf, io::Error),
    /// It runs with another user's rights.
    #[error(
        "{0} is setuid or setgid: the system preloads nothing into it. Serve a copy without that bit"
    )]
    Setuid(PathBuf),
    /// Not of this machine's kind.
    #[error("{0} is no program of this machine's kind (ELF, {bits} bits)", bits = usize::BITS)]
    NoProgram(PathBuf),
    /// It needs nobody to load it.
    #[error(
        "{0} is linked statically: no call of it can be replaced. Use a build that is linked dynamically with glibc"
    )]
    Static(PathBuf),
    /// Another C library.
    #[error(
        "{0} is linked with another C library than glibc ({1}). Use a build that is linked with glibc"
    )]
    OtherLibrary(PathBuf, String),
    /// It calls the kernel by itself.
    #[error(
        "{0} is written in Go, whose programs call the kernel without the C library, and in many threads"
    )]
    Go(PathBuf),
}

/// Looks at the file of a program, and if that is a script at the one that reads it.
pub fn fits(file: &Path) -> Result<(), Unfit> {
    let mut file = file.to_owned();
    for _ in 0..SCRIPTS_MAX {
        let unreadable = |error| Unfit::Unreadable(file.clone(), error);
        let about = fs::metadata(&file).map_err(unreadable)?;
        if about.permissions().mode() & 0o6000 != 0 {
            return Err(Unfit::Setuid(file));
        }
        let mut bytes = Vec::new();
        let opened = File::open(&file).map_err(unreadable)?;
        let mut opened = opened.take(FILE_BYTES_MAX);
        opened.read_to_end(&mut bytes).map_err(unreadable)?;
        match bytes.strip_prefix(b"#!") {
            Some(line) => file = reader_of(line).ok_or(Unfit::NoProgram(file))?,
            None => return fits_as_binary(&file, &bytes),
        }
    }
    Err(Unfit::NoProgram(file))
}

/// What reads a script with this first line.
fn reader_of(line: &[u8]) -> Option<PathBuf> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_ascii_whitespace();
    let reader = Path::new(words.next()?);
    if reader.file_name()? != "env" {
        return Some(reader.to_owned());
    }
    let name = words.find(|word| !word.starts_with('-'))?;
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(name));
    places.find(|place| place.is_file())
}

fn fits_as_binary(file: &Path, bytes: &[u8]) -> Result<(), Unfit> {
    let no_program = |_| Unfit::NoProgram(file.to_owned());
    if cfg!(target_pointer_width = "64") {
        let read = ElfFile64::<object::Endianness>::parse(bytes).map_err(no_program)?;
        look(file, bytes, &read)
    } else {
        let read = ElfFile32::<object::Endianness>::parse(bytes).map_err(no_program)?;
        look(file, bytes, &read)
    }
}

fn look<H: FileHeader>(
    file: &Path,
    bytes: &[u8],
    read: &object::read::elf::ElfFile<'_, H>,
) -> Result<(), Unfit> {
    let own = || file.to_owned();
    let endian = read.endian();
    let own_machine = match std::env::consts::ARCH {
        "x86_64" => elf::EM_X86_64,
        "aarch64" => elf::EM_AARCH64,
        _ => read.elf_header().e_machine(endian),
    };
    if read.elf_header().e_machine(endian) != own_machine {
        return Err(Unfit::NoProgram(own()));
    }
    if read.section_by_name(".go.buildinfo").is_some() {
        return Err(Unfit::Go(own()));
    }
    let mut headers = read.elf_program_headers().iter();
    let loader = headers.find_map(|header| header.interpreter(endian, bytes).ok().flatten());
    let loader = loader.ok_or_else(|| Unfit::Static(own()))?;
    let loader = String::from_utf8_lossy(loader).into_owned();
    if loader.contains("ld-linux") {
        Ok(())
    } else {
        Err(Unfit::OtherLibrary(own(), loader))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_cannot_be_served_is_told_by_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("main.c"), "int main(void) { return 0; }").unwrap();
        let compiled = |name: &str, options: &[&str]| {
            let mut compiler = Command::new("cc");
            let (out, source) = (at(name), at("main.c"));
            compiler.args(options).arg("-o").arg(&out).arg(source);
            assert!(compiler.status().unwrap().success(), "{name}");
            out
        };
        let fit = compiled("fit", &[]);
        fits(&fit).unwrap();
        let script = |name: &str, line: &str| {
            fs::write(at(name), line).unwrap();
            at(name)
        };
        fits(&script("read", &format!("#!{}\n", fit.display()))).unwrap();
        fits(&script("searched", "#!/usr/bin/env python3\n")).unwrap();
        let is_static = fits(&compiled("static", &["-static"]));
        assert!(matches!(is_static, Err(Unfit::Static(_))), "{is_static:?}");
        let musl = compiled("musl", &["-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"]);
        let of_musl = fits(&script("of-musl", &format!("#!{}\n", musl.display())));
        assert!(
            matches!(of_musl, Err(Unfit::OtherLibrary(..))),
            "{of_musl:?}"
        );
        fs::set_permissions(&fit, fs::Permissions::from_mode(0o4755)).unwrap();
        assert!(matches!(fits(&fit), Err(Unfit::Setuid(_))));
        for (name, text) in [("text", "hello"), ("empty", ""), ("circle", "")] {
            let line = if name == "circle" {
                format!("#!{}\n", at(name).display())
            } else {
                text.into()
            };
            let found = fits(&script(name, &line));
            assert!(
                matches!(found, Err(Unfit::NoProgram(_))),
                "{name}: {found:?}"
            );
        }
        assert!(matches!(fits(&at("nowhere")), Err(Unfit::Unreadable(..))));
    }

    /// The text of a Go program's section is all that is looked at.
    #[test]
    fn a_program_in_go_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let section = "char info[] __attribute__((section(\".go.buildinfo\"))) = \"go\"; int main(void) { return info[0] != 'g'; }";
        fs::write(at("main.c"), section).unwrap();
        let compiled = Command::new("cc")
            .arg("-o")
            .arg(at("go"))
            .arg(at("main.c"))
            .status();
        assert!(compiled.unwrap().success());
        assert!(matches!(fits(&at("go")), Err(Unfit::Go(_))));
    }
}
