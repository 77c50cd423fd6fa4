//! TLS where there is none.
use crate::sparing::Sparing;

static TLS_CAME: Sparing = Sparing::new();

/// A client speaks TLS where there is none. The log says it now and then, whoever comes how often.
pub fn say_tls() {
    if TLS_CAME.says("") {
        tracing::warn!("a client speaks TLS at a port without TLS");
    }
}
