//! The bytes of commands, typed by hand, and what is none.
use super::*;
use crate::KEY_BYTES_MAX;

fn key(bytes: &[u8]) -> Key<'_> {
    Key::new(bytes).unwrap()
}

fn written() -> Written<'static> {
    let exptime = Exptime(-2);
    Written {
        key: key(b"ab"),
        flags: 0x0102_0304,
        exptime,
        value: b"xyz",
    }
}

fn keys(text: &[u8]) -> Keys<'_> {
    Keys::new(text).unwrap()
}

/// Typed by hand, likewise.
fn golden_memory() -> Vec<(Command<'static>, &'static [u8])> {
    vec![
        (
            Command::Memory(MemoryChange::default()),
            b"\x10\0\0\0\0\0\0\0\0\0",
        ),
        (
            Command::Memory(MemoryChange {
                if_never_set: true,
                limit_bytes: Some(0x0102),
                policy: Some(MemoryPolicy::Evict),
                for_redis: true,
            }),
            b"\x10\x1f\0\0\0\0\0\0\x01\x02",
        ),
        (
            Command::Memory(MemoryChange {
                policy: Some(MemoryPolicy::Refuse),
                ..MemoryChange::default()
            }),
            b"\x10\x04\0\0\0\0\0\0\0\0",
        ),
    ]
}

/// Typed by hand from the layout at the top of this file.
fn golden() -> Vec<(Command<'static>, &'static [u8])> {
    let exptime = Exptime(0x0a0b);
    vec![
        (
            Command::Set(written()),
            b"\x11\x02\x01\x02\x03\x04\xff\xff\xff\xff\xff\xff\xff\xfeabxyz",
        ),
        (
            Command::Add(written()),
            b"\x12\x02\x01\x02\x03\x04\xff\xff\xff\xff\xff\xff\xff\xfeabxyz",
        ),
        (
            Command::Replace(written()),
            b"\x13\x02\x01\x02\x03\x04\xff\xff\xff\xff\xff\xff\xff\xfeabxyz",
        ),
        (
            Command::Cas {
                item: written(),
                unique: 0x0506,
            },
            b"\x14\x02\x01\x02\x03\x04\xff\xff\xff\xff\xff\xff\xff\xfe\
              \x00\x00\x00\x00\x00\x00\x05\x06abxyz",
        ),
        (
            Command::Append {
                key: key(b"ab"),
                value: b"xyz",
            },
            b"\x15\x02abxyz",
        ),
        (
            Command::Prepend {
                key: key(b"ab"),
                value: b"",
            },
            b"\x16\x02ab",
        ),
        (
            Command::Increment {
                key: key(b"n"),
                delta: 258,
            },
            b"\x17\x01\x00\x00\x00\x00\x00\x00\x01\x02n",
        ),
        (
            Command::Decrement {
                key: key(b"n"),
                delta: u64::MAX,
            },
            b"\x18\x01\xff\xff\xff\xff\xff\xff\xff\xffn",
        ),
        (
            Command::Touch {
                key: key(b"k"),
                exptime,
            },
            b"\x19\x01\x00\x00\x00\x00\x00\x00\x0a\x0bk",
        ),
        (Command::Delete { key: key(b"k") }, b"\x1a\x01k"),
        (
            Command::GetAndTouch {
                keys: keys(b" a b"),
                exptime,
                with_unique: false,
            },
            b"\x1b\x00\x00\x00\x00\x00\x00\x0a\x0b a b",
        ),
        (
            Command::GetAndTouch {
                keys: keys(b""),
                exptime,
                with_unique: true,
            },
            b"\x1c\x00\x00\x00\x00\x00\x00\x0a\x0b",
        ),
        (
            Command::FlushAll { delay: Exptime(1) },
            b"\x1d\x00\x00\x00\x00\x00\x00\x00\x01",
        ),
        (
            Command::Meta {
                meta: Meta::new(MetaKind::Set, b"ab", b" T5  Oq c").unwrap(),
                value: b"xyz",
            },
            b"\x1e\x02\x02\x00\x09ab T5  Oq cxyz",
        ),
        (
            Command::Meta {
                meta: Meta::new(MetaKind::Delete, b"YWI=", b"b").unwrap(),
                value: b"",
            },
            b"\x1e\x03\x04\x00\x01YWI=b",
        ),
    ]
}

#[test]
fn commands_are_the_bytes_typed_by_hand() {
    for (command, bytes) in golden().into_iter().chain(golden_memory()) {
        let mut encoded = Vec::new();
        command.encode(&mut encoded);
        assert_eq!(encoded, bytes, "{command:?}");
        assert_eq!(command.encoded_bytes(), bytes.len(), "{command:?}");
        assert_eq!(Command::decode(bytes), Ok(command));
    }
}

