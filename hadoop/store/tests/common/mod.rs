//! A NameNode of a few canned answers, a network that has blocks, and a reader of the store.

mod server;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use ndn_endpoint::rdr::{self, Metadata};
use ndn_packet::{Data, Interest, NackReason, Name, NetKind, NetPacket, SigningKey};
use trunkline_native::{ChecksumType, SegmentHeader};
use trunkline_store::{Cut, NameNode, Questions, Signatures, Store, StoreOptions};

pub use server::Server;

/// Data bytes of a block segment here.
pub const BLOCK_SEGMENT: usize = 512;
/// Bytes of a file's segment here.
pub const SEGMENT: u32 = 1000;

/// The value of a parameter.
pub fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query
        .split(['?', '&'])
        .find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
}

/// As WebHDFS tells why not.
pub fn exception(class: &str) -> String {
    format!(
        r#"{{"RemoteException":{{"exception":"{class}","javaClassName":"x.{class}","message":"says why"}}}}"#
    )
}

/// A file of HDFS.
#[derive(Clone)]
pub struct Hdfs {
    pub mtime: i64,
    pub id: i64,
    pub blocks: Vec<(i64, Vec<u8>)>,
    pub is_open: bool,
    /// More fields of the status.
    pub more: &'static str,
}

impl Hdfs {
    pub fn of(blocks: &[usize]) -> Self {
        let block = |(n, len): (usize, &usize)| {
            let bytes = (0..*len).map(|at| (at * 7 + n * 31) as u8).collect();
            (1_073_741_825 + n as i64, bytes)
        };
        Self {
            mtime: 1_700_000_000_123,
            id: 16389,
            blocks: blocks.iter().enumerate().map(block).collect(),
            is_open: false,
            more: "",
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.blocks.iter().flat_map(|(_, b)| b.clone()).collect()
    }

    pub fn status(&self) -> String {
        let (length, mtime, id, more) = (self.bytes().len(), self.mtime, self.id, self.more);
        format!(
            r#"{{"accessTime":5,"blockSize":2048,"childrenNum":0,"fileId":{id},"group":"g","length":{length},
            "modificationTime":{mtime},"owner":"o","pathSuffix":"","permission":"640","replication":3,{more}
            "storagePolicy":0,"type":"FILE"}}"#
        )
    }

    /// The answer to a question about this file.
    pub fn answer(&self, query: &str) -> (u16, String) {
        match parameter(query, "op") {
            Some("GETFILESTATUS") => (200, format!(r#"{{"FileStatus":{}}}"#, self.status())),
            Some("GET_BLOCK_LOCATIONS") => {
                let number = |name| parameter(query, name).and_then(|n| n.parse::<u64>().ok());
                let from = number("offset").expect("an offset");
                let to = from + number("length").expect("a length");
                let (mut at, mut blocks) = (0u64, Vec::new());
                for (id, bytes) in &self.blocks {
                    let end = at + bytes.len() as u64;
                    if at < to && end > from {
                        blocks.push(format!(
                            r#"{{"block":{{"blockId":{id},"blockPoolId":"BP-1","generationStamp":1001,"numBytes":{}}},
                            "blockToken":{{"urlString":"AAAA"}},"isCorrupt":false,"locations":[],"startOffset":{at}}}"#,
                            bytes.len()
                        ));
                    }
                    at = end;
                }
                let (blocks, open) = (blocks.join(","), self.is_open);
                let body = format!(
                    r#"{{"LocatedBlocks":{{"fileLength":{at},"isLastBlockComplete":true,"isUnderConstruction":{open},
                    "lastLocatedBlock":null,"locatedBlocks":[{blocks}]}}}}"#
                );
                (200, body)
            }
            _ => (400, exception("IllegalArgumentException")),
        }
    }
}

/// What a folder has in it.
pub fn entry(name: &str, kind: &str) -> String {
    Hdfs::of(&[])
        .status()
        .replace(r#""pathSuffix":"""#, &format!(r#""pathSuffix":"{name}""#))
        .replace(r#""type":"FILE""#, &format!(r#""type":"{kind}""#))
}

/// Some of what a folder has in it, and how much more there is.
pub fn listing(entries: &[String], remaining: usize) -> String {
    let entries = entries.join(",");
    format!(
        r#"{{"DirectoryListing":{{"partialListing":{{"FileStatuses":{{"FileStatus":[{entries}]}}}},
        "remainingEntries":{remaining}}}}}"#
    )
}

/// A store under `/cluster`, with what is around it.
pub struct Bench {
    pub store: Store,
    /// Where its wake-ups come in.
    woken: Receiver<()>,
    /// Bytes of blocks, by id.
    pub blocks: HashMap<String, Vec<u8>>,
    /// Turned over before it is sent: what comes is damaged.
    pub damaged: bool,
    /// Interests for blocks so far.
    pub interests: Vec<Name>,
    started: Instant,
    skipped: Duration,
}

impl Bench {
    pub fn new(addresses: Vec<String>) -> Self {
        Self::signing(addresses, Signatures::Batch)
    }

    /// As `new`, with so many signatures.
    pub fn signing(addresses: Vec<String>, signatures: Signatures) -> Self {
        let namenode = NameNode::new(addresses, "a user");
        let cut = Cut {
            root: name("/hadoop"),
            block_segment_bytes: BLOCK_SEGMENT as u32,
            segment_bytes: SEGMENT,
            freshness: Duration::from_secs(10),
        };
        let (wake, woken) = channel();
        let waker = Arc::new(move || {
            let _ = wake.send(());
        });
        let questions = Questions::to(namenode, cut, waker).expect("a thread");
        let options = StoreOptions {
            prefix: name("/cluster"),
            path: String::from("/published"),
            key: key(),
            signatures,
        };
        Self {
            store: Store::new(options, questions),
            woken,
            blocks: HashMap::new(),
            damaged: false,
            interests: Vec::new(),
            started: Instant::now(),
            skipped: Duration::ZERO,
        }
    }

