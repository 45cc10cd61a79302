//! Files by HTTP: whole, in parts, and never wrong.

mod common;

use common::{House, key, noise, parts, rot, text};
use ndn_packet::SigningKey;

#[test]
fn a_file_comes_whole_in_parts_and_as_headers() {
    let house = House::open();
    let content = noise(1_000_003);
    let version = house.put("/data/a%20b.bin", &content);
    let whole = house.get("/files/data/a%20b.bin");
    assert_eq!(whole.status, 200);
    assert!(whole.body == content);
    let tag = format!("\"{version}\"");
    assert_eq!(whole.header("etag"), Some(&tag[..]));
    assert_eq!(
        whole.header("content-disposition"),
        Some("attachment; filename=\"a b.bin\"; filename*=UTF-8''a%20b.bin")
    );
    assert_eq!(whole.header("x-content-type-options"), Some("nosniff"));

    let path = format!("/files/data/a%20b.bin/v={version}");
    for (range, from, to) in [
        ("0-0", 0, 1),
        ("7999-8000", 7999, 8001),
        ("123456-654321", 123_456, 654_322),
        ("999999-", 999_999, content.len()),
        ("-5", content.len() - 5, content.len()),
    ] {
        let part = house.ask("GET", &path, &format!("Range: bytes={range}\r\n"));
        assert_eq!(part.status, 206, "{range}");
        assert!(part.body == content[from..to], "{range}");
        let told = format!("bytes {from}-{}/{}", to - 1, content.len());
        assert_eq!(part.header("content-range"), Some(&told[..]));
    }
    let outside = house.ask("GET", &path, "Range: bytes=1000003-\r\n");
    assert_eq!(
        (outside.status, outside.header("content-range")),
        (416, Some("bytes */1000003"))
    );
    let head = house.ask("HEAD", &path, "Range: bytes=10-19\r\n");
    assert_eq!(
        (head.status, head.header("content-length"), head.body.len()),
        (206, Some("10"), 0)
    );
    let known = house.ask("GET", &path, &format!("If-None-Match: \"1\", {tag}\r\n"));
    assert_eq!((known.status, known.body.len()), (304, 0));
    let other = house.ask("GET", &path, "Range: bytes=0-0\r\nIf-Range: \"1\"\r\n");
    assert_eq!((other.status, other.body.len()), (200, content.len()));
    let same = house.ask(
        "GET",
        &path,
        &format!("Range: bytes=0-0\r\nIf-Range: {tag}\r\n"),
    );
    assert_eq!((same.status, same.body.len()), (206, 1));
    let wrong = house.ask("GET", &path, "If-Match: \"1\"\r\n");
    assert_eq!(wrong.status, 412);
}

#[test]
fn an_empty_file_and_an_old_version_come_too() {
    let house = House::open();
    house.put("/data/empty", b"");
    let empty = house.get("/files/data/empty");
    assert_eq!((empty.status, empty.body.len()), (200, 0));
    assert_eq!(empty.header("content-length"), Some("0"));
    let old = house.put("/data/a", b"old");
    house.put("/data/a", b"new");
    assert_eq!(house.get("/files/data/a").body, b"new");
    let path = format!("/files/data/a/v={old}");
    assert_eq!(house.get(&path).body, b"old");
    assert_eq!(house.get("/files/data/a/v=1").status, 404);
    assert_eq!(house.get("/files/data/b").status, 404);
}

#[test]
fn a_page_that_is_a_file_does_not_run() {
    let house = House::open();
    house.put("/data/x.html", b"<script>alert(1)</script>");
    for path in ["/files/data/x.html", "/files/data/x.html?show=1"] {
        let answer = house.get(path);
        assert_eq!(
            answer.header("content-type"),
            Some("text/plain; charset=utf-8")
        );
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.contains("default-src 'none'") && policy.contains("sandbox"));
    }
}

#[test]
fn what_the_disk_has_changed_is_an_error_or_a_cut_and_never_wrong_bytes() {
    let house = House::open();
    let content = noise(3_000_000);
    house.put("/data/late", &content);
    rot(&house.content_file(3_000_000), 2_000_000);
    let late = house.get("/files/data/late?download=late");
    assert_eq!(late.status, 200);
    assert_eq!(late.header("content-length"), Some("3000000"));
    assert!(late.body.len() <= 2_000_000 && !late.body.is_empty());
    assert!(late.body == content[..late.body.len()]);
    assert_eq!(house.json("/api/download?id=early")["state"], "none");
    let told = house.json("/api/download?id=late");
    assert_eq!(told["state"], "failed");

    house.put("/data/early", &content[..20_000]);
    rot(&house.content_file(20_000), 3);
    let early = house.get("/files/data/early");
    assert_eq!(early.status, 500);
    assert!(text(&early.body).contains("is not what was put there"));
    // What is whole before and after is given out.
    let part = house.ask("GET", "/files/data/early", "Range: bytes=8000-\r\n");
    assert_eq!(
        (part.status, part.body == content[8000..20_000]),
        (206, true)
    );
    assert_eq!(house.repo.status().expect("read").damaged_answers, 2);
}

