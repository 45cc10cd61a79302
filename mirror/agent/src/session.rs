//! Where the agent stands with its controller: what it says next, and what an answer changes. Pure.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use crate::wire::{Answer, Failed, Flow, HeadAt, Request};

/// Starts and failures that go with one request; the rest go with the next.
const AT_ONCE: usize = 1024;
/// Addresses, and characters of a reason, that the controller takes.
const ADDRESSES: usize = 64;
const REASON: usize = 255;
/// Longest wait for news.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Parts of the lease, of which a request waits one.
const OF_LEASE: u32 = 3;
/// First and longest pause after a failure.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// The agent's memory of its controller.
#[derive(Debug)]
pub struct Session {
    run: String,
    seen: u64,
    controller: String,
    lease: Duration,
    flows: Option<Vec<Flow>>,
    heads: BTreeMap<String, u32>,
    failed: BTreeMap<String, String>,
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
            heads: BTreeMap::new(),
            failed: BTreeMap::new(),
            pause: PAUSES.0,
        }
    }

    /// The flows that are wanted; `None` as long as no controller has said any.
    #[must_use]
    pub fn flows(&self) -> Option<&[Flow]> {
        self.flows.as_deref()
    }

    /// What to say, and that the controller may wait for news if `wait`.
    #[must_use]
    pub fn request(&self, addresses: &[IpAddr], wait: bool, leaving: bool) -> Request {
        let wait = if wait {
            (self.lease / OF_LEASE).min(LONGEST_WAIT)
        } else {
            Duration::ZERO
        };
        let heads = self.heads.iter().take(AT_ONCE);
        let failed = self.failed.iter().take(AT_ONCE);
        Request {
            run: self.run.clone(),
            addresses: addresses.iter().take(ADDRESSES).copied().collect(),
            seen: self.seen,
            controller: self.controller.clone(),
            wait_ms: wait.as_millis() as u64,
            heads: heads
                .map(|(id, zero)| HeadAt {
                    id: id.clone(),
                    zero: *zero,
                })
                .collect(),
            failed: failed
                .map(|(id, why)| Failed {
                    id: id.clone(),
                    why: why.clone(),
                })
                .collect(),
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
        let is_listed = |id: &String| answer.flows.iter().any(|flow| flow.id == *id);
        self.heads.retain(|id, _| is_listed(id));
        self.failed.retain(|id, _| is_listed(id));
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
        flows.iter().filter(|flow| {
            flow.lead && !self.heads.contains_key(&flow.id) && !self.failed.contains_key(&flow.id)
        })
    }

    /// The start of a stream was read. It goes with each request as long as the flow is listed.
    pub fn has_head(&mut self, id: &str, zero: u32) {
        self.heads.insert(id.to_owned(), zero);
    }

    /// A flow can't be served. Whether that is news.
    pub fn cannot(&mut self, id: &str, why: String) -> bool {
        let why: String = why.chars().take(REASON).collect();
        self.failed.insert(id.to_owned(), why.clone()).as_ref() != Some(&why)
    }

    /// A flow can be served after all.
    pub fn can(&mut self, id: &str) {
        self.failed.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Connection, Place};

    fn flow(id: &str, lead: bool) -> Flow {
        let place = |port| Place {
            address: IpAddr::from([10, 0, 0, 1]),
            port,
        };
        Flow {
            id: id.into(),
            position: 1,
            receive: Connection {
                source: place(1),
                destination: place(2),
            },
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
        session.has_head("a", 77);
        assert_eq!(session.without_head().count(), 0);
        for _ in 0..2 {
            assert_eq!(session.request(&[], true, false).heads[0].zero, 77);
        }
        session.answered(answer("c", 2, vec![]));
        assert_eq!(session.request(&[], true, false).heads, []);
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
        assert!(session.cannot("a", "map full".into()));
        assert!(!session.cannot("a", "map full".into()));
        assert_eq!(session.request(&[], true, false).failed[0].why, "map full");
        session.can("a");
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
