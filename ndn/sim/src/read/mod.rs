//! Reads of blocks by name: readers on hosts ask for segments, the nearest replica or a content store on the way gives
//! them.
//!
//! Reads come in lanes: one after the other within a lane, lanes beside each other. A lane is a container of a job, or a
//! single read of a recorded trace. Every host that stores a replica answers for it at once: disks take no time here.

mod job;
mod stock;

pub use job::{Job, JobConfig, jobs};
pub use stock::{StockReads, stock};

use crate::block::{Cut, block_name, block_of};
use crate::net::{AppId, Arrival, CacheCounters, Network, NetworkConfig, mix};
use crate::pull::Puller;
use crate::report::{Hosts, Traffic};
use crate::topology::{NodeId, Topology};
use crate::wire::elided_data;
use ndn_endpoint::{
    CongestionControlFactory, Consumer, ConsumerConfig, CubicConfig, State, VerifyPolicy,
};
use ndn_packet::{Data, Name, NetKind, NetPacket};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// A block that is there to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBlock {
    /// Its bytes.
    pub bytes: u64,
    /// Who stores it; one at least.
    pub replicas: Vec<NodeId>,
}

/// One read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockRead {
    /// How long the lane does something else before.
    pub pause: Duration,
    /// Where the reader is.
    pub reader: NodeId,
    /// Which of the blocks.
    pub block: u32,
    /// From which byte.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
}

/// Reads one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lane {
    /// When the first pause begins.
    pub start: Duration,
    /// The reads.
    pub reads: Vec<BlockRead>,
}

/// Sizes and windows of reads. The defaults are those of Trunkline's plug-in.
#[derive(Debug, Clone)]
pub struct ReadConfig {
    /// How blocks become segments.
    pub cut: Cut,
    /// Congestion control of a pull. Default CUBIC of at most 64 segments.
    pub congestion: Arc<dyn CongestionControlFactory>,
    /// Most segments that a reader holds and asks for together. Default 128.
    pub buffered: usize,
    /// Of these, how many before it has read one. Default 4.
    pub first_ahead: usize,
}

impl Default for ReadConfig {
    fn default() -> Self {
        ReadConfig {
            cut: Cut::default(),
            congestion: Arc::new(CubicConfig {
                max: 64.0,
                ..CubicConfig::default()
            }),
            buffered: 128,
            first_ahead: 4,
        }
    }
}

impl ReadConfig {
    /// First and last segment of a read of a block of so many bytes; `None` for a read of nothing.
    fn segments(&self, read: &BlockRead, block_bytes: u64) -> Option<(u64, u64)> {
        let end = read.offset.saturating_add(read.bytes).min(block_bytes);
        let each = self.cut.segment_bytes.max(1);
        (read.offset < end).then(|| (read.offset / each, (end - 1) / each))
    }
}

/// What became of all reads. Bytes are those of blocks, without headers and checksums, but for `traffic`.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadOutcome {
    /// Reads done.
    pub reads: u64,
    /// Bytes that readers took, in whole segments.
    pub taken_bytes: u64,
    /// Of those, by readers beside a replica.
    pub local_bytes: u64,
    /// Bytes that hosts gave of their replicas.
    pub given_bytes: u64,
    /// What the content stores of each tier did: 0 hosts, 1 their routers, and on upward.
    pub stores: BTreeMap<u16, CacheCounters>,
    /// Segments asked for again.
    pub retransmitted: u64,
    /// When the last read was done.
    pub took: Duration,
    /// Longest time of a read.
    pub slowest: Duration,
    /// Mean time of a read.
    pub mean: Duration,
    /// Bytes on all links.
    pub traffic: Traffic,
    /// Packets and timers handled.
    pub events: u64,
}

/// Why reads came to no end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A reader gave up.
    #[error("block {block} read at {host}: {cause}")]
    Failed {
        /// The block's number.
        block: u32,
        /// The reader's host.
        host: String,
        /// Why.
        cause: String,
    },
    /// Nothing happens any more, and reads are not done.
    #[error(
        "{left} lanes of reads were not done when nothing happened any more; are the queues too short?"
    )]
    Stuck {
        /// How many.
        left: usize,
    },
    /// A read of a block that is not there.
    #[error("a read of block {block}, of which no host has a replica")]
    NoBlock {
        /// The block's number.
        block: u32,
    },
}

/// What an application is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Gives all replicas of its host.
    Server,
    /// The reader of a lane.
    Reader(u32),
}

#[derive(Debug)]
struct Reader {
    puller: Puller,
    block: u32,
    local: bool,
    began: Duration,
}

#[derive(Debug)]
struct LaneState {
    lane: Lane,
    next: usize,
    reader: Option<Reader>,
}

/// Timers of lanes have this bit, those of consumers not.
const LANE: u64 = 1 << 63;

