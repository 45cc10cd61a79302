//! An application without a forwarder of its own: one face to a forwarder, on this thread.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use ndn_forwarder::FacePersistency;
use ndn_packet::NetPacket;

use crate::app::App;
use crate::config::{FaceConfig, LinkOptions, NodeConfig};
use crate::error::ClientError;
use crate::face::link::{LinkCounters, Received};
use crate::face::reader::ReadBuffers;
use crate::face::send_budget::SendBudget;
use crate::transport::conn::Conn;
use crate::transport::shm::Side;
use crate::transport::socket::{self, StreamPeer};
use crate::transport::stream::StreamFace;
use crate::transport::udp::{UdpBuffers, UdpFace, UdpPort};
use crate::uri::FaceUri;

/// Bytes read before the application's deadlines are looked at again.
const READ_BUDGET: usize = 256 * 1024;
/// Bytes that the application's answers to one batch may come to before they are written, so
/// that the other end has them while the rest is answered.
const WRITE_BYTES: usize = 256 * 1024;
/// Receive buffers that packets may hold on to before they are copied out instead.
const MAX_LIVE_BYTES: usize = 512 << 20;
/// How often the caller is asked whether it is done while nothing happens.
const ASK_INTERVAL: Duration = Duration::from_millis(100);
/// A UDP face introduces itself this often until the forwarder answers, then less often.
const HELLO_UNANSWERED: Duration = Duration::from_millis(200);
const HELLO_ANSWERED: Duration = Duration::from_secs(5);

/// How a [`Client`] connects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientOptions {
    /// Settings of the face.
    pub link: LinkOptions,
    /// Address that this end binds to.
    pub local_bind: Option<IpAddr>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            link: LinkOptions::default(),
            local_bind: None,
            connect_timeout: Duration::from_secs(5),
        }
    }
}

/// One face to a forwarder and the loop that drives an [`App`] over it, on the caller's thread.
pub struct Client {
    uri: FaceUri,
    poll: Poll,
    events: Events,
    epoch: Instant,
    now: Duration,
    face: Face,
    buffers: ReadBuffers,
    incoming: VecDeque<NetPacket>,
    /// While more bytes than this wait to be sent, the application is handed nothing that it
    /// could answer with yet more.
    enough_queued: usize,
    outgoing: Vec<NetPacket>,
}

enum Face {
    Stream(Box<StreamFace>),
    Udp(Box<Datagrams>),
}

struct Datagrams {
    face: UdpFace,
    port: UdpPort,
    buffers: UdpBuffers,
    frames: Vec<Bytes>,
    hello_at: Duration,
}

impl Client {
    /// Connects to the forwarder at `uri`, waiting until that is done.
    ///
    /// # Errors
    /// Names the face, what went wrong and what can be done.
    pub fn connect(uri: &FaceUri, options: &ClientOptions) -> Result<Self, ClientError> {
        let face = FaceConfig {
            link: options.link.clone(),
            local_bind: options.local_bind,
            persistency: FacePersistency::Persistent,
            ..FaceConfig::new(uri.clone())
        };
        NodeConfig {
            faces: vec![face],
            ..NodeConfig::default()
        }
        .validate()?;
        let failed = |error| ClientError::Connect {
            uri: uri.clone(),
            error,
        };
        let poll = Poll::new().map_err(ClientError::Loop)?;
        let (face, fd) = match uri {
            FaceUri::Udp(endpoint) => {
                let peer = endpoint.resolve().map_err(failed)?;
                let face = Datagrams::open(peer, options).map_err(failed)?;
                let fd = face.port.raw_fd();
                (Face::Udp(Box::new(face)), fd)
            }
            FaceUri::Unix(_) | FaceUri::Tcp(_) => {
                let peer = StreamPeer::resolve(uri).map_err(failed)?;
                let conn = connect(&peer, options).map_err(failed)?;
                let fd = conn.raw_fd();
                let unix = matches!(uri, FaceUri::Unix(_));
                let face = StreamFace::new(
                    conn,
                    Side::Connector,
                    unix,
                    &options.link,
                    SendBudget::unbounded().share(),
                );
                (Face::Stream(Box::new(face)), fd)
            }
        };
        poll.registry()
            .register(
                &mut SourceFd(&fd),
                Token(0),
                Interest::READABLE | Interest::WRITABLE,
            )
            .map_err(ClientError::Loop)?;
        Ok(Self {
            uri: uri.clone(),
            poll,
            events: Events::with_capacity(16),
            epoch: Instant::now(),
            now: Duration::ZERO,
            face,
            buffers: ReadBuffers::new(MAX_LIVE_BYTES),
            incoming: VecDeque::new(),
            enough_queued: options.link.send_queue_bytes / 2,
            outgoing: Vec::new(),
        })
    }

