//! Memory that is shared with programs in the kernel, and calls that no library wraps. The only file of this
//! crate with unsafe code.
#![allow(unsafe_code)]
use crate::links::{ETHTOOL_GFLAGS, FLAGS_BYTES};
use crate::shared::{BoxControlHead, Config, ControlHead, Event, KeysAt, Trial, TrialHead};
use crate::steer::{
    CHANNELS_BYTES, ETHTOOL_GCHANNELS, ETHTOOL_GRXCLSRLALL, ETHTOOL_GRXCLSRLCNT,
    ETHTOOL_GRXCLSRULE, ETHTOOL_SRXCLSRLDEL, ETHTOOL_SRXCLSRLINS, RULES_BYTES, RULES_COUNT,
    RULES_PLACES, number,
};
use quorumwire_fastpath::Outcome;
use quorumwire_fastpath::shared::{Endpoint, SlotHead};
use quorumwire_wire::packet::{Header, PaxosRegisters, Registers};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Types for which every pattern of bytes is a value, without padding that matters.
///
/// # Safety
///
/// Only for `repr(C)` structures of integers and arrays of them.
pub unsafe trait Plain: Copy {}
// SAFETY: `repr(C)` structures of integers.
unsafe impl Plain for Config {}
// SAFETY: as above.
unsafe impl Plain for BoxControlHead {}
// SAFETY: as above.
unsafe impl Plain for ControlHead {}
// SAFETY: as above.
unsafe impl Plain for Endpoint {}
// SAFETY: as above.
unsafe impl Plain for Event {}
// SAFETY: as above.
unsafe impl Plain for Header {}
// SAFETY: as above.
unsafe impl Plain for KeysAt {}
// SAFETY: as above.
unsafe impl Plain for Outcome {}
// SAFETY: as above.
unsafe impl Plain for PaxosRegisters {}
// SAFETY: as above.
unsafe impl Plain for Registers {}
// SAFETY: as above.
unsafe impl Plain for SlotHead {}
// SAFETY: as above.
unsafe impl Plain for Trial {}
// SAFETY: as above.
unsafe impl Plain for TrialHead {}
// SAFETY: an integer.
unsafe impl Plain for u16 {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}

/// A value's bytes, as the kernel takes them.
pub fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: `Plain` values have no bytes that are not set, and live as long as the slice.
    unsafe { std::slice::from_raw_parts((&raw const *value).cast(), size_of::<T>()) }
}

/// The value that these bytes are; `None` if there are too few.
pub fn value_of<T: Plain>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.get(..size_of::<T>())?;
    // SAFETY: there are as many bytes as the value has, and any of them are a value.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

#[cfg(target_arch = "x86_64")]
const CACHE_LINE_BYTES: usize = 64;

/// A part of an array map in this process's memory. Programs write it at any time, so nothing here gives out
/// references but to payloads that are not written again before the host releases them.
pub struct MapMemory {
    start: NonNull<u8>,
    bytes: usize,
    /// Of the part within its first page.
    offset: usize,
}
// SAFETY: the memory belongs to no thread.
unsafe impl Send for MapMemory {}

impl MapMemory {
    /// So many bytes of a map, from a place on that is a multiple of eight.
    pub fn new(map: BorrowedFd<'_>, from: usize, bytes: usize) -> io::Result<Self> {
        assert!(from.is_multiple_of(8));
        let offset = from % rustix::param::page_size();
        let page = libc::off_t::try_from(from - offset).map_err(io::Error::other)?;
        // SAFETY: asks for memory anywhere; touches none of ours.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                offset + bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                page,
            )
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Self {
                start,
                bytes,
                offset,
            }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn at(&self, offset: usize, bytes: usize) -> *mut u8 {
        assert!(offset <= self.bytes && bytes <= self.bytes - offset);
        // SAFETY: within the mapping, as just checked.
        unsafe { self.start.as_ptr().add(self.offset + offset) }
    }

