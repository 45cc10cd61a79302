//! What the controller answers: as much of its JSON as people are shown. `/openapi.json` describes all of it.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What went wrong, as RFC 9457 has it.
#[derive(Debug, Deserialize)]
pub struct Problem {
    /// What is wrong.
    pub detail: String,
    /// The way out.
    #[serde(default)]
    pub remedy: String,
    /// Of a refused policy: all that is wrong in it.
    #[serde(default)]
    pub problems: Vec<PolicyProblem>,
}

/// One thing wrong with a policy file.
#[derive(Debug, Deserialize)]
pub struct PolicyProblem {
    /// Its name, as the controller was told it.
    pub file: String,
    /// Counts from 1.
    pub line: u64,
    /// What is wrong.
    pub what: String,
    /// The way out.
    pub remedy: String,
}

/// How the controller does.
#[derive(Debug, Deserialize)]
pub struct Status {
    /// OpenFlow's: master, standby or none.
    pub role: String,
    /// Connected switches.
    pub switches: u64,
    /// Whether each of them has what it should.
    pub converged: bool,
    /// Whether reducers that lag may be lifted.
    pub dynamic: bool,
    /// What an operator should mend.
    pub alerts: Vec<Alert>,
}

/// Something that an operator should mend.
#[derive(Debug, Deserialize)]
pub struct Alert {
    /// What is wrong.
    pub what: String,
    /// The way out.
    pub remedy: String,
}

/// A policy that was put in force.
#[derive(Debug, Deserialize)]
pub struct Applied {
    /// Counts the changes of policy.
    pub version: u64,
    /// The policy's; empty where it was cleared.
    pub name: String,
    /// Unix time.
    pub at_s: f64,
    /// Who did it.
    pub by: String,
    /// Flow entries, on all switches.
    pub flows_changed: u64,
    /// Of its file, where it was just put in force: what is allowed, and perhaps not meant.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

/// The policy in force, if there is one.
#[derive(Debug, Deserialize)]
pub struct InForce {
    /// What it says.
    pub policy: Option<Policy>,
    /// When it was put in force.
    pub applied: Option<Applied>,
}

/// A checked policy.
#[derive(Debug, Deserialize)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// Queues of each port.
    pub queues: Vec<PolicyQueue>,
    /// Ports that are treated alike.
    pub port_classes: Vec<PortClass>,
    /// The queue of each category.
    pub categories: BTreeMap<String, String>,
    /// How categories are told; only counted here.
    pub rules: Vec<serde_json::Value>,
    /// What is allowed, and perhaps not meant.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

/// Something in a policy that is perhaps not meant.
#[derive(Debug, Deserialize)]
pub struct Warning {
    /// Counts from 1.
    pub line: u64,
    /// What is odd.
    pub what: String,
    /// The way out.
    pub remedy: String,
}

/// A queue of the policy.
#[derive(Debug, Deserialize)]
pub struct PolicyQueue {
    /// Its name.
    pub name: String,
    /// OpenFlow's queue id.
    pub number: u32,
    /// The mark of its packets.
    pub dscp: u8,
    /// 0 is served first.
    pub priority: u8,
}

/// Ports that are treated alike.
#[derive(Debug, Deserialize)]
pub struct PortClass {
    /// Its name.
    pub name: String,
    /// What each queue has of such a port.
    pub shares: Vec<Share>,
}

/// What a queue has of a port.
#[derive(Debug, Deserialize)]
pub struct Share {
    /// Of which queue.
    pub queue: String,
    /// What it is promised.
    pub min_bit_s: u64,
    /// What it may take; 0: all.
    pub max_bit_s: u64,
    /// The promise, where it is a part of the port's rate.
    #[serde(default)]
    pub min_percent: Option<f64>,
    /// The bound, where it is a part of the port's rate.
    #[serde(default)]
    pub max_percent: Option<f64>,
}

/// All queues, each summed over all ports.
#[derive(Debug, Deserialize)]
pub struct QueueTotals {
    /// In the order of their numbers.
    pub queues: Vec<QueueTotal>,
}

/// A queue, summed over all ports.
#[derive(Debug, Deserialize)]
pub struct QueueTotal {
    /// Its name.
    pub queue: String,
    /// Ports by how it takes effect there.
    pub modes: BTreeMap<String, u64>,
    /// What it sends now.
    pub bit_s: f64,
    /// Since the switches count.
    pub dropped_packets: u64,
}

/// Queues of ports, the busiest first.
#[derive(Debug, Deserialize)]
pub struct Queues {
    /// How many there are.
    #[serde(default)]
    pub total: u64,
    /// As many as were asked for.
    pub queues: Vec<QueueState>,
}

/// A queue of a port.
#[derive(Debug, Deserialize)]
pub struct QueueState {
    /// Which port.
    pub at: End,
    /// Its name.
    pub queue: String,
    /// How it takes effect.
    pub mode: String,
    /// What it sends now.
    pub bit_s: f64,
    /// What it is promised.
    pub min_bit_s: u64,
    /// What it may take.
    pub max_bit_s: u64,
    /// Since the switch counts.
    pub dropped_packets: u64,
    /// Why none is in force, or the last probe could not confirm the one that is; else empty.
    #[serde(default)]
    pub why: String,
}

/// A port of a switch.
#[derive(Debug, Deserialize)]
pub struct End {
    /// The datapath's id.
    pub dpid: String,
    /// The port's number.
    pub port: u32,
    /// Empty where the switch is not connected.
    pub switch_name: String,
    /// Empty where the switch does not say.
    pub port_name: String,
}

impl End {
    /// The switch, as people call it.
    pub fn switch(&self) -> &str {
        if self.switch_name.is_empty() {
            &self.dpid
        } else {
            &self.switch_name
        }
    }

    /// Switch and port.
    pub fn name(&self) -> String {
        if self.port_name.is_empty() {
            format!("{}:{}", self.switch(), self.port)
        } else {
            format!("{}:{}", self.switch(), self.port_name)
        }
    }
}

/// All links.
#[derive(Debug, Deserialize)]
pub struct Links {
    /// Between switches, and to hosts.
    pub links: Vec<Link>,
}

/// A link and its loads.
#[derive(Debug, Deserialize)]
pub struct Link {
    /// One end.
    pub a: End,
    /// The other; none where hosts are there.
    pub b: Option<End>,
    /// What hosts behind it are known by.
    pub addresses: Vec<String>,
    /// What `a` sends.
    pub from_a: Option<Load>,
    /// What `a` receives.
    pub to_a: Option<Load>,
}

/// What a link carries in one direction.
#[derive(Debug, Deserialize)]
pub struct Load {
    /// Now.
    pub bit_s: f64,
    /// Of the port's rate, 0 to 1, where that is known.
    pub share: Option<f64>,
    /// At the port that sends, where that is a switch's.
    pub dropped_packets: Option<u64>,
}
