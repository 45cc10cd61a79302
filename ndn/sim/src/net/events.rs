//! What happens next: by time, and in the order of putting down where times are equal.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The first thing on its way over this direction of a link comes out.
    Line(u32),
    /// The first thing that has overtaken others on it.
    Express(u32),
    /// The first message on its way over a connection arrives; connection `c` is `2c + 1` forward and `2c` back.
    Message(u32),
    /// A forwarder's deadline.
    Node(u32),
    /// A deadline of whoever drives the network.
    Timer(u64),
}

/// The queue of events.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    number: u64,
}

impl Events {
    pub(crate) fn push(&mut self, at: u64, event: Event) {
        self.number += 1;
        self.heap.push(Reverse((at, self.number, event)));
    }

    pub(crate) fn pop(&mut self) -> Option<(u64, Event)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_keep_their_order() {
        let mut events = Events::default();
        for (at, token) in [(5, 1), (3, 2), (5, 3), (3, 4), (5, 0)] {
            events.push(at, Event::Timer(token));
        }
        let order: Vec<_> = std::iter::from_fn(|| events.pop()).collect();
        let timer = |at, token| (at, Event::Timer(token));
        assert_eq!(
            order,
            [
                timer(3, 2),
                timer(3, 4),
                timer(5, 1),
                timer(5, 3),
                timer(5, 0)
            ]
        );
    }
}
