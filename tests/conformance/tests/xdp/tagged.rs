//! Planes whose packets have a VLAN tag, while their address is that of another interface, above the one that
//! carries them. Kernels without VLAN interfaces do: programs of the test (`bpf/tag.bpf.c`) make `eth0` of a
//! plane a VLAN of [`LOWER`], whose other end is the test's, where they tag, too.
use crate::copies::{DRIVER, PATIENCE, request};
use crate::ethernet::Ethernet;
use crate::life::{Follower, attach_as};
use crate::veth::{
    Namespaces, OUTSIDE, PORT, counted, plane_ip, plane_mac, port, shown, test_ip, test_mac,
};
use crate::{Clones, Driver, Generic, How, Kernel, Multicast};
use libbpf_rs::{Object, ObjectBuilder, TC_EGRESS, TC_INGRESS, TcAttachPoint, TcHookBuilder};
use quorumwire_conformance_tests::cluster::{Cluster, START};
use quorumwire_conformance_tests::{Fabric as _, conformance};
use quorumwire_fastpath::ClientPackets;
use quorumwire_interfaces::DataPlane as _;
use quorumwire_plane_xdp::{Attachment, Blames, VLAN_MAX, XdpMode, let_pass};
use rustix::net::netdevice::name_to_index;
use std::net::UdpSocket;
use std::os::fd::AsFd as _;
use std::process::Command;
use std::time::Instant;

/// Carries a plane's packets.
pub const LOWER: &str = "lower0";
/// Their tag.
const VLAN: u16 = 100;
/// What `bpf/tag.bpf.c` became.
const TAG: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tag.bpf.o"));
const ETHERTYPE_VLAN: u16 = 0x8100;
const ETHERTYPE_IPV4: u16 = 0x0800;

/// Has what goes between the test and a plane have a tag. The plane's interface gives its place and
/// its name to another one.
pub fn put_vlan_between(namespaces: &Namespaces, slot: usize, number: u16) {
    let mac = shown(plane_mac(slot));
    let change = format!(
        "link set eth0 down\naddr flush dev eth0\nlink set eth0 name {LOWER} address 02:00:00:00:03:03\n\
         link set {LOWER} up\nlink add eth0 address {mac} type veth peer name unused\nlink set unused up\n"
    );
    namespaces.ip_in_plane(slot, &change);
    namespaces.set_up_plane(slot);
    namespaces.enter_plane(slot);
    ethtool(LOWER, "off");
    make_vlan("eth0", LOWER, number);
    namespaces.enter_test();
    let port = port(slot);
    ethtool(&port, "off");
    make_vlan(&port, &port, number);
}

/// Whether the driver may take tags out of frames, and put them in. If not, frames have theirs in them, as on
/// a wire.
fn ethtool(interface: &str, whether: &str) {
    let arguments = ["-K", interface, "rxvlan", whether, "txvlan", whether];
    let done = Command::new("ethtool").args(arguments).output();
    let done = done.expect("ethtool");
    assert!(done.status.success(), "{done:?}");
}

/// Makes an interface of this thread's namespace a VLAN of another.
fn make_vlan(upper: &str, lower: &str, number: u16) {
    let any = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    let [upper, lower] = [upper, lower].map(|name| name_to_index(&any, name).expect("it is there"));
    let mut open = ObjectBuilder::default().open_memory(TAG).expect("sound");
    for mut map in open.maps_mut() {
        if map.name().to_string_lossy().ends_with(".rodata.config") {
            let config = [u32::from(number), upper, lower].map(u32::to_ne_bytes);
            map.set_initial_value(&config.concat()).expect("as large");
        }
    }
    let object = open.load().expect("root");
    attach(&object, "qw_push", upper, TC_EGRESS, true);
    attach(&object, "qw_pop", lower, TC_INGRESS, lower != upper);
}

