//! Jobs at once: each reads its splits, shuffles all to all, and writes what comes of it.
//!
//! ```text
//!   read a split ──▶ all splits of the job are read ──▶ fetch a part from every other task ──▶ write a block
//! ```
//! A job's tasks run on hosts of its own choice, one on each. The bytes of a split are those of a task's output too. A
//! reducer begins when all maps are done, and fetches from some of them at a time, as MapReduce does it.

use super::transfers::Transfers;
use super::{Plane, TimeConfig};
use crate::block::BlockPlan;
use crate::topology::{NodeId, Placement, PlacementError, Topology};
use std::collections::{BTreeMap, HashMap};

/// Fetches of a reducer at once (`mapreduce.reduce.shuffle.parallelcopies`).
const COPIES: usize = 5;
/// Of 100 tasks, how many read from their own host, and how many from another of their rack.
const LOCAL: u32 = 70;
const NEAR: u32 = 20;

/// One task: where it runs, where its split comes from, and where its output goes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Task {
    host: NodeId,
    split_at: NodeId,
    output: Vec<NodeId>,
    /// Which of the tasks it fetches from first.
    first: usize,
}

/// Jobs' tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobsPlan {
    jobs: Vec<Vec<Task>>,
}

/// Draws `jobs` jobs of so many tasks each, the same from the same seed; what they write is placed by `placement`.
///
/// # Errors
/// When there are fewer hosts than tasks of a job, or than replicas.
pub fn draw_jobs(
    topology: &Topology,
    placement: &Placement,
    jobs: usize,
    tasks: usize,
    replicas: usize,
    seed: u64,
) -> Result<JobsPlan, PlacementError> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut racks: BTreeMap<&str, Vec<NodeId>> = BTreeMap::new();
    for &host in placement.hosts() {
        let rack = topology.node(host).rack.as_str();
        racks.entry(rack).or_default().push(host);
    }
    let there = placement.hosts().len();
    if tasks > there {
        return Err(PlacementError::TooFew {
            wanted: tasks,
            there,
        });
    }
    // Jobs take hosts that have none yet, and begin anew when all have one.
    let mut free: Vec<NodeId> = Vec::new();
    let mut drawn = Vec::with_capacity(jobs);
    for _ in 0..jobs {
        if free.len() < tasks {
            free = placement.hosts().to_vec();
            rng.shuffle(&mut free);
        }
        let mut of_job = Vec::with_capacity(tasks);
        for host in free.split_off(free.len() - tasks) {
            let chance = rng.u32(..100);
            let split_at = if chance < LOCAL {
                Some(host)
            } else if chance < LOCAL + NEAR {
                rng.choice(&racks[topology.node(host).rack.as_str()])
                    .copied()
            } else {
                rng.choice(placement.hosts()).copied()
            };
            of_job.push(Task {
                host,
                split_at: split_at.unwrap_or(host),
                output: placement.choose(host, replicas, &mut rng)?,
                first: rng.usize(..tasks),
            });
        }
        drawn.push(of_job);
    }
    Ok(JobsPlan { jobs: drawn })
}

/// When jobs were so far, in seconds since all began; one figure for each job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobTimes {
    /// All splits were read.
    pub read: Vec<f64>,
    /// The last reducer had everything.
    pub shuffled: Vec<f64>,
    /// The last block was written.
    pub done: Vec<f64>,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Read { job: usize },
    Fetch { job: usize, task: usize },
    Write { job: usize },
}

#[derive(Debug, Clone, Copy, Default)]
struct Reducer {
    begun: usize,
    fetched: usize,
}

#[derive(Debug)]
struct Job {
    to_read: usize,
    to_shuffle: usize,
    to_write: usize,
    reducers: Vec<Reducer>,
}

/// Runs all jobs at once, of splits of so many bytes; `progress` is told how many tasks are done.
pub fn jobs(
    topology: &Topology,
    config: TimeConfig,
    plane: Plane,
    plan: &JobsPlan,
    split_bytes: u64,
    mut progress: impl FnMut(u64),
) -> JobTimes {
    let count = plan.jobs.len();
    let mut run = Run {
        transfers: Transfers::new(topology, config, plane),
        plan,
        split_bytes,
        steps: HashMap::new(),
        jobs: Vec::with_capacity(count),
        times: JobTimes {
            read: vec![0.0; count],
            shuffled: vec![0.0; count],
            done: vec![0.0; count],
        },
    };
    for (job, tasks) in plan.jobs.iter().enumerate() {
        run.jobs.push(Job {
            to_read: tasks.len(),
            to_shuffle: tasks.len(),
            to_write: tasks.len(),
            reducers: vec![Reducer::default(); tasks.len()],
        });
        for task in tasks {
            let id = run.transfers.fetch(task.split_at, task.host, split_bytes);
            run.steps.insert(id, Step::Read { job });
        }
    }
    let mut written = 0;
    while let Some(done) = run.transfers.next_done() {
        let Some(step) = run.steps.remove(&done.id) else {
            continue;
        };
        if let Step::Write { .. } = step {
            written += 1;
            progress(written);
        }
        run.on_done(step);
    }
    run.times
}

