//! Other mirroring switches at the other ends of this one's cables, as their LLDP says. Pure: time comes in from outside.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::frames::Origin;
use super::wire::{HeardAt, hex};

/// How often LLDP is sent.
pub const INTERVAL: Duration = Duration::from_secs(2);
/// News of one port are told no more often: whoever sends LLDP there could make up as much as they like.
const PAUSE: Duration = Duration::from_secs(1);
/// Three in a row are missing.
const TIMEOUT: Duration = Duration::from_secs(7);

/// What was heard, by port.
#[derive(Debug, Default)]
pub struct Neighbours(BTreeMap<u32, Neighbour>);

#[derive(Debug)]
struct Neighbour {
    frame: Vec<u8>,
    heard: Instant,
    /// Whom the controller has been told of, and when; none, where what it was told may say nothing to it.
    told: Option<Origin>,
    told_at: Instant,
}

impl Neighbours {
    /// LLDP came in at a port. Whether the controller should hear of it: it is of another switch, or port of it, than
    /// what it was told last.
    pub fn heard(&mut self, port: u32, origin: Origin, frame: &[u8], now: Instant) -> bool {
        let before = self.0.get(&port);
        let is_news = before.is_none_or(|before| {
            before.told != Some(origin) && (before.told.is_none() || now >= before.told_at + PAUSE)
        });
        let (told, told_at) = match before {
            Some(before) if !is_news => (before.told, before.told_at),
            _ => (Some(origin), now),
        };
        let neighbour = Neighbour {
            frame: frame.to_vec(),
            heard: now,
            told,
            told_at,
        };
        self.0.insert(port, neighbour);
        is_news
    }

    /// What is heard next is news: the controller may have another key now, by which it knows none of what it was told.
    pub fn tell_again(&mut self) {
        self.0
            .values_mut()
            .for_each(|neighbour| neighbour.told = None);
    }

    /// Those that are silent for too long, or whose port is none of these, are forgotten. Whether any was.
    pub fn forget(&mut self, is_port: impl Fn(u32) -> bool, now: Instant) -> bool {
        let before = self.0.len();
        let is_there = |neighbour: &Neighbour| now < neighbour.heard + TIMEOUT;
        self.0
            .retain(|port, neighbour| is_port(*port) && is_there(neighbour));
        self.0.len() < before
    }

    /// All of them, with what they said last.
    #[must_use]
    pub fn says(&self) -> Vec<HeardAt> {
        let all = self.0.iter();
        all.map(|(port, neighbour)| HeardAt {
            port: *port,
            frame: hex(&neighbour.frame),
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_is_news_once_and_its_last_word_is_kept() {
        let (mut all, now) = (Neighbours::default(), Instant::now());
        assert!(all.heard(3, [1; 12], &[1], now));
        assert!(!all.heard(3, [1; 12], &[2], now));
        let later = now + PAUSE;
        assert!(all.heard(3, [2; 12], &[3], later), "another switch");
        assert_eq!(all.says()[0].frame, "03");
        assert!(!all.heard(3, [1; 12], &[4], later), "not so soon");
        assert!(all.heard(3, [1; 12], &[5], later + PAUSE), "but then");
        all.tell_again();
        assert!(all.heard(3, [1; 12], &[6], later + PAUSE));
        assert!(!all.heard(3, [1; 12], &[7], later + 2 * PAUSE));
    }

    #[test]
    fn who_is_silent_is_forgotten() {
        let (mut all, now) = (Neighbours::default(), Instant::now());
        all.heard(3, [1; 12], &[1], now);
        all.heard(4, [1; 12], &[1], now + TIMEOUT / 2);
        assert!(!all.forget(|_| true, now + TIMEOUT / 2));
        assert!(all.forget(|_| true, now + TIMEOUT));
        assert_eq!(all.says().len(), 1);
        assert!(all.forget(|port| port != 4, now + TIMEOUT));
    }
}