#[test]
fn the_log_carries_keys_of_any_bytes() {
    for name in [&b""[..], b" ", b"\0\r\n\x7f", &[0xff; KEY_BYTES_MAX]] {
        let command = Command::Delete {
            key: Key::binary(name).unwrap(),
        };
        let mut encoded = Vec::new();
        command.encode(&mut encoded);
        assert_eq!(Command::decode(&encoded), Ok(command));
    }
}

#[test]
fn whatever_is_cut_short_is_refused_unless_it_ends_in_free_bytes() {
    for (command, bytes) in golden().into_iter().chain(golden_memory()) {
        for end in 0..bytes.len() {
            let Ok(shorter) = Command::decode(&bytes[..end]) else {
                continue;
            };
            let mut encoded = Vec::new();
            shorter.encode(&mut encoded);
            assert_eq!(encoded, &bytes[..end], "{command:?} cut at {end}");
        }
    }
    assert_eq!(Command::decode(b""), Err(DecodeError::Truncated));
    assert_eq!(Command::decode(b"\x1a"), Err(DecodeError::Truncated));
    assert_eq!(Command::decode(b"\x1a\x02k"), Err(DecodeError::Truncated));
    assert_eq!(
        Command::decode(b"\x1d\0\0\0\0\0\0\0"),
        Err(DecodeError::Truncated)
    );
}

#[test]
fn what_is_no_command_is_refused_by_name() {
    assert_eq!(
        Command::decode(b"\x2a\x01k"),
        Err(DecodeError::Format(0x2a))
    );
    assert_eq!(
        Command::decode(b"\x0a\x01k"),
        Err(DecodeError::Format(0x0a))
    );
    for memory in [
        &b"\x10\x20\0\0\0\0\0\0\0\0"[..],
        b"\x10\x08\0\0\0\0\0\0\0\0",
        b"\x10\x00\0\0\0\0\0\0\0\x01",
    ] {
        assert_eq!(Command::decode(memory), Err(DecodeError::Memory));
    }
    assert_eq!(Command::decode(b"\x1e"), Err(DecodeError::Truncated));
    for meta in [
        &b"\x1e\x00\x01\x00\x00k"[..],
        b"\x1e\x05\x01\x00\x00k",
        b"\x1e\x03\x00\x00\x00",
        b"\x1e\x03\x01\x00\x01kb",
        b"\x1e\x03\x01\x00\x01kS",
    ] {
        assert_eq!(Command::decode(meta), Err(DecodeError::Meta));
    }
    assert_eq!(
        Command::decode(b"\x1e\x03\x01\x00\x00kx"),
        Err(DecodeError::Trailing)
    );
    assert_eq!(
        Command::decode(b"\x1e\x02\x01\x08\x01k"),
        Err(DecodeError::Length)
    );
    assert_eq!(Command::decode(b"\x1a\x01kk"), Err(DecodeError::Trailing));
    let mut long_key = vec![0x1a, 251];
    long_key.extend([b'k'; KEY_BYTES_MAX + 1]);
    assert_eq!(Command::decode(&long_key), Err(DecodeError::Key));
    let mut gat = b"\x1b\0\0\0\0\0\0\0\0".to_vec();
    gat.extend([b'k'; KEY_BYTES_MAX + 1]);
    assert_eq!(Command::decode(&gat), Err(DecodeError::Key));
}

#[test]
fn the_longest_command_fits_and_one_byte_more_does_not() {
    let longest_key = [b'k'; KEY_BYTES_MAX];
    let longest_flags = [b'P'; COMMAND_LINE_BYTES_MAX - KEY_BYTES_MAX];
    let value = vec![b'v'; VALUE_BYTES_MAX + 1];
    for (value_bytes, fits) in [(VALUE_BYTES_MAX, true), (VALUE_BYTES_MAX + 1, false)] {
        let value = &value[..value_bytes];
        let meta = Meta::new(MetaKind::Set, &longest_key, &longest_flags).unwrap();
        let command = Command::Meta { meta, value };
        let mut encoded = Vec::new();
        command.encode(&mut encoded);
        assert_eq!(encoded.len() <= COMMAND_BYTES_MAX, fits);
        assert_eq!(Command::decode(&encoded).is_ok(), fits);
    }
    let mut append = b"\x15\x01k".to_vec();
    append.extend_from_slice(&value);
    assert_eq!(Command::decode(&append), Err(DecodeError::Length));
}
