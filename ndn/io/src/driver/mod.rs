//! The loop: reads faces, hands what they bring to whom they serve, and writes what comes of it.
//!
//! One round: wait for events; run commands and deadlines; read each ready face once, up to a
//! budget, and carry out what comes of it; write each face that got something once.
//! Reading in batches and writing once a round is what keeps system calls per packet below
//! one; the budget is what keeps a busy face from starving the others.
//!
//! Whom the faces serve is a [`Core`]: the forwarder of a [`crate::Node`], whose loop has a thread
//! of its own (`node_loop`), or the one application of a [`crate::Client`]. A forwarder of several
//! workers has as many loops, each with a worker and some of the faces (`worker`, `exchange`).

mod accept;
mod admission;
mod commands;
mod connect;
mod core;
mod due;
mod exchange;
mod faces;
mod handshakes;
mod input;
mod manage;
mod node_loop;
mod output;
mod parcels;
pub(crate) mod shared;
mod slots;
mod timers;
mod under_way;
mod worker;

use std::collections::BinaryHeap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use ndn_forwarder::FaceId;
use ndn_packet::NetPacket;
use rustc_hash::FxHashMap;
use slab::Slab;

pub(crate) use self::core::{Core, NodeCore};
pub(crate) use self::node_loop::open_all;
use crate::config::LinkOptions;
use crate::driver::shared::{Command, Shared, poll_and_shared};
use crate::face::budgets::Budgets;
use crate::face::datagram_buffers::DatagramBuffers;
use crate::face::link::{Link, LinkCounters};
use crate::face::reader::ReadBuffers;
use crate::rate_limit::{PeerLines, RateLimit};
use handshakes::Handshakes;
use slots::{Face, FaceKind, Slot};
use timers::{Timer, Timers};

/// Token of the waker; slots have the small ones.
const WAKER: Token = Token(usize::MAX);
/// Events taken from the system at once.
const EVENTS: usize = 1024;

/// Bytes read from one face before the next one's turn.
const READ_BUDGET: usize = 256 * 1024;

/// Packets read from one face before the next one's turn, and packets sent on because of them.
const TURN_PACKETS: usize = 1024;
const TURN_SENT: u64 = 1024;
/// Packets handed over at once, at most: what the forwarder looks up together.
const MAX_BURST: usize = 64;
/// Bytes of packets that a face's peer has lent, copied before the next one's turn.
const TURN_LENT: usize = 1 << 20;
/// Packets that may come of those handed over at once, about.
const BURST_OUTPUTS: u64 = 1024;
/// Packets that may come of those handed over at once when each of them is sent on to every face.
const MOST_BURST_OUTPUTS: usize = 16 << 10;

/// What a face takes at most beside its queue, what it agrees to with its peer, and what it puts together: its state
/// here and in the forwarder, names of both ends, the beginning of a packet.
pub(crate) const FACE_BYTES: usize = 24 << 10;

/// Time until it is said how many log lines were left out.
const LINES_INTERVAL: Duration = Duration::from_secs(10);

/// What a loop is made with.
#[derive(Clone)]
pub(crate) struct DriverOptions {
    /// What all faces may take in memory.
    pub budgets: Budgets,
    /// Settings of faces that management commands make.
    pub managed_faces: LinkOptions,
    /// Where the loop's clock is zero.
    pub epoch: Instant,
}

