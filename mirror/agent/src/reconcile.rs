//! From the flows that the controller wants and the entries that are there to the changes that make them meet. Pure.
//!
//! ```text
//!              listed                 not listed, not seen for `forget`
//!   (none) ──────────▶ entry ─────────────────────────────────────────▶ (none)
//!                        │  ▲
//!          acked > sent, │  │   D(j+1) has more than D(j)'s kernel has sent: without the entry the stack would throw
//!          socket there  └──┘   away all ACKs, and what HDFS says in them. Such an entry stays as long as its socket.
//! ```

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::time::Duration;

use crate::layout::Key;
use crate::sockets::End;
use crate::wire::Flow;

/// What is to be done to the maps, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Announce a connection to the next replica.
    AddSnd {
        /// The mirror that it is of.
        id: String,
        /// The connection.
        key: Key,
    },
    /// Announce a connection from the replica before, or the client.
    AddRcv {
        /// The mirror that it is of.
        id: String,
        /// The connection.
        key: Key,
        /// This host's own connection to the next replica.
        next: Option<Key>,
    },
    /// Say where the stream that is copied starts.
    SetHead {
        /// The mirror that it is of.
        id: String,
        /// The connection that the copies go into.
        key: Key,
        /// The start.
        zero: u32,
    },
    /// Forget a connection to the next replica.
    RemoveSnd(Key),
    /// Forget a connection from the replica before, or the client.
    RemoveRcv(Key),
    /// Forget the start of a stream.
    RemoveHead(Key),
}

/// An entry that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present {
    /// Its connection.
    pub key: Key,
    /// When a segment was last seen, of the monotonic clock, in nanoseconds; 0 for never.
    pub seen_ns: u64,
    /// Whether the next replica has acknowledged more than was sent to it.
    pub ahead: bool,
}

/// All entries that are there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// Connections to the next replica.
    pub snd: Vec<Present>,
    /// Connections from the replica before, or the client.
    pub rcv: Vec<Present>,
    /// Starts of streams.
    pub heads: Vec<(Key, u32)>,
}

/// Remembers since when an entry is not listed.
pub struct Reconciler {
    forget_ns: u64,
    unlisted: HashMap<(Key, bool), u64>,
}

impl Reconciler {
    /// An entry that is not listed, and of which no segment was seen for `forget`, goes.
    #[must_use]
    pub fn new(forget: Duration) -> Self {
        Self {
            forget_ns: u64::try_from(forget.as_nanos()).unwrap_or(u64::MAX),
            unlisted: HashMap::new(),
        }
    }

    /// What is to be done. `wanted` is `None` as long as no controller has said anything: then only entries whose
    /// connection is gone are forgotten. `is_gone` is asked of few.
    pub fn changes(
        &mut self,
        wanted: Option<&[Flow]>,
        entries: &Entries,
        now_ns: u64,
        mut is_gone: impl FnMut(&Key, End) -> bool,
    ) -> Vec<Change> {
        let flows = wanted.unwrap_or_default();
        let mut changes = additions(flows, entries);
        let listed_snd: HashSet<Key> = flows
            .iter()
            .filter_map(|flow| flow.send.map(|send| send.key()))
            .collect();
        let listed_rcv: HashSet<Key> = flows.iter().map(|flow| flow.receive.key()).collect();
        let mut unlisted = HashMap::new();
        for entry in &entries.snd {
            if listed_snd.contains(&entry.key) {
                continue;
            }
            let idle = self.idle(entry, true, now_ns, &mut unlisted);
            let must_be_gone = entry.ahead || wanted.is_none();
            if idle && (!must_be_gone || is_gone(&entry.key, End::Source)) {
                changes.push(Change::RemoveSnd(entry.key));
            }
        }
        let mut left: HashSet<Key> = listed_rcv.clone();
        for entry in &entries.rcv {
            if listed_rcv.contains(&entry.key) {
                continue;
            }
            let idle = self.idle(entry, false, now_ns, &mut unlisted);
            if idle && (wanted.is_some() || is_gone(&entry.key, End::Target)) {
                changes.push(Change::RemoveRcv(entry.key));
            } else {
                left.insert(entry.key);
            }
        }
        let heads = entries.heads.iter().map(|(key, _)| *key);
        changes.extend(
            heads
                .filter(|key| !left.contains(key))
                .map(Change::RemoveHead),
        );
        self.unlisted = unlisted;
        changes
    }

