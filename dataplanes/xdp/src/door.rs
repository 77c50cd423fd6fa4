//! What a server has to know of this kind of plane: its options, what they mean together, and how one is
//! opened.
use crate::attached::{how_to_detach, still_attached, wait_for_all_programs};
use crate::groups::Shared;
use crate::load::{
    Attachment, Sizes, VLAN_MAX, XdpCopies, XdpLock, XdpMode, let_pass, stop_passing,
};
use crate::refused::{Blames, Refused, capabilities_needed};
use crate::{COUNTERS, KernelBox, XdpPlane, take_complaints};
use quorumwire_fastpath::{Options, endpoint_at, window_max};
use quorumwire_plane_door::{
    BoxKind, BoxOption, BoxSetup, Demand, KindOptions, NotAllowed, NotOpened, OpenBox, OpenPlane,
    OpenPlanes, OptionKind, OtherEnd, PlaneKind, PlaneOption, PlaneSetup, Remains, Unset, Values,
    address_at, noted_nowhere,
};
use std::net::UdpSocket;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::Arc;

/// A plane in the kernel's receive path.
pub static KIND: PlaneKind = PlaneKind {
    name: "xdp",
    help: "in the kernel's receive path of the network interface that has the address of \
           `listen-plane`; this needs Linux 5.18 or later, and root or the capabilities `CAP_BPF`, \
           `CAP_NET_ADMIN` and `CAP_PERFMON`",
    runs_on_loopback: false,
    options: &OPTIONS,
    check,
    open,
    capabilities: capabilities_needed,
    descriptors_max: DESCRIPTORS_MAX,
    counters: &COUNTERS,
    remains: Some(Remains {
        still_attached,
        how_to_detach,
        wait_for_last: wait_for_all_programs,
    }),
    hand_complaints_to: take_complaints,
    other_end: Some(OtherEnd {
        about: "Let frames of the plane xdp through a veth device",
        long_about: "Attach a program that lets everything pass to virtual Ethernet devices, until \
                     `--off` or until they are gone. A veth device delivers what the plane `xdp` at its \
                     other end sends only if it has a program, too: run it for the host's ends of \
                     containers whose replicas have that plane. Needs root, or CAP_BPF and CAP_NET_ADMIN.",
        make_ready: let_pass,
        undo: stop_passing,
    }),
    boxes: Some(BoxKind {
        help: "in the kernel's receive path of the network interface that has the switch's address; \
               this needs Linux 5.18 or later, and root or the capabilities `CAP_BPF`, `CAP_NET_ADMIN` \
               and `CAP_PERFMON`",
        options: &OPTIONS_OF_BOXES,
        open: open_box,
    }),
};

/// Its maps, its programs, and sockets by which it hears of its interface.
const DESCRIPTORS_MAX: usize = 192;
/// Longest name of a network interface.
const INTERFACE_BYTES_MAX: usize = 15;
/// No network card has more.
const QUEUE_MAX: u64 = 65_535;

const INTERFACE: &str = "interface";
const MODE: &str = "xdp-mode";
const COPIES: &str = "xdp-copies";
const MULTICAST: &str = "xdp-multicast";
const VLAN: &str = "xdp-vlan";
const QUEUE: &str = "xdp-queue";

const MODES: [(&str, XdpMode); 3] = [
    ("auto", XdpMode::Auto),
    ("driver", XdpMode::Driver),
    ("generic", XdpMode::Generic),
];
const WAYS_TO_COPY: [(&str, XdpCopies); 2] =
    [("auto", XdpCopies::Auto), ("clone", XdpCopies::Clone)];

