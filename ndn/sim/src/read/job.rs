//! Reads such as jobs make them: map tasks read the splits of a data set, most of them where a replica is, after each
//! host has fetched what the job needs to run.

use super::{BlockRead, Lane, StoredBlock};
use crate::topology::{NodeId, Placement, PlacementError, Topology};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What jobs read. The defaults make 40 jobs of 50 tasks over 20 data sets.
#[derive(Debug, Clone)]
pub struct JobConfig {
    /// Data sets. Default 20.
    pub data_sets: u32,
    /// Blocks of each, which are the splits. Default 50.
    pub blocks: u32,
    /// Bytes of a block. Default 128 MiB.
    pub block_bytes: u64,
    /// Replicas of a block, placed as HDFS places them. Default 3.
    pub replicas: usize,
    /// Jobs in all. Each reads a data set, the n-th most popular with a chance of 1 / n^`skew`. Default 40.
    pub jobs: u32,
    /// How much the data sets differ. Default 0.9.
    pub skew: f64,
    /// Tasks of a job that run at once. Default 16.
    pub slots: u32,
    /// Chance that a task runs where a replica of its split is. Default 0.7.
    pub local: f64,
    /// Chance that it runs elsewhere in a rack with one. Default 0.2. The others run anywhere.
    pub rack: f64,
    /// Bytes of what each host of a job fetches first: its archive and configuration. Default 8 MiB.
    pub resource_bytes: u64,
    /// Replicas of that, as MapReduce submits it. Default 10, or as many as there are hosts.
    pub resource_replicas: usize,
    /// From the start of a job to that of the next. Default 0.5 s.
    pub apart: Duration,
    /// How long a task computes after its split. Default 0.5 s.
    pub compute: Duration,
}

impl Default for JobConfig {
    fn default() -> Self {
        JobConfig {
            data_sets: 20,
            blocks: 50,
            block_bytes: 128 << 20,
            replicas: 3,
            jobs: 40,
            skew: 0.9,
            slots: 16,
            local: 0.7,
            rack: 0.2,
            resource_bytes: 8 << 20,
            resource_replicas: 10,
            apart: Duration::from_millis(500),
            compute: Duration::from_millis(500),
        }
    }
}

/// Blocks, and jobs' reads of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The blocks: those of the data sets, then what each job fetches.
    pub blocks: Vec<StoredBlock>,
    /// A lane for each slot of each job.
    pub lanes: Vec<Lane>,
}

/// Draws blocks' places and jobs' tasks.
///
/// # Errors
/// When there are fewer hosts than replicas.
pub fn jobs(topology: &Topology, config: &JobConfig, seed: u64) -> Result<Job, PlacementError> {
    let mut draw = Draw::new(topology, config, seed);
    let mut blocks = Vec::new();
    for _ in 0..config.data_sets.max(1) * config.blocks {
        blocks.push(draw.block(config.block_bytes, config.replicas)?);
    }
    let mut lanes = Vec::new();
    for job in 0..config.jobs {
        let resource = blocks.len() as u32;
        let replicas = config.resource_replicas.min(draw.placement.hosts().len());
        blocks.push(draw.block(config.resource_bytes, replicas)?);
        let first = draw.data_set() * config.blocks;
        let slots = config.slots.clamp(1, config.blocks.max(1));
        let mut of_job = vec![
            Lane {
                start: config.apart * job,
                reads: Vec::new(),
            };
            slots as usize
        ];
        let mut ready: BTreeSet<NodeId> = BTreeSet::new();
        for task in 0..config.blocks {
            let split = first + task;
            let host = draw.place(&blocks[split as usize].replicas);
            let lane = &mut of_job[(task % slots) as usize];
            let mut pause = if task < slots {
                Duration::ZERO
            } else {
                config.compute
            };
            let mut read = |block: u32, bytes| {
                lane.reads.push(BlockRead {
                    pause: std::mem::take(&mut pause),
                    reader: host,
                    block,
                    offset: 0,
                    bytes,
                });
            };
            if config.resource_bytes > 0 && ready.insert(host) {
                read(resource, config.resource_bytes);
            }
            read(split, config.block_bytes);
        }
        lanes.append(&mut of_job);
    }
    Ok(Job { blocks, lanes })
}

/// Chance, and what it chooses from.
struct Draw<'a> {
    topology: &'a Topology,
    config: &'a JobConfig,
    placement: Placement,
    racks: BTreeMap<&'a str, Vec<NodeId>>,
    /// For each data set the chance of it and of all that are more popular, of which the last is all.
    popular: Vec<f64>,
    rng: fastrand::Rng,
}