    /// Whether an entry that is not listed has been left alone for long enough; keeps since when in `unlisted`.
    fn idle(
        &self,
        entry: &Present,
        sends: bool,
        now_ns: u64,
        unlisted: &mut HashMap<(Key, bool), u64>,
    ) -> bool {
        let at = (entry.key, sends);
        let since = self.unlisted.get(&at).copied().unwrap_or(now_ns);
        unlisted.insert(at, since);
        now_ns.saturating_sub(since.max(entry.seen_ns)) >= self.forget_ns
    }
}

/// Entries that are missing. One that is there is left alone: from then on it is the program's.
fn additions(flows: &[Flow], entries: &Entries) -> Vec<Change> {
    let snd: HashSet<Key> = entries.snd.iter().map(|entry| entry.key).collect();
    let rcv: HashSet<Key> = entries.rcv.iter().map(|entry| entry.key).collect();
    let heads: HashMap<Key, u32> = entries.heads.iter().copied().collect();
    let mut changes = Vec::new();
    for flow in flows {
        let (receive, send) = (flow.receive.key(), flow.send.map(|send| send.key()));
        let id = || flow.id.clone();
        if let Some(key) = send.filter(|key| !snd.contains(key)) {
            changes.push(Change::AddSnd { id: id(), key });
        }
        if !rcv.contains(&receive) {
            changes.push(Change::AddRcv {
                id: id(),
                key: receive,
                next: send,
            });
        }
        if let Some(zero) = flow.head
            && heads.get(&receive) != Some(&zero)
        {
            changes.push(Change::SetHead {
                id: id(),
                key: receive,
                zero,
            });
        }
    }
    changes
}

