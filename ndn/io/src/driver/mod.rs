//! The loop: one thread that reads faces, feeds the forwarder, and writes what comes of it.
//!
//! One round: wait for events; run commands and deadlines; read each ready face once, up to a
//! budget, and carry out what the forwarder asks; write each face that got something once.
//! Reading in batches and writing once a round is what keeps system calls per packet below
//! one; the budget is what keeps a busy face from starving the others.

mod commands;
mod connect;
mod faces;
mod input;
mod manage;
mod output;
pub(crate) mod shared;
mod slots;
mod timers;

use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use ndn_forwarder::{FaceId, Forwarder, Queues};
use ndn_packet::NetPacket;
use rustc_hash::FxHashMap;
use slab::Slab;

use crate::config::{LinkOptions, NodeConfig};
use crate::driver::shared::{Command, Shared, poll_and_shared};
use crate::error::StartError;
use crate::face::reader::ReadBuffers;
use crate::face::send_budget::SendBudget;
use crate::transport::udp::UdpBuffers;
use crate::uri::FaceUri;
use slots::{Face, PortOwner, Slot};
use timers::Timers;

/// Token of the waker; slots have the small ones.
const WAKER: Token = Token(usize::MAX);
/// Outputs carried out before faces are written and events looked at again.
const OUTPUTS_A_ROUND: usize = 4096;

/// Packets may hold on to receive buffers of twice the content store and of this many bytes;
/// beyond, they are copied out.
const LIVE_BESIDE_STORE: usize = 256 << 20;

/// The loop's state.
pub(crate) struct Driver {
    poll: Poll,
    shared: Arc<Shared>,
    forwarder: Forwarder,
    epoch: Instant,
    now: Duration,
    slots: Slab<Slot>,
    by_face: FxHashMap<u64, usize>,
    apps: Vec<usize>,
    /// Slots that may have something to read.
    ready: Vec<usize>,
    /// Faces with bytes queued since their last flush.
    dirty: Vec<usize>,
    /// Faces whose shared memory must be armed before sleeping.
    unarmed: Vec<usize>,
    timers: Timers,
    buffers: ReadBuffers,
    udp_buffers: UdpBuffers,
    managed_faces: LinkOptions,
    /// For what waits to be sent on all faces.
    send_budget: Arc<SendBudget>,
    commands: Vec<Command>,
    packets: Vec<NetPacket>,
    datagrams: Vec<(SocketAddr, Bytes)>,
    /// The forwarder asks for more than one round carries out.
    outputs_left: bool,
    stop: bool,
}

impl Driver {
    /// Opens what the configuration names.
    pub fn open(mut config: NodeConfig) -> Result<(Self, Arc<Shared>), StartError> {
        let (poll, shared) = poll_and_shared(WAKER).map_err(StartError::Loop)?;
        if config.forwarder.seed == 0 {
            config.forwarder.seed = random_u64().map_err(StartError::Loop)?;
        }
        if config.forwarder.unix_time_at_zero.is_zero() {
            config.forwarder.unix_time_at_zero = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
        }
        let max_live = config
            .forwarder
            .cs_capacity_bytes
            .saturating_mul(2)
            .saturating_add(LIVE_BESIDE_STORE);
        let mut driver = Self {
            poll,
            shared: shared.clone(),
            forwarder: Forwarder::new(config.forwarder),
            epoch: Instant::now(),
            now: Duration::ZERO,
            slots: Slab::new(),
            by_face: FxHashMap::default(),
            apps: Vec::new(),
            ready: Vec::new(),
            dirty: Vec::new(),
            unarmed: Vec::new(),
            timers: Timers {
                heap: BinaryHeap::new(),
                issued: 0,
            },
            buffers: ReadBuffers::new(max_live),
            udp_buffers: UdpBuffers::new(max_live),
            managed_faces: config.managed_faces,
            send_budget: SendBudget::new(config.send_queues_bytes),
            commands: Vec::new(),
            packets: Vec::new(),
            datagrams: Vec::new(),
            outputs_left: false,
            stop: false,
        };
        for listener in config.listeners {
            let uri = listener.uri.clone();
            driver
                .open_listener(listener)
                .map_err(|error| StartError::Listen { uri, error })?;
        }
        let channels = driver.listening().iter().map(ToString::to_string).collect();
        driver.forwarder.set_channels(channels);
        for (prefix, strategy) in &config.strategies {
            driver.forwarder.set_strategy(prefix, *strategy);
        }
        for face in config.faces {
            let uri = face.uri.clone();
            driver
                .open_face(face)
                .map_err(|error| StartError::Face { uri, error })?;
        }
        Ok((driver, shared))
    }

