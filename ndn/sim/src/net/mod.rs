//! The network: a forwarder in each node, lines between them, and one clock.
//!
//! It knows packets and trains of TCP frames, and nothing of what they are for: what reaches an application or the end
//! of a connection, and the timers that were asked for, come out of [`Network::next_arrival`] to whoever drives it.

mod events;
mod link;
mod node;

pub use link::LinkCounters;

use crate::topology::{NodeId, Path, Routes, Topology};
use crate::wire::{Wire, elided_capacity, packet_bytes};
use events::{Event, Events};
use link::Line;
use ndn_forwarder::{CongestionMarker, FaceId, Forwarder, StrategyKind};
use ndn_packet::{Name, NetKind, NetPacket};
use node::Node;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::Duration;

/// Number of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AppId(pub u32);

/// Number of a TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId(pub u32);

/// How routers come to know where a name leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routing {
    /// They ask all around and remember who answered (self-learning). For trees.
    Learned,
    /// A routing protocol has told them: shortest ways, the same one of several equals for all that is asked under a
    /// name.
    Computed,
}

/// Settings of a network.
#[derive(Debug, Clone)]
pub struct NetworkConfig {
    /// How payload becomes frames.
    pub wire: Wire,
    /// How routers know where names lead.
    pub routing: Routing,
    /// Of routers on which hosts are. The content store's capacity is in bytes of whole packets.
    pub router: ndn_forwarder::Config,
    /// Of routers on which no host is, above the others. The same of their content stores.
    pub core: ndn_forwarder::Config,
    /// Of hosts.
    pub host: ndn_forwarder::Config,
    /// What all names begin with.
    pub root: Name,
    /// Bytes of named data that a face keeps for its link before that link's own queue: a face is a TCP connection, which
    /// waits rather than overrun the queue, and what waits beyond this is dropped.
    pub face_queue_bytes: u64,
    /// Data that queues behind more bytes than this carries a congestion mark now and then, as faces do it.
    pub mark_bytes: u64,
    /// Of nonces and hash tables.
    pub seed: u64,
}

/// What comes out of a network.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a box would be an allocation for each packet"
)]
pub enum Arrival {
    /// A packet for an application.
    Packet {
        /// The application.
        app: AppId,
        /// The packet.
        packet: NetPacket,
    },
    /// What was sent over a TCP connection.
    Train {
        /// The connection.
        conn: ConnId,
        /// Whether it came to the end that the connection was opened to.
        forward: bool,
        /// What the sender wrote on it.
        tag: u64,
    },
    /// A timer that was asked for.
    Timer(u64),
}

/// What travels on a line.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a box would be an allocation for each packet and hop"
)]
enum Transit {
    Packet(NetPacket),
    Train(Train),
}

#[derive(Debug, Clone, Copy)]
struct Train {
    conn: ConnId,
    tag: u64,
    hop: u16,
    bytes: u64,
    /// When the last of its frames is where the first one is.
    tail: u64,
}

#[derive(Debug)]
struct Conn {
    there: Path,
    back: Path,
    /// Messages on their way back, and forward: when they arrive, and what they say.
    messages: [VecDeque<(u64, u64)>; 2],
}

#[derive(Debug, Clone, Copy)]
struct App {
    node: NodeId,
    face: FaceId,
}

/// A network in progress.
#[derive(Debug)]
pub struct Network<'a> {
    config: NetworkConfig,
    topology: &'a Topology,
    routes: Routes<'a>,
    nodes: Vec<Node>,
    lines: Vec<Line<Transit>>,
    /// One for each line.
    markers: Vec<CongestionMarker>,
    /// For each line who is at its end, and which of its faces the line leads to.
    ends: Vec<(NodeId, FaceId)>,
    apps: Vec<Option<App>>,
    conns: Vec<Conn>,
    events: Events,
    /// What has arrived at the present moment.
    arrived: VecDeque<Arrival>,
    /// Routes that are there: router and prefix.
    routed: HashSet<(NodeId, Name)>,
    now: u64,
    handled: u64,
}

impl NetworkConfig {
    /// Makes all content stores hold as many segments, whose content of `content` bytes is left out, as they would hold
    /// with it; `example` is a name such as theirs without the segment's number.
    pub(crate) fn elide(&mut self, example: &Name, content: u64) {
        for forwarder in [&mut self.router, &mut self.core, &mut self.host] {
            forwarder.cs_capacity_bytes =
                elided_capacity(forwarder.cs_capacity_bytes, example, content);
            forwarder.cs_copy_below_bytes = 0;
        }
    }
}

