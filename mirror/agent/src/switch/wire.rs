//! What a bridge's agent and the controller say to each other: `POST /v1/mirror-switches/{name}`, a long poll.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::frames::{mac_of, mac_text};
use super::layout::{COPIES, Copy, FlowKey, Key};
use crate::wire::{Connection, Place};

/// What the agent says of its bridge, and what it has made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Request {
    /// Names this run of the agent.
    pub run: String,
    /// Names the bridge: its datapath id, 16 hex digits.
    pub dpid: String,
    /// `seen` of the last answer whose entries are made; 0 for none.
    pub seen: u64,
    /// `controller` of that answer.
    pub controller: String,
    /// How long the controller may wait for news, in milliseconds.
    pub wait_ms: u64,
    /// All ports; left out where nothing has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<Vec<PortSays>>,
    /// All switches that are heard; left out with the ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heard: Option<Vec<HeardAt>>,
    /// Hosts that are new, or were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostAt>,
    /// Replicas that entries of before lead to; with the ports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub copies_to: Vec<IpAddr>,
    /// Entries that could not be made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Failed>,
    /// The program is taken off.
    pub leaving: bool,
}

/// A port of the bridge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PortSays {
    /// The interface's number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Its Ethernet address.
    pub mac: String,
    /// Whether the bridge forwards there, and there is somebody at the other end.
    pub up: bool,
}

/// LLDP that came in at a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeardAt {
    /// The port.
    pub port: u32,
    /// The frame, in hex.
    pub frame: String,
}

/// A host behind a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostAt {
    /// The port.
    pub port: u32,
    /// Its Ethernet address.
    pub mac: String,
    /// The IP address that it says to have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

/// An entry that this bridge does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// Which.
    #[serde(flatten)]
    pub of: Segments,
    /// Why.
    pub why: String,
}

/// What the controller wants.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Answer {
    /// Names this run of the controller.
    pub controller: String,
    /// Names this answer, to be sent with the next request once its entries are made.
    pub seen: u64,
    /// How long the bridge counts as there without a further request, in seconds.
    pub lease_s: f64,
    /// The answer of which this says the difference; without one all entries are named anew.
    #[serde(default)]
    pub base: Option<u64>,
    /// All are named: others, of before, are to be removed.
    #[serde(default)]
    pub purge: bool,
    /// Ports toward other mirroring switches, all of them.
    #[serde(default)]
    pub admits: Vec<u32>,
    /// Entries to be made.
    #[serde(default)]
    pub entries: Vec<EntrySays>,
    /// Entries to be removed.
    #[serde(default)]
    pub removed: Vec<Segments>,
    /// What to send again and again out of ports, so that other switches know this one.
    #[serde(default)]
    pub lldp: Option<Vec<Lldp>>,
    /// What to send once.
    #[serde(default)]
    pub send: Vec<Send>,
    /// It does not know this bridge: all is to be said again.
    #[serde(default)]
    pub announce: bool,
}

/// LLDP for a port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Lldp {
    /// The port.
    pub port: u32,
    /// The frame, in hex.
    pub frame: String,
}

/// A frame to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Send {
    /// By these ports.
    pub ports: Vec<u32>,
    /// In hex.
    pub frame: String,
}

/// Segments that are copied: a connection as it comes in at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Segments {
    /// The port.
    pub port: u32,
    /// Whether they are copies in transit.
    pub marked: bool,
    /// The connection.
    #[serde(flatten)]
    pub connection: Connection,
}

/// Segments, and the copies that are to be made of them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct EntrySays {
    /// Of which.
    #[serde(flatten)]
    pub of: Segments,
    /// Those that stay in transit come first.
    pub copies: Vec<CopySays>,
}

/// A copy.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CopySays {
    /// The port that it leaves by.
    pub port: u32,
    /// The replica's; 0 in transit.
    pub position: u8,
    /// Ethernet address of the replica's host; none in transit.
    #[serde(default)]
    pub to: Option<String>,
    /// The connection to the replica; none in transit.
    #[serde(default)]
    pub connection: Option<Connection>,
}

