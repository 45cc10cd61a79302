//! From the flows that the controller wants and the entries that are there to the changes that make them meet. Pure.
//!
//! ```text
//!              listed                 not listed, and the connection over or not seen for `forget`
//!   (none) ──────────▶ entry ──────────────────────────────────────────────────────────────────────▶ (none)
//!                        │  ▲
//!          acked > sent, │  │   D(j+1) has more than D(j)'s kernel has sent: without the entry the stack would throw
//!          socket there  └──┘   away all ACKs, and what HDFS says in them. Such an entry stays as long as its socket.
//! ```
//!
//! An entry is of one mirror's connection. The program takes it out when this host makes another connection of the same
//! ports: what the list says then is of the one before, and its start of stream would put octets in the wrong place.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::time::Duration;

use crate::layout::Key;
use crate::sockets::{End, Life};
use crate::wire::{Flow, Part};

/// An entry that is not listed stays so long although its connection is over: lists come and go by one answer.
const OVER: Duration = Duration::from_secs(2);
/// How often the kernel is asked for the socket of one.
const ASK: Duration = Duration::from_secs(1);

/// What is to be done to the maps, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Announce a connection to the next replica.
    AddSnd {
        /// What it is of.
        part: Part,
        /// The connection.
        key: Key,
    },
    /// Announce a connection from the replica before, or the client.
    AddRcv {
        /// What it is of.
        part: Part,
        /// The connection.
        key: Key,
        /// This host's own connection to the next replica.
        next: Option<Key>,
    },
    /// Say where the stream that is copied starts.
    SetHead {
        /// What it is of.
        part: Part,
        /// The connection that the copies go into.
        key: Key,
        /// The start.
        zero: u32,
    },
    /// The connection that is listed has ended: another one has its ports, or had.
    Ended {
        /// What it is of.
        part: Part,
    },
    /// Forget a connection to the next replica.
    RemoveSnd(Key),
    /// Forget a connection from the replica before, or the client.
    RemoveRcv(Key),
    /// Forget the start of a stream.
    RemoveHead(Key),
}

impl Change {
    /// What it is of, where it is something that a flow needs.
    #[must_use]
    pub fn part(&self) -> Option<&Part> {
        match self {
            Self::AddSnd { part, .. }
            | Self::AddRcv { part, .. }
            | Self::SetHead { part, .. }
            | Self::Ended { part } => Some(part),
            Self::RemoveSnd(_) | Self::RemoveRcv(_) | Self::RemoveHead(_) => None,
        }
    }
}

