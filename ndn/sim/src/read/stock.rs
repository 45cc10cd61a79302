//! The same reads over stock TCP, computed: each from the nearest replica, every byte over each link of the way.

use super::{BlockRead, Lane, ReadConfig, StoredBlock};
use crate::net::mix;
use crate::topology::{NodeId, Routes};
use crate::wire::Wire;

/// What stock reads put on the links.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StockReads {
    /// Bytes of blocks read.
    pub taken_bytes: u64,
    /// Of those, from the reader's own host.
    pub local_bytes: u64,
    /// Over all links, each once, with headers and acknowledgements; sendings again are not in it.
    pub all_bytes: u64,
    /// Of those, between routers.
    pub core_bytes: u64,
    /// Who gave, for each read in the order of the lanes and of the reads in them.
    pub servers: Vec<NodeId>,
}

/// Computes the reads of all lanes. Of several replicas that are as near as each other, `seed` takes one.
pub fn stock(
    routes: &mut Routes<'_>,
    wire: Wire,
    config: &ReadConfig,
    blocks: &[StoredBlock],
    lanes: &[Lane],
    seed: u64,
) -> StockReads {
    let mut sums = StockReads::default();
    for (at, read) in lanes.iter().flat_map(|lane| &lane.reads).enumerate() {
        let Some(block) = blocks.get(read.block as usize) else {
            continue;
        };
        let chance = mix(seed, at as u64);
        let Some(server) = nearest(routes, read.reader, &block.replicas, chance) else {
            continue;
        };
        sums.servers.push(server);
        let end = read.offset.saturating_add(read.bytes).min(block.bytes);
        let bytes = end.saturating_sub(read.offset);
        sums.taken_bytes += bytes;
        if server == read.reader {
            sums.local_bytes += bytes;
            continue;
        }
        let (there, back) = on_a_link(wire, config, read, block.bytes);
        let links = u64::from(routes.distance(server, read.reader));
        sums.all_bytes += links * (there + back);
        // A host's link at either end.
        sums.core_bytes += links.saturating_sub(2) * (there + back);
    }
    sums
}

/// The nearest of the replicas, by chance among those as near.
fn nearest(
    routes: &mut Routes<'_>,
    reader: NodeId,
    replicas: &[NodeId],
    chance: u64,
) -> Option<NodeId> {
    let ways = replicas.iter().map(|&host| routes.distance(reader, host));
    let ways: Vec<u32> = ways.collect();
    let least = *ways.iter().min()?;
    let near = || {
        let both = replicas.iter().zip(&ways);
        both.filter(|&(_, &way)| way == least)
    };
    let count = near().count() as u64;
    near().nth((chance % count) as usize).map(|(&host, _)| host)
}

/// Bytes of a read over a link, and of its acknowledgements over the other direction.
fn on_a_link(wire: Wire, config: &ReadConfig, read: &BlockRead, block_bytes: u64) -> (u64, u64) {
    let cut = config.cut;
    let Some((first, last)) = config.segments(read, block_bytes) else {
        return (0, 0);
    };
    let units = (first..=last).map(|segment| cut.packet_header + cut.body(block_bytes, segment));
    let payload: u64 = units.sum();
    (wire.bytes(payload), wire.ack_bytes(payload))
}
