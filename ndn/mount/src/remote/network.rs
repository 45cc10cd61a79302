//! The network's side of a mount: a node of its own with a face to the forwarder, which comes back by itself, and all fetches
//! over it. Calls wait on their own threads; one loop sends and receives.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ndn_endpoint::FetchConfig;
use ndn_io::{AppHandle, FaceConfig, FaceUri, LinkOptions, Node, NodeConfig};
use ndn_packet::{Data, Name};

use super::RemoteError;
use super::network_loop::{Fetched, NetworkLoop, Orders, Reader};
use crate::error::MountError;
use crate::handles::lock;

/// How long the forwarder may take to be connected at the start.
const CONNECT: Duration = Duration::from_secs(5);
/// Longest wait between attempts to reach a forwarder that went away.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// A way to the network.
pub struct Network {
    // Goes before the node that it is attached to.
    handle: AppHandle,
    node: Node,
    orders: Arc<Mutex<Orders>>,
    random: RandomState,
    seeds: AtomicU64,
}

impl Network {
    /// Connects to the forwarder at `face`.
    ///
    /// # Errors
    /// An address that is none, or nobody there.
    pub fn open(face: &FaceUri, link: &LinkOptions) -> Result<Self, MountError> {
        let failed = |cause: String| MountError::Forwarder {
            uri: face.to_string(),
            cause,
        };
        let random = RandomState::new();
        let forwarder = ndn_forwarder::Config {
            // What is kept is kept by segment, verified.
            cs_capacity_bytes: 0,
            seed: random.hash_one("forwarder"),
            ..ndn_forwarder::Config::default()
        };
        let node = Node::start(NodeConfig {
            thread_name: String::from("mount-net"),
            forwarder,
            faces: vec![FaceConfig {
                routes: vec![(Name::new(), 0)],
                reconnect: RECONNECT,
                link: link.clone(),
                ..FaceConfig::new(face.clone())
            }],
            ..NodeConfig::default()
        })
        .map_err(|e| failed(e.to_string()))?;
        let orders = Arc::new(Mutex::new(Orders::default()));
        let handle = node
            .attach(Box::new(NetworkLoop::new(orders.clone())), "mount")
            .map_err(|e| failed(e.to_string()))?;
        let network = Self {
            handle,
            node,
            orders,
            random,
            seeds: AtomicU64::new(0),
        };
        match network.is_connected() {
            true => Ok(network),
            false => Err(failed(String::from("nobody answers"))),
        }
    }

