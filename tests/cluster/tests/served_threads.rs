//! Programs of which several threads serve, served by `quorumwire run --serial`: the real memcached, slapd
//! and clamd, and one of which a thread does not come back.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run, run_started};
use quorumwire_cluster_tests::ldap::Ldap;
use quorumwire_cluster_tests::process::CommandOutput;
use quorumwire_cluster_tests::served::{Given, kill_leader_under, three};

const MEMCACHED: [&str; 7] = ["memcached", "-u", "root", "-p", "6379", "-l", "0.0.0.0"];
const PATIENCE: Duration = Duration::from_secs(20);
const CLIENTS_OF_EACH: u64 = 8;
/// What clients get answered before the next thing happens.
const ANSWERS: u64 = 200;
const KEYS: u64 = 20;
const LOAD_TIME_MAX: Duration = Duration::from_mins(1);

struct Connection(BufReader<TcpStream>);

impl Connection {
    fn to(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(BufReader::new(stream)))
    }

    fn say(&mut self, text: &str) -> Result<()> {
        Ok(self.0.get_mut().write_all(text.as_bytes())?)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.0.read_line(&mut line)? > 0, "the connection has ended");
        Ok(line)
    }

    /// Its version and value, if it is there.
    fn gets(&mut self, key: &str) -> Result<Option<(String, String)>> {
        self.say(&format!("gets {key}\r\n"))?;
        let head = self.line()?;
        if head == "END\r\n" {
            return Ok(None);
        }
        let version = head.split_whitespace().nth(4).context("a version")?;
        let value = self.line()?.trim_end().to_owned();
        ensure!(self.line()? == "END\r\n", "one value");
        Ok(Some((version.to_owned(), value)))
    }
}

/// What a client was told, and whether its connection has ended.
#[derive(Default)]
struct Told {
    appended: Vec<(u64, String)>,
    is_cut: bool,
}

/// One round of requests whose order all clients make, in one piece, and one that depends on what was read.
fn round(connection: &mut Connection, number: u64, value: &str) -> Result<()> {
    let (key, length) = (number % KEYS, value.len());
    connection.say(&format!(
        "append a{key} 0 0 {length}\r\n{value}\r\nprepend p{key} 0 0 {length}\r\n{value}\r\n\
         incr n{key} 3\r\nset t{key} 0 1 {length}\r\n{value}\r\n"
    ))?;
    for answer in ["STORED", "STORED", "", "STORED"] {
        let line = connection.line()?;
        ensure!(line.starts_with(answer), "{answer}: {line}");
    }
    if let Some((version, _)) = connection.gets(&format!("c{key}"))? {
        connection.say(&format!("cas c{key} 0 0 {length} {version}\r\n{value}\r\n"))?;
        let line = connection.line()?;
        ensure!(
            ["STORED\r\n", "EXISTS\r\n"].contains(&&*line),
            "cas: {line}"
        );
    }
    Ok(())
}

fn load(given: &Given<'_>) -> Result<Told> {
    let mut connection = Connection::to(given.address)?;
    let mut told = Told::default();
    for number in 0.. {
        if !given.goes_on() {
            break;
        }
        let value = format!("<{}.{number}>", given.name);
        if round(&mut connection, number, &value).is_err() {
            told.is_cut = true;
            break;
        }
        told.appended.push((number % KEYS, value));
        given.is_answered();
    }
    Ok(told)
}

/// All that it holds, versions, too, but for what ends by itself.
fn items(address: SocketAddr) -> Result<Vec<Option<(String, String)>>> {
    let mut connection = Connection::to(address)?;
    let keys = ["a", "p", "n", "c"]
        .into_iter()
        .flat_map(|kind| (0..KEYS).map(move |key| format!("{kind}{key}")));
    keys.map(|key| connection.gets(&key)).collect()
}

/// All programs have the same; what clients were told is in it, once.
fn compare(cluster: &Cluster<'_>, ids: &[u16], told: &[Told]) -> Result<()> {
    let first = items(cluster.redis(*ids.first().context("a replica")?))?;
    for id in ids {
        let items = items(cluster.redis(*id))?;
        ensure!(
            items == first,
            "replica {id}: {items:?}, and another: {first:?}"
        );
    }
    for (key, value) in told.iter().flat_map(|it| &it.appended) {
        let item = first.get(usize::try_from(*key)?);
        let text = &item.and_then(Option::as_ref).context("a value")?.1;
        let times = text.matches(value.as_str()).count();
        ensure!(
            times == 1,
            "{value} was acknowledged, and is there {times} times"
        );
    }
    Ok(())
}