    /// Where the client is connected to.
    pub fn uri(&self) -> &FaceUri {
        &self.uri
    }

    /// The clock that the application's deadlines are told in: time since the epoch.
    pub fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// Where the clock is zero: at the connecting, unless [`Client::with_epoch`] has set it.
    pub fn epoch(&self) -> Instant {
        self.epoch
    }

    /// The same client with the clock of another one. For an application that outlives its client, and keeps times that
    /// the next one must not take for the future.
    #[must_use]
    pub fn with_epoch(mut self, epoch: Instant) -> Self {
        self.epoch = epoch;
        self.now = epoch.elapsed();
        self
    }

    /// Whether both ends have agreed to jumbo packets. They have had no time to before the
    /// first packets went to and fro.
    pub fn is_jumbo(&self) -> bool {
        match &self.face {
            Face::Stream(face) => face.link.is_jumbo(),
            Face::Udp(face) => face.face.link.is_jumbo(),
        }
    }

    /// What the face has seen on its link.
    pub fn counters(&self) -> LinkCounters {
        match &self.face {
            Face::Stream(face) => face.link.counters(),
            Face::Udp(face) => face.face.link.counters(),
        }
    }

    /// Waits for the answer to the hello, so that [`Client::is_jumbo`] tells what was agreed.
    /// A forwarder that knows no hello leaves it unanswered: then `wait` passes in vain.
    ///
    /// # Errors
    /// Where the face is lost meanwhile.
    pub fn settle(&mut self, wait: Duration) -> Result<bool, ClientError> {
        let until = self.now() + wait;
        let mut nobody = Nobody { until };
        while !self.is_jumbo() && self.now() < until {
            self.step(&mut nobody, until)?;
        }
        Ok(self.is_jumbo())
    }

    /// Drives the application until `done` says so. It is asked after every batch of packets,
    /// and ten times a second while nothing happens.
    ///
    /// Packets that come faster than the link takes the application's answers wait, here and at
    /// the sender, until it has taken some: an application that answers from a file would
    /// otherwise fill the send queue with one batch of Interests, and lose what is beyond.
    ///
    /// What the application sent when it was done is written out before this returns, as far
    /// as the forwarder takes it at once.
    ///
    /// # Errors
    /// Where the face is lost.
    pub fn run<A: App + ?Sized>(
        &mut self,
        app: &mut A,
        mut done: impl FnMut(&mut A) -> bool,
    ) -> Result<(), ClientError> {
        self.now = self.epoch.elapsed();
        app.on_wake(self.now, &mut self.outgoing);
        loop {
            if app.deadline().is_some_and(|at| at <= self.now) {
                app.on_deadline(self.now, &mut self.outgoing);
            }
            let finished = done(app);
            if finished {
                self.send();
                return self.flush();
            }
            let ask_at = self.now + ASK_INTERVAL;
            self.step(app, ask_at)?;
        }
    }

    /// Waits for something to happen, until `until` or the application's deadline at most, and
    /// hands what has come to the application.
    fn step<A: App + ?Sized>(&mut self, app: &mut A, until: Duration) -> Result<(), ClientError> {
        self.send();
        self.flush()?;
        let until = app.deadline().map_or(until, |at| at.min(until));
        let holds_back = !self.incoming.is_empty();
        let wait = match &mut self.face {
            // Room to send is what is waited for, and flushing has asked to be told of it.
            _ if holds_back => self.queued() > self.enough_queued,
            Face::Stream(face) => face.conn.may_sleep().map_err(|e| lost(&self.uri, &e))?,
            Face::Udp(face) => !face.port.readable,
        };
        let timeout = if wait {
            until.saturating_sub(self.epoch.elapsed())
        } else {
            Duration::ZERO
        };
        if let Err(error) = self.poll.poll(&mut self.events, Some(timeout))
            && error.kind() != io::ErrorKind::Interrupted
        {
            return Err(ClientError::Loop(error));
        }
        for event in &self.events {
            match &mut self.face {
                Face::Stream(face) => face.conn.on_event(event),
                Face::Udp(face) => face.port.on_event(event),
            }
        }
        self.now = self.epoch.elapsed();
        // Leave a reading peer's bytes to the next round only after the application has had
        // its turn: its window depends on what has come.
        let received = if holds_back { Ok(()) } else { self.receive() };
        while self.queued() <= self.enough_queued
            && let Some(packet) = self.incoming.pop_front()
        {
            app.on_packet(self.now, packet, &mut self.outgoing);
            self.send();
            if self.queued() > WRITE_BYTES {
                self.flush()?;
            }
        }
        received?;
        self.flush()
    }

