//! The node's bounds for the bytes that producers retain, and for those that
//! pulls buffer.
//!
//! Each producer reserves for its whole ring when it opens, each pull for its
//! window and what may wait behind it. When there is no
//! room, the oldest of those that are closed and only linger go first; when
//! there is none, the new producer is refused and its writer takes another
//! road, so that the bound is kept whatever the number of writers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{NativeError, Result};

/// What a lingering producer does when its bytes are needed.
type GiveUp = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    held: u64,
    next: u64,
    lingering: VecDeque<(u64, GiveUp)>,
}

/// The bound of one node.
pub(crate) struct Budget {
    state: Mutex<State>,
    max_bytes: u64,
    way_out: &'static str,
}

/// A part of the bound; returned when dropped.
pub(crate) struct Share {
    budget: Arc<Budget>,
    bytes: u64,
    id: u64,
}

impl Budget {
    /// A bound; `way_out` is told to who finds no room.
    pub fn new(max_bytes: u64, way_out: &'static str) -> Arc<Self> {
        Arc::new(Budget {
            state: Mutex::default(),
            max_bytes,
            way_out,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes reserved now.
    pub fn held(&self) -> u64 {
        self.lock().held
    }

    /// Takes `most`, or an eighth of what is left if that is less, so that those
    /// who come later have some too, but never fewer than `least`.
    pub fn reserve_some(self: &Arc<Self>, most: u64, least: u64) -> Result<Share> {
        let left = self.max_bytes.saturating_sub(self.held());
        self.reserve((left / 8).clamp(least.min(most), most))
    }

    /// Takes a part of the bound.
    pub fn reserve(self: &Arc<Self>, bytes: u64) -> Result<Share> {
        loop {
            let mut state = self.lock();
            if state.held + bytes <= self.max_bytes {
                state.held += bytes;
                state.next += 1;
                let id = state.next;
                return Ok(Share {
                    budget: self.clone(),
                    bytes,
                    id,
                });
            }
            let Some((_, give_up)) = state.lingering.pop_front() else {
                let text = format!(
                    "{bytes} bytes more than the {} held are above the bound of {}; {}",
                    state.held, self.max_bytes, self.way_out
                );
                return Err(NativeError::NoRoom(text));
            };
            drop(state);
            give_up();
        }
    }
}

impl Share {
    /// How much it is.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// From here on the holder only lingers: `give_up` is called when the bytes
    /// are needed, and must drop this share.
    pub fn give_up_when_needed(&mut self, give_up: GiveUp) {
        self.budget.lock().lingering.push_back((self.id, give_up));
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = self.budget.lock();
        state.held -= self.bytes;
        let mine = state.lingering.iter().position(|(id, _)| *id == self.id);
        let give_up = mine.and_then(|at| state.lingering.remove(at));
        drop(state);
        drop(give_up);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_kept_and_lingerers_go_first() {
        let budget = Budget::new(100, "");
        let first = budget.reserve(60).unwrap();
        assert!(budget.reserve(60).is_err());
        let slot = Arc::new(Mutex::new(Some(first)));
        let mine = slot.clone();
        slot.lock()
            .unwrap()
            .as_mut()
            .unwrap()
            .give_up_when_needed(Box::new(move || {
                drop(mine.lock().unwrap().take());
            }));
        let second = budget.reserve(60).unwrap();
        assert_eq!(budget.held(), 60);
        assert!(
            slot.lock().unwrap().is_none(),
            "the lingering one was asked to go"
        );
        drop(second);
        assert_eq!(budget.held(), 0);
        assert!(budget.reserve(101).is_err());
    }

    #[test]
    fn those_who_come_later_get_less_until_there_is_too_little() {
        let budget = Budget::new(1000, "");
        let shares: Vec<_> = std::iter::from_fn(|| budget.reserve_some(110, 30).ok()).collect();
        let bytes: Vec<u64> = shares.iter().map(Share::bytes).collect();
        assert!(bytes.is_sorted_by(|a, b| a >= b), "{bytes:?}");
        assert_eq!((bytes[0], bytes.last()), (110, Some(&30)));
        assert_eq!(budget.held(), bytes.iter().sum::<u64>());
        assert!(budget.held() > 970 && budget.held() <= 1000);
        drop(shares);
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn one_that_ended_by_itself_is_not_asked() {
        let budget = Budget::new(10, "");
        let mut share = budget.reserve(10).unwrap();
        share.give_up_when_needed(Box::new(|| panic!("it is gone already")));
        drop(share);
        assert!(budget.reserve(10).is_ok());
    }
}
