//! Replicated writes of blocks: the writer's chain of replicas, by name or over TCP.
//!
//! ```text
//!             header, records ─▶         header, records ─▶
//!   writer ─────────────────────▶ D1 ───────────────────────▶ D2 ─ … Dn
//!             ◀─ acknowledgements        ◀─ acknowledgements
//! ```
//! Both planes keep the chain: a header goes down it and an answer comes back, then a record for each segment goes down
//! and its acknowledgement comes back from the last replica. Over TCP the record is the segment itself. By name it is a
//! few bytes, and each replica pulls the segment; it passes the record on, or acknowledges it, once it has the segment.
//! The writer has so many segments on the way that are not acknowledged, and no more.

mod named;
mod stock;
mod stream;

use crate::block::{Cut, block_name};
use crate::net::{AppId, Arrival, ConnId, Network, NetworkConfig, mix};
use crate::report::{Hosts, Traffic};
use crate::topology::Topology;
use ndn_endpoint::{CongestionControlFactory, CubicConfig};
use ndn_packet::Name;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

pub use crate::block::BlockPlan;

/// How a write's segments reach the replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plane {
    /// Pulled by name.
    Named,
    /// Sent from each replica to the next over TCP.
    Tcp,
}

/// Sizes and windows of writes. The defaults are those of HDFS and of Trunkline's plug-in.
#[derive(Debug, Clone)]
pub struct WriteConfig {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// How it becomes segments.
    pub cut: Cut,
    /// Bytes of the header that sets a chain up. Default 640.
    pub setup_bytes: u64,
    /// Bytes of its answer. Default 70.
    pub setup_answer_bytes: u64,
    /// Bytes of a record. Default 38.
    pub record_bytes: u64,
    /// Bytes of an acknowledgement. Default 24.
    pub ack_bytes: u64,
    /// Segments on their way that are not acknowledged. Default 80.
    pub in_flight: u64,
    /// Congestion control of a replica's pull. Default CUBIC of at most 64 segments, as the plug-in has it.
    pub congestion: Arc<dyn CongestionControlFactory>,
    /// Most segments that a replica holds and asks for together. Default 128.
    pub buffered: usize,
    /// Newest segments that a writer keeps. Default 256.
    pub retain: usize,
    /// Most segments that TCP has on its way. Default 64, that is 4 MiB.
    pub tcp_window: usize,
}

impl Default for WriteConfig {
    fn default() -> Self {
        WriteConfig {
            block_bytes: 128 << 20,
            cut: Cut::default(),
            setup_bytes: 640,
            setup_answer_bytes: 70,
            record_bytes: 38,
            ack_bytes: 24,
            in_flight: 80,
            congestion: Arc::new(CubicConfig {
                max: 64.0,
                ..CubicConfig::default()
            }),
            buffered: 128,
            retain: 256,
            tcp_window: 64,
        }
    }
}

impl WriteConfig {
    /// Segments of a block.
    pub fn segments(&self) -> u64 {
        self.cut.segments(self.block_bytes)
    }

    /// Bytes of a segment with its checksums.
    fn body(&self, segment: u64) -> u64 {
        self.cut.body(self.block_bytes, segment)
    }
}

/// A chain in progress.
#[derive(Debug)]
struct Chain {
    plan: BlockPlan,
    name: Name,
    /// From the writer to the first replica, from that to the next.
    conns: Vec<ConnId>,
    /// For each replica how many records have come, and how many segments were taken and passed on.
    stages: Vec<Stage>,
    published: u64,
    acked: u64,
    plane: PlaneState,
    started: Duration,
}

#[derive(Debug, Default, Clone, Copy)]
struct Stage {
    records: u64,
    taken: u64,
}

#[derive(Debug)]
enum PlaneState {
    Named(Box<named::Named>),
    Tcp(stock::Stock),
}