#[test]
fn a_changed_manifest_is_found_before_anything_is_sent() {
    let house = House::open();
    house.put("/data/a", &noise(100_000));
    let manifest = house.manifest_file();
    let len = std::fs::metadata(&manifest).expect("facts").len() as usize;
    // Wherever it is changed: its head, a digest, its end.
    for at in [1, len / 2, len - 1] {
        rot(&manifest, at);
        let folder = house.folder.path().to_owned();
        let (fresh, answer) = ask_fresh(&folder, &house, "/files/data/a");
        assert_eq!(answer.status, 500, "byte {at} of {len}");
        drop(fresh);
        rot(&manifest, at);
    }
    assert_eq!(house.get("/files/data/a").status, 200);
}

/// Asks a server on a copy of the repository's folder, where nothing is remembered.
fn ask_fresh(
    folder: &std::path::Path,
    house: &House,
    path: &str,
) -> (tempfile::TempDir, common::Answer) {
    let copy = tempfile::tempdir().expect("a folder");
    let done = std::process::Command::new("cp")
        .args(["-a", "-T"])
        .args([folder, copy.path()])
        .status()
        .expect("cp");
    assert!(done.success());
    let repo = ndn_repo::Repo::open(copy.path(), key(), &ndn_repo::RepoOptions::default());
    let options = ndn_door::HttpOptions::new(
        "127.0.0.1:0".parse().expect("an address"),
        vec!["/data".parse().expect("a name")],
        house.owner.clone(),
    );
    let server = ndn_door::HttpServer::start(repo.expect("opens"), options).expect("opens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let mut stream = std::net::TcpStream::connect(server.address()).expect("a connection");
    std::io::Write::write_all(&mut stream, request.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut answer).expect("an answer");
    (copy, parts(&answer))
}

#[test]
fn what_another_key_has_signed_is_not_given_out() {
    let (mine, other) = (key(), key());
    let house = House::on(tempfile::tempdir().expect("a folder"), other, |_| {});
    house.put("/data/a", b"theirs");
    assert_eq!(
        house.json("/api/file?name=/data/a")["signature"]["state"],
        "signed"
    );
    let House {
        repo,
        server,
        folder,
        ..
    } = house;
    drop((server, repo));
    let house = House::on(folder, mine, |_| {});
    let answer = house.get("/files/data/a");
    assert_eq!(answer.status, 500);
    assert!(text(&answer.body).contains("not one of the owner's key"));
    let told = house.json("/api/file?name=/data/a");
    assert_eq!(told["signature"]["state"], "refused");
}

#[test]
fn files_without_a_key_say_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let house = House::on(folder, SigningKey::DigestSha256, |_| {});
    house.put("/data/a", b"anyone's");
    let told = house.json("/api/file?name=/data/a");
    assert_eq!(told["signature"]["state"], "digest");
    assert_eq!(house.get("/files/data/a").body, b"anyone's");
}

#[test]
fn a_folder_without_its_last_slash_leads_to_the_page() {
    let house = House::open();
    house.put("/data/a%20b/%0D%0ASet-Cookie:%20x/%3Cscript%3E", b"x");
    house.put("/data/both", b"file");
    house.put("/data/both/below", b"x");
    let empty = "/data/empty".parse().expect("a name");
    house.repo.make_folder(&empty).expect("made");
    // Wherever the client writes a name in its own way, what comes back is the name's URI.
    for (path, slashed) in [
        ("/files/data", "/data/"),
        ("/files/data?q=1&x=%2F", "/data/?q=1&x=%2F"),
        ("/files/data/a%20b?show", "/data/a%20b/?show"),
        ("/files/data?text=grün", "/data/?text=gr%C3%BCn"),
        ("/files/data/%61%20b", "/data/a%20b/"),
        (
            "/files/data/a%20b/%0d%0aSet-Cookie:%20x",
            "/data/a%20b/%0D%0ASet-Cookie%3A%20x/",
        ),
        ("/files/data/empty", "/data/empty/"),
    ] {
        for method in ["GET", "HEAD"] {
            let answer = house.ask(method, path, "");
            assert_eq!(answer.status, 308, "{method} {path}");
            let to = format!("/files{slashed}");
            assert_eq!(answer.header("location"), Some(&to[..]), "{path}");
            assert_eq!(answer.header("set-cookie"), None, "{path}");
            assert_eq!(answer.header("cache-control"), Some("no-store"));
        }
        let folder = slashed.split('?').next().expect("a path");
        let page = house.get(&format!("/files{slashed}"));
        let to = format!("/#{folder}");
        assert_eq!(
            (page.status, page.header("location")),
            (302, Some(&to[..])),
            "{path}"
        );
    }
    // A name that is a file's and a folder's.
    assert_eq!(house.get("/files/data/both").body, b"file");
    assert_eq!(
        house.get("/files/data/both/").header("location"),
        Some("/#/data/both/")
    );
}
