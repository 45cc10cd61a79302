//! Shortest ways, and which of several equal ones is taken.
//!
//! Of equal ways a selector takes one, by tier: all routers as far from the hosts as each other take the neighbour of
//! the same rank. So in a fat tree all that goes to one host under one selector passes the same aggregation position
//! and the same core router: together a tree, and the smallest there is.

use super::{NodeId, Topology};
use std::collections::HashMap;
use std::collections::VecDeque;

/// Links of a way, as directions: link `l` from its first to its second end is `2l`, the other way `2l + 1`.
pub type Path = Vec<u32>;

/// Distances, found as they are needed and kept.
#[derive(Debug)]
pub struct Routes<'a> {
    topology: &'a Topology,
    /// Links between each node and the nearest host.
    tier: Vec<u16>,
    /// Distances of all nodes to a router or host that was asked for.
    known: HashMap<NodeId, Box<[u16]>>,
}

impl<'a> Routes<'a> {
    /// Ways through a network.
    pub fn new(topology: &'a Topology) -> Self {
        Routes {
            tier: distances(topology, topology.hosts()),
            known: HashMap::new(),
            topology,
        }
    }

    /// The network.
    pub fn topology(&self) -> &'a Topology {
        self.topology
    }

    /// Links between a node and the nearest host: 0 for a host, 1 for its router, more above.
    pub fn tier(&self, node: NodeId) -> u16 {
        self.tier[node as usize]
    }

    /// Links between two nodes.
    pub fn distance(&mut self, from: NodeId, to: NodeId) -> u32 {
        if from == to {
            return 0;
        }
        // Hosts hang on one router each: distances are kept for routers alone.
        let (anchor, beyond) = self.anchor(to);
        if from == anchor {
            return beyond;
        }
        u32::from(self.anchored(anchor)[from as usize]) + beyond
    }

    fn anchor(&self, node: NodeId) -> (NodeId, u32) {
        match self.topology.neighbours(node) {
            [(_, router)] if self.topology.is_host(node) => (*router, 1),
            _ => (node, 0),
        }
    }

    fn anchored(&mut self, anchor: NodeId) -> &[u16] {
        let topology = self.topology;
        self.known
            .entry(anchor)
            .or_insert_with(|| distances(topology, std::iter::once(anchor)).into())
    }

    /// The next link from `from` toward `to`, as a direction, and who is at its end. `None` when they are one.
    pub fn next(&mut self, from: NodeId, to: NodeId, selector: u64) -> Option<(u32, NodeId)> {
        if from == to {
            return None;
        }
        let topology = self.topology;
        let (anchor, _) = self.anchor(to);
        let chosen = if from == anchor {
            *topology
                .neighbours(from)
                .iter()
                .find(|&&(_, node)| node == to)?
        } else {
            let tier = self.tier[from as usize];
            let known = self.anchored(anchor);
            let here = known[from as usize];
            let nearer = || {
                let all = topology.neighbours(from).iter();
                all.filter(|&&(_, node)| known[node as usize] + 1 == here)
            };
            let ways = nearer().count() as u64;
            *nearer().nth(pick(selector, tier, ways))?
        };
        let (link, node) = chosen;
        let direction = topology.line(link, from);
        Some((direction, node))
    }

    /// The whole way.
    pub fn path(&mut self, from: NodeId, to: NodeId, selector: u64) -> Path {
        let (mut path, mut at) = (Vec::new(), from);
        while let Some((direction, node)) = self.next(at, to, selector) {
            path.push(direction);
            at = node;
        }
        path
    }
}

/// Which of `ways` a selector takes at a tier.
fn pick(selector: u64, tier: u16, ways: u64) -> usize {
    if ways <= 1 {
        return 0;
    }
    let mixed = (selector ^ (u64::from(tier) << 56)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    ((mixed >> 32) % ways) as usize
}

fn distances(topology: &Topology, from: impl Iterator<Item = NodeId>) -> Vec<u16> {
    let mut found = vec![u16::MAX; topology.nodes().len()];
    let mut open: VecDeque<NodeId> = VecDeque::new();
    for node in from {
        found[node as usize] = 0;
        open.push_back(node);
    }
    while let Some(node) = open.pop_front() {
        for &(_, next) in topology.neighbours(node) {
            if found[next as usize] == u16::MAX {
                found[next as usize] = found[node as usize] + 1;
                open.push_back(next);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::{FatTree, LinkSpec, TwoLevel};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ways_are_shortest() {
        let tree = FatTree {
            hosts: 128,
            link: LinkSpec::default(),
        };
        let topology = tree.build().expect("a fat tree");
        let mut routes = Routes::new(&topology);
        let host = |n: u32| topology.find(&format!("h{n}")).expect("a host");
        for (a, b, links) in [(1, 1, 0), (1, 4, 2), (1, 5, 4), (1, 128, 6)] {
            assert_eq!(routes.distance(host(a), host(b)), links);
            for selector in 0..20 {
                assert_eq!(
                    routes.path(host(a), host(b), selector).len(),
                    links as usize
                );
            }
        }
        assert_eq!(
            routes.tier(topology.find("core1").expect("a core router")),
            3
        );
    }

    proptest! {
        /// What goes to one host under one selector is a tree: wherever two ways meet they stay together.
        #[test]
        fn ways_that_meet_stay_together(hosts in 2u32..200, to in 0u32..200, selector: u64, fat: bool) {
            let topology = if fat {
                FatTree { hosts, link: LinkSpec::default() }.build()
            } else {
                TwoLevel {
                    hosts,
                    hosts_per_rack: 7,
                    host_link: LinkSpec::default(),
                    uplink: LinkSpec::default(),
                }.build()
            }.expect("a network");
            let all: Vec<NodeId> = topology.hosts().collect();
            let to = all[(to % hosts) as usize];
            let mut routes = Routes::new(&topology);
            let mut after: HashMap<NodeId, u32> = HashMap::new();
            for &from in &all {
                let mut at = from;
                let mut steps = 0;
                while let Some((direction, node)) = routes.next(at, to, selector) {
                    prop_assert_eq!(*after.entry(at).or_insert(direction), direction);
                    at = node;
                    steps += 1;
                }
                prop_assert_eq!(at, to);
                prop_assert_eq!(steps, routes.distance(from, to));
            }
        }
    }
}
