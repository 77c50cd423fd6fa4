//! What becomes of a client's bytes that are looked at.

/// What became of the first of the bytes that a client has sent.
pub enum TakeOutcome {
    /// So many are done with.
    Bytes(usize),
    /// So many are, and so many must be there behind them before it is worth looking again.
    Waits { used: usize, needed: usize },
    /// They are a request that can go nowhere now, and must be offered again.
    Stalled,
}
