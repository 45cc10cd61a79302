//! One TCP connection in one direction, in units of a segment with its packet header: a window by CUBIC, losses found by
//! three later answers or a timeout, each unit answered by itself (as selective acknowledgements tell it).

use ndn_endpoint::{CongestionControl, Cubic, CubicConfig};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// Least retransmission timeout, as Linux has it.
const MIN_RTO: Duration = Duration::from_millis(200);
/// First one.
const FIRST_RTO: Duration = Duration::from_secs(1);
/// How many later answers make a loss.
const LATER_ANSWERS: u64 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Out,
    Lost,
    Answered,
}

#[derive(Debug, Clone, Copy)]
struct Unit {
    state: State,
    /// Its place among all that was sent.
    tx: u64,
    sent_at: Duration,
    again: bool,
}

/// Sender and receiver of a connection.
#[derive(Debug)]
pub(super) struct Stream {
    window: Cubic,
    most: usize,
    /// Unit of `units[0]`: the first that is not answered.
    base: u64,
    units: VecDeque<Unit>,
    lost: VecDeque<u64>,
    out: usize,
    tx: u64,
    answered_tx: u64,
    /// The newest when the window was last cut.
    recovery_tx: u64,
    srtt: Option<Duration>,
    backoff: u32,
    /// The earliest deadline in the queue of events.
    pub(super) timer: Option<Duration>,
    pub(super) retransmitted: u64,
    /// At the receiver: all below have come, and some beyond.
    came: u64,
    ahead: BTreeSet<u64>,
}

impl Stream {
    pub(super) fn new(most: usize) -> Self {
        Stream {
            window: Cubic::new(CubicConfig::default()),
            most: most.max(1),
            base: 0,
            units: VecDeque::new(),
            lost: VecDeque::new(),
            out: 0,
            tx: 0,
            answered_tx: 0,
            recovery_tx: 0,
            srtt: None,
            backoff: 0,
            timer: None,
            retransmitted: 0,
            came: 0,
            ahead: BTreeSet::new(),
        }
    }

    fn unit(&mut self, number: u64) -> Option<&mut Unit> {
        let at = number.checked_sub(self.base)?;
        self.units.get_mut(usize::try_from(at).ok()?)
    }

    /// The unit to send now, one lost before one of the `available` that were not sent yet.
    pub(super) fn next(&mut self, now: Duration, available: u64) -> Option<u64> {
        if self.out >= self.window.window().min(self.most) {
            return None;
        }
        let again = loop {
            let Some(number) = self.lost.pop_front() else {
                break None;
            };
            if self
                .unit(number)
                .is_some_and(|unit| unit.state == State::Lost)
            {
                break Some(number);
            }
        };
        let number = match again {
            Some(number) => number,
            None => {
                let new = self.base + self.units.len() as u64;
                if new >= available {
                    return None;
                }
                self.units.push_back(Unit {
                    state: State::Lost,
                    tx: 0,
                    sent_at: now,
                    again: false,
                });
                new
            }
        };
        self.tx += 1;
        self.out += 1;
        self.retransmitted += u64::from(again.is_some());
        let tx = self.tx;
        if let Some(unit) = self.unit(number) {
            *unit = Unit {
                state: State::Out,
                tx,
                sent_at: now,
                again: again.is_some(),
            };
        }
        Some(number)
    }

