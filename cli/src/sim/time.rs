//! `trunkline sim time`: how long writes and jobs take on each plane, against oversubscription.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use ndn_sim::time::{JobTimes, JobsPlan, Plane, TimeConfig, draw_jobs, jobs, writes};
use ndn_sim::topology::{NodeId, Placement, Topology};
use ndn_sim::write::{self, BlockPlan, WriteConfig, Writes};
use serde::Serialize;

use super::network;
use crate::args::{SimTimeArgs, TimePlaneArg};
use crate::error::CliError;
use crate::output::{self, Table};
use crate::transfer::progress::Progress;

/// What is tried where no topology file gives rates.
const USUAL: [f64; 4] = [1.0, 2.0, 4.0, 8.0];
/// Names of topologies that are no files.
const SHAPES: [&str; 3] = ["fat-tree", "two-level", "paper-16"];

#[derive(Serialize)]
struct Report {
    topology: String,
    hosts: usize,
    routers: usize,
    writers: usize,
    blocks: usize,
    block_bytes: u64,
    replicas: u32,
    racks: bool,
    jobs: u32,
    tasks: u32,
    seed: u64,
    runs: Vec<Run>,
}

/// One plane at one oversubscription.
#[derive(Serialize)]
struct Run {
    /// None: as the topology file has it.
    oversubscription: Option<f64>,
    plane: &'static str,
    /// `shares` of links, or all `packets`.
    by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    writes: Option<WriteSeconds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs: Option<JobSeconds>,
    took_s: f64,
}

/// Simulated seconds.
#[derive(Serialize)]
struct WriteSeconds {
    block_mean_s: f64,
    block_p99_s: f64,
    writer_mean_s: f64,
    all_s: f64,
}

/// Simulated seconds since all jobs began.
#[derive(Serialize)]
struct JobSeconds {
    read_mean_s: f64,
    shuffled_mean_s: f64,
    job_mean_s: f64,
    all_s: f64,
}

/// What is run on every plane alike.
struct Work {
    plans: Vec<BlockPlan>,
    jobs: Option<JobsPlan>,
}

