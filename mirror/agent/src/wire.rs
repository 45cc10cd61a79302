//! What agent and controller say to each other: `POST /v1/mirror-agents/{name}`, a long poll.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::layout::Key;

/// What the agent says of itself, and what it has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Request {
    /// Names this run of the agent.
    pub run: String,
    /// Where DataNodes of this host are reached.
    pub addresses: Vec<IpAddr>,
    /// `seen` of the last answer whose flows are in the maps; 0 for none.
    pub seen: u64,
    /// `controller` of that answer.
    pub controller: String,
    /// How long the controller may wait for news, in milliseconds.
    pub wait_ms: u64,
    /// Starts of streams that this host has read.
    pub heads: Vec<HeadAt>,
    /// Flows that could not be announced to the kernel.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Failed>,
    /// No further copies are wanted.
    pub leaving: bool,
}

/// Where a stream starts in the connection that is copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeadAt {
    /// The mirror's id.
    pub id: String,
    /// Sequence number of the first octet behind the header.
    pub zero: u32,
    /// The connection that it was read in. Of another one of the same mirror it would say nothing.
    #[serde(flatten)]
    pub of: Connection,
}

/// A flow that this host can't serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// The mirror's id.
    pub id: String,
    /// Why.
    pub why: String,
}

/// What the controller wants.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Answer {
    /// Names this run of the controller.
    pub controller: String,
    /// Names this answer, to be sent with the next request.
    pub seen: u64,
    /// How long the agent counts as there without a further request, in seconds.
    pub lease_s: f64,
    /// All flows of this host. One that is not in it has ended.
    pub flows: Vec<Flow>,
    /// To an agent that leaves: whether switches have confirmed that they send it no more copies.
    #[serde(default)]
    pub stopped: Option<bool>,
}

/// One pipeline at this host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Flow {
    /// The mirror's id.
    pub id: String,
    /// Of this host's replica, from 1.
    pub position: u32,
    /// The connection from the client or the replica before.
    pub receive: Connection,
    /// The connection to the next replica, where that one gets copies.
    #[serde(default)]
    pub send: Option<Connection>,
    /// Whether it is `receive` whose segments are copied.
    pub lead: bool,
    /// Start of the stream in the connection that is copied.
    #[serde(default)]
    pub head: Option<u32>,
}

/// A mirror's part at this host. A host with two replicas of a block has two of one mirror, and a mirror that is
/// announced again may have another connection: what was learnt is of both together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part {
    /// The mirror's id.
    pub id: String,
    /// The connection from the client or the replica before.
    pub receive: Connection,
}

/// A TCP connection in the direction of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub struct Connection {
    /// Who sends the block.
    pub source: Place,
    /// Who receives it.
    pub destination: Place,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub struct Place {
    /// IPv4 or IPv6.
    pub address: IpAddr,
    /// From 1.
    pub port: u16,
}

impl Flow {
    /// What it is of.
    #[must_use]
    pub fn part(&self) -> Part {
        Part {
            id: self.id.clone(),
            receive: self.receive,
        }
    }
}

impl Connection {
    /// As the maps have it.
    #[must_use]
    pub fn key(&self) -> Key {
        let at = |place: Place| SocketAddr::new(place.address, place.port);
        Key::new(at(self.source), at(self.destination))
    }

    /// Whether both ends are of one IP version.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.source.address.is_ipv4() == self.destination.address.is_ipv4()
            && self.source.port != 0
            && self.destination.port != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read() {
        let answer: Answer = serde_json::from_str(
            r#"{"controller": "c1", "seen": 7, "lease_s": 15.0, "more": 1, "flows": [
                {"id": "BP-1~2~3", "position": 2, "lead": false, "head": 4000000000, "send": null,
                 "receive": {"source": {"address": "10.0.0.2", "port": 40000},
                             "destination": {"address": "10.0.0.3", "port": 9866}}}]}"#,
        )
        .expect("an answer");
        let flow = &answer.flows[0];
        assert_eq!(
            (answer.seen, flow.head, flow.send),
            (7, Some(4_000_000_000), None)
        );
        let ends = ("10.0.0.2:40000", "10.0.0.3:9866");
        let key = Key::new(ends.0.parse().expect("a"), ends.1.parse().expect("b"));
        assert_eq!(flow.receive.key(), key);
        assert!(flow.receive.is_sound());
    }

    #[test]
    fn a_request_is_as_the_controller_wants_it() {
        let request = Request {
            run: "r".into(),
            addresses: vec!["10.0.0.2".parse().expect("an address")],
            heads: vec![HeadAt {
                id: "x".into(),
                zero: 5,
                of: Connection {
                    source: Place {
                        address: "10.0.0.1".parse().expect("an address"),
                        port: 40_000,
                    },
                    destination: Place {
                        address: "10.0.0.2".parse().expect("an address"),
                        port: 9866,
                    },
                },
            }],
            ..Request::default()
        };
        assert_eq!(
            serde_json::to_value(&request).expect("JSON"),
            serde_json::json!({"run": "r", "addresses": ["10.0.0.2"], "seen": 0, "controller": "", "wait_ms": 0,
                "heads": [{"id": "x", "zero": 5, "source": {"address": "10.0.0.1", "port": 40000},
                    "destination": {"address": "10.0.0.2", "port": 9866}}],
                "leaving": false})
        );
    }
}
