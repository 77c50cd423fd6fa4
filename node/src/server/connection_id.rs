//! The name of a client's connection, for whoever holds none.

/// Names a connection; never used again.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[cfg_attr(test, derive(Default))]
pub struct ConnectionId {
    /// Where among those that are open.
    pub place: u32,
    pub serial: u32,
}

impl ConnectionId {
    #[cfg(test)]
    pub const fn new(place: u32, serial: u32) -> Self {
        Self { place, serial }
    }

    /// A number for people; 1 at least.
    pub fn number(self) -> i64 {
        i64::from(self.serial) + 1
    }
}
