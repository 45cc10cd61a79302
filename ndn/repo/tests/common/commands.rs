//! A repository that takes commands without a network: a producer of the tests' own, a clock of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use ndn_packet::{ComponentBuf, Data, Interest, NackReason, Name, SigningKey};
use ndn_repo::Repo;
use ndn_repo::protocol::{
    Believed, InsertLimits, Parameters, Response, Right, Server, Trust, TrustedKey, Verb, command,
    status,
};

use super::{SimDisk, name, noise, open};

pub const OWNER: &[u8] = b"the owner";
pub const UNIX_MS: u64 = 1_700_000_000_000;

/// A repository that takes commands, and a producer that it fetches from.
pub struct Bench {
    pub repo: Repo,
    pub server: Server,
    pub produced: BTreeMap<Name, Data>,
    /// What is not answered at all.
    pub silent: bool,
    /// Names that the repository has asked for.
    pub asked: Vec<Name>,
    pub now: Duration,
    pub sent: u64,
}

impl Bench {
    pub fn start(disk: &SimDisk, trust: Trust, limits: InsertLimits) -> Self {
        let repo = open(disk).expect("a repository");
        let server = Server::new(repo.clone(), name("/repo"), trust, limits).expect("a server");
        Self {
            repo,
            server,
            produced: BTreeMap::new(),
            silent: false,
            asked: Vec::new(),
            now: Duration::ZERO,
            sent: 0,
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
        let wire = self
            .server
            .on_interest(self.now, UNIX_MS, &interest)
            .expect("it is a command");
        let data = Data::parse(wire).expect("a packet");
        assert_eq!(data.name(), interest.name());
        assert!(SigningKey::hmac_sha256(OWNER).verifier().verify(&data));
        Response::decode(data.content_slice()).expect("a response")
    }

    /// Runs until nothing goes on any more.
    pub fn run(&mut self) {
        while self.server.running() > 0 {
            let mut idle = true;
            while let Some(wire) = self.server.poll_interest(self.now) {
                idle = false;
                let interest = Interest::parse(wire).expect("an Interest");
                self.asked.push(interest.name().to_name());
                if self.silent {
                    continue;
                }
                match self.produced.get(&interest.name().to_name()) {
                    Some(data) => {
                        assert!(self.server.wants(data.name()));
                        self.server.on_data(self.now, data, false);
                    }
                    None => self
                        .server
                        .on_nack(self.now, &interest, NackReason::NoRoute),
                }
            }
            if idle {
                match self.server.deadline() {
                    // The disk has a clock of its own.
                    Some(at) if at <= self.now => std::thread::sleep(Duration::from_millis(1)),
                    Some(at) => self.now = at,
                    None => panic!("nothing will ever happen"),
                }
            }
            self.server.on_deadline(self.now);
        }
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
