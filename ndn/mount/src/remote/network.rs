//! The network's side of a mount: a node of its own with a face to the forwarder, which comes back by itself, and all that is
//! being asked for over it. Calls wait on their own threads; one loop does the talking.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ndn_endpoint::{Consumer, ConsumerConfig, Exchange, ExchangeConfig};
use ndn_io::{App, AppHandle, FaceConfig, FaceUri, Node, NodeConfig};
use ndn_packet::{Data, Interest, Name, NetKind, NetPacket};

use super::RemoteError;
use crate::error::MountError;
use crate::handles::lock;

/// How long the forwarder may take to be connected at the start.
const CONNECT: Duration = Duration::from_secs(5);
/// Longest wait between attempts to reach a forwarder that went away.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// Who reads a stream of segments. All calls come from the loop, which they must not keep.
pub trait Reading: Send {
    /// The next segment in order; false where it is not what was signed, and must come anew.
    fn take(&mut self, segment: u64, data: &Data) -> bool;
    /// The last segment that is wanted so far; `None` once nobody wants any more of it.
    fn wanted(&self) -> Option<u64>;
    /// All of it was taken, or it came to an end.
    fn over(&mut self, result: Result<(), RemoteError>);
}

/// What the loop is asked to do.
enum Order {
    Ask(ExchangeConfig, Sender<Result<Data, RemoteError>>),
    Read(ConsumerConfig, Box<dyn Reading>),
}

#[derive(Default)]
struct Shared {
    orders: Mutex<Vec<Order>>,
    stopped: AtomicBool,
}

