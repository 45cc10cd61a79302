//! The node's bound for the bytes that producers retain.
//!
//! Each producer reserves for its whole ring when it opens. When there is no
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
pub(crate) struct Retention {
    state: Mutex<State>,
    max_bytes: u64,
}

/// A part of the bound; returned when dropped.
pub(crate) struct Share {
    retention: Arc<Retention>,
    bytes: u64,
    id: u64,
}

impl Retention {
    pub fn new(max_bytes: u64) -> Arc<Self> {
        Arc::new(Retention {
            state: Mutex::default(),
            max_bytes,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes reserved now.
    pub fn held(&self) -> u64 {
        self.lock().held
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
                    retention: self.clone(),
                    bytes,
                    id,
                });
            }
            let Some((_, give_up)) = state.lingering.pop_front() else {
                let text = format!(
                    "retained segments: {bytes} bytes more than the {} held are above the bound of {}; \
                     fewer writers at once, a lower trunkline.ndn.retain.segments, or more retain_bytes",
                    state.held, self.max_bytes
                );
                return Err(NativeError::NoRoom(text));
            };
            drop(state);
            give_up();
        }
    }
}

impl Share {
    /// From here on the holder only lingers: `give_up` is called when the bytes
    /// are needed, and must drop this share.
    pub fn give_up_when_needed(&mut self, give_up: GiveUp) {
        self.retention
            .lock()
            .lingering
            .push_back((self.id, give_up));
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = self.retention.lock();
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
        let retention = Retention::new(100);
        let first = retention.reserve(60).unwrap();
        assert!(retention.reserve(60).is_err());
        let slot = Arc::new(Mutex::new(Some(first)));
        let mine = slot.clone();
        slot.lock()
            .unwrap()
            .as_mut()
            .unwrap()
            .give_up_when_needed(Box::new(move || {
                drop(mine.lock().unwrap().take());
            }));
        let second = retention.reserve(60).unwrap();
        assert_eq!(retention.held(), 60);
        assert!(
            slot.lock().unwrap().is_none(),
            "the lingering one was asked to go"
        );
        drop(second);
        assert_eq!(retention.held(), 0);
        assert!(retention.reserve(101).is_err());
    }

    #[test]
    fn one_that_ended_by_itself_is_not_asked() {
        let retention = Retention::new(10);
        let mut share = retention.reserve(10).unwrap();
        share.give_up_when_needed(Box::new(|| panic!("it is gone already")));
        drop(share);
        assert!(retention.reserve(10).is_ok());
    }
}
