//! What a replica's program has said and others' have not.
use serde::{Deserialize, Serialize};

/// A part of what a client was told, in which a replica's program differs from others.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct OutputDifference {
    /// Whose program it is.
    pub replica: u16,
    /// In which life of it, 16 hexadecimal digits.
    pub incarnation: String,
    /// More than half of the voters said something else, so it is quarantined; otherwise nobody knows which
    /// is right.
    pub quarantined: bool,
    /// Whether that life is a member still.
    pub is_member: bool,
    /// The client's connection, by its number in the log; 0: datagrams, all in one line.
    pub connection: u64,
    /// The first byte of that part, of all that the client was told and that is compared.
    pub first_byte: u64,
    /// How many bytes it has there; 0: the client was told nothing more.
    pub bytes: u64,
    /// The turn of the program in which that part ended.
    pub turn: u64,
    /// CRC-64 of it, 16 hexadecimal digits.
    pub sum: String,
    /// How many bytes others have there.
    pub others_bytes: u64,
    /// CRC-64 of these.
    pub others_sum: String,
}

impl OutputDifference {
    /// Where it is, for people.
    #[must_use]
    pub fn place(&self) -> String {
        let Self {
            connection,
            first_byte,
            turn,
            ..
        } = self;
        let bytes = self.bytes.max(self.others_bytes);
        let last = first_byte + bytes.saturating_sub(1);
        let whom = match connection {
            0 => "datagrams".to_owned(),
            number => format!("connection {number}"),
        };
        format!("{whom}, bytes {first_byte} to {last}, turn {turn}")
    }
}
