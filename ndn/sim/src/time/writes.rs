//! Writers at once, each block after block.

use super::transfers::Transfers;
use super::{Plane, TimeConfig};
use crate::block::BlockPlan;
use crate::topology::{NodeId, Topology};
use std::collections::{HashMap, VecDeque};

/// When blocks and writers were done, in seconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WriteTimes {
    /// How long each block took, in the order in which they were done.
    pub blocks: Vec<f64>,
    /// When each writer's last block was done, in the order of their first.
    pub writers: Vec<f64>,
}

/// Writes blocks of so many bytes, those of one writer in their order; `progress` is told how many are done.
pub fn writes(
    topology: &Topology,
    config: TimeConfig,
    plane: Plane,
    plans: &[BlockPlan],
    block_bytes: u64,
    mut progress: impl FnMut(u64),
) -> WriteTimes {
    let mut place: HashMap<NodeId, usize> = HashMap::new();
    let mut waiting: Vec<VecDeque<&BlockPlan>> = Vec::new();
    for plan in plans {
        let at = *place.entry(plan.writer).or_insert_with(|| {
            waiting.push(VecDeque::new());
            waiting.len() - 1
        });
        waiting[at].push_back(plan);
    }
    let mut transfers = Transfers::new(topology, config, plane);
    let mut times = WriteTimes {
        blocks: Vec::with_capacity(plans.len()),
        writers: vec![0.0; waiting.len()],
    };
    let mut writer_of = HashMap::new();
    for (writer, plans) in waiting.iter_mut().enumerate() {
        if let Some(plan) = plans.pop_front() {
            writer_of.insert(transfers.write(plan, block_bytes), writer);
        }
    }
    while let Some(done) = transfers.next_done() {
        let Some(writer) = writer_of.remove(&done.id) else {
            continue;
        };
        times.blocks.push(done.took);
        times.writers[writer] = transfers.now();
        progress(times.blocks.len() as u64);
        if let Some(plan) = waiting[writer].pop_front() {
            writer_of.insert(transfers.write(plan, block_bytes), writer);
        }
    }
    times
}
