//! What the loop does later, by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use ndn_forwarder::FaceId;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A waiting face tries again to connect.
    Connect(FaceId),
    /// An attempt to connect has taken too long.
    ConnectTimeout(FaceId, u64),
    /// An opened UDP face says hello.
    Hello(FaceId),
    /// An on-demand UDP face may have been idle for long.
    Idle(FaceId),
    /// Fragments, or the beginning of a large packet, may have waited for the rest for too long.
    Link(FaceId),
    /// The listener in this slot had no room for a peer; there may be some now.
    Accept(usize),
    /// The oldest handshake of a peer may have taken too long.
    Handshakes,
    /// Log lines were left out: it is time to say how many.
    Lines,
}

/// Timers by time. They are not cancelled: whoever they concern looks whether they still do.
pub(super) struct Timers {
    pub heap: BinaryHeap<Reverse<(Duration, u64, Timer)>>,
    pub issued: u64,
}

impl Timers {
    pub fn set(&mut self, at: Duration, timer: Timer) {
        self.issued += 1;
        self.heap.push(Reverse((at, self.issued, timer)));
    }

    pub fn next(&self) -> Option<Duration> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    pub fn pop(&mut self, now: Duration) -> Option<Timer> {
        self.next().filter(|at| *at <= now)?;
        self.heap.pop().map(|Reverse((.., timer))| timer)
    }
}
