//! `alone`: the plane's programs without hosts, also without this or that check. What the ring holds is
//! thrown away.
use crate::commands;
use crate::frames::{Mac, mac};
use crate::programs::interface_index;
use anyhow::{Context as _, Result, ensure};
use libbpf_rs::{
    Link, MapCore as _, MapFlags, MapHandle, MapType, Object, ObjectBuilder, ProgramInput,
    ProgramMut,
};
use quorumwire_fastpath::{TagKey, window_max};
use quorumwire_interfaces::PlaneKeyPair;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{Read as _, Write as _, stdin, stdout};
use std::net::SocketAddrV4;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/alone.bpf.o"));
/// As the server has it.
const RING_SLOTS: u32 = 16 << 10;
const REPLICAS_MAX: usize = 7;
/// `struct alone_setup`: where its peers stand.
const PEERS_AT: usize = 1416;
/// `struct qw_config`.
const CONFIG_BYTES: usize = 32;
/// In it: for which boxes of Paxos roles they are loaded.
const CONFIG_WINDOW_AT: usize = 28;
/// `struct qw_own` of each group.
const OWN_BYTES: usize = 32;
const GROUPS_MAX: usize = 8;
/// Room for what a host is told.
const EVENTS_BYTES: u32 = 64 << 10;
/// How often what the ring holds is thrown away.
const RELEASE_EVERY: Duration = Duration::from_millis(1);
/// What the programs return that the host runs.
const DONE: u32 = 2;

/// What can be left out, in the order of the C.
pub const PARTS: [&str; 6] = ["tag", "checksum", "counters", "window", "lock", "wake"];

#[derive(clap::Args)]
pub struct Arguments {
    /// A replica: its namespace's file, its address with port, its Ethernet address, with commas between
    /// them; the first leads
    #[arg(long = "replica", required = true)]
    replicas: Vec<Replica>,
    /// Network interface, in each
    #[arg(long)]
    interface: String,
    /// The clients' keys
    #[arg(long)]
    keys: PathBuf,
    /// What to leave out: tag, checksum, counters, window, lock, wake
    #[arg(long, value_delimiter = ',')]
    without: Vec<String>,
}

#[derive(Clone)]
struct Replica {
    namespace: PathBuf,
    peer: Peer,
}

/// Where a replica's plane is.
#[derive(Clone, Copy)]
pub struct Peer {
    pub address: SocketAddrV4,
    pub mac: Mac,
}

impl FromStr for Replica {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts: Vec<&str> = text.split(',').collect();
        let [namespace, address, mac_text] = parts[..] else {
            anyhow::bail!("{text:?} is not NAMESPACE,IP:PORT,MAC");
        };
        Ok(Self {
            namespace: namespace.into(),
            peer: Peer {
                address: address.parse()?,
                mac: mac(mac_text)?,
            },
        })
    }
}

/// What programs are loaded for, and whom they know.
pub struct Loaded<'a> {
    /// A replica's slot; of a Paxos role's box 0 for a coordinator and 1 for an acceptor.
    pub me: usize,
    /// Where they are.
    pub own: Peer,
    /// All replicas; of a box to whom it sends.
    pub peers: &'a [Peer],
    /// Instances of a box; 0 for a replica.
    pub window: u32,
}

/// Programs of one replica, or of one box.
pub struct Alone {
    object: Object,
    /// Attached as long as it is here.
    link: Option<Link>,
}

impl Alone {
    /// Loads them.
    pub fn load(loaded: &Loaded<'_>, keys: &PlaneKeyPair, without: &[&str]) -> Result<Self> {
        let mut open = ObjectBuilder::default().open_memory(OBJECT)?;
        for mut map in open.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if name.ends_with(".rodata.config") {
                map.set_initial_value(&config(loaded.window))?;
            } else if name.ends_with(".data.own") {
                map.set_initial_value(&own(&loaded.own))?;
            } else if name.ends_with(".rodata.alone") {
                let words = PARTS.map(|part| u32::from(without.contains(&part)).to_ne_bytes());
                map.set_initial_value(&words.concat())?;
            } else if name == "ring" {
                map.set_max_entries(RING_SLOTS)?;
            } else if name == "instances" {
                map.set_max_entries(loaded.window.max(1))?;
            }
        }
        let object = open.load().context("the kernel refused the programs")?;
        let alone = Self { object, link: None };
        alone.write("alone_setup", 0, &setup(loaded.me, loaded.peers, keys)?)?;
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
            ..Default::default()
        };
        let events = MapHandle::create(
            MapType::RingBuf,
            Some("events"),
            0,
            0,
            EVENTS_BYTES,
            &options,
        )?;
        let events = events.as_fd().as_raw_fd();
        alone.write("events", 0, &events.to_ne_bytes())?;
        for (place, name) in (0..).zip(["qw_receive", "alone_nothing"]) {
            let program = alone.program(name)?.as_fd().as_raw_fd();
            alone.write("alone_programs", place, &program.to_ne_bytes())?;
        }
        alone.order("alone_engage")?;
        Ok(alone)
    }

    /// Takes frames in from now on.
    fn attach(&mut self, interface: &str) -> Result<()> {
        let index = interface_index(interface)?;
        let copy = self.program("qw_copy")?.as_fd().as_raw_fd();
        let value = [index.to_ne_bytes(), copy.to_ne_bytes()].concat();
        for map in self.object.maps() {
            if map.map_type() == MapType::Devmap {
                for place in 0..map.max_entries() {
                    map.update(&place.to_ne_bytes(), &value, MapFlags::ANY)?;
                }
            }
        }
        let link = self.program("qw_receive")?.attach_xdp(index)?;
        self.link = Some(link);
        Ok(())
    }

    /// The program of a name.
    pub fn program(&self, name: &str) -> Result<ProgramMut<'_>> {
        let found = self.object.progs_mut().find(|it| it.name() == name);
        found.with_context(|| format!("there is no program {name}"))
    }

    fn write(&self, map: &str, place: u32, value: &[u8]) -> Result<()> {
        let found = self.object.maps().find(|it| it.name() == map);
        let found = found.with_context(|| format!("there is no map {map}"))?;
        Ok(found.update(&place.to_ne_bytes(), value, MapFlags::ANY)?)
    }

    /// Runs a program that takes no frame.
    pub fn order(&self, name: &str) -> Result<()> {
        let input = ProgramInput {
            data_in: Some(&[0; 14]),
            ..ProgramInput::default()
        };
        let output = self.program(name)?.test_run(input)?;
        ensure!(
            output.return_value == DONE,
            "{name} returned {}",
            output.return_value
        );
        Ok(())
    }
}

