//! What infinite caches would have served, as in Figs. 7 to 9 and Table 3 of "Hadoop on Named Data Networking" (2017).
//!
//! | cache | a byte is a hit when it was read before |
//! |---|---|
//! | node | by the same host |
//! | network | by the same host, or through a router on the way to the DataNode: of either rack, or between the racks |
//! | unified | by anybody |

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;

use super::spans::Spans;

/// One read of a block, hosts and block as numbers. Ordered by time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Read {
    pub time_ms: i64,
    pub server: u32,
    pub reader: u32,
    pub block: u32,
    pub offset: u64,
    pub bytes: u64,
}

/// Sums over reads. A host's reads from its own DataNode cross no network and count as local alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// Reads, local ones too.
    pub reads: u64,
    /// Bytes read from the host's own DataNode.
    pub local_bytes: u64,
    /// Bytes read over the network.
    pub network_bytes: u64,
    /// Of those, what a cache at each host had had.
    pub node_bytes: u64,
    /// Of those, what caches at hosts and routers had had.
    pub network_level_bytes: u64,
    /// Of those, what one cache for all had had.
    pub unified_bytes: u64,
}

/// Sums of a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// Its sums.
    #[serde(flatten)]
    pub sums: Sums,
}

/// Sums up to the end of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// End of the step, milliseconds after the first read.
    pub until_ms: i64,
    /// The phase of its last read.
    pub phase: String,
    /// Everything since that phase began.
    #[serde(flatten)]
    pub so_far: Sums,
}

/// What caches could have done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Potential {
    /// All reads.
    pub all: Sums,
    /// By phase, those with reads.
    pub phases: Vec<Phase>,
    /// Over time; steps without reads are left out.
    pub over_time: Vec<Step>,
}

/// A cache of infinite size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Cache {
    Node(u32),
    Rack(u32),
    Top,
    Unified,
}

/// Goes through reads, which are in the order of time. `racks` has the rack of each host, `phases` when each begins.
pub fn analyse(
    reads: &[Read],
    racks: &[u32],
    phases: &[(i64, String)],
    bin: Duration,
) -> Potential {
    let mut caches: HashMap<(Cache, u32), Spans> = HashMap::new();
    let mut potential = Potential::default();
    let Some(first) = reads.first() else {
        return potential;
    };
    let bin_ms = i64::try_from(bin.as_millis()).unwrap_or(i64::MAX).max(1);
    for read in reads {
        let sums = look(&mut caches, racks, read);
        potential.all.add(&sums);
        let at = phases.partition_point(|(begins, _)| *begins <= read.time_ms);
        let name = at.checked_sub(1).map_or("", |at| phases[at].1.as_str());
        match potential
            .phases
            .last_mut()
            .filter(|phase| phase.name == name)
        {
            Some(phase) => phase.sums.add(&sums),
            None => potential.phases.push(Phase {
                name: name.to_owned(),
                sums,
            }),
        }
        let so_far = potential.phases.last().map_or(sums, |phase| phase.sums);
        let step = (read.time_ms - first.time_ms) / bin_ms;
        let step = Step {
            until_ms: step.saturating_add(1).saturating_mul(bin_ms),
            phase: name.to_owned(),
            so_far,
        };
        match potential.over_time.last_mut() {
            Some(last) if last.until_ms == step.until_ms && last.phase == step.phase => {
                *last = step
            }
            _ => potential.over_time.push(step),
        }
    }
    potential
}

