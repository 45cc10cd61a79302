//! Topology files: those of the lab, so that one data centre can be emulated and simulated.
//!
//! ```toml
//! [link]                  # of all links that say nothing else
//! rate = "1gbit"
//! queue = "256KiB"
//! delay = "50us"          # one way; 0 where not given
//! [[router]]
//! name = "r1"
//! [[rack]]                # hosts and their links to a router
//! name = "/r1"
//! at = "r1"
//! hosts = ["h1..h4"]
//! [[links]]               # between routers
//! ends = ["r1", "r5"]
//! [roles]                 # who stores data (all hosts where not given) and who writes
//! datanodes = ["h2", "h3"]
//! clients = ["h1"]
//! ```
//! The lab's other roles are read and left aside: nobody simulates a NameNode or YARN.

use super::{Link, LinkSpec, Node, NodeId, NodeKind, Topology};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::HashMap;
use std::time::Duration;

/// Why something is no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// Nobody is there.
    #[error("no hosts; a network has one at least")]
    NoHosts,
    /// Two nodes of one name.
    #[error("{0}: two nodes have this name; give each its own")]
    NameTwice(String),
    /// A host is to have one link, to a router.
    #[error("{0}: a host has one link, to a router")]
    HostLinks(String),
    /// No way leads there.
    #[error("{0}: no way leads there; add a link")]
    Apart(String),
    /// It is no topology file.
    #[error("{0}")]
    Syntax(String),
    /// A value is none of its kind.
    #[error("{key} = {value:?}: {cause}")]
    Value {
        /// What it is of.
        key: String,
        /// As it stands there.
        value: String,
        /// What is wrong.
        cause: String,
    },
    /// A switch forwards no names.
    #[error("switch {0}: only routers are simulated; write it as a [[router]]")]
    Switch(String),
}

#[derive(Deserialize, Default, Clone)]
#[serde(deny_unknown_fields)]
struct RawShape {
    rate: Option<String>,
    queue: Option<String>,
    delay: Option<String>,
    #[expect(
        dead_code,
        reason = "the lab's; framing is a setting of the simulation"
    )]
    mtu: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNode {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSwitch {
    name: String,
    #[expect(dead_code, reason = "the lab's; no switch is simulated")]
    openflow: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRack {
    name: String,
    at: String,
    hosts: Vec<String>,
    rate: Option<String>,
    queue: Option<String>,
    delay: Option<String>,
    mtu: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLink {
    ends: [String; 2],
    rate: Option<String>,
    queue: Option<String>,
    delay: Option<String>,
    mtu: Option<u32>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawRoles {
    datanodes: Option<Vec<String>>,
    clients: Option<Vec<String>>,
    namenode: Option<IgnoredAny>,
    resourcemanager: Option<IgnoredAny>,
    nodemanagers: Option<IgnoredAny>,
    historyserver: Option<IgnoredAny>,
}

impl RawRoles {
    /// Roles that are given and change nothing here.
    fn idle(&self) -> Vec<&'static str> {
        let all = [
            ("namenode", &self.namenode),
            ("resourcemanager", &self.resourcemanager),
            ("nodemanagers", &self.nodemanagers),
            ("historyserver", &self.historyserver),
        ];
        let given = all.into_iter().filter(|(_, role)| role.is_some());
        given.map(|(name, _)| name).collect()
    }
}

/// What a topology file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyFile {
    /// The network.
    pub topology: Topology,
    /// Who in it writes and reads: its clients, else all who store data.
    pub clients: Vec<NodeId>,
    /// Roles of the file that are not simulated.
    pub idle_roles: Vec<&'static str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[expect(dead_code, reason = "for people")]
    about: Option<String>,
    #[expect(dead_code, reason = "the lab's; simulated hosts have no addresses")]
    subnet: Option<String>,
    #[serde(default)]
    link: RawShape,
    #[serde(default)]
    router: Vec<RawNode>,
    #[serde(default)]
    switch: Vec<RawSwitch>,
    #[serde(default)]
    rack: Vec<RawRack>,
    #[serde(default)]
    links: Vec<RawLink>,
    #[serde(default)]
    roles: RawRoles,
}

/// Most hosts that a file may name.
const MAX_HOSTS: usize = 1 << 20;

fn wrong(key: &str, value: &str, cause: impl Into<String>) -> TopologyError {
    TopologyError::Value {
        key: key.to_owned(),
        value: value.to_owned(),
        cause: cause.into(),
    }
}

/// A number and the unit after it.
fn measure<'u>(text: &str, units: &[(&'u str, u64)]) -> Option<(f64, &'u str, u64)> {
    let text = text.trim().to_ascii_lowercase();
    units.iter().find_map(|&(unit, factor)| {
        let number = text.strip_suffix(&unit.to_ascii_lowercase())?.trim_end();
        let plain = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let number = number.parse().ok().filter(|_| plain)?;
        Some((number, unit, factor))
    })
}

