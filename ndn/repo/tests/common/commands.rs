//! A repository that takes commands without a network: a producer of the tests' own, a clock of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use ndn_packet::{ComponentBuf, Data, Interest, NackReason, Name, NetKind, SigningKey};
use ndn_repo::Repo;
use ndn_repo::protocol::{
    Believed, InsertLimits, Parameters, Response, Right, Server, Trust, TrustedKey, Verb, command,
    status,
};

use super::{PATIENCE, SimDisk, name, noise, open};

pub const OWNER: &[u8] = b"the owner";
pub const UNIX_MS: u64 = 1_700_000_000_000;

/// A repository that takes commands, and a producer that it fetches from.
pub struct Bench {
    pub repo: Repo,
    pub server: Server,
    pub produced: BTreeMap<Name, Data>,
    /// What somebody else answers first, once.
    pub forged: BTreeMap<Name, Data>,
    /// What is not answered at all.
    pub silent: bool,
    /// Names that the repository has asked for.
    pub asked: Vec<Name>,
    pub now: Duration,
    pub sent: u64,
    /// Where the server's wake-ups come in.
    woken: Receiver<()>,
}

impl Bench {
    pub fn start(disk: &SimDisk, trust: Trust, limits: InsertLimits) -> Self {
        let repo = open(disk).expect("a repository");
        let (wake, woken) = channel();
        // Nobody is to be woken any more at the end of a test.
        let waker = Arc::new(move || {
            let _ = wake.send(());
        });
        let server = Server::new(repo.clone(), name("/repo"), trust, limits, waker);
        let server = server.expect("a server");
        Self {
            repo,
            server,
            produced: BTreeMap::new(),
            forged: BTreeMap::new(),
            silent: false,
            asked: Vec::new(),
            now: Duration::ZERO,
            sent: 0,
            woken,
        }
    }

    pub fn owned() -> Self {
        let trust = Trust::owner(&SigningKey::hmac_sha256(OWNER));
        Self::start(&SimDisk::default(), trust, InsertLimits::default())
    }

    pub fn produce(&mut self, prefix: &Name, last: u64, told: Option<u64>, key: &SigningKey) {
        for n in 0..=last {
            let name = prefix.append_segment(n);
            let content = noise(500, n + 1);
            let mut builder = Data::builder(&name).content(&content);
            if let Some(told) = told {
                builder = builder.final_block_id(ComponentBuf::segment(told));
            }
            let data = Data::parse(builder.sign(key)).expect("a packet");
            self.produced.insert(name, data);
        }
    }

    /// Sends a command and reads the response.
    pub fn command(&mut self, verb: Verb, parameters: &Parameters, key: &SigningKey) -> Response {
        self.sent += 1;
        let wire = command(
            &name("/repo"),
            verb,
            parameters,
            key,
            UNIX_MS + self.sent,
            self.sent,
        );
        self.raw(wire)
    }

    pub fn raw(&mut self, wire: bytes::Bytes) -> Response {
        let interest = Interest::parse(wire).expect("an Interest");
        self.send(&interest);
        self.response(&interest)
    }

    /// Sends a command and does not wait.
    pub fn send(&mut self, interest: &Interest) {
        assert!(
            self.server.on_interest(self.now, UNIX_MS, interest, None),
            "it is a command"
        );
    }

    /// Waits for the response to a command.
    pub fn response(&mut self, interest: &Interest) -> Response {
        loop {
            if let Some(data) = self.poll_response() {
                assert_eq!(data.name(), interest.name());
                return decode(&data);
            }
            self.wake();
        }
    }

    pub fn poll_response(&mut self) -> Option<Data> {
        match self.server.poll_response()?.packet {
            NetKind::Data(data) => Some(data),
            other => panic!("a response is Data, not {other:?}"),
        }
    }

    /// Waits until the disk has done something.
    pub fn wake(&mut self) {
        self.woken.recv_timeout(PATIENCE).expect("a wake-up");
        self.server.on_wake(self.now);
    }

    /// Runs until nothing goes on any more.
    pub fn run(&mut self) {
        while self.server.running() > 0 {
            if !self.fetch() {
                match self.server.deadline() {
                    Some(at) => self.now = self.now.max(at),
                    // The disk has a clock of its own.
                    None => self.wake(),
                }
            }
            self.server.on_deadline(self.now);
        }
    }

    /// Answers the Interests of insertions; false where there are none.
    pub fn fetch(&mut self) -> bool {
        let mut is_busy = false;
        while let Some(packet) = self.server.poll_interest(self.now) {
            is_busy = true;
            let NetKind::Interest(interest) = packet.packet else {
                panic!("not an Interest")
            };
            self.asked.push(interest.name().to_name());
            if self.silent {
                continue;
            }
            let asked = interest.name().to_name();
            let forged = self.forged.remove(&asked);
            match forged.as_ref().or_else(|| self.produced.get(&asked)) {
                Some(data) => {
                    assert!(self.server.wants(data.name()));
                    self.server.on_data(self.now, data, false);
                }
                None => self
                    .server
                    .on_nack(self.now, &interest, NackReason::NoRoute),
            }
        }
        is_busy
    }

    pub fn insert(&mut self, parameters: &Parameters, key: &SigningKey) -> Response {
        let begun = self.command(Verb::Insert, parameters, key);
        if begun.status != status::BEGUN {
            return begun;
        }
        self.run();
        let check = Parameters {
            process: begun.process,
            ..Parameters::default()
        };
        self.command(Verb::InsertCheck, &check, key)
    }

    pub fn packets(&self) -> u64 {
        self.repo.status().expect("status").packets
    }
}

/// What a response says, which the owner has signed.
pub fn decode(data: &Data) -> Response {
    assert!(SigningKey::hmac_sha256(OWNER).verifier().verify(data));
    Response::decode(data.content_slice()).expect("a response")
}

pub fn parameters(prefix: &Name, start: Option<u64>, end: Option<u64>) -> Parameters {
    Parameters {
        name: Some(prefix.clone()),
        start,
        end,
        ..Parameters::default()
    }
}

pub fn owner() -> SigningKey {
    SigningKey::hmac_sha256(OWNER)
}

pub fn alice_key() -> SigningKey {
    SigningKey::hmac_sha256(b"alice")
}

/// The owner may do everything, and alice may insert under `prefix` what is `believed`.
pub fn trust_in_alice(prefix: &str, believed: Believed) -> Trust {
    let mut trust = Trust::owner(&owner());
    trust.keys.push(TrustedKey::secret(
        b"alice",
        vec![Right {
            prefix: name(prefix),
            insert: true,
            delete: false,
            believed,
        }],
    ));
    trust
}
