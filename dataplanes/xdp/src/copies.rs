//! How one frame becomes several. By the kernel's broadcast where a trial shows that it does what
//! `bpf/order.h` needs, else by a program behind the receive path (`bpf/clone.bpf.c`), which is loaded only
//! then. A trial takes two of the kernel's grace periods, some 20 ms, so it runs beside the host, on a thread
//! of its own.
use crate::ffi::{Hook, MapMemory, attach, run_live, wait_for_programs};
use crate::load::{configure, failed, load, map, program};
use crate::shared::{
    COPIES_BY_BROADCAST, COPIES_BY_CLONE, Config, TRIAL_FRAMES_MAX, Trial, TrialHead,
};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject};
use quorumwire_interfaces::counters;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

/// What `bpf/clone.bpf.c` became.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/clone.bpf.o"));
/// Most copies of a frame: there is a device map for each count.
const COPIES_MAX: u32 = 32;
/// As many copies are made of the frames of a trial.
const SIZES: [u8; 7] = [1, 2, 4, 6, 8, 16, 32];
const _: () = assert!(SIZES.len() <= TRIAL_FRAMES_MAX);

/// Makes copies possible.
pub enum Copies {
    /// In one way, as long as this lives.
    Always { _link: Option<OwnedFd> },
    /// In the way that the last trial showed to work.
    Tried {
        known: Arc<Known>,
        /// Has the thread try again; it ends when this is closed.
        again: Option<SyncSender<()>>,
        thread: Option<JoinHandle<()>>,
    },
}

counters! {
    /// How often the broadcast was tried.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct TrialCounters {
        /// Times that the kernel was tried whether it makes copies as it must
        pub trials: "copy_trials",
        /// Trials of the copies that showed another number or order
        pub failed: "copy_trials_failed",
    }
}

/// What trials have shown.
#[derive(Default)]
pub struct Known {
    trials: AtomicU64,
    trials_failed: AtomicU64,
    impossible: AtomicBool,
}

impl Copies {
    /// At an interface of this thread's namespace, for programs that are loaded. The first trial is over when
    /// this returns; with `always_clones` there is none.
    pub fn new(
        plane: &Object,
        config: Config,
        interface: u32,
        always_clones: bool,
    ) -> io::Result<Self> {
        let mut ways = Ways::new(plane, config, interface)?;
        if always_clones {
            ways.clone_from_now_on()?;
            return Ok(Self::Always { _link: ways.link });
        }
        let known = Arc::new(Known::default());
        ways.decide(&known);
        let (again, asked) = sync_channel(1);
        let shared = Arc::clone(&known);
        let thread = std::thread::Builder::new().name("copies".to_owned());
        let thread = thread.spawn(move || {
            while asked.recv().is_ok() {
                ways.decide(&shared);
            }
        })?;
        Ok(Self::Tried {
            known,
            again: Some(again),
            thread: Some(thread),
        })
    }

    /// Tries again. What makes the broadcast possible can come and go: with a virtual device, what is
    /// attached to its other end. Until that is over, the last trial holds.
    pub fn try_again(&self) {
        if let Self::Tried {
            again: Some(again), ..
        } = self
        {
            // If one is asked for already, that will do.
            let _ = again.try_send(());
        }
    }

    /// Tries again if copies were ordered since the last call and none was made: their way works no more.
    /// `now`: those done and ordered; `seen`: as of that call.
    pub fn look_after(&self, now: (u64, u64), seen: &mut (u64, u64)) {
        if now.1 > seen.1 && now.0 == seen.0 {
            self.try_again();
        }
        *seen = now;
    }

    /// Whether the last trial has found a way.
    pub fn are_possible(&self) -> bool {
        match self {
            Self::Always { .. } => true,
            Self::Tried { known, .. } => !known.impossible.load(Ordering::Relaxed),
        }
    }

    /// How often the broadcast was tried.
    pub fn trials(&self) -> TrialCounters {
        match self {
            Self::Always { .. } => TrialCounters::default(),
            Self::Tried { known, .. } => TrialCounters {
                trials: known.trials.load(Ordering::Relaxed),
                failed: known.trials_failed.load(Ordering::Relaxed),
            },
        }
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        if let Self::Tried { again, thread, .. } = self {
            drop(again.take());
            // Its program is detached when this returns.
            let _ = thread.take().map(JoinHandle::join);
        }
    }
}

/// The two ways.
pub struct Ways {
    config: Config,
    interface: u32,
    by: MapHandle,
    trial: MapMemory,
    try_copies: OwnedFd,
    /// The plane's, which the program that clones shares.
    maps: Vec<(String, MapHandle)>,
    clones: Option<Object>,
    /// As long as it is there, the program that clones is attached.
    link: Option<OwnedFd>,
}

impl Ways {
    fn new(plane: &Object, config: Config, interface: u32) -> io::Result<Self> {
        let copy = program(plane, "qw_copy")?.as_fd().as_raw_fd();
        for size in 1..=COPIES_MAX {
            // `struct bpf_devmap_val`
            let entry = [interface.to_ne_bytes(), copy.to_ne_bytes()].concat();
            let devices = map(plane, &format!("copies_{size}"))?;
            for place in 0..size {
                devices
                    .update(&place.to_ne_bytes(), &entry, MapFlags::ANY)
                    .map_err(failed("the kernel refused a device map"))?;
            }
        }
        let mut maps = Vec::new();
        for one in plane.maps() {
            let name = one.name().to_string_lossy().into_owned();
            let handle = MapHandle::try_from(&one).map_err(failed("a map has no descriptor"))?;
            maps.push((name, handle));
        }
        let try_copies = program(plane, "qw_try_copies")?;
        Ok(Self {
            config,
            interface,
            by: map(plane, "copies_by")?,
            trial: MapMemory::new(map(plane, "trial")?.as_fd(), 0, size_of::<Trial>())?,
            try_copies: try_copies.as_fd().try_clone_to_owned()?,
            maps,
            clones: None,
            link: None,
        })
    }

