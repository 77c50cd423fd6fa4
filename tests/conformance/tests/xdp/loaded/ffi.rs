//! Calls that no library wraps: running a loaded program on a frame, and reading its maps in place.
#![allow(unsafe_code)]
use quorumwire_wire::packet::Registers;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// Longest frame that a program can make of one.
pub const FRAME_BYTES_MAX: usize = 4096;

/// Runs a program on a frame and takes back what it made of it: its verdict, and the frame's length.
pub fn run(
    program: BorrowedFd<'_>,
    frame: &[u8],
    into: &mut [u8; FRAME_BYTES_MAX],
) -> io::Result<(u32, usize)> {
    // SAFETY: a plain C structure for which zero bytes are a value.
    let mut options: libbpf_sys::bpf_test_run_opts = unsafe { std::mem::zeroed() };
    options.sz = size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t;
    options.data_in = frame.as_ptr().cast();
    options.data_size_in = u32::try_from(frame.len()).map_err(io::Error::other)?;
    options.data_out = into.as_mut_ptr().cast();
    options.data_size_out = u32::try_from(into.len()).map_err(io::Error::other)?;
    // SAFETY: the options point to buffers of the sizes they say, which live through the call.
    let done = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
    if done != 0 {
        return Err(io::Error::from_raw_os_error(-done));
    }
    Ok((options.retval, options.data_size_out as usize))
}

/// Lets a frame come in so often at an interface of this namespace, at once as from a driver, as far as a
/// program sees: what it sends leaves there, what it passes goes up.
pub fn run_live(
    program: BorrowedFd<'_>,
    frame: &[u8],
    interface: u32,
    times: u32,
) -> io::Result<()> {
    // SAFETY: plain C structures for which zero bytes are a value.
    let (mut options, mut context): (libbpf_sys::bpf_test_run_opts, libbpf_sys::xdp_md) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    context.data_end = u32::try_from(frame.len()).map_err(io::Error::other)?;
    context.ingress_ifindex = interface;
    options.sz = size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t;
    options.data_in = frame.as_ptr().cast();
    options.data_size_in = context.data_end;
    options.ctx_in = (&raw const context).cast();
    options.ctx_size_in = u32::try_from(size_of_val(&context)).map_err(io::Error::other)?;
    options.repeat = times.cast_signed();
    options.flags = libbpf_sys::BPF_F_TEST_XDP_LIVE_FRAMES;
    // SAFETY: the options point to a frame and a context that live through the call.
    let done = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
    match done {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}

/// An array map in this process's memory, for reading.
pub struct MapMemory {
    start: NonNull<u8>,
    bytes: usize,
}
// SAFETY: the memory belongs to no thread.
unsafe impl Send for MapMemory {}

impl MapMemory {
    /// The first so many bytes of a map.
    pub fn new(map: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        // SAFETY: asks for memory anywhere; touches none of ours.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Self { start, bytes }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Its bytes, until something runs that writes it; or numbers in it that somebody counts up.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is so long, and lives as long as `self`. Programs write it while this thread
        // has one run; else there are only numbers whose every value is one, which are read once.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for MapMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// The registers that these bytes are.
pub fn registers_of(bytes: &[u8]) -> Registers {
    let bytes = &bytes[..size_of::<Registers>()];
    // SAFETY: there are as many bytes as registers have, a C structure of integers.
    unsafe { bytes.as_ptr().cast::<Registers>().read_unaligned() }
}
