//! The pinging side as a state machine: when the next Interest goes out, and what became of each.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ndn_packet::{ComponentBuf, Interest, NackReason, Name, NameRef};

use super::stats::RttStats;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct PingPlan {
    /// The server's prefix; `/ping/<number>` is added.
    pub prefix: Name,
    /// How many, if not for ever.
    pub count: Option<u64>,
    /// From one to the next.
    pub interval: Duration,
    /// How long an answer is waited for.
    pub timeout: Duration,
    /// Number of the first; below 2^63.
    pub start: u64,
    /// Whether caches may answer.
    pub cached: bool,
}

/// What became of one ping.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Echo {
    /// It came back after this time.
    Answer(u64, Duration),
    /// The network refused it.
    Nack(u64, NackReason, Duration),
    /// Nothing came.
    Timeout(u64),
}

/// Sends pings and counts what comes back. Times are the driver's, but round trips are measured
/// with the clock itself, since a driver looks at it only once a batch.
pub struct Pinger {
    plan: PingPlan,
    under: Name,
    next_at: Duration,
    sent: u64,
    waiting: BTreeMap<u64, SentEcho>,
    echoes: VecDeque<Echo>,
    nonce: u32,
    /// Round trips of what came back.
    pub rtt: RttStats,
    /// Refusals by reason.
    pub nacks: BTreeMap<String, u64>,
    /// How many were not answered in time.
    pub lost: u64,
}

struct SentEcho {
    sent: Instant,
    until: Duration,
}

impl Pinger {
    /// A pinger whose first Interest is due at `now`.
    pub fn new(plan: PingPlan, nonce: u32, now: Duration) -> Self {
        let under = plan.prefix.append(ComponentBuf::generic(b"ping"));
        Pinger {
            under,
            next_at: now,
            sent: 0,
            waiting: BTreeMap::new(),
            echoes: VecDeque::new(),
            nonce,
            rtt: RttStats::default(),
            nacks: BTreeMap::new(),
            lost: 0,
            plan,
        }
    }

    /// How many were sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether all were sent and none is waited for.
    pub fn is_over(&self) -> bool {
        self.all_sent() && self.waiting.is_empty()
    }

    fn all_sent(&self) -> bool {
        self.plan.count.is_some_and(|count| self.sent >= count)
    }

    /// The next Interest that is due.
    pub fn poll_interest(&mut self, now: Duration) -> Option<Bytes> {
        if self.all_sent() || now < self.next_at {
            return None;
        }
        let number = self.plan.start + self.sent;
        self.sent += 1;
        // A driver that comes late does not make up for it in a burst.
        self.next_at = (self.next_at + self.plan.interval).max(now);
        self.nonce = self
            .nonce
            .wrapping_mul(0x9e37_79b1)
            .wrapping_add(0x7f4a_7c15);
        let name = self
            .under
            .append(ComponentBuf::generic(number.to_string().as_bytes()));
        self.waiting.insert(
            number,
            SentEcho {
                sent: Instant::now(),
                until: now + self.plan.timeout,
            },
        );
        let wire = Interest::builder(&name)
            .must_be_fresh(!self.plan.cached)
            .nonce(self.nonce)
            .lifetime(self.plan.timeout)
            .build();
        Some(wire)
    }

    /// Data with this name came.
    pub fn on_data(&mut self, name: NameRef<'_>) {
        if let Some((number, waiting)) = self.take(name) {
            let rtt = waiting.sent.elapsed();
            self.rtt.add(rtt);
            self.echoes.push_back(Echo::Answer(number, rtt));
        }
    }

    /// The network refused an Interest.
    pub fn on_nack(&mut self, name: NameRef<'_>, reason: NackReason) {
        if let Some((number, waiting)) = self.take(name) {
            *self.nacks.entry(reason.to_string()).or_default() += 1;
            self.echoes
                .push_back(Echo::Nack(number, reason, waiting.sent.elapsed()));
        }
    }

    fn take(&mut self, name: NameRef<'_>) -> Option<(u64, SentEcho)> {
        if name.len() != self.under.len() + 1 || !self.under.as_ref().is_prefix_of(name) {
            return None;
        }
        let number = std::str::from_utf8(name.get(self.under.len())?.value)
            .ok()?
            .parse()
            .ok()?;
        Some((number, self.waiting.remove(&number)?))
    }

    /// When something is next to be done, if ever.
    pub fn deadline(&self) -> Option<Duration> {
        let send = (!self.all_sent()).then_some(self.next_at);
        // All wait equally long, so the lowest number is the first to be late.
        let late = self.waiting.first_key_value().map(|(_, w)| w.until);
        [send, late].into_iter().flatten().min()
    }

    /// Gives up on what is late.
    pub fn on_deadline(&mut self, now: Duration) {
        while let Some(first) = self.waiting.first_entry()
            && first.get().until <= now
        {
            self.echoes.push_back(Echo::Timeout(*first.key()));
            first.remove();
            self.lost += 1;
        }
    }

    /// What became of a ping since the last call.
    pub fn poll_echo(&mut self) -> Option<Echo> {
        self.echoes.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn pinger(count: u64) -> Pinger {
        let plan = PingPlan {
            prefix: "/host".parse().expect("a name"),
            count: Some(count),
            interval: 10 * MS,
            timeout: 25 * MS,
            start: 7,
            cached: false,
        };
        Pinger::new(plan, 1, Duration::ZERO)
    }

    fn sent(pinger: &mut Pinger, now: Duration) -> Option<Interest> {
        pinger
            .poll_interest(now)
            .map(|wire| Interest::parse(wire).expect("an Interest"))
    }

    #[test]
    fn sends_counts_and_gives_up() {
        let mut p = pinger(3);
        let first = sent(&mut p, Duration::ZERO).expect("due");
        assert_eq!(first.name().to_string(), "/host/ping/7");
        assert!(first.must_be_fresh() && first.nonce().is_some());
        assert!(sent(&mut p, 9 * MS).is_none());
        assert_eq!(p.deadline(), Some(10 * MS));
        let second = sent(&mut p, 10 * MS).expect("due");
        let third = sent(&mut p, 20 * MS).expect("due");
        assert_ne!(first.nonce(), second.nonce());
        p.on_data(second.name());
        p.on_data(second.name());
        p.on_nack(third.name(), NackReason::NoRoute);
        assert_eq!(p.deadline(), Some(25 * MS));
        p.on_deadline(24 * MS);
        assert!(!p.is_over());
        p.on_deadline(25 * MS);
        assert!(p.is_over());
        assert_eq!((p.sent(), p.rtt.count(), p.lost), (3, 1, 1));
        assert!(matches!(p.poll_echo(), Some(Echo::Answer(8, _))));
        assert!(matches!(
            p.poll_echo(),
            Some(Echo::Nack(9, NackReason::NoRoute, _))
        ));
        assert_eq!(p.poll_echo(), Some(Echo::Timeout(7)));
        assert_eq!(p.poll_echo(), None);
    }

    #[test]
    fn other_names_are_none_of_its_business() {
        let mut p = pinger(1);
        sent(&mut p, Duration::ZERO);
        for name in [
            "/host/ping",
            "/host/ping/8",
            "/host/ping/7/x",
            "/other/ping/7",
            "/host/ping/x",
        ] {
            p.on_data(name.parse::<Name>().expect("a name").as_ref());
        }
        assert_eq!(p.rtt.count(), 0);
    }
}
