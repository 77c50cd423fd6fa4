//! How the acceptors of a configuration become a deployment.
//!
//! libpaxos' acceptors simply start: one that has lost what it promised starts like one that has never
//! promised anything. Here that would not do. So a deployment is *founded*, once: acceptor 0 does it when it
//! has heard from all others that they know of none. Each acceptor has a number of its own, drawn before it
//! says anything; the founder's list of them is the deployment's identity, and with it the name, the group
//! and the key of its packets. Whoever knows a deployment tells those that do not. One whose number is in the
//! list has never promised anything, and begins. One whose number is not in it has lost its memory, and has
//! to be let in.
//!
//! Acceptors that keep nothing draw a new number at each start. If all of them are started anew, they found
//! another deployment, and its values begin with 1 again, as with libpaxos.
use crate::evpaxos::frames::Fields;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;

/// What all processes with one configuration agree on.
pub type Tag = [u8; 16];

/// Which deployment.
pub type Identity = [u8; 16];

/// The tag of these acceptors.
pub fn tag_of(acceptors: &[SocketAddr]) -> Tag {
    let mut hash = Sha256::new();
    hash.update(b"quorumwire evpaxos acceptors 1");
    for address in acceptors {
        hash.update(address.to_string());
        hash.update([0]);
    }
    first_16(hash)
}

fn first_16(hash: Sha256) -> [u8; 16] {
    let hash = hash.finalize();
    std::array::from_fn(|place| hash[place])
}

/// A deployment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Founded {
    pub identity: Identity,
    /// The numbers of those that were there, by acceptor.
    pub numbers: Vec<u64>,
}

impl Founded {
    fn of(tag: &Tag, numbers: Vec<u64>) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"quorumwire evpaxos deployment 1");
        hash.update(tag);
        for number in &numbers {
            hash.update(number.to_be_bytes());
        }
        Self {
            identity: first_16(hash),
            numbers,
        }
    }

    /// Its name.
    pub fn name(&self) -> String {
        format!("evpaxos-{:032x}", u128::from_be_bytes(self.identity))
    }
}

/// What an acceptor says of itself.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Standing {
    /// Its own number, which nobody else draws.
    pub number: u64,
    /// The deployment that it knows of.
    pub founded: Option<Founded>,
}

impl Standing {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.number.to_le_bytes().to_vec();
        if let Some(founded) = &self.founded {
            bytes.extend_from_slice(&founded.identity);
            for number in &founded.numbers {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        bytes
    }

    /// Of a configuration with so many acceptors.
    pub fn from_bytes(bytes: &[u8], acceptors: usize) -> io::Result<Self> {
        let mut fields = Fields::of(bytes);
        let number = fields.u64()?;
        let mut founded = None;
        if bytes.len() > 8 {
            let identity = fields.bytes()?;
            let numbers: io::Result<Vec<u64>> = (0..acceptors).map(|_| fields.u64()).collect();
            founded = Some(Founded {
                identity,
                numbers: numbers?,
            });
        }
        fields.end()?;
        Ok(Self { number, founded })
    }
}

/// How an acceptor begins in a deployment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Begins {
    /// It has never promised anything.
    First,
    /// It may have, and does not know it any more.
    Lost,
}

/// What acceptor `me` of so many does, of which `others` have just answered; `None`: it asks again.
pub fn decide(
    tag: &Tag,
    me: usize,
    number: u64,
    acceptors: usize,
    others: &BTreeMap<usize, Standing>,
) -> Option<(Founded, Begins)> {
    // One that has founded a deployment and died may have told somebody, and founded another one then: more
    // know that one.
    let known: Vec<_> = others
        .values()
        .filter_map(|it| it.founded.as_ref())
        .collect();
    let holders = |it: &Founded| known.iter().filter(|other| **other == it).count();
    if let Some(most) = known.iter().copied().max_by_key(|it| holders(it)) {
        let is_in = most.numbers.get(me) == Some(&number);
        let begins = if is_in { Begins::First } else { Begins::Lost };
        return Some((most.clone(), begins));
    }
    if me > 0 || others.len() + 1 < acceptors {
        return None;
    }
    let rest = others.values().map(|it| it.number);
    let numbers = std::iter::once(number).chain(rest).collect();
    Some((Founded::of(tag, numbers), Begins::First))
}

