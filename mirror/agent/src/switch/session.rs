//! Where a bridge's agent stands with its controller: what it says next, and what an answer changes. Pure.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use super::fit::{MOST_HEARD, MOST_REPLICAS, fit};
use super::wire::{Answer, Failed, HeardAt, HostAt, PortSays, Request, Segments};

/// Failures that go with one request; the rest go with the next. And characters of a reason.
const AT_ONCE: usize = 256;
const REASON: usize = 255;
/// Longest wait for news, and the part of the lease that a request waits.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
const OF_LEASE: u32 = 3;
/// First and longest pause after a failure.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// The agent's memory of its controller.
#[derive(Debug)]
pub struct Session {
    run: String,
    dpid: String,
    controller: String,
    seen: u64,
    lease: Duration,
    /// Grows when ports or neighbours change; and what of that the controller has heard.
    news: u64,
    told: u64,
    failed: HashMap<Segments, String>,
    pause: Duration,
}

/// What a request has told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    news: u64,
    /// Up to which number hosts are told.
    pub hosts: u64,
}

/// What there is to say of the bridge.
#[derive(Clone, Copy, Debug)]
pub struct Says<'a> {
    /// Its ports.
    pub ports: &'a [PortSays],
    /// Switches that are heard.
    pub heard: &'a [HeardAt],
    /// Replicas that it copies to.
    pub copies_to: &'a [IpAddr],
}

/// What an answer means for the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Nothing: it is older than one that was taken.
    Overtaken,
    /// What it names changes.
    Difference,
    /// What it names is the first of all that there is to be.
    Anew,
}

impl Session {
    /// A run of an agent, named so that the controller tells it from others.
    #[must_use]
    pub fn new(run: String, dpid: String) -> Self {
        Self {
            run,
            dpid,
            controller: String::new(),
            seen: 0,
            lease: Duration::ZERO,
            news: 1,
            told: 0,
            failed: HashMap::new(),
            pause: PAUSES.0,
        }
    }

    /// What to say, and that the controller may wait for news if `wait`. `hosts` and their number: those that are news.
    #[must_use]
    pub fn request(
        &self,
        says: Says<'_>,
        hosts: (Vec<HostAt>, u64),
        wait: bool,
        leaving: bool,
    ) -> (Request, Sent) {
        let wait = if wait && self.told > 0 {
            (self.lease / OF_LEASE).min(LONGEST_WAIT)
        } else {
            Duration::ZERO
        };
        let is_news = self.told < self.news;
        let replicas = if is_news { says.copies_to } else { &[] };
        let failed = self.failed.iter().take(AT_ONCE);
        let mut request = Request {
            run: self.run.clone(),
            dpid: self.dpid.clone(),
            seen: self.seen,
            controller: self.controller.clone(),
            wait_ms: wait.as_millis() as u64,
            ports: is_news.then(|| says.ports.to_vec()),
            heard: is_news.then(|| says.heard.iter().take(MOST_HEARD).cloned().collect()),
            copies_to: replicas.iter().take(MOST_REPLICAS).copied().collect(),
            hosts: hosts.0,
            failed: failed
                .map(|(of, why)| Failed {
                    of: *of,
                    why: why.clone(),
                })
                .collect(),
            leaving,
        };
        let sent = Sent {
            news: self.news,
            hosts: if fit(&mut request) { hosts.1 } else { 0 },
        };
        (request, sent)
    }

    /// Ports or neighbours have changed.
    pub fn changed(&mut self) {
        self.news += 1;
    }

    /// The agent has removed entries by itself: all that is wanted is to be named again.
    pub fn lost(&mut self) {
        self.seen = 0;
        self.news += 1;
    }

