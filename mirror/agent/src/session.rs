//! Where the agent stands with its controller: what it says next, and what an answer changes. Pure.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::time::Duration;

use crate::wire::{Answer, Failed, Flow, HeadAt, Part, Request};

/// Starts and failures that go with one request, which may have 256 KiB; the rest go with the next.
const AT_ONCE: usize = 256;
/// Addresses, and characters of a reason, that the controller takes.
const ADDRESSES: usize = 64;
const REASON: usize = 255;
/// Longest wait for news.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Parts of the lease, of which a request waits one.
const OF_LEASE: u32 = 3;
/// First and longest pause after a failure.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// What this host has to say of mirrors' parts, as long as these are listed.
#[derive(Debug)]
struct Sayings<T>(BTreeMap<Part, Said<T>>);

#[derive(Debug)]
struct Said<T> {
    what: T,
    /// With which request it went last; 0 for none.
    sent: u64,
}

impl<T> Sayings<T> {
    /// What goes with a request: all, or what has waited longest.
    fn next<S>(&mut self, request: u64, say: impl Fn(&Part, &T) -> S) -> Vec<S> {
        let mut all: Vec<_> = self.0.iter_mut().collect();
        all.sort_by_key(|(_, said)| said.sent);
        let now = all.into_iter().take(AT_ONCE);
        now.map(|(part, said)| {
            said.sent = request;
            say(part, &said.what)
        })
        .collect()
    }

    fn say(&mut self, part: Part, what: T) {
        self.0.insert(part, Said { what, sent: 0 });
    }
}

/// The agent's memory of its controller.
#[derive(Debug)]
pub struct Session {
    run: String,
    seen: u64,
    controller: String,
    lease: Duration,
    flows: Option<Vec<Flow>>,
    heads: Sayings<u32>,
    failed: Sayings<String>,
    requests: u64,
    pause: Duration,
}

impl Session {
    /// A run of an agent, named so that the controller tells it from others.
    #[must_use]
    pub fn new(run: String) -> Self {
        Self {
            run,
            seen: 0,
            controller: String::new(),
            lease: Duration::ZERO,
            flows: None,
            heads: Sayings(BTreeMap::new()),
            failed: Sayings(BTreeMap::new()),
            requests: 0,
            pause: PAUSES.0,
        }
    }

    /// The flows that are wanted; `None` as long as no controller has said any.
    #[must_use]
    pub fn flows(&self) -> Option<&[Flow]> {
        self.flows.as_deref()
    }

    /// How long the controller counts on the agent after a request; nothing as long as it has said nothing.
    #[must_use]
    pub fn lease(&self) -> Duration {
        self.lease
    }

    /// What to say, and that the controller may wait for news if `wait`.
    #[must_use]
    pub fn request(&mut self, addresses: &[IpAddr], wait: bool, leaving: bool) -> Request {
        let wait = if wait {
            (self.lease / OF_LEASE).min(LONGEST_WAIT)
        } else {
            Duration::ZERO
        };
        self.requests += 1;
        Request {
            run: self.run.clone(),
            addresses: addresses.iter().take(ADDRESSES).copied().collect(),
            seen: self.seen,
            controller: self.controller.clone(),
            wait_ms: wait.as_millis() as u64,
            heads: self.heads.next(self.requests, |part, zero| HeadAt {
                id: part.id.clone(),
                zero: *zero,
                of: part.receive,
            }),
            failed: self.failed.next(self.requests, |part, why| Failed {
                id: part.id.clone(),
                why: why.clone(),
            }),
            leaving,
        }
    }

    /// Takes an answer. False where it is older than one that was taken: two requests may be on their way at once.
    pub fn answered(&mut self, answer: Answer) -> bool {
        self.pause = PAUSES.0;
        if answer.controller == self.controller && answer.seen < self.seen {
            return false;
        }
        let lease_s = if answer.lease_s.is_finite() {
            answer.lease_s.clamp(0.1, 3600.0)
        } else {
            1.0
        };
        self.lease = Duration::from_secs_f64(lease_s);
        self.controller = answer.controller;
        self.seen = answer.seen;
        let listed: HashSet<Part> = answer.flows.iter().map(Flow::part).collect();
        self.heads.0.retain(|part, _| listed.contains(part));
        self.failed.0.retain(|part, _| listed.contains(part));
        self.flows = Some(answer.flows);
        true
    }

