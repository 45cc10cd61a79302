//! Lists, searches and facts as JSON: in pages, whatever the names are.

mod common;

use common::House;
use serde_json::Value;

/// All pages of a list, and how many there were.
fn all(house: &House, question: &str, cursor: &str) -> (Vec<Value>, usize) {
    let (mut entries, mut pages) = (Vec::new(), 0);
    let mut after = String::new();
    loop {
        let page = house.json(&format!("{question}{after}"));
        entries.extend(page["entries"].as_array().expect("entries").clone());
        pages += 1;
        let Some(next) = page["next"].as_str() else {
            return (entries, pages);
        };
        let next: String = next.bytes().map(|b| format!("%{b:02X}")).collect();
        after = format!("&{cursor}={next}");
    }
}

#[test]
fn a_large_folder_comes_in_pages_and_nothing_is_left_out() {
    let house = House::open();
    let names: Vec<String> = (0..1234).map(|n| format!("/data/many/file-{n}")).collect();
    house.put_all(&names, b"x");
    house.put("/data/many/sub/file-1", b"x");
    // A name that is a file's and a folder's.
    house.put("/data/many/sub", b"x");
    let (entries, pages) = all(&house, "/api/list?folder=/data/many&limit=100", "after");
    assert_eq!(pages, 13);
    let mut seen: Vec<&str> = entries
        .iter()
        .filter(|e| e["folder"].is_null())
        .map(|e| e["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(seen.len(), 1235);
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 1235);
    let folders: Vec<&Value> = entries.iter().filter(|e| !e["folder"].is_null()).collect();
    assert_eq!(folders.len(), 1);
    // However much is asked for, a page has its bound.
    let page = house.json("/api/list?folder=/data/many&limit=999999999");
    assert_eq!(page["entries"].as_array().map(Vec::len), Some(500));
}

#[test]
fn a_search_finds_parts_of_names_in_any_case() {
    let house = House::open();
    house.put_all(
        &[
            "/data/Holiday/Sea.JPG",
            "/data/holiday/hill.jpg",
            "/data/work/sea.txt",
        ],
        b"x",
    );
    house.put("/data/work/sea.txt", b"newer");
    let found = |text: &str| {
        let question = format!("/api/search?under=/data&text={text}&limit=1");
        let (entries, _) = all(&house, &question, "after");
        let mut names: Vec<String> = entries
            .iter()
            .map(|e| format!("{} {}", e["name"].as_str().expect("a name"), e["bytes"]))
            .collect();
        names.sort();
        names
    };
    assert_eq!(
        found("sea"),
        ["/data/Holiday/Sea.JPG 1", "/data/work/sea.txt 5"]
    );
    assert_eq!(
        found("jpg+HOLI"),
        ["/data/Holiday/Sea.JPG 1", "/data/holiday/hill.jpg 1"]
    );
    assert_eq!(found("work%2Fs"), ["/data/work/sea.txt 5"]);
    // What is asked under is no part of what is looked through.
    assert_eq!(found("data"), Vec::<String>::new());
}

#[test]
fn versions_come_the_newest_first() {
    let house = House::open();
    let versions: Vec<String> = (0..7)
        .map(|_| house.put("/data/a", b"x").to_string())
        .collect();
    let (entries, pages) = all(&house, "/api/versions?name=/data/a&limit=3", "before");
    let told: Vec<&str> = entries
        .iter()
        .map(|e| e["version"].as_str().expect("a version"))
        .collect();
    assert!(told.iter().rev().eq(versions.iter()));
    assert_eq!(pages, 3);
}

#[test]
fn hostile_names_stay_names() {
    let house = House::open();
    for name in [
        "/data/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "/data/%22%0D%0ASet-Cookie%3A%20a%3Db",
        "/data/%FF%FE",
        "/data/.....",
        "/data/...",
        "/data/%E2%80%AEgpj.exe",
    ] {
        house.put(name, name.as_bytes());
    }
    let (entries, _) = all(&house, "/api/list?folder=/data", "after");
    assert_eq!(entries.len(), 6);
    for entry in entries {
        let href = entry["href"].as_str().expect("a path");
        assert!(
            href.bytes()
                .all(|b| b.is_ascii_graphic() && !b"<>\"'`\\".contains(&b))
        );
        let answer = house.get(href);
        assert_eq!(answer.status, 200, "{href}");
        assert!(answer.header("set-cookie").is_none());
        let name = entry["name"].as_str().expect("a name");
        assert_eq!(
            answer.body.len() as u64,
            entry["bytes"].as_u64().expect("a number")
        );
        let told = house.json(&format!(
            "/api/file?name={}",
            name.bytes()
                .map(|b| format!("%{b:02X}"))
                .collect::<String>()
        ));
        assert_eq!(told["signature"]["state"], "signed");
    }
}

#[test]
fn the_page_loads_nothing_from_elsewhere() {
    let house = House::open();
    for path in ["/", "/page.css", "/page.js", "/parts.js", "/icon.svg"] {
        let answer = house.get(path);
        assert_eq!(answer.status, 200, "{path}");
        let policy = answer.header("content-security-policy").expect("a policy");
        for right in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(right), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{path}");
        let text = common::text(&answer.body).replace("http://www.w3.org/2000/svg", "");
        assert!(
            !text.contains("http:") && !text.contains("https:"),
            "{path}"
        );
        assert!(!text.contains("innerHTML"), "{path}");
    }
    assert_eq!(house.json("/api/about")["prefixes"][0], "/data");
}
