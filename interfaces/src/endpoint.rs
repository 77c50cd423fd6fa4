//! Where a replica's plane is reached. The plane makes it and reads it; nobody else knows what it says.
use std::fmt;

/// Longest endpoint.
pub const ENDPOINT_BYTES_MAX: usize = 256;

/// Where a replica's plane is reached: an address and a port, a key and an address of memory, a device,
/// whatever the plane's kind needs. It is text, which people can read and every message that tells it can
/// carry.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Endpoint(Box<str>);

impl Endpoint {
    /// `None` for an empty text, and for one longer than [`ENDPOINT_BYTES_MAX`].
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        (1..=ENDPOINT_BYTES_MAX)
            .contains(&text.len())
            .then(|| Self(text.into()))
    }

    /// The text.
    #[must_use]
    pub const fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_says_something_and_no_more_than_fits() {
        let longest = "e".repeat(ENDPOINT_BYTES_MAX);
        for text in ["e", "rkey 17 at 0x7f00", &longest] {
            let endpoint = Endpoint::new(text).expect("it fits");
            assert_eq!(endpoint.as_str(), text);
            assert_eq!(endpoint.to_string(), text);
        }
        assert_eq!(Endpoint::new(""), None);
        assert_eq!(Endpoint::new(&format!("{longest}e")), None);
    }
}
