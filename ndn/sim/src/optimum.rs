//! The least that a write could put on the links: every byte once over each link of the smallest tree that joins the
//! writer with its replicas, and once out of the writer's host and into each other's.

use crate::block::BlockPlan;
use crate::topology::{NodeId, Routes};
use std::collections::BTreeSet;

/// Links that one copy of a block crosses, each counted once, and how many host interfaces it passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Optimum {
    /// Links crossed.
    pub links: u64,
    /// Interfaces of hosts passed.
    pub interfaces: u64,
}

/// The optimum of a block on a tree of shortest ways to its writer, which on trees is the only one there is, and on fat
/// trees the smallest when all ways go by the same positions.
pub fn multicast(routes: &mut Routes<'_>, plan: &BlockPlan) -> Optimum {
    let mut links = BTreeSet::new();
    let mut hosts = BTreeSet::new();
    for &replica in plan.replicas.iter().filter(|&&r| r != plan.writer) {
        links.extend(routes.path(replica, plan.writer, 0));
        hosts.insert(replica);
    }
    let out = u64::from(!hosts.is_empty());
    Optimum {
        links: links.len() as u64,
        interfaces: hosts.len() as u64 + out,
    }
}

/// What the chain of stock HDFS crosses: every link between each replica and the next.
pub fn chain(routes: &mut Routes<'_>, plan: &BlockPlan) -> Optimum {
    let mut from: NodeId = plan.writer;
    let (mut links, mut interfaces) = (0, 0);
    for &to in &plan.replicas {
        links += u64::from(routes.distance(from, to));
        interfaces += 2 * u64::from(from != to);
        from = to;
    }
    Optimum { links, interfaces }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{FatTree, LinkSpec, Topology, paper_16};

    fn plan(topology: &Topology, names: &[&str]) -> BlockPlan {
        let hosts: Vec<NodeId> = names
            .iter()
            .map(|name| topology.find(name).expect("a host"))
            .collect();
        BlockPlan {
            writer: hosts[0],
            replicas: hosts,
        }
    }

    #[test]
    fn the_papers_table_2() {
        let topology = paper_16(LinkSpec::default());
        let mut routes = Routes::new(&topology);
        let plan = plan(&topology, &["h3", "h5", "h13"]);
        let (tree, line) = (multicast(&mut routes, &plan), chain(&mut routes, &plan));
        // h3 r1 r5 r2 h5, and r5 r4 h13; a chain goes twice through r5.
        assert_eq!((tree.links, tree.interfaces), (6, 3));
        assert_eq!((line.links, line.interfaces), (8, 4));
    }

    #[test]
    fn fat_trees_join_at_one_core() {
        let topology = FatTree {
            hosts: 128,
            link: LinkSpec::default(),
        }
        .build()
        .expect("a fat tree");
        let mut routes = Routes::new(&topology);
        // h1 and h2 share an edge, h5 is at another of the pod, h17 and h33 are in other pods.
        let plan = plan(&topology, &["h1", "h2", "h5", "h17", "h33"]);
        let tree = multicast(&mut routes, &plan);
        // 5 hosts; edges of h1, h5, h17, h33 to an aggregation each; 3 aggregations to the core.
        assert_eq!((tree.links, tree.interfaces), (5 + 4 + 3, 5));
    }
}
