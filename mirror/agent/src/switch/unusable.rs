//! Ports that can't have the program, and when each is tried again. Pure: time comes in from outside.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// First and longest pause before another attempt.
const PAUSES: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));

/// Those of a bridge, by number.
#[derive(Debug, Default)]
pub struct Unusable(BTreeMap<u32, Trouble>);

#[derive(Debug)]
struct Trouble {
    why: String,
    pause: Duration,
    again: Instant,
}

impl Unusable {
    /// Whether a port is one.
    #[must_use]
    pub fn has(&self, port: u32) -> bool {
        self.0.contains_key(&port)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether a port is to be tried: one that was refused only after a pause, which grows.
    #[must_use]
    pub fn is_due(&self, port: u32, now: Instant) -> bool {
        let trouble = self.0.get(&port);
        trouble.is_none_or(|trouble| now >= trouble.again)
    }

    /// A port was tried in vain, for this reason. Whether that is news.
    pub fn failed(&mut self, port: u32, why: &str, now: Instant) -> bool {
        let before = self.0.get(&port);
        let pause = before.map_or(PAUSES.0, |trouble| (trouble.pause * 2).min(PAUSES.1));
        let is_news = before.is_none_or(|trouble| trouble.why != why);
        let trouble = Trouble {
            why: why.to_owned(),
            pause,
            again: now + pause,
        };
        self.0.insert(port, trouble);
        is_news
    }

    /// A port has the program. Whether it was unusable.
    pub fn works(&mut self, port: u32) -> bool {
        self.0.remove(&port).is_some()
    }

    /// Others than these are no ports any more.
    pub fn keep(&mut self, is_port: impl Fn(u32) -> bool) {
        self.0.retain(|port, _| is_port(*port));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_tried_again_ever_later_and_told_once() {
        let (mut all, mut now) = (Unusable::default(), Instant::now());
        assert!(all.is_due(3, now) && !all.has(3));
        let mut pauses = Vec::new();
        for attempt in 0..6 {
            assert_eq!(all.failed(3, "no clsact", now), attempt == 0);
            let seconds = (0..).find(|s| all.is_due(3, now + Duration::from_secs(*s)));
            pauses.push(seconds.expect("at some time"));
            now += Duration::from_secs(pauses[attempt]);
        }
        assert_eq!(pauses, [5, 10, 20, 40, 60, 60]);
        assert!(all.failed(3, "another reason", now));
        assert!(all.is_due(4, now), "others are as they were");
        assert!(all.works(3) && !all.works(3) && all.is_due(3, now));
    }

    #[test]
    fn who_is_no_port_any_more_is_forgotten() {
        let (mut all, now) = (Unusable::default(), Instant::now());
        all.failed(3, "no clsact", now);
        all.failed(4, "no clsact", now);
        all.keep(|port| port == 4);
        assert_eq!((all.has(3), all.has(4), all.count()), (false, true, 1));
    }
}
