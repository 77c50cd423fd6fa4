//! What libbpf says about programs and maps that the kernel does not take: on standard error, unless it is
//! taken.
use libbpf_rs::{PrintLevel, set_print};
use std::sync::OnceLock;

static TAKES: OnceLock<fn(&str)> = OnceLock::new();

/// From now on this is told instead of standard error, whose reader libbpf would wait for. The first call
/// counts.
pub fn take_complaints(takes: fn(&str)) {
    TAKES.get_or_init(|| takes);
    set_print(Some((PrintLevel::Info, hand_on)));
}

#[allow(clippy::needless_pass_by_value)] // as libbpf-rs has it
fn hand_on(_: PrintLevel, complaint: String) {
    if let Some(takes) = TAKES.get() {
        takes(&format!("libbpf: {}", complaint.trim_end()));
    }
}