/// A way to the network.
pub struct Network {
    // Goes before the node that it is attached to.
    handle: AppHandle,
    node: Node,
    shared: Arc<Shared>,
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
        let shared = Arc::new(Shared::default());
        let app = Loop {
            shared: shared.clone(),
            asked: Vec::new(),
        };
        let handle = node
            .attach(Box::new(app), "mount")
            .map_err(|e| failed(e.to_string()))?;
        let network = Self {
            handle,
            node,
            shared,
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

    fn order(&self, order: Order) {
        lock(&self.shared.orders).push(order);
        self.handle.wake();
    }

    /// Asks for one packet each; the answers come in the order of the questions.
    pub fn ask(&self, questions: Vec<ExchangeConfig>) -> Vec<Result<Data, RemoteError>> {
        let waiting: Vec<Receiver<_>> = questions
            .into_iter()
            .map(|question| {
                let (answer, answered) = channel();
                self.order(Order::Ask(
                    ExchangeConfig {
                        seed: self.seed(),
                        ..question
                    },
                    answer,
                ));
                answered
            })
            .collect();
        waiting
            .into_iter()
            .map(|answered| answered.recv().unwrap_or(Err(RemoteError::Stopped)))
            .collect()
    }

    /// Begins to read a stream.
    pub fn read(&self, config: ConsumerConfig, reading: Box<dyn Reading>) {
        let seed = self.seed();
        self.order(Order::Read(ConsumerConfig { seed, ..config }, reading));
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
        self.read(config, Box::new(whole));
        is_done.recv().unwrap_or(Err(RemoteError::Stopped))
    }

    /// Readers want more, or less, than before.
    pub fn wake(&self) {
        self.handle.wake();
    }

    /// Ends all that is being asked for, and answers nothing from now on.
    pub fn stop(&self) {
        self.shared.stopped.store(true, Ordering::Release);
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

/// What is being asked for.
enum Asked {
    Question(Box<Exchange>, Sender<Result<Data, RemoteError>>),
    Stream(Box<Consumer>, Box<dyn Reading>),
}

/// The loop's side.
struct Loop {
    shared: Arc<Shared>,
    asked: Vec<Asked>,
}

impl Asked {
    fn deadline(&self) -> Option<Duration> {
        match self {
            Asked::Question(exchange, _) => exchange.deadline(),
            Asked::Stream(consumer, _) => consumer.deadline(),
        }
    }

    /// Takes a packet; false where it is for others.
    fn on_data(&mut self, now: Duration, data: &Data, marked: bool) -> bool {
        match self {
            Asked::Question(exchange, _) => exchange.on_data(data.clone()),
            Asked::Stream(consumer, _) if consumer.wants(data.name()) => {
                consumer.on_data(now, data.clone(), marked);
                true
            }
            Asked::Stream(..) => false,
        }
    }

    /// Hands on what has come, sends what may be sent; true when it is over.
    fn turn(&mut self, now: Duration, out: &mut Vec<NetPacket>) -> bool {
        let mut send = |wire| out.extend(Interest::parse(wire).ok().map(NetPacket::interest));
        match self {
            Asked::Question(exchange, answer) => {
                while let Some(wire) = exchange.poll_interest(now) {
                    send(wire);
                }
                let Some(result) = exchange.result() else {
                    return false;
                };
                // Who waits may be gone.
                let _ = answer.send(match result {
                    Ok(data) => Ok(data.clone()),
                    Err(error) => Err(error.into()),
                });
                true
            }
            Asked::Stream(consumer, reading) => {
                while let Some((segment, data)) = consumer.read() {
                    if !reading.take(segment, &data) {
                        consumer.reject(segment);
                    }
                }
                let Some(wanted) = reading.wanted() else {
                    return true;
                };
                consumer.want_up_to(wanted);
                while let Some(wire) = consumer.poll_interest(now) {
                    send(wire);
                }
                if let Some(reason) = consumer.failure() {
                    reading.over(Err(reason.into()));
                    return true;
                }
                if consumer.is_done() {
                    reading.over(Ok(()));
                }
                consumer.is_done()
            }
        }
    }
}

impl Loop {
    /// Gives each of which `of` says so its turn.
    fn turn(
        &mut self,
        now: Duration,
        out: &mut Vec<NetPacket>,
        mut of: impl FnMut(&mut Asked) -> bool,
    ) {
        self.asked
            .retain_mut(|asked| !(of(asked) && asked.turn(now, out)));
    }
}

impl App for Loop {
    fn on_packet(&mut self, now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        let marked = packet.is_marked();
        match packet.packet {
            NetKind::Data(data) => {
                self.turn(now, out, |asked| asked.on_data(now, &data, marked));
            }
            NetKind::Nack { reason, interest } => self.turn(now, out, |asked| {
                match asked {
                    Asked::Question(exchange, _) => exchange.on_nack(now, &interest, reason),
                    Asked::Stream(consumer, _) => consumer.on_nack(now, &interest, reason),
                }
                true
            }),
            NetKind::Interest(_) => {}
        }
    }

    fn on_wake(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        let orders = std::mem::take(&mut *lock(&self.shared.orders));
        self.asked
            .extend(orders.into_iter().map(|order| match order {
                Order::Ask(config, answer) => {
                    Asked::Question(Box::new(Exchange::new(config, now)), answer)
                }
                Order::Read(config, reading) => {
                    Asked::Stream(Box::new(Consumer::new(config, now)), reading)
                }
            }));
        if self.shared.stopped.load(Ordering::Acquire) {
            for asked in self.asked.drain(..) {
                // Whoever asked a question sees that nobody answers any more.
                if let Asked::Stream(_, mut reading) = asked {
                    reading.over(Err(RemoteError::Stopped));
                }
            }
        }
        self.turn(now, out, |_| true);
    }

    fn deadline(&self) -> Option<Duration> {
        self.asked.iter().filter_map(Asked::deadline).min()
    }

    fn on_deadline(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        self.turn(now, out, |asked| {
            let is_due = asked.deadline().is_some_and(|at| at <= now);
            if is_due {
                match asked {
                    Asked::Question(exchange, _) => exchange.on_deadline(now),
                    Asked::Stream(consumer, _) => consumer.on_deadline(now),
                }
            }
            is_due
        });
    }
}
