//! Programs in C and C++ that are built against the installed libraries, as their users build them.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::cluster::Cluster;
use crate::deployment::Deployment;

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-pedantic", "-Werror"];

/// Where all sources are.
#[must_use]
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs a command that has to succeed, and returns what it prints.
pub fn succeed(command: &mut Command) -> Result<String> {
    let done = command.stdin(Stdio::null()).output();
    let done = done.with_context(|| format!("{command:?}"))?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "{command:?}: {said}");
    Ok(String::from_utf8(done.stdout)?)
}

/// Installs the libraries into this folder.
pub fn install(prefix: &Path) -> Result<()> {
    let mut install = Command::new(repository().join("client/c/install"));
    let to = format!("PREFIX={}", prefix.display());
    succeed(install.args([&to, "PROFILE=dev"])).map(drop)
}

/// Compiles a source for a library, named as `pkg-config` knows it; where the program is.
pub fn compile(
    prefix: &Path,
    library: &str,
    compiler: &[&str],
    source: &str,
    name: &str,
) -> Result<PathBuf> {
    let folder = prefix.join("lib");
    let mut config = Command::new("pkg-config");
    config.env("PKG_CONFIG_PATH", folder.join("pkgconfig"));
    let flags = succeed(config.args(["--cflags", "--libs", library]))?;
    let to = prefix.join(name);
    let mut compile = Command::new(compiler[0]);
    compile.args(&compiler[1..]).args(WARNINGS);
    compile.arg(repository().join(source)).arg("-o").arg(&to);
    compile.arg(format!("-Wl,-rpath,{}", folder.display()));
    succeed(compile.args(flags.split_whitespace()))?;
    Ok(to)
}

/// One that runs beside the test, and is killed when it is dropped (`SIGKILL`).
pub struct Program(pub Child);

impl Drop for Program {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Program {
    /// What it reads.
    pub fn input(&mut self) -> Result<&mut ChildStdin> {
        self.0.stdin.as_mut().context("it reads")
    }

    /// Asks it to end (`SIGTERM`).
    pub fn terminate(&self) -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.0.id())?).context("a child has a process id")?;
        Ok(kill_process(pid, Signal::TERM)?)
    }
}

/// Starts one; what it says is in a file.
pub fn start(program: &Path, arguments: &[&str], said: &Path) -> Result<Program> {
    let file = File::create(said)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped());
    command.stdout(file.try_clone()?).stderr(file);
    Ok(Program(command.spawn()?))
}

/// The lines that it has said so far.
pub fn lines(said: &Path) -> Result<Vec<String>> {
    let text = fs::read(said)?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().map(str::to_owned).collect())
}

/// The file for clients of this cluster.
pub fn client_file(cluster: &Cluster<'_>) -> Result<PathBuf> {
    let file = cluster.scratch_file("client.toml");
    let addresses = cluster.founders().map(|id| cluster.native(id));
    let addresses: Vec<String> = addresses.map(|it| SocketAddr::to_string(&it)).collect();
    let text = format!("addresses = {addresses:?}\ndeadline_ms = 30000\npatience_ms = 500\n");
    fs::write(&file, text)?;
    Ok(file)
}

/// The file of a member with the number of this learner, which keeps what it has to in this folder.
pub fn member_file(
    deployment: &Deployment<'_>,
    learner: usize,
    dir: &str,
    more: &str,
) -> Result<String> {
    let file = deployment.path(&format!("member-{learner}.toml"));
    let text = format!(
        "deployment = \"paxos\"\ndeployment_file = {:?}\nlearner = {learner}\ndir = {:?}\n{more}",
        deployment.path("deployment.toml"),
        deployment.path(dir),
    );
    fs::write(&file, text)?;
    Ok(file)
}
