//! `trunkline sim write`: the traffic of replicated writes, against the number of replicas.

use std::time::Instant;

use ndn_sim::Cut;
use ndn_sim::optimum::{self, Optimum};
use ndn_sim::topology::{NodeId, Placement, Routes, Topology};
use ndn_sim::write::{BlockPlan, Plane, WriteConfig, WriteOutcome, Writes};
use serde::Serialize;

use super::network;
use crate::args::{PlaneArg, SimWriteArgs};
use crate::error::CliError;
use crate::output::{self, Table};
use crate::transfer::progress::Progress;

#[derive(Serialize)]
struct Report {
    topology: String,
    hosts: usize,
    routers: usize,
    blocks: u32,
    block_bytes: u64,
    seed: u64,
    runs: Vec<Run>,
}

/// One number of replicas on one plane.
#[derive(Serialize)]
struct Run {
    replicas: usize,
    plane: &'static str,
    /// Out of and into hosts, all together.
    hosts_bytes: u64,
    /// Of those, of hosts that took no part.
    idle_hosts_bytes: u64,
    /// Between routers.
    core_bytes: u64,
    /// Over each link once.
    all_links_bytes: u64,
    /// The least that could be: block bytes, once over each link of the smallest tree, no headers.
    least_hosts_bytes: u64,
    least_all_links_bytes: u64,
    dropped: u64,
    retransmitted: u64,
    cache_hits: u64,
    simulated_s: f64,
    block_s: Quantiles,
    events: u64,
    took_s: f64,
    hosts: Vec<Host>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<LinkBytes>,
}

#[derive(Serialize)]
struct Quantiles {
    p50: f64,
    max: f64,
}

#[derive(Serialize)]
struct Host {
    name: String,
    in_bytes: u64,
    out_bytes: u64,
}

#[derive(Serialize)]
struct LinkBytes {
    from: String,
    to: String,
    bytes: u64,
    named_bytes: u64,
    dropped: u64,
    queue_peak_bytes: u64,
}

pub fn run(args: &SimWriteArgs) -> Result<(), CliError> {
    let (topology, writers) = network::topology(&args.network)?;
    network::config(&args.network, &topology)?;
    if args.segment_size == 0 || args.block_size == 0 {
        return Err(CliError::usage(
            "--segment-size, --block-size",
            "0 bytes can't be written",
        ));
    }
    let planes: &[Plane] = match args.plane {
        PlaneArg::Both => &[Plane::Tcp, Plane::Named],
        PlaneArg::Named => &[Plane::Named],
        PlaneArg::Tcp => &[Plane::Tcp],
    };
    let replicas: Vec<usize> = if args.pipeline.is_empty() {
        (args.replicas.first..=args.replicas.last).collect()
    } else {
        vec![args.pipeline.len()]
    };
    let mut runs = Vec::new();
    for replicas in replicas {
        let plans = plans(args, &topology, &writers, replicas)?;
        for &plane in planes {
            runs.push(one(args, &topology, &plans, replicas, plane)?);
        }
    }
    let report = Report {
        topology: topology.name().to_owned(),
        hosts: topology.hosts().count(),
        routers: topology.nodes().len() - topology.hosts().count(),
        blocks: args.blocks,
        block_bytes: args.block_size,
        seed: args.network.seed,
        runs,
    };
    if args.json.json {
        output::json(&report);
    } else {
        print(&report);
    }
    Ok(())
}

/// Who writes which block to which hosts; the same from the same seed, whatever the plane.
fn plans(
    args: &SimWriteArgs,
    topology: &Topology,
    writers: &[NodeId],
    replicas: usize,
) -> Result<Vec<BlockPlan>, CliError> {
    let host = |name: &str| {
        let node = topology.find(name).filter(|&node| topology.is_host(node));
        node.ok_or_else(|| CliError::usage(name, format!("no host of {}", topology.name())))
    };
    let mut rng = fastrand::Rng::with_seed(args.network.seed);
    let writers = match &args.client {
        Some(name) => vec![host(name)?],
        None => {
            let most = writers.len();
            if args.writers as usize > most {
                let few = format!("{most} hosts of {} may write", topology.name());
                return Err(CliError::usage("--writers", few)
                    .or("name more of them in the file under roles, clients"));
            }
            let mut all = writers.to_vec();
            rng.shuffle(&mut all);
            all.truncate(args.writers as usize);
            all
        }
    };
    let pipeline = args.pipeline.iter().map(|name| host(name));
    let pipeline = pipeline.collect::<Result<Vec<_>, _>>()?;
    let placement = Placement::new(topology);
    (0..args.blocks as usize)
        .map(|block| {
            let writer = writers[block % writers.len()];
            let replicas = if pipeline.is_empty() {
                placement
                    .choose(writer, replicas, &mut rng)
                    .map_err(|e| CliError::usage("--replicas", e))?
            } else {
                pipeline.clone()
            };
            Ok(BlockPlan { writer, replicas })
        })
        .collect()
}