/// Reads of many lanes, in progress.
#[derive(Debug)]
pub struct Reads<'a> {
    net: Network<'a>,
    config: ReadConfig,
    root: Name,
    seed: u64,
    blocks: Vec<StoredBlock>,
    /// Whether the block's replicas answer for it yet.
    served: Vec<bool>,
    servers: HashMap<NodeId, AppId>,
    roles: Vec<Role>,
    lanes: Vec<LaneState>,
    left: usize,
    spent: Duration,
    outcome: ReadOutcome,
}

impl<'a> Reads<'a> {
    /// Reads of blocks over a network.
    ///
    /// # Errors
    /// [`ReadError::NoBlock`] for a read of a block that nobody has.
    pub fn new(
        topology: &'a Topology,
        mut network: NetworkConfig,
        config: ReadConfig,
        blocks: Vec<StoredBlock>,
        lanes: Vec<Lane>,
    ) -> Result<Self, ReadError> {
        let reads = || lanes.iter().flat_map(|lane| &lane.reads);
        let there = |block: u32| {
            let block = blocks.get(block as usize);
            block.is_some_and(|block| !block.replicas.is_empty())
        };
        if let Some(read) = reads().find(|read| !there(read.block)) {
            return Err(ReadError::NoBlock { block: read.block });
        }
        let content = config.cut.segment_header + config.cut.body(u64::MAX, 0);
        network.elide(&block_name(&network.root, 0), content);
        let mut reads = Reads {
            root: network.root.clone(),
            seed: network.seed,
            net: Network::new(topology, network),
            config,
            served: vec![false; blocks.len()],
            blocks,
            servers: HashMap::new(),
            roles: Vec::new(),
            left: lanes.len(),
            lanes: Vec::new(),
            spent: Duration::ZERO,
            outcome: ReadOutcome {
                reads: 0,
                taken_bytes: 0,
                local_bytes: 0,
                given_bytes: 0,
                stores: BTreeMap::new(),
                retransmitted: 0,
                took: Duration::ZERO,
                slowest: Duration::ZERO,
                mean: Duration::ZERO,
                traffic: Traffic::default(),
                events: 0,
            },
        };
        for (id, lane) in lanes.into_iter().enumerate() {
            let first = lane.reads.first().map_or(Duration::ZERO, |read| read.pause);
            reads.net.set_timer(lane.start + first, LANE | id as u64);
            reads.lanes.push(LaneState {
                lane,
                next: 0,
                reader: None,
            });
        }
        Ok(reads)
    }

    /// Runs to the end; `progress` is told now and then how many bytes readers have taken.
    ///
    /// # Errors
    /// [`ReadError`] when a block can't be read.
    pub fn run(mut self, mut progress: impl FnMut(u64)) -> Result<ReadOutcome, ReadError> {
        const EACH: u64 = 1 << 16;
        let mut seen = 0;
        while self.left > 0 {
            let Some(arrival) = self.net.next_arrival() else {
                return Err(ReadError::Stuck { left: self.left });
            };
            self.handle(arrival)?;
            if self.net.events_handled() >= seen + EACH {
                seen = self.net.events_handled();
                progress(self.outcome.taken_bytes);
            }
        }
        let mut outcome = self.outcome;
        outcome.took = self.net.now();
        // What is still on its way reaches its end, so that each link gives what it took.
        while let Some(arrival) = self.net.next_arrival() {
            drop(arrival);
        }
        let readers = self.lanes.iter().flat_map(|state| &state.lane.reads);
        let hosts = Hosts::these(
            readers
                .map(|read| read.reader)
                .chain(self.servers.into_keys()),
        );
        outcome.mean = self.spent / u32::try_from(outcome.reads.max(1)).unwrap_or(u32::MAX);
        outcome.traffic = Traffic::of(&self.net, &hosts);
        outcome.stores = self.net.cache_counters();
        outcome.events = self.net.events_handled();
        Ok(outcome)
    }

    fn handle(&mut self, arrival: Arrival) -> Result<(), ReadError> {
        match arrival {
            Arrival::Packet { app, packet } => match self.roles[app.0 as usize] {
                Role::Server => self.give(app, &packet),
                Role::Reader(lane) => return self.on_answer(lane, app, packet),
            },
            Arrival::Timer(token) if token & LANE != 0 => self.begin((token ^ LANE) as u32)?,
            Arrival::Timer(token) => {
                if let Role::Reader(lane) = self.roles[token as usize] {
                    return self.on_timer(lane, AppId(token as u32));
                }
            }
            Arrival::Train { .. } => {}
        }
        Ok(())
    }

    fn add_app(&mut self, node: NodeId, role: Role) -> AppId {
        let app = self.net.add_app(node);
        debug_assert_eq!(app.0 as usize, self.roles.len());
        self.roles.push(role);
        app
    }

    // ---- who gives ----

    /// All who have a replica answer for the block.
    fn serve(&mut self, block: u32, name: &Name) {
        if std::mem::replace(&mut self.served[block as usize], true) {
            return;
        }
        for at in 0..self.blocks[block as usize].replicas.len() {
            let host = self.blocks[block as usize].replicas[at];
            let server = match self.servers.get(&host) {
                Some(&server) => server,
                None => {
                    let server = self.add_app(host, Role::Server);
                    self.servers.insert(host, server);
                    server
                }
            };
            self.net.register(server, name);
        }
    }