const OPTIONS: [PlaneOption; 6] = [
    PlaneOption {
        name: INTERFACE,
        kind: OptionKind::Text {
            bytes_max: INTERFACE_BYTES_MAX,
        },
        unset: Unset::Otherwise("the one that has the address of `listen-plane`"),
        help: "The network interface whose driver runs the plane `xdp`. Its MTU must be 1,476 (IPv6: \
               1,496) or more. Unless `xdp-vlan` is given, it must have the address of `listen-plane`. \
               Many drivers run XDP only with an MTU up to some 3,500; mode `generic` runs with any.",
    },
    PlaneOption {
        name: MODE,
        kind: OptionKind::Choice(&[MODES[0].0, MODES[1].0, MODES[2].0]),
        unset: Unset::Value("auto"),
        help: "Where the plane `xdp` takes packets. `driver`: in the interface's driver. `generic`: \
               behind the driver; this is slower, works with every driver and needs Linux 6.6. `auto`: \
               in the driver if possible.",
    },
    PlaneOption {
        name: COPIES,
        kind: OptionKind::Choice(&[WAYS_TO_COPY[0].0, WAYS_TO_COPY[1].0]),
        unset: Unset::Value("auto"),
        help: "How a leader's plane `xdp` copies a packet for the other replicas. `clone`: a program \
               behind the driver copies it (Linux 6.6). `auto`: the driver copies it where a trial \
               shows that it can; there is a trial at the start and at each term.",
    },
    PlaneOption {
        name: MULTICAST,
        kind: OptionKind::Multicast,
        unset: Unset::Otherwise("each replica is sent a packet of its own"),
        help: "A leader's plane `xdp` sends one packet to this address, and the network copies it for \
               the other replicas. The address and the port of `listen-plane` must be the same on all \
               replicas. A replica that does not hear it is sent what it misses.",
    },
    PlaneOption {
        name: VLAN,
        kind: OptionKind::Number {
            min: 0,
            max: VLAN_MAX as u64,
        },
        unset: Unset::Value("0"),
        help: "The number of the VLAN tag (802.1Q) in packets of the plane `xdp` at its interface; 0: \
               no tag. A replica with the address of `eth0.100` has the plane run in the driver of \
               `eth0`: `--interface eth0 --xdp-vlan 100`. The driver must leave tags in packets: \
               `ethtool -K eth0 rxvlan off`.",
    },
    PlaneOption {
        name: QUEUE,
        kind: OptionKind::Number {
            min: 0,
            max: QUEUE_MAX,
        },
        unset: Unset::Otherwise("any queue: each packet is served where it comes"),
        help: "The receive queue of the interface, from 0 on, that gets the packets of the plane `xdp`. \
               So replicas of several clusters on one machine, or a replica and other traffic, have \
               processors of their own. The server adds a rule for the port of `listen-plane` to the \
               network card (with `memcached-udp`, also for the port of memcached clients), replaces an \
               older rule for that port, and removes it at the end. If the card refuses the rule, the \
               plane does not start. An interface with one queue needs no rule.",
    },
];

const OPTIONS_OF_BOXES: [BoxOption; 4] = [
    BoxOption {
        name: INTERFACE,
        help: "The network interface whose driver runs it. Its MTU must be 1,476 (IPv6: 1,496) or more. \
               Unless `xdp-vlan` is given, it must have the switch's address. Many drivers run XDP only \
               with an MTU up to some 3,500; mode `generic` runs with any.",
        unset: "the one that has the switch's address",
    },
    BoxOption {
        name: MODE,
        help: OPTIONS[1].help,
        unset: "auto",
    },
    BoxOption {
        name: COPIES,
        help: "How it copies a packet for the acceptors, or for the learners. `clone`: a program behind \
               the driver copies it (Linux 6.6). `auto`: the driver copies it where a trial shows that it \
               can; there is a trial at the start and whenever the role is switched on.",
        unset: "auto",
    },
    BoxOption {
        name: VLAN,
        help: "The number of the VLAN tag (802.1Q) in its packets at its interface; 0: no tag. A switch \
               with the address of `eth0.100` runs in the driver of `eth0`: `--interface eth0 --xdp-vlan \
               100`. The driver must leave tags in packets: `ethtool -K eth0 rxvlan off`.",
        unset: "0",
    },
];

fn check(kind_options: &KindOptions<'_>) -> Result<(), NotAllowed> {
    let refuse = |option, allowed| Err(NotAllowed { option, allowed });
    let given = |option| kind_options.values.text(option).is_some();
    let is_by_name = kind_options.demand == Demand::Yes;
    if is_by_name && kind_options.listen.ip().is_unspecified() {
        return refuse(
            kind_options.listen_option,
            "the address of one network interface, such as 10.0.0.1:7401: the plane xdp runs in its driver",
        );
    }
    if kind_options.demand == Demand::No {
        const NOTHING: &str = "nothing, unless `plane` is xdp or auto";
        if given(INTERFACE) {
            return refuse(INTERFACE, NOTHING);
        }
        if attachment(kind_options.values).vlan != 0 {
            return refuse(VLAN, "0, unless `plane` is xdp or auto");
        }
        if given(QUEUE) {
            return refuse(QUEUE, NOTHING);
        }
    }
    if given(MULTICAST) && !(is_by_name && kind_options.listen.is_ipv4()) {
        return refuse(
            MULTICAST,
            "nothing, unless `plane` is xdp and `listen-plane` an IPv4 address",
        );
    }
    Ok(())
}