    /// From now on copies are made in a way that works here and now.
    fn decide(&mut self, known: &Known) {
        let does = self.broadcast_does();
        let set = if does {
            self.broadcast_from_now_on()
        } else {
            self.clone_from_now_on()
        };
        known.impossible.store(set.is_err(), Ordering::Relaxed);
        known
            .trials_failed
            .fetch_add(u64::from(!does), Ordering::Relaxed);
        known.trials.fetch_add(1, Ordering::Relaxed);
    }

    /// Orders copies of a few frames, as many as each map makes, which come to nothing but a note each. They
    /// must have come to the program one frame's behind the other's, each once, in order. A kernel that
    /// cannot try it is taken for one that cannot do it.
    fn broadcast_does(&self) -> bool {
        let mut head = TrialHead::default();
        head.sizes[..SIZES.len()].copy_from_slice(&SIZES);
        self.trial.write(0, &head);
        if run_live(self.try_copies.as_fd(), SIZES.len()).is_err() {
            return false;
        }
        came_in_order(&self.trial.read(0))
    }

    fn broadcast_from_now_on(&mut self) -> io::Result<()> {
        self.set(COPIES_BY_BROADCAST)?;
        if let Some(link) = self.link.take() {
            // For orders that are on their way to it. Without it they are lost, and so repaired.
            let _ = wait_for_programs();
            drop(link);
        }
        Ok(())
    }

    fn clone_from_now_on(&mut self) -> io::Result<()> {
        if self.link.is_none() {
            let clones = match self.clones.take() {
                Some(clones) => clones,
                None => self.load_clones()?,
            };
            let clones = self.clones.insert(clones);
            let program = program(clones, "qw_clone")?;
            let link = attach(program.as_fd(), self.interface, Hook::BehindReceive);
            self.link = Some(link.map_err(|error| {
                let text = format!(
                    "the kernel did not attach the program that copies frames, which needs Linux 6.6: \
                     {error}"
                );
                io::Error::new(error.kind(), text)
            })?);
        }
        self.set(COPIES_BY_CLONE)
    }

    fn load_clones(&self) -> io::Result<Object> {
        let what = "the kernel refused the program that copies frames, which needs Linux 6.6";
        load(|| self.open_clones(), what)
    }

    fn open_clones(&self) -> io::Result<OpenObject> {
        let mut open = ObjectBuilder::default()
            .open_memory(OBJECT)
            .map_err(failed("the program that copies frames is not sound"))?;
        configure(&mut open, &self.config)?;
        for mut one in open.maps_mut() {
            let name = one.name().to_string_lossy().into_owned();
            let shared = self.maps.iter().find(|(other, _)| *other == name);
            // Constants are its own.
            if let Some((_, shared)) = shared.filter(|_| !name.contains(".rodata")) {
                one.reuse_fd(shared.as_fd()).map_err(failed(
                    "the program that copies frames does not take the plane's maps",
                ))?;
            }
        }
        Ok(open)
    }

    fn set(&self, by: u32) -> io::Result<()> {
        let place = 0_u32.to_ne_bytes();
        self.by
            .update(&place, &by.to_ne_bytes(), MapFlags::ANY)
            .map_err(failed("the kernel did not take how copies are made"))
    }
}

/// Whether each copy of each frame came once, one frame's behind the other's, and all in order.
fn came_in_order(trial: &Trial) -> bool {
    let expected = (0_u16..)
        .zip(SIZES)
        .flat_map(|(frame, size)| (0..u16::from(size)).map(move |copy| 256 * frame + copy));
    let noted = trial.seen.get(..trial.head.copies as usize);
    noted.is_some_and(|noted| expected.eq(noted.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::{SIZES, Trial, TrialHead, came_in_order};
    use crate::shared::TRIAL_COPIES_MAX;

    /// What a trial shows if its copies come as (frame, number).
    fn trial(copies: &[(u16, u16)]) -> Trial {
        let mut seen = [0; TRIAL_COPIES_MAX];
        for (place, (frame, copy)) in seen.iter_mut().zip(copies) {
            *place = 256 * frame + copy;
        }
        let head = TrialHead {
            copies: u32::try_from(copies.len()).expect("a few"),
            ..TrialHead::default()
        };
        Trial { head, seen }
    }

    #[test]
    fn a_trial_is_passed_only_by_all_copies_in_order() {
        let frames = (0_u16..).zip(SIZES);
        let all: Vec<_> = frames
            .flat_map(|(frame, size)| (0..u16::from(size)).map(move |copy| (frame, copy)))
            .collect();
        assert!(came_in_order(&trial(&all)));
        assert!(!came_in_order(&trial(&[])));
        for place in 0..all.len() {
            let mut missing = all.clone();
            missing.remove(place);
            assert!(!came_in_order(&trial(&missing)), "without {place}");
            let mut twice = all.clone();
            twice.insert(place, all[place]);
            assert!(!came_in_order(&trial(&twice)), "{place} twice");
            if place > 0 {
                let mut swapped = all.clone();
                swapped.swap(place - 1, place);
                assert!(!came_in_order(&trial(&swapped)), "{place} too early");
            }
        }
        let too_many = vec![(0, 0); TRIAL_COPIES_MAX + 1];
        assert!(!came_in_order(&trial(&too_many)));
    }
}
