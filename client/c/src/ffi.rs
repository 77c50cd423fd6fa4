//! The functions of `quorumwire.h`. Here, and nowhere else in this crate, pointers are followed: each that
//! may be null is checked, and no panic leaves a function. What each promises stands in the header.
#![allow(unsafe_code)]
use crate::error::{Code, Failure, last_of_this_thread};
use crate::handle::{CALLBACKS_MAX, Delivered, Handle, Submitted};
use crate::table;
use quorumwire_client::deliver;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr::{null, null_mut, without_provenance_mut};
use std::sync::Arc;
use std::time::Duration;

/// `quorumwire_submitted_fn`
pub type SubmittedFn = extern "C" fn(*mut c_void, c_int, u64);
/// `quorumwire_delivered_fn`
pub type DeliveredFn = extern "C" fn(*mut c_void, u64, *const c_void, usize);

/// `quorumwire_recovered_t`
#[derive(Debug)]
#[repr(C)]
pub struct Recovered {
    /// The one asked for, unless `state` says otherwise.
    pub instance: u64,
    /// A slice of `size` bytes in a box, or null.
    pub value: *mut c_void,
    /// Its length.
    pub size: usize,
    /// One of the constants below.
    pub state: c_int,
}

impl Recovered {
    /// `QUORUMWIRE_DECIDED`
    pub const DECIDED: c_int = 1;
    /// `QUORUMWIRE_NO_OP`
    pub const NO_OP: c_int = 2;
    /// `QUORUMWIRE_TRIMMED`
    pub const TRIMMED: c_int = 3;
    /// `QUORUMWIRE_NOT_DECIDED`
    pub const NOT_DECIDED: c_int = 4;
}

/// What a callback is given back. It is the program's affair whether it may be used on the thread that polls.
struct Given(*mut c_void);

// SAFETY: it is never followed here.
unsafe impl Send for Given {}

impl Given {
    /// Asked for as a whole, so that a closure takes it as a whole.
    fn pointer(&self) -> *mut c_void {
        self.0
    }
}

fn number(handle: *mut c_void) -> usize {
    handle.addr()
}

/// Runs the body with the handle; what it returns, or why not.
fn with_handle<T>(
    handle: *mut c_void,
    body: impl FnOnce(&Handle) -> Result<T, Failure>,
) -> Result<T, Code> {
    let Some(handle) = table::get(number(handle)) else {
        Failure::plain(Code::Handle).remember();
        return Err(Code::Handle);
    };
    let failure = match catch_unwind(AssertUnwindSafe(|| body(&handle))) {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(failure)) => failure,
        Err(_) => Failure::plain(Code::Internal),
    };
    handle.note(&failure);
    Err(failure.code)
}

fn told(result: Result<(), Code>) -> c_int {
    result.err().unwrap_or(Code::Ok) as c_int
}

fn argument<T>(text: &str) -> Result<T, Failure> {
    Err(Failure::new(Code::Argument, text))
}

/// The bytes there; null only if there are none.
///
/// # Safety
/// `value` points to so many bytes that are there until this returns, or is null.
unsafe fn bytes<'a>(value: *const c_void, size: usize, max: usize) -> Result<&'a [u8], Failure> {
    if size == 0 {
        return Ok(&[]);
    }
    if value.is_null() {
        return argument("the value is null, and has a size");
    }
    if size > max {
        let text = format!("the value has {size} bytes; allowed: at most {max}");
        return Err(Failure::new(Code::TooLarge, text));
    }
    // SAFETY: the caller's promise; it is not null.
    Ok(unsafe { std::slice::from_raw_parts(value.cast(), size) })
}

/// Where something is written that the caller may not want.
///
/// # Safety
/// `to` is null, or may be written to.
unsafe fn put<T>(to: *mut T, what: T) {
    if !to.is_null() {
        // SAFETY: the caller's promise.
        unsafe { to.write(what) };
    }
}

/// # Safety
/// `configuration_file` is null or a string, `handle` null or to be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quorumwire_open(
    configuration_file: *const c_char,
    handle: *mut *mut c_void,
) -> c_int {
    if handle.is_null() {
        Failure::plain(Code::Argument).remember();
        return Code::Argument as c_int;
    }
    // SAFETY: it is not null.
    unsafe { handle.write(null_mut()) };
    if configuration_file.is_null() {
        Failure::plain(Code::Argument).remember();
        return Code::Argument as c_int;
    }
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(configuration_file) };
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    let opened = catch_unwind(AssertUnwindSafe(|| without_sigpipe(|| Handle::open(path))));
    let failure = match opened {
        Ok(Ok(opened)) => {
            let opened = without_provenance_mut(table::add(opened));
            // SAFETY: it is not null.
            unsafe { handle.write(opened) };
            return Code::Ok as c_int;
        }
        Ok(Err(failure)) => failure,
        Err(_) => Failure::plain(Code::Internal),
    };
    failure.remember();
    failure.code as c_int
}