/// How the plane uses its interface.
fn attachment(values: &Values) -> Attachment {
    Attachment {
        mode: meant(MODES, values.text(MODE)),
        copies: meant(WAYS_TO_COPY, values.text(COPIES)),
        multicast: values.parsed(MULTICAST),
        vlan: values.parsed(VLAN).unwrap_or_default(),
        lock: XdpLock::Fit,
    }
}

fn meant<T: Default, const N: usize>(words: [(&str, T); N], given: Option<&str>) -> T {
    let mut words = words.into_iter();
    words
        .find_map(|(word, meaning)| (Some(word) == given).then_some(meaning))
        .unwrap_or_default()
}

fn open(kind_options: &KindOptions<'_>, setup: PlaneSetup) -> Result<OpenPlanes, NotOpened> {
    open_all(kind_options, setup).map_err(|refused| NotOpened {
        option: blamed(kind_options, refused.blames),
        text: refused.text,
    })
}

fn open_box(kind_options: &KindOptions<'_>, setup: BoxSetup) -> Result<OpenBox, NotOpened> {
    let interface = kind_options.values.text(INTERFACE);
    let how = Attachment {
        multicast: setup.hears,
        ..attachment(kind_options.values)
    };
    // An earlier process's program, for as long as the kernel takes to close it, says nothing that does harm:
    // it is like packets that come late.
    let note = noted_nowhere();
    let opened = KernelBox::attach(kind_options.listen, interface, setup.window, how, &*note);
    let store = opened.map_err(|refused| NotOpened {
        option: blamed(kind_options, refused.blames),
        text: refused.text,
    })?;
    Ok(OpenBox {
        runs: Some(store.described().to_owned()),
        store: Box::new(store),
    })
}

fn open_all(kind_options: &KindOptions<'_>, setup: PlaneSetup) -> Result<OpenPlanes, Refused> {
    let sizes = Sizes {
        groups: u32::try_from(setup.groups.len()).unwrap_or(u32::MAX),
        ring_slots: setup.ring_slots,
        window: 0,
    };
    let groups = setup.numbered();
    let (interface, how) = (
        kind_options.values.text(INTERFACE),
        attachment(kind_options.values),
    );
    let shared = Arc::new(Shared::new(interface, sizes, how, setup.note));
    let mut datagrams = setup.datagrams;
    let (mut planes, mut runs) = (Vec::new(), None);
    for (number, group) in groups {
        let options = Options {
            group,
            ring_slots: sizes.ring_slots,
            window: window_max(1).min(sizes.ring_slots),
        };
        let plane = XdpPlane::on(&shared, address_at(kind_options.listen, number), options)?;
        let plane = steered(plane, datagrams.take(), kind_options.values.parsed(QUEUE))?;
        let advertised = setup.advertised.map(|first| address_at(first, number));
        runs.get_or_insert_with(|| plane.described().to_owned());
        planes.push(OpenPlane {
            endpoint: endpoint_at(advertised.unwrap_or(plane.local_address()?)),
            wakes: plane.as_fd().as_raw_fd(),
            plane: Box::new(plane),
        });
    }
    Ok(OpenPlanes { planes, runs })
}

/// One that answers memcached clients, and whose packets come by a receive queue of its own, if that was
/// asked for.
fn steered(
    mut plane: XdpPlane,
    memcached: Option<UdpSocket>,
    queue: Option<u32>,
) -> Result<XdpPlane, Refused> {
    if let Some(socket) = memcached {
        plane.serve_memcached(socket)?;
    }
    if let Some(queue) = queue {
        plane.steer(queue)?;
    }
    Ok(plane)
}

