//! Who is linked with whom: hosts, routers, links, racks.

mod build;
mod file;
mod oversubscribe;
mod placement;
mod route;

pub use build::{FatTree, TwoLevel, paper_16};
pub use file::{TopologyError, TopologyFile, parse_rate};
pub use placement::{Placement, PlacementError};
pub use route::{Path, Routes};

use std::time::Duration;

/// Number of a node in its topology.
pub type NodeId = u32;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// Where applications run; has one link.
    Host {
        /// Whether it stores replicas.
        datanode: bool,
    },
    /// Forwards named data; to TCP it is a switch.
    Router,
}

/// A host or router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name, unique in the topology.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// Rack of a host as replica placement sees it; of a router, nothing.
    pub rack: String,
}

/// What a link can do, the same in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkSpec {
    /// Bits a second.
    pub rate_bps: u64,
    /// How long a bit travels.
    pub delay: Duration,
    /// Bytes that may wait at each end; what comes beyond is dropped.
    pub queue_bytes: u64,
}

/// 10 Gbit/s, 5 µs, and the queue of a face of `trunkline fwd`.
impl Default for LinkSpec {
    fn default() -> Self {
        LinkSpec {
            rate_bps: 10_000_000_000,
            delay: Duration::from_micros(5),
            queue_bytes: 16 << 20,
        }
    }
}

/// A link between two nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its ends.
    pub ends: [NodeId; 2],
    /// What it can do.
    pub spec: LinkSpec,
}

/// A network: connected, each host on one link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    name: String,
    nodes: Vec<Node>,
    links: Vec<Link>,
    /// For each node its links and who is at their other ends, in the order of the links.
    neighbours: Vec<Vec<(u32, NodeId)>>,
}

impl Topology {
    /// A network of these parts.
    ///
    /// # Errors
    /// When it is none: no hosts, a host with no or several links, a name twice, not connected.
    pub fn new(
        name: impl Into<String>,
        nodes: Vec<Node>,
        links: Vec<Link>,
    ) -> Result<Self, TopologyError> {
        let mut neighbours = vec![Vec::new(); nodes.len()];
        for (id, link) in links.iter().enumerate() {
            let [a, b] = link.ends;
            neighbours[a as usize].push((id as u32, b));
            neighbours[b as usize].push((id as u32, a));
        }
        let topology = Topology {
            name: name.into(),
            nodes,
            links,
            neighbours,
        };
        topology.check()?;
        Ok(topology)
    }

    fn check(&self) -> Result<(), TopologyError> {
        let mut names = std::collections::HashSet::new();
        for node in &self.nodes {
            if !names.insert(&node.name) {
                return Err(TopologyError::NameTwice(node.name.clone()));
            }
        }
        if self.hosts().next().is_none() {
            return Err(TopologyError::NoHosts);
        }
        for host in self.hosts() {
            let links = self.neighbours(host).len();
            let beside_host = self
                .neighbours(host)
                .iter()
                .any(|&(_, other)| self.is_host(other));
            if links != 1 || beside_host {
                return Err(TopologyError::HostLinks(self.node(host).name.clone()));
            }
        }
        let mut seen = vec![false; self.nodes.len()];
        let mut open = vec![0];
        seen[0] = true;
        while let Some(node) = open.pop() {
            for &(_, next) in self.neighbours(node) {
                if !std::mem::replace(&mut seen[next as usize], true) {
                    open.push(next);
                }
            }
        }
        match seen.iter().position(|seen| !seen) {
            Some(alone) => Err(TopologyError::Apart(self.nodes[alone].name.clone())),
            None => Ok(()),
        }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All nodes; a node's number is its place.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// All links; a link's number is its place.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    /// The node of this name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        let at = self.nodes.iter().position(|node| node.name == name)?;
        Some(at as NodeId)
    }

    /// Links of a node with the nodes at their other ends.
    pub fn neighbours(&self, id: NodeId) -> &[(u32, NodeId)] {
        &self.neighbours[id as usize]
    }

    /// The direction of a link that leaves one of its ends: `2l` from the first to the second, else `2l + 1`.
    pub fn line(&self, link: u32, from: NodeId) -> u32 {
        2 * link + u32::from(self.links[link as usize].ends[0] != from)
    }

    /// Whether a node is a host.
    pub fn is_host(&self, id: NodeId) -> bool {
        matches!(self.node(id).kind, NodeKind::Host { .. })
    }

    /// All hosts.
    pub fn hosts(&self) -> impl Iterator<Item = NodeId> {
        (0..self.nodes.len() as NodeId).filter(|&id| self.is_host(id))
    }

    /// All hosts that store replicas.
    pub fn datanodes(&self) -> impl Iterator<Item = NodeId> {
        let stores = |id: &NodeId| self.node(*id).kind == NodeKind::Host { datanode: true };
        (0..self.nodes.len() as NodeId).filter(stores)
    }

    /// Whether there is but one way between any two nodes.
    pub fn is_tree(&self) -> bool {
        self.links.len() + 1 == self.nodes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> Node {
        Node {
            name: name.into(),
            kind: NodeKind::Host { datanode: true },
            rack: "/a".into(),
        }
    }

    fn router(name: &str) -> Node {
        Node {
            name: name.into(),
            kind: NodeKind::Router,
            rack: String::new(),
        }
    }

    fn link(a: NodeId, b: NodeId) -> Link {
        Link {
            ends: [a, b],
            spec: LinkSpec::default(),
        }
    }

    #[test]
    fn what_is_no_network_is_refused() {
        let refused = |nodes, links| Topology::new("t", nodes, links).expect_err("no network");
        assert_eq!(refused(vec![router("r")], vec![]), TopologyError::NoHosts);
        assert_eq!(
            refused(vec![host("h")], vec![]),
            TopologyError::HostLinks("h".into())
        );
        assert_eq!(
            refused(vec![host("h"), host("g")], vec![link(0, 1)]),
            TopologyError::HostLinks("h".into())
        );
        assert_eq!(
            refused(vec![host("h"), router("h")], vec![link(0, 1)]),
            TopologyError::NameTwice("h".into())
        );
        assert_eq!(
            refused(vec![host("h"), router("r"), router("s")], vec![link(0, 1)]),
            TopologyError::Apart("s".into())
        );
    }
}
