//! Where replicas go: as HDFS's default policy places them.

use super::{NodeId, Topology};
use std::collections::HashMap;

/// Why there is no place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// Fewer hosts store data than replicas are wanted.
    #[error("{wanted} replicas need as many hosts that store data, and there are {there}")]
    TooFew {
        /// Replicas wanted.
        wanted: usize,
        /// Hosts that store data.
        there: usize,
    },
}

/// Chooses hosts for replicas.
#[derive(Debug)]
pub struct Placement {
    hosts: Vec<NodeId>,
    rack: HashMap<NodeId, usize>,
    racks: Vec<Vec<NodeId>>,
}

impl Placement {
    /// Over the hosts of a network that store data.
    pub fn new(topology: &Topology) -> Self {
        let hosts: Vec<NodeId> = topology.datanodes().collect();
        let mut by_name: HashMap<&str, usize> = HashMap::new();
        let mut racks: Vec<Vec<NodeId>> = Vec::new();
        let mut rack = HashMap::new();
        for &host in &hosts {
            let next = racks.len();
            let at = *by_name.entry(&topology.node(host).rack).or_insert(next);
            if at == next {
                racks.push(Vec::new());
            }
            racks[at].push(host);
            rack.insert(host, at);
        }
        Placement { hosts, rack, racks }
    }

    /// The same where no racks are configured: HDFS takes all hosts for one rack then, and replicas but the first stand
    /// anywhere.
    pub fn without_racks(topology: &Topology) -> Self {
        let hosts: Vec<NodeId> = topology.datanodes().collect();
        Placement {
            rack: hosts.iter().map(|&host| (host, 0)).collect(),
            racks: vec![hosts.clone()],
            hosts,
        }
    }

    /// Hosts that store data.
    pub fn hosts(&self) -> &[NodeId] {
        &self.hosts
    }

    /// Hosts for a block's replicas, in the order of its pipeline: the first on the writer (any host if it stores
    /// nothing), the second on another rack, the third beside the second, the others anywhere.
    ///
    /// # Errors
    /// When there are fewer hosts than replicas.
    pub fn choose(
        &self,
        writer: NodeId,
        replicas: usize,
        rng: &mut fastrand::Rng,
    ) -> Result<Vec<NodeId>, PlacementError> {
        if replicas > self.hosts.len() {
            return Err(PlacementError::TooFew {
                wanted: replicas,
                there: self.hosts.len(),
            });
        }
        let mut chosen: Vec<NodeId> = Vec::with_capacity(replicas);
        while chosen.len() < replicas {
            let next = match chosen[..] {
                [] if self.rack.contains_key(&writer) => Some(writer),
                [first] => self.any(rng, &chosen, |host| self.rack[&host] != self.rack[&first]),
                [_, second] => self.near(second, rng, &chosen),
                _ => None,
            };
            let next = next.or_else(|| self.any(rng, &chosen, |_| true));
            chosen.extend(next);
        }
        Ok(chosen)
    }

    fn near(&self, host: NodeId, rng: &mut fastrand::Rng, taken: &[NodeId]) -> Option<NodeId> {
        let rack = self.racks[self.rack[&host]].iter().copied();
        let free: Vec<NodeId> = rack.filter(|host| !taken.contains(host)).collect();
        rng.choice(free)
    }

    /// A free host that fits: a few by chance, then whichever there is.
    fn any(
        &self,
        rng: &mut fastrand::Rng,
        taken: &[NodeId],
        fits: impl Fn(NodeId) -> bool,
    ) -> Option<NodeId> {
        const TRIES: usize = 16;
        let good = |host: &NodeId| !taken.contains(host) && fits(*host);
        for _ in 0..TRIES {
            let host = self.hosts[rng.usize(..self.hosts.len())];
            if good(&host) {
                return Some(host);
            }
        }
        let free: Vec<NodeId> = self.hosts.iter().copied().filter(good).collect();
        rng.choice(free)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LinkSpec, TwoLevel, paper_16};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn replicas_stand_as_hdfs_places_them(seed: u64, replicas in 1usize..16, writer in 0usize..16) {
            let topology = paper_16(LinkSpec::default());
            let placement = Placement::new(&topology);
            let writer = placement.hosts()[writer];
            let mut rng = fastrand::Rng::with_seed(seed);
            let chosen = placement.choose(writer, replicas, &mut rng).expect("room for all");
            let rack = |at: usize| &topology.node(chosen[at]).rack;
            prop_assert_eq!(chosen[0], writer);
            if replicas > 1 { prop_assert_ne!(rack(0), rack(1)); }
            if replicas > 2 { prop_assert_eq!(rack(1), rack(2)); }
            let mut once = chosen.clone();
            once.sort_unstable();
            once.dedup();
            prop_assert_eq!(once.len(), replicas);
        }
    }

    #[test]
    fn without_racks_the_second_may_stand_beside_the_first() {
        let topology = paper_16(LinkSpec::default());
        let placement = Placement::without_racks(&topology);
        let mut rng = fastrand::Rng::with_seed(1);
        let writer = placement.hosts()[0];
        let mut beside = 0;
        for _ in 0..1000 {
            let chosen = placement.choose(writer, 3, &mut rng).expect("hosts");
            assert_eq!(chosen[0], writer);
            beside += u32::from(topology.node(chosen[1]).rack == topology.node(writer).rack);
        }
        // Three of the fifteen others.
        assert!((150..250).contains(&beside), "{beside}");
    }

    #[test]
    fn one_rack_serves_too_and_too_many_are_refused() {
        let one = TwoLevel {
            hosts: 3,
            hosts_per_rack: 3,
            host_link: LinkSpec::default(),
            uplink: LinkSpec::default(),
        };
        let topology = one.build().expect("a rack");
        let placement = Placement::new(&topology);
        let mut rng = fastrand::Rng::with_seed(1);
        let writer = placement.hosts()[0];
        assert_eq!(
            placement.choose(writer, 3, &mut rng).map(|all| all.len()),
            Ok(3)
        );
        assert_eq!(
            placement.choose(writer, 4, &mut rng),
            Err(PlacementError::TooFew {
                wanted: 4,
                there: 3
            })
        );
    }
}