/// Makes changes by `make`, in their order. What became of each flow: it is served if all that it needs was made; else
/// what it needs besides is left alone, and why is told.
pub fn make_all(
    changes: &[Change],
    mut make: impl FnMut(&Change) -> Result<(), String>,
) -> BTreeMap<Part, Result<(), String>> {
    let mut flows: BTreeMap<Part, Result<(), String>> = BTreeMap::new();
    for change in changes {
        let part = change.part();
        if part.is_some_and(|part| flows.get(part).is_some_and(Result::is_err)) {
            continue;
        }
        let done = make(change);
        if let Some(part) = part {
            flows.insert(part.clone(), done);
        }
    }
    flows
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
    /// The start of stream by which copies are moved into it, once one was.
    pub head: Option<u32>,
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

/// An entry: its connection, and which end of it this host is.
type Entry = (Key, End);

/// An entry that is not listed.
#[derive(Clone, Copy)]
struct Unlisted {
    since_ns: u64,
    /// When its socket is looked for.
    ask_ns: u64,
}

/// Remembers which mirror an entry is of, and since when it is not listed.
pub struct Reconciler {
    forget_ns: u64,
    made: HashMap<Entry, String>,
    unlisted: HashMap<Entry, Unlisted>,
}

impl Reconciler {
    /// An entry that is not listed goes when its connection is over, or no segment was seen for `forget`.
    #[must_use]
    pub fn new(forget: Duration) -> Self {
        Self {
            forget_ns: nanoseconds(forget),
            made: HashMap::new(),
            unlisted: HashMap::new(),
        }
    }

    /// What is to be done. `wanted` is `None` as long as no controller has said anything: then only entries whose
    /// connection is gone are forgotten, and late. `life` is asked of few.
    pub fn changes(
        &mut self,
        wanted: Option<&[Flow]>,
        entries: &Entries,
        now_ns: u64,
        mut life: impl FnMut(&Key, End) -> Life,
    ) -> Vec<Change> {
        let flows = wanted.unwrap_or_default();
        let mut changes = self.additions(flows, entries);
        let listed: HashSet<Entry> = flows
            .iter()
            .flat_map(|flow| {
                let send = flow.send.map(|send| (send.key(), End::Source));
                send.into_iter().chain([(flow.receive.key(), End::Target)])
            })
            .collect();
        self.made.retain(|entry, _| listed.contains(entry));
        let mut unlisted = HashMap::new();
        let mut left: HashSet<Key> = flows.iter().map(|flow| flow.receive.key()).collect();
        let snd = entries.snd.iter().map(|entry| (entry, End::Source));
        let rcv = entries.rcv.iter().map(|entry| (entry, End::Target));
        for (entry, end) in snd.chain(rcv) {
            let at = (entry.key, end);
            if listed.contains(&at) {
                continue;
            }
            let mut state = self.unlisted.get(&at).copied().unwrap_or(Unlisted {
                since_ns: now_ns,
                ask_ns: now_ns + nanoseconds(OVER),
            });
            let goes = self.goes(entry, &mut state, wanted.is_some(), now_ns, || {
                life(&entry.key, end)
            });
            match (goes, end) {
                (true, End::Source) => changes.push(Change::RemoveSnd(entry.key)),
                (true, End::Target) => changes.push(Change::RemoveRcv(entry.key)),
                (false, _) => {
                    left.insert(entry.key);
                    unlisted.insert(at, state);
                }
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

    /// Whether an entry that is not listed is to go.
    fn goes(
        &self,
        entry: &Present,
        state: &mut Unlisted,
        is_told: bool,
        now_ns: u64,
        life: impl FnOnce() -> Life,
    ) -> bool {
        let quiet_ns = now_ns.saturating_sub(state.since_ns.max(entry.seen_ns));
        let is_forgotten = quiet_ns >= self.forget_ns;
        let must_be_gone = entry.ahead || !is_told;
        if is_forgotten && !must_be_gone {
            return true;
        }
        if !is_forgotten && (!is_told || now_ns < state.ask_ns) {
            return false;
        }
        state.ask_ns = now_ns + nanoseconds(ASK);
        match life() {
            Life::Open => false,
            Life::Over => !must_be_gone,
            Life::Gone => true,
        }
    }

    /// Has it remembered that a change was made.
    pub fn made(&mut self, change: &Change) {
        match change {
            Change::AddSnd { part, key } => {
                self.made.insert((*key, End::Source), part.id.clone());
            }
            Change::AddRcv { part, key, .. } => {
                self.made.insert((*key, End::Target), part.id.clone());
            }
            Change::RemoveSnd(key) => {
                self.made.remove(&(*key, End::Source));
            }
            Change::RemoveRcv(key) => {
                self.made.remove(&(*key, End::Target));
            }
            Change::SetHead { .. } | Change::Ended { .. } | Change::RemoveHead(_) => {}
        }
    }

    /// Entries that are missing, and what another mirror or connection has left in their place. One that is there is
    /// left alone otherwise: it is the program's.
    fn additions(&mut self, flows: &[Flow], entries: &Entries) -> Vec<Change> {
        let snd: HashSet<Key> = entries.snd.iter().map(|entry| entry.key).collect();
        let rcv: HashMap<Key, &Present> = entries.rcv.iter().map(|e| (e.key, e)).collect();
        let heads: HashMap<Key, u32> = entries.heads.iter().copied().collect();
        let mut changes = Vec::new();
        for flow in flows {
            let (receive, send) = (flow.receive.key(), flow.send.map(|send| send.key()));
            let head = heads.get(&receive).copied();
            let part = || flow.part();
            let missing_snd = send.filter(|key| !snd.contains(key));
            let is_of = |made: &HashMap<Entry, String>, entry: Entry| {
                made.get(&entry).map(|id| *id == flow.id)
            };
            let is_ended = |entry| is_of(&self.made, entry) == Some(true);
            if missing_snd.is_some_and(|key| is_ended((key, End::Source)))
                || !rcv.contains_key(&receive) && is_ended((receive, End::Target))
            {
                changes.push(Change::Ended { part: part() });
                changes.extend(head.map(|_| Change::RemoveHead(receive)));
                continue;
            }
            if let Some(key) = missing_snd {
                changes.push(Change::AddSnd { part: part(), key });
            }
            if head.is_some() && flow.head.is_none() {
                changes.push(Change::RemoveHead(receive));
            }
            let add_rcv = Change::AddRcv {
                part: part(),
                key: receive,
                next: send,
            };
            match rcv.get(&receive) {
                None => changes.push(add_rcv),
                Some(entry) => {
                    let is_of = is_of(&self.made, (receive, End::Target));
                    let is_moved_right = match (entry.head, flow.head) {
                        (None, _) => true,
                        (Some(by), Some(head)) => by == head,
                        // A controller that has started anew does not know it yet.
                        (Some(_), None) => is_of == Some(true),
                    };
                    if is_of == Some(false) || !is_moved_right {
                        changes.extend([Change::RemoveRcv(receive), add_rcv]);
                    }
                }
            }
            if let Some(zero) = flow.head
                && head != Some(zero)
            {
                changes.push(Change::SetHead {
                    part: part(),
                    key: receive,
                    zero,
                });
            }
        }
        self.adopt(flows, &snd, &rcv);
        changes
    }

    /// What is there is of the mirror that lists it, but for what is to be made anew.
    fn adopt(&mut self, flows: &[Flow], snd: &HashSet<Key>, rcv: &HashMap<Key, &Present>) {
        for flow in flows {
            let send = flow.send.map(|send| send.key());
            if let Some(key) = send.filter(|key| snd.contains(key)) {
                self.made.insert((key, End::Source), flow.id.clone());
            }
            let receive = flow.receive.key();
            if rcv.contains_key(&receive) {
                let made = self.made.entry((receive, End::Target));
                made.or_insert_with(|| flow.id.clone());
            }
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
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
            head: None,
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

    fn never(_: &Key, _: End) -> Life {
        panic!("nothing to ask")
    }

    fn open(_: &Key, _: End) -> Life {
        Life::Open
    }

    /// What is to be done now, and has it remembered as done.
    fn done(r: &mut Reconciler, flows: &[Flow], entries: &Entries, at: u64) -> Vec<Change> {
        let changes = r.changes(Some(flows), entries, at, open);
        for change in &changes {
            r.made(change);
        }
        changes
    }

    #[test]
    fn what_is_listed_is_made_once_and_the_head_when_it_is_known() {
        let (mut flow, mut r) = (flow(), reconciler());
        let (receive, send) = (flow.receive.key(), connection(3, 4).key());
        let part = flow.part();
        let first = r.changes(Some(&[flow.clone()]), &Entries::default(), 0, never);
        let add_snd = Change::AddSnd {
            part: part.clone(),
            key: send,
        };
        let add_rcv = Change::AddRcv {
            part: part.clone(),
            key: receive,
            next: Some(send),
        };
        assert_eq!(first, [add_snd, add_rcv], "what sends is made first");
        let entries = there(&flow);
        assert_eq!(r.changes(Some(&[flow.clone()]), &entries, 1, never), []);
        flow.head = Some(9);
        let head = Change::SetHead {
            part,
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
    fn a_flow_that_lacks_something_is_not_served() {
        let (full, fine) = (flow(), {
            let mut flow = flow();
            flow.id = String::from("p~3~4");
            flow.receive = connection(5, 3);
            flow.send = None;
            flow
        });
        let flows = [full.clone(), fine.clone()];
        let changes = reconciler().changes(Some(&flows), &Entries::default(), 0, never);
        let mut made = Vec::new();
        let outcome = make_all(&changes, |change| match change {
            Change::AddSnd { .. } => Err(String::from("full")),
            change => {
                made.push(change.clone());
                Ok(())
            }
        });
        assert_eq!(outcome[&full.part()], Err(String::from("full")));
        assert_eq!(outcome[&fine.part()], Ok(()));
        assert_eq!(
            made,
            changes[2..],
            "nothing else of the one that is not served"
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
        assert_eq!(r.changes(Some(&[]), &entries, 160 * SECOND, open), gone);
        entries.rcv.clear();
        entries.heads.clear();
        assert_eq!(r.changes(Some(&[]), &entries, 179 * SECOND, open), []);
        let gone = [Change::RemoveSnd(connection(3, 4).key())];
        assert_eq!(r.changes(Some(&[]), &entries, 180 * SECOND, never), gone);
    }

    #[test]
    fn what_is_not_listed_goes_soon_when_its_connection_is_over() {
        for (life, goes) in [(Life::Open, false), (Life::Over, true), (Life::Gone, true)] {
            let (flow, mut r) = (flow(), reconciler());
            let mut entries = there(&flow);
            entries.snd[0].seen_ns = 2 * SECOND;
            r.changes(Some(&[]), &entries, 0, never);
            assert_eq!(r.changes(Some(&[]), &entries, 2 * SECOND - 1, never), []);
            let changes = r.changes(Some(&[]), &entries, 2 * SECOND, |_, _| life);
            let gone = [
                Change::RemoveSnd(connection(3, 4).key()),
                Change::RemoveRcv(flow.receive.key()),
            ];
            assert_eq!(changes, if goes { &gone[..] } else { &[] }, "{life:?}");
        }
    }

    #[test]
    fn the_kernel_is_asked_for_a_socket_once_a_second() {
        let (flow, mut r) = (flow(), reconciler());
        let (entries, mut asked) = (there(&flow), 0);
        for at in 0..40 {
            r.changes(Some(&[]), &entries, at * SECOND / 10, |_, _| {
                asked += 1;
                Life::Open
            });
        }
        assert_eq!(asked, 2 * 2, "two entries, at 2 and 3 seconds");
    }

    #[test]
    fn a_start_of_stream_goes_when_it_is_not_told_any_more() {
        let (mut flow, mut r) = (flow(), reconciler());
        flow.head = Some(9);
        let entries = there(&flow);
        assert_eq!(done(&mut r, &[flow.clone()], &entries, 0), []);
        flow.head = None;
        let gone = [Change::RemoveHead(flow.receive.key())];
        assert_eq!(done(&mut r, &[flow.clone()], &entries, 1), gone);
    }

    /// Copies that are moved by one pipeline's start would bring octets of another one to the wrong place.
    #[test]
    fn an_entry_that_copies_are_moved_into_is_made_anew_for_another_start() {
        let (mut flow, mut r) = (flow(), reconciler());
        flow.head = Some(9);
        let mut entries = there(&flow);
        entries.rcv[0].head = Some(9);
        assert_eq!(done(&mut r, &[flow.clone()], &entries, 0), []);
        let (receive, next) = (flow.receive.key(), flow.send.map(|send| send.key()));
        let anew = |flow: &Flow| {
            let part = flow.part();
            [
                Change::RemoveRcv(receive),
                Change::AddRcv {
                    part,
                    key: receive,
                    next,
                },
            ]
        };
        // A controller that has started anew asks for it again: the connection is the same.
        let mut unknown = flow.clone();
        unknown.head = None;
        let changes = done(&mut r, &[unknown.clone()], &entries, 1);
        assert_eq!(changes, [Change::RemoveHead(receive)]);
        // Another start of the same mirror, and another mirror whose start is not known yet.
        let mut other = flow.clone();
        other.head = Some(10);
        let changes = done(&mut r, &[other.clone()], &entries, 2);
        assert_eq!(changes[..2], anew(&other));
        unknown.id = String::from("p~3~4");
        let changes = done(&mut r, &[unknown.clone()], &entries, 3);
        assert_eq!(changes[0], Change::RemoveHead(receive));
        assert_eq!(changes[1..], anew(&unknown));
        // An agent that has started anew, and can't know of which mirror the entry was.
        unknown.id.clone_from(&flow.id);
        let changes = done(&mut reconciler(), &[unknown.clone()], &entries, 4);
        assert_eq!(changes[1..], anew(&unknown));
    }

    /// The program takes entries out when the host makes another connection of the same ports.
    #[test]
    fn what_is_gone_is_not_made_again_for_another_connection() {
        for side in 0..2 {
            let (mut flow, mut r) = (flow(), reconciler());
            flow.head = Some(9);
            let first = done(&mut r, &[flow.clone()], &Entries::default(), 0);
            assert_eq!(first.len(), 3);
            let mut entries = there(&flow);
            [&mut entries.snd, &mut entries.rcv][side].clear();
            let gone = [
                Change::Ended { part: flow.part() },
                Change::RemoveHead(flow.receive.key()),
            ];
            assert_eq!(done(&mut r, &[flow.clone()], &entries, 1), gone);
            let mut next = flow.clone();
            next.id = String::from("p~3~4");
            next.head = None;
            let changes = done(&mut r, &[next.clone()], &entries, 2);
            assert!(
                changes
                    .iter()
                    .any(|change| change.part() == Some(&next.part())),
                "{changes:?}"
            );
        }
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
        assert_eq!(r.changes(Some(&[]), &entries, 129 * SECOND, open), []);
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
            Life::Over
        });
        assert_eq!(still, []);
        let gone = r.changes(Some(&[]), &entries, 10_000 * SECOND, |_, _| Life::Gone);
        assert_eq!(gone, [Change::RemoveSnd(entries.snd[0].key)]);
    }

    #[test]
    fn without_a_word_of_the_controller_only_what_has_no_socket_goes() {
        let (flow, mut r) = (flow(), reconciler());
        let entries = there(&flow);
        r.changes(None, &entries, 0, never);
        assert_eq!(r.changes(None, &entries, 59 * SECOND, never), []);
        assert_eq!(r.changes(None, &entries, 60 * SECOND, open), []);
        let gone = r.changes(None, &entries, 61 * SECOND, |_, end| match end {
            End::Source => Life::Over,
            End::Target => Life::Gone,
        });
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