fn programs_are_there(cluster: &Cluster<'_>, ids: &[u16]) -> Result<()> {
    cluster.wait_for("programs", || {
        let answers = |id: &u16| -> Result<String> {
            let mut connection = Connection::to(cluster.redis(*id))?;
            connection.say("version\r\n")?;
            connection.line()
        };
        Ok(ids.iter().all(|id| answers(id).is_ok()))
    })
}

/// With so many threads that serve clients.
fn memcached_survives_its_leader(threads: &'static str) {
    let plan = three(&[&MEMCACHED[..], &["-t", threads]].concat());
    run_started(plan, |cluster| {
        programs_are_there(cluster, &[0, 1, 2])?;
        let leader = cluster.wait_for_leader()?;
        let mut first = Connection::to(cluster.redis(leader))?;
        for key in 0..KEYS {
            for kind in ["a", "p", "n", "c"] {
                first.say(&format!("set {kind}{key} 0 0 1\r\n0\r\n"))?;
                ensure!(first.line()? == "STORED\r\n");
            }
        }
        let told = kill_leader_under(cluster, leader, (CLIENTS_OF_EACH, ANSWERS), load)?;
        for (id, told) in &told {
            ensure!(told.is_cut == (*id == leader), "a client of replica {id}");
        }
        let told: Vec<_> = told.into_iter().map(|(_, told)| told).collect();
        let others: Vec<_> = (0..3).filter(|id| *id != leader).collect();
        compare(cluster, &others, &told)?;
        // The one that was killed has nothing but the log: its program does all of it again.
        cluster.start(leader)?;
        programs_are_there(cluster, &[leader])?;
        compare(cluster, &[0, 1, 2], &told)
    });
}

#[test]
fn a_memcached_with_four_threads_is_equal_everywhere_and_survives_its_leader() {
    memcached_survives_its_leader("4");
}

#[test]
fn a_memcached_with_one_thread_is_equal_everywhere_and_survives_its_leader() {
    memcached_survives_its_leader("1");
}

/// A server whose threads can get lost.
fn compiled(program: &Path) -> Result<&'static str> {
    let source = "../../client/interpose/tests/programs/pool.c";
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let mut compiler = Command::new("cc");
    compiler.args(["-pthread", "-o"]).args([program, &source]);
    ensure!(compiler.status()?.success(), "it does not compile");
    Ok(String::leak(program.display().to_string()))
}

#[test]
fn a_thread_that_does_not_come_back_ends_its_replica_with_its_name() {
    let plan = Plan {
        switches: vec!["serial"],
        options: vec![("publish", "7000=0.0.0.0:6379"), ("serial-turn-s", "1")],
        ..Plan::new(3, Durability::Sync)
    };
    run(plan, |cluster| {
        let program = compiled(&cluster.scratch_file("pool"))?;
        cluster.plan().serves = vec![program, "eventfd"];
        cluster.start_all()?;
        cluster.wait_for("an answer", || {
            let answer = || -> Result<String> {
                let mut connection = Connection::to(cluster.redis(0))?;
                connection.say("hello")?;
                connection.line()
            };
            Ok(answer().is_ok())
        })?;
        let mut connection = Connection::to(cluster.redis(0))?;
        connection.say("lost")?;
        // The same everywhere: it does not help to ask another replica.
        for id in 0..3 {
            let status = cluster.wait_for_exit(id)?;
            ensure!(!status.success(), "replica {id}: {status}");
            let log = cluster.log(id);
            let is_named = log.contains("(worker) has not come back to wait");
            ensure!(is_named, "replica {id} does not say why it ends: {log}");
        }
        Ok(())
    });
}

/// With a pool of eight threads, to which its listener hands work by a condition variable.
const SLAPD: &str = "\
include /etc/ldap/schema/core.schema
modulepath /usr/lib/ldap
moduleload back_mdb
threads 8
database mdb
suffix dc=x
rootdn cn=admin,dc=x
rootpw secret
directory .
";
const LDAP_CLIENTS: u16 = 6;
const LDAP_ENTRIES: u16 = 30;

/// Adds entries, and says of those that all clients add something to who came when.
fn changes(client: u16) -> String {
    let of_each = |number| {
        format!(
            "dn: cn={client}-{number},dc=x\nchangetype: add\nobjectClass: person\ncn: {client}-{number}\nsn: x\n\n\
             dn: dc=x\nchangetype: modify\nadd: description\ndescription: {client}.{number}\n-\n\
             replace: l\nl: {client}.{number}\n\n"
        )
    };
    let each: Vec<String> = (0..LDAP_ENTRIES).map(of_each).collect();
    each.concat()
}

