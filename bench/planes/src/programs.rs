//! Loads the programs of `bpf/load.bpf.c` and attaches one of them.
use crate::commands::KEYS;
use crate::frames::PACKET_AT;
use anyhow::{Context as _, Result};
use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder};
use quorumwire_fastpath::TagKey;
use quorumwire_interfaces::PlaneKeyPair;

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/load.bpf.o"));
/// As in the C.
const FRAME_BYTES_MAX: usize = PACKET_AT + 72 + 1376;
const TEMPLATE_BYTES: usize = 8 + FRAME_BYTES_MAX + 6;
/// Width of a bin of latencies.
pub const BIN_NS: u64 = 50;
/// Bins; the last is for all that took longer.
pub const BINS: u32 = 65_536;

/// The programs, one of them attached for as long as this lives.
pub struct Programs {
    object: Object,
    _link: Link,
}

/// `struct lane`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lane {
    pub session: u64,
    pub sequence: u64,
    pub sent_ns: u64,
    pub answers: u64,
}

/// `struct totals`, as far as it is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub refused: u64,
    pub stale: u64,
    pub failed: u64,
}

impl Programs {
    /// Attaches a program to an interface of this namespace. `port` is the client's, or the echo's.
    pub fn attach(
        program: &str,
        interface: &str,
        port: u16,
        keys: Option<PlaneKeyPair>,
    ) -> Result<Self> {
        let mut open = ObjectBuilder::default().open_memory(OBJECT)?;
        let mut config = Vec::new();
        let key = keys.map_or_else(TagKey::default, |pair| TagKey::new(pair.key));
        config.extend_from_slice(&key.to_bytes());
        config.extend_from_slice(&u32::from(port.to_be()).to_ne_bytes());
        config.extend_from_slice(&u32::from(keys.is_some()).to_ne_bytes());
        for mut map in open.maps_mut() {
            if map.name().to_string_lossy().ends_with(".rodata.load") {
                map.set_initial_value(&config)?;
            }
        }
        let object = open.load().context("the kernel refused the programs")?;
        let index = interface_index(interface)?;
        let found = object.progs_mut().find(|it| it.name() == program);
        let found = found.with_context(|| format!("there is no program {program}"))?;
        let link = found
            .attach_xdp(index)
            .with_context(|| format!("attaching to {interface}"))?;
        Ok(Self {
            object,
            _link: link,
        })
    }

    fn map(&self, name: &str) -> Result<MapHandle> {
        let found = self.object.maps().find(|map| map.name() == name);
        let found = found.with_context(|| format!("there is no map {name}"))?;
        Ok(MapHandle::try_from(&found)?)
    }

    /// What requests look like, one for each key that is written.
    pub fn set_templates(&self, mut frame: impl FnMut(u64) -> Result<Vec<u8>>) -> Result<()> {
        let templates = self.map("templates")?;
        for place in 0..KEYS {
            let frame = frame(place)?;
            let mut value = vec![0; TEMPLATE_BYTES];
            value[..4].copy_from_slice(&u32::try_from(frame.len())?.to_ne_bytes());
            value[8..8 + frame.len()].copy_from_slice(&frame);
            let key = u32::try_from(place)?.to_ne_bytes();
            templates.update(&key, &value, MapFlags::ANY)?;
        }
        Ok(())
    }

    /// A lane as it is now.
    pub fn lane(&self, number: u32) -> Result<Lane> {
        let value = self
            .map("lanes")?
            .lookup(&number.to_ne_bytes(), MapFlags::ANY)?;
        let [session, sequence, sent_ns, answers] = numbers(&value.context("no lane")?)?;
        Ok(Lane {
            session,
            sequence,
            sent_ns,
            answers,
        })
    }

    /// Sets a lane up; it must not be running.
    pub fn set_lane(&self, number: u32, lane: Lane) -> Result<()> {
        let words = [lane.session, lane.sequence, lane.sent_ns, lane.answers];
        let value = words.map(u64::to_ne_bytes).concat();
        let lanes = self.map("lanes")?;
        Ok(lanes.update(&number.to_ne_bytes(), &value, MapFlags::ANY)?)
    }

    /// The totals as they are now.
    pub fn totals(&self) -> Result<Totals> {
        let value = self
            .map("totals")?
            .lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?;
        let [_stopped, refused, stale, failed] = numbers(&value.context("no totals")?)?;
        Ok(Totals {
            refused,
            stale,
            failed,
        })
    }

    /// From now on no answer is followed by a request.
    pub fn stop(&self) -> Result<()> {
        let value = [1, 0, 0, 0].map(u64::to_ne_bytes).concat();
        let totals = self.map("totals")?;
        Ok(totals.update(&0_u32.to_ne_bytes(), &value, MapFlags::ANY)?)
    }

    /// How many answers there were of each latency.
    pub fn latencies(&self) -> Result<Vec<u64>> {
        let map = self.map("latencies")?;
        let mut counts = vec![0; BINS as usize];
        for entry in map.lookup_batch(BINS, MapFlags::ANY, MapFlags::ANY)? {
            let (key, value) = entry;
            let place = u32::from_ne_bytes(key[..4].try_into()?);
            counts[place as usize] = u64::from_ne_bytes(value[..8].try_into()?);
        }
        Ok(counts)
    }
}

fn numbers<const COUNT: usize>(bytes: &[u8]) -> Result<[u64; COUNT]> {
    let mut numbers = [0; COUNT];
    for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
        *number = u64::from_ne_bytes(bytes.try_into()?);
    }
    Ok(numbers)
}

/// The number of an interface of this namespace.
pub fn interface_index(name: &str) -> Result<i32> {
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        None,
    )?;
    let index = rustix::net::netdevice::name_to_index(&socket, name)
        .with_context(|| format!("interface {name}"))?;
    Ok(i32::try_from(index)?)
}
