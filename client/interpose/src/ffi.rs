//! Shared memory, and what a child does before it becomes the program. The only file of this crate with
//! unsafe code.
#![allow(unsafe_code)]
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};
use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Memory that another process writes to as well. What is read from it is copied out first, and then checked.
#[derive(Debug)]
pub struct Memory {
    descriptor: OwnedFd,
    start: NonNull<u8>,
    bytes: usize,
}

// Nobody else of this process has the mapping.
unsafe impl Send for Memory {}

impl Memory {
    /// Zeros, of a size that stays.
    pub fn new(name: &str, bytes: usize) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let descriptor = rustix::fs::memfd_create(name, flags)?;
        rustix::fs::ftruncate(&descriptor, bytes as u64)?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&descriptor, seals)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the place; the size is that of the file, and stays.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes,
                protection,
                MapFlags::SHARED,
                &descriptor,
                0,
            )?
        };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            descriptor,
            start,
            bytes,
        })
    }

    /// To be inherited.
    pub const fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }

    fn place(&self, at: usize, bytes: usize) -> *mut u8 {
        let end = at.checked_add(bytes);
        assert!(
            end.is_some_and(|end| end <= self.bytes),
            "{bytes} bytes at {at}"
        );
        // SAFETY: within the mapping, as was just checked.
        unsafe { self.start.as_ptr().add(at) }
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert_eq!(at % 8, 0, "words are aligned");
        let place = self.place(at, 8);
        // SAFETY: aligned, within the mapping, which lives as long as this; both sides use it as an atomic
        // only.
        unsafe { AtomicU64::from_ptr(place.cast()) }
    }

    fn half(&self, at: usize) -> &AtomicU32 {
        assert_eq!(at % 4, 0, "halves are aligned");
        let place = self.place(at, 4);
        // SAFETY: as for words.
        unsafe { AtomicU32::from_ptr(place.cast()) }
    }

    pub fn load(&self, at: usize) -> u64 {
        self.word(at).load(Ordering::SeqCst)
    }

    pub fn store(&self, at: usize, value: u64) {
        self.word(at).store(value, Ordering::SeqCst);
    }

    pub fn load_half(&self, at: usize) -> u32 {
        self.half(at).load(Ordering::SeqCst)
    }

    pub fn store_half(&self, at: usize, value: u32) {
        self.half(at).store(value, Ordering::SeqCst);
    }

    pub fn write(&self, at: usize, bytes: &[u8]) {
        let place = self.place(at, bytes.len());
        // SAFETY: within the mapping; the bytes are elsewhere.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) }
    }

    pub fn read(&self, at: usize, bytes: &mut [u8]) {
        let place = self.place(at, bytes.len());
        // SAFETY: within the mapping; the bytes are elsewhere.
        unsafe { std::ptr::copy_nonoverlapping(place, bytes.as_mut_ptr(), bytes.len()) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let start: *mut c_void = self.start.as_ptr().cast();
        // SAFETY: what was mapped at the beginning, and no reference to it is left. It cannot fail then.
        unsafe { rustix::mm::munmap(start, self.bytes).ok() };
    }
}

const fn instruction(code: u32, jump_true: u8, jump_false: u8, value: u32) -> libc::sock_filter {
    libc::sock_filter {
        #[allow(clippy::cast_possible_truncation)] // codes have 16 bits
        code: code as u16,
        jt: jump_true,
        jf: jump_false,
        k: value,
    }
}

/// Numbers of calls have 32 bits.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
const IO_URING_SETUP: u32 = libc::SYS_io_uring_setup as u32;

/// Says that there is no `io_uring`: programs fall back to calls that can be seen.
const NO_IO_URING: [libc::sock_filter; 4] = [
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0), // the call's number
    instruction(
        libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
        0,
        1,
        IO_URING_SETUP,
    ),
    instruction(
        libc::BPF_RET | libc::BPF_K,
        0,
        0,
        libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
    ),
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
];

fn check(result: i32) -> io::Result<()> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Has the child keep these descriptors, find its memory at the same places everywhere, and have no
/// `io_uring`.
pub fn prepare(command: &mut Command, kept: &[BorrowedFd<'_>]) {
    let kept: Vec<RawFd> = kept.iter().map(BorrowedFd::as_raw_fd).collect();
    let before = move || {
        for descriptor in &kept {
            // SAFETY: a number and a flag.
            check(unsafe { libc::fcntl(*descriptor, libc::F_SETFD, 0) })?;
        }
        // SAFETY: numbers only.
        check(unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) })?;
        // SAFETY: numbers only.
        check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
        // SAFETY: likewise: with the replica the program ends.
        check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) })?;
        let filter = libc::sock_fprog {
            len: 4,
            filter: NO_IO_URING.as_ptr().cast_mut(),
        };
        // SAFETY: the filter lives until the call returns, and the kernel only reads it.
        check(unsafe {
            libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const filter,
                0,
                0,
            )
        })
    };
    // SAFETY: system calls only: nothing is allocated and no lock is taken between fork and exec.
    unsafe { command.pre_exec(before) };
}