impl Segments {
    /// As the map has it.
    #[must_use]
    pub fn key(&self) -> Key {
        Key {
            flow: self.connection.key(),
            port: self.port,
            marked: self.marked.into(),
            pad: [0; 3],
        }
    }

    /// From the map.
    #[must_use]
    pub fn of(key: &Key) -> Self {
        let place = |address: &[u8; 16], port: [u8; 2]| {
            let at: SocketAddr = crate::status::place(address, port);
            Place {
                address: at.ip(),
                port: at.port(),
            }
        };
        Self {
            port: key.port,
            marked: key.marked != 0,
            connection: Connection {
                source: place(&key.flow.source, key.flow.source_port),
                destination: place(&key.flow.target, key.flow.target_port),
            },
        }
    }
}

impl EntrySays {
    /// The copies as the map has them.
    ///
    /// # Errors
    /// What is wrong with them, for people.
    pub fn copies(&self) -> Result<Vec<Copy>, String> {
        let family = |c: &Connection| c.source.address.is_ipv4();
        if !self.of.connection.is_sound() {
            return Err(String::from(
                "its connection is of two IP versions, or of port 0",
            ));
        }
        if self.copies.is_empty() || self.copies.len() > COPIES {
            return Err(format!(
                "{} copies; 1 to {COPIES} can be made",
                self.copies.len()
            ));
        }
        let made: Result<Vec<Copy>, String> = self
            .copies
            .iter()
            .map(|copy| match (copy.position, &copy.to, &copy.connection) {
                (0, None, None) => Ok(Copy {
                    flow: self.of.connection.key(),
                    port: copy.port,
                    to: [0; 6],
                    position: 0,
                    pad: 0,
                }),
                (position @ 1.., Some(to), Some(hop)) if hop.is_sound() => Ok(Copy {
                    flow: hop.key(),
                    port: copy.port,
                    to: mac_of(to).ok_or_else(|| format!("{to:?} is no Ethernet address"))?,
                    position,
                    pad: 0,
                }),
                _ => Err(String::from("a copy lacks a part of its header")),
            })
            .collect();
        let made = made?;
        let hops = self
            .copies
            .iter()
            .filter_map(|copy| copy.connection.as_ref());
        if hops
            .map(family)
            .any(|four| four != family(&self.of.connection))
        {
            return Err(String::from("a copy is of another IP version"));
        }
        if made
            .windows(2)
            .any(|two| two[0].position != 0 && two[1].position == 0)
        {
            return Err(String::from(
                "a copy in transit comes after one with another header",
            ));
        }
        Ok(made)
    }
}

/// A port as the controller reads it: in its name each octet of JSON is a character.
#[must_use]
pub fn port_says(number: u32, name: &str, mac: &[u8; 6], up: bool) -> PortSays {
    let is_plain = |c: &char| c.is_ascii_graphic() && !matches!(c, '"' | '\\');
    PortSays {
        number,
        name: name
            .chars()
            .map(|c| if is_plain(&c) { c } else { '?' })
            .collect(),
        mac: mac_text(mac),
        up,
    }
}

/// The connection of a key, as people read it.
#[must_use]
pub fn ends(flow: &FlowKey) -> (SocketAddr, SocketAddr) {
    (
        crate::status::place(&flow.source, flow.source_port),
        crate::status::place(&flow.target, flow.target_port),
    )
}

