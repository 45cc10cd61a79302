//! `trunkline sim cache`: who gives what of jobs' reads, with content stores of a size at every level.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use ndn_forwarder::{CachePolicy, Config};
use ndn_sim::Cut;
use ndn_sim::net::NetworkConfig;
use ndn_sim::read::{
    Job, JobConfig, Lane, ReadConfig, ReadOutcome, Reads, StockReads, StoredBlock, jobs, stock,
};
use ndn_sim::topology::{Routes, Topology};
use serde::Serialize;

use super::{network, recorded};
use crate::args::{PolicyArg, SimCacheArgs};
use crate::error::CliError;
use crate::output::{self, Table};
use crate::potential::analysis::{self, Sums, analyse};
use crate::transfer::progress::Progress;

#[derive(Serialize)]
struct Report {
    topology: String,
    hosts: usize,
    routers: usize,
    seed: u64,
    blocks: usize,
    reads: usize,
    /// What caches without end could have of the reads over stock TCP; network level: as in a tree of two levels.
    potential: Sums,
    tcp: Stock,
    runs: Vec<Run>,
}

#[derive(Serialize)]
struct Stock {
    taken_bytes: u64,
    local_bytes: u64,
    all_links_bytes: u64,
    core_bytes: u64,
}

/// One policy.
#[derive(Serialize)]
struct Run {
    policy: &'static str,
    /// Bytes of blocks that readers took, in whole segments.
    taken_bytes: u64,
    /// Of those, by readers beside a replica.
    local_bytes: u64,
    /// Bytes of blocks that hosts gave of their replicas.
    given_bytes: u64,
    /// What the content stores of each level did, from the hosts upward.
    levels: Vec<Level>,
    all_links_bytes: u64,
    core_bytes: u64,
    dropped: u64,
    retransmitted: u64,
    simulated_s: f64,
    read_mean_s: f64,
    read_max_s: f64,
    events: u64,
    took_s: f64,
}

#[derive(Serialize)]
struct Level {
    name: &'static str,
    hits: u64,
    misses: u64,
    /// Bytes of blocks in the segments that they gave, those of full length.
    hit_bytes: u64,
}

/// Runs the subcommand.
///
/// # Errors
/// A usage error for a network or reads that can't be, a failure when a block can't be read.
pub fn run(args: &SimCacheArgs) -> Result<(), CliError> {
    let (topology, _) = network::topology(&args.network)?;
    let network = network::config(&args.network, &topology)?;
    let config = ReadConfig::default();
    let (blocks, lanes) = if args.trace.is_empty() {
        generated(args, &topology)?
    } else {
        recorded::reads(args, &topology)?
    };
    let mut routes = Routes::new(&topology);
    let tcp = stock(
        &mut routes,
        network.wire,
        &config,
        &blocks,
        &lanes,
        args.network.seed,
    );
    let potential = potential(&topology, &blocks, &lanes, &tcp);
    let policies: &[CachePolicy] = match args.policy {
        PolicyArg::Both => &CachePolicy::ALL,
        PolicyArg::Lru => &[CachePolicy::Lru],
        PolicyArg::S3Fifo => &[CachePolicy::S3Fifo],
    };
    let mut runs = Vec::new();
    for &policy in policies {
        runs.push(one(
            args, &topology, &network, &config, &blocks, &lanes, policy,
        )?);
    }
    let report = Report {
        topology: topology.name().to_owned(),
        hosts: topology.hosts().count(),
        routers: topology.nodes().len() - topology.hosts().count(),
        seed: args.network.seed,
        blocks: blocks.len(),
        reads: tcp.servers.len(),
        potential,
        tcp: Stock {
            taken_bytes: tcp.taken_bytes,
            local_bytes: tcp.local_bytes,
            all_links_bytes: tcp.all_bytes,
            core_bytes: tcp.core_bytes,
        },
        runs,
    };
    if args.json.json {
        output::json(&report);
    } else {
        print(&report);
    }
    Ok(())
}

fn generated(
    args: &SimCacheArgs,
    topology: &Topology,
) -> Result<(Vec<StoredBlock>, Vec<Lane>), CliError> {
    if args.block_size == 0 {
        return Err(CliError::usage("--block-size", "0 bytes can't be read"));
    }
    if args.local + args.near > 100 {
        return Err(CliError::usage(
            "--local, --near",
            format!(
                "{} and {} of 100 tasks are more than 100",
                args.local, args.near
            ),
        ));
    }
    let config = JobConfig {
        data_sets: args.data_sets,
        blocks: args.blocks,
        block_bytes: args.block_size,
        replicas: args.replicas as usize,
        jobs: args.jobs,
        slots: args.slots,
        local: f64::from(args.local) / 100.0,
        rack: f64::from(args.near) / 100.0,
        resource_bytes: args.resources,
        ..JobConfig::default()
    };
    let Job { blocks, lanes } =
        jobs(topology, &config, args.network.seed).map_err(|e| CliError::usage("--replicas", e))?;
    Ok((blocks, lanes))
}