    /// Whether the forwarder is reached, which may take a moment.
    fn is_connected(&self) -> bool {
        let until = Instant::now() + CONNECT;
        loop {
            let up = self.node.status().is_ok_and(|status| {
                // The application's own face is always up.
                status
                    .faces
                    .iter()
                    .any(|face| face.id != self.handle.face_id() && face.up)
            });
            if up || Instant::now() >= until {
                return up;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// A seed for nonces that no other has.
    pub fn seed(&self) -> u64 {
        let mut hasher = self.random.build_hasher();
        hasher.write_u64(self.seeds.fetch_add(1, Ordering::Relaxed));
        hasher.finish()
    }

    /// Begins a fetch.
    ///
    /// # Errors
    /// Nothing is fetched any more; `reader` hears nothing.
    pub fn read(
        &self,
        mut config: FetchConfig,
        reader: Box<dyn Reader>,
    ) -> Result<(), RemoteError> {
        config.consumer.seed = self.seed();
        let mut orders = lock(&self.orders);
        if let Some(error) = &orders.over {
            return Err(error.clone());
        }
        orders.waiting.push((config, reader));
        drop(orders);
        self.handle.wake();
        Ok(())
    }

    /// Why a fetch was dropped without an end.
    fn over(&self) -> RemoteError {
        lock(&self.orders)
            .over
            .clone()
            .unwrap_or(RemoteError::Ended)
    }

    /// Fetches what has no content, and hands on each answer when it comes, with its place.
    pub fn fetch_each(
        &self,
        fetches: impl Iterator<Item = FetchConfig>,
        mut answered: impl FnMut(usize, Result<Fetched, RemoteError>),
    ) {
        let (answer, answers) = channel();
        let mut open = Vec::new();
        for (place, config) in fetches.enumerate() {
            let whole = Whole {
                place,
                made: Some(()),
                push: |(), _| Ok(()),
                done: answer.clone(),
            };
            let begun = self.read(config, Box::new(whole));
            open.push(begun.is_ok());
            if let Err(error) = begun {
                answered(place, Err(error));
            }
        }
        drop(answer);
        for (place, found) in answers {
            open[place] = false;
            answered(place, found.map(|((), fetched)| fetched));
        }
        for (place, _) in open.iter().enumerate().filter(|(_, open)| **open) {
            answered(place, Err(self.over()));
        }
    }

    /// Fetches what has no content.
    ///
    /// # Errors
    /// Why it did not come.
    pub fn fetch(&self, config: FetchConfig) -> Result<Fetched, RemoteError> {
        self.read_all(config, (), |(), _| Ok(()))
            .map(|((), fetched)| fetched)
    }

    /// Reads all of an object: hands each segment to `push` with what was made of those before.
    ///
    /// # Errors
    /// Why it did not come, or what `push` says.
    pub fn read_all<T: Send + 'static>(
        &self,
        config: FetchConfig,
        made: T,
        push: fn(&mut T, &Data) -> Result<(), RemoteError>,
    ) -> Result<(T, Fetched), RemoteError> {
        let (done, is_done) = channel();
        let whole = Whole {
            place: 0,
            made: Some(made),
            push,
            done,
        };
        self.read(config, Box::new(whole))?;
        match is_done.recv() {
            Ok((_, result)) => result,
            Err(_) => Err(self.over()),
        }
    }

    /// Readers want more, or less, than before.
    pub fn wake(&self) {
        self.handle.wake();
    }

    /// Ends all that is being asked for, and answers nothing from now on.
    pub fn stop(&self) {
        lock(&self.orders).over = Some(RemoteError::Stopped);
        self.handle.wake();
    }
}

/// What comes of reading all of an object, with the place that the fetch has among others.
type Answer<T> = (usize, Result<(T, Fetched), RemoteError>);

/// A reader of all of an object.
struct Whole<T> {
    place: usize,
    made: Option<T>,
    push: fn(&mut T, &Data) -> Result<(), RemoteError>,
    done: Sender<Answer<T>>,
}

impl<T> Whole<T> {
    /// Who waits may be gone.
    fn end(&mut self, result: Result<Fetched, RemoteError>) {
        if let Some(made) = self.made.take() {
            let result = result.map(|fetched| (made, fetched));
            let _ = self.done.send((self.place, result));
        }
    }
}

impl<T: Send> Reader for Whole<T> {
    fn take(&mut self, _segment: u64, data: &Data) -> bool {
        if let Some(made) = &mut self.made
            && let Err(error) = (self.push)(made, data)
        {
            self.end(Err(error));
        }
        true
    }

    fn wanted(&self) -> Option<u64> {
        self.made.as_ref().map(|_| u64::MAX)
    }

    fn over(&mut self, result: Result<Fetched, RemoteError>) {
        self.end(result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndn_io::{App, ListenConfig};
    use ndn_packet::NetPacket;

    /// Brings the loop to an end.
    struct Panics;

    impl Reader for Panics {
        fn take(&mut self, _segment: u64, _data: &Data) -> bool {
            true
        }

        fn wanted(&self) -> Option<u64> {
            panic!("to end the loop")
        }

        fn over(&mut self, _result: Result<Fetched, RemoteError>) {}
    }

    /// Answers nothing.
    struct Silent;

    impl App for Silent {
        fn on_packet(&mut self, _now: Duration, _packet: NetPacket, _out: &mut Vec<NetPacket>) {}
    }

    #[test]
    fn nobody_waits_for_a_loop_that_has_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let face = format!("unix://{}", folder.path().join("fwd.sock").display());
        let face: FaceUri = face.parse().expect("an address");
        let forwarder = Node::start(NodeConfig {
            listeners: vec![ListenConfig::new(face.clone())],
            ..NodeConfig::default()
        })
        .expect("a forwarder");
        let network = Network::open(&face, &LinkOptions::default()).expect("connected");
        let name: Name = "/a".parse().expect("a name");
        let silent = forwarder.attach(Box::new(Silent), "silent").expect("added");
        silent.register(&name).expect("registered");
        let config = || {
            let mut config = FetchConfig::new(name.clone());
            config.consumer.give_up_after = Duration::from_secs(3600);
            config
        };
        let ask = || network.fetch(config()).map(drop);
        std::thread::scope(|scope| {
            let asked = scope.spawn(ask);
            let waits = |node: &Node| {
                let waits = node.with_forwarder(|forwarder, _| forwarder.status());
                waits.is_ok_and(|status| status.pit_entries > 0)
            };
            let until = Instant::now() + Duration::from_secs(30);
            while !waits(&network.node) {
                assert!(Instant::now() < until && !asked.is_finished());
                std::thread::sleep(Duration::from_millis(2));
            }
            let read = network.read(config(), Box::new(Panics));
            assert_eq!(read, Ok(()));
            assert_eq!(asked.join().expect("no panic"), Err(RemoteError::Ended));
        });
        assert_eq!(ask(), Err(RemoteError::Ended));
        let mut answers = Vec::new();
        let each = [config(), config()].into_iter();
        network.fetch_each(each, |place, answer| {
            answers.push((place, answer.map(drop)))
        });
        let ended = || Err(RemoteError::Ended);
        assert_eq!(answers, [(0, ended()), (1, ended())]);
    }
}