/// Octets in hex.
#[must_use]
pub fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// From that; `None` where it is none, or too long for a frame.
#[must_use]
pub fn octets(hex: &str) -> Option<Vec<u8>> {
    const MOST: usize = 2 * 1514;
    if !hex.len().is_multiple_of(2)
        || hex.len() > MOST
        || !hex.bytes().all(|c| c.is_ascii_hexdigit())
    {
        return None;
    }
    let pairs = (0..hex.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Answer {
        serde_json::from_str(
            r#"{"controller": "c1", "seen": 7, "lease_s": 15.0, "base": null, "purge": true, "admits": [4], "more": 1,
                "lldp": [{"port": 4, "frame": "0180c2"}], "send": [], "removed": [],
                "entries": [{"port": 3, "marked": false,
                    "source": {"address": "10.0.0.1", "port": 40000}, "destination": {"address": "10.0.0.2", "port": 9866},
                    "copies": [{"port": 4, "position": 0},
                        {"port": 5, "position": 2, "to": "02:00:00:00:00:03", "connection": {
                            "source": {"address": "10.0.0.2", "port": 41000},
                            "destination": {"address": "10.0.0.3", "port": 9866}}}]}]}"#,
        )
        .expect("an answer")
    }

    #[test]
    fn an_answer_is_read() {
        let answer = answer();
        assert_eq!(
            (answer.seen, answer.base, &answer.admits[..]),
            (7, None, &[4][..])
        );
        let entry = &answer.entries[0];
        let (key, copies) = (entry.of.key(), entry.copies().expect("right"));
        assert_eq!((key.port, key.marked), (3, 0));
        assert_eq!(Segments::of(&key), entry.of);
        assert_eq!((copies[0].position, copies[0].port), (0, 4));
        assert_eq!((copies[1].position, copies[1].to), (2, [2, 0, 0, 0, 0, 3]));
        let (from, to) = ends(&copies[1].flow);
        assert_eq!(
            (from.to_string(), to.to_string()),
            ("10.0.0.2:41000".into(), "10.0.0.3:9866".into())
        );
    }

    #[test]
    fn copies_that_make_no_sense_are_refused() {
        let right = answer().entries[0].clone();
        let with = |change: &dyn Fn(&mut EntrySays)| {
            let mut entry = right.clone();
            change(&mut entry);
            entry.copies().expect_err("refused")
        };
        assert!(with(&|e| e.copies.clear()).contains("0 copies"));
        assert!(with(&|e| e.copies = vec![e.copies[0].clone(); 6]).contains("6 copies"));
        assert!(with(&|e| e.copies[1].to = None).contains("lacks"));
        assert!(with(&|e| e.copies[1].to = Some("x".into())).contains("no Ethernet address"));
        assert!(with(&|e| e.copies.swap(0, 1)).contains("in transit comes after"));
        assert!(with(&|e| e.of.connection.source.port = 0).contains("port 0"));
        let six = "fd00::1".parse().expect("an address");
        assert!(
            with(&|e| {
                let hop = e.copies[1].connection.as_mut().expect("one");
                (hop.source.address, hop.destination.address) = (six, six);
            })
            .contains("another IP version")
        );
    }

    #[test]
    fn a_request_is_as_the_controller_wants_it() {
        let request = Request {
            run: "r".into(),
            dpid: format!("{:016x}", 9),
            ports: Some(vec![port_says(3, "p3", &[2, 0, 0, 0, 0, 1], true)]),
            heard: Some(vec![]),
            hosts: vec![HostAt {
                port: 3,
                mac: "02:00:00:00:00:09".into(),
                address: None,
            }],
            failed: vec![Failed {
                of: answer().entries[0].of,
                why: "no room".into(),
            }],
            ..Request::default()
        };
        assert_eq!(
            serde_json::to_value(&request).expect("JSON"),
            serde_json::json!({"run": "r", "dpid": "0000000000000009", "seen": 0, "controller": "", "wait_ms": 0,
                "ports": [{"number": 3, "name": "p3", "mac": "02:00:00:00:00:01", "up": true}], "heard": [],
                "hosts": [{"port": 3, "mac": "02:00:00:00:00:09"}], "leaving": false,
                "failed": [{"port": 3, "marked": false, "why": "no room",
                    "source": {"address": "10.0.0.1", "port": 40000},
                    "destination": {"address": "10.0.0.2", "port": 9866}}]})
        );
    }

    #[test]
    fn frames_travel_in_hex() {
        assert_eq!(octets(&hex(&[0, 0x7f, 0xff])), Some(vec![0, 0x7f, 0xff]));
        let long = "00".repeat(2000);
        for wrong in ["0", "0g", "+1", &long] {
            assert_eq!(octets(wrong), None);
        }
    }
}