/// What caches without end could have of the reads as stock TCP serves them, lane by lane in the order of their starts.
fn potential(
    topology: &Topology,
    blocks: &[StoredBlock],
    lanes: &[Lane],
    tcp: &StockReads,
) -> Sums {
    let mut rack_of: HashMap<&str, u32> = HashMap::new();
    let racks: Vec<u32> = topology
        .nodes()
        .iter()
        .map(|node| {
            let next = rack_of.len() as u32;
            *rack_of.entry(&node.rack).or_insert(next)
        })
        .collect();
    let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let mut servers = tcp.servers.iter();
    let mut reads = Vec::new();
    for lane in lanes {
        let mut at = lane.start;
        for read in &lane.reads {
            at += read.pause;
            let Some(&server) = servers.next() else {
                continue;
            };
            let length = blocks[read.block as usize].bytes;
            let end = read.offset.saturating_add(read.bytes).min(length);
            reads.push(analysis::Read {
                time_ms: ms(at),
                server,
                reader: read.reader,
                block: read.block,
                offset: read.offset.min(end),
                bytes: end.saturating_sub(read.offset),
            });
        }
    }
    reads.sort();
    let whole = [(i64::MIN, "all".to_owned())];
    analyse(&reads, &racks, &whole, Duration::from_secs(3600)).all
}

fn one(
    args: &SimCacheArgs,
    topology: &Topology,
    network: &NetworkConfig,
    config: &ReadConfig,
    blocks: &[StoredBlock],
    lanes: &[Lane],
    policy: CachePolicy,
) -> Result<Run, CliError> {
    let store = |bytes: u64| Config {
        cs_capacity_bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
        cs_policy: policy,
        ..Config::default()
    };
    let network = NetworkConfig {
        host: store(args.store_hosts),
        router: store(args.store_racks),
        core: store(args.store_core),
        ..network.clone()
    };
    let began = Instant::now();
    let total = lanes.iter().flat_map(|lane| &lane.reads).map(|r| r.bytes);
    let progress = Progress::new(Some(total.fold(0, u64::saturating_add)), args.quiet);
    let failed = |e| CliError::failed(policy.label(), e);
    let reads = Reads::new(
        topology,
        network,
        config.clone(),
        blocks.to_vec(),
        lanes.to_vec(),
    );
    let outcome = reads
        .and_then(|reads| reads.run(|bytes| progress.set(bytes)))
        .map_err(failed)?;
    progress.finish();
    let top = outcome.stores.keys().max().copied().unwrap_or(0);
    let levels = outcome.stores.iter().map(|(&tier, counters)| Level {
        name: level(topology, tier, top),
        hits: counters.hits,
        misses: counters.misses,
        hit_bytes: counters.hits * Cut::default().segment_bytes,
    });
    let levels = levels.collect();
    let ReadOutcome { traffic, .. } = &outcome;
    Ok(Run {
        policy: policy.label(),
        taken_bytes: outcome.taken_bytes,
        local_bytes: outcome.local_bytes,
        given_bytes: outcome.given_bytes,
        levels,
        all_links_bytes: traffic.all_bytes,
        core_bytes: traffic.core_bytes,
        dropped: traffic.dropped,
        retransmitted: outcome.retransmitted,
        simulated_s: outcome.took.as_secs_f64(),
        read_mean_s: outcome.mean.as_secs_f64(),
        read_max_s: outcome.slowest.as_secs_f64(),
        events: outcome.events,
        took_s: began.elapsed().as_secs_f64(),
    })
}

/// What people call the stores of a tier; `top` is the highest.
fn level(topology: &Topology, tier: u16, top: u16) -> &'static str {
    match tier {
        0 => "hosts",
        1 => "racks",
        _ if tier < top && !topology.is_tree() => "aggregation",
        _ => "core",
    }
}

fn print(report: &Report) {
    let mb = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    let all = &report.potential;
    output::line(&format!(
        "{}: {} hosts, {} routers; {} reads of {} blocks; seed {}; bytes in MB (10⁶)",
        report.topology, report.hosts, report.routers, report.reads, report.blocks, report.seed
    ));
    output::line(&format!(
        "over TCP: {} beside a replica, {} over the network, of which caches without end at each host had {}, \
         at hosts and routers {}, one for all {}; all links {}, between routers {}",
        mb(all.local_bytes),
        mb(all.network_bytes),
        mb(all.node_bytes),
        mb(all.network_level_bytes),
        mb(all.unified_bytes),
        mb(report.tcp.all_links_bytes),
        mb(report.tcp.core_bytes),
    ));
    let mut table = Table::new(&[
        "policy",
        "taken",
        "given by hosts",
        "hits hosts",
        "racks",
        "aggregation",
        "core",
        "all links",
        "between routers",
        "read mean s",
        "all s",
        "took s",
    ]);
    for run in &report.runs {
        let hits = |name| {
            let of_level = run.levels.iter().filter(|level| level.name == name);
            mb(of_level.map(|level| level.hit_bytes).sum())
        };
        table.row(vec![
            run.policy.to_owned(),
            mb(run.taken_bytes),
            mb(run.given_bytes),
            hits("hosts"),
            hits("racks"),
            hits("aggregation"),
            hits("core"),
            mb(run.all_links_bytes),
            mb(run.core_bytes),
            format!("{:.3}", run.read_mean_s),
            format!("{:.3}", run.simulated_s),
            format!("{:.1}", run.took_s),
        ]);
    }
    table.print("nothing was run");
}