/// Runs them until standard input ends.
pub fn run(arguments: &Arguments) -> Result<()> {
    let keys = commands::load_keys(&arguments.keys)?;
    let without: Vec<&str> = arguments.without.iter().map(String::as_str).collect();
    for part in &without {
        ensure!(
            PARTS.contains(part),
            "without: {part:?} is refused; allowed: {PARTS:?}"
        );
    }
    let peers: Vec<Peer> = arguments.replicas.iter().map(|it| it.peer).collect();
    ensure!(
        (1..=REPLICAS_MAX).contains(&peers.len()),
        "1 to {REPLICAS_MAX} replicas are allowed"
    );
    let mut all = Vec::new();
    for (me, replica) in arguments.replicas.iter().enumerate() {
        let file = File::open(&replica.namespace)?;
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
        let loaded = Loaded {
            me,
            own: replica.peer,
            peers: &peers,
            window: 0,
        };
        let mut alone = Alone::load(&loaded, &keys, &without)?;
        alone.attach(&arguments.interface)?;
        all.push(alone);
    }
    writeln!(stdout(), "ready")?;
    let (ended, end) = channel();
    thread::spawn(move || {
        let _ = stdin().read_to_end(&mut Vec::new());
        let _ = ended.send(());
    });
    while end.recv_timeout(RELEASE_EVERY) == Err(RecvTimeoutError::Timeout) {
        for alone in &all {
            alone.order("alone_release")?;
        }
    }
    Ok(())
}

/// What the programs are loaded for, as far as it is not zero.
fn config(window: u32) -> Vec<u8> {
    let mut config = RING_SLOTS.to_ne_bytes().to_vec();
    config.extend_from_slice(&1_u32.to_ne_bytes());
    config.resize(CONFIG_WINDOW_AT, 0);
    config.extend_from_slice(&window.to_ne_bytes());
    config.resize(CONFIG_BYTES, 0);
    config
}

/// Where the planes are: one group's, whose packets may come by any queue.
fn own(own: &Peer) -> Vec<u8> {
    let mut all = endpoint(own).to_vec();
    all.extend_from_slice(&u32::MAX.to_ne_bytes());
    all.resize(GROUPS_MAX * OWN_BYTES, 0);
    all
}

/// `struct alone_setup`.
fn setup(me: usize, peers: &[Peer], keys: &PlaneKeyPair) -> Result<Vec<u8>> {
    let replicas = u32::try_from(peers.len())?;
    let window = window_max(replicas - 1);
    let epoch = u32::from(keys.epoch % 2 == 1);
    let mut setup = Vec::new();
    for number in [u32::try_from(me)?, replicas, window, epoch] {
        setup.extend_from_slice(&number.to_ne_bytes());
    }
    setup.extend_from_slice(&TagKey::new(keys.key).to_bytes());
    for peer in peers {
        setup.extend_from_slice(&endpoint(peer));
    }
    setup.resize(PEERS_AT + REPLICAS_MAX * 24, 0);
    Ok(setup)
}

/// `struct qw_endpoint`.
fn endpoint(peer: &Peer) -> [u8; 24] {
    let mut endpoint = [0; 24];
    endpoint[..16].copy_from_slice(&peer.address.ip().to_ipv6_mapped().octets());
    endpoint[16..18].copy_from_slice(&peer.address.port().to_be_bytes());
    endpoint[18..].copy_from_slice(&peer.mac);
    endpoint
}
