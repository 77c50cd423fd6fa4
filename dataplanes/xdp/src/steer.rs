//! Has the network card bring a group's packets by one receive queue: flow rules for its UDP ports, as
//! `ethtool -N INTERFACE flow-type udp4 dst-port PORT action QUEUE` makes them. They go with what is here;
//! those of a process that was killed are replaced by the next one's.
use crate::ffi::{Question, ask_driver};
use crate::links::Interface;
use crate::refused::{Blames, Refused};
use rustix::net::netdevice::index_to_name;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// Commands of `linux/ethtool.h`.
pub const ETHTOOL_GCHANNELS: u32 = 0x3c;
pub const ETHTOOL_GRXCLSRLCNT: u32 = 0x2e;
pub const ETHTOOL_GRXCLSRULE: u32 = 0x2f;
pub const ETHTOOL_GRXCLSRLALL: u32 = 0x30;
pub const ETHTOOL_SRXCLSRLDEL: u32 = 0x31;
pub const ETHTOOL_SRXCLSRLINS: u32 = 0x32;

/// `struct ethtool_channels`: its size, and where its parts stand.
pub const CHANNELS_BYTES: usize = 36;
const CHANNELS_RECEIVE: usize = 20;
const CHANNELS_BOTH: usize = 32;

/// `struct ethtool_rxnfc`: its size, and where its parts stand. The places of rules follow the number of
/// rules.
pub const RULES_BYTES: usize = 192;
const RULES_DATA: usize = 8;
const RULE_FLOW: usize = 16;
const RULE_VALUES: usize = 20;
const RULE_MASKS: usize = 92;
const RULE_QUEUE: usize = 168;
const RULE_PLACE: usize = 176;
pub const RULES_COUNT: usize = 184;
pub const RULES_PLACES: usize = 188;
/// `union ethtool_flow_union`.
const FLOW_BYTES: usize = 52;
/// Within it, where UDP's destination port stands: `ethtool_tcpip4_spec`, `ethtool_tcpip6_spec`.
const PORT_IPV4: usize = 10;
const PORT_IPV6: usize = 34;
const UDP_V4_FLOW: u32 = 2;
const UDP_V6_FLOW: u32 = 6;
/// The driver finds places for rules by itself; then this stands for one.
const PLACES_FOUND: u64 = 0x8000_0000;
const PLACE_ANY: u32 = u32::MAX;
/// Rules of one card that are looked through.
const RULES_MAX: u32 = 65_536;

/// Whoever can be asked about flow rules.
trait Card {
    /// Replaces a question by its answer.
    fn ask(&self, question: &mut Vec<u8>) -> io::Result<()>;
}

/// The card of an interface.
struct Driver {
    /// In the interface's namespace.
    socket: OwnedFd,
    interface: u32,
}

impl Driver {
    fn of(interface: u32) -> io::Result<Self> {
        let kind = (AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC);
        let socket = socket_with(kind.0, kind.1, kind.2, None)?;
        Ok(Self { socket, interface })
    }
}

impl Card for Driver {
    fn ask(&self, question: &mut Vec<u8>) -> io::Result<()> {
        // It may have another name by now.
        let name = index_to_name(&self.socket, self.interface)?;
        let mut asked = Question::new(question)?;
        ask_driver(self.socket.as_fd(), &name, &mut asked)?;
        *question = asked.bytes();
        Ok(())
    }
}

/// A flow, and the queue it shall come by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Rule {
    is_ipv4: bool,
    /// UDP's destination.
    port: u16,
    queue: u32,
}