/// The loop's state.
pub(crate) struct Driver<C> {
    /// Whom the faces serve.
    pub core: C,
    poll: Poll,
    events: Events,
    shared: Arc<Shared>,
    epoch: Instant,
    now: Duration,
    /// Bytes read from one face in one turn, about.
    pub read_budget: usize,
    slots: Slab<Slot>,
    by_face: FxHashMap<u64, usize>,
    apps: Vec<usize>,
    /// Peers that have not proven yet who they are.
    handshakes: Handshakes,
    /// Slots that may have something to read.
    ready: Vec<usize>,
    /// Faces with bytes queued since their last flush.
    dirty: Vec<usize>,
    /// Faces whose shared memory must be armed before sleeping.
    unarmed: Vec<usize>,
    timers: Timers,
    buffers: ReadBuffers,
    datagram_buffers: DatagramBuffers,
    managed_faces: LinkOptions,
    budgets: Budgets,
    /// Log lines about peers.
    lines: Arc<PeerLines>,
    lines_timer: bool,
    /// Packets sent on all faces.
    sent: u64,
    /// Packets handed over at once: fewer when each of them is sent on to many faces.
    burst: usize,
    commands: Vec<Command>,
    packets: Vec<NetPacket>,
    datagrams: Vec<(SocketAddr, Bytes)>,
    /// Log lines about Data too large for a face.
    too_large: RateLimit,
    rejected: RateLimit,
    /// The forwarder asks for more than one round carries out.
    outputs_left: bool,
    stop: bool,
}

impl<C: Core> Driver<C> {
    /// A loop without faces.
    ///
    /// # Errors
    /// Where the system has no descriptors left to wait with.
    pub fn new(core: C, options: DriverOptions) -> io::Result<Self> {
        let (poll, shared) = poll_and_shared(WAKER)?;
        let budgets = options.budgets;
        Ok(Self {
            core,
            poll,
            events: Events::with_capacity(EVENTS),
            shared,
            epoch: options.epoch,
            now: options.epoch.elapsed(),
            read_budget: READ_BUDGET,
            slots: Slab::new(),
            by_face: FxHashMap::default(),
            apps: Vec::new(),
            handshakes: Handshakes::default(),
            ready: Vec::new(),
            dirty: Vec::new(),
            unarmed: Vec::new(),
            timers: Timers {
                heap: BinaryHeap::new(),
                issued: 0,
            },
            buffers: ReadBuffers::new(&budgets),
            datagram_buffers: DatagramBuffers::new(&budgets.receive_buffers),
            budgets,
            lines: Arc::new(PeerLines::default()),
            lines_timer: false,
            sent: 0,
            burst: MAX_BURST,
            managed_faces: options.managed_faces,
            commands: Vec::new(),
            packets: Vec::new(),
            datagrams: Vec::new(),
            too_large: RateLimit::default(),
            rejected: RateLimit::default(),
            outputs_left: false,
            stop: false,
        })
    }

