//! What a transfer of a plane crosses, weighs, and how long its small messages take.

use super::progress::Progress;
use super::share::Use;
use super::{Plane, TimeConfig};
use crate::block::{BlockPlan, block_name};
use crate::net::mix;
use crate::topology::{NodeId, Path, Routes, Topology};
use crate::wire::{elided_data, packet_bytes};
use ndn_packet::{Data, Name, NetPacket, PitToken};
use std::collections::BTreeMap;

/// Links and ways of a network, as transfers see it.
#[derive(Debug)]
pub(super) struct Ways<'a> {
    routes: Routes<'a>,
    config: TimeConfig,
    /// Bytes that a frame of named data has more than the body of its segment.
    named_header: u64,
}

/// A block's ways.
#[derive(Debug)]
pub(super) struct BlockWays {
    /// From the writer to the first replica, from that to the next.
    pub(super) hops: Vec<Path>,
    /// From the writer to each replica; the same as a hop only for the first. None over TCP.
    branches: Vec<Path>,
    /// What the block's bytes cross.
    pub(super) crossed: Box<[Use]>,
}

impl<'a> Ways<'a> {
    pub(super) fn new(topology: &'a Topology, config: TimeConfig) -> Self {
        Ways {
            routes: Routes::new(topology),
            named_header: named_header(config.cut.segment_header),
            config,
        }
    }

    /// Capacity of each direction of each link, in bits a second.
    pub(super) fn capacities(topology: &Topology) -> Vec<f64> {
        let links = topology.links().iter();
        let both = links.flat_map(|link| [link.spec.rate_bps as f64; 2]);
        both.collect()
    }

    pub(super) fn path(&mut self, from: NodeId, to: NodeId, number: u64) -> Path {
        let selector = mix(self.config.seed, number << 8);
        self.routes.path(from, to, selector)
    }

    /// Ways of a block; `number` chooses among equal ones.
    pub(super) fn block(&mut self, plane: Plane, plan: &BlockPlan, number: u64) -> BlockWays {
        let (seed, mut from) = (self.config.seed, plan.writer);
        let mut hops = Vec::with_capacity(plan.replicas.len());
        for (stage, &to) in plan.replicas.iter().enumerate() {
            let selector = mix(seed, number << 8 | stage as u64);
            hops.push(self.routes.path(from, to, selector));
            from = to;
        }
        let mut branches = Vec::new();
        let mut crossed: BTreeMap<u32, u32> = BTreeMap::new();
        if plane == Plane::Tcp {
            for line in hops.iter().flatten() {
                *crossed.entry(*line).or_default() += 1;
            }
        } else {
            // All ways to the writer under one selector are a tree; the bytes take them the other way.
            let selector = mix(seed, number << 8);
            for &replica in &plan.replicas {
                let up = self.routes.path(replica, plan.writer, selector);
                let down: Path = up.iter().rev().map(|line| line ^ 1).collect();
                crossed.extend(down.iter().map(|&line| (line, 1)));
                branches.push(down);
            }
        }
        let crossed = crossed.into_iter();
        BlockWays {
            hops,
            branches,
            crossed: crossed.map(|(line, times)| Use { line, times }).collect(),
        }
    }

    /// Bits that a block puts on each link that it crosses.
    pub(super) fn block_bits(&self, plane: Plane, bytes: u64) -> f64 {
        let (cut, wire) = (self.config.cut, self.config.wire);
        let header = match plane {
            Plane::Named => self.named_header,
            Plane::Tcp | Plane::Mirror => cut.packet_header,
        };
        let segments = cut.segments(bytes);
        let of = |segment| wire.bytes(header + cut.body(bytes, segment));
        // All but the last are alike.
        8.0 * ((segments - 1) as f64 * of(0) as f64 + of(segments - 1) as f64)
    }

    /// Bits that a stream of so many bytes puts on a link.
    pub(super) fn stream_bits(&self, bytes: u64) -> f64 {
        8.0 * self.config.wire.bytes(bytes) as f64
    }

    /// Seconds until a chain is set up: its header goes to each replica in turn, and the answer comes back.
    pub(super) fn set_up(&self, ways: &BlockWays, progress: &Progress) -> f64 {
        let there = self.config.setup_bytes;
        let both = ways.hops.iter().map(|hop| {
            self.message(hop, there, progress)
                + self.back(hop, self.config.setup_answer_bytes, progress)
        });
        both.sum()
    }