    /// Bytes waiting to be sent.
    fn queued(&self) -> usize {
        match &self.face {
            Face::Stream(face) => face.queued(),
            Face::Udp(face) => face.face.queued(),
        }
    }

    fn receive(&mut self) -> Result<(), ClientError> {
        let incoming = &mut self.incoming;
        match &mut self.face {
            Face::Stream(face) => {
                face.receive(self.now, &mut self.buffers, READ_BUDGET, |packet| {
                    incoming.push_back(packet);
                })
                .map_err(|error| lost(&self.uri, &error))?;
            }
            Face::Udp(face) => face.receive(self.now, &mut self.buffers, incoming),
        }
        Ok(())
    }

    fn send(&mut self) {
        for packet in self.outgoing.drain(..) {
            match &mut self.face {
                Face::Stream(face) => face.send(self.now, &packet),
                Face::Udp(face) => face.face.send(self.now, &packet),
            }
        }
    }

    fn flush(&mut self) -> Result<(), ClientError> {
        match &mut self.face {
            Face::Stream(face) => face.flush().map_err(|error| lost(&self.uri, &error)),
            Face::Udp(face) => {
                face.flush(self.now);
                Ok(())
            }
        }
    }
}

impl Datagrams {
    fn open(peer: SocketAddr, options: &ClientOptions) -> io::Result<Self> {
        let bytes = options.link.socket_buffer_bytes;
        let socket = socket::connect_udp(peer, options.local_bind, bytes)?;
        let mut seed = [0; 8];
        rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty())?;
        Ok(Self {
            face: UdpFace::new(
                peer,
                &options.link,
                SendBudget::unbounded().share(),
                u64::from_ne_bytes(seed),
            ),
            port: UdpPort::new(socket)?,
            buffers: UdpBuffers::new(MAX_LIVE_BYTES),
            frames: Vec::new(),
            hello_at: Duration::ZERO,
        })
    }

    fn receive(&mut self, now: Duration, buffers: &mut ReadBuffers, out: &mut VecDeque<NetPacket>) {
        self.face.link.on_deadline(now);
        let mut budget = READ_BUDGET;
        while self.port.readable && budget > 0 {
            let frames = &mut self.frames;
            let n = self
                .port
                .receive(&mut self.buffers, &mut buffers.small, |_, frame| {
                    frames.push(frame);
                });
            budget = budget.saturating_sub(n);
            for frame in self.frames.drain(..) {
                if let Received::Packet(packet) = self.face.link.receive(now, 0, frame) {
                    out.push_back(packet);
                }
            }
        }
    }

    fn flush(&mut self, now: Duration) {
        if now >= self.hello_at {
            let answered = self.face.link.is_jumbo();
            self.face.say_hello();
            self.hello_at = now
                + if answered {
                    HELLO_ANSWERED
                } else {
                    HELLO_UNANSWERED
                };
        }
        self.face.flush(&mut self.port);
    }
}

/// Stands in while nobody is served yet.
struct Nobody {
    until: Duration,
}

impl App for Nobody {
    fn on_packet(&mut self, _: Duration, _: NetPacket, _: &mut Vec<NetPacket>) {}

    fn deadline(&self) -> Option<Duration> {
        Some(self.until)
    }
}

fn lost(uri: &FaceUri, error: &io::Error) -> ClientError {
    ClientError::Lost {
        uri: uri.clone(),
        reason: error.to_string(),
    }
}

fn connect(peer: &StreamPeer, options: &ClientOptions) -> io::Result<Conn> {
    let bytes = options.link.socket_buffer_bytes;
    let (socket, done) = socket::connect_stream(peer, options.local_bind, bytes)?;
    if !done {
        let mut poll = Poll::new()?;
        let fd = std::os::fd::AsRawFd::as_raw_fd(&socket);
        poll.registry()
            .register(&mut SourceFd(&fd), Token(0), Interest::WRITABLE)?;
        let until = Instant::now() + options.connect_timeout;
        let mut events = Events::with_capacity(1);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::from(io::ErrorKind::TimedOut));
            }
            poll.poll(&mut events, Some(left))?;
            if let Some(outcome) = socket::connected(&socket) {
                outcome?;
                break;
            }
        }
        poll.registry().deregister(&mut SourceFd(&fd))?;
    }
    Ok(Conn::new(socket, false))
}