/// Runs this with SIGPIPE blocked, and so all threads that it starts: whoever ends a connection must not end
/// the program, which may have that signal's default. The caller's own mask is as it was then.
fn without_sigpipe<T>(run: impl FnOnce() -> T) -> T {
    struct Before(libc::sigset_t);
    impl Drop for Before {
        fn drop(&mut self) {
            // SAFETY: a mask that was read before.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, null_mut()) };
        }
    }
    // SAFETY: both sets are written before they are read.
    let before = unsafe {
        let (mut pipe, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&raw mut pipe);
        libc::sigaddset(&raw mut pipe, libc::SIGPIPE);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const pipe, &raw mut before);
        before
    };
    let _before = Before(before);
    run()
}

/// Any pointer may be given.
#[unsafe(no_mangle)]
pub extern "C" fn quorumwire_close(handle: *mut c_void) -> c_int {
    let closed = with_handle(handle, Handle::close);
    if closed.is_ok() {
        let last = table::remove(number(handle));
        // Whoever is within a call has it, too; the last one frees it.
        catch_unwind(AssertUnwindSafe(|| drop(last.map(Arc::into_inner)))).ok();
    }
    told(closed)
}

/// # Safety
/// `value` points to so many bytes, or is null. `done` may be called with `context` by whoever polls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quorumwire_submit(
    handle: *mut c_void,
    value: *const c_void,
    size: usize,
    done: Option<SubmittedFn>,
    context: *mut c_void,
) -> c_int {
    let context = Given(context);
    let done: Submitted = Box::new(move |code, instance| {
        if let Some(done) = done {
            done(context.pointer(), code as c_int, instance);
        }
    });
    told(with_handle(handle, |handle| {
        // SAFETY: the caller's promise.
        let value = unsafe { bytes(value, size, handle.value_bytes_max())? };
        handle.submit(value.to_vec(), done)
    }))
}

/// # Safety
/// `value` points to so many bytes, or is null. `instance` is null, or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quorumwire_submit_wait(
    handle: *mut c_void,
    value: *const c_void,
    size: usize,
    instance: *mut u64,
) -> c_int {
    told(with_handle(handle, |handle| {
        // SAFETY: the caller's promise.
        let value = unsafe { bytes(value, size, handle.value_bytes_max())? };
        let decided = handle.submit_wait(value)?;
        // SAFETY: the caller's promise.
        unsafe { put(instance, decided) };
        Ok(())
    }))
}

/// `delivered` may be called with `context` by whoever polls.
#[unsafe(no_mangle)]
pub extern "C" fn quorumwire_deliver(
    handle: *mut c_void,
    learner: u16,
    from: u64,
    delivered: Option<DeliveredFn>,
    context: *mut c_void,
) -> c_int {
    let context = Given(context);
    told(with_handle(handle, |handle| {
        let Some(delivered) = delivered else {
            return argument("no function is given to deliver to");
        };
        let delivered: Delivered = Box::new(move |instance, value| {
            delivered(
                context.pointer(),
                instance,
                value.as_ptr().cast(),
                value.len(),
            );
        });
        handle.deliver(learner, from, delivered)
    }))
}

/// In the archive only, for the wheel of `client/python`: whether later deliveries go on behind what earlier
/// ones gave. Any pointer may be given.
#[unsafe(no_mangle)]
pub extern "C" fn qw_gives_once(handle: *mut c_void) -> c_int {
    let gives_once = with_handle(handle, |handle| Ok(handle.gives_once()));
    c_int::from(gives_once.unwrap_or(false))
}

/// Any pointer may be given.
#[unsafe(no_mangle)]
pub extern "C" fn quorumwire_hold(handle: *mut c_void, is_held: c_int) -> c_int {
    told(with_handle(handle, |handle| {
        handle.hold(is_held != 0);
        Ok(())
    }))
}

/// Any pointer may be given.
#[unsafe(no_mangle)]
pub extern "C" fn quorumwire_poll(handle: *mut c_void, timeout_ms: c_int) -> c_int {
    const { assert!(CALLBACKS_MAX < c_int::MAX as usize) };
    let at_most = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
    let called = with_handle(handle, |handle| match timeout_ms {
        ..-1 => argument("a time that is less than -1"),
        -1.. => handle.poll(at_most),
    });
    match called {
        Ok(called) => c_int::try_from(called).unwrap_or(c_int::MAX),
        Err(code) => code as c_int,
    }
}