    /// Seconds from when the last bytes of a block have left the writer until it knows that all replicas have them.
    pub(super) fn ending(&self, plane: Plane, ways: &BlockWays, progress: &Progress) -> f64 {
        let acks = ways
            .hops
            .iter()
            .map(|hop| self.back(hop, self.config.ack_bytes, progress));
        let acks: f64 = acks.sum();
        let body = self.config.wire.bytes(self.config.cut.body(u64::MAX, 0));
        let frame = body.min(self.config.wire.frame());
        let come = match plane {
            // A replica passes on what it has in whole; switches pass on frames.
            Plane::Tcp => ways
                .hops
                .iter()
                .enumerate()
                .map(|(stage, hop)| {
                    let whole = if stage == 0 { frame } else { body };
                    self.travel(hop, frame, progress) + self.slowest(hop, whole - frame)
                })
                .sum(),
            // Routers pass on what they have in whole.
            Plane::Named => self.longest(ways, body, progress),
            Plane::Mirror => self.longest(ways, frame, progress),
        };
        come + acks
    }

    /// Seconds until a reader has the first byte that it asked for.
    pub(super) fn ask(&self, path: &Path, progress: &Progress) -> f64 {
        self.back(path, self.config.setup_bytes, progress)
            + self.message(path, self.config.setup_answer_bytes, progress)
    }

    fn longest(&self, ways: &BlockWays, bytes: u64, progress: &Progress) -> f64 {
        let branches = ways.branches.iter();
        let times = branches.map(|branch| self.travel(branch, bytes, progress));
        times.fold(0.0, f64::max)
    }

    fn message(&self, path: &Path, payload: u64, progress: &Progress) -> f64 {
        self.travel(path, self.config.wire.bytes(payload), progress)
    }

    fn back(&self, path: &Path, payload: u64, progress: &Progress) -> f64 {
        let back: Path = path.iter().rev().map(|line| line ^ 1).collect();
        self.message(&back, payload, progress)
    }

    /// Seconds of bytes that are taken in whole at the end of each link, behind what waits there.
    fn travel(&self, path: &Path, bytes: u64, progress: &Progress) -> f64 {
        let each = path.iter().map(|&line| {
            let spec = self.routes.topology().links()[line as usize / 2].spec;
            let windows = u64::from(progress.crossing_full(line)) * self.config.window_bytes;
            let waits = spec.queue_bytes.min(windows) as f64 * self.config.queues_filled;
            8.0 * (bytes as f64 + waits) / spec.rate_bps as f64 + spec.delay.as_secs_f64()
        });
        each.sum()
    }

    /// Seconds of bytes over the slowest link of a way.
    fn slowest(&self, path: &Path, bytes: u64) -> f64 {
        let links = self.routes.topology().links();
        let each = path
            .iter()
            .map(|&line| 8.0 * bytes as f64 / links[line as usize / 2].spec.rate_bps as f64);
        each.fold(0.0, f64::max)
    }
}

/// Bytes that a Data of a segment has beside the segment's body, its link-layer header included.
fn named_header(segment_header: u64) -> u64 {
    const BODY: u64 = 65_016;
    let root = Name::default()
        .append_generic("hadoop")
        .append_generic("blocks");
    let name = block_name(&root, 70_000).append_segment(1000);
    let Ok(data) = Data::parse(elided_data(&name, segment_header + BODY, None)) else {
        return segment_header;
    };
    let packet = NetPacket::data(data).with_pit_token(Some(PitToken::from_u48(1)));
    packet_bytes(&packet) - BODY
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{LinkSpec, paper_16};
    use crate::wire::Wire;

    fn ways(topology: &Topology, plane: Plane) -> BlockWays {
        let host = |name| topology.find(name).expect("a host");
        let plan = BlockPlan {
            writer: host("h3"),
            replicas: ["h3", "h5", "h13"].map(host).to_vec(),
        };
        Ways::new(topology, TimeConfig::default()).block(plane, &plan, 1)
    }

    #[test]
    fn a_chain_crosses_links_again_and_a_tree_does_not() {
        let topology = paper_16(LinkSpec::default());
        let times = |plane| -> u32 { ways(&topology, plane).crossed.iter().map(|u| u.times).sum() };
        assert_eq!(times(Plane::Tcp), 8);
        assert_eq!(times(Plane::Named), 6);
        assert_eq!(times(Plane::Mirror), 6);
        assert!(
            ways(&topology, Plane::Tcp).hops[0].is_empty(),
            "beside the writer"
        );
    }

    #[test]
    fn headers_are_weighed() {
        let topology = paper_16(LinkSpec::default());
        let ways = |wire| {
            let config = TimeConfig {
                wire,
                ..TimeConfig::default()
            };
            Ways::new(&topology, config)
        };
        // 64,512 bytes, 504 of checksums and a header of 31.
        let bare = ways(Wire::BARE).block_bits(Plane::Tcp, 2 * 64_512);
        assert_eq!(bare, 16.0 * (64_512.0 + 504.0 + 31.0));
        let framed = ways(Wire::ETHERNET).block_bits(Plane::Tcp, 2 * 64_512);
        assert_eq!(framed, bare + 16.0 * 45.0 * 66.0);
        let named = ways(Wire::BARE).block_bits(Plane::Named, 2 * 64_512);
        assert!(named > bare && named < 1.005 * bare, "{named}");
    }
}
