//! What the page's port takes, from whom, and what it refuses.
use super::*;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn headers(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
    let pairs = pairs.iter();
    pairs.fold(HeaderMap::new(), |mut headers, (name, value)| {
        headers.append(name, value.parse().expect("a value"));
        headers
    })
}

#[test]
fn only_the_whole_token_is_taken() {
    for path in ["", "/state", "/x"] {
        assert!(has_token(&format!("/{TOKEN}{path}"), TOKEN), "{path}");
    }
    let short = &TOKEN[1..];
    for path in [
        "",
        "/",
        "//",
        TOKEN,
        &format!("/{short}/"),
        &format!("/{TOKEN}0/"),
        &format!("/{}/", TOKEN.to_uppercase()),
        &format!("/state/{TOKEN}/"),
        &format!("/?/{TOKEN}/"),
    ] {
        assert!(!has_token(path, TOKEN), "{path}");
    }
}

#[test]
fn only_loopback_may_be_asked_and_only_by_its_own_page() {
    use header::{HOST, ORIGIN};
    for good in [
        &[(HOST, "127.0.0.1:8080")][..],
        &[(HOST, "LocalHost:8080")],
        &[(HOST, "localhost")],
        &[(HOST, "127.0.0.1:1"), (ORIGIN, "http://127.0.0.1:1")],
    ] {
        assert_eq!(asked_from(&headers(good)), Ok(()), "{good:?}");
    }
    for bad in [
        &[][..],
        &[(HOST, "evil.example:8080")],
        &[(HOST, "127.0.0.1.evil.example")],
        &[(HOST, "localhost:99999")],
        &[(HOST, "127.0.0.1:1"), (HOST, "evil.example")],
        &[(HOST, "127.0.0.1:1"), (ORIGIN, "http://127.0.0.1:2")],
        &[(HOST, "127.0.0.1:1"), (ORIGIN, "https://127.0.0.1:1")],
        &[(HOST, "127.0.0.1:1"), (ORIGIN, "null")],
        &[(HOST, "127.0.0.1:1"), (ORIGIN, "http://evil.example")],
    ] {
        let refused = asked_from(&headers(bad)).map_err(|it| it.status);
        assert_eq!(refused, Err(StatusCode::FORBIDDEN), "{bad:?}");
    }
}

/// The status of an answer, and its body.
fn told(address: &str, request: &str) -> (u16, String) {
    let parts: Vec<_> = address.split('/').collect();
    let (host, token) = (parts[2], parts[3]);
    let mut stream = TcpStream::connect(host).expect("it listens");
    let request = request
        .replace("TOKEN", token)
        .replace("HOST", host)
        .replace('\n', "\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).expect("a status");
    (status.parse().expect("a number"), body.to_owned())
}

fn post(path: &str, body: &str) -> String {
    format!(
        "POST /TOKEN/{path} HTTP/1.1\nhost: HOST\ncontent-type: application/json\ncontent-length: {}\n\n{body}",
        body.len()
    )
}

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    let page = Page::open(0).expect("a port");
    page.show("{\"shown\":1}".to_owned());
    let long = "k".repeat(KEY_BYTES_MAX + 1);
    let much = format!(
        "{{\"host\":0,\"key\":\"a\",\"value\":\"{}\"}}",
        "v".repeat(BODY_BYTES_MAX)
    );
    for (request, status, part) in [
        (
            "GET /TOKEN/ HTTP/1.1\nhost: HOST\n\n".to_owned(),
            200,
            "<title>",
        ),
        (
            "GET /TOKEN/page.js HTTP/1.1\nhost: HOST\n\n".to_owned(),
            200,
            "use strict",
        ),
        (
            "GET /TOKEN/state HTTP/1.1\nhost: HOST\n\n".to_owned(),
            200,
            "shown",
        ),
        ("GET / HTTP/1.1\nhost: HOST\n\n".to_owned(), 403, "address"),
        (
            "GET /TOKEN/ HTTP/1.1\nhost: evil.example\n\n".to_owned(),
            403,
            "localhost",
        ),
        (
            "GET /TOKEN/nothing HTTP/1.1\nhost: HOST\n\n".to_owned(),
            404,
            "no such path",
        ),
        (
            "GET /TOKEN/put HTTP/1.1\nhost: HOST\n\n".to_owned(),
            405,
            "POST",
        ),
        (
            "POST /TOKEN/state HTTP/1.1\nhost: HOST\n\n".to_owned(),
            405,
            "GET",
        ),
        (post("put", "{}"), 422, "host"),
        (post("put", "{"), 400, "JSON"),
        (post("put", &much), 413, "length limit"),
        (
            post("put", "{\"host\":0,\"key\":\"\",\"value\":\"\"}"),
            400,
            "allowed: 1 to 64",
        ),
        (
            post("get", &format!("{{\"host\":0,\"key\":\"{long}\"}}")),
            400,
            "65 bytes",
        ),
        (post("load", "{\"on\":1}"), 422, "boolean"),
        (
            post("machine", "{\"name\":\"host-0\",\"change\":\"burn\"}"),
            422,
            "join",
        ),
        (
            post("machine", "{\"name\":\"x\",\"change\":\"cut\",\"more\":1}"),
            422,
            "unknown field",
        ),
        (
            post("load", "{\"on\":true}").replace("application/json", "text/plain"),
            415,
            "content-type",
        ),
        (
            post("load", "{\"on\":true}").replace("TOKEN", "token"),
            403,
            "address",
        ),
        (
            post("load", "{\"on\":true}").replace("host: HOST", "host: HOST\norigin: http://a"),
            403,
            "other web pages",
        ),
    ] {
        let (found, said) = told(page.address(), &request);
        assert!(
            found == status && said.to_lowercase().contains(&part.to_lowercase()),
            "{request}: {found}: {said}"
        );
    }
    assert!(
        page.next_within(Duration::ZERO).is_none(),
        "nothing was handed on"
    );
}

#[test]
fn what_makes_sense_is_handed_on_and_answered() {
    let page = Page::open(0).expect("a port");
    let request = post("machine", "{\"name\":\"acceptor-1\",\"change\":\"cut\"}");
    std::thread::scope(|scope| {
        let address = page.address();
        let asking = scope.spawn(|| told(address, &request));
        let asked = page.next_within(Duration::from_secs(10)).expect("it comes");
        let (name, change) = ("acceptor-1".to_owned(), Change::Cut);
        assert_eq!(asked.request, Request::Machine { name, change });
        asked
            .answer
            .send(Err(Refusal::conflict("not now".to_owned())))
            .ok();
        let (status, said) = asking.join().expect("no panic");
        assert!(
            status == 409 && said.contains("not now"),
            "{status}: {said}"
        );
    });
}
