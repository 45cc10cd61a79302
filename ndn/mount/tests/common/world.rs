//! A repository behind a forwarder, of any conduct, and a mount of it over the network.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ndn_endpoint::VerifyPolicy;
use ndn_io::{App, AppHandle, FaceUri, ListenConfig, Node, NodeConfig};
use ndn_mount::{Mount, RemoteOptions};
use ndn_packet::{Data, Interest, NackReason, Name, NetKind, NetPacket, SigningKey, Verifier};
use ndn_repo::{Repo, RepoOptions};
use tempfile::TempDir;

use super::{can_mount, name};

/// How long nothing may come, here.
pub const TIMEOUT: Duration = Duration::from_millis(1500);

/// How long names are believed, here.
pub const REMEMBERED: Duration = Duration::from_millis(50);

/// Waits until nothing is believed any more that was asked before.
pub fn forget() {
    std::thread::sleep(REMEMBERED * 4);
}

/// What becomes of an Interest.
#[derive(Clone, PartialEq)]
pub enum Conduct {
    Answer,
    /// Nothing is said.
    Silence,
    /// Nothing is said to Interests under this name.
    SilenceUnder(Name),
    /// What lies under this name has other content, and a digest that fits it.
    ForgeUnder(Name),
    /// The same, but for metadata.
    ForgeSegmentsUnder(Name),
    /// One answer comes in so much time.
    Slow(Duration),
}

struct Producer {
    repo: Repo,
    conduct: Arc<Mutex<Conduct>>,
    /// What was asked for.
    asked: Arc<Mutex<Vec<Name>>>,
    /// Answers that are late, and when the first of them is to be sent.
    late: VecDeque<NetPacket>,
    next: Duration,
}

impl Producer {
    fn conduct(&self) -> Conduct {
        self.conduct.lock().expect("a conduct").clone()
    }

    fn answer(&self, interest: Interest) -> NetPacket {
        let forges = match self.conduct() {
            Conduct::ForgeUnder(name) => is_under(&name, &interest),
            Conduct::ForgeSegmentsUnder(name) => {
                is_under(&name, &interest) && !interest.name().to_string().contains("32=metadata")
            }
            _ => false,
        };
        match self.repo.answer(&interest).expect("an answer") {
            None => NetPacket::nack(NackReason::NoRoute, interest),
            Some(wire) => {
                let data = Data::parse(wire).expect("well formed");
                NetPacket::data(match forges {
                    true => forged(&data, &interest),
                    false => data,
                })
            }
        }
    }
}

fn is_under(name: &Name, interest: &Interest) -> bool {
    name.as_ref().is_prefix_of(interest.name())
}

impl App for Producer {
    fn on_packet(&mut self, now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        let NetKind::Interest(interest) = packet.packet else {
            return;
        };
        let name = interest.name().to_name();
        self.asked.lock().expect("a list").push(name.clone());
        match self.conduct() {
            Conduct::Silence => {}
            Conduct::SilenceUnder(name) if is_under(&name, &interest) => {}
            Conduct::Slow(each) => {
                let answer = self.answer(interest).with_pit_token(packet.pit_token);
                if self.late.is_empty() {
                    self.next = self.next.max(now + each);
                }
                self.late.push_back(answer);
            }
            _ => out.push(self.answer(interest).with_pit_token(packet.pit_token)),
        }
    }

    fn deadline(&self) -> Option<Duration> {
        (!self.late.is_empty()).then_some(self.next)
    }

    fn on_deadline(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        if now < self.next {
            return;
        }
        out.extend(self.late.pop_front());
        if let Conduct::Slow(each) = self.conduct() {
            self.next = now + each;
        }
    }
}

/// The same with another content, and a digest that fits it.
fn forged(data: &Data, interest: &Interest) -> Data {
    let mut content = data.content_slice().to_vec();
    content[0] ^= 1;
    let name = interest.name().to_name();
    let mut wire = Data::builder(&name).freshness(Duration::from_secs(1));
    if let Some(last) = data.final_block_id() {
        wire = wire.final_block_id(last.to_owned());
    }
    Data::parse(wire.content(&content).sign(&SigningKey::DigestSha256)).expect("well formed")
}

/// A repository behind a forwarder, and a place to mount it.
pub struct World {
    pub mount: Option<Mount>,
    pub producer: Option<AppHandle>,
    conduct: Arc<Mutex<Conduct>>,
    asked: Arc<Mutex<Vec<Name>>>,
    pub repo: Repo,
    pub owner: Verifier,
    node: Node,
    folder: TempDir,
}

impl World {
    pub fn new() -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("mnt")).expect("a folder");
        let pkcs8 = SigningKey::generate_ed25519().expect("a key");
        let key = SigningKey::ed25519_from_pkcs8(&pkcs8).expect("a key");
        let owner = key.verifier();
        let store = folder.path().join("store");
        let repo = Repo::open(&store, key, &RepoOptions::default()).expect("a repository");
        let node = Node::start(NodeConfig {
            listeners: vec![ListenConfig::new(face(&folder))],
            forwarder: ndn_forwarder::Config {
                cs_capacity_bytes: 0,
                ..ndn_forwarder::Config::default()
            },
            ..NodeConfig::default()
        })
        .expect("a forwarder");
        let mut world = World {
            mount: None,
            producer: None,
            conduct: Arc::new(Mutex::new(Conduct::Answer)),
            asked: Arc::default(),
            repo,
            owner,
            node,
            folder,
        };
        world.serve();
        Some(world)
    }

    pub fn serve(&mut self) {
        let producer = Producer {
            repo: self.repo.clone(),
            conduct: self.conduct.clone(),
            asked: self.asked.clone(),
            late: VecDeque::new(),
            next: Duration::ZERO,
        };
        let handle = self.node.attach(Box::new(producer), "repo").expect("added");
        handle.register(&name("/data")).expect("registered");
        self.producer = Some(handle);
    }

    pub fn conduct(&self, conduct: Conduct) {
        *self.conduct.lock().expect("a conduct") = conduct;
    }

    /// How often this was asked for.
    pub fn times_asked(&self, name: &Name) -> usize {
        let asked = self.asked.lock().expect("a list");
        asked.iter().filter(|asked| *asked == name).count()
    }

    pub fn options(&self) -> RemoteOptions {
        RemoteOptions {
            verify: VerifyPolicy::Signed(self.owner.clone()),
            timeout: TIMEOUT,
            remember: REMEMBERED,
            ..RemoteOptions::new(name("/data"), face(&self.folder))
        }
    }

    pub fn mount_with(&mut self, options: RemoteOptions) {
        self.mount = Some(Mount::remote(&self.path(""), options).expect("mounted"));
    }

    pub fn mount(&mut self) {
        self.mount_with(self.options());
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join("mnt").join(path)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.mount.take());
    }
}

fn face(folder: &TempDir) -> FaceUri {
    format!("unix://{}", folder.path().join("fwd.sock").display())
        .parse()
        .expect("an address")
}
