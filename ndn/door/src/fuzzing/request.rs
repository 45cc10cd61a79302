//! Whole requests, to a repository of a few files.

use std::io::Write;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{
    CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, LOCATION, RANGE,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::response::Parts;
use hyper::http::uri::Authority;
use hyper::{Method, Request};
use ndn_packet::{Name, SigningKey};
use ndn_repo::{PutOptions, Repo, RepoOptions};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::chain::Chain;
use crate::downloads::Downloads;
use crate::route::{self, Shared};
use crate::shelf::Shelf;

/// Bytes of each file that is served, and of the one that isn't.
const CONTENT: [u8; 300] = [0xA5; 300];
const PRIVATE: [u8; 300] = [0xC3; 300];
/// All that is ever told.
const STATUSES: [u16; 12] = [200, 206, 302, 304, 308, 400, 403, 404, 405, 412, 416, 421];
/// Bytes of an answer beside what the request says: the page's largest file.
const MAX_ANSWER: usize = 256 << 10;

/// A server without a socket.
pub struct Door {
    shared: Arc<Shared>,
    runtime: Runtime,
}

impl Door {
    /// With its repository in this folder.
    pub fn new(folder: &Path) -> Self {
        let key = SigningKey::hmac_sha256(b"secret");
        let owner = key.verifier();
        let repo = Repo::open(folder, key, &RepoOptions::default()).expect("opens");
        for (name, content) in [
            ("/data/a.txt", &CONTENT),
            ("/data/of/b.pdf", &CONTENT),
            ("/private/a", &PRIVATE),
        ] {
            let options = PutOptions {
                version: Some(7),
                size: Some(content.len() as u64),
                segment_bytes: 100,
                ..PutOptions::default()
            };
            let name: Name = name.parse().expect("a name");
            let mut writer = repo.put(&name, &options).expect("a writer");
            writer.write_all(content).expect("written");
            let whole = writer.finish().expect("whole");
            repo.publish(vec![whole]).expect("published");
        }
        let shelf = Shelf {
            repo,
            chain: Chain::new(owner),
            downloads: Downloads::default(),
        };
        let shared = Shared {
            shelf: Arc::new(shelf),
            prefixes: vec!["/data".parse().expect("a name")],
            hosts: vec![String::from("repo.example")],
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .build();
        Self {
            shared: Arc::new(shared),
            runtime: runtime.expect("a runtime"),
        }
    }

    /// A request as it comes, with plain line ends: who comes for somebody else's page is refused, and nobody gets other
    /// bytes than are served.
    pub fn request(&self, bytes: &[u8]) {
        let Some(request) = read(bytes) else {
            return;
        };
        let (asked, _) = request.clone().into_parts();
        let answer = async {
            let (parts, body) = route::answer(self.shared.clone(), request)
                .await
                .into_parts();
            let body = body.collect().await.expect("a whole body").to_bytes();
            (parts, body)
        };
        let (parts, body) = self.runtime.block_on(answer);
        let asked = Request::from_parts(asked, ());
        let status = parts.status.as_u16();
        let said = String::from_utf8_lossy(&body);
        assert!(STATUSES.contains(&status), "{said}");
        assert!(parts.headers[X_CONTENT_TYPE_OPTIONS] == "nosniff");
        assert!(parts.headers.contains_key(CONTENT_SECURITY_POLICY));
        assert!(body.len() <= MAX_ANSWER + 8 * bytes.len());
        match status {
            403 | 421 => return,
            _ => check_access(&asked),
        }
        if let Some(to) = parts.headers.get(LOCATION) {
            let to = to.to_str().expect("text");
            assert!(to.starts_with("/#/data") || to.starts_with("/files/data"));
        }
        let is_read = [&Method::GET, &Method::HEAD].contains(&asked.method());
        assert_eq!(status == 405, !is_read);
        match (status, asked.uri().path()) {
            (200 | 206, path) if path.starts_with("/files") => check_file(&asked, &parts, &body),
            (200, path) if path.starts_with("/api/") => check_told(&body),
            (200 | 302 | 308, _) => {}
            (304 | 412 | 416, _) => assert!(body.is_empty()),
            _ => {
                assert!(parts.headers[CONTENT_TYPE] == "application/json; charset=utf-8");
                let said: Value = serde_json::from_slice(&body).expect("JSON");
                assert!(said["error"].is_string());
            }
        }
    }
}

/// Line, headers, an empty line, a body.
fn read(bytes: &[u8]) -> Option<Request<Full<Bytes>>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.split('\n');
    let (method, uri) = lines.next()?.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(uri);
    for line in lines.take(64) {
        let (name, value) = line.split_once(": ")?;
        request = request.header(name, value);
    }
    request
        .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
        .ok()
}

/// It was asked by a name of ours, as HTTP itself reads it, and not from another site's page.
fn check_access(asked: &Request<()>) {
    let hosts: Vec<_> = asked.headers().get_all(HOST).iter().collect();
    assert_eq!(hosts.len(), 1);
    let authority = match asked.uri().authority() {
        Some(authority) => Some(authority.clone()),
        None => Authority::try_from(hosts[0].as_bytes()).ok(),
    };
    if let Some(authority) = authority {
        let host = authority.host().trim_matches(['[', ']']);
        let host = host.to_ascii_lowercase();
        let is_name = ["localhost", "repo.example"].contains(&host.as_str());
        assert!(is_name || host.parse::<IpAddr>().is_ok(), "{authority}");
    }
    let word = |name| asked.headers().get(name).map(|v| v.as_bytes());
    if let Some(b"cross-site" | b"same-site") = word("sec-fetch-site") {
        assert_eq!(word("sec-fetch-mode"), Some(&b"navigate"[..]));
        assert_eq!(word("sec-fetch-dest"), Some(&b"document"[..]));
    }
}

/// The file, or the part of it that the headers tell.
fn check_file(asked: &Request<()>, parts: &Parts, body: &[u8]) {
    let text = |name| parts.headers.get(name).and_then(|v| v.to_str().ok());
    let len: usize = text(CONTENT_LENGTH)
        .expect("a length")
        .parse()
        .expect("a number");
    let right = match text(CONTENT_RANGE) {
        None => &CONTENT[..],
        Some(range) => {
            assert!(parts.status == 206 && asked.headers().contains_key(RANGE));
            let range = range.strip_prefix("bytes ").expect("bytes");
            let range = range.strip_suffix("/300").expect("the size");
            let (first, last) = range.split_once('-').expect("a range");
            let number = |text: &str| text.parse::<usize>().expect("a number");
            &CONTENT[number(first)..=number(last)]
        }
    };
    assert_eq!(len, right.len());
    match *asked.method() {
        Method::HEAD => assert!(body.is_empty()),
        _ => assert_eq!(body, right),
    }
}

/// What is told of files is told of those that are served.
fn check_told(body: &[u8]) {
    let told: Value = serde_json::from_slice(body).expect("JSON");
    let entries = told["entries"].as_array().cloned().unwrap_or_default();
    for entry in entries.iter().chain([&told]) {
        if let Some(name) = entry["name"].as_str() {
            assert!(name == "/data" || name.starts_with("/data/"), "{name}");
        }
    }
}