/// Behind whatever program a plane has there, as VLANs are; until the interface is gone.
fn attach(object: &Object, name: &str, interface: u32, point: TcAttachPoint, is_first: bool) {
    let program = object.progs_mut().find(|one| one.name() == name);
    let program = program.expect("it is in the object");
    let mut hook = TcHookBuilder::new(program.as_fd())
        .ifindex(i32::try_from(interface).expect("a small number"))
        .handle(1)
        .priority(1)
        .hook(point);
    if is_first {
        // For both directions.
        hook.create().expect("root");
    }
    hook.attach().expect("root");
}

/// With a tag.
pub struct Tagged<H>(std::marker::PhantomData<H>);

impl<H: How> How for Tagged<H> {
    const ATTACHMENT: Attachment = Attachment {
        vlan: VLAN,
        ..H::ATTACHMENT
    };
    const DEAF: Option<usize> = H::DEAF;
}

mod driver {
    use super::*;
    conformance! { Kernel<Tagged<Driver>>:
        common_case: commands_reach_all_in_order_and_are_committed, every_kind_and_size_goes_through;
        faults: a_gap_is_filled, the_last_entry_is_sent_again_whatever_its_size;
        clients: a_request_is_answered_by_the_host, blind_writes_are_answered_at_commit,
            a_follower_sends_requests_on;
    }
}

mod generic {
    use super::*;
    conformance! { Kernel<Tagged<Generic>>:
        common_case: commands_reach_all_in_order_and_are_committed;
        faults: a_gap_is_filled;
        clients: blind_writes_are_answered_at_commit, a_follower_sends_requests_on;
    }
}

mod multicast {
    use super::*;
    conformance! { Kernel<Tagged<Multicast>>:
        common_case: commands_reach_all_in_order_and_are_committed;
    }
}

/// The whole suite, for who changes something about tags. Of it, `make test` runs the above: what depends on
/// how frames look.
mod all {
    mod driver {
        use super::super::*;
        conformance!(Kernel<Tagged<Driver>>);
    }

    mod clones {
        use super::super::*;
        conformance!(Kernel<Tagged<Clones>>);
    }

    mod generic {
        use super::super::*;
        conformance!(Kernel<Tagged<Generic>>);
    }
}

/// A datagram from the outside to the first plane, in a frame with these tags.
fn frame(tags: &[u16], payload: &[u8]) -> Vec<u8> {
    let length = |bytes: usize| u16::try_from(bytes).expect("short").to_be_bytes();
    let mut ip = vec![0x45, 0];
    ip.extend_from_slice(&length(28 + payload.len()));
    ip.extend_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0]);
    ip.extend_from_slice(&test_ip(0, OUTSIDE).octets());
    ip.extend_from_slice(&plane_ip(0).octets());
    let words = ip.chunks(2);
    let sum: u32 = words
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]))
        .sum();
    let sum = u16::try_from((sum & 0xffff) + (sum >> 16)).expect("few words");
    ip[10..12].copy_from_slice(&(!sum).to_be_bytes());
    let mut frame = [plane_mac(0), test_mac(0)].concat();
    for tag in tags {
        frame.extend_from_slice(&ETHERTYPE_VLAN.to_be_bytes());
        frame.extend_from_slice(&tag.to_be_bytes());
    }
    frame.extend_from_slice(&ETHERTYPE_IPV4.to_be_bytes());
    frame.extend_from_slice(&ip);
    frame.extend_from_slice(&PORT.to_be_bytes());
    frame.extend_from_slice(&PORT.to_be_bytes());
    frame.extend_from_slice(&length(8 + payload.len()));
    frame.extend_from_slice(&[0, 0]); // no checksum
    frame.extend_from_slice(payload);
    frame
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

#[test]
pub fn only_packets_of_the_own_vlan_are_taken() {
    only_its_own::<Driver>();
    only_its_own::<Generic>();
}