/// What the caches have of one read; from now on they have all of it.
fn look(caches: &mut HashMap<(Cache, u32), Spans>, racks: &[u32], read: &Read) -> Sums {
    let mut sums = Sums {
        reads: 1,
        ..Sums::default()
    };
    if read.server == read.reader {
        sums.local_bytes = read.bytes;
        return sums;
    }
    let mut see = |cache| {
        let spans = caches.entry((cache, read.block)).or_default();
        spans.see(read.offset, read.offset + read.bytes)
    };
    let (here, there) = (racks[read.reader as usize], racks[read.server as usize]);
    sums.network_bytes = read.bytes;
    sums.node_bytes = see(Cache::Node(read.reader));
    // Caches on one way: the one that has most of it stands for all; what several have in parts is not put together.
    let mut on_the_way = see(Cache::Rack(here));
    if here != there {
        on_the_way = on_the_way.max(see(Cache::Top)).max(see(Cache::Rack(there)));
    }
    sums.network_level_bytes = on_the_way.max(sums.node_bytes);
    sums.unified_bytes = see(Cache::Unified);
    sums
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.reads += other.reads;
        self.local_bytes = self.local_bytes.saturating_add(other.local_bytes);
        self.network_bytes = self.network_bytes.saturating_add(other.network_bytes);
        self.node_bytes = self.node_bytes.saturating_add(other.node_bytes);
        self.network_level_bytes = self
            .network_level_bytes
            .saturating_add(other.network_level_bytes);
        self.unified_bytes = self.unified_bytes.saturating_add(other.unified_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(time_ms: i64, server: u32, reader: u32, block: u32) -> Read {
        Read {
            time_ms,
            server,
            reader,
            block,
            offset: 0,
            bytes: 100,
        }
    }

    #[test]
    fn each_level_has_its_hits() {
        // Hosts 0 and 1 in rack 0, 2 and 3 in rack 1, 4 and 5 in rack 2.
        let racks = [0, 0, 1, 1, 2, 2];
        let reads = [
            read(0, 0, 0, 7),      // local
            read(1, 1, 0, 8),      // new; within rack 0
            read(2, 1, 0, 8),      // the same host again
            read(3, 1, 2, 8),      // another host; the DataNode's router has it
            read(4, 4, 5, 8),      // another replica in rack 2: only one cache for all has it
            read(60_000, 4, 3, 8), // rack 1's router has it
        ];
        let phases = [(i64::MIN, "setup".to_owned()), (3, "map".to_owned())];
        let found = analyse(&reads, &racks, &phases, Duration::from_secs(30));
        let all = found.all;
        assert_eq!(
            (all.reads, all.local_bytes, all.network_bytes),
            (6, 100, 500)
        );
        assert_eq!(
            (all.node_bytes, all.network_level_bytes, all.unified_bytes),
            (100, 300, 400)
        );
        let names: Vec<_> = found
            .phases
            .iter()
            .map(|p| (p.name.as_str(), p.sums.reads))
            .collect();
        assert_eq!(names, [("setup", 3), ("map", 3)]);
        let steps: Vec<_> = found
            .over_time
            .iter()
            .map(|s| (s.until_ms, s.so_far.reads))
            .collect();
        assert_eq!(steps, [(30_000, 3), (30_000, 2), (90_000, 3)]);
    }

    proptest! {
        /// A larger cache has what a smaller one has, and none has more than was read.
        #[test]
        fn levels_are_nested(
            reads in prop::collection::vec((0i64..1000, 0u32..8, 0u32..8, 0u32..4, 0u64..50, 0u64..50), 0..100),
            racks in prop::collection::vec(0u32..3, 8),
        ) {
            let mut reads: Vec<Read> = reads.into_iter().map(|(time_ms, server, reader, block, offset, bytes)| {
                Read { time_ms, server, reader, block, offset, bytes }
            }).collect();
            reads.sort();
            let found = analyse(&reads, &racks, &[(i64::MIN, "all".to_owned())], Duration::from_millis(10));
            let all = found.all;
            prop_assert!(all.node_bytes <= all.network_level_bytes);
            prop_assert!(all.network_level_bytes <= all.unified_bytes);
            prop_assert!(all.unified_bytes <= all.network_bytes);
            prop_assert_eq!(all.reads, reads.len() as u64);
            prop_assert_eq!(found.over_time.last().map(|s| s.so_far), (!reads.is_empty()).then_some(all));
        }
    }
}