    /// A number that programs write, too.
    pub fn number(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8));
        let place = self.at(offset, 8);
        // SAFETY: the mapping begins at a page and the part at a multiple of eight, so the place is aligned,
        // and it lives as long as `self`; everybody writes it by single stores of eight bytes or atomically.
        unsafe { AtomicU64::from_ptr(place.cast()) }
    }

    /// A copy of what stands there; programs may change it meanwhile.
    pub fn read<T: Plain>(&self, offset: usize) -> T {
        let place = self.at(offset, size_of::<T>());
        // SAFETY: within the mapping; any bytes are a value.
        unsafe { std::ptr::read_volatile(place.cast::<T>()) }
    }

    /// Has the processor fetch what stands there, because it will be read soon. Elsewhere than on x86-64 it
    /// is fetched when it is read.
    pub fn fetch(&self, offset: usize, bytes: usize) {
        let place = self.at(offset, bytes);
        #[cfg(target_arch = "x86_64")]
        for line in (0..bytes).step_by(CACHE_LINE_BYTES) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: within the mapping, of which nothing is read.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(place.add(line).cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = place;
    }

    /// Writes a value; no program may be using that place.
    pub fn write<T: Plain>(&self, offset: usize, value: &T) {
        let place = self.at(offset, size_of::<T>());
        // SAFETY: within the mapping.
        unsafe { std::ptr::write_volatile(place.cast::<T>(), *value) }
    }

    /// Writes bytes; no program may be using that place.
    pub fn write_bytes(&self, offset: usize, bytes: &[u8]) {
        let place = self.at(offset, bytes.len());
        // SAFETY: within the mapping, which nothing of ours overlaps.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) }
    }

    /// Bytes that are not written again while the caller holds them.
    pub fn slice(&self, offset: usize, bytes: usize) -> &[u8] {
        let place = self.at(offset, bytes);
        // SAFETY: within the mapping; the caller holds them only as said.
        unsafe { std::slice::from_raw_parts(place, bytes) }
    }
}

impl Drop for MapMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.offset + self.bytes) };
    }
}

/// Runs a program once that takes no packet but the number of a group's slot; what it returned.
pub fn run(program: BorrowedFd<'_>, group_slot: u32) -> io::Result<u32> {
    let mut frame = [0_u8; 14]; // the least that the kernel takes for a frame
    frame[..4].copy_from_slice(&group_slot.to_ne_bytes());
    // SAFETY: a plain C structure for which zero bytes are a value.
    let mut options: libbpf_sys::bpf_test_run_opts = unsafe { std::mem::zeroed() };
    options.sz = size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t;
    options.data_in = frame.as_ptr().cast();
    options.data_size_in = 14;
    // SAFETY: the options point to a frame that lives through the call.
    let done = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
    if done == 0 {
        Ok(options.retval)
    } else {
        Err(io::Error::from_raw_os_error(-done))
    }
}

/// Runs a program for so many frames that are sent where it says, as if they had come in.
pub fn run_live(program: BorrowedFd<'_>, frames: usize) -> io::Result<()> {
    let frame = [0_u8; 64];
    // SAFETY: a plain C structure for which zero bytes are a value.
    let mut options: libbpf_sys::bpf_test_run_opts = unsafe { std::mem::zeroed() };
    options.sz = size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t;
    options.data_in = frame.as_ptr().cast();
    options.data_size_in = 64;
    options.flags = libbpf_sys::BPF_F_TEST_XDP_LIVE_FRAMES;
    options.repeat = i32::try_from(frames).map_err(io::Error::other)?;
    options.batch_size = u32::try_from(frames).map_err(io::Error::other)?;
    // SAFETY: the options point to a frame that lives through the call.
    let done = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(-done))
    }
}

/// Where a program meets what an interface receives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hook {
    /// In its driver.
    Driver,
    /// Where the system takes frames over, if the driver has no place for a program.
    Generic,
    /// Behind either.
    BehindReceive,
}

