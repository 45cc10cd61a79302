//! Which complaints go into the log. Each topic has its own limit, so that a flood of one does not hide another. Pure: time
//! comes in from outside.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Lines of a topic that may come at once, and time in which one more may.
const BURST: u32 = 8;
const REFILL: Duration = Duration::from_secs(60);

/// What a complaint is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Topic {
    /// The bridge can't be read, or not be served.
    Bridge,
    /// It has more ports than the controller takes.
    Bound,
    /// A port can't have the program.
    Port,
    /// The program was not where it should be, or can't be seen to at all.
    Program,
    /// What the bridge has learned can't be read.
    Hosts,
    /// The kernel does not say when ports change.
    Events,
    /// The maps can't be read or written.
    Maps,
    /// Segments can't be copied as the controller wants.
    Entries,
    /// A flow of a host fell back to real sending.
    Fallback,
    /// The controller does not answer.
    Controller,
}

/// What was said of each topic.
#[derive(Debug, Default)]
pub struct Complaints(HashMap<Topic, Said>);

#[derive(Debug)]
struct Said {
    /// The last line, as long as it holds.
    last: Option<String>,
    /// When as many lines as ever may come at once.
    full_at: Instant,
    left_out: u64,
}

impl Complaints {
    /// The line for the log, if there is to be one: a complaint is said once as long as it stays the same, and those that
    /// change are limited. Those left out are counted, and the next line says how many they were.
    #[must_use]
    pub fn line(&mut self, topic: Topic, what: &str, now: Instant) -> Option<String> {
        let said = self.0.entry(topic).or_insert(Said {
            last: None,
            full_at: now,
            left_out: 0,
        });
        if said.last.as_deref() == Some(what) {
            return None;
        }
        let full_at = said.full_at.max(now) + REFILL;
        if full_at > now + REFILL * BURST {
            said.left_out += 1;
            return None;
        }
        said.full_at = full_at;
        said.last = Some(what.to_owned());
        Some(match std::mem::take(&mut said.left_out) {
            0 => what.to_owned(),
            more => format!("{what}; {more} more such complaints were left out"),
        })
    }

    /// What was complained of is right now. Whether the log says that it was wrong.
    pub fn over(&mut self, topic: Topic) -> bool {
        let said = self.0.get_mut(&topic);
        said.is_some_and(|said| said.last.take().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_once_until_it_was_right() {
        let (mut all, now) = (Complaints::default(), Instant::now());
        let says = |all: &mut Complaints| all.line(Topic::Bridge, "gone", now);
        assert_eq!(says(&mut all).as_deref(), Some("gone"));
        assert_eq!(says(&mut all), None);
        assert!(all.over(Topic::Bridge));
        assert!(!all.over(Topic::Bridge) && !all.over(Topic::Maps));
        assert_eq!(says(&mut all).as_deref(), Some("gone"));
    }

    #[test]
    fn a_flood_of_one_topic_hides_no_other() {
        let (mut all, now) = (Complaints::default(), Instant::now());
        let flood = |all: &mut Complaints, at: Instant| {
            let lines = (0..1000).map(|n| all.line(Topic::Hosts, &format!("wrong: {n}"), at));
            lines.flatten().collect::<Vec<_>>()
        };
        assert_eq!(flood(&mut all, now).len(), BURST as usize);
        // Two that take turns are one flood, and each is said though the other is as well.
        let mut turn = |topic| {
            let lines = (0..4).map(|n| all.line(topic, ["one", "two"][n % 2], now));
            lines.flatten().count()
        };
        assert_eq!((turn(Topic::Bridge), turn(Topic::Hosts)), (4, 0));
        let later = flood(&mut all, now + REFILL);
        assert_eq!(later, ["wrong: 0; 996 more such complaints were left out"]);
    }

    #[test]
    fn what_comes_and_goes_is_a_flood_too() {
        let (mut all, now) = (Complaints::default(), Instant::now());
        let lines = (0..100).filter(|_| {
            let said = all.line(Topic::Controller, "no answer", now).is_some();
            all.over(Topic::Controller);
            said
        });
        assert_eq!(lines.count(), BURST as usize);
    }
}