fn ldap(cluster: &Cluster<'_>, id: u16, more: &[&str]) -> Vec<String> {
    let server = format!("ldap://{}", cluster.redis(id));
    let who = ["-x", "-D", "cn=admin,dc=x", "-w", "secret", "-H", &server];
    who.iter().chain(more).map(ToString::to_string).collect()
}

fn ask_ldap(cluster: &Cluster<'_>, program: &str, id: u16, more: &[&str]) -> Result<CommandOutput> {
    let words = ldap(cluster, id, more);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    cluster.run_program(program, &words)
}

fn wait_for_slapd(cluster: &Cluster<'_>) -> Result<()> {
    cluster.wait_for("three programs", || {
        let answers = |id| ask_ldap(cluster, "ldapwhoami", id, &[]).is_ok_and(|it| it.success);
        Ok((0..3).all(answers))
    })
}

/// These clients change something at all replicas, each at one.
fn change_ldap(cluster: &Cluster<'_>, clients: std::ops::Range<u16>) -> Result<()> {
    let mut loads = Vec::new();
    for (id, client) in (0..3).cycle().zip(clients) {
        let path = cluster.scratch_file(&format!("{client}.ldif"));
        fs::write(&path, changes(client))?;
        let standard = [Stdio::null(), Stdio::null(), Stdio::inherit()];
        let words = ldap(cluster, id, &["-f", &path.display().to_string()]);
        loads.push(cluster.start_beside(Path::new("ldapmodify"), &words, standard)?);
    }
    for mut load in loads {
        let is_done = load.wait(LOAD_TIME_MAX)?.success();
        ensure!(is_done, "a client was refused something");
    }
    Ok(())
}

/// What one of many clients was told is added, until it is told to stop or cut.
fn add_values(given: &Given<'_>, leader: u16) -> Result<Vec<String>> {
    let mut client = Ldap::connect(given.address, ("cn=admin,dc=x", "secret"), PATIENCE)?;
    let mut told = Vec::new();
    for number in 0_u64.. {
        if !given.goes_on() {
            break;
        }
        let value = format!("{}.{number}", given.name);
        match client.add_and_replace("dc=x", ["description", "l"], &value) {
            Ok(()) => told.push(value),
            Err(_) if given.id == leader => break, // it may be dead
            Err(error) => return Err(error).context(value),
        }
        given.is_answered();
    }
    Ok(told)
}

/// All have what so many clients have added, and the same, which is given.
fn compare_ldap(cluster: &Cluster<'_>, clients: u16) -> Result<String> {
    let mut dumps = BTreeSet::new();
    for id in 0..3 {
        let all = ["-LLL", "-b", "dc=x", "*", "+"];
        let dump = ask_ldap(cluster, "ldapsearch", id, &all)?;
        ensure!(dump.success, "{}", dump.stderr);
        let entries = dump.stdout.matches("entryUUID:").count();
        let expected = usize::from(clients * LDAP_ENTRIES) + 1;
        ensure!(entries == expected, "{entries} entries");
        dumps.insert(dump.stdout);
    }
    ensure!(dumps.len() == 1, "programs differ: {dumps:#?}");
    dumps.pop_first().context("a dump")
}