    /// The receiver has a unit.
    pub(super) fn on_answer(&mut self, now: Duration, number: u64) {
        let srtt = self.srtt;
        let Some(unit) = self.unit(number) else {
            return;
        };
        let (was, tx) = (unit.state, unit.tx);
        if was == State::Answered {
            return;
        }
        let sample = (!unit.again).then(|| now.saturating_sub(unit.sent_at));
        unit.state = State::Answered;
        if was == State::Out {
            self.out -= 1;
        }
        if let Some(rtt) = sample {
            self.srtt = Some(srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8));
        }
        self.backoff = 0;
        self.answered_tx = self.answered_tx.max(tx);
        self.window.on_data(now, self.srtt);
        while let Some(unit) = self.units.front()
            && unit.state == State::Answered
        {
            self.units.pop_front();
            self.base += 1;
        }
        self.find_losses(now);
    }

    fn find_losses(&mut self, now: Duration) {
        for at in 0..self.units.len() {
            let unit = self.units[at];
            if unit.state == State::Out && unit.tx + LATER_ANSWERS <= self.answered_tx {
                self.lose(at);
                if unit.tx > self.recovery_tx {
                    self.recovery_tx = self.tx;
                    self.window.on_congestion(now);
                }
            } else if unit.tx > self.answered_tx {
                break;
            }
        }
    }

    fn lose(&mut self, at: usize) {
        self.units[at].state = State::Lost;
        self.out -= 1;
        self.lost.push_back(self.base + at as u64);
    }

    fn rto(&self) -> Duration {
        let base = self.srtt.map_or(FIRST_RTO, |srtt| (srtt * 2).max(MIN_RTO));
        base * (1 << self.backoff.min(6))
    }

    /// When [`Stream::on_deadline`] is to be called.
    pub(super) fn deadline(&self) -> Option<Duration> {
        let out = self.units.iter().find(|unit| unit.state == State::Out)?;
        Some(out.sent_at + self.rto())
    }

    /// Gives up what was not answered in time.
    pub(super) fn on_deadline(&mut self, now: Duration) {
        if self.deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        for at in 0..self.units.len() {
            if self.units[at].state == State::Out {
                self.lose(at);
            }
        }
        self.recovery_tx = self.tx;
        self.backoff += 1;
        self.window.on_timeout(now);
    }

    /// A unit has come to the receiver: how many have come without a gap.
    pub(super) fn receive(&mut self, number: u64) -> u64 {
        if number >= self.came {
            self.ahead.insert(number);
        }
        while self.ahead.remove(&self.came) {
            self.came += 1;
        }
        self.came
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_gap_is_filled_and_the_window_cut_once() {
        let mut stream = Stream::new(100);
        let sent: Vec<u64> = std::iter::from_fn(|| stream.next(MS, 50)).collect();
        assert_eq!(sent, (0..10).collect::<Vec<_>>());
        for number in [2, 3, 4, 5] {
            stream.on_answer(2 * MS, number);
        }
        assert_eq!(stream.next(2 * MS, 50), Some(0));
        assert_eq!(stream.next(2 * MS, 50), Some(1));
        assert_eq!(stream.retransmitted, 2);
        assert_eq!(stream.window.window(), 8, "12 x 0.7, once");
    }

    #[test]
    fn silence_ends_by_the_timeout() {
        let mut stream = Stream::new(4);
        while stream.next(MS, 4).is_some() {}
        let deadline = stream.deadline().expect("units are out");
        assert_eq!(deadline, MS + FIRST_RTO);
        stream.on_deadline(deadline);
        assert_eq!(stream.next(deadline, 4), Some(0));
        assert_eq!(stream.next(deadline, 4), None, "the window starts over");
    }

    proptest! {
        /// Whatever is lost on the way, all units come, in order.
        #[test]
        fn all_comes_through(losses in prop::collection::vec(any::<bool>(), 0..200), total in 1u64..60) {
            let mut stream = Stream::new(16);
            let (mut now, mut came, mut sent) = (MS, 0, 0usize);
            for _ in 0..2000 {
                let units: Vec<u64> = std::iter::from_fn(|| stream.next(now, total)).collect();
                now += MS;
                for unit in units {
                    if !losses.get(sent).copied().unwrap_or(false) {
                        came = stream.receive(unit);
                        stream.on_answer(now, unit);
                    }
                    sent += 1;
                }
                if came == total { break; }
                if let Some(deadline) = stream.deadline() && stream.out > 0 {
                    now = now.max(deadline);
                    stream.on_deadline(now);
                }
            }
            prop_assert_eq!(came, total);
        }
    }
}