impl Rule {
    /// Asks for something that concerns this rule, at a place.
    fn question(self, command: u32, place: u32) -> Vec<u8> {
        let mut bytes = question(command);
        let (flow, port_at) = if self.is_ipv4 {
            (UDP_V4_FLOW, PORT_IPV4)
        } else {
            (UDP_V6_FLOW, PORT_IPV6)
        };
        put(&mut bytes, RULE_FLOW, &flow.to_ne_bytes());
        put(&mut bytes, RULE_VALUES + port_at, &self.port.to_be_bytes());
        put(&mut bytes, RULE_MASKS + port_at, &[0xff; 2]);
        put(&mut bytes, RULE_QUEUE, &u64::from(self.queue).to_ne_bytes());
        put(&mut bytes, RULE_PLACE, &place.to_ne_bytes());
        bytes
    }

    /// Whether a card's rule is for the same flow.
    fn is_for_flow_of(self, answer: &[u8]) -> bool {
        let ours = self.question(ETHTOOL_GRXCLSRULE, 0);
        let masks = RULE_MASKS..RULE_MASKS + FLOW_BYTES;
        // Of what a mask leaves out, a driver may say anything.
        let same_values = masks.clone().all(|at| {
            let value = at - RULE_MASKS + RULE_VALUES;
            answer[value] & answer[at] == ours[value] & ours[at]
        });
        number(answer, RULE_FLOW) == number(&ours, RULE_FLOW)
            && answer[masks.clone()] == ours[masks]
            && same_values
    }
}

fn question(command: u32) -> Vec<u8> {
    let mut bytes = vec![0; RULES_BYTES];
    put(&mut bytes, 0, &command.to_ne_bytes());
    bytes
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    bytes[at..at + what.len()].copy_from_slice(what);
}