fn scaled(
    key: &str,
    text: &str,
    units: &[(&str, u64)],
    example: &str,
    range: std::ops::RangeInclusive<u64>,
) -> Result<u64, TopologyError> {
    let (number, _, factor) =
        measure(text, units).ok_or_else(|| wrong(key, text, format!("write it as {example}")))?;
    let value = (number * factor as f64) as u64;
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(wrong(
            key,
            text,
            format!("not between {} and {}", range.start(), range.end()),
        ))
    }
}

/// Reads a rate such as `1gbit`, in bits a second.
///
/// # Errors
/// A text that is none, or one below 10 kbit/s or above 10 Tbit/s.
pub fn parse_rate(text: &str) -> Result<u64, TopologyError> {
    const UNITS: [(&str, u64); 4] = [
        ("gbit", 1_000_000_000),
        ("mbit", 1_000_000),
        ("kbit", 1_000),
        ("bit", 1),
    ];
    let units = 10_000..=10_000_000_000_000;
    let text = text.trim();
    scaled(
        "rate",
        text.strip_suffix("/s").unwrap_or(text),
        &UNITS,
        "1gbit",
        units,
    )
}

fn parse_queue(text: &str) -> Result<u64, TopologyError> {
    const UNITS: [(&str, u64); 8] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("B", 1),
        ("", 1),
    ];
    scaled("queue", text, &UNITS, "256KiB", 1 << 13..=1 << 30)
}

fn parse_delay(text: &str) -> Result<Duration, TopologyError> {
    const UNITS: [(&str, u64); 4] = [
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
    ];
    scaled("delay", text, &UNITS, "50us", 0..=10_000_000_000).map(Duration::from_nanos)
}

impl RawRack {
    fn shape(&self) -> RawShape {
        RawShape {
            rate: self.rate.clone(),
            queue: self.queue.clone(),
            delay: self.delay.clone(),
            mtu: self.mtu,
        }
    }
}

impl RawLink {
    fn shape(&self) -> RawShape {
        RawShape {
            rate: self.rate.clone(),
            queue: self.queue.clone(),
            delay: self.delay.clone(),
            mtu: self.mtu,
        }
    }
}

impl RawShape {
    fn over(&self, usual: LinkSpec) -> Result<LinkSpec, TopologyError> {
        let or = |text: &Option<String>, usual, parse: fn(&str) -> Result<u64, TopologyError>| {
            text.as_deref().map_or(Ok(usual), parse)
        };
        Ok(LinkSpec {
            rate_bps: or(&self.rate, usual.rate_bps, parse_rate)?,
            queue_bytes: or(&self.queue, usual.queue_bytes, parse_queue)?,
            delay: self.delay.as_deref().map_or(Ok(usual.delay), parse_delay)?,
        })
    }
}

/// A list of names in which `h1..h4` stands for four.
fn spans(key: &str, list: &[String]) -> Result<Vec<String>, TopologyError> {
    let mut names = Vec::new();
    for item in list {
        let Some((first, last)) = item.split_once("..") else {
            names.push(item.clone());
            continue;
        };
        let stem = first.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = |text: &str| text.strip_prefix(stem)?.parse::<usize>().ok();
        let (Some(from), Some(to)) = (number(first), number(last)) else {
            return Err(wrong(key, item, "write a range as h1..h4"));
        };
        if to < from || to - from >= MAX_HOSTS || names.len() + (to - from) >= MAX_HOSTS {
            return Err(wrong(
                key,
                item,
                format!("a range of 1 to {MAX_HOSTS} names"),
            ));
        }
        names.extend((from..=to).map(|n| format!("{stem}{n}")));
    }
    Ok(names)
}