    /// Waits for events, until `until` at most and not at all while there is work, and takes in
    /// what they and the loop's own timers bring.
    ///
    /// # Errors
    /// Where the system cannot wait.
    pub fn wait(&mut self, until: Option<Duration>) -> io::Result<()> {
        let timeout = self.timeout(until);
        let mut events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        let polled = self.poll.poll(&mut events, timeout);
        self.shared.awake();
        self.now = self.epoch.elapsed();
        if polled.is_ok() {
            for event in &events {
                if event.token() != WAKER {
                    self.on_event(event);
                }
            }
        }
        self.events = events;
        while let Some(timer) = self.timers.pop(self.now) {
            self.on_timer(timer);
        }
        self.step_handshakes();
        match polled {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    /// How long to wait: not at all while there is work, else until the next deadline.
    pub fn timeout(&mut self, until: Option<Duration>) -> Option<Duration> {
        // Faces that nobody takes packets from are left alone, what they have or not.
        let reads = self.core.takes_more() && (!self.ready.is_empty() || !self.arm());
        if reads || !self.dirty.is_empty() || self.handshakes.is_ready() {
            return Some(Duration::ZERO);
        }
        if !self.shared.may_sleep() || !self.core.may_sleep() {
            return Some(Duration::ZERO);
        }
        // What kept faces from being read may have gone meanwhile.
        if self.core.takes_more() && !(self.ready.is_empty() && self.unarmed.is_empty()) {
            return Some(Duration::ZERO);
        }
        let apps = self.apps.iter().filter_map(|&at| self.app_deadline(at));
        let deadline = apps
            .chain(until)
            .chain(self.core.deadline())
            .chain(self.timers.next())
            .min()?;
        Some(deadline.saturating_sub(self.epoch.elapsed()))
    }

    /// What other threads and the loop share.
    pub fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// Drops what other threads have asked of the loop, for a core that is only ever woken; whether there was something.
    pub fn drop_commands(&mut self) -> bool {
        self.shared.take(&mut self.commands);
        let were_some = !self.commands.is_empty();
        self.commands.clear();
        were_some
    }

    /// The loop's clock: when it last woke.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Where the loop's clock is zero.
    pub fn epoch(&self) -> Instant {
        self.epoch
    }

    /// Sets the loop's clock.
    pub fn set_epoch(&mut self, epoch: Instant) {
        self.epoch = epoch;
        self.now = epoch.elapsed();
    }

    /// Bytes waiting to be sent on all faces.
    pub fn queued(&self) -> usize {
        self.budgets.send_queues.used()
    }

    /// The link of a face that is up.
    pub fn link(&self, id: FaceId) -> Option<&Link> {
        match self.slots.get(*self.by_face.get(&id.0)?) {
            Some(Slot::Face(face)) => face.link(),
            _ => None,
        }
    }

    /// What a face has seen on its link.
    pub fn counters(&self, id: FaceId) -> Option<LinkCounters> {
        match self.slots.get(*self.by_face.get(&id.0)?)? {
            Slot::Face(Face {
                kind: FaceKind::Stream(stream),
                ..
            }) => Some(stream.counters()),
            Slot::Face(Face {
                kind: FaceKind::Udp(udp),
                ..
            }) => Some(udp.face.link.counters()),
            _ => None,
        }
    }

    /// Whether a log line that a peer has brought about may be written.
    fn may_log(&mut self) -> bool {
        let allows = self.lines.allows(self.now);
        if !allows && !std::mem::replace(&mut self.lines_timer, true) {
            self.timers.set(self.now + LINES_INTERVAL, Timer::Lines);
        }
        allows
    }

    fn register(&self, fd: RawFd, at: usize) -> io::Result<()> {
        self.poll.registry().register(
            &mut SourceFd(&fd),
            Token(at),
            Interest::READABLE | Interest::WRITABLE,
        )
    }

    /// The same for a connection that is in another slot now; its events are told anew.
    fn register_anew(&self, fd: RawFd, at: usize) -> io::Result<()> {
        self.poll.registry().reregister(
            &mut SourceFd(&fd),
            Token(at),
            Interest::READABLE | Interest::WRITABLE,
        )
    }

    fn face(&mut self, id: FaceId) -> Option<(usize, &mut Face)> {
        let at = *self.by_face.get(&id.0)?;
        match self.slots.get_mut(at)? {
            Slot::Face(face) => Some((at, face)),
            _ => None,
        }
    }

    /// Tells the core how large a packet a face takes, where that has changed.
    fn note_agreement(&mut self, at: usize) {
        if let Some(Slot::Face(face)) = self.slots.get_mut(at)
            && let Some(max) = face.link().map(Link::limit)
            && std::mem::replace(&mut face.max_packet, max) != max
        {
            self.core.face_takes(face.id, max);
        }
    }

    fn make_ready(&mut self, at: usize) {
        let flag = match &mut self.slots[at] {
            Slot::Face(face) => &mut face.ready,
            Slot::Port(port) => &mut port.ready,
            Slot::Listener(_) | Slot::Arriving(_) => return,
        };
        if !std::mem::replace(flag, true) {
            self.ready.push(at);
        }
    }

    fn make_dirty(&mut self, at: usize) {
        if let Slot::Face(face) = &mut self.slots[at]
            && !std::mem::replace(&mut face.dirty, true)
        {
            self.dirty.push(at);
        }
    }
}

fn random_u64() -> io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}