impl<'a> Draw<'a> {
    fn new(topology: &'a Topology, config: &'a JobConfig, seed: u64) -> Self {
        let placement = Placement::new(topology);
        let mut racks: BTreeMap<&str, Vec<NodeId>> = BTreeMap::new();
        for &host in placement.hosts() {
            let rack = topology.node(host).rack.as_str();
            racks.entry(rack).or_default().push(host);
        }
        let mut sum = 0.0;
        let popular = (1..=config.data_sets.max(1)).map(|rank| {
            sum += f64::from(rank).powf(-config.skew);
            sum
        });
        Draw {
            popular: popular.collect(),
            rng: fastrand::Rng::with_seed(seed),
            topology,
            config,
            placement,
            racks,
        }
    }

    fn any_host(&mut self) -> NodeId {
        let hosts = self.placement.hosts();
        hosts[self.rng.usize(..hosts.len())]
    }

    /// A block written from somewhere.
    fn block(&mut self, bytes: u64, replicas: usize) -> Result<StoredBlock, PlacementError> {
        if self.placement.hosts().is_empty() {
            return Err(PlacementError::TooFew {
                wanted: replicas,
                there: 0,
            });
        }
        let writer = self.any_host();
        let replicas = self.placement.choose(writer, replicas, &mut self.rng)?;
        Ok(StoredBlock { bytes, replicas })
    }

    fn data_set(&mut self) -> u32 {
        let all = self.popular.last().copied().unwrap_or(1.0);
        let at = self.rng.f64() * all;
        let set = self.popular.partition_point(|&sum| sum <= at);
        set.min(self.popular.len() - 1) as u32
    }

    /// Where a task runs whose split is on these hosts.
    fn place(&mut self, replicas: &[NodeId]) -> NodeId {
        let chance = self.rng.f64();
        let Some(near) = self.rng.choice(replicas).copied() else {
            return self.any_host();
        };
        if chance < self.config.local {
            near
        } else if chance < self.config.local + self.config.rack {
            let rack = &self.racks[self.topology.node(near).rack.as_str()];
            let others = rack.iter().copied().filter(|host| !replicas.contains(host));
            let others: Vec<NodeId> = others.collect();
            self.rng.choice(others).unwrap_or(near)
        } else {
            self.any_host()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{LinkSpec, TwoLevel, paper_16};

    fn network() -> Topology {
        let tree = TwoLevel {
            hosts: 128,
            hosts_per_rack: 16,
            host_link: LinkSpec::default(),
            uplink: LinkSpec::default(),
        };
        tree.build().expect("a tree")
    }

    #[test]
    fn tasks_run_near_their_splits_and_popular_data_is_read_more() {
        let topology = network();
        let config = JobConfig {
            jobs: 400,
            ..JobConfig::default()
        };
        let job = jobs(&topology, &config, 1).expect("hosts");
        let (mut local, mut rack, mut all) = (0, 0, 0);
        let mut of_set = vec![0; 20];
        for read in job.lanes.iter().flat_map(|lane| &lane.reads) {
            let Some(set) = of_set.get_mut(read.block as usize / 50) else {
                continue;
            };
            *set += 1;
            let racks = |host: NodeId| &topology.node(host).rack;
            let replicas = &job.blocks[read.block as usize].replicas;
            all += 1;
            if replicas.contains(&read.reader) {
                local += 1;
            } else if replicas.iter().any(|&r| racks(r) == racks(read.reader)) {
                rack += 1;
            }
        }
        assert_eq!(all, 400 * 50);
        let share = |count: u32| f64::from(count) / f64::from(all);
        // One tenth runs anywhere: of those, some are near by chance.
        assert!((0.69..0.73).contains(&share(local)), "{}", share(local));
        assert!((0.19..0.25).contains(&share(rack)), "{}", share(rack));
        assert!(of_set[0] > 3 * of_set[19], "{of_set:?}");
    }

    #[test]
    fn each_host_of_a_job_fetches_its_resources_once() {
        let topology = network();
        let config = JobConfig::default();
        let job = jobs(&topology, &config, 2).expect("hosts");
        for resource in 20 * 50..job.blocks.len() as u32 {
            let reads = job.lanes.iter().flat_map(|lane| &lane.reads);
            let readers: Vec<NodeId> = reads
                .filter(|r| r.block == resource)
                .map(|r| r.reader)
                .collect();
            let once: BTreeSet<NodeId> = readers.iter().copied().collect();
            assert_eq!(readers.len(), once.len());
            assert!(!readers.is_empty());
        }
        assert_eq!(job, jobs(&topology, &config, 2).expect("hosts"));
        assert_ne!(job, jobs(&topology, &config, 3).expect("hosts"));
    }

    #[test]
    fn too_few_hosts_are_refused() {
        let config = JobConfig {
            replicas: 17,
            ..JobConfig::default()
        };
        assert!(jobs(&paper_16(LinkSpec::default()), &config, 1).is_err());
    }
}