/// Attaches a program to an interface, until the link is closed.
pub fn attach(program: BorrowedFd<'_>, interface: u32, hook: Hook) -> io::Result<OwnedFd> {
    let (kind, flags) = match hook {
        Hook::Driver => (libbpf_sys::BPF_XDP, libbpf_sys::XDP_FLAGS_DRV_MODE),
        Hook::Generic => (libbpf_sys::BPF_XDP, libbpf_sys::XDP_FLAGS_SKB_MODE),
        Hook::BehindReceive => (libbpf_sys::BPF_TCX_INGRESS, 0),
    };
    // SAFETY: a plain C structure for which zero bytes are a value.
    let mut options: libbpf_sys::bpf_link_create_opts = unsafe { std::mem::zeroed() };
    options.sz = size_of::<libbpf_sys::bpf_link_create_opts>() as libbpf_sys::size_t;
    options.flags = flags;
    let interface = i32::try_from(interface).map_err(io::Error::other)?;
    // SAFETY: the options live through the call.
    let link = unsafe {
        libbpf_sys::bpf_link_create(program.as_raw_fd(), interface, kind, &raw const options)
    };
    if link < 0 {
        return Err(io::Error::from_raw_os_error(-link));
    }
    // SAFETY: the kernel has just made it, for us.
    Ok(unsafe { OwnedFd::from_raw_fd(link) })
}

/// Waits until every program that runs now has ended: the kernel's grace period, some milliseconds.
pub fn wait_for_programs() -> io::Result<()> {
    const MEMBARRIER_CMD_GLOBAL: libc::c_long = 1;
    // SAFETY: takes numbers only.
    let done = unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The descriptor that is readable when a ring buffer has something.
pub fn borrowed<'a>(waiting: &'a libbpf_rs::RingBuffer<'_>) -> BorrowedFd<'a> {
    // SAFETY: the ring buffer keeps the descriptor open as long as it lives.
    unsafe { BorrowedFd::borrow_raw(waiting.epoll_fd()) }
}

/// Asks the driver of an interface, named as the caller's namespace knows it, by a structure that begins with
/// a command of `ethtool`; the answer is written over it.
pub fn ask_driver(
    socket: BorrowedFd<'_>,
    interface: &str,
    question: &mut Question,
) -> io::Result<()> {
    // SAFETY: a plain C structure for which zero bytes are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.len() - 1; // a zero ends it
    if interface.len() > room {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *place = byte.cast_signed();
    }
    request.ifr_ifru.ifru_data = question.0.as_mut_ptr().cast();
    // SAFETY: the request and what it points to live through the call, and a `Question` has the room that the
    // kernel writes to for its command.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// What a driver is asked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Question(Vec<u64>);

impl Question {
    /// Of these bytes. `Err` if the kernel would write more for what it asks.
    pub fn new(bytes: &[u8]) -> io::Result<Self> {
        let needed = match number(bytes, 0) {
            ETHTOOL_GFLAGS => FLAGS_BYTES,
            ETHTOOL_GCHANNELS => CHANNELS_BYTES,
            ETHTOOL_GRXCLSRLALL => {
                RULES_BYTES.max(RULES_PLACES + 4 * number(bytes, RULES_COUNT) as usize)
            }
            ETHTOOL_GRXCLSRLCNT | ETHTOOL_GRXCLSRULE | ETHTOOL_SRXCLSRLDEL
            | ETHTOOL_SRXCLSRLINS => RULES_BYTES,
            _ => return Err(io::ErrorKind::Unsupported.into()),
        };
        if bytes.len() < needed {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let words = bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        });
        Ok(Self(words.collect()))
    }

    /// Its bytes, or the answer's.
    pub fn bytes(&self) -> Vec<u8> {
        let words = self.0.iter();
        words.flat_map(|word| word.to_ne_bytes()).collect()
    }
}

/// Everything that was written before is seen by whoever sees what is written after, and the other way round.
pub fn full_barrier() {
    std::sync::atomic::fence(Ordering::SeqCst);
}
