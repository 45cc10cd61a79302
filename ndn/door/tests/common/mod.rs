//! A repository with its HTTP server running, and a client that sends bytes as they are.

#![allow(dead_code)] // each test file uses its part

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ndn_door::{HttpOptions, HttpServer};
use ndn_packet::{Name, SigningKey, Verifier};
use ndn_repo::{PutOptions, Repo, RepoOptions};
use serde_json::Value;

/// More than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct House {
    pub repo: Repo,
    pub server: HttpServer,
    pub folder: tempfile::TempDir,
    pub owner: Verifier,
}

/// An answer in parts.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

pub fn key() -> SigningKey {
    let pkcs8 = SigningKey::generate_ed25519().expect("random bytes");
    SigningKey::ed25519_from_pkcs8(&pkcs8).expect("a key")
}

/// Bytes that differ from place to place.
pub fn noise(len: usize) -> Vec<u8> {
    let mut state = 7u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}

impl House {
    pub fn open() -> Self {
        Self::open_with(|_| {})
    }

    /// Serves `/data`, with what `change` does to the options.
    pub fn open_with(change: impl FnOnce(&mut HttpOptions)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self::on(folder, key(), change)
    }

    pub fn on(
        folder: tempfile::TempDir,
        key: SigningKey,
        change: impl FnOnce(&mut HttpOptions),
    ) -> Self {
        let owner = key.verifier();
        let repo = Repo::open(
            folder.path(),
            key,
            &RepoOptions {
                // Each version has files of its own, of which a test can damage one.
                small_bytes: 0,
                ..RepoOptions::default()
            },
        )
        .expect("opens");
        let prefixes = vec!["/data".parse().expect("a name")];
        let listen = "127.0.0.1:0".parse().expect("an address");
        let mut options = HttpOptions::new(listen, prefixes, owner.clone());
        change(&mut options);
        let server = HttpServer::start(repo.clone(), options).expect("opens");
        Self {
            repo,
            server,
            folder,
            owner,
        }
    }

    pub fn put(&self, name: &str, content: &[u8]) -> u64 {
        self.put_all(&[name], content)
    }

    /// Several files of the same content, in one go.
    pub fn put_all(&self, names: &[impl AsRef<str>], content: &[u8]) -> u64 {
        let staged = names
            .iter()
            .map(|name| {
                let name: Name = name.as_ref().parse().expect("a name");
                let options = PutOptions {
                    size: Some(content.len() as u64),
                    ..PutOptions::default()
                };
                let mut writer = self.repo.put(&name, &options).expect("a writer");
                writer.write_all(content).expect("written");
                writer.finish().expect("whole")
            })
            .collect();
        self.repo.publish(staged).expect("published")[0].version
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        stream
    }

    /// Sends bytes and reads until the end.
    pub fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        // A server that has heard enough hangs up before all was said.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    /// Asks with headers; the connection ends with the answer.
    pub fn ask(&self, method: &str, path: &str, headers: &str) -> Answer {
        let host = self.address();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n"
        );
        parts(&self.raw(request.as_bytes()))
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "")
    }

    pub fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", text(&answer.body));
        answer.json()
    }

    /// The content file of this many bytes.
    pub fn content_file(&self, bytes: u64) -> PathBuf {
        self.file(|path, len| len == bytes && path.extension().is_none())
    }

    /// The only manifest.
    pub fn manifest_file(&self) -> PathBuf {
        self.file(|path, _| path.extension().is_some())
    }

    fn file(&self, is_it: impl Fn(&std::path::Path, u64) -> bool) -> PathBuf {
        fs::read_dir(self.folder.path().join("files"))
            .expect("a folder")
            .flat_map(|shard| fs::read_dir(shard.expect("an entry").path()).expect("a folder"))
            .map(|file| file.expect("an entry"))
            .find(|file| is_it(&file.path(), file.metadata().expect("facts").len()))
            .expect("such a file")
            .path()
    }
}

/// Changes one byte of a file.
pub fn rot(path: &std::path::Path, at: usize) {
    let mut bytes = fs::read(path).expect("read");
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("written");
}

pub fn parts(answer: &[u8]) -> Answer {
    let end = answer
        .windows(4)
        .position(|w| w == b"\r\n\r\n")
        .unwrap_or_else(|| panic!("no answer: {:?}", text(answer)));
    let head = text(&answer[..end]);
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|word| word.parse().ok())
        .expect("a status");
    Answer {
        status,
        head,
        body: answer[end + 4..].to_vec(),
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Waits until it is so.
pub fn until(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "it never was so");
        std::thread::sleep(Duration::from_millis(10));
    }
}
