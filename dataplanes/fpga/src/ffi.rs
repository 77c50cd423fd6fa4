//! The simulated card (card.cpp) and its memory, and calls that no library wraps. The only file of this crate
//! with unsafe code.
#![allow(unsafe_code)]
use crate::shared::SLOT_STRIDE;
use quorumwire_fastpath::shared::SlotHead;
use quorumwire_wire::packet::{Header, PAYLOAD_BYTES_MAX, Registers};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::{io, mem, ptr};

/// Behind the payload, to the next slot.
const REST_BYTES: usize = SLOT_STRIDE - size_of::<SlotHead>() - PAYLOAD_BYTES_MAX;

/// One entry of the log, as the core writes it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Slot {
    pub head: SlotHead,
    pub payload: [u8; PAYLOAD_BYTES_MAX],
    rest: [u8; REST_BYTES],
}
const _: () = assert!(size_of::<Slot>() == SLOT_STRIDE);

#[repr(C)]
struct Model {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn qw_card_new(memory: *mut u8, bytes: usize) -> *mut Model;
    fn qw_card_free(card: *mut Model);
    fn qw_card_receive(card: *mut Model, frame: *const u8, bytes: usize);
    fn qw_card_run(card: *mut Model, clocks_max: usize) -> usize;
    fn qw_card_slow(card: *mut Model, clocks: u32);
    fn qw_card_write(card: *mut Model, at: u32, value: u32) -> i32;
    fn qw_card_read(card: *mut Model, at: u32, value: *mut u32) -> i32;
    fn qw_card_take(card: *mut Model, for_host: i32, frame: *mut u8, room: usize) -> usize;
    fn qw_card_counts(card: *const Model, dropped: *mut u64, outside: *mut u64);
}

/// A card, and the memory that it writes the log to: slots of a ring. Both sides reach it by the same
/// pointer.
pub struct CardModel {
    model: NonNull<Model>,
    ring: NonNull<[Slot]>,
}
// SAFETY: the model belongs to no thread, and only whoever has this calls it.
unsafe impl Send for CardModel {}

impl CardModel {
    /// A card after its reset, with a ring of so many slots.
    pub fn new(slots: u32) -> Self {
        // SAFETY: zeros are a slot.
        let empty = || unsafe { mem::zeroed::<Slot>() };
        let ring: Box<[Slot]> = (0..slots).map(|_| empty()).collect();
        let bytes = ring.len() * SLOT_STRIDE;
        let ring = NonNull::from(Box::leak(ring));
        // SAFETY: the ring lives as long as the model, and nobody holds a part of it while C++ runs.
        let model = unsafe { qw_card_new(ring.cast().as_ptr(), bytes) };
        let model = NonNull::new(model).expect("what C++ makes is somewhere");
        Self { model, ring }
    }

    /// A slot of the ring. The card changes none while this is held: that would need `&mut self`.
    pub fn slot(&self, number: usize) -> &Slot {
        assert!(number < self.ring.len());
        // SAFETY: within the ring; nobody writes there without having `self` alone.
        unsafe { self.ring.cast::<Slot>().add(number).as_ref() }
    }

    /// A slot, to be written by the host.
    pub fn slot_mut(&mut self, number: usize) -> &mut Slot {
        assert!(number < self.ring.len());
        // SAFETY: within the ring, and `self` is had alone.
        unsafe { self.ring.cast::<Slot>().add(number).as_mut() }
    }

    /// A frame comes from the network.
    pub fn receive(&mut self, frame: &[u8]) {
        // SAFETY: the frame lives through the call.
        unsafe { qw_card_receive(self.model.as_ptr(), frame.as_ptr(), frame.len()) }
    }

    /// The clock runs until nothing more happens by itself, at most so often; how often it did.
    pub fn run(&mut self, clocks_max: usize) -> usize {
        // SAFETY: the model lives.
        unsafe { qw_card_run(self.model.as_ptr(), clocks_max) }
    }

