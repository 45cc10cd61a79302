//! Blocks written and streams read, from what sets them up to their last acknowledgement.

use super::progress::{Happening, Progress};
use super::share::Use;
use super::ways::{BlockWays, Ways};
use super::{Plane, TimeConfig};
use crate::block::BlockPlan;
use crate::topology::{NodeId, Path, Topology};
use std::collections::HashMap;

/// What is under way.
#[derive(Debug)]
enum Kind {
    Block(BlockWays),
    Stream(Path),
}

#[derive(Debug)]
struct Item {
    kind: Kind,
    bits: f64,
    began: f64,
    /// Whether its bytes have come: what is left are acknowledgements.
    ends: bool,
}

/// Something that is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Done {
    pub(super) id: u64,
    /// Seconds that it took.
    pub(super) took: f64,
}

/// Transfers of one plane over a network.
#[derive(Debug)]
pub(super) struct Transfers<'a> {
    ways: Ways<'a>,
    progress: Progress,
    plane: Plane,
    items: HashMap<u64, Item>,
    next: u64,
}

impl<'a> Transfers<'a> {
    pub(super) fn new(topology: &'a Topology, config: TimeConfig, plane: Plane) -> Self {
        Transfers {
            progress: Progress::new(Ways::capacities(topology), config.part),
            ways: Ways::new(topology, config),
            plane,
            items: HashMap::new(),
            next: 0,
        }
    }

    pub(super) fn now(&self) -> f64 {
        self.progress.now()
    }

    /// Begins to write a block; returns its number.
    pub(super) fn write(&mut self, plan: &BlockPlan, bytes: u64) -> u64 {
        let ways = self.ways.block(self.plane, plan, self.next);
        let after = self.ways.set_up(&ways, &self.progress);
        let bits = self.ways.block_bits(self.plane, bytes);
        self.begin(Kind::Block(ways), bits, after)
    }

    /// Begins to fetch bytes over one connection, which every plane does alike; returns its number.
    pub(super) fn fetch(&mut self, from: NodeId, to: NodeId, bytes: u64) -> u64 {
        let path = self.ways.path(from, to, self.next);
        let after = self.ways.ask(&path, &self.progress);
        let bits = self.ways.stream_bits(bytes);
        self.begin(Kind::Stream(path), bits, after)
    }

    fn begin(&mut self, kind: Kind, bits: f64, after: f64) -> u64 {
        let (id, began) = (self.next, self.progress.now());
        self.next += 1;
        self.items.insert(
            id,
            Item {
                kind,
                bits,
                began,
                ends: false,
            },
        );
        self.progress.set_timer(after, id);
        id
    }

    /// What is done next; `None` when nothing is under way.
    pub(super) fn next_done(&mut self) -> Option<Done> {
        loop {
            match self.progress.next_happening()? {
                Happening::Timer(id) => {
                    let Some(item) = self.items.get(&id) else {
                        continue;
                    };
                    if item.ends {
                        let item = self.items.remove(&id)?;
                        let took = self.progress.now() - item.began;
                        return Some(Done { id, took });
                    }
                    let crossed = match &item.kind {
                        Kind::Block(ways) => ways.crossed.clone(),
                        Kind::Stream(path) => {
                            path.iter().map(|&line| Use { line, times: 1 }).collect()
                        }
                    };
                    self.progress.begin(id, crossed, item.bits);
                }
                Happening::Done(id) => {
                    let Some(item) = self.items.get_mut(&id) else {
                        continue;
                    };
                    item.ends = true;
                    let after = match &item.kind {
                        Kind::Block(ways) => self.ways.ending(self.plane, ways, &self.progress),
                        Kind::Stream(_) => 0.0,
                    };
                    self.progress.set_timer(after, id);
                }
            }
        }
    }
}
