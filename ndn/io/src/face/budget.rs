//! Bytes that all faces of a node share for one purpose: what waits to be sent, incomplete packets, faces themselves.
//!
//! A queue may be as long as the budget that is left (the dynamic thresholds of Choudhury and Hahne, "Dynamic queue
//! length thresholds for shared-memory packet switches", 1998). So the longest queue is the first whose packets are
//! dropped, the bound is never passed, and there is always something left for a face that has none yet: `n` faces that
//! take nothing hold equal shares in the end, and another such share is free. With budget in plenty it is each face's own
//! bound that holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// One budget of a node.
#[derive(Debug)]
pub(crate) struct Budget {
    capacity: usize,
    /// Several threads change it: else the node's own alone does, and needs no bus for it.
    is_shared: bool,
    used: AtomicUsize,
    refused: AtomicU64,
}

impl Budget {
    /// A budget of `capacity` bytes.
    pub fn new(capacity: usize) -> Arc<Self> {
        Self::of_loops(capacity, 1)
    }

    /// A budget of `capacity` bytes for the faces of so many loops together. Where there are several, what they take at
    /// the same time may pass it: by a packet of each, or a face.
    pub fn of_loops(capacity: usize, loops: usize) -> Arc<Self> {
        Arc::new(Self {
            capacity,
            is_shared: loops > 1,
            used: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
        })
    }

    /// Takes whatever is asked for: each face's own bound will do.
    pub fn unbounded() -> Arc<Self> {
        Self::new(usize::MAX)
    }

    /// Bytes that may be taken.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Bytes that are taken.
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// How often a face's own bound would have admitted what the budget did not.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    fn refuse(&self) {
        if self.is_shared {
            self.refused.fetch_add(1, Relaxed);
        } else {
            self.refused.store(self.refused() + 1, Relaxed);
        }
    }

    /// A share of `before` bytes is one of `after` now.
    fn change(&self, before: usize, after: usize) {
        if self.is_shared {
            // Wraps around where it shrinks.
            self.used.fetch_add(after.wrapping_sub(before), Relaxed);
        } else {
            self.used.store(self.used() - before + after, Relaxed);
        }
    }

    /// One more share; empty so far.
    pub fn share(self: &Arc<Self>) -> Share {
        Share {
            budget: self.clone(),
            own: 0,
        }
    }
}

/// What one face takes of the budget; given back when it goes.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    own: usize,
}

impl Share {
    /// Whether `len` bytes more are within the budget; counted where they are not.
    pub fn admits(&self, len: usize) -> bool {
        let left = self.budget.capacity.saturating_sub(self.budget.used());
        let admitted = self.own.saturating_add(len) <= left;
        if !admitted {
            self.budget.refuse();
        }
        admitted
    }

    /// Takes `bytes` more if there are so many left, whatever the share has already. False, and counted, if not.
    pub fn grows(&mut self, bytes: usize) -> bool {
        let grows = bytes <= self.allowance();
        if grows {
            self.set(self.own + bytes);
        } else {
            self.budget.refuse();
        }
        grows
    }

    /// The same, as long as half of the budget is left to others.
    pub fn grows_within_half(&mut self, bytes: usize) -> bool {
        self.grows_leaving(bytes, self.budget.capacity / 2)
    }

    /// The same, as long as an eighth of the budget is left to others.
    pub fn grows_within_most(&mut self, bytes: usize) -> bool {
        self.grows_leaving(bytes, self.budget.capacity / 8)
    }

    fn grows_leaving(&mut self, bytes: usize, left: usize) -> bool {
        let grows = bytes <= self.allowance().saturating_sub(left);
        if grows {
            self.set(self.own + bytes);
        } else {
            self.budget.refuse();
        }
        grows
    }

    /// Gives `bytes` back.
    pub fn shrinks(&mut self, bytes: usize) {
        self.set(self.own.saturating_sub(bytes));
    }

    /// Most bytes that may be held now.
    pub fn allowance(&self) -> usize {
        self.budget.capacity.saturating_sub(self.budget.used())
    }

    /// Says how many bytes are held now, whether or not they were admitted.
    pub fn set(&mut self, bytes: usize) {
        self.budget.change(self.own, bytes);
        self.own = bytes;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offers packets in turn to queues that send nothing, as long as any is let in.
    fn fill(queues: &mut [Share], len: usize) {
        let mut let_in = true;
        while let_in {
            let_in = false;
            for queue in queues.iter_mut() {
                if queue.admits(len) {
                    queue.set(queue.own + len);
                    let_in = true;
                }
            }
        }
    }

    #[test]
    fn full_queues_have_equal_shares_and_one_more_is_left() {
        let budget = Budget::new(1_000_000);
        let mut queues: Vec<_> = (0..9).map(|_| budget.share()).collect();
        fill(&mut queues, 100);
        for queue in &queues {
            assert!((99_000..=101_000).contains(&queue.own), "{}", queue.own);
        }
        let mut late = [budget.share()];
        fill(&mut late, 100);
        assert!(late[0].own >= 49_000, "{}", late[0].own);
        assert!(budget.used() <= budget.capacity());
    }

    #[test]
    fn the_longest_queue_is_the_first_to_be_refused() {
        let budget = Budget::new(1_000);
        let (mut long, mut short) = (budget.share(), budget.share());
        long.set(400);
        assert!(long.admits(200));
        short.set(200);
        assert!(!long.admits(100), "400 of its own, and 400 are left");
        assert!(short.admits(100));
        assert_eq!(budget.refused(), 1);
        long.set(100);
        assert!(long.admits(100));
    }

    #[test]
    fn a_queue_that_goes_gives_its_share_back() {
        let budget = Budget::new(1_000);
        let mut queue = budget.share();
        queue.set(700);
        assert_eq!(budget.used(), 700);
        drop(queue);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn half_of_a_budget_is_left_to_others() {
        let budget = Budget::new(1_000);
        let mut shares: Vec<_> = (0..9).map(|_| budget.share()).collect();
        let grown = shares
            .iter_mut()
            .filter_map(|share| share.grows_within_half(100).then_some(()));
        assert_eq!(grown.count(), 5);
        assert_eq!((budget.used(), budget.refused()), (500, 4));
        let mut share = budget.share();
        assert!(share.grows_within_most(300) && !share.grows_within_most(100));
        share.shrinks(300);
        assert!(budget.share().admits(400));
    }

    #[test]
    fn a_budget_without_bound_refuses_nothing() {
        let budget = Budget::new(usize::MAX);
        let mut queue = budget.share();
        queue.set(1 << 40);
        assert!(queue.admits(1 << 40));
    }
}