    /// Whether the controller has not heard of that yet.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.told < self.news
    }

    /// Takes an answer to what was sent.
    pub fn answered(&mut self, answer: &Answer, sent: Sent) -> Taken {
        self.pause = PAUSES.0;
        let is_other = answer.controller != self.controller;
        if is_other {
            self.controller.clone_from(&answer.controller);
            (self.seen, self.told) = (0, 0);
        }
        if answer.announce {
            self.told = 0;
        } else {
            self.told = self.told.max(sent.news);
        }
        let lease_s = if answer.lease_s.is_finite() {
            answer.lease_s.clamp(0.1, 3600.0)
        } else {
            1.0
        };
        self.lease = Duration::from_secs_f64(lease_s);
        let taken = match answer.base {
            Some(base) if is_other || base != self.seen => Taken::Overtaken,
            Some(_) => Taken::Difference,
            None if answer.announce || answer.seen < self.seen => Taken::Overtaken,
            None => Taken::Anew,
        };
        if taken != Taken::Overtaken {
            self.seen = answer.seen;
        }
        taken
    }

    /// How long to wait before the next attempt, after a failed one: ever longer, and not with all others at once.
    /// `luck` is from 0 to 1.
    pub fn failed(&mut self, luck: f64) -> Duration {
        let pause = self.pause.mul_f64(0.5 + luck / 2.0);
        self.pause = (self.pause * 2).min(PAUSES.1);
        pause
    }

    /// An entry can't be made. Whether that is news.
    pub fn cannot(&mut self, of: Segments, why: &str) -> bool {
        let why: String = why.chars().take(REASON).collect();
        self.failed.insert(of, why.clone()).as_ref() != Some(&why)
    }

    /// It was made after all, or is not wanted any more.
    pub fn can(&mut self, of: &Segments) {
        self.failed.remove(of);
    }

    /// Only these are wanted still.
    pub fn wanted(&mut self, is_wanted: impl Fn(&Segments) -> bool) {
        self.failed.retain(|of, _| is_wanted(of));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Connection, Place};

    fn session() -> Session {
        Session::new("run".into(), "0000020000000009".into())
    }

    fn says<'a>() -> Says<'a> {
        Says {
            ports: &[],
            heard: &[],
            copies_to: &[],
        }
    }

    fn ask(session: &Session) -> (Request, Sent) {
        session.request(says(), (vec![], 0), true, false)
    }

    fn answer(controller: &str, seen: u64, base: Option<u64>) -> Answer {
        Answer {
            controller: controller.into(),
            seen,
            base,
            lease_s: 15.0,
            ..Answer::default()
        }
    }

    #[test]
    fn what_has_changed_is_said_until_it_was_heard() {
        let mut session = session();
        let (first, sent) = ask(&session);
        assert_eq!(
            (first.wait_ms, first.dpid.as_str()),
            (0, "0000020000000009")
        );
        assert!(first.ports.is_some() && first.heard.is_some());
        assert_eq!(session.answered(&answer("c", 1, None), sent), Taken::Anew);
        let (next, sent) = ask(&session);
        assert_eq!((next.wait_ms, next.seen, next.ports), (5000, 1, None));
        session.changed();
        assert!(session.has_news());
        // The answer to what was asked before says nothing of that.
        session.answered(&answer("c", 1, Some(1)), sent);
        assert!(ask(&session).0.ports.is_some());
        let (_, sent) = ask(&session);
        session.answered(&answer("c", 1, Some(1)), sent);
        assert!(!session.has_news());
    }

    #[test]
    fn a_controller_that_knows_nothing_is_told_all() {
        let mut session = session();
        let (_, sent) = ask(&session);
        session.answered(&answer("c", 1, None), sent);
        let lost = Answer {
            announce: true,
            ..answer("c", 0, None)
        };
        let (_, sent) = ask(&session);
        assert_eq!(
            session.answered(&lost, sent),
            Taken::Overtaken,
            "its list is none"
        );
        let (again, sent) = ask(&session);
        assert!(again.ports.is_some() && again.wait_ms == 0);
        assert_eq!(
            session.answered(&answer("another run", 1, None), sent),
            Taken::Anew
        );
    }

    #[test]
    fn differences_count_from_what_is_there() {
        let mut session = session();
        let (_, sent) = ask(&session);
        session.answered(&answer("c", 4, None), sent);
        assert_eq!(
            session.answered(&answer("c", 5, Some(4)), sent),
            Taken::Difference
        );
        assert_eq!(
            session.answered(&answer("c", 5, Some(4)), sent),
            Taken::Overtaken
        );
        assert_eq!(
            session.answered(&answer("c", 3, None), sent),
            Taken::Overtaken
        );
        assert_eq!(ask(&session).0.seen, 5);
        assert_eq!(
            session.answered(&answer("d", 5, Some(5)), sent),
            Taken::Overtaken
        );
        assert_eq!(
            ask(&session).0.seen,
            0,
            "of another controller nothing is there"
        );
    }

    #[test]
    fn what_the_agent_has_removed_is_asked_for_again() {
        let mut session = session();
        let (_, sent) = ask(&session);
        session.answered(&answer("c", 4, None), sent);
        let (_, waits) = ask(&session);
        session.lost();
        assert!(session.has_news());
        let (request, sent) = ask(&session);
        assert_eq!((request.seen, request.controller.as_str()), (0, "c"));
        // The difference to what is not there any more is none.
        assert_eq!(
            session.answered(&answer("c", 5, Some(4)), waits),
            Taken::Overtaken
        );
        assert_eq!(session.answered(&answer("c", 6, None), sent), Taken::Anew);
    }

    #[test]
    fn a_request_has_no_more_than_the_controller_takes() {
        let session = session();
        let one = HeardAt {
            port: 3,
            frame: "00".into(),
        };
        let heard = vec![one; MOST_HEARD + 1];
        let says = Says {
            heard: &heard,
            ..says()
        };
        let (request, _) = session.request(says, (vec![], 0), true, false);
        assert_eq!(request.heard.map(|all| all.len()), Some(MOST_HEARD));
    }

    #[test]
    fn what_failed_is_told_until_it_is_right_or_not_wanted() {
        let place = |port| Place {
            address: "10.0.0.1".parse().expect("an address"),
            port,
        };
        let of = Segments {
            port: 3,
            marked: false,
            connection: Connection {
                source: place(1),
                destination: place(2),
            },
        };
        let mut session = session();
        assert!(session.cannot(of, "full"));
        assert!(!session.cannot(of, "full"));
        assert_eq!(ask(&session).0.failed[0].why, "full");
        session.can(&of);
        assert_eq!(ask(&session).0.failed, []);
    }

    #[test]
    fn pauses_grow_to_a_bound_and_begin_anew() {
        let mut session = session();
        let pauses: Vec<_> = (0..7).map(|_| session.failed(1.0).as_millis()).collect();
        assert_eq!(pauses, [200, 400, 800, 1600, 3200, 5000, 5000]);
        let (_, sent) = ask(&session);
        session.answered(&answer("c", 1, None), sent);
        assert_eq!(session.failed(1.0).as_millis(), 200);
    }
}
