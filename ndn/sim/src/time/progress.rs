//! Transfers that share links, and when each is done.
//!
//! A transfer has its fair share of the links that it crosses, from one change of who transfers to the next. While few
//! are under way shares are computed anew at every change. Of many, what changes within a small part of a transfer's
//! time counts together: a transfer that ends in between leaves its share unused for so long, and one that begins waits.

use super::share::{Shares, Use};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Up to so many transfers shares are exact at any moment.
const EXACT: usize = 256;

/// What happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// A transfer is done.
    Done(u64),
    /// A time that was asked for has come.
    Timer(u64),
}

#[derive(Debug)]
struct Transfer {
    token: u64,
    crossed: Box<[Use]>,
    bits: f64,
    left: f64,
    rate: f64,
}

/// Something at a time; the earliest is the greatest, for the heap, and of equal ones the first put down.
#[derive(Debug, Clone, Copy, PartialEq)]
struct At {
    time: f64,
    number: u64,
}

impl Eq for At {}

impl Ord for At {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_time = other.time.total_cmp(&self.time);
        by_time.then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for At {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Transfers under way, and a clock in seconds.
#[derive(Debug)]
pub struct Progress {
    shares: Shares,
    capacity: Vec<f64>,
    now: f64,
    /// Part of a transfer's time within which changes count together.
    part: f64,
    transfers: Vec<Option<Transfer>>,
    under_way: usize,
    /// When those that have a share end; numbers are places among the transfers.
    ends: BinaryHeap<At>,
    timers: BinaryHeap<At>,
    timer_tokens: Vec<u64>,
    /// When shares were computed, when they will be again, and after how long a wait.
    shared_at: f64,
    share_at: Option<f64>,
    wait: f64,
    /// For each link what transfers have of it since then, and how many cross it now.
    load: Vec<f64>,
    crossing: Vec<u32>,
    rates: Vec<f64>,
}

impl Progress {
    /// Nothing under way, over links of these capacities in bits a second. `part` is the part of a transfer's time
    /// within which changes count together where there are many; 0 for exact shares.
    pub fn new(capacity: Vec<f64>, part: f64) -> Self {
        Progress {
            shares: Shares::new(capacity.clone()),
            load: vec![0.0; capacity.len()],
            crossing: vec![0; capacity.len()],
            capacity,
            now: 0.0,
            part,
            transfers: Vec::new(),
            under_way: 0,
            ends: BinaryHeap::new(),
            timers: BinaryHeap::new(),
            timer_tokens: Vec::new(),
            shared_at: 0.0,
            share_at: None,
            wait: 0.0,
            rates: Vec::new(),
        }
    }

    /// The time, in seconds.
    pub fn now(&self) -> f64 {
        self.now
    }

    /// Begins to transfer so many bits over links. What crosses none is done at once.
    pub fn begin(&mut self, token: u64, crossed: Box<[Use]>, bits: f64) {
        for crossing in &crossed {
            self.crossing[crossing.line as usize] += crossing.times;
        }
        self.transfers.push(Some(Transfer {
            token,
            crossed,
            bits,
            left: bits,
            rate: 0.0,
        }));
        self.under_way += 1;
        self.changed();
    }

    /// Asks for [`Happening::Timer`] after so many seconds.
    pub fn set_timer(&mut self, after: f64, token: u64) {
        self.timers.push(At {
            time: self.now + after,
            number: self.timer_tokens.len() as u64,
        });
        self.timer_tokens.push(token);
    }

    /// How often transfers under way cross a link that is full; 0 where it has room.
    pub fn crossing_full(&self, line: u32) -> u32 {
        let at = line as usize;
        if self.load[at] >= self.capacity[at] * (1.0 - 1e-6) {
            self.crossing[at]
        } else {
            0
        }
    }

    /// What happens next; `None` when nothing will any more.
    pub fn next_happening(&mut self) -> Option<Happening> {
        loop {
            let time = |heap: &BinaryHeap<At>| heap.peek().map_or(f64::INFINITY, |at| at.time);
            let (end, timer) = (time(&self.ends), time(&self.timers));
            let share = self.share_at.unwrap_or(f64::INFINITY);
            if share < end && share < timer {
                self.now = share;
                self.share();
            } else if end <= timer {
                let At { time, number } = self.ends.pop()?;
                self.now = time;
                if let Some(token) = self.end(number as usize) {
                    return Some(Happening::Done(token));
                }
            } else {
                let At { time, number } = self.timers.pop()?;
                self.now = time;
                return Some(Happening::Timer(self.timer_tokens[number as usize]));
            }
        }
    }

    fn end(&mut self, place: usize) -> Option<u64> {
        let transfer = self.transfers[place].take()?;
        for crossing in &transfer.crossed {
            self.crossing[crossing.line as usize] -= crossing.times;
        }
        self.under_way -= 1;
        self.changed();
        Some(transfer.token)
    }

    fn changed(&mut self) {
        let wait = if self.under_way <= EXACT {
            0.0
        } else {
            self.wait
        };
        let at = self.now + wait;
        self.share_at = Some(self.share_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// Gives each transfer its share from now on.
    fn share(&mut self) {
        let passed = self.now - self.shared_at;
        self.shared_at = self.now;
        self.share_at = None;
        self.transfers.retain(Option::is_some);
        for transfer in self.transfers.iter_mut().flatten() {
            if transfer.rate > 0.0 {
                transfer.left = (transfer.left - transfer.rate * passed).max(0.0);
            }
        }
        let crossed: Vec<&[Use]> = self
            .transfers
            .iter()
            .flatten()
            .map(|t| &*t.crossed)
            .collect();
        self.shares.compute(&crossed, &mut self.rates);
        self.load.fill(0.0);
        let mut ends = std::mem::take(&mut self.ends).into_vec();
        ends.clear();
        // How many would end in a second, if all went on as now.
        let mut a_second = 0.0;
        for (place, transfer) in self.transfers.iter_mut().enumerate() {
            let (Some(transfer), rate) = (transfer, self.rates[place]) else {
                continue;
            };
            transfer.rate = rate;
            if rate.is_finite() && transfer.bits > 0.0 {
                a_second += rate / transfer.bits;
            }
            for crossing in &transfer.crossed {
                self.load[crossing.line as usize] += f64::from(crossing.times) * rate;
            }
            ends.push(At {
                time: self.now
                    + if rate.is_finite() {
                        transfer.left / rate
                    } else {
                        0.0
                    },
                number: place as u64,
            });
        }
        self.ends = ends.into();
        self.wait = if a_second > 0.0 {
            self.part * self.under_way as f64 / a_second
        } else {
            0.0
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn over(lines: &[u32]) -> Box<[Use]> {
        lines.iter().map(|&line| Use { line, times: 1 }).collect()
    }

    fn ends(progress: &mut Progress) -> Vec<(u64, f64)> {
        let mut ends = Vec::new();
        while let Some(happening) = progress.next_happening() {
            if let Happening::Done(token) = happening {
                ends.push((token, progress.now()));
            }
        }
        ends
    }

    #[test]
    fn who_is_left_takes_what_becomes_free() {
        // Two over a link of 10 bits a second: 20 bits are done at 4 s, the other's 60 have 40 left, at 10 each.
        let mut progress = Progress::new(vec![10.0], 0.0);
        progress.begin(1, over(&[0]), 20.0);
        progress.begin(2, over(&[0]), 60.0);
        assert_eq!(ends(&mut progress), [(1, 4.0), (2, 8.0)]);
    }

    #[test]
    fn who_comes_later_takes_part() {
        let mut progress = Progress::new(vec![10.0], 0.0);
        progress.begin(1, over(&[0]), 40.0);
        progress.set_timer(2.0, 7);
        assert_eq!(progress.next_happening(), Some(Happening::Timer(7)));
        assert_eq!((progress.now(), progress.crossing_full(0)), (2.0, 1));
        progress.begin(2, over(&[0]), 20.0);
        progress.begin(3, over(&[]), 1e9);
        assert_eq!(ends(&mut progress), [(3, 2.0), (1, 6.0), (2, 6.0)]);
        assert_eq!(progress.crossing_full(0), 0);
    }

    proptest! {
        /// A link that is never idle is done when it has carried everything, however shares are computed.
        #[test]
        fn a_full_link_carries_everything(bits in prop::collection::vec(1.0f64..1e6, 1..600), part in 0.0f64..0.05) {
            let mut progress = Progress::new(vec![1e3], part);
            for (token, bits) in bits.iter().enumerate() {
                progress.begin(token as u64, over(&[0]), *bits);
            }
            let ends = ends(&mut progress);
            prop_assert_eq!(ends.len(), bits.len());
            let least = bits.iter().sum::<f64>() / 1e3;
            let last = ends.last().map_or(0.0, |&(_, at)| at);
            prop_assert!(last >= least * (1.0 - 1e-9), "{} before {}", last, least);
            // What ended leaves its share unused for a part of a transfer's time, and not longer.
            prop_assert!(last <= least * (1.0 + 1e-9 + 2.0 * part), "{} long after {}", last, least);
        }
    }
}