/// What an acceptor with a folder keeps of it there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Record {
    pub standing: Standing,
    /// How its votes' folder is to be made; nothing: it was made.
    pub to_make: Option<Begins>,
}

impl Record {
    /// What stands in this file; nothing, if there is none.
    pub fn load(path: &Path, acceptors: usize) -> io::Result<Option<Self>> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "it is damaged, or of others");
        let (sum, rest) = bytes.split_first_chunk().ok_or_else(wrong)?;
        let (state, standing) = rest.split_first().ok_or_else(wrong)?;
        if u32::from_le_bytes(*sum) != crc32c::crc32c(rest) {
            return Err(wrong());
        }
        let to_make = match state {
            0 => None,
            1 => Some(Begins::First),
            2 => Some(Begins::Lost),
            _ => return Err(wrong()),
        };
        let standing = Standing::from_bytes(standing, acceptors).map_err(|_| wrong())?;
        Ok(Some(Self { standing, to_make }))
    }

    /// Replaces it. Durable when it returns.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let state = match self.to_make {
            None => 0,
            Some(Begins::First) => 1,
            Some(Begins::Lost) => 2,
        };
        let mut rest = vec![state];
        rest.extend(self.standing.to_bytes());
        let aside = path.with_extension("new");
        let mut file = File::create(&aside)?;
        file.write_all(&crc32c::crc32c(&rest).to_le_bytes())?;
        file.write_all(&rest)?;
        file.sync_all()?;
        fs::rename(&aside, path)?;
        match path.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: Tag = [7; 16];

    fn unfounded(numbers: &[(usize, u64)]) -> BTreeMap<usize, Standing> {
        let standing = |number| Standing {
            number,
            founded: None,
        };
        numbers
            .iter()
            .map(|(place, number)| (*place, standing(*number)))
            .collect()
    }

    #[test]
    fn the_first_founds_when_all_know_of_nothing() {
        let some = unfounded(&[(1, 11)]);
        assert_eq!(decide(&TAG, 0, 10, 3, &some), None, "one has not answered");
        let all = unfounded(&[(1, 11), (2, 12)]);
        let (founded, begins) = decide(&TAG, 0, 10, 3, &all).unwrap();
        assert_eq!(begins, Begins::First);
        assert_eq!(founded.numbers, [10, 11, 12]);
        let all_but_it = unfounded(&[(0, 10), (2, 12)]);
        assert_eq!(decide(&TAG, 1, 11, 3, &all_but_it), None, "only one founds");
        assert!(decide(&TAG, 0, 10, 1, &BTreeMap::new()).is_some(), "alone");
    }

    #[test]
    fn who_has_lost_its_number_has_lost_what_it_promised() {
        let mut others = unfounded(&[(1, 11), (2, 12)]);
        let (founded, _) = decide(&TAG, 0, 10, 3, &others).unwrap();
        others = unfounded(&[(1, 99)]);
        let knows = Standing {
            number: 10,
            founded: Some(founded.clone()),
        };
        others.insert(0, knows);
        let second = decide(&TAG, 2, 12, 3, &others);
        assert_eq!(second, Some((founded.clone(), Begins::First)));
        let lost = decide(&TAG, 2, 13, 3, &others);
        assert_eq!(lost, Some((founded.clone(), Begins::Lost)));
        // Also the founder, whoever else may be there.
        let first = decide(&TAG, 0, 14, 3, &others);
        assert_eq!(first, Some((founded, Begins::Lost)));
    }

    #[test]
    fn what_is_kept_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("founding");
        assert_eq!(Record::load(&path, 3).unwrap(), None);
        let all = unfounded(&[(1, 11), (2, 12)]);
        let founded = decide(&TAG, 0, 10, 3, &all).map(|it| it.0);
        for (founded, to_make) in [
            (None, None),
            (founded.clone(), Some(Begins::First)),
            (founded.clone(), Some(Begins::Lost)),
            (founded, None),
        ] {
            let record = Record {
                standing: Standing {
                    number: 10,
                    founded,
                },
                to_make,
            };
            record.save(&path).unwrap();
            assert_eq!(Record::load(&path, 3).unwrap(), Some(record));
        }
        assert!(Record::load(&path, 4).is_err(), "of another configuration");
        let mut bytes = fs::read(&path).unwrap();
        bytes[9] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert!(Record::load(&path, 3).is_err());
    }
}