/// What a message on a chain's connection says; the tag that it travels under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Message {
    Setup,
    SetupDone,
    /// The record of a segment, and over TCP the segment.
    Segment(u64),
    /// A TCP segment has come.
    Arrived(u64),
    /// All replicas from here on have a segment.
    Acked(u64),
}

impl Message {
    fn tag(self) -> u64 {
        let (kind, segment) = match self {
            Message::Setup => (0, 0),
            Message::SetupDone => (1, 0),
            Message::Segment(segment) => (2, segment),
            Message::Arrived(segment) => (3, segment),
            Message::Acked(segment) => (4, segment),
        };
        segment << 3 | kind
    }

    fn of(tag: u64) -> Self {
        let segment = tag >> 3;
        match tag & 7 {
            0 => Message::Setup,
            1 => Message::SetupDone,
            2 => Message::Segment(segment),
            3 => Message::Arrived(segment),
            _ => Message::Acked(segment),
        }
    }
}

/// What became of one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The plan.
    pub plan: BlockPlan,
    /// From the setup to the last acknowledgement.
    pub took: Duration,
}

/// What became of all writes.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteOutcome {
    /// The blocks, in the order in which they were done.
    pub blocks: Vec<Written>,
    /// When the last one was done.
    pub took: Duration,
    /// Bytes on all links.
    pub traffic: Traffic,
    /// Packets, trains and timers handled.
    pub events: u64,
    /// Interests that a content store answered.
    pub cache_hits: u64,
    /// Segments asked for, or sent, again.
    pub retransmitted: u64,
}

/// Writes of many blocks: each writer one after the other, all writers at once.
#[derive(Debug)]
pub struct Writes<'a> {
    net: Network<'a>,
    config: WriteConfig,
    plane: Plane,
    root: Name,
    /// Blocks that each writer has still to write.
    waiting: Vec<VecDeque<BlockPlan>>,
    chains: Vec<Option<Chain>>,
    /// Which chain an application or connection belongs to, and which place in it.
    app_of: Vec<(u32, named::Role)>,
    conn_of: Vec<(u32, u32)>,
    done: Vec<Written>,
    writer_of: Vec<u32>,
    retransmitted: u64,
    seed: u64,
}

/// Why a write came to no end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// A replica gave up.
    #[error("block {block} at {host}: {cause}")]
    Failed {
        /// The block's number.
        block: usize,
        /// The replica's host.
        host: String,
        /// Why.
        cause: String,
    },
    /// Nothing happens any more, and blocks are not written.
    #[error(
        "{left} blocks were not written when nothing happened any more; are the queues too short?"
    )]
    Stuck {
        /// How many.
        left: usize,
    },
}

impl<'a> Writes<'a> {
    /// Writes of `plans` over a network, those of one writer in their order.
    pub fn new(
        topology: &'a Topology,
        mut network: NetworkConfig,
        config: WriteConfig,
        plane: Plane,
        plans: Vec<BlockPlan>,
    ) -> Self {
        let content = config.cut.segment_header + config.body(0);
        let example = block_name(&network.root, 0);
        network.elide(&example, content);
        let mut waiting: Vec<VecDeque<BlockPlan>> = Vec::new();
        let mut place = std::collections::HashMap::new();
        for plan in plans {
            let at = *place.entry(plan.writer).or_insert_with(|| {
                waiting.push(VecDeque::new());
                waiting.len() - 1
            });
            waiting[at].push_back(plan);
        }
        let mut writes = Writes {
            root: network.root.clone(),
            seed: network.seed,
            net: Network::new(topology, network),
            config,
            plane,
            waiting,
            chains: Vec::new(),
            app_of: Vec::new(),
            conn_of: Vec::new(),
            done: Vec::new(),
            writer_of: Vec::new(),
            retransmitted: 0,
        };
        for writer in 0..writes.waiting.len() {
            writes.begin(writer as u32);
        }
        writes
    }