    /// How long to wait before the next attempt, after a failed one: ever longer, and not with all others at once.
    /// `luck` is from 0 to 1.
    pub fn failed(&mut self, luck: f64) -> Duration {
        let pause = self.pause.mul_f64(0.5 + luck / 2.0);
        self.pause = (self.pause * 2).min(PAUSES.1);
        pause
    }

    /// The flows whose start this host is to read and has not.
    pub fn without_head(&self) -> impl Iterator<Item = &Flow> {
        let flows = self.flows.as_deref().unwrap_or_default();
        flows.iter().filter(|flow| flow.lead).filter(|flow| {
            let part = flow.part();
            !self.heads.0.contains_key(&part) && !self.failed.0.contains_key(&part)
        })
    }

    /// The start of a stream was read. It goes with requests as long as it is listed.
    pub fn has_head(&mut self, part: Part, zero: u32) {
        self.heads.say(part, zero);
    }

    /// A flow can't be served. Whether that is news.
    pub fn cannot(&mut self, part: &Part, why: &str) -> bool {
        let why: String = why.chars().take(REASON).collect();
        if self.failed.0.get(part).is_some_and(|said| said.what == why) {
            return false;
        }
        self.failed.say(part.clone(), why);
        true
    }

    /// A flow can be served after all.
    pub fn can(&mut self, part: &Part) {
        self.failed.0.remove(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Connection, Place};
    use std::collections::BTreeSet;

    fn connection(port: u16) -> Connection {
        let place = |port| Place {
            address: IpAddr::from([10, 0, 0, 1]),
            port,
        };
        Connection {
            source: place(port),
            destination: place(9866),
        }
    }

    fn flow(id: &str, lead: bool) -> Flow {
        Flow {
            id: id.into(),
            position: 1,
            receive: connection(1),
            send: None,
            lead,
            head: None,
        }
    }

    fn answer(controller: &str, seen: u64, flows: Vec<Flow>) -> Answer {
        Answer {
            controller: controller.into(),
            seen,
            lease_s: 15.0,
            flows,
            stopped: None,
        }
    }

    #[test]
    fn the_first_request_waits_for_nothing_and_later_ones_for_part_of_the_lease() {
        let mut session = Session::new("run".into());
        let first = session.request(&[], true, false);
        assert_eq!(
            (first.seen, first.wait_ms, first.controller.as_str()),
            (0, 0, "")
        );
        assert!(session.answered(answer("c", 3, vec![])));
        let next = session.request(&[], true, false);
        assert_eq!(
            (next.seen, next.wait_ms, next.controller.as_str()),
            (3, 5000, "c")
        );
        assert_eq!(session.request(&[], false, true).wait_ms, 0);
    }

    #[test]
    fn heads_go_with_each_request_as_long_as_their_flow_is_listed() {
        let mut session = Session::new("run".into());
        session.answered(answer("c", 1, vec![flow("a", true), flow("b", false)]));
        let wanted: Vec<_> = session.without_head().map(|f| f.id.as_str()).collect();
        assert_eq!(wanted, ["a"]);
        session.has_head(flow("a", true).part(), 77);
        assert_eq!(session.without_head().count(), 0);
        for _ in 0..2 {
            assert_eq!(session.request(&[], true, false).heads[0].zero, 77);
        }
        session.answered(answer("c", 2, vec![]));
        assert_eq!(session.request(&[], true, false).heads, []);
    }

    #[test]
    fn a_head_is_of_one_connection_and_goes_with_it() {
        let mut session = Session::new("run".into());
        session.answered(answer("c", 1, vec![flow("a", true)]));
        session.has_head(flow("a", true).part(), 77);
        let said = session.request(&[], true, false).heads;
        assert_eq!((said[0].id.as_str(), said[0].of), ("a", connection(1)));
        // The same mirror has another connection here now, whose start was not read yet.
        let mut other = flow("a", true);
        other.receive = connection(3);
        session.answered(answer("c", 2, vec![other]));
        assert_eq!(session.request(&[], true, false).heads, []);
        let wanted: Vec<_> = session.without_head().map(|f| f.receive).collect();
        assert_eq!(wanted, [connection(3)]);
    }

    #[test]
    fn what_does_not_fit_a_request_goes_with_the_next() {
        let mut session = Session::new("run".into());
        let flows: Vec<_> = (0..AT_ONCE + 10)
            .map(|n| flow(&format!("{n:05}"), true))
            .collect();
        session.answered(answer("c", 1, flows.clone()));
        for flow in &flows {
            session.has_head(flow.part(), 7);
            assert!(session.cannot(&flow.part(), "map full"));
        }
        let (mut heads, mut failed) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..2 {
            let request = session.request(&[], true, false);
            assert_eq!(
                (request.heads.len(), request.failed.len()),
                (AT_ONCE, AT_ONCE)
            );
            heads.extend(request.heads.iter().map(|head| head.id.clone()));
            failed.extend(request.failed.iter().map(|failed| failed.id.clone()));
        }
        assert_eq!((heads.len(), failed.len()), (flows.len(), flows.len()));
    }

    #[test]
    fn the_longest_request_is_one_that_the_controller_takes() {
        let mut session = Session::new("r".repeat(64));
        let end = |port| Place {
            address: "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"
                .parse()
                .expect("one"),
            port,
        };
        let flows: Vec<_> = (0..AT_ONCE + 10)
            .map(|n| Flow {
                receive: Connection {
                    source: end(60_000),
                    destination: end(50_000),
                },
                ..flow(&format!("{n:064}"), true)
            })
            .collect();
        session.answered(answer("c", u64::MAX, flows.clone()));
        for flow in &flows {
            session.has_head(flow.part(), u32::MAX);
            session.cannot(&flow.part(), &"why ".repeat(100));
        }
        let addresses = vec![end(1).address; 2 * ADDRESSES];
        let request = session.request(&addresses, true, false);
        let octets = serde_json::to_vec(&request).expect("JSON").len();
        assert!(octets < 256 * 1024, "{octets} octets");
    }

    #[test]
    fn an_answer_that_was_overtaken_is_not_taken() {
        let mut session = Session::new("run".into());
        assert!(session.answered(answer("c", 5, vec![flow("a", false)])));
        assert!(!session.answered(answer("c", 4, vec![])));
        assert_eq!(session.flows().map(<[Flow]>::len), Some(1));
        assert!(session.answered(answer("another run", 1, vec![])));
        assert_eq!(session.flows().map(<[Flow]>::len), Some(0));
    }

    #[test]
    fn pauses_grow_to_a_bound_and_begin_anew() {
        let mut session = Session::new("run".into());
        let pauses: Vec<_> = (0..8).map(|_| session.failed(1.0).as_millis()).collect();
        assert_eq!(pauses, [200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
        assert_eq!(session.failed(0.0).as_millis(), 2500);
        session.answered(answer("c", 1, vec![]));
        assert_eq!(session.failed(1.0).as_millis(), 200);
    }

    #[test]
    fn what_failed_is_told_until_it_is_right_or_gone() {
        let mut session = Session::new("run".into());
        session.answered(answer("c", 1, vec![flow("a", true)]));
        let (part, why) = (flow("a", true).part(), "map full");
        assert!(session.cannot(&part, why));
        assert!(!session.cannot(&part, why));
        assert_eq!(session.request(&[], true, false).failed[0].why, why);
        session.can(&part);
        assert_eq!(session.request(&[], true, false).failed, []);
    }

    #[test]
    fn a_lease_that_is_none_does_no_harm() {
        let mut session = Session::new("run".into());
        for lease_s in [f64::NAN, -1.0, 0.0, f64::INFINITY, 1e300] {
            let mut answer = answer("c", 1, vec![]);
            answer.lease_s = lease_s;
            assert!(session.answered(answer));
            assert!(session.request(&[], true, false).wait_ms <= 30_000);
        }
    }
}
