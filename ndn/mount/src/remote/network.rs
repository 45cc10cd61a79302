//! The network's side of a mount: a node of its own with a face to the forwarder, which comes back by itself, and all that is
//! being asked for over it. Calls wait on their own threads; one loop does the talking.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ndn_endpoint::{ConsumerConfig, ExchangeConfig};
use ndn_io::{AppHandle, FaceConfig, FaceUri, Node, NodeConfig};
use ndn_packet::{Data, Name};

use super::RemoteError;
use super::talk::Loop;
use crate::error::MountError;
use crate::handles::lock;

/// How long the forwarder may take to be connected at the start.
const CONNECT: Duration = Duration::from_secs(5);
/// Longest wait between attempts to reach a forwarder that went away.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// Who reads a stream of segments. All calls come from the loop, which they must not keep.
pub trait Reading: Send {
    /// A packet of it has come, if not the next in order.
    fn heard(&mut self) {}
    /// The next segment in order; false where it is not what was signed, and must come anew.
    fn take(&mut self, segment: u64, data: &Data) -> bool;
    /// The last segment that is wanted so far; `None` once nobody wants any more of it.
    fn wanted(&self) -> Option<u64>;
    /// All of it was taken, or it came to an end.
    fn over(&mut self, result: Result<(), RemoteError>);
}

/// Where an answer goes, with the place of its question.
pub struct Asker(usize, Sender<(usize, Result<Data, RemoteError>)>);

impl Asker {
    /// Hands on the answer. Who waits may be gone.
    pub fn answer(&self, answer: Result<Data, RemoteError>) {
        let _ = self.1.send((self.0, answer));
    }
}

/// What the loop is asked to do.
pub enum Order {
    Ask(ExchangeConfig, Asker),
    Read(ConsumerConfig, Box<dyn Reading>),
}

/// What calls and the loop share.
#[derive(Default)]
pub struct Orders {
    pub waiting: Vec<Order>,
    /// Why no more are taken.
    pub over: Option<RemoteError>,
}

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
    pub fn open(face: &FaceUri) -> Result<Self, MountError> {
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
                ..FaceConfig::new(face.clone())
            }],
            ..NodeConfig::default()
        })
        .map_err(|e| failed(e.to_string()))?;
        let orders = Arc::new(Mutex::new(Orders::default()));
        let handle = node
            .attach(Box::new(Loop::new(orders.clone())), "mount")
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

    /// Hands something to the loop; it comes back where the loop takes no more.
    fn order(&self, order: Order) -> Result<(), RemoteError> {
        let mut orders = lock(&self.orders);
        if let Some(error) = &orders.over {
            return Err(error.clone());
        }
        orders.waiting.push(order);
        drop(orders);
        self.handle.wake();
        Ok(())
    }

    /// Why something that was ordered was dropped.
    fn over(&self) -> RemoteError {
        lock(&self.orders)
            .over
            .clone()
            .unwrap_or(RemoteError::Ended)
    }

    /// Asks for one packet each, and hands on each answer when it comes, with its question's place.
    pub fn ask(
        &self,
        questions: impl Iterator<Item = ExchangeConfig>,
        mut answered: impl FnMut(usize, Result<Data, RemoteError>),
    ) {
        let (answer, answers) = channel();
        let mut open = Vec::new();
        for (place, question) in questions.enumerate() {
            let seed = self.seed();
            let config = ExchangeConfig { seed, ..question };
            let ordered = self.order(Order::Ask(config, Asker(place, answer.clone())));
            open.push(ordered.is_ok());
            if let Err(error) = ordered {
                answered(place, Err(error));
            }
        }
        drop(answer);
        for (place, found) in answers {
            open[place] = false;
            answered(place, found);
        }
        for (place, _) in open.iter().enumerate().filter(|(_, open)| **open) {
            answered(place, Err(self.over()));
        }
    }

    /// Begins to read a stream.
    ///
    /// # Errors
    /// Nothing is read any more; `reading` is not told.
    pub fn read(
        &self,
        config: ConsumerConfig,
        reading: Box<dyn Reading>,
    ) -> Result<(), RemoteError> {
        let seed = self.seed();
        self.order(Order::Read(ConsumerConfig { seed, ..config }, reading))
    }

    /// Reads all of a stream: hands each segment to `push` with what was made of those before.
    ///
    /// # Errors
    /// Why it did not come, or what `push` says.
    pub fn read_all<T: Send + 'static>(
        &self,
        config: ConsumerConfig,
        made: T,
        push: fn(&mut T, &Data) -> Result<(), RemoteError>,
    ) -> Result<T, RemoteError> {
        let (done, is_done) = channel();
        let whole = Whole {
            made: Some(made),
            push,
            done,
        };
        self.read(config, Box::new(whole))?;
        is_done.recv().unwrap_or_else(|_| Err(self.over()))
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

/// A reader of all of a stream.
struct Whole<T> {
    made: Option<T>,
    push: fn(&mut T, &Data) -> Result<(), RemoteError>,
    done: Sender<Result<T, RemoteError>>,
}

impl<T> Whole<T> {
    /// Who waits may be gone.
    fn end(&mut self, result: Result<(), RemoteError>) {
        if let Some(made) = self.made.take() {
            let _ = self.done.send(result.map(|()| made));
        }
    }
}

impl<T: Send> Reading for Whole<T> {
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

    fn over(&mut self, result: Result<(), RemoteError>) {
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

    impl Reading for Panics {
        fn take(&mut self, _segment: u64, _data: &Data) -> bool {
            true
        }

        fn wanted(&self) -> Option<u64> {
            panic!("to end the loop")
        }

        fn over(&mut self, _result: Result<(), RemoteError>) {}
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
        let network = Network::open(&face).expect("connected");
        let name: Name = "/a".parse().expect("a name");
        let silent = forwarder.attach(Box::new(Silent), "silent").expect("added");
        silent.register(&name).expect("registered");
        let ask = || {
            let mut found = None;
            let question = ExchangeConfig {
                timeout: Duration::from_secs(3600),
                ..ExchangeConfig::new(name.clone())
            };
            network.ask(std::iter::once(question), |_, answer| found = Some(answer));
            found
        };
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
            let read = network.read(ConsumerConfig::new(name.clone()), Box::new(Panics));
            assert_eq!(read, Ok(()));
            assert_eq!(
                asked.join().expect("no panic"),
                Some(Err(RemoteError::Ended))
            );
        });
        assert_eq!(ask(), Some(Err(RemoteError::Ended)));
        let whole = network.read_all(ConsumerConfig::new(name.clone()), (), |(), _| Ok(()));
        assert_eq!(whole, Err(RemoteError::Ended));
    }
}
