//! Reads of a cluster's logs, as lanes in a simulated network.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use ndn_sim::read::{BlockRead, Lane, StoredBlock};
use ndn_sim::topology::{NodeId, Topology};

use crate::args::SimCacheArgs;
use crate::error::CliError;
use crate::potential::{Logs, racks};

/// No block of HDFS is longer than this many bytes; a log that says so is none.
const MAX_BLOCK: u64 = 1 << 40;

/// The blocks and reads of the logs that are named. Hosts of one rack there are hosts of one rack here; a block has its
/// replicas where the logs saw one give it, and is as long as the farthest read of it.
///
/// # Errors
/// A file that can't be read, a network with fewer or smaller racks than the logs have.
pub fn reads(
    args: &SimCacheArgs,
    topology: &Topology,
) -> Result<(Vec<StoredBlock>, Vec<Lane>), CliError> {
    let logs = Logs::read(&args.trace)?;
    let of_host = places(args, topology, &logs)?;
    let mut blocks: Vec<StoredBlock> = Vec::new();
    let mut lanes = Vec::new();
    let first = logs.reads.first().map_or(0, |read| read.time_ms);
    for read in &logs.reads {
        let end = read.offset.saturating_add(read.bytes);
        if end > MAX_BLOCK {
            let far = format!("a read up to byte {end} of a block, beyond {MAX_BLOCK}");
            return Err(CliError::usage("--trace", far).or("give the logs of DataNodes"));
        }
        let at = read.block as usize;
        if blocks.len() <= at {
            let none = StoredBlock {
                bytes: 0,
                replicas: Vec::new(),
            };
            blocks.resize(at + 1, none);
        }
        let block = &mut blocks[at];
        block.bytes = block.bytes.max(end);
        let server = of_host[read.server as usize];
        if !block.replicas.contains(&server) {
            block.replicas.push(server);
        }
        let since = u64::try_from(read.time_ms - first).unwrap_or(0);
        lanes.push(Lane {
            start: Duration::from_millis(since),
            reads: vec![BlockRead {
                pause: Duration::ZERO,
                reader: of_host[read.reader as usize],
                block: read.block,
                offset: read.offset,
                bytes: read.bytes,
            }],
        });
    }
    Ok((blocks, lanes))
}

/// Which host of the network stands for each of the logs.
fn places(args: &SimCacheArgs, topology: &Topology, logs: &Logs) -> Result<Vec<NodeId>, CliError> {
    let few = |what: String| {
        CliError::usage(&args.network.topology, what).or("take a network with more hosts: --hosts")
    };
    let mut by_address: Vec<(IpAddr, u32)> = logs.hosts.iter().map(|(&a, &n)| (a, n)).collect();
    by_address.sort_unstable();
    let mut place = vec![0; by_address.len()];
    let Some(file) = &args.racks else {
        let mut free = topology.hosts();
        for &(_, number) in &by_address {
            let host = free.next();
            place[number as usize] =
                host.ok_or_else(|| few(format!("the logs name {} hosts", by_address.len())))?;
        }
        return Ok(place);
    };
    let rack_of = racks(file, &logs.hosts)?;
    let mut wanted: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &(_, number) in &by_address {
        wanted
            .entry(rack_of[number as usize])
            .or_default()
            .push(number);
    }
    let mut free: BTreeMap<&str, Vec<NodeId>> = BTreeMap::new();
    for host in topology.hosts() {
        free.entry(&topology.node(host).rack)
            .or_default()
            .push(host);
    }
    let mut free: Vec<Vec<NodeId>> = free.into_values().collect();
    // The largest first, each where the least room is left beside it.
    let mut wanted: Vec<Vec<u32>> = wanted.into_values().collect();
    wanted.sort_by_key(|of_rack| std::cmp::Reverse(of_rack.len()));
    for of_rack in &wanted {
        let fits = (0..free.len()).filter(|&at| free[at].len() >= of_rack.len());
        let room = fits.min_by_key(|&at| free[at].len());
        let room = room.ok_or_else(|| {
            few(format!(
                "no rack is left for {} hosts of the logs",
                of_rack.len()
            ))
        })?;
        for (&number, host) in of_rack.iter().zip(free.swap_remove(room)) {
            place[number as usize] = host;
        }
    }
    Ok(place)
}