/// Identifiers and times of entries are drawn by the program, and must be equal, too; also when all have
/// begun anew from their files.
#[test]
fn a_slapd_with_a_pool_of_threads_is_equal_everywhere_also_over_a_cut() {
    let plan = Plan {
        switches: vec!["serial"],
        options: vec![("save-signal", "TERM")],
        ..Plan::new(3, Durability::Sync)
    };
    run(plan, |cluster| {
        let file = |name: &str, text: &str| -> Result<String> {
            let path = cluster.scratch_file(name);
            fs::write(&path, text)?;
            Ok(path.display().to_string())
        };
        let configuration = file("slapd.conf", SLAPD)?;
        let base = "dn: dc=x\nobjectClass: dcObject\nobjectClass: organization\ndc: x\no: x\n";
        let base = file("base.ldif", base)?;
        let listens = "ldap://0.0.0.0:6379";
        cluster.plan().serves = vec!["/usr/sbin/slapd", "-h", listens, "-d", "0", "-f"];
        cluster.plan().serves.push(configuration.leak());
        cluster.start_all()?;
        wait_for_slapd(cluster)?;
        let added = ask_ldap(cluster, "ldapadd", 0, &["-f", &base])?;
        ensure!(added.success, "{}", added.stderr);
        change_ldap(cluster, 0..LDAP_CLIENTS)?;
        compare_ldap(cluster, LDAP_CLIENTS)?;
        cluster.command(&["snapshot", "--addr", &cluster.http(0).to_string()])?;
        wait_for_slapd(cluster)?;
        compare_ldap(cluster, LDAP_CLIENTS)?;
        change_ldap(cluster, LDAP_CLIENTS..LDAP_CLIENTS + 3)?;
        compare_ldap(cluster, LDAP_CLIENTS + 3)?;
        let leader = cluster.wait_for_leader()?;
        let load = (CLIENTS_OF_EACH, ANSWERS);
        let told = kill_leader_under(cluster, leader, load, |given| add_values(given, leader))?;
        cluster.start(leader)?;
        wait_for_slapd(cluster)?;
        let dump = compare_ldap(cluster, LDAP_CLIENTS + 3)?;
        let values: BTreeSet<&str> = dump.lines().collect();
        for value in told.iter().flat_map(|(_, told)| told) {
            let line = format!("description: {value}");
            ensure!(values.contains(&*line), "{value} was added, and is lost");
        }
        cluster.kill_all()?;
        cluster.start_all()?;
        wait_for_slapd(cluster)?;
        ensure!(compare_ldap(cluster, LDAP_CLIENTS + 3)? == dump);
        Ok(())
    });
}

/// With one signature, so that nothing is to be downloaded.
const CLAMD: &str = "\
Foreground yes
TCPSocket 6379
TCPAddr 0.0.0.0
User root
MaxThreads 4
SelfCheck 0
TemporaryDirectory /tmp
";
/// It has a name, and the bytes of `SEEN` in hexadecimal digits.
const SIGNATURE: &str = "Quorumwire.Test:0:*:71756f72756d776972652d7465737421\n";
const SEEN: &str = "quorumwire-test!";

/// What it says of a text.
fn scan(address: SocketAddr, text: &str) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = u32::try_from(text.len())?.to_be_bytes();
    let sent = [b"zINSTREAM\0", &length[..], text.as_bytes(), &[0; 4]].concat();
    stream.write_all(&sent)?;
    let mut said = String::new();
    stream.read_to_string(&mut said)?;
    Ok(said)
}

/// Texts of which every third is bad. An error: what was said, if it is not that.
fn scan_one_of_many(address: SocketAddr, name: &str, number: u64) -> Result<()> {
    let is_bad = number.is_multiple_of(3);
    let text = format!("{name}.{number} {}", if is_bad { SEEN } else { "nothing" });
    let said = scan(address, &text)?;
    let expected = if is_bad {
        "Quorumwire.Test.UNOFFICIAL FOUND"
    } else {
        "OK"
    };
    ensure!(said == format!("stream: {expected}\0"), "{text}: {said}");
    Ok(())
}

#[test]
fn a_clamd_scans_for_the_clients_of_all_replicas() {
    run(Plan::new(3, Durability::Sync), |cluster| {
        let (configuration, signatures) = (
            cluster.scratch_file("clamd.conf"),
            cluster.scratch_file("signatures"),
        );
        fs::create_dir(&signatures)?;
        fs::write(signatures.join("test.ndb"), SIGNATURE)?;
        let directory = format!("DatabaseDirectory {}\n", signatures.display());
        fs::write(&configuration, CLAMD.to_owned() + &directory)?;
        // That several of its threads serve is known.
        cluster.plan().serves = vec!["clamd", "-c", configuration.display().to_string().leak()];
        cluster.start_all()?;
        let wait_for = |cluster: &Cluster<'_>, ids: &[u16]| {
            cluster.wait_for("scans", || {
                let scans = |id: &u16| scan_one_of_many(cluster.redis(*id), "first", 0).is_ok();
                Ok(ids.iter().all(scans))
            })
        };
        wait_for(cluster, &[0, 1, 2])?;
        let leader = cluster.wait_for_leader()?;
        kill_leader_under(cluster, leader, (CLIENTS_OF_EACH, ANSWERS), |given| {
            for number in 0.. {
                if !given.goes_on() {
                    break;
                }
                match scan_one_of_many(given.address, &given.name, number) {
                    Ok(()) => given.is_answered(),
                    Err(_) if given.id == leader => break, // it may be dead
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        })?;
        cluster.start(leader)?;
        wait_for(cluster, &[leader])?;
        for id in 0..3 {
            scan_one_of_many(cluster.redis(id), "last", 1)?;
        }
        Ok(())
    });
}