fn only_its_own<H: How>() {
    const PRIORITY: u16 = 5 << 13;
    let mut cluster = Cluster::<Kernel<Tagged<H>>>::engaged(1);
    cluster.fabric.namespaces.enter_test();
    let wire = Ethernet::open(&port(0), ETHERTYPE_VLAN).expect("root");
    let send = |sequence, tags: &[u16]| {
        let payload = request(sequence, b"set");
        wire.send(&frame(tags, &payload)).expect("a veth pair");
    };
    send(1, &[VLAN + 1]);
    send(2, &[]);
    send(3, &[0]);
    send(4, &[VLAN, VLAN]);
    send(5, &[PRIORITY | VLAN]);
    let plane = &cluster.fabric.planes[0];
    wait_until("nothing is taken", || counted(plane, "received") > 0);
    assert_eq!(counted(plane, "received"), 1);
    assert_eq!(plane.registers().last_index.0, START + 1);
    let asking = ClientPackets::new(&quorumwire_conformance_tests::cluster::keys());
    let answer = cluster.fabric.receive_outside().expect("it is committed");
    assert_eq!(asking.answer(&answer).expect("signed").sequence, 5);
    assert!(cluster.fabric.receive_outside().is_none());
}

/// The system takes a tag without a number away; its host gets the packet.
#[test]
fn packets_with_a_priority_only_are_the_hosts_where_there_is_no_vlan() {
    let mut cluster = Cluster::<Kernel<Driver>>::engaged(1);
    cluster.fabric.namespaces.enter_test();
    let wire = Ethernet::open(&port(0), ETHERTYPE_VLAN).expect("root");
    wire.send(&frame(&[VLAN], b"another VLAN's"))
        .expect("a veth pair");
    wire.send(&frame(&[7 << 13], b"urgent"))
        .expect("a veth pair");
    let begun = Instant::now();
    while cluster.hosts[0].foreign.is_empty() {
        assert!(begun.elapsed() < PATIENCE, "nothing came");
        cluster.poll(0);
    }
    assert_eq!(cluster.hosts[0].foreign, [b"urgent"]);
    assert_eq!(counted(&cluster.fabric.planes[0], "received"), 0);
    assert_eq!(counted(&cluster.fabric.planes[0], "foreign"), 0);
}

const TAGGED: Attachment = Attachment {
    vlan: VLAN,
    ..DRIVER
};

/// Namespaces for one plane with a VLAN; in the plane's from now on.
fn one_vlan() -> Namespaces {
    let namespaces = Namespaces::new(1);
    put_vlan_between(&namespaces, 0, VLAN);
    let_pass(&port(0)).expect("root, and a kernel for it");
    namespaces.enter_plane(0);
    namespaces
}

#[test]
fn a_driver_that_takes_tags_away_is_refused_and_missed() {
    const SAYS: [&str; 2] = ["interface lower0", "ethtool -K lower0 rxvlan off"];
    let namespaces = one_vlan();
    ethtool(LOWER, "on");
    for mode in [XdpMode::Driver, XdpMode::Generic, XdpMode::Auto] {
        let how = Attachment { mode, ..TAGGED };
        let refused = attach_as(PORT, Some(LOWER), how).err().expect("no tags");
        assert_eq!(refused.blames, Blames::Interface);
        for part in SAYS {
            assert!(refused.text.contains(part), "{part:?} in {refused}");
        }
    }
    ethtool(LOWER, "off");
    let plane = attach_as(PORT, Some(LOWER), TAGGED).expect("tags are left in");
    assert_eq!(plane.described(), "in the driver of lower0, VLAN 100");
    let mut follower = Follower::of(namespaces, plane);
    follower.engage().expect("a sound grant");
    ethtool(LOWER, "on");
    follower.until_fault(&SAYS);
    ethtool(LOWER, "off");
    follower.until_sound();
}

/// What the plane needs of the interface that carries its packets, and what of the one that has its address.
#[test]
fn the_interface_with_the_address_is_looked_after_too() {
    let namespaces = one_vlan();
    let plane = attach_as(PORT, Some(LOWER), TAGGED).expect("root");
    let follower = &mut Follower::of(namespaces, plane);
    follower.engage().expect("a sound grant");
    follower.takes_an_entry();
    let address = format!("{}/24 dev eth0", plane_ip(0));
    for (breaks, mends, says) in [
        (
            "link set eth0 down",
            "link set eth0 up",
            "interface eth0 is down",
        ),
        (
            "link set lower0 down",
            "link set lower0 up",
            "interface lower0 is down",
        ),
        (
            "link set eth0 mtu 1475",
            "link set eth0 mtu 1500",
            "interface eth0 has an MTU of 1475",
        ),
        (
            "link set lower0 mtu 1475",
            "link set lower0 mtu 1500",
            "interface lower0 has an MTU of 1475",
        ),
        (
            &format!("addr del {address}"),
            &format!("addr add {address}"),
            "no interface has the address 10.77.0.1",
        ),
    ] {
        follower.namespaces.ip_in_plane(0, &format!("{breaks}\n"));
        follower.until_fault(&[says]);
        follower.namespaces.ip_in_plane(0, &format!("{mends}\n"));
        follower.until_sound();
    }
    follower.takes_an_entry();
}

