//! What messages with secrets in them show to people.
use crate::peer::FastTermKey;
use std::fmt;

impl fmt::Debug for FastTermKey {
    /// Shows no key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FastTermKey({} bytes)", self.key.len())
    }
}