/// A number of a question or an answer; 0 if it is cut off before.
pub fn number(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

fn long_number(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

/// The rules that a card has.
struct Table {
    places: Vec<u32>,
    /// Places there are.
    size: u32,
    /// Whether the driver finds a place by itself.
    finds_places: bool,
}

fn table(card: &impl Card) -> io::Result<Table> {
    let mut counted = question(ETHTOOL_GRXCLSRLCNT);
    card.ask(&mut counted)?;
    let count = number(&counted, RULES_COUNT).min(RULES_MAX);
    let mut all = question(ETHTOOL_GRXCLSRLALL);
    put(&mut all, RULES_COUNT, &count.to_ne_bytes());
    all.resize(RULES_BYTES.max(RULES_PLACES + 4 * count as usize), 0);
    card.ask(&mut all)?;
    let listed = number(&all, RULES_COUNT).min(count);
    let place = |rule: u32| number(&all, RULES_PLACES + 4 * rule as usize);
    Ok(Table {
        places: (0..listed).map(place).collect(),
        size: u32::try_from(long_number(&all, RULES_DATA) & 0xffff_ffff).unwrap_or(0),
        finds_places: long_number(&counted, RULES_DATA) & PLACES_FOUND != 0,
    })
}

/// The rule at a place; `None` if there is none.
fn rule_at(card: &impl Card, place: u32) -> io::Result<Option<Vec<u8>>> {
    let mut answer = question(ETHTOOL_GRXCLSRULE);
    put(&mut answer, RULE_PLACE, &place.to_ne_bytes());
    match card.ask(&mut answer) {
        Ok(()) => Ok(Some(answer)),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINVAL)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Puts a rule into the card in place of whatever it has for the same flow; where.
fn install(card: &impl Card, rule: Rule) -> io::Result<u32> {
    let Table {
        mut places,
        size,
        finds_places,
    } = table(card)?;
    let mut left_behind = Vec::new();
    for place in &places {
        if rule_at(card, *place)?.is_some_and(|found| rule.is_for_flow_of(&found)) {
            card.ask(&mut rule.question(ETHTOOL_SRXCLSRLDEL, *place))?;
            left_behind.push(*place);
        }
    }
    places.retain(|place| !left_behind.contains(place));
    let place = if finds_places {
        PLACE_ANY
    } else {
        // The first ones go before the others, so they are left to people.
        let is_free = |place: &u32| !places.contains(place);
        let free = (0..size).rev().find(is_free);
        free.ok_or_else(|| io::Error::other(format!("all its {size} places for rules are taken")))?
    };
    let mut installed = rule.question(ETHTOOL_SRXCLSRLINS, place);
    card.ask(&mut installed)?;
    Ok(number(&installed, RULE_PLACE))
}

/// Takes a rule away, unless another one is in its place.
fn remove(card: &impl Card, rule: Rule, place: u32) -> io::Result<()> {
    match rule_at(card, place)? {
        Some(found)
            if rule.is_for_flow_of(&found)
                && long_number(&found, RULE_QUEUE) == u64::from(rule.queue) =>
        {
            card.ask(&mut rule.question(ETHTOOL_SRXCLSRLDEL, place))
        }
        Some(_) | None => Ok(()),
    }
}

/// Rules in a card, as long as this lives.
struct Rules<C: Card> {
    card: C,
    installed: Vec<(Rule, u32)>,
}

/// Two groups of this process must not find the same free place.
static ONE_AFTER_THE_OTHER: Mutex<()> = Mutex::new(());

impl<C: Card> Rules<C> {
    fn new(card: C, rules: impl Iterator<Item = Rule>) -> io::Result<Self> {
        let _alone = ONE_AFTER_THE_OTHER
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut all = Self {
            card,
            installed: Vec::new(),
        };
        for rule in rules {
            let place = install(&all.card, rule)?;
            all.installed.push((rule, place));
        }
        Ok(all)
    }
}

impl<C: Card> Drop for Rules<C> {
    fn drop(&mut self) {
        for (rule, place) in &self.installed {
            // If the interface is gone, so is the rule; what else is left is replaced by whoever comes next.
            let _ = remove(&self.card, *rule, *place);
        }
    }
}

/// Packets of a group are steered to a receive queue as long as this lives.
pub struct Steering {
    /// None: there is but one queue.
    _rules: Option<Rules<Driver>>,
}

impl Steering {
    /// What comes to these ports from now on. In the interface's namespace.
    pub fn new(
        interface: &Interface,
        ip: IpAddr,
        ports: &[u16],
        queue: u32,
    ) -> Result<Self, Refused> {
        let name = &interface.name;
        let refused = |text| Refused::new(Blames::Queue, text);
        let unasked = |error: io::Error| {
            refused(format!(
                "interface {name} does not say which queues it has: {error}"
            ))
        };
        let driver = Driver::of(interface.index).map_err(unasked)?;
        let queues = receive_queues(&driver, interface).map_err(unasked)?;
        let last = queues.saturating_sub(1);
        if queue > last {
            let (has, allowed) = match queues {
                1 => ("one receive queue".to_owned(), "0".to_owned()),
                _ => (format!("{queues} receive queues"), format!("0 to {last}")),
            };
            let text =
                format!("interface {name} has {has}; allowed: {allowed}, or none, for any queue");
            return Err(refused(text));
        }
        if queues == 1 {
            return Ok(Self { _rules: None });
        }
        let rules = ports.iter().map(|port| Rule {
            is_ipv4: ip.is_ipv4(),
            port: *port,
            queue,
        });
        let rules = Rules::new(driver, rules).map_err(|error| {
            let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
            refused(format!(
                "interface {name} does not take the rule that brings UDP port {} by one of its {queues} receive \
                 queues: {error}; its network card must be able to, and be told to: ethtool -K {name} ntuple on; \
                 allowed: 0 to {last} where it is, or none, for any queue",
                ports.join(" and ")
            ))
        })?;
        Ok(Self {
            _rules: Some(rules),
        })
    }
}

/// How many receive queues are in use.
fn receive_queues(driver: &Driver, interface: &Interface) -> io::Result<u32> {
    let mut channels = vec![0; CHANNELS_BYTES];
    put(&mut channels, 0, &ETHTOOL_GCHANNELS.to_ne_bytes());
    match driver.ask(&mut channels) {
        Ok(()) => Ok(number(&channels, CHANNELS_RECEIVE) + number(&channels, CHANNELS_BOTH)),
        // Then they cannot be changed.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            Ok(interface.receive_queues)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::rc::Rc;

    const RULE: Rule = Rule {
        is_ipv4: true,
        port: 7401,
        queue: 3,
    };

    /// A card that holds rules as drivers do.
    #[derive(Clone, Default)]
    struct Fake {
        rules: Rc<RefCell<BTreeMap<u32, Vec<u8>>>>,
        size: u32,
        finds_places: bool,
        /// What it says of bytes that no mask covers.
        noise: u8,
        refuses: Option<i32>,
    }

    impl Fake {
        fn with(places: impl IntoIterator<Item = (u32, Rule)>) -> Self {
            let fake = Self {
                size: 8,
                ..Self::default()
            };
            for (place, rule) in places {
                let bytes = rule.question(ETHTOOL_SRXCLSRLINS, place);
                fake.rules.borrow_mut().insert(place, bytes);
            }
            fake
        }

        fn has(&self) -> Vec<(u32, u64)> {
            let rules = self.rules.borrow();
            let queue = |rule: &Vec<u8>| long_number(rule, RULE_QUEUE);
            rules
                .iter()
                .map(|(place, rule)| (*place, queue(rule)))
                .collect()
        }
    }

    impl Card for Fake {
        fn ask(&self, question: &mut Vec<u8>) -> io::Result<()> {
            let mut rules = self.rules.borrow_mut();
            let place = number(question, RULE_PLACE);
            let count = u32::try_from(rules.len()).unwrap();
            match (number(question, 0), self.refuses) {
                (_, Some(error)) => return Err(io::Error::from_raw_os_error(error)),
                (ETHTOOL_GRXCLSRLCNT, _) => {
                    put(question, RULES_COUNT, &count.to_ne_bytes());
                    let data = u64::from(self.size) | u64::from(self.finds_places) << 31;
                    put(question, RULES_DATA, &data.to_ne_bytes());
                }
                (ETHTOOL_GRXCLSRLALL, _) => {
                    assert_eq!(number(question, RULES_COUNT), count);
                    put(question, RULES_DATA, &u64::from(self.size).to_ne_bytes());
                    for (at, place) in (0..).zip(rules.keys()) {
                        put(question, RULES_PLACES + 4 * at, &place.to_ne_bytes());
                    }
                }
                (ETHTOOL_GRXCLSRULE, _) => {
                    let none = || io::Error::from_raw_os_error(libc::ENOENT);
                    question.clone_from(rules.get(&place).ok_or_else(none)?);
                    for at in 0..FLOW_BYTES {
                        question[RULE_VALUES + at] |= self.noise & !question[RULE_MASKS + at];
                    }
                }
                (ETHTOOL_SRXCLSRLDEL, _) => {
                    assert!(rules.remove(&place).is_some(), "there is one");
                }
                (ETHTOOL_SRXCLSRLINS, _) => {
                    let place = if place == PLACE_ANY {
                        assert!(self.finds_places);
                        (0..self.size)
                            .find(|place| !rules.contains_key(place))
                            .unwrap()
                    } else {
                        assert!(place < self.size);
                        place
                    };
                    put(question, RULE_PLACE, &place.to_ne_bytes());
                    rules.insert(place, question.clone());
                }
                (other, _) => panic!("{other:#x}"),
            }
            Ok(())
        }
    }

    /// The bytes that `ethtool -N eth0 flow-type udp4 dst-port 7401 action 3 loc 5` hands to the kernel, and
    /// those of udp6.
    #[test]
    fn a_rule_is_written_as_the_kernel_reads_it() {
        let is_rule = |rule: Rule, flow: u8, port_at: usize| {
            let bytes = rule.question(ETHTOOL_SRXCLSRLINS, 5);
            let mut expected = vec![0_u8; 192];
            expected[0] = 0x32; // ETHTOOL_SRXCLSRLINS
            expected[16] = flow;
            expected[20 + port_at..22 + port_at].copy_from_slice(&[0x1c, 0xe9]);
            expected[92 + port_at..94 + port_at].copy_from_slice(&[0xff, 0xff]);
            expected[168] = 3; // ring_cookie
            expected[176] = 5; // location
            assert_eq!(bytes, expected);
            assert_eq!(Question::new(&bytes).unwrap().bytes(), bytes);
        };
        is_rule(RULE, 2, 10);
        let ipv6 = Rule {
            is_ipv4: false,
            ..RULE
        };
        is_rule(ipv6, 6, 34);
    }

    /// The kernel writes as much as the command says, not as much as there is room for.
    #[test]
    fn a_question_has_room_for_its_answer() {
        let short = &question(ETHTOOL_GRXCLSRULE)[..RULES_BYTES - 1];
        assert!(Question::new(short).is_err());
        let mut all = question(ETHTOOL_GRXCLSRLALL);
        put(&mut all, RULES_COUNT, &2_u32.to_ne_bytes());
        assert!(Question::new(&all).is_err());
        all.resize(RULES_PLACES + 8, 0);
        assert!(Question::new(&all).is_ok());
        assert!(Question::new(&question(1)).is_err());
    }

    #[test]
    fn rules_come_into_the_card_and_go_again() {
        for finds_places in [false, true] {
            let other = Rule { port: 1, ..RULE };
            let card = Fake {
                finds_places,
                ..Fake::with([(7, other), (0, Rule { port: 2, ..RULE })])
            };
            let rules = [RULE, Rule { port: 5, ..RULE }];
            let rules = Rules::new(card.clone(), rules.into_iter()).unwrap();
            let places = if finds_places { [1, 2] } else { [5, 6] };
            let has: Vec<u32> = card.has().iter().map(|(place, _)| *place).collect();
            assert_eq!(has, [&[0][..], &places, &[7]].concat());
            drop(rules);
            assert_eq!(card.has(), [(0, 3), (7, 3)]);
        }
    }

    /// Of a process that was killed: in the place where the new one goes, or in another one.
    #[test]
    fn a_rule_that_was_left_behind_is_replaced() {
        for place in [2, 7] {
            let left = Rule { queue: 1, ..RULE };
            let ipv6 = Rule {
                is_ipv4: false,
                ..left
            };
            let card = Fake {
                noise: 0xff,
                ..Fake::with([(place, left), (3, ipv6)])
            };
            let rules = Rules::new(card.clone(), [RULE].into_iter()).unwrap();
            assert_eq!(card.has(), [(3, 1), (7, 3)]);
            drop(rules);
            assert_eq!(card.has(), [(3, 1)]);
        }
    }

    #[test]
    fn what_somebody_has_put_in_its_place_stays() {
        let card = Fake::with([]);
        let rules = Rules::new(card.clone(), [RULE].into_iter()).unwrap();
        let theirs = Rule { queue: 1, ..RULE };
        let bytes = theirs.question(ETHTOOL_SRXCLSRLINS, 7);
        card.rules.borrow_mut().insert(7, bytes);
        drop(rules);
        assert_eq!(card.has(), [(7, 1)]);
    }

    #[test]
    fn a_card_that_takes_no_more_leaves_nothing_behind() {
        let card = Fake::with((1..8).map(|place| (place, Rule { port: 1, ..RULE })));
        let before = card.has();
        let rules = [RULE, Rule { port: 5, ..RULE }];
        let refused = Rules::new(card.clone(), rules.into_iter()).err().unwrap();
        assert_eq!(refused.to_string(), "all its 8 places for rules are taken");
        assert_eq!(card.has(), before);
        let none = Fake {
            refuses: Some(libc::EOPNOTSUPP),
            ..Fake::default()
        };
        let refused = Rules::new(none, [RULE].into_iter()).err().unwrap();
        assert_eq!(refused.raw_os_error(), Some(libc::EOPNOTSUPP));
    }
}
