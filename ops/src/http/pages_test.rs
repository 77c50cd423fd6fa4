//! What a host is; who is let in by it is seen over sockets.
use super::{host_of, is_address};

#[test]
fn addresses_are_told_from_names() {
    for (text, host, is_one) in [
        ("127.0.0.1:7480", "127.0.0.1", true),
        ("10.0.0.1", "10.0.0.1", true),
        ("[::1]:7480", "[::1]", true),
        ("[fd00::1]", "[fd00::1]", true),
        ("LocalHost.:80", "localhost", false),
        ("a.example", "a.example", false),
        ("127.0.0.1.example:1", "127.0.0.1.example", false),
        ("1.example", "1.example", false),
        ("127.1", "127.1", false),
    ] {
        assert_eq!(host_of(text).as_deref(), Some(host), "{text}");
        assert_eq!(is_address(host), is_one, "{text}");
    }
    for strange in ["", "a b", "a/b", "[::1"] {
        assert_eq!(host_of(strange), None, "{strange}");
    }
}
