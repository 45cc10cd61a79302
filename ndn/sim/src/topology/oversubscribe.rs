//! A network whose racks share narrower links upward.

use super::{NodeId, Routes, Topology};

impl Topology {
    /// The same with other rates between routers: what leaves a rack has, over all its links upward together, a `ratio`-th
    /// of what the rack's hosts can send. Routers above have as much upward as downward. The last rack, if it has fewer
    /// hosts, has less.
    #[must_use]
    pub fn oversubscribed(&self, ratio: f64) -> Topology {
        let mut other = self.clone();
        let tiers = Routes::new(self);
        let mut routers: Vec<NodeId> = (0..self.nodes.len() as NodeId)
            .filter(|&node| !self.is_host(node))
            .collect();
        routers.sort_by_key(|&node| tiers.tier(node));
        let mut decided = vec![false; self.links.len()];
        for router in routers {
            let tier = tiers.tier(router);
            let links = self.neighbours(router).iter();
            let (up, down): (Vec<_>, Vec<_>) =
                links.partition(|&&(_, node)| !self.is_host(node) && tiers.tier(node) >= tier);
            let rate =
                |&&(link, _): &&(u32, NodeId)| other.links[link as usize].spec.rate_bps as f64;
            let below: f64 = down.iter().map(rate).sum();
            let narrower = if tier == 1 { ratio } else { 1.0 };
            let each = (below / narrower / up.len() as f64).max(1.0) as u64;
            for &&(link, _) in &up {
                let spec = &mut other.links[link as usize].spec;
                // Between routers of one tier the narrower end counts.
                spec.rate_bps = if std::mem::replace(&mut decided[link as usize], true) {
                    spec.rate_bps.min(each)
                } else {
                    each
                };
            }
        }
        other
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FatTree, LinkSpec, TwoLevel};
    use super::*;

    /// Bits a second between routers of these names.
    fn rate(topology: &Topology, from: &str, to: &str) -> u64 {
        let [from, to] = [from, to].map(|name| topology.find(name).expect("a router"));
        let mut links = topology.neighbours(from).iter();
        let &(link, _) = links.find(|&&(_, node)| node == to).expect("a link");
        topology.links()[link as usize].spec.rate_bps
    }

    #[test]
    fn racks_share_what_is_left() {
        let link = LinkSpec::default();
        let tree = TwoLevel {
            hosts: 40,
            hosts_per_rack: 16,
            host_link: link,
            uplink: link,
        };
        let topology = tree.build().expect("a tree").oversubscribed(4.0);
        assert_eq!(rate(&topology, "r1", "r4"), 40_000_000_000);
        assert_eq!(rate(&topology, "r3", "r4"), 20_000_000_000, "eight hosts");
        assert_eq!(rate(&topology, "r1", "h1"), link.rate_bps);
    }

    #[test]
    fn fat_trees_are_narrower_above_their_racks() {
        let link = LinkSpec::default();
        let whole = FatTree { hosts: 16, link }.build().expect("a fat tree");
        assert_eq!(whole.oversubscribed(1.0), whole);
        let narrow = whole.oversubscribed(8.0);
        assert_eq!(rate(&narrow, "edge1-1", "agg1-2"), link.rate_bps / 8);
        assert_eq!(rate(&narrow, "agg1-2", "core3"), link.rate_bps / 8);
    }

    #[test]
    fn two_racks_side_by_side_have_the_narrower_link() {
        let text = include_str!("../../../../lab/topologies/tiny.toml");
        let tiny = Topology::from_toml("tiny", text)
            .expect("a topology")
            .topology;
        assert_eq!(rate(&tiny.oversubscribed(2.0), "r1", "r2"), 1_000_000_000);
    }
}