    fn give(&mut self, app: AppId, packet: &NetPacket) {
        let NetKind::Interest(interest) = &packet.packet else {
            return;
        };
        let Some((block, segment)) = block_of(interest.name()) else {
            return;
        };
        let Some(stored) = self.blocks.get(block as usize) else {
            return;
        };
        let cut = self.config.cut;
        let content = cut.segment_header + cut.body(stored.bytes, segment);
        let last = cut.segments(stored.bytes) - 1;
        self.outcome.given_bytes += cut.data(stored.bytes, segment);
        let wire = elided_data(&interest.name().to_name(), content, Some(last));
        if let Ok(data) = Data::parse(wire) {
            let answer = NetPacket::data(data).with_pit_token(packet.pit_token);
            self.net.send(app, answer);
        }
    }

    // ---- who reads ----

    /// Begins a lane's next read, or ends the lane.
    fn begin(&mut self, lane: u32) -> Result<(), ReadError> {
        let state = &self.lanes[lane as usize];
        let Some(read) = state.lane.reads.get(state.next).cloned() else {
            self.left -= 1;
            return Ok(());
        };
        self.lanes[lane as usize].next += 1;
        let stored = &self.blocks[read.block as usize];
        let Some((first, last)) = self.config.segments(&read, stored.bytes) else {
            return self.begin(lane);
        };
        let replicas = stored.replicas.clone();
        let name = block_name(&self.root, read.block);
        self.serve(read.block, &name);
        self.net.announce(&name, read.reader, &replicas);
        let app = self.add_app(read.reader, Role::Reader(lane));
        let now = self.net.now();
        let config = ConsumerConfig {
            congestion: self.config.congestion.clone(),
            first,
            last: Some(last),
            give_up_after: Duration::from_secs(300),
            max_buffered_segments: self.config.buffered,
            first_ahead: self.config.first_ahead,
            verify: VerifyPolicy::None,
            seed: mix(self.seed, u64::from(app.0)),
            ..ConsumerConfig::new(name)
        };
        self.lanes[lane as usize].reader = Some(Reader {
            puller: Puller::new(app, Consumer::new(config, now)),
            block: read.block,
            local: replicas.contains(&read.reader),
            began: now,
        });
        self.go_on(lane)
    }

    /// A lane's reader, if it is still that application.
    fn reader(&mut self, lane: u32, app: AppId) -> Option<&mut Reader> {
        let reader = self.lanes[lane as usize].reader.as_mut();
        reader.filter(|reader| reader.puller.app == app)
    }

    fn on_answer(&mut self, lane: u32, app: AppId, packet: NetPacket) -> Result<(), ReadError> {
        let now = self.net.now();
        let Some(reader) = self.reader(lane, app) else {
            return Ok(());
        };
        reader.puller.receive(now, packet);
        self.go_on(lane)
    }

    fn on_timer(&mut self, lane: u32, app: AppId) -> Result<(), ReadError> {
        let now = self.net.now();
        let due = self
            .reader(lane, app)
            .is_some_and(|reader| reader.puller.on_timer(now));
        if due { self.go_on(lane) } else { Ok(()) }
    }

    /// Takes what has come, asks for more, and ends the read when there is no more.
    fn go_on(&mut self, lane: u32) -> Result<(), ReadError> {
        let Some(reader) = self.lanes[lane as usize].reader.as_mut() else {
            return Ok(());
        };
        let block_bytes = self.blocks[reader.block as usize].bytes;
        while let Some((segment, _)) = reader.puller.core.read() {
            let bytes = self.config.cut.data(block_bytes, segment);
            self.outcome.taken_bytes += bytes;
            self.outcome.local_bytes += if reader.local { bytes } else { 0 };
        }
        reader.puller.ask(&mut self.net);
        let block = reader.block;
        match reader.puller.core.state() {
            State::Done => self.end(lane),
            State::Failed(reason) => {
                let cause = reason.to_string();
                let state = &self.lanes[lane as usize];
                let host = state.lane.reads[state.next - 1].reader;
                return Err(ReadError::Failed {
                    block,
                    host: self.net.topology().node(host).name.clone(),
                    cause,
                });
            }
            State::Probing | State::Flowing => {}
        }
        Ok(())
    }

    fn end(&mut self, lane: u32) {
        let now = self.net.now();
        let state = &mut self.lanes[lane as usize];
        let Some(reader) = state.reader.take() else {
            return;
        };
        let pause = state.lane.reads.get(state.next).map(|read| read.pause);
        let took = now - reader.began;
        self.spent += took;
        self.outcome.slowest = self.outcome.slowest.max(took);
        self.outcome.reads += 1;
        self.outcome.retransmitted += reader.puller.core.stats().retransmitted;
        self.net.remove_app(reader.puller.app);
        self.net
            .set_timer(now + pause.unwrap_or_default(), LANE | u64::from(lane));
    }
}
