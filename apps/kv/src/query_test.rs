//! A read that is there again from its form is the one that was parsed, whatever its line looks like.
use super::*;
use crate::memcached::{Meta, MetaDebug, MetaKind, Parsed, Request, parse};
use crate::redis::{VERSIONS, Words, find};
use crate::{Keys, seeds};
use rand::RngExt as _;

/// What is asked, as somebody else reads the words of a line of memcached.
fn asked_anew(line: &[u8]) -> Option<memcached::ReadKind<'_>> {
    let start = line.iter().position(|byte| *byte != b' ')?;
    let line = &line[start..];
    let name = line.split(|byte| *byte == b' ').next()?;
    let rest = &line[name.len()..];
    let key_begin = rest.iter().position(|byte| *byte != b' ')?;
    let key = rest[key_begin..].split(|byte| *byte == b' ').next()?;
    let flags = &rest[key_begin + key.len()..];
    Some(match name {
        b"get" | b"gets" => memcached::ReadKind::Items {
            keys: Keys::new(rest)?,
            with_unique: name == b"gets",
        },
        b"mg" => memcached::ReadKind::Meta(Meta::new(MetaKind::Get, key, flags).ok()?),
        b"me" => memcached::ReadKind::Debug(MetaDebug::new(key, flags).ok()?),
        _ => return None,
    })
}

/// Looks at a line in all ways; what it was.
fn check(line: &[u8]) -> &'static str {
    let query = Query::from_line(line);
    let again = Query::of(query.form(), line);
    assert_eq!(again, query, "{}", line.escape_ascii());
    match again {
        Query::Memcached(read) => {
            assert_eq!(
                Some(read.kind()),
                asked_anew(line),
                "{}",
                line.escape_ascii()
            );
            assert_eq!(read.line(), line);
            let mut keys = Vec::new();
            read.for_each_key(|key| keys.push(key.bytes().to_vec()));
            assert_eq!(keys.len(), read.key_count());
            match read.kind() {
                memcached::ReadKind::Items { .. } => "items",
                memcached::ReadKind::Meta(_) => "meta",
                memcached::ReadKind::Debug(_) => "debug",
            }
        }
        Query::Redis(read) => {
            let words = Words::from_text(&line[1..]).unwrap();
            assert_eq!(read.words(), &words);
            assert_eq!(Some(read.resp()), Resp::from_byte(line[0]));
            match read.kind() {
                redis::ReadKind::Command(spec) => {
                    assert_eq!(find(&words), Ok(spec));
                    assert_eq!(read.is_search(), spec.keys.is_empty());
                    "command"
                }
                redis::ReadKind::Versions => {
                    assert_eq!(words.get(0), Some(VERSIONS));
                    "versions"
                }
                redis::ReadKind::Unknown => {
                    assert!(find(&words).is_err());
                    "unknown command"
                }
            }
        }
        Query::NotOfRedis => "not of Redis",
        Query::Nothing => "nothing",
    }
}

#[test]
fn each_kind_of_read_is_there_again() {
    for (line, kind) in [
        (&b"get a"[..], "items"),
        (b"gets  b  a b ", "items"),
        (b"gets", "nothing"),
        (b"mg k", "meta"),
        (b"  mg   k   v  t", "meta"),
        (b"mg aw== b k v O9 q", "meta"),
        (b"mg k C1 F1 D1 J1 I ME", "meta"),
        (b"mg k T1", "nothing"),
        (b"me  k", "debug"),
        (b"me aw==  b", "debug"),
        (b"2*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", "command"),
        (b"3*1\r\n$6\r\ndbsize\r\n", "command"),
        (b"2*02\r\n$3\r\nGET\r\n$1\r\nk\r\n", "not of Redis"),
        (b"2*1\r\n$3\r\nGET\r\n", "unknown command"),
        (b"2*2\r\n$9\r\n\0versions\r\n$1\r\nk\r\n", "versions"),
        (b"2", "not of Redis"),
        (b"", "nothing"),
        (b"set k 0 0 1", "nothing"),
    ] {
        assert_eq!(check(line), kind, "{}", line.escape_ascii());
    }
    assert_eq!(Query::of(QueryForm::default(), b"get a"), Query::Nothing);
    assert!(size_of::<QueryForm>() <= 24);
}

#[test]
fn lines_of_any_words_are_there_again() {
    const NAMES: [&str; 9] = [
        "get",
        "gets",
        "mg",
        "me",
        "set",
        "strlen",
        "dbsize",
        "\0versions",
        "exists",
    ];
    const WORDS: [&str; 16] = [
        "k", "aw==", "b", "v", "t", "q", "O12", "k", "T0", "N1", "s", "C7", "1", "\x01", "longer",
        "R",
    ];
    let mut generator = seeds::generator();
    let mut random = |below: usize| generator.random_range(0..below);
    let mut reached = seeds::Reached::default();
    for _ in 0..50_000 {
        let mut words = vec![NAMES[random(NAMES.len())]];
        words.extend((0..random(6)).map(|_| WORDS[random(WORDS.len())]));
        let mut line = Vec::new();
        if random(2) == 0 {
            for word in &words {
                line.extend_from_slice(word.as_bytes());
                line.resize(line.len() + [1, 1, 1, 2, 5][random(5)], b' ');
            }
            let request = [&line[..], b"\r\n"].concat();
            if let Parsed::Request {
                request: Request::Read(read),
                ..
            } = parse(&request)
            {
                let form = QueryForm::from(read.form());
                assert_eq!(Query::of(form, read.line()), Query::from_line(&line));
            }
        } else {
            line.push([b'2', b'3'][random(2)]);
            redis::reply::array_header(&mut line, words.len());
            for word in &words {
                redis::reply::bulk(&mut line, word.as_bytes());
            }
            if random(8) == 0 {
                line.truncate(random(line.len()));
            }
        }
        reached.count(check(&line));
    }
    let kinds = [
        "items",
        "meta",
        "debug",
        "command",
        "versions",
        "unknown command",
        "not of Redis",
        "nothing",
    ];
    reached.require(100, &kinds);
}