/// To neighbours, packets are from the interface that has the address, and neighbours are looked for there.
#[test]
fn packets_leave_from_the_interface_that_has_the_address() {
    let mut cluster = Cluster::<Kernel<Tagged<Driver>>>::engaged(3);
    cluster.fabric.namespaces.enter_test();
    let wire = Ethernet::open(&port(0), ETHERTYPE_IPV4).expect("root");
    cluster.fabric.send_from_outside(0, &request(1, b"set"));
    for _ in 0..2 {
        let begun = Instant::now();
        let sent = loop {
            if let Some(sent) = wire.next() {
                break sent;
            }
            assert!(begun.elapsed() < PATIENCE, "nothing came");
            std::thread::yield_now();
        };
        assert_eq!(sent[6..12], plane_mac(0));
    }
    let plane = &cluster.fabric.planes[0];
    assert_eq!(counted(plane, "lost_no_neighbour"), 0);
}

/// As it happens where such interfaces stand in for each other.
#[test]
fn programs_are_loaded_anew_for_another_address_of_the_upper_interface() {
    let namespaces = one_vlan();
    let plane = attach_as(PORT, Some(LOWER), TAGGED).expect("root");
    let follower = &mut Follower::of(namespaces, plane);
    let new = [2, 0, 0, 0, 7, 7];
    let text = "02:00:00:00:07:07";
    follower
        .namespaces
        .ip_in_plane(0, &format!("link set eth0 address {text}\n"));
    let neighbour = format!("neigh replace {} lladdr {text}", plane_ip(0));
    let in_test = format!("{neighbour} dev {} nud permanent\n", port(0));
    follower.namespaces.ip_in_test(&in_test);
    follower.until_sound();
    follower.engage().expect("a sound grant");
    follower.namespaces.enter_test();
    let wire = Ethernet::open(&port(0), ETHERTYPE_IPV4).expect("root");
    follower.namespaces.enter_plane(0);
    follower.takes_an_entry();
    let sent = wire.next().expect("the acknowledgement has come");
    assert_eq!(sent[6..12], new);
}

#[test]
fn what_is_wrong_with_a_vlan_at_the_start_is_said() {
    let namespaces = one_vlan();
    let how = |vlan| Attachment { vlan, ..DRIVER };
    let refused = attach_as(PORT, Some(LOWER), how(VLAN_MAX + 1)).err();
    let refused = refused.expect("there is none").text;
    assert_eq!(refused, "there is no VLAN 4095, only 1 to 4094");
    // Without a tag, the address must be where the packets are.
    let refused = attach_as(PORT, Some(LOWER), how(0)).err();
    let refused = refused.expect("it is elsewhere");
    assert_eq!(refused.blames, Blames::Address);
    let address = format!("{}/24", plane_ip(0));
    namespaces.ip_in_plane(0, &format!("addr del {address} dev eth0\n"));
    let refused = attach_as(PORT, Some(LOWER), how(VLAN)).err();
    let refused = refused.expect("nobody has it");
    assert_eq!(refused.blames, Blames::Address);
    assert!(
        refused.text.contains("no interface has the address"),
        "{refused}"
    );
    // On the carrier itself it is as good.
    namespaces.ip_in_plane(0, &format!("addr add {address} dev {LOWER}\n"));
    let plane = attach_as(PORT, None, how(VLAN)).expect("root");
    assert_eq!(plane.described(), "in the driver of lower0, VLAN 100");
}