    /// A store over a NameNode whose only file is `file`, at `/published/f`.
    pub fn with(file: &Hdfs) -> Self {
        Self::with_signatures(file, Signatures::Batch)
    }

    /// As `with`, with so many signatures.
    pub fn with_signatures(file: &Hdfs, signatures: Signatures) -> Self {
        let told = file.clone();
        let server = Server::start(Box::new(move |query| match query.split('?').next() {
            Some("/webhdfs/v1/published/f") => told.answer(query),
            _ => (404, exception("FileNotFoundException")),
        }));
        let mut bench = Self::signing(vec![server.address], signatures);
        bench.have(file);
        bench
    }

    pub fn have(&mut self, file: &Hdfs) {
        let blocks = file
            .blocks
            .iter()
            .map(|(id, b)| (id.to_string(), b.clone()));
        self.blocks.extend(blocks);
    }

    pub fn now(&self) -> Duration {
        self.started.elapsed() + self.skipped
    }

    pub fn skip(&mut self, time: Duration) {
        self.skipped += time;
    }

    /// What comes back for an Interest: Data, or why there is none; `None` after a second.
    pub fn ask(&mut self, wire: bytes::Bytes) -> Option<Result<Data, NackReason>> {
        let interest = Interest::parse(wire).expect("an Interest");
        let asked = interest.name_owned();
        let mut out = Vec::new();
        self.store.on_interest(self.now(), interest, None, &mut out);
        let until = Instant::now() + Duration::from_secs(1);
        loop {
            for packet in std::mem::take(&mut out) {
                match packet.packet {
                    NetKind::Interest(interest) => self.serve(&interest, &mut out),
                    NetKind::Data(data) => {
                        assert!(asked.as_ref().is_prefix_of(data.name()));
                        return Some(Ok(data));
                    }
                    NetKind::Nack { reason, .. } => return Some(Err(reason)),
                }
            }
            if out.is_empty() {
                let left = until.saturating_duration_since(Instant::now());
                self.woken.recv_timeout(left).ok()?;
                self.store.on_wake(self.now(), &mut out);
            }
        }
    }

    /// Serves a block segment as a DataNode does.
    fn serve(&mut self, interest: &Interest, out: &mut Vec<NetPacket>) {
        let asked = interest.name_owned();
        self.interests.push(asked.clone());
        let component =
            |n: usize| String::from_utf8_lossy(asked.get(n).expect("there").value).into_owned();
        assert_eq!(
            (component(0), component(1), component(2)),
            ("hadoop".into(), "blocks".into(), "BP-1".into())
        );
        assert_eq!(asked.get(4).and_then(|c| c.as_version()), Some(1001));
        let n = asked
            .last()
            .and_then(|c| c.as_segment())
            .expect("a segment") as usize;
        let Some(block) = self.blocks.get(&component(3)) else {
            self.store
                .on_nack(self.now(), interest, NackReason::NoRoute, out);
            return;
        };
        let from = n * BLOCK_SEGMENT;
        let bytes = &block[from..block.len().min(from + BLOCK_SEGMENT)];
        let header = SegmentHeader {
            checksum: ChecksumType::Null,
            bytes_per_checksum: 512,
            data_len: bytes.len() as u32,
            offset_in_block: from as u64,
        };
        let content = [&header.encode()[..], bytes].concat();
        let mut wire = Data::builder(&asked)
            .content(&content)
            .sign(&SigningKey::DigestSha256)
            .to_vec();
        if self.damaged {
            // In the content, behind the header.
            let at = wire.len() - 60;
            wire[at] ^= 1;
        }
        let data = Data::parse(wire.into()).expect("well formed");
        assert!(
            self.store.on_data(self.now(), &data, true, out),
            "it was asked for"
        );
    }

    /// RDR: the newest version of `object`.
    pub fn metadata(&mut self, object: &Name) -> Option<Result<Metadata, NackReason>> {
        let asked = rdr::discovery_name(object);
        let wire = Interest::builder(&asked)
            .can_be_prefix(true)
            .must_be_fresh(true)
            .nonce(1)
            .build();
        Some(self.ask(wire)?.map(|data| {
            assert!(key().verifier().verify(&data), "signed by the owner");
            Metadata::from_data(&data).expect("metadata")
        }))
    }

    /// RDR: the newest version of `object`, which is there.
    pub fn told(&mut self, object: &str) -> Metadata {
        let answer = self.metadata(&name(object)).expect("an answer");
        answer.unwrap_or_else(|reason| panic!("{object}: {reason:?}"))
    }

    /// A segment of an object.
    pub fn segment(&mut self, versioned: &Name, n: u64) -> Option<Result<Data, NackReason>> {
        self.ask(
            Interest::builder(&versioned.append_segment(n))
                .nonce(2)
                .build(),
        )
    }

    /// All bytes of an object, each segment signed by the owner where `signed`.
    pub fn read(&mut self, told: &Metadata, signed: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        for n in 0..=told.last.expect("a last segment") {
            let data = self
                .segment(&told.name, n)
                .expect("an answer")
                .expect("Data");
            assert!(
                !signed || key().verifier().verify(&data),
                "signed by the owner"
            );
            assert!(signed || data.verify_digest());
            bytes.extend_from_slice(data.content_slice());
        }
        assert_eq!(bytes.len() as u64, told.size.expect("a size"));
        bytes
    }
}

pub fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

pub fn key() -> SigningKey {
    SigningKey::hmac_sha256(b"the owner's")
}