impl<'a> Network<'a> {
    /// A network at rest. Forwarders begin when something reaches them.
    pub fn new(topology: &'a Topology, config: NetworkConfig) -> Self {
        let lines = topology.links().iter().flat_map(|link| {
            let line = || Line::new(link.spec);
            [line(), line()]
        });
        let lines: Vec<_> = lines.collect();
        let marker = CongestionMarker::new(config.mark_bytes as usize);
        let ends = topology.links().iter().enumerate().flat_map(|(id, link)| {
            let [a, b] = link.ends;
            [b, a].map(|end| {
                let links = topology.neighbours(end).iter();
                let place = links.take_while(|&&(link, _)| link != id as u32).count();
                (end, node::face_of_place(place))
            })
        });
        Network {
            ends: ends.collect(),
            markers: vec![marker; lines.len()],
            lines,
            nodes: topology.nodes().iter().map(|_| Node::default()).collect(),
            routes: Routes::new(topology),
            apps: Vec::new(),
            conns: Vec::new(),
            events: Events::default(),
            arrived: VecDeque::new(),
            routed: HashSet::new(),
            now: 0,
            handled: 0,
            topology,
            config,
        }
    }

    /// The time.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.now)
    }

    /// Events handled so far.
    pub fn events_handled(&self) -> u64 {
        self.handled
    }

    /// Ways through the network.
    pub fn routes(&mut self) -> &mut Routes<'a> {
        &mut self.routes
    }

    /// The network's shape.
    pub fn topology(&self) -> &'a Topology {
        self.topology
    }

    /// How payload becomes frames.
    pub fn wire(&self) -> Wire {
        self.config.wire
    }

    /// What a direction of a link has carried; link `l` is `2l` from its first end to its second, and `2l + 1`.
    pub fn counters(&self, direction: u32) -> LinkCounters {
        self.lines[direction as usize].counters
    }

    /// Bytes on their way over a direction of a link.
    pub fn in_flight_bytes(&self, direction: u32) -> u64 {
        self.lines[direction as usize].in_flight_bytes()
    }

    /// A node's forwarder, once something has reached it.
    pub fn forwarder(&self, node: NodeId) -> Option<&Forwarder> {
        self.nodes[node as usize].forwarder()
    }

    /// The next thing that concerns the driver; `None` when nothing will happen any more.
    pub fn next_arrival(&mut self) -> Option<Arrival> {
        loop {
            if let Some(arrival) = self.arrived.pop_front() {
                return Some(arrival);
            }
            let (at, event) = self.events.pop()?;
            debug_assert!(at >= self.now, "time goes back");
            self.now = at;
            self.handled += 1;
            match event {
                Event::Timer(token) => return Some(Arrival::Timer(token)),
                Event::Node(node) => self.on_deadline(node),
                Event::Message(end) => {
                    if let Some(arrival) = self.on_message(end) {
                        return Some(arrival);
                    }
                }
                Event::Line(direction) => {
                    let out = self.lines[direction as usize].pop();
                    self.on_line(direction, Event::Line(direction), out);
                }
                Event::Express(direction) => {
                    let out = self.lines[direction as usize].pop_express();
                    self.on_line(direction, event, out);
                }
            }
        }
    }

    /// Asks for [`Arrival::Timer`] at a time, now if that is past.
    pub fn set_timer(&mut self, at: Duration, token: u64) {
        let at = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        self.events.push(at.max(self.now), Event::Timer(token));
    }

    // ---- named data ----

    /// Adds an application to a host.
    pub fn add_app(&mut self, node: NodeId) -> AppId {
        let id = AppId(self.apps.len() as u32);
        let now = self.now();
        let face = self.begin(node).add_app(now, id);
        self.apps.push(Some(App { node, face }));
        id
    }

    /// Takes an application away; what was on its way to it is lost.
    pub fn remove_app(&mut self, id: AppId) {
        let now = self.now();
        if let Some(app) = self.apps[id.0 as usize].take() {
            self.nodes[app.node as usize].remove_app(now, app.face);
            self.drain(app.node);
        }
    }

    /// Interests under a prefix that reach the application's host go to it.
    pub fn register(&mut self, id: AppId, prefix: &Name) {
        if let Some(app) = self.apps[id.0 as usize] {
            self.begin(app.node).add_route(prefix, app.face, 0);
        }
    }

    /// Where routes are computed: tells all nodes on the ways from `from` to the nearest of `producers` what leads
    /// there. Of several ways all names take the one that the name chooses.
    pub fn announce(&mut self, prefix: &Name, from: NodeId, producers: &[NodeId]) {
        if self.config.routing == Routing::Learned {
            return;
        }
        let selector = selector(prefix);
        let mut at = from;
        loop {
            let nearest = producers.iter().copied();
            let Some(to) = nearest.min_by_key(|&to| (self.routes.distance(at, to), to)) else {
                return;
            };
            let Some((direction, next)) = self.routes.next(at, to, selector) else {
                return;
            };
            if !self.topology.is_host(at) && !self.routed.insert((at, prefix.clone())) {
                return;
            }
            if !self.topology.is_host(at) {
                // The other direction ends here, at the face that this one leaves by.
                let (_, face) = self.ends[(direction ^ 1) as usize];
                self.begin(at).add_route(prefix, face, 0);
            }
            at = next;
        }
    }

    /// A packet from an application.
    pub fn send(&mut self, id: AppId, packet: NetPacket) {
        if let Some(app) = self.apps[id.0 as usize] {
            self.receive(app.node, app.face, packet);
        }
    }

    /// The node, its forwarder begun.
    fn begin(&mut self, id: NodeId) -> &mut Node {
        let node = &mut self.nodes[id as usize];
        if node.forwarder().is_none() {
            let is_host = self.topology.is_host(id);
            let of_level = match self.routes.tier(id) {
                0 => &self.config.host,
                1 => &self.config.router,
                _ => &self.config.core,
            };
            let mut config = of_level.clone();
            config.seed = mix(self.config.seed, u64::from(id));
            let links = self.topology.neighbours(id).iter();
            node.begin(config, links.map(|&(link, _)| self.topology.line(link, id)));
            if self.config.routing == Routing::Learned {
                node.set_strategy(&self.config.root, StrategyKind::SelfLearning);
            }
            if is_host {
                // A host's one link.
                node.add_route(&self.config.root, node::face_of_place(0), 10);
            }
        }
        node
    }

    fn receive(&mut self, id: NodeId, face: FaceId, packet: NetPacket) {
        let now = self.now();
        self.begin(id).receive(now, face, packet);
        self.drain(id);
    }

    fn on_deadline(&mut self, id: NodeId) {
        let now = self.now();
        self.nodes[id as usize].on_deadline(now);
        self.drain(id);
    }

    /// Does what a forwarder wants done.
    fn drain(&mut self, id: NodeId) {
        while let Some((target, packet)) = self.nodes[id as usize].poll() {
            match target {
                node::Target::App(app) => self.arrived.push_back(Arrival::Packet { app, packet }),
                node::Target::Line(direction) => self.send_packet(direction, packet),
            }
        }
        if let Some(at) = self.nodes[id as usize].deadline_to_set() {
            self.events.push(at.max(self.now), Event::Node(id));
        }
    }

    fn send_packet(&mut self, direction: u32, mut packet: NetPacket) {
        let payload = packet_bytes(&packet);
        let bytes = self.config.wire.bytes(payload);
        let now = self.now;
        let line = &mut self.lines[direction as usize];
        if !matches!(packet.packet, NetKind::Data(_)) {
            let at = line.take_express(now, bytes);
            line.counters.named_bytes += bytes;
            self.put_on_express(direction, at, bytes, Transit::Packet(packet));
            return;
        }
        // A named-data packet is taken in whole before it is passed on.
        let room = line
            .queue_bytes()
            .saturating_add(self.config.face_queue_bytes);
        let Some(passage) = line.take(now, now, bytes, u64::MAX, room) else {
            return;
        };
        line.counters.named_bytes += bytes;
        let waiting = passage.waiting as usize;
        if self.markers[direction as usize].marks(Duration::from_nanos(now), waiting) {
            packet.congestion_mark = Some(1);
            line.counters.marked += 1;
        }
        line.unacked += payload;
        let mut acks = 0;
        let each = self.config.wire.acked;
        if each > 0 && line.unacked >= each {
            acks = line.unacked / each;
            line.unacked %= each;
        }
        self.put_on(direction, passage.tail, bytes, Transit::Packet(packet));
        if acks > 0 {
            let back = &mut self.lines[(direction ^ 1) as usize];
            let bytes = acks * self.config.wire.header;
            back.charge(now, bytes);
            back.counters.named_bytes += bytes;
        }
    }

    // ---- TCP ----

    /// A connection between two hosts; `selector` chooses among equal ways.
    pub fn connect(&mut self, from: NodeId, to: NodeId, selector: u64) -> ConnId {
        let conn = Conn {
            there: self.routes.path(from, to, selector),
            back: self.routes.path(to, from, selector),
            messages: Default::default(),
        };
        self.conns.push(conn);
        ConnId(self.conns.len() as u32 - 1)
    }

    /// Links that a connection crosses.
    pub fn conn_links(&self, conn: ConnId) -> usize {
        self.conns[conn.0 as usize].there.len()
    }

    /// Sends `bytes` of frames forward over a connection. They are dropped where a queue is full.
    pub fn send_train(&mut self, conn: ConnId, bytes: u64, tag: u64) {
        self.pass_on(Train {
            conn,
            tag,
            hop: 0,
            bytes,
            tail: self.now,
        });
    }

    /// Sends a small message of `bytes` over a connection, forward or back. It waits for the links' own queues alone and
    /// is never dropped: a TCP that sends again is not simulated for so little. The way is gone at once, by what the
    /// lines look like now.
    pub fn send_message(&mut self, conn: ConnId, forward: bool, bytes: u64, tag: u64) {
        let end = &mut self.conns[conn.0 as usize];
        let path = if forward { &end.there } else { &end.back };
        if path.is_empty() {
            return self
                .arrived
                .push_back(Arrival::Train { conn, forward, tag });
        }
        let mut at = self.now;
        for &direction in path {
            at = self.lines[direction as usize].pass(self.now, at, bytes);
        }
        let messages = &mut end.messages[usize::from(forward)];
        if let Some(&(last, _)) = messages.back() {
            at = at.max(last);
        }
        messages.push_back((at, tag));
        if messages.len() == 1 {
            let end = 2 * conn.0 + u32::from(forward);
            self.events.push(at, Event::Message(end));
        }
    }

    fn on_message(&mut self, end: u32) -> Option<Arrival> {
        let (conn, forward) = (end / 2, end % 2);
        let messages = &mut self.conns[conn as usize].messages[forward as usize];
        let (_, tag) = messages.pop_front()?;
        if let Some(&(at, _)) = messages.front() {
            self.events.push(at, Event::Message(end));
        }
        Some(Arrival::Train {
            conn: ConnId(conn),
            forward: forward == 1,
            tag,
        })
    }

    fn pass_on(&mut self, mut train: Train) {
        let path = &self.conns[train.conn.0 as usize].there;
        let Some(&direction) = path.get(usize::from(train.hop)) else {
            self.arrived.push_back(Arrival::Train {
                conn: train.conn,
                forward: true,
                tag: train.tag,
            });
            return;
        };
        let is_last = usize::from(train.hop) + 1 == path.len();
        let frame = self.config.wire.frame();
        let line = &mut self.lines[direction as usize];
        let passage = line.take(self.now, train.tail, train.bytes, frame, line.queue_bytes());
        if let Some(passage) = passage {
            train.hop += 1;
            train.tail = passage.tail;
            // A host has it when its last frame is there; a switch goes on with the first.
            let at = if is_last { passage.tail } else { passage.head };
            self.put_on(direction, at, train.bytes, Transit::Train(train));
        }
    }

    // ---- lines ----

    fn put_on(&mut self, direction: u32, at: u64, bytes: u64, what: Transit) {
        if self.lines[direction as usize].push(at, bytes, what) {
            self.events.push(at, Event::Line(direction));
        }
    }

    fn put_on_express(&mut self, direction: u32, at: u64, bytes: u64, what: Transit) {
        if self.lines[direction as usize].push_express(at, bytes, what) {
            self.events.push(at, Event::Express(direction));
        }
    }

    /// What came out of a line, and when the next thing does.
    fn on_line(&mut self, direction: u32, again: Event, out: Option<(Transit, Option<u64>)>) {
        let Some((what, next)) = out else {
            return;
        };
        if let Some(at) = next {
            self.events.push(at, again);
        }
        match what {
            Transit::Train(train) => self.pass_on(train),
            Transit::Packet(packet) => {
                let (to, face) = self.ends[direction as usize];
                self.receive(to, face, packet);
            }
        }
    }

    /// What the content stores of each tier did.
    pub fn cache_counters(&self) -> BTreeMap<u16, CacheCounters> {
        let mut by_tier: BTreeMap<u16, CacheCounters> = BTreeMap::new();
        for (id, node) in self.nodes.iter().enumerate() {
            if let Some(forwarder) = node.forwarder() {
                let status = forwarder.status();
                let sum = by_tier.entry(self.routes.tier(id as NodeId)).or_default();
                sum.hits += status.cs_hits;
                sum.misses += status.cs_misses;
                sum.entries += status.cs_entries as u64;
            }
        }
        by_tier
    }
}

/// What content stores of one tier did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Interests that they answered.
    pub hits: u64,
    /// Interests that they did not.
    pub misses: u64,
    /// Data in them now.
    pub entries: u64,
}

/// Mixes two numbers into one (SplitMix64's finalizer).
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let mut z = a ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Which of equal ways a name's Interests take.
fn selector(prefix: &Name) -> u64 {
    // FNV-1a over the name's bytes.
    prefix
        .value()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
}