fn one(
    args: &SimWriteArgs,
    topology: &Topology,
    plans: &[BlockPlan],
    replicas: usize,
    plane: Plane,
) -> Result<Run, CliError> {
    let label = match plane {
        Plane::Named => "named",
        Plane::Tcp => "tcp",
    };
    let config = WriteConfig {
        block_bytes: args.block_size,
        cut: Cut {
            segment_bytes: args.segment_size,
            ..Cut::default()
        },
        ..WriteConfig::default()
    };
    let segment_bytes = config.cut.segment_bytes;
    let began = Instant::now();
    let total = args.block_size * u64::from(args.blocks);
    let progress = Progress::new(Some(total), args.quiet);
    let network = network::config(&args.network, topology)?;
    let writes = Writes::new(topology, network, config, plane, plans.to_vec());
    let outcome = writes
        .run(|segments| progress.set((segments * segment_bytes).min(total)))
        .map_err(|e| CliError::failed(format!("{label}, {replicas} replicas"), e))?;
    progress.finish();
    let mut routes = Routes::new(topology);
    let mut least = Optimum {
        links: 0,
        interfaces: 0,
    };
    for plan in plans {
        let of_block = optimum::multicast(&mut routes, plan);
        least.links += of_block.links;
        least.interfaces += of_block.interfaces;
    }
    let traffic = &outcome.traffic;
    let name = |node: NodeId| topology.node(node).name.clone();
    let hosts = topology.hosts().filter_map(|host| {
        let (in_bytes, out_bytes) = traffic.host_bytes(topology, host);
        (in_bytes + out_bytes > 0).then(|| Host {
            name: name(host),
            in_bytes,
            out_bytes,
        })
    });
    let links = traffic
        .links
        .iter()
        .filter(|l| args.links && l.counters.sent_bytes > 0);
    Ok(Run {
        replicas,
        plane: label,
        hosts_bytes: traffic.hosts_bytes,
        idle_hosts_bytes: traffic.idle_bytes,
        core_bytes: traffic.core_bytes,
        all_links_bytes: traffic.all_bytes,
        least_hosts_bytes: least.interfaces * args.block_size,
        least_all_links_bytes: least.links * args.block_size,
        dropped: traffic.dropped,
        retransmitted: outcome.retransmitted,
        cache_hits: outcome.cache_hits,
        simulated_s: outcome.took.as_secs_f64(),
        block_s: quantiles(&outcome),
        events: outcome.events,
        took_s: began.elapsed().as_secs_f64(),
        hosts: hosts.collect(),
        links: links
            .map(|link| LinkBytes {
                from: name(link.from),
                to: name(link.to),
                bytes: link.counters.sent_bytes,
                named_bytes: link.counters.named_bytes,
                dropped: link.counters.dropped,
                queue_peak_bytes: link.counters.queue_peak_bytes,
            })
            .collect(),
    })
}

fn quantiles(outcome: &WriteOutcome) -> Quantiles {
    let mut times: Vec<f64> = outcome
        .blocks
        .iter()
        .map(|b| b.took.as_secs_f64())
        .collect();
    times.sort_by(f64::total_cmp);
    Quantiles {
        p50: times.get(times.len() / 2).copied().unwrap_or(0.0),
        max: times.last().copied().unwrap_or(0.0),
    }
}

fn print(report: &Report) {
    output::line(&format!(
        "{}: {} hosts, {} routers; {} blocks of {} bytes; seed {}; bytes in MB (10⁶)",
        report.topology,
        report.hosts,
        report.routers,
        report.blocks,
        report.block_bytes,
        report.seed
    ));
    let mut table = Table::new(&[
        "replicas",
        "plane",
        "hosts",
        "least",
        "between routers",
        "all links",
        "least",
        "idle hosts",
        "dropped",
        "block p50 s",
        "all s",
        "took s",
    ]);
    let mb = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    for run in &report.runs {
        table.row(vec![
            run.replicas.to_string(),
            run.plane.to_owned(),
            mb(run.hosts_bytes),
            mb(run.least_hosts_bytes),
            mb(run.core_bytes),
            mb(run.all_links_bytes),
            mb(run.least_all_links_bytes),
            mb(run.idle_hosts_bytes),
            run.dropped.to_string(),
            format!("{:.3}", run.block_s.p50),
            format!("{:.3}", run.simulated_s),
            format!("{:.1}", run.took_s),
        ]);
    }
    table.print("nothing was run");
}
