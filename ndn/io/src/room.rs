//! Room for what waits to be sent on all faces of a node together.
//!
//! A queue may be as long as the room that is left (the dynamic thresholds of Choudhury and Hahne, "Dynamic queue
//! length thresholds for shared-memory packet switches", 1998). So the longest queue is the first whose packets are
//! dropped, the bound is never passed, and there is always some room left for a face that has none yet: `n` faces that
//! take nothing hold equal shares in the end, and another such share is free. With room in plenty it is each face's own
//! bound that holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The room of one node. Only the node's own thread changes it.
#[derive(Debug)]
pub(crate) struct NodeRoom {
    capacity: usize,
    used: AtomicUsize,
    refused: AtomicU64,
}

impl NodeRoom {
    /// Room for `capacity` bytes.
    pub fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self {
            capacity,
            used: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
        })
    }

    /// For one face by itself, whose own bound will do.
    pub fn unbounded() -> Arc<Self> {
        Self::new(usize::MAX)
    }

    /// Bytes that may wait.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Bytes that wait.
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// Packets for which a face had room and the node had not.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// For one more queue.
    pub fn queue(self: &Arc<Self>) -> QueueRoom {
        QueueRoom {
            node: self.clone(),
            own: 0,
        }
    }
}

/// What one queue takes of the node's room; given back when the queue goes.
#[derive(Debug)]
pub(crate) struct QueueRoom {
    node: Arc<NodeRoom>,
    own: usize,
}

impl QueueRoom {
    /// Whether `len` bytes more find room; counted where they do not.
    pub fn ask(&self, len: usize) -> bool {
        let left = self.node.capacity.saturating_sub(self.node.used());
        let admitted = self.own.saturating_add(len) <= left;
        if !admitted {
            self.node.refused.store(self.node.refused() + 1, Relaxed);
        }
        admitted
    }

    /// Takes room, whether or not it was asked for.
    pub fn take(&mut self, bytes: usize) {
        self.own += bytes;
        self.node.used.store(self.node.used() + bytes, Relaxed);
    }

    /// Gives room back.
    pub fn give_back(&mut self, bytes: usize) {
        self.own -= bytes;
        self.node.used.store(self.node.used() - bytes, Relaxed);
    }
}

impl Drop for QueueRoom {
    fn drop(&mut self) {
        self.give_back(self.own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offers packets in turn to queues that send nothing, as long as any is let in.
    fn fill(queues: &mut [QueueRoom], len: usize) {
        let mut let_in = true;
        while let_in {
            let_in = false;
            for queue in queues.iter_mut() {
                if queue.ask(len) {
                    queue.take(len);
                    let_in = true;
                }
            }
        }
    }

    #[test]
    fn full_queues_have_equal_shares_and_one_more_is_left() {
        let node = NodeRoom::new(1_000_000);
        let mut queues: Vec<_> = (0..9).map(|_| node.queue()).collect();
        fill(&mut queues, 100);
        for queue in &queues {
            assert!((99_000..=101_000).contains(&queue.own), "{}", queue.own);
        }
        let mut late = [node.queue()];
        fill(&mut late, 100);
        assert!(late[0].own >= 49_000, "{}", late[0].own);
        assert!(node.used() <= node.capacity());
    }

    #[test]
    fn the_longest_queue_is_the_first_to_be_refused() {
        let node = NodeRoom::new(1_000);
        let (mut long, mut short) = (node.queue(), node.queue());
        long.take(400);
        assert!(long.ask(200));
        short.take(200);
        assert!(!long.ask(100), "400 of its own, and 400 are left");
        assert!(short.ask(100));
        assert_eq!(node.refused(), 1);
        long.give_back(300);
        assert!(long.ask(100));
    }

    #[test]
    fn a_queue_that_goes_gives_its_room_back() {
        let node = NodeRoom::new(1_000);
        let mut queue = node.queue();
        queue.take(700);
        assert_eq!(node.used(), 700);
        drop(queue);
        assert_eq!(node.used(), 0);
    }

    #[test]
    fn room_without_bound_refuses_nothing() {
        let node = NodeRoom::unbounded();
        let mut queue = node.queue();
        queue.take(1 << 40);
        assert!(queue.ask(1 << 40));
    }
}