/// Which option has to be another one.
fn blamed(kind_options: &KindOptions<'_>, blames: Blames) -> String {
    let option = match blames {
        Blames::Interface => INTERFACE,
        Blames::Address => kind_options.listen_option,
        Blames::Queue => QUEUE,
        Blames::Mode => MODE,
        Blames::Copies => COPIES,
        Blames::Multicast => MULTICAST,
        Blames::System => return "plane: xdp cannot run here".to_owned(),
    };
    match kind_options.values.text(option) {
        Some(given) => format!("{option}: {given}"),
        None if blames == Blames::Interface || blames == Blames::Address => {
            format!("{}: {}", kind_options.listen_option, kind_options.listen)
        }
        None => option.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(given: &[(&'static str, &str)]) -> Values {
        given
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect()
    }

    fn kind_options<'a>(demand: Demand, listen: &str, values: &'a Values) -> KindOptions<'a> {
        let listen = listen.parse().expect("an address");
        KindOptions {
            demand,
            listen,
            listen_option: "listen-plane",
            values,
        }
    }

    /// The option that is refused.
    fn refused(
        demand: Demand,
        listen: &str,
        given: &[(&'static str, &str)],
    ) -> Option<&'static str> {
        let values = values(given);
        check(&kind_options(demand, listen, &values))
            .err()
            .map(|it| it.option)
    }

    #[test]
    fn options_say_how_the_interface_is_used() {
        assert_eq!(attachment(&Values::default()), Attachment::default());
        let given = values(&[
            (MODE, "generic"),
            (COPIES, "clone"),
            (MULTICAST, "239.1.2.3"),
            (VLAN, "4094"),
        ]);
        let wanted = Attachment {
            mode: XdpMode::Generic,
            copies: XdpCopies::Clone,
            multicast: Some([239, 1, 2, 3].into()),
            vlan: VLAN_MAX,
            lock: XdpLock::Fit,
        };
        assert_eq!(attachment(&given), wanted);
        for option in OPTIONS {
            if let (OptionKind::Choice(words), Unset::Value(word)) = (option.kind, option.unset) {
                assert!(words.contains(&word), "{}", option.name);
            }
        }
        assert_eq!(meant(MODES, Some("driver")), XdpMode::Driver);
    }

    #[test]
    fn what_needs_the_plane_is_refused_without() {
        let one = "10.0.0.1:7401";
        let interface = (INTERFACE, "eth0");
        for given in [interface, (VLAN, "1"), (QUEUE, "0")] {
            assert_eq!(refused(Demand::No, one, &[given]), Some(given.0));
            for wanted in [Demand::IfPossible, Demand::Yes] {
                assert_eq!(refused(wanted, one, &[given]), None);
            }
        }
        assert_eq!(refused(Demand::No, one, &[(VLAN, "0")]), None);
        assert_eq!(refused(Demand::No, one, &[(MODE, "generic")]), None);
        assert_eq!(refused(Demand::Yes, "0.0.0.0:1", &[]), Some("listen-plane"));
        assert_eq!(refused(Demand::IfPossible, "0.0.0.0:1", &[]), None);
        let group = (MULTICAST, "239.1.2.3");
        assert_eq!(refused(Demand::Yes, one, &[group]), None);
        assert_eq!(refused(Demand::Yes, "[::1]:1", &[group]), Some(MULTICAST));
        assert_eq!(refused(Demand::IfPossible, one, &[group]), Some(MULTICAST));
    }

    #[test]
    fn the_option_in_the_way_is_named_with_what_was_given() {
        let given = values(&[(INTERFACE, "eth0"), (QUEUE, "3"), (MODE, "driver")]);
        let with = kind_options(Demand::Yes, "10.0.0.1:7401", &given);
        let none = Values::default();
        let without = kind_options(Demand::Yes, "10.0.0.1:7401", &none);
        for (blames, option, bare) in [
            (
                Blames::Interface,
                "interface: eth0",
                "listen-plane: 10.0.0.1:7401",
            ),
            (
                Blames::Address,
                "listen-plane: 10.0.0.1:7401",
                "listen-plane: 10.0.0.1:7401",
            ),
            (Blames::Queue, "xdp-queue: 3", "xdp-queue"),
            (Blames::Mode, "xdp-mode: driver", "xdp-mode"),
            (
                Blames::System,
                "plane: xdp cannot run here",
                "plane: xdp cannot run here",
            ),
        ] {
            assert_eq!(blamed(&with, blames), option);
            assert_eq!(blamed(&without, blames), bare);
        }
    }
}
