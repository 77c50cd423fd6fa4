//! A server that is started as root becomes somebody else at once and for good, and keeps the capabilities
//! that its plane takes. Knows who is who in `/etc/passwd`; asks no directory service.
use crate::options::ServerOptions;
use anyhow::{Context as _, bail};
use rustix::fs::{Access, access};
use rustix::process::{
    Gid, Uid, geteuid, parent_process_death_signal, set_parent_process_death_signal,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities, set_keep_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;

const PASSWD: &str = "/etc/passwd";
/// Ports below this one take a capability.
const FIRST_FREE_PORT: u16 = 1024;
/// What is within the data folder, of this server's own: folders with this name in front.
const GROUP_FOLDER_PREFIX: &str = "group-";

/// A user of this system.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Account {
    /// As the option has it.
    name: String,
    uid: u32,
    gid: u32,
}

/// Becomes the user whom the options name, and keeps no capability that they do not need. Must come before
/// there is a second thread, because users and capabilities are a thread's own; and before a data folder or a
/// file with secrets is opened, so that one which the user cannot open is noticed now and not at the next
/// SIGHUP.
pub fn give_up(options: &ServerOptions) -> anyhow::Result<()> {
    let threads = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    assert_eq!(
        threads, 1,
        "another thread would keep what this one gives up"
    );
    let is_root = geteuid().is_root();
    match account_of(options)? {
        Some(account) if is_root && account.uid != 0 => {
            own_folder(&options.dir, &account)?;
            account.become_it(needed(options))?;
            check_access(&options.dir, &account)?;
        }
        Some(account) if geteuid().as_raw() != account.uid => bail!(
            "option user: {}: the server was started as user {}, and only root can become another one",
            account.name,
            geteuid().as_raw()
        ),
        None if is_root => tracing::warn!(
            "runs as root, which it does not need: set option user to run as another user"
        ),
        Some(_) if is_root => {}
        Some(_) | None => keep_only(needed(options))?, // such as those that systemd gave
    }
    if is_root && options.user.is_none() {
        return Ok(());
    }
    set_no_new_privs(true).context("giving up privileges for good")?;
    let capabilities = in_words(capabilities(None)?.permitted);
    tracing::info!(
        uid = geteuid().as_raw(),
        capabilities,
        "privileges are given up"
    );
    Ok(())
}

/// The user whom the options name, if they name one.
fn account_of(options: &ServerOptions) -> anyhow::Result<Option<Account>> {
    let name = options.user.as_ref();
    name.map(|name| Account::find(name).with_context(|| format!("option user: {name}")))
        .transpose()
}

/// Whether there is the user whom the options name.
pub(crate) fn check_user(options: &ServerOptions) -> anyhow::Result<()> {
    account_of(options).map(drop)
}

/// The capabilities without which the options cannot be.
fn needed(options: &ServerOptions) -> CapabilitySet {
    let planes = options.plane.candidates().map(|kind| (kind.capabilities)());
    let of_plane: CapabilitySet = planes.collect();
    let mut listens = options.listen_addresses().into_iter();
    let binds = if listens.any(|(_, at)| (1..FIRST_FREE_PORT).contains(&at.port())) {
        CapabilitySet::NET_BIND_SERVICE
    } else {
        CapabilitySet::empty()
    };
    of_plane | binds
}

fn in_words(set: CapabilitySet) -> String {
    let names: Vec<String> = set
        .iter_names()
        .map(|(name, _)| format!("CAP_{name}"))
        .collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(" ")
    }
}

impl Account {
    /// Of a name in `/etc/passwd`, or of `UID:GID`.
    fn find(text: &str) -> anyhow::Result<Self> {
        if let Some((uid, gid)) = text.split_once(':') {
            let number = |digits: &str| digits.parse().ok().filter(|id| *id != u32::MAX);
            let (Some(uid), Some(gid)) = (number(uid), number(gid)) else {
                bail!("is no UID:GID; allowed: two numbers, or a name in {PASSWD}");
            };
            let name = text.to_owned();
            return Ok(Self { name, uid, gid });
        }
        let passwd = fs::read_to_string(PASSWD).with_context(|| format!("reading {PASSWD}"))?;
        Self::find_in(&passwd, text)
            .with_context(|| format!("is not in {PASSWD}; allowed: a name there, or UID:GID"))
    }

    fn find_in(passwd: &str, wanted: &str) -> Option<Self> {
        passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next().filter(|name| *name == wanted)?;
            let uid = fields.nth(1)?.parse().ok()?;
            let gid = fields.next()?.parse().ok()?;
            let name = name.to_owned();
            Some(Self { name, uid, gid })
        })
    }

    /// Gives up root, and all capabilities but these.
    fn become_it(&self, needed: CapabilitySet) -> anyhow::Result<()> {
        let becoming = || {
            format!(
                "option user: becoming {} takes CAP_SETUID and CAP_SETGID",
                self.name
            )
        };
        let dies_with_parent = parent_process_death_signal()?;
        forget_others(needed)?;
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        set_thread_groups(&[gid]).with_context(becoming)?;
        set_thread_res_gid(gid, gid, gid).with_context(becoming)?;
        set_keep_capabilities(true)?;
        set_thread_res_uid(uid, uid, uid).with_context(becoming)?;
        set_keep_capabilities(false)?;
        keep_only(needed)?;
        // The kernel forgets it when a process becomes another user.
        set_parent_process_death_signal(dies_with_parent)?;
        let back = set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT);
        assert!(back.is_err(), "the way back to root is open");
        Ok(())
    }
}