    /// Blocks in all.
    pub fn blocks(&self) -> usize {
        let waiting: usize = self.waiting.iter().map(VecDeque::len).sum();
        waiting + self.chains.iter().flatten().count() + self.done.len()
    }

    /// Runs to the end; `progress` is told now and then how many segments have been acknowledged.
    ///
    /// # Errors
    /// [`WriteError`] when a block can't be written.
    pub fn run(mut self, mut progress: impl FnMut(u64)) -> Result<WriteOutcome, WriteError> {
        const EACH: u64 = 1 << 16;
        let (blocks, mut seen) = (self.blocks(), 0);
        while self.done.len() < blocks {
            let Some(arrival) = self.net.next_arrival() else {
                return Err(WriteError::Stuck {
                    left: blocks - self.done.len(),
                });
            };
            self.handle(arrival)?;
            if self.net.events_handled() >= seen + EACH {
                seen = self.net.events_handled();
                let chains = self.chains.iter().flatten().map(|chain| chain.acked);
                let whole = self.done.len() as u64 * self.config.segments();
                progress(whole + chains.sum::<u64>());
            }
        }
        let took = self.net.now();
        // What is still on its way reaches its end, so that each link gives what it took.
        while let Some(arrival) = self.net.next_arrival() {
            drop(arrival);
        }
        Ok(WriteOutcome {
            took,
            traffic: Traffic::of(&self.net, &Hosts::of(self.done.iter().map(|w| &w.plan))),
            events: self.net.events_handled(),
            cache_hits: self.net.cache_counters().values().map(|c| c.hits).sum(),
            retransmitted: self.retransmitted,
            blocks: self.done,
        })
    }

    /// Begins a writer's next block.
    fn begin(&mut self, writer: u32) {
        let Some(plan) = self.waiting[writer as usize].pop_front() else {
            return;
        };
        let id = self.chains.len() as u32;
        let name = block_name(&self.root, id);
        let mut from = plan.writer;
        let mut conns = Vec::with_capacity(plan.replicas.len());
        for (stage, &to) in plan.replicas.iter().enumerate() {
            let selector = mix(self.seed, u64::from(id) << 8 | stage as u64);
            conns.push(self.net.connect(from, to, selector));
            self.conn_of.push((id, stage as u32));
            from = to;
        }
        let stages = vec![Stage::default(); plan.replicas.len()];
        let plane = match self.plane {
            Plane::Named => PlaneState::Named(Box::new(self.begin_named(id, &plan, &name))),
            Plane::Tcp => PlaneState::Tcp(stock::Stock::new(plan.replicas.len(), &self.config)),
        };
        let first = conns[0];
        self.chains.push(Some(Chain {
            plan,
            name,
            conns,
            stages,
            published: 0,
            acked: 0,
            plane,
            started: self.net.now(),
        }));
        self.writer_of.push(writer);
        self.say(first, true, Message::Setup);
    }

    fn chain(&mut self, id: u32) -> Option<&mut Chain> {
        self.chains.get_mut(id as usize)?.as_mut()
    }

    /// Sends a small message. Nothing drops it: a TCP that sends again is not simulated for so few bytes.
    fn say(&mut self, conn: ConnId, forward: bool, message: Message) {
        let payload = match message {
            Message::Setup => self.config.setup_bytes,
            Message::SetupDone => self.config.setup_answer_bytes,
            Message::Segment(_) => self.config.record_bytes,
            Message::Acked(_) => self.config.ack_bytes,
            Message::Arrived(_) => 0,
        };
        let bytes = self.net.wire().bytes(payload);
        self.net.send_message(conn, forward, bytes, message.tag());
    }

    fn handle(&mut self, arrival: Arrival) -> Result<(), WriteError> {
        match arrival {
            Arrival::Packet { app, packet } => self.on_packet(app, packet),
            Arrival::Train { conn, forward, tag } => {
                let (id, stage) = self.conn_of[conn.0 as usize];
                self.on_message(id, stage as usize, forward, Message::of(tag));
                Ok(())
            }
            Arrival::Timer(token) => self.on_timer(token),
        }
    }

