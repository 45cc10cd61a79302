//! Networks of well-known shapes.

use super::{Link, LinkSpec, Node, NodeId, NodeKind, Topology, TopologyError};

/// Nodes and links as they are put down.
#[derive(Default)]
struct Parts {
    nodes: Vec<Node>,
    links: Vec<Link>,
}

impl Parts {
    fn node(&mut self, name: String, kind: NodeKind, rack: &str) -> NodeId {
        self.nodes.push(Node {
            name,
            kind,
            rack: rack.to_owned(),
        });
        (self.nodes.len() - 1) as NodeId
    }

    fn router(&mut self, name: String) -> NodeId {
        self.node(name, NodeKind::Router, "")
    }

    fn link(&mut self, a: NodeId, b: NodeId, spec: LinkSpec) {
        self.links.push(Link { ends: [a, b], spec });
    }

    fn host(&mut self, number: u32, router: NodeId, rack: &str, spec: LinkSpec) {
        let kind = NodeKind::Host { datanode: true };
        let host = self.node(format!("h{number}"), kind, rack);
        self.link(host, router, spec);
    }
}

/// Racks of hosts, each with a router, joined by one router at the top.
#[derive(Debug, Clone, Copy)]
pub struct TwoLevel {
    /// Hosts in all.
    pub hosts: u32,
    /// Hosts in each rack but perhaps the last.
    pub hosts_per_rack: u32,
    /// Links of hosts.
    pub host_link: LinkSpec,
    /// Links of racks to the top.
    pub uplink: LinkSpec,
}

impl TwoLevel {
    /// The network.
    ///
    /// # Errors
    /// When there are no hosts, or none in a rack.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        if self.hosts == 0 || self.hosts_per_rack == 0 {
            return Err(TopologyError::NoHosts);
        }
        let mut parts = Parts::default();
        let racks = self.hosts.div_ceil(self.hosts_per_rack);
        let top = parts.router(format!("r{}", racks + 1));
        for rack in 0..racks {
            let name = format!("/r{}", rack + 1);
            let router = parts.router(format!("r{}", rack + 1));
            parts.link(router, top, self.uplink);
            let first = rack * self.hosts_per_rack;
            for host in first..(first + self.hosts_per_rack).min(self.hosts) {
                parts.host(host + 1, router, &name, self.host_link);
            }
        }
        Topology::new(
            format!("two-level-{}", self.hosts),
            parts.nodes,
            parts.links,
        )
    }
}

/// The testbed of "Hadoop on Named Data Networking" (2017), Fig. 5: h1 to h16, four to a router, and r5
/// above r1 to r4.
pub fn paper_16(spec: LinkSpec) -> Topology {
    let tree = TwoLevel {
        hosts: 16,
        hosts_per_rack: 4,
        host_link: spec,
        uplink: spec,
    };
    let mut topology = tree.build().expect("sixteen hosts in racks of four");
    topology.name = "paper-16".into();
    topology
}

/// The fat tree of Al-Fares, Loukissas and Vahdat (SIGCOMM 2008): k pods of k/2 edge and k/2 aggregation routers, and
/// (k/2)² core routers; every link alike.
#[derive(Debug, Clone, Copy)]
pub struct FatTree {
    /// Hosts in all; k is the least that has room for them, and pods are filled one after the other.
    pub hosts: u32,
    /// Every link.
    pub link: LinkSpec,
}

impl FatTree {
    /// Ports of each router.
    pub fn k(&self) -> u32 {
        let mut k = 2;
        while u64::from(k).pow(3) / 4 < u64::from(self.hosts) {
            k += 2;
        }
        k
    }

    /// The network. Edge routers without a host, and pods without one, are left out.
    ///
    /// # Errors
    /// When there are no hosts.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        if self.hosts == 0 {
            return Err(TopologyError::NoHosts);
        }
        let half = self.k() / 2;
        let edges = self.hosts.div_ceil(half);
        let pods = edges.div_ceil(half);
        let mut parts = Parts::default();
        let cores: Vec<NodeId> = (0..half * half)
            .map(|core| parts.router(format!("core{}", core + 1)))
            .collect();
        for pod in 0..pods {
            let aggregation: Vec<NodeId> = (0..half)
                .map(|at| parts.router(format!("agg{}-{}", pod + 1, at + 1)))
                .collect();
            for (at, &router) in aggregation.iter().enumerate() {
                for core in &cores[at * half as usize..][..half as usize] {
                    parts.link(router, *core, self.link);
                }
            }
            for edge in pod * half..edges.min((pod + 1) * half) {
                let rack = format!("/p{}-{}", pod + 1, edge % half + 1);
                let router = parts.router(format!("edge{}-{}", pod + 1, edge % half + 1));
                for &above in &aggregation {
                    parts.link(router, above, self.link);
                }
                let first = edge * half;
                for host in first..(first + half).min(self.hosts) {
                    parts.host(host + 1, router, &rack, self.link);
                }
            }
        }
        Topology::new(format!("fat-tree-{}", self.hosts), parts.nodes, parts.links)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fat(hosts: u32) -> (FatTree, Topology) {
        let tree = FatTree {
            hosts,
            link: LinkSpec::default(),
        };
        (tree, tree.build().expect("a fat tree"))
    }

    #[test]
    fn fat_trees_have_their_numbers() {
        for (hosts, k) in [(16, 4), (128, 8), (1024, 16), (10_000, 36)] {
            let (tree, topology) = fat(hosts);
            assert_eq!(tree.k(), k);
            assert_eq!(topology.hosts().count(), hosts as usize);
        }
        let (_, full) = fat(1024);
        assert_eq!(full.nodes().len(), 1024 + 5 * 16 * 16 / 4);
        assert_eq!(full.links().len(), 3 * 16 * 16 * 16 / 4);
        assert!(!full.is_tree());
    }

    #[test]
    fn the_paper_has_sixteen_hosts_and_five_routers() {
        let paper = paper_16(LinkSpec::default());
        assert_eq!(
            (paper.hosts().count(), paper.nodes().len(), paper.is_tree()),
            (16, 21, true)
        );
        let rack = |name| {
            paper
                .node(paper.find(name).expect("a host"))
                .rack
                .as_str()
                .to_owned()
        };
        assert_eq!((rack("h3"), rack("h5")), ("/r1".into(), "/r2".into()));
        assert_eq!(rack("h13"), "/r4");
        assert_eq!(
            paper
                .neighbours(paper.find("r5").expect("the top router"))
                .len(),
            4
        );
    }
}