/// Gives up all other capabilities. One of these that the process does not have is missed by the plane, which
/// says so itself.
fn keep_only(needed: CapabilitySet) -> anyhow::Result<()> {
    let kept = capabilities(None)?.permitted & needed;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets).context("giving up capabilities")
}

/// No program that this process might become can have the others either.
fn forget_others(kept: CapabilitySet) -> io::Result<()> {
    if !capabilities(None)?
        .effective
        .contains(CapabilitySet::SETPCAP)
    {
        return Ok(()); // it makes no difference: no program can give this process new ones
    }
    for one in CapabilitySet::all().difference(kept).iter() {
        match remove_capability_from_bounding_set(one) {
            // One that this kernel does not know.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Makes a data folder, but none above it: a path that is mistyped would become a tree of folders.
pub fn make_folder(dir: &Path) -> anyhow::Result<()> {
    let shown = dir.display();
    match fs::create_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
            "option dir: cannot make {shown}: the folder above it does not exist; make that one first, or correct \
             the path"
        ),
        made => made.with_context(|| format!("option dir: cannot make {shown}")),
    }
}

/// A folder that is missing is made for the user. One that is somebody else's, or has something of somebody
/// else's in it, is refused: it would fail later, file by file.
fn own_folder(dir: &Path, account: &Account) -> anyhow::Result<()> {
    let shown = dir.display();
    if !dir.exists() {
        make_folder(dir)?;
        return chown(dir, Some(account.uid), Some(account.gid))
            .with_context(|| format!("option dir: cannot give {shown} to {}", account.name));
    }
    let foreign = find_foreign(dir, account.uid)
        .with_context(|| format!("option dir: cannot look at {shown}"))?;
    let Some((path, owner)) = foreign else {
        return Ok(());
    };
    bail!(
        "option dir: {path} belongs to user {owner}, not to {} (option user): chown -R {}:{} {shown}",
        account.name,
        account.uid,
        account.gid
    )
}

/// Something in a data folder that is not this user's. What is not the server's, such as `lost+found`, is not
/// looked at.
fn find_foreign(dir: &Path, uid: u32) -> io::Result<Option<(String, u32)>> {
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let owner = fs::metadata(&folder)?.uid();
        if owner != uid {
            return Ok(Some((folder.display().to_string(), owner)));
        }
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let meta = entry.metadata()?;
            let name = entry.file_name();
            if meta.is_file() && meta.uid() != uid {
                return Ok(Some((entry.path().display().to_string(), meta.uid())));
            }
            if meta.is_dir()
                && name
                    .as_encoded_bytes()
                    .starts_with(GROUP_FOLDER_PREFIX.as_bytes())
            {
                folders.push(entry.path());
            }
        }
    }
    Ok(None)
}

/// That the user, whom this process is by now, can use the folder.
fn check_access(dir: &Path, account: &Account) -> anyhow::Result<()> {
    access(dir, Access::WRITE_OK | Access::READ_OK | Access::EXEC_OK).with_context(|| {
        format!(
            "option dir: {} (option user) cannot use {}; each folder above it must let that user pass",
            account.name,
            dir.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str =
        "root:x:0:0:root:/root:/bin/bash\nann:x:7:8:Ann,,,:/home/ann:/bin/sh\nodd:x\n";

    #[test]
    fn a_user_is_a_name_or_two_numbers() {
        let account = |name: &str, uid, gid| Account {
            name: name.to_owned(),
            uid,
            gid,
        };
        assert_eq!(Account::find_in(USERS, "ann"), Some(account("ann", 7, 8)));
        assert_eq!(Account::find_in(USERS, "root"), Some(account("root", 0, 0)));
        for unknown in ["an", "anna", "odd", "x", ""] {
            assert_eq!(Account::find_in(USERS, unknown), None, "{unknown}");
        }
        assert_eq!(Account::find("12:34").unwrap(), account("12:34", 12, 34));
        for wrong in ["12:", ":", "a:1", "1:2:3", "-1:1", "4294967295:1"] {
            let error = Account::find(wrong).unwrap_err().to_string();
            assert!(error.contains("two numbers"), "{wrong}: {error}");
        }
    }

    #[test]
    fn what_belongs_to_another_user_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let me = geteuid().as_raw();
        fs::create_dir_all(dir.path().join("group-0")).unwrap();
        fs::write(dir.path().join("group-0/log"), "x").unwrap();
        assert_eq!(find_foreign(dir.path(), me).unwrap(), None);
        let (path, owner) = find_foreign(dir.path(), me + 1).unwrap().unwrap();
        assert_eq!((path, owner), (dir.path().display().to_string(), me));
    }

    #[test]
    fn capabilities_have_their_usual_names() {
        assert_eq!(in_words(CapabilitySet::empty()), "none");
        let some = CapabilitySet::BPF | CapabilitySet::NET_ADMIN | CapabilitySet::PERFMON;
        let all = in_words(some);
        assert_eq!(all, "CAP_NET_ADMIN CAP_PERFMON CAP_BPF");
    }
}