/// Why a flow can't be one of this host, whose addresses are given.
#[must_use]
pub fn objection(flow: &Flow, addresses: &[IpAddr]) -> Option<String> {
    let ends = [Some(&flow.receive), flow.send.as_ref()];
    if ends.into_iter().flatten().any(|c| !c.is_sound()) {
        return Some(String::from(
            "its connection is of two IP versions, or of port 0",
        ));
    }
    let here = flow.receive.destination.address;
    let sends = flow.send.map(|send| send.source.address);
    [Some(here), sends]
        .into_iter()
        .flatten()
        .find(|address| !addresses.contains(address))
        .map(|address| {
            format!("{address} is no address of this host's interfaces (agent.interfaces)")
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Connection, Place};

    const SECOND: u64 = 1_000_000_000;

    fn place(host: u8, port: u16) -> Place {
        Place {
            address: IpAddr::from([10, 0, 0, host]),
            port,
        }
    }

    fn connection(from: u8, to: u8) -> Connection {
        Connection {
            source: place(from, 40_000),
            destination: place(to, 9866),
        }
    }

    /// D2 between D1 and D3.
    fn flow() -> Flow {
        Flow {
            id: "p~1~2".into(),
            position: 2,
            receive: connection(2, 3),
            send: Some(connection(3, 4)),
            lead: false,
            head: None,
        }
    }

    fn present(key: Key) -> Present {
        Present {
            key,
            seen_ns: 0,
            ahead: false,
        }
    }

    fn there(flow: &Flow) -> Entries {
        Entries {
            snd: flow.send.iter().map(|send| present(send.key())).collect(),
            rcv: vec![present(flow.receive.key())],
            heads: flow
                .head
                .iter()
                .map(|zero| (flow.receive.key(), *zero))
                .collect(),
        }
    }

    fn reconciler() -> Reconciler {
        Reconciler::new(Duration::from_secs(60))
    }

    fn never(_: &Key, _: End) -> bool {
        panic!("nothing to ask")
    }

    #[test]
    fn what_is_listed_is_made_once_and_the_head_when_it_is_known() {
        let (mut flow, mut r) = (flow(), reconciler());
        let (receive, send) = (flow.receive.key(), connection(3, 4).key());
        let id = flow.id.clone();
        let first = r.changes(Some(&[flow.clone()]), &Entries::default(), 0, never);
        let add_snd = Change::AddSnd {
            id: id.clone(),
            key: send,
        };
        let add_rcv = Change::AddRcv {
            id: id.clone(),
            key: receive,
            next: Some(send),
        };
        assert_eq!(first, [add_snd, add_rcv], "what sends is made first");
        let entries = there(&flow);
        assert_eq!(r.changes(Some(&[flow.clone()]), &entries, 1, never), []);
        flow.head = Some(9);
        let head = Change::SetHead {
            id,
            key: receive,
            zero: 9,
        };
        let changes = r.changes(Some(&[flow.clone()]), &entries, 2, never);
        assert_eq!(changes, [head]);
        assert_eq!(
            r.changes(Some(&[flow.clone()]), &there(&flow), 3, never),
            []
        );
    }

    #[test]
    fn what_is_not_listed_goes_when_it_was_not_seen_for_long_enough() {
        let mut flow = flow();
        flow.head = Some(9);
        let mut r = reconciler();
        let mut entries = there(&flow);
        assert_eq!(r.changes(Some(&[]), &entries, 100 * SECOND, never), []);
        entries.snd[0].seen_ns = 120 * SECOND;
        let receive = flow.receive.key();
        let gone = [Change::RemoveRcv(receive), Change::RemoveHead(receive)];
        assert_eq!(r.changes(Some(&[]), &entries, 160 * SECOND, never), gone);
        entries.rcv.clear();
        entries.heads.clear();
        assert_eq!(r.changes(Some(&[]), &entries, 179 * SECOND, never), []);
        let gone = [Change::RemoveSnd(connection(3, 4).key())];
        assert_eq!(r.changes(Some(&[]), &entries, 180 * SECOND, never), gone);
    }

    #[test]
    fn what_is_listed_again_begins_anew() {
        let (flow, mut r) = (flow(), reconciler());
        let entries = there(&flow);
        r.changes(Some(&[]), &entries, 0, never);
        r.changes(
            Some(std::slice::from_ref(&flow)),
            &entries,
            50 * SECOND,
            never,
        );
        assert_eq!(r.changes(Some(&[]), &entries, 70 * SECOND, never), []);
        assert_eq!(r.changes(Some(&[]), &entries, 129 * SECOND, never), []);
        assert_eq!(r.changes(Some(&[]), &entries, 130 * SECOND, never).len(), 2);
    }

    #[test]
    fn an_entry_that_is_ahead_stays_as_long_as_its_socket() {
        let (flow, mut r) = (flow(), reconciler());
        let mut entries = there(&flow);
        entries.rcv.clear();
        entries.snd[0].ahead = true;
        r.changes(Some(&[]), &entries, 0, never);
        let still = r.changes(Some(&[]), &entries, 9_999 * SECOND, |_, end| {
            assert_eq!(end, End::Source);
            false
        });
        assert_eq!(still, []);
        let gone = r.changes(Some(&[]), &entries, 10_000 * SECOND, |_, _| true);
        assert_eq!(gone, [Change::RemoveSnd(entries.snd[0].key)]);
    }

    #[test]
    fn without_a_word_of_the_controller_only_what_has_no_socket_goes() {
        let (flow, mut r) = (flow(), reconciler());
        let entries = there(&flow);
        r.changes(None, &entries, 0, never);
        assert_eq!(r.changes(None, &entries, 59 * SECOND, never), []);
        assert_eq!(r.changes(None, &entries, 60 * SECOND, |_, _| false), []);
        let gone = r.changes(None, &entries, 61 * SECOND, |_, end| end == End::Target);
        assert_eq!(gone, [Change::RemoveRcv(flow.receive.key())]);
    }

    #[test]
    fn a_head_without_a_flow_goes() {
        let mut r = reconciler();
        let key = connection(2, 3).key();
        let entries = Entries {
            heads: vec![(key, 1)],
            ..Entries::default()
        };
        assert_eq!(
            r.changes(Some(&[]), &entries, 0, never),
            [Change::RemoveHead(key)]
        );
    }

    #[test]
    fn flows_of_other_hosts_are_refused() {
        let here = [IpAddr::from([10, 0, 0, 3])];
        assert_eq!(objection(&flow(), &here), None);
        let elsewhere = objection(&flow(), &[]).expect("an objection");
        assert!(elsewhere.contains("10.0.0.3 is no address"), "{elsewhere}");
        let mut mixed = flow();
        mixed.receive.source.address = "::1".parse().expect("an address");
        assert!(
            objection(&mixed, &here)
                .expect("one")
                .contains("two IP versions")
        );
    }
}