    /// A message at the lower (`forward`) or upper end of the connection into stage `at`.
    fn on_message(&mut self, id: u32, at: usize, forward: bool, message: Message) {
        let plane = self.plane;
        let Some(chain) = self.chain(id) else {
            return;
        };
        let below = chain.conns.get(at + 1).copied();
        let above = at.checked_sub(1).map(|up| chain.conns[up]);
        let here = chain.conns[at];
        match message {
            Message::Setup => {
                self.open_replica(id, at);
                match below {
                    Some(below) => self.say(below, true, Message::Setup),
                    None => self.say(here, false, Message::SetupDone),
                }
            }
            Message::SetupDone => match above {
                Some(above) => self.say(above, false, Message::SetupDone),
                None => self.publish(id),
            },
            Message::Segment(segment) if plane == Plane::Named => {
                chain.stages[at].records = segment + 1;
                self.on_record(id, at, segment);
            }
            Message::Segment(segment) => self.on_train(id, at, segment),
            Message::Arrived(segment) => {
                debug_assert!(!forward);
                self.on_train_acked(id, at, segment);
            }
            Message::Acked(segment) => match above {
                Some(above) => self.say(above, false, Message::Acked(segment)),
                None => {
                    chain.acked = chain.acked.max(segment + 1);
                    if chain.acked == self.config.segments() {
                        self.end(id);
                    } else {
                        self.publish(id);
                    }
                }
            },
        }
    }

    /// The writer gives out what it may.
    fn publish(&mut self, id: u32) {
        let (segments, in_flight) = (self.config.segments(), self.config.in_flight);
        loop {
            let Some(chain) = self.chain(id) else {
                return;
            };
            if chain.published >= segments.min(chain.acked + in_flight) {
                break;
            }
            let segment = chain.published;
            chain.published += 1;
            let conn = chain.conns[0];
            if self.plane == Plane::Named {
                self.publish_named(id, segment);
                self.say(conn, true, Message::Segment(segment));
            }
        }
        if self.plane == Plane::Tcp {
            self.pump(id, 0);
        }
    }

    /// A replica has a segment: its record, or the segment, goes on; the last one acknowledges.
    fn pass_on(&mut self, id: u32, at: usize, segment: u64) {
        let Some(chain) = self.chain(id) else {
            return;
        };
        match chain.conns.get(at + 1).copied() {
            None => {
                let here = chain.conns[at];
                self.say(here, false, Message::Acked(segment));
            }
            Some(below) if self.plane == Plane::Named => {
                self.say(below, true, Message::Segment(segment));
            }
            Some(_) => self.pump(id, at + 1),
        }
    }

    fn end(&mut self, id: u32) {
        let Some(chain) = self.chains[id as usize].take() else {
            return;
        };
        self.retransmitted += match &chain.plane {
            PlaneState::Named(named) => named.retransmitted(),
            PlaneState::Tcp(stock) => stock.retransmitted(),
        };
        if let PlaneState::Named(named) = &chain.plane {
            for app in named.apps() {
                self.net.remove_app(app);
            }
        }
        self.done.push(Written {
            took: self.net.now() - chain.started,
            plan: chain.plan,
        });
        self.begin(self.writer_of[id as usize]);
    }

    fn on_timer(&mut self, token: u64) -> Result<(), WriteError> {
        match self.plane {
            Plane::Named => self.on_consumer_timer(AppId(token as u32)),
            Plane::Tcp => {
                self.on_stream_timer((token >> 32) as u32, (token & 0xffff_ffff) as usize);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_go_round() {
        for message in [
            Message::Setup,
            Message::SetupDone,
            Message::Segment(7),
            Message::Arrived(0),
            Message::Acked(1 << 40),
        ] {
            assert_eq!(Message::of(message.tag()), message);
        }
    }
}
