//! Clients that mean no good, or are broken: told off, cut off, and no burden to others.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use common::{House, noise, parts, text, until};

#[test]
fn no_path_leads_out_of_what_is_served() {
    let house = House::open();
    house.put("/data/a", b"served");
    house.put("/private/a", b"not served");
    for path in [
        "/files/private/a",
        "/files/data/../private/a",
        "/files/data/%2e%2e/private/a",
        "/files/data%2F..%2Fprivate/a",
        "/files/../../etc/passwd",
        "/files/%2e%2e/%2e%2e/etc/passwd",
        "/files//etc/passwd",
        "/files/data/..%5C..%5Cowner.key",
        "/files/",
        "/files//",
        "/files///evil.example/",
        "/files/data/a/",
        "/files/data/none/",
        "/files/private",
        "/files/private/",
        "/files/data/../private/",
        "/files/data/v=1/",
        "/files",
        "/filesdata/a",
        "/files/data/a/v=",
        "/files/data/a/v=18446744073709551616",
        "/files/data/a/v=-1",
        "/files/data/a/seg=0",
        "/files/data/%",
        "/files/data/%zz",
        "/files/data/sha256digest=00",
        "/page/../page.rs",
        "/../Cargo.toml",
        "/api/",
        "/api/nothing",
        "/api/list",
        "/api/list?folder=",
        "/api/list?folder=/private",
        "/api/list?folder=/data&after=f../x",
        "/api/list?folder=/data&after=%C3%A9",
        "/api/list?folder=/data&after=",
        "/api/search?under=/private&text=a",
        "/api/search?under=/data&text=",
        "/api/search?under=/data&text=a&after=/private/x",
        "/api/versions?name=/private/a",
        "/api/versions?name=/data/a&before=x",
        "/api/file?name=/private/a",
        "/api/file?name=/data/a&version=x",
        "/api/download?id=%00",
    ] {
        let answer = house.get(path);
        assert!(
            [400, 404].contains(&answer.status),
            "{path}: {}",
            answer.status
        );
        let said = text(&answer.body);
        assert!(
            !said.contains("not served\0") && !said.contains("root:"),
            "{path}"
        );
        assert!(!answer.body.ends_with(b"not served"), "{path}");
    }
    assert_eq!(house.get("/files/data/a").body, b"served");
}

#[test]
fn names_of_others_and_their_pages_are_refused() {
    let house = House::open_with(|options| options.hosts.push(String::from("repo.example")));
    house.put("/data/a", b"served");
    let by = |host: &str, more: &str| {
        let request =
            format!("GET /files/data/a HTTP/1.1\r\n{host}Connection: close\r\n{more}\r\n");
        parts(&house.raw(request.as_bytes())).status
    };
    for (host, status) in [
        ("Host: localhost:1\r\n", 200),
        ("Host: repo.example\r\n", 200),
        ("Host: evil.example\r\n", 421),
        ("Host: 127.0.0.1.evil.example\r\n", 421),
        ("Host: localhost\r\nHost: evil.example\r\n", 421),
        ("Host: \r\n", 421),
        ("", 421),
    ] {
        assert_eq!(by(host, ""), status, "{host:?}");
    }
    let cross = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n";
    assert_eq!(by("Host: localhost\r\n", cross), 403);
}

#[test]
fn other_methods_than_get_and_head_are_refused() {
    let house = House::open();
    house.put("/data/a", b"served");
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        let answer = house.ask(method, "/files/data/a", "Content-Length: 0\r\n");
        assert_eq!(answer.status, 405, "{method}");
    }
    // A body without end is not waited for.
    let mut stream = house.connect();
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(parts(&answer).status, 405);
}

#[test]
fn heads_without_end_or_sense_are_cut_off() {
    let house = House::open();
    house.put("/data/a", b"served");
    let long = format!(
        "GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "x".repeat(100_000)
    );
    let wide = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
        "X-Y: z\r\n".repeat(1000)
    );
    let deep = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "y".repeat(1_000_000)
    );
    for request in [
        long.as_bytes(),
        wide.as_bytes(),
        deep.as_bytes(),
        b"\0\0\0\0\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx",
        b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n",
        &noise(50_000),
    ] {
        let answer = house.raw(request);
        let said = text(&answer[..answer.len().min(40)]);
        assert!(
            answer.is_empty() || said.starts_with("HTTP/1.1 4"),
            "{:?}: {said}",
            text(&request[..request.len().min(40)])
        );
    }
    assert_eq!(house.get("/files/data/a").body, b"served");
}

#[test]
fn who_says_nothing_loses_its_place_to_who_waits() {
    let house = House::open_with(|options| {
        options.max_connections = 2;
        options.head_patience = Duration::from_millis(200);
    });
    house.put("/data/a", b"served");
    let mut idle: Vec<TcpStream> = (0..2).map(|_| house.connect()).collect();
    idle[1]
        .write_all(b"GET / HTTP/1.1\r\nHost: loc")
        .expect("sent");
    // The third waits for a place, and gets one.
    assert_eq!(house.get("/files/data/a").body, b"served");
    for stream in &mut idle {
        let mut rest = Vec::new();
        // Closed, or reset: over.
        let _ = stream.read_to_end(&mut rest);
        assert!(!text(&rest).contains("200 OK"));
    }
    // A connection that is kept is not kept for ever.
    let mut kept = house.connect();
    kept.write_all(b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .expect("sent");
    let mut all = Vec::new();
    kept.read_to_end(&mut all).expect("closed in order");
    assert!(text(&all).starts_with("HTTP/1.1 200"));
}

#[test]
fn a_reader_that_takes_nothing_is_given_up() {
    let house = House::open_with(|options| {
        options.max_connections = 2;
        options.stall_patience = Duration::from_millis(200);
    });
    // More than sockets hold.
    house.put("/data/big", &noise(40_000_000));
    let mut stream = house.connect();
    let request = "GET /files/data/big?download=x HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("sent");
    let state = || {
        let answer = house.get("/api/download?id=x");
        (answer.status == 200).then(|| answer.json()["state"].clone())
    };
    until(|| state().is_some_and(|state| state == "stopped"));
    drop(stream);
}

#[test]
fn a_stopped_server_answers_nobody() {
    let house = House::open();
    let address = house.address();
    let _idle = house.connect();
    let House { server, .. } = house;
    drop(server);
    assert!(TcpStream::connect(address).is_err());
}