impl Topology {
    /// Reads a topology file.
    ///
    /// # Errors
    /// When the text is no topology, or not one of a network.
    pub fn from_toml(name: &str, text: &str) -> Result<TopologyFile, TopologyError> {
        let raw: Raw = toml::from_str(text)
            .map_err(|e| TopologyError::Syntax(e.to_string().trim_end().to_owned()))?;
        if let Some(switch) = raw.switch.first() {
            return Err(TopologyError::Switch(switch.name.clone()));
        }
        // Where a file says nothing, what the lab takes: 1 Gbit/s and 256 KiB.
        let usual = raw.link.over(LinkSpec {
            rate_bps: 1_000_000_000,
            delay: Duration::ZERO,
            queue_bytes: 256 << 10,
        })?;
        let mut nodes = Vec::new();
        let mut links = Vec::new();
        let mut number: HashMap<String, NodeId> = HashMap::new();
        for router in raw.router {
            number.insert(router.name.clone(), nodes.len() as NodeId);
            nodes.push(Node {
                name: router.name,
                kind: NodeKind::Router,
                rack: String::new(),
            });
        }
        let router = |key: &str, name: &str| {
            let known = number.get(name).copied();
            known.ok_or_else(|| wrong(key, name, "no router of this file"))
        };
        let stores = raw.roles.datanodes.as_deref();
        let stores = stores.map(|list| spans("datanodes", list)).transpose()?;
        let writes = raw.roles.clients.as_deref();
        let writes = writes.map(|list| spans("clients", list)).transpose()?;
        let mut hosts: HashMap<String, NodeId> = HashMap::new();
        for rack in &raw.rack {
            let (at, spec) = (router("at", &rack.at)?, rack.shape().over(usual)?);
            for name in spans("hosts", &rack.hosts)? {
                let host = nodes.len() as NodeId;
                let datanode = stores.as_ref().is_none_or(|all| all.contains(&name));
                hosts.insert(name.clone(), host);
                nodes.push(Node {
                    name,
                    kind: NodeKind::Host { datanode },
                    rack: rack.name.clone(),
                });
                links.push(Link {
                    ends: [host, at],
                    spec,
                });
            }
        }
        for link in &raw.links {
            let [a, b] = &link.ends;
            links.push(Link {
                ends: [router("ends", a)?, router("ends", b)?],
                spec: link.shape().over(usual)?,
            });
        }
        let host = |key: &str, name: &String| {
            let known = hosts.get(name).copied();
            known.ok_or_else(|| wrong(key, name, "no host of this file"))
        };
        for name in stores.iter().flatten() {
            host("datanodes", name)?;
        }
        let writers = writes.iter().flatten().map(|name| host("clients", name));
        let writers = writers.collect::<Result<Vec<_>, _>>()?;
        let topology = Topology::new(name, nodes, links)?;
        let writers = if writers.is_empty() {
            topology.datanodes().collect()
        } else {
            writers
        };
        Ok(TopologyFile {
            topology,
            clients: writers,
            idle_roles: raw.roles.idle(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TINY: &str = r#"
about = "4 hosts, 2 routers"
subnet = "10.77.0.0/16"
[link]
rate = "1gbit"
queue = "256KiB"
[[router]]
name = "r1"
[[router]]
name = "r2"
[[rack]]
name = "/r1"
at = "r1"
hosts = ["h1", "h2"]
rate = "10gbit"
[[rack]]
name = "/r2"
at = "r2"
hosts = ["h3..h4"]
[[links]]
ends = ["r1", "r2"]
rate = "250mbit"
delay = "50us"
mtu = 1500
[roles]
namenode = "h1"
datanodes = ["h2..h4"]
clients = ["h1"]
"#;

    #[test]
    fn a_file_of_the_lab_is_read() {
        let TopologyFile {
            topology,
            clients,
            idle_roles,
        } = Topology::from_toml("tiny", TINY).expect("a topology");
        assert_eq!(idle_roles, ["namenode"]);
        let names: Vec<_> = topology.nodes().iter().map(|n| n.name.as_str()).collect();
        assert_eq!(names, ["r1", "r2", "h1", "h2", "h3", "h4"]);
        let name = |id: NodeId| topology.node(id).name.as_str();
        assert_eq!(
            clients.iter().map(|&id| name(id)).collect::<Vec<_>>(),
            ["h1"]
        );
        assert_eq!(
            topology.datanodes().map(name).collect::<Vec<_>>(),
            ["h2", "h3", "h4"]
        );
        let rates: Vec<_> = topology
            .links()
            .iter()
            .map(|link| link.spec.rate_bps / 1_000_000)
            .collect();
        assert_eq!(rates, [10_000, 10_000, 1000, 1000, 250]);
        let trunk = topology.links()[4].spec;
        assert_eq!(
            (trunk.delay, trunk.queue_bytes),
            (Duration::from_micros(50), 256 << 10)
        );
        assert_eq!(topology.node(4).rack, "/r2");
    }

    #[test]
    fn roles_of_yarn_change_nothing() {
        let yarn =
            "resourcemanager = \"h1\"\nnodemanagers = [\"h2..h4\"]\nhistoryserver = \"h1\"\n";
        let with = Topology::from_toml("tiny", &format!("{TINY}{yarn}")).expect("a topology");
        let without = Topology::from_toml("tiny", TINY).expect("a topology");
        assert_eq!(
            with.idle_roles,
            [
                "namenode",
                "resourcemanager",
                "nodemanagers",
                "historyserver"
            ]
        );
        assert_eq!(
            (with.topology, with.clients),
            (without.topology, without.clients)
        );
        let unknown = Topology::from_toml("tiny", &format!("{TINY}journalnode = \"h1\"\n"));
        assert!(unknown.is_err_and(|e| e.to_string().contains("journalnode")));
    }

    #[test]
    fn the_labs_topologies_are_read() {
        for text in [
            include_str!("../../../../lab/topologies/jobs.toml"),
            include_str!("../../../../lab/topologies/paper-fig5.toml"),
            include_str!("../../../../lab/topologies/tiny.toml"),
        ] {
            let read = Topology::from_toml("lab", text).expect("a topology");
            assert!(read.topology.is_tree());
        }
    }

    #[test]
    fn mistakes_are_named() {
        let error = |from: &str, to: &str| {
            let text = TINY.replace(from, to);
            assert_ne!(text, TINY);
            Topology::from_toml("t", &text)
                .expect_err("a mistake")
                .to_string()
        };
        assert!(error("at = \"r2\"", "at = \"r9\"").contains("r9"));
        assert!(error("250mbit", "fast").contains("write it as 1gbit"));
        assert!(error("256KiB", "1B").contains("not between"));
        assert!(error("h3..h4", "h3..x4").contains("range"));
        assert!(error("h3..h4", "h3..h99999999").contains("range"));
        assert!(error("clients = [\"h1\"]", "clients = [\"h7\"]").contains("h7"));
        assert!(error("about", "abuot").contains("abuot"));
        assert!(error("[\"r1\", \"r2\"]", "[\"r1\", \"r1\"]").contains("r2"));
        assert!(error("[[links]]", "[[switch]]\nname = \"s1\"\n[[links]]").contains("s1"));
        let openflow = "[[switch]]\nname = \"s1\"\nopenflow = true\n[[links]]";
        assert!(error("[[links]]", openflow).contains("only routers are simulated"));
    }

    #[test]
    fn rates() {
        for (text, bps) in [
            ("1gbit", 1_000_000_000),
            ("2.5Gbit/s", 2_500_000_000),
            ("64kbit", 64_000),
        ] {
            assert_eq!(parse_rate(text), Ok(bps));
        }
        for text in ["", "gbit", "1gb", "-1gbit", "1bit", "nangbit", "infbit"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text: String, at in 0usize..TINY.len(), with in "[ -~]{0,12}") {
            let _ = Topology::from_toml("t", &text);
            let mut near = TINY.to_owned();
            near.replace_range(at..(at + with.len()).min(TINY.len()), &with);
            let _ = Topology::from_toml("t", &near);
        }
    }
}