    /// From now on what the core gives is taken in one clock of so many, as the dice fall.
    pub fn take_beats_in_one_clock_of(&mut self, clocks: u32) {
        // SAFETY: the model lives.
        unsafe { qw_card_slow(self.model.as_ptr(), clocks) }
    }

    /// Writes 32 bits of the register map.
    pub fn write(&mut self, at: u32, value: u32) -> bool {
        // SAFETY: the model lives.
        unsafe { qw_card_write(self.model.as_ptr(), at, value) != 0 }
    }

    /// Reads 32 bits of it.
    pub fn read(&mut self, at: u32) -> Option<u32> {
        let mut value = 0;
        // SAFETY: the model lives, and the value through the call.
        let is_read = unsafe { qw_card_read(self.model.as_ptr(), at, &raw mut value) };
        (is_read != 0).then_some(value)
    }

    /// The next frame that the card has sent, or that is for the host; how long it is. 0: there is none.
    pub fn take(&mut self, for_host: bool, frame: &mut [u8]) -> usize {
        let (start, room) = (frame.as_mut_ptr(), frame.len());
        // SAFETY: there is so much room.
        unsafe { qw_card_take(self.model.as_ptr(), for_host.into(), start, room) }
    }

    /// Frames dropped because too many waited for the core, and beats that were not for the ring.
    pub fn counts(&self) -> (u64, u64) {
        let (mut dropped, mut outside) = (0, 0);
        // SAFETY: the model lives, and the numbers through the call.
        unsafe { qw_card_counts(self.model.as_ptr(), &raw mut dropped, &raw mut outside) };
        (dropped, outside)
    }
}

impl Drop for CardModel {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more, and then nobody the ring, which was a box.
        unsafe {
            qw_card_free(self.model.as_ptr());
            drop(Box::from_raw(self.ring.as_ptr()));
        }
    }
}

/// Structures of integers without padding, a multiple of eight bytes long: any bytes are one.
///
/// # Safety
///
/// Only for such.
pub unsafe trait Words: Copy + Default {}
// SAFETY: `repr(C)`, integers, 72 bytes.
unsafe impl Words for Header {}
// SAFETY: `repr(C)`, integers, 200 bytes.
unsafe impl Words for Registers {}

/// A structure as the core's host has it in memory.
pub fn words_of<T: Words>(value: &T) -> Vec<u64> {
    let mut words = vec![0_u64; size_of::<T>() / 8];
    // SAFETY: there is room for all of it, and its bytes are all set.
    unsafe {
        ptr::copy_nonoverlapping(
            (&raw const *value).cast::<u8>(),
            words.as_mut_ptr().cast(),
            size_of::<T>(),
        );
    }
    words
}

/// And back.
pub fn of_words<T: Words>(words: &[u64]) -> T {
    assert!(words.len() * 8 == size_of::<T>());
    let mut value = T::default();
    // SAFETY: as long as the structure, and any bytes are one.
    unsafe {
        ptr::copy_nonoverlapping(
            words.as_ptr().cast::<u8>(),
            (&raw mut value).cast(),
            size_of::<T>(),
        );
    }
    value
}

/// An interface of this namespace.
#[derive(Clone, Debug, Default)]
pub struct Link {
    pub name: String,
    pub index: i32,
    pub mac: [u8; 6],
    pub addresses: Vec<std::net::Ipv4Addr>,
}