    /// Where the loop listens, in the order of the configuration.
    pub fn listening(&self) -> Vec<FaceUri> {
        let uri = |(_, slot): (usize, &Slot)| match slot {
            Slot::Listener(listener) => Some(listener.config.uri.clone()),
            Slot::Port(slots::Port {
                owner: PortOwner::Listener(listener),
                ..
            }) => Some(listener.config.uri.clone()),
            _ => None,
        };
        self.slots.iter().filter_map(uri).collect()
    }

    /// Runs until told to stop.
    pub fn run(mut self) {
        self.shared.enter_loop();
        let _closing = Closing(self.shared.clone());
        let mut events = Events::with_capacity(1024);
        while !self.stop {
            let timeout = self.timeout();
            let polled = self.poll.poll(&mut events, timeout);
            self.shared.awake();
            self.now = self.epoch.elapsed();
            if let Err(error) = polled
                && error.kind() != std::io::ErrorKind::Interrupted
            {
                tracing::error!(%error, "the node's loop cannot wait for events; it ends");
                break;
            }
            for event in &events {
                if event.token() != WAKER {
                    self.on_event(event);
                }
            }
            self.run_commands();
            self.run_deadlines();
            self.forwarder.set_queues(self.queues());
            self.read_ready();
            self.carry_out(OUTPUTS_A_ROUND);
            self.flush();
        }
        self.close();
    }

    /// How long to wait: not at all while there is work, else until the next deadline.
    fn timeout(&mut self) -> Option<Duration> {
        let busy = !self.ready.is_empty() || !self.dirty.is_empty();
        if std::mem::take(&mut self.outputs_left) || busy || !self.arm() {
            return Some(Duration::ZERO);
        }
        if !self.shared.may_sleep() {
            return Some(Duration::ZERO);
        }
        let apps = self.apps.iter().filter_map(|&at| self.app_deadline(at));
        let deadline = apps
            .chain(self.forwarder.deadline())
            .chain(self.timers.next())
            .min()?;
        Some(deadline.saturating_sub(self.epoch.elapsed()))
    }

    fn run_deadlines(&mut self) {
        if self.forwarder.deadline().is_some_and(|at| at <= self.now) {
            self.forwarder.on_deadline(self.now);
        }
        for i in 0..self.apps.len() {
            let at = self.apps[i];
            if self.app_deadline(at).is_some_and(|due| due <= self.now) {
                self.with_app(at, |app, now, out| app.on_deadline(now, out));
            }
        }
        while let Some(timer) = self.timers.pop(self.now) {
            self.on_timer(timer);
        }
    }

    /// What waits to be sent on all faces, and what may.
    fn queues(&self) -> Queues {
        Queues {
            bytes: self.send_budget.used(),
            capacity_bytes: self.send_budget.capacity(),
            refused: self.send_budget.refused(),
        }
    }

    fn register(&self, fd: RawFd, at: usize) -> std::io::Result<()> {
        self.poll.registry().register(
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

    fn make_ready(&mut self, at: usize) {
        let flag = match &mut self.slots[at] {
            Slot::Face(face) => &mut face.ready,
            Slot::Port(port) => &mut port.ready,
            Slot::Listener(_) => return,
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

    fn close(self) {
        for (_, slot) in &self.slots {
            if let Slot::Listener(listener) = slot
                && let FaceUri::Unix(path) = &listener.config.uri
                && let Err(error) = std::fs::remove_file(path)
            {
                tracing::warn!(%error, path = %path.display(), "cannot remove the socket");
            }
        }
    }
}

/// Tells those who wait for the loop that it has ended, however it has.
struct Closing(Arc<Shared>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Whether an address is one of this host's own for itself.
fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

fn random_u64() -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}
