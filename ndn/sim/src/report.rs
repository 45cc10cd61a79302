//! What a run put on the links.

use crate::block::BlockPlan;
use crate::net::{LinkCounters, Network};
use crate::topology::{NodeId, Topology};
use std::collections::BTreeSet;

/// Hosts that take part in what is measured; all others are idle.
#[derive(Debug, Clone, Default)]
pub struct Hosts {
    active: BTreeSet<NodeId>,
}

impl Hosts {
    /// The hosts of these blocks.
    pub fn of<'p>(plans: impl Iterator<Item = &'p BlockPlan>) -> Self {
        let hosts = plans.flat_map(|plan| plan.replicas.iter().copied().chain([plan.writer]));
        Hosts {
            active: hosts.collect(),
        }
    }

    /// These hosts.
    pub fn these(hosts: impl Iterator<Item = NodeId>) -> Self {
        Hosts {
            active: hosts.collect(),
        }
    }
}

/// What one direction of a link carried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkTraffic {
    /// Who sent.
    pub from: NodeId,
    /// Who received.
    pub to: NodeId,
    /// How much.
    pub counters: LinkCounters,
}

/// Bytes on the links, headers of frames and acknowledgements counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Each direction of each link.
    pub links: Vec<LinkTraffic>,
    /// Out of hosts and into hosts: what all hosts' interfaces count together.
    pub hosts_bytes: u64,
    /// Of those, of hosts that took no part.
    pub idle_bytes: u64,
    /// Over links between routers.
    pub core_bytes: u64,
    /// Over all links, each counted once.
    pub all_bytes: u64,
    /// Packets and trains dropped because a queue was full.
    pub dropped: u64,
}

impl Traffic {
    /// What a network's links have carried; `hosts` are those that took part.
    pub fn of(net: &Network<'_>, hosts: &Hosts) -> Self {
        let topology = net.topology();
        let mut traffic = Traffic::default();
        for (id, link) in topology.links().iter().enumerate() {
            for direction in 0..2 {
                let counters = net.counters(2 * id as u32 + direction);
                let [a, b] = link.ends;
                let (from, to) = if direction == 0 { (a, b) } else { (b, a) };
                let host = [from, to].into_iter().find(|&node| topology.is_host(node));
                match host {
                    Some(host) => {
                        traffic.hosts_bytes += counters.sent_bytes;
                        if !hosts.active.contains(&host) {
                            traffic.idle_bytes += counters.sent_bytes;
                        }
                    }
                    None => traffic.core_bytes += counters.sent_bytes,
                }
                traffic.all_bytes += counters.sent_bytes;
                traffic.dropped += counters.dropped;
                traffic.links.push(LinkTraffic { from, to, counters });
            }
        }
        traffic
    }

    /// Bytes into and out of a host of the network that was measured.
    pub fn host_bytes(&self, topology: &Topology, host: NodeId) -> (u64, u64) {
        let (mut into, mut out) = (0, 0);
        for &(link, _) in topology.neighbours(host) {
            for direction in &self.links[2 * link as usize..][..2] {
                let bytes = direction.counters.sent_bytes;
                if direction.from == host {
                    out += bytes;
                } else {
                    into += bytes;
                }
            }
        }
        (into, out)
    }
}
