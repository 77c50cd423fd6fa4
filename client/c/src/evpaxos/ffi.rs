//! What the C of `client/c/evpaxos/` calls; `internal.h` declares it, and programs do not see it. Here, and
//! nowhere else in this module, pointers are followed. No panic leaves a function.
#![allow(unsafe_code)]
use crate::evpaxos::frames::{self, HEAD_BYTES, Kind};
use crate::evpaxos::host::HostOptions;
use crate::evpaxos::log;
use crate::evpaxos::node::Node;
use quorumwire_paxos_process::VALUE_BYTES_MAX;
use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr::null_mut;

/// `struct qw_address`
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Address {
    ip: [u8; 4],
    port: u16,
}

/// `struct qw_process`
#[repr(C)]
pub struct Options {
    acceptors: *const Address,
    acceptor_count: usize,
    own: Address,
    number: c_int,
    dir: *const c_char,
    trash: c_int,
    catch_up: c_int,
    nodelay: c_int,
}

/// `qw_log_fn`
type LogFn = extern "C" fn(c_int, *const c_char);

/// From now on what there is to say goes there.
#[unsafe(no_mangle)]
pub extern "C" fn qw_evpaxos_log_to(hook: LogFn) {
    log::begin(Box::new(move |importance, text| {
        let text: Vec<u8> = text.bytes().filter(|it| *it != 0).collect();
        if let Ok(text) = CString::new(text) {
            hook(importance as c_int, text.as_ptr());
        }
    }));
}

fn address(of: Address) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::from(of.ip)), of.port)
}

/// # Safety
/// `acceptors` of the options points to so many.
unsafe fn acceptors(options: &Options) -> Vec<SocketAddr> {
    if options.acceptors.is_null() || options.acceptor_count == 0 {
        return Vec::new();
    }
    // SAFETY: the caller's promise; it is not null.
    let all = unsafe { std::slice::from_raw_parts(options.acceptors, options.acceptor_count) };
    all.iter().copied().map(address).collect()
}

fn opened(open: impl FnOnce() -> Result<Node, String>) -> *mut Node {
    match catch_unwind(AssertUnwindSafe(open)) {
        Ok(Ok(node)) => Box::into_raw(Box::new(node)),
        Ok(Err(error)) => {
            log::error(&error);
            null_mut()
        }
        Err(_) => {
            log::error("A fault of the library");
            null_mut()
        }
    }
}

/// # Safety
/// As of [`acceptors`]; `dir` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qw_evpaxos_host(options: &Options) -> *mut Node {
    let dir = if options.dir.is_null() {
        None
    } else {
        // SAFETY: the caller's promise.
        let dir = unsafe { CStr::from_ptr(options.dir) };
        Some(Path::new(OsStr::from_bytes(dir.to_bytes())).to_owned())
    };
    // SAFETY: the caller's promise.
    let acceptors = unsafe { acceptors(options) };
    opened(move || {
        let me = u8::try_from(options.number).ok();
        let me = me.filter(|it| usize::from(*it) < acceptors.len());
        let me = me.ok_or_else(|| format!("There is no acceptor {}", options.number))?;
        let host = HostOptions {
            acceptors,
            me,
            dir,
            is_to_begin_anew: options.trash != 0,
            nodelay: options.nodelay != 0,
        };
        Node::host(host, options.catch_up != 0)
    })
}

/// # Safety
/// As of [`acceptors`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qw_evpaxos_learner(options: &Options) -> *mut Node {
    // SAFETY: the caller's promise.
    let acceptors = unsafe { acceptors(options) };
    opened(move || Node::learner(&acceptors, options.catch_up != 0, options.nodelay != 0))
}

/// # Safety
/// As of [`acceptors`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qw_evpaxos_proposer(options: &Options) -> *mut Node {
    // SAFETY: the caller's promise.
    let acceptors = unsafe { acceptors(options) };
    opened(move || {
        let number = usize::try_from(options.number).unwrap_or(0);
        let own = address(options.own);
        Node::proposer(own, number, &acceptors, options.nodelay != 0)
    })
}

/// # Safety
/// `node` came from one of the three above, or is null, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qw_evpaxos_close(node: *mut Node) {
    if !node.is_null() {
        // SAFETY: the caller's promise.
        let node = unsafe { Box::from_raw(node) };
        catch_unwind(AssertUnwindSafe(|| drop(node))).ok();
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn qw_evpaxos_descriptor(node: &Node) -> c_int {
    node.descriptor()
}

/// Sets number, value and size if there is one; the value is the library's, until the next call.
///
/// # Safety
/// All three can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qw_evpaxos_take(
    node: &mut Node,
    number: *mut u32,
    value: *mut *mut c_char,
    size: *mut usize,
) -> c_int {
    let Ok(Some(taken)) = catch_unwind(AssertUnwindSafe(|| node.take())) else {
        return 0;
    };
    let bytes = node.value();
    // SAFETY: the caller's promise.
    unsafe {
        number.write(taken);
        size.write(bytes.len() - 1);
        value.write(bytes.as_mut_ptr().cast());
    }
    1
}

/// # Safety
/// `value` points to so many bytes, or there are none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qw_evpaxos_submit(node: &Node, value: *const c_char, size: usize) {
    let value = if size == 0 || value.is_null() {
        &[]
    } else {
        // SAFETY: the caller's promise; it is not null.
        unsafe { std::slice::from_raw_parts(value.cast(), size) }
    };
    catch_unwind(AssertUnwindSafe(|| node.submit(value))).ok();
}

#[unsafe(no_mangle)]
pub extern "C" fn qw_evpaxos_go_on_behind(node: &mut Node, number: u32) {
    catch_unwind(AssertUnwindSafe(|| node.go_on_behind(number))).ok();
}

#[unsafe(no_mangle)]
pub extern "C" fn qw_evpaxos_trim(node: &Node, number: u32) {
    catch_unwind(AssertUnwindSafe(|| node.trim(number))).ok();
}

/// What goes in front of a value of so many bytes that is sent to a proposer; 0: it is too long.
#[unsafe(no_mangle)]
pub extern "C" fn qw_evpaxos_submit_head(size: usize, head: &mut [u8; HEAD_BYTES]) -> c_int {
    *head = frames::head(Kind::Submit, size);
    c_int::from(size <= VALUE_BYTES_MAX)
}