/// All interfaces.
pub fn links() -> io::Result<Vec<Link>> {
    let mut first = ptr::null_mut();
    // SAFETY: it writes one pointer.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut links: Vec<Link> = Vec::new();
    let mut next = first;
    // SAFETY: the list is sound until it is freed.
    while let Some(one) = unsafe { next.as_ref() } {
        next = one.ifa_next;
        // SAFETY: names end with a zero.
        let name = unsafe { std::ffi::CStr::from_ptr(one.ifa_name) };
        let name = name.to_string_lossy().into_owned();
        let place = links.iter().position(|it| it.name == name);
        let place = place.unwrap_or_else(|| {
            links.push(Link {
                name,
                ..Link::default()
            });
            links.len() - 1
        });
        // SAFETY: an address, or null.
        let Some(address) = (unsafe { one.ifa_addr.as_ref() }) else {
            continue;
        };
        match i32::from(address.sa_family) {
            libc::AF_INET => {
                // SAFETY: the family says so.
                let address =
                    unsafe { ptr::read_unaligned(one.ifa_addr.cast::<libc::sockaddr_in>()) };
                let ip = u32::from_be(address.sin_addr.s_addr).into();
                links[place].addresses.push(ip);
            }
            libc::AF_PACKET => {
                // SAFETY: the family says so.
                let address =
                    unsafe { ptr::read_unaligned(one.ifa_addr.cast::<libc::sockaddr_ll>()) };
                links[place].index = address.sll_ifindex;
                links[place].mac.copy_from_slice(&address.sll_addr[..6]);
            }
            _ => {}
        }
    }
    // SAFETY: it is the list, and nobody uses it any more.
    unsafe { libc::freeifaddrs(first) };
    Ok(links)
}

/// What is asked of the system for frames that wait; it may give less.
const FRAMES_BYTES: i32 = 4 << 20;

fn set(socket: &OwnedFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of::<i32>()).expect("small");
    // SAFETY: the value lives through the call.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            length,
        )
    };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Frames that the system has dropped since this was asked last, because too many waited.
pub fn frames_dropped(socket: BorrowedFd<'_>) -> io::Result<u64> {
    // SAFETY: a plain structure.
    let mut counted: libc::tpacket_stats = unsafe { mem::zeroed() };
    let mut length = libc::socklen_t::try_from(size_of::<libc::tpacket_stats>()).expect("small");
    // SAFETY: both live through the call.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut counted).cast(),
            &raw mut length,
        )
    };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(counted.tp_drops.into())
}

/// A socket that gets all frames that come to an interface, and by which frames leave. It does not block.
pub fn packet_socket(index: i32) -> io::Result<OwnedFd> {
    let every = u16::try_from(libc::ETH_P_ALL).expect("16 bits").to_be();
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers.
    let socket = unsafe { libc::socket(libc::AF_PACKET, kind, every.into()) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is ours.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: a plain structure.
    let mut at: libc::sockaddr_ll = unsafe { mem::zeroed() };
    at.sll_family = u16::try_from(libc::AF_PACKET).expect("16 bits");
    at.sll_protocol = every;
    at.sll_ifindex = index;
    let length = libc::socklen_t::try_from(size_of::<libc::sockaddr_ll>()).expect("small");
    // The host's own frames are none of the card's.
    set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
    // Less than asked for costs frames that are sent again, and are counted.
    let _ = set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, FRAMES_BYTES);
    // SAFETY: the address lives through the call.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const at).cast(), length) };
    if bound != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(socket)
}

/// The next frame that came; how long it is. `None`: there is none.
pub fn next_frame(socket: BorrowedFd<'_>, frame: &mut [u8]) -> io::Result<Option<usize>> {
    match rustix::io::read(socket, frame) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(rustix::io::Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Has a datagram socket get nothing: somebody else takes what comes for it.
pub fn hear_nothing(socket: BorrowedFd<'_>) -> io::Result<()> {
    let mut nothing = libc::sock_filter {
        code: 0x06, // return
        jt: 0,
        jf: 0,
        k: 0,
    };
    let program = libc::sock_fprog {
        len: 1,
        filter: &raw mut nothing,
    };
    let length = libc::socklen_t::try_from(size_of::<libc::sock_fprog>()).expect("small");
    // SAFETY: the program lives through the call, which copies it.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            length,
        )
    };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