/// Any pointer may be given.
#[unsafe(no_mangle)]
pub extern "C" fn quorumwire_fd(handle: *mut c_void) -> c_int {
    match with_handle(handle, |handle| Ok(handle.descriptor())) {
        Ok(descriptor) => descriptor,
        Err(code) => code as c_int,
    }
}

/// # Safety
/// `recovered` is null, or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quorumwire_recover(
    handle: *mut c_void,
    instance: u64,
    recovered: *mut Recovered,
) -> c_int {
    told(with_handle(handle, |handle| {
        if recovered.is_null() || instance == 0 {
            return argument("instances begin with 1, and somebody must want to know");
        }
        let nothing = |instance, state| Recovered {
            instance,
            value: null_mut(),
            size: 0,
            state,
        };
        let found = match handle.recover(instance)? {
            deliver::Recovered::Decided(value) => {
                let value = value.into_boxed_slice();
                let size = value.len();
                Recovered {
                    instance,
                    value: Box::into_raw(value).cast(),
                    size,
                    state: Recovered::DECIDED,
                }
            }
            deliver::Recovered::NoOp => nothing(instance, Recovered::NO_OP),
            deliver::Recovered::Trimmed(upto) => nothing(upto, Recovered::TRIMMED),
            deliver::Recovered::NotDecided(last) => nothing(last, Recovered::NOT_DECIDED),
        };
        // SAFETY: the caller's promise; it is not null.
        unsafe { recovered.write(found) };
        Ok(())
    }))
}

/// # Safety
/// `recovered` is null, or was set by `quorumwire_recover` and not changed since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quorumwire_recovered_free(recovered: *mut Recovered) {
    if recovered.is_null() {
        return;
    }
    // SAFETY: the caller's promise; it is not null.
    let recovered = unsafe { &mut *recovered };
    let value = std::mem::replace(&mut recovered.value, null_mut());
    let size = std::mem::take(&mut recovered.size);
    if !value.is_null() {
        let slice = std::ptr::slice_from_raw_parts_mut(value.cast::<u8>(), size);
        // SAFETY: `quorumwire_recover` made it of a box of so many bytes, and nobody has freed it.
        drop(unsafe { Box::from_raw(slice) });
    }
}

/// # Safety
/// `trimmed` is null, or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quorumwire_checkpoint(
    handle: *mut c_void,
    learner: u16,
    upto: u64,
    trimmed: *mut u64,
) -> c_int {
    told(with_handle(handle, |handle| {
        let upto = handle.checkpoint(learner, upto)?;
        // SAFETY: the caller's promise.
        unsafe { put(trimmed, upto) };
        Ok(())
    }))
}

/// # Safety
/// `trimmed` is null, or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quorumwire_declare_lost(
    handle: *mut c_void,
    upto: u64,
    trimmed: *mut u64,
) -> c_int {
    told(with_handle(handle, |handle| {
        let upto = handle.declare_lost(upto)?;
        // SAFETY: the caller's promise.
        unsafe { put(trimmed, upto) };
        Ok(())
    }))
}

/// Any pointer may be given.
#[unsafe(no_mangle)]
pub extern "C" fn quorumwire_value_bytes_max(handle: *mut c_void) -> usize {
    with_handle(handle, |handle| Ok(handle.value_bytes_max())).unwrap_or(0)
}

/// Any number may be given.
#[unsafe(no_mangle)]
pub extern "C" fn quorumwire_error_text(error: c_int) -> *const c_char {
    let known = Code::ALL.iter().find(|code| **code as c_int == error);
    known
        .map_or(c"no error of libquorumwire", |code| code.text())
        .as_ptr()
}

/// # Safety
/// `buffer` points to `size` bytes that may be written to; it may be null if there are none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quorumwire_last_error(
    handle: *mut c_void,
    buffer: *mut c_char,
    size: usize,
) -> usize {
    let text = if handle.is_null() {
        last_of_this_thread()
    } else {
        table::get(number(handle)).map_or_else(
            || Failure::plain(Code::Handle).text,
            |handle| handle.last_error(),
        )
    };
    if !buffer.is_null() && size > 0 {
        let kept = text.len().min(size - 1);
        let source: *const u8 = if kept == 0 { null() } else { text.as_ptr() };
        if !source.is_null() {
            // SAFETY: the caller's promise; what is copied is shorter than `size`, and they do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(source, buffer.cast(), kept) };
        }
        // SAFETY: `kept` is less than `size`.
        unsafe { buffer.add(kept).write(0) };
    }
    text.len()
}
