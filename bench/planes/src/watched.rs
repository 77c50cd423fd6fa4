//! How far the replicas' logs are, read from the maps of their planes in the kernel while the load goes on.
use anyhow::{Context as _, Result};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use std::fs;

/// The map with the registers.
const GROUPS: &str = "groups";
/// Where `last_index` stands there: behind the version and two registers.
const LAST_INDEX_AT: usize = 24;

/// Planes of some processes.
pub struct Watched {
    groups: Vec<MapHandle>,
}

impl Watched {
    /// Those of the processes with these numbers, in their order.
    pub fn of(pids: &[u32]) -> Result<Self> {
        let groups = pids
            .iter()
            .map(|pid| groups_of(*pid))
            .collect::<Result<_>>()?;
        Ok(Self { groups })
    }

    /// The last index of each.
    pub fn last_indexes(&self) -> Result<Vec<u64>> {
        let of = |map: &MapHandle| {
            let value = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?;
            let value = value.context("no registers")?;
            let bytes = value[LAST_INDEX_AT..]
                .first_chunk()
                .context("too few registers")?;
            Ok(u64::from_ne_bytes(*bytes))
        };
        self.groups.iter().map(of).collect()
    }
}

fn groups_of(pid: u32) -> Result<MapHandle> {
    for entry in fs::read_dir(format!("/proc/{pid}/fdinfo"))? {
        let text = fs::read_to_string(entry?.path()).unwrap_or_default();
        let id = text.lines().find_map(|line| line.strip_prefix("map_id:"));
        let Some(id) = id.and_then(|id| id.trim().parse().ok()) else {
            continue;
        };
        let map = MapHandle::from_map_id(id)?;
        if map.name() == GROUPS {
            return Ok(map);
        }
    }
    anyhow::bail!("process {pid} has no plane in the kernel")
}