struct Run<'a> {
    transfers: Transfers<'a>,
    plan: &'a JobsPlan,
    split_bytes: u64,
    steps: HashMap<u64, Step>,
    jobs: Vec<Job>,
    times: JobTimes,
}

impl Run<'_> {
    fn on_done(&mut self, step: Step) {
        let now = self.transfers.now();
        match step {
            Step::Read { job } => {
                self.jobs[job].to_read -= 1;
                if self.jobs[job].to_read == 0 {
                    self.times.read[job] = now;
                    for task in 0..self.plan.jobs[job].len() {
                        for _ in 0..COPIES {
                            self.fetch_next(job, task);
                        }
                    }
                }
            }
            Step::Fetch { job, task } => {
                let reducer = &mut self.jobs[job].reducers[task];
                reducer.fetched += 1;
                if reducer.fetched == self.plan.jobs[job].len() {
                    self.write(job, task);
                } else {
                    self.fetch_next(job, task);
                }
            }
            Step::Write { job } => {
                self.jobs[job].to_write -= 1;
                if self.jobs[job].to_write == 0 {
                    self.times.done[job] = now;
                }
            }
        }
    }

    /// Begins a reducer's next fetch, if there is one.
    fn fetch_next(&mut self, job: usize, task: usize) {
        let tasks = &self.plan.jobs[job];
        let reducer = &mut self.jobs[job].reducers[task];
        if reducer.begun == tasks.len() {
            return;
        }
        let from = (tasks[task].first + reducer.begun) % tasks.len();
        reducer.begun += 1;
        let bytes = self.split_bytes / tasks.len() as u64;
        let id = self
            .transfers
            .fetch(tasks[from].host, tasks[task].host, bytes);
        self.steps.insert(id, Step::Fetch { job, task });
    }

    /// A reducer has everything: it writes.
    fn write(&mut self, job: usize, task: usize) {
        self.jobs[job].to_shuffle -= 1;
        if self.jobs[job].to_shuffle == 0 {
            self.times.shuffled[job] = self.transfers.now();
        }
        let task = &self.plan.jobs[job][task];
        let plan = BlockPlan {
            writer: task.host,
            replicas: task.output.clone(),
        };
        let id = self.transfers.write(&plan, self.split_bytes);
        self.steps.insert(id, Step::Write { job });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{LinkSpec, TwoLevel};

    fn network(uplink_bps: u64) -> Topology {
        let host_link = LinkSpec::default();
        let tree = TwoLevel {
            hosts: 64,
            hosts_per_rack: 8,
            host_link,
            uplink: LinkSpec {
                rate_bps: uplink_bps,
                ..host_link
            },
        };
        tree.build().expect("a tree")
    }

    fn draw(
        topology: &Topology,
        jobs: usize,
        tasks: usize,
        seed: u64,
    ) -> Result<JobsPlan, PlacementError> {
        draw_jobs(topology, &Placement::new(topology), jobs, tasks, 3, seed)
    }

    const SPLIT: u64 = 16 << 20;

    #[test]
    fn jobs_go_through_their_phases() {
        let topology = network(20_000_000_000);
        let plan = draw(&topology, 4, 8, 1).expect("hosts");
        assert_eq!(plan, draw(&topology, 4, 8, 1).expect("hosts"));
        assert_ne!(plan, draw(&topology, 4, 8, 2).expect("hosts"));
        let mut told = 0;
        let config = TimeConfig::default();
        let times = jobs(&topology, config, Plane::Tcp, &plan, SPLIT, |tasks| {
            told = tasks
        });
        assert_eq!(told, 32);
        for job in 0..4 {
            assert!(times.read[job] < times.shuffled[job]);
            assert!(times.shuffled[job] < times.done[job]);
        }
        assert_eq!(
            times,
            jobs(&topology, config, Plane::Tcp, &plan, SPLIT, |_| ())
        );
        // Reading and shuffling are the same on each plane; what is written is not.
        let named = jobs(&topology, config, Plane::Named, &plan, SPLIT, |_| ());
        assert_eq!(named.read, times.read);
        assert_ne!(named.done, times.done);
    }

    #[test]
    fn narrow_uplinks_make_jobs_longer() {
        let last = |uplink_bps| {
            let topology = network(uplink_bps);
            let plan = draw(&topology, 8, 8, 1).expect("hosts");
            let times = jobs(
                &topology,
                TimeConfig::default(),
                Plane::Tcp,
                &plan,
                SPLIT,
                |_| (),
            );
            times.done.into_iter().fold(0.0, f64::max)
        };
        let (wide, narrow) = (last(80_000_000_000), last(10_000_000_000));
        assert!(
            narrow > 2.0 * wide,
            "{narrow} s, and {wide} s with wide uplinks"
        );
    }

    #[test]
    fn a_job_of_more_tasks_than_hosts_is_refused() {
        assert!(draw(&network(1_000_000_000), 1, 65, 1).is_err());
    }
}