/// Runs the subcommand.
///
/// # Errors
/// A usage error for a network, writers or jobs that can't be, a failure when packets don't come through.
pub fn run(args: &SimTimeArgs) -> Result<(), CliError> {
    let (topology, writers) = network::topology(&args.network)?;
    network::config(&args.network, &topology)?;
    let writers = chosen(args, &topology, writers)?;
    let work = work(args, &topology, &writers)?;
    let ratios: Vec<Option<f64>> = if !args.oversubscription.is_empty() {
        args.oversubscription
            .iter()
            .map(|ratio| Some(ratio.0))
            .collect()
    } else if SHAPES.contains(&args.network.topology.as_str()) {
        USUAL.map(Some).to_vec()
    } else {
        vec![None]
    };
    let mut runs = Vec::new();
    for ratio in ratios {
        let narrow = ratio.map(|ratio| topology.oversubscribed(ratio));
        let topology = narrow.as_ref().unwrap_or(&topology);
        for &plane in &args.plane {
            let plane = match plane {
                TimePlaneArg::Tcp => Plane::Tcp,
                TimePlaneArg::Named => Plane::Named,
                TimePlaneArg::Mirror => Plane::Mirror,
            };
            runs.push(by_shares(args, topology, ratio, plane, &work));
            let packets = match plane {
                Plane::Tcp => Some(write::Plane::Tcp),
                Plane::Named => Some(write::Plane::Named),
                Plane::Mirror => None,
            };
            if let Some(other) = packets.filter(|_| args.packets) {
                runs.push(by_packets(args, topology, ratio, plane, other, &work)?);
            }
        }
    }
    let report = Report {
        topology: topology.name().to_owned(),
        hosts: topology.hosts().count(),
        routers: topology.nodes().len() - topology.hosts().count(),
        writers: writers.len(),
        blocks: work.plans.len(),
        block_bytes: args.block_size,
        replicas: args.replicas,
        racks: !args.no_racks,
        jobs: args.jobs,
        tasks: args.tasks,
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

/// Who writes, taken by chance of those who may.
fn chosen(
    args: &SimTimeArgs,
    topology: &Topology,
    mut may: Vec<NodeId>,
) -> Result<Vec<NodeId>, CliError> {
    let count = args.writers.map_or(may.len(), |count| count as usize);
    if count > may.len() {
        let few = format!("{} hosts of {} may write", may.len(), topology.name());
        return Err(CliError::usage("--writers", few));
    }
    if count == 0 && args.jobs == 0 {
        return Err(CliError::usage(
            "--writers, --jobs",
            "without either there is nothing to time",
        ));
    }
    if count == 0 && args.packets {
        return Err(CliError::usage(
            "--packets",
            "only writes are simulated packet by packet, and --writers is 0",
        ));
    }
    fastrand::Rng::with_seed(args.network.seed).shuffle(&mut may);
    may.truncate(count);
    Ok(may)
}

fn work(args: &SimTimeArgs, topology: &Topology, writers: &[NodeId]) -> Result<Work, CliError> {
    if args.block_size == 0 {
        return Err(CliError::usage("--block-size", "0 bytes can't be written"));
    }
    let seed = args.network.seed;
    let mut rng = fastrand::Rng::with_seed(seed);
    let placement = if args.no_racks {
        Placement::without_racks(topology)
    } else {
        Placement::new(topology)
    };
    let replicas = args.replicas as usize;
    let plans = (0..args.blocks_each).flat_map(|_| writers.iter().copied());
    let plans = plans.map(|writer| {
        let replicas = placement
            .choose(writer, replicas, &mut rng)
            .map_err(|e| CliError::usage("--replicas", e))?;
        Ok(BlockPlan { writer, replicas })
    });
    let plans = plans.collect::<Result<Vec<_>, CliError>>()?;
    if args.jobs > 0 && args.tasks as usize > placement.hosts().len() {
        let few = format!(
            "{} tasks of a job need as many hosts, and {} store data",
            args.tasks,
            placement.hosts().len()
        );
        return Err(CliError::usage("--tasks", few));
    }
    let drawn = (args.jobs > 0).then(|| {
        draw_jobs(
            topology,
            &placement,
            args.jobs as usize,
            args.tasks as usize,
            replicas,
            seed,
        )
        .map_err(|e| CliError::usage("--replicas", e))
    });
    Ok(Work {
        plans,
        jobs: drawn.transpose()?,
    })
}

fn by_shares(
    args: &SimTimeArgs,
    topology: &Topology,
    oversubscription: Option<f64>,
    plane: Plane,
    work: &Work,
) -> Run {
    let config = TimeConfig {
        wire: network::wire(&args.network),
        seed: args.network.seed,
        ..TimeConfig::default()
    };
    let began = Instant::now();
    let tasks = u64::from(args.jobs) * u64::from(args.tasks);
    let blocks = work.plans.len() as u64;
    let progress = Progress::new(Some((blocks + tasks) * args.block_size), args.quiet);
    let told = |done: u64| progress.set(done * args.block_size);
    let written = (blocks > 0).then(|| {
        let times = writes(topology, config, plane, &work.plans, args.block_size, told);
        seconds(times.blocks, &times.writers)
    });
    let jobs = work.jobs.as_ref().map(|plan| {
        let told = |done| told(blocks + done);
        job_seconds(&jobs(topology, config, plane, plan, args.block_size, told))
    });
    progress.finish();
    Run {
        oversubscription,
        plane: plane.label(),
        by: "shares",
        writes: written,
        jobs,
        took_s: began.elapsed().as_secs_f64(),
    }
}

fn by_packets(
    args: &SimTimeArgs,
    topology: &Topology,
    oversubscription: Option<f64>,
    plane: Plane,
    other: write::Plane,
    work: &Work,
) -> Result<Run, CliError> {
    let config = WriteConfig {
        block_bytes: args.block_size,
        ..WriteConfig::default()
    };
    let segment_bytes = config.cut.segment_bytes;
    let total = work.plans.len() as u64 * args.block_size;
    let began = Instant::now();
    let progress = Progress::new(Some(total), args.quiet);
    let network = network::config(&args.network, topology)?;
    let outcome = Writes::new(topology, network, config, other, work.plans.clone())
        .run(|segments| progress.set((segments * segment_bytes).min(total)))
        .map_err(|e| CliError::failed(format!("{}, every packet", plane.label()), e))?;
    progress.finish();
    // A writer's blocks follow on each other.
    let mut writers: HashMap<NodeId, Duration> = HashMap::new();
    for block in &outcome.blocks {
        *writers.entry(block.plan.writer).or_default() += block.took;
    }
    let mut writers: Vec<f64> = writers.values().map(Duration::as_secs_f64).collect();
    writers.sort_by(f64::total_cmp);
    let blocks = outcome.blocks.iter().map(|block| block.took.as_secs_f64());
    Ok(Run {
        oversubscription,
        plane: plane.label(),
        by: "packets",
        writes: Some(seconds(blocks.collect(), &writers)),
        jobs: None,
        took_s: began.elapsed().as_secs_f64(),
    })
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len().max(1) as f64
}

fn last(times: &[f64]) -> f64 {
    times.iter().copied().fold(0.0, f64::max)
}

fn seconds(mut blocks: Vec<f64>, writers: &[f64]) -> WriteSeconds {
    blocks.sort_by(f64::total_cmp);
    let p99 = blocks.len() * 99 / 100;
    WriteSeconds {
        block_mean_s: mean(&blocks),
        block_p99_s: blocks.get(p99).copied().unwrap_or(0.0),
        writer_mean_s: mean(writers),
        all_s: last(writers),
    }
}

fn job_seconds(times: &JobTimes) -> JobSeconds {
    JobSeconds {
        read_mean_s: mean(&times.read),
        shuffled_mean_s: mean(&times.shuffled),
        job_mean_s: mean(&times.done),
        all_s: last(&times.done),
    }
}

fn print(report: &Report) {
    output::line(&format!(
        "{}: {} hosts, {} routers; {} writers, {} blocks of {} bytes, {} replicas{}; {} jobs of {} tasks; seed {}",
        report.topology,
        report.hosts,
        report.routers,
        report.writers,
        report.blocks,
        report.block_bytes,
        report.replicas,
        if report.racks { "" } else { " anywhere" },
        report.jobs,
        report.tasks,
        report.seed
    ));
    let mut table = Table::new(&[
        "oversubscription",
        "plane",
        "by",
        "block mean s",
        "p99 s",
        "writer mean s",
        "all s",
        "job read s",
        "shuffled s",
        "job mean s",
        "all s",
        "took s",
    ]);
    for run in &report.runs {
        let figure = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.3}"));
        let (writes, jobs) = (run.writes.as_ref(), run.jobs.as_ref());
        table.row(vec![
            run.oversubscription
                .map_or("as in the file".into(), |ratio| format!("{ratio}:1")),
            run.plane.to_owned(),
            run.by.to_owned(),
            figure(writes.map(|w| w.block_mean_s)),
            figure(writes.map(|w| w.block_p99_s)),
            figure(writes.map(|w| w.writer_mean_s)),
            figure(writes.map(|w| w.all_s)),
            figure(jobs.map(|j| j.read_mean_s)),
            figure(jobs.map(|j| j.shuffled_mean_s)),
            figure(jobs.map(|j| j.job_mean_s)),
            figure(jobs.map(|j| j.all_s)),
            format!("{:.1}", run.took_s),
        ]);
    }
    table.print("nothing was run");
}
