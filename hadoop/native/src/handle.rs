//! Handles: the longs that Java holds in place of pointers.
//!
//! A handle is a slot number and the slot's generation. The generation grows
//! each time the slot is emptied, so a handle that outlived its object is
//! recognised and never reaches memory: use after close is an error, a second
//! close finds nothing.

use std::sync::{PoisonError, RwLock};

/// Most slots: the slot number has 32 bits, one value is kept for "no handle".
const MAX_SLOTS: usize = u32::MAX as usize - 1;
/// Generations wrap below the sign bit, so that handles are positive in Java.
const GENERATION_MASK: u32 = 0x7fff_ffff;

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

/// Objects by handle. Cheap to read from many threads.
pub struct Registry<T> {
    inner: RwLock<Slots<T>>,
}

impl<T: Clone> Registry<T> {
    /// An empty registry.
    pub const fn new() -> Self {
        Registry {
            inner: RwLock::new(Slots {
                slots: Vec::new(),
                free: Vec::new(),
            }),
        }
    }

    /// Keeps `value` and gives its handle: positive, never 0. `None` when all
    /// slots are taken.
    pub fn insert(&self, value: T) -> Option<i64> {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        let index = match inner.free.pop() {
            Some(index) => index,
            None if inner.slots.len() < MAX_SLOTS => {
                inner.slots.push(Slot {
                    generation: 1,
                    value: None,
                });
                (inner.slots.len() - 1) as u32
            }
            None => return None,
        };
        let slot = &mut inner.slots[index as usize];
        slot.value = Some(value);
        Some((i64::from(slot.generation) << 32) | (i64::from(index) + 1))
    }

    /// The object of a handle, `None` when the handle is stale or foreign.
    pub fn get(&self, handle: i64) -> Option<T> {
        let (index, generation) = split(handle)?;
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        let slot = inner.slots.get(index)?;
        if slot.generation != generation {
            return None;
        }
        slot.value.clone()
    }

    /// Takes the object out; its handle is stale from here on.
    pub fn remove(&self, handle: i64) -> Option<T> {
        let (index, generation) = split(handle)?;
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        let slot = inner.slots.get_mut(index)?;
        if slot.generation != generation {
            return None;
        }
        let value = slot.value.take()?;
        slot.generation = match (slot.generation + 1) & GENERATION_MASK {
            0 => 1,
            next => next,
        };
        inner.free.push(index as u32);
        Some(value)
    }

    /// Takes out every object that `matches`.
    pub fn remove_where(&self, matches: impl Fn(&T) -> bool) -> Vec<T> {
        let handles: Vec<i64> = {
            let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
            let held = inner.slots.iter().enumerate();
            held.filter(|(_, slot)| slot.value.as_ref().is_some_and(&matches))
                .map(|(index, slot)| (i64::from(slot.generation) << 32) | (index as i64 + 1))
                .collect()
        };
        handles.into_iter().filter_map(|h| self.remove(h)).collect()
    }
}

impl<T: Clone> Default for Registry<T> {
    fn default() -> Self {
        Self::new()
    }
}

fn split(handle: i64) -> Option<(usize, u32)> {
    let index = (handle & 0xffff_ffff) as usize;
    let generation = (handle >> 32) as u32;
    if handle <= 0 || index == 0 {
        return None;
    }
    Some((index - 1, generation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handle_reads_back_and_goes_stale() {
        let registry = Registry::new();
        let a = registry.insert("a").unwrap();
        let b = registry.insert("b").unwrap();
        assert!(a > 0 && b > 0 && a != b);
        assert_eq!(registry.get(a), Some("a"));
        assert_eq!(registry.remove(a), Some("a"));
        assert_eq!(registry.get(a), None, "use after close");
        assert_eq!(registry.remove(a), None, "second close");
        let c = registry.insert("c").unwrap();
        assert_ne!(a, c, "a slot that is used again has a new generation");
        assert_eq!(registry.get(a), None);
        assert_eq!(registry.get(c), Some("c"));
        assert_eq!(registry.get(b), Some("b"));
    }

    #[test]
    fn foreign_numbers_find_nothing() {
        let registry = Registry::new();
        registry.insert(1).unwrap();
        for handle in [0, -1, i64::MIN, i64::MAX, 1, 1 << 32, (1 << 32) | 99] {
            assert_eq!(registry.get(handle), None, "{handle}");
            assert_eq!(registry.remove(handle), None, "{handle}");
        }
    }

    #[test]
    fn remove_where_takes_all_that_match() {
        let registry = Registry::new();
        let handles: Vec<i64> = (0..6).map(|n| registry.insert(n).unwrap()).collect();
        let mut gone = registry.remove_where(|n| n % 2 == 0);
        gone.sort_unstable();
        assert_eq!(gone, [0, 2, 4]);
        assert_eq!(registry.get(handles[0]), None);
        assert_eq!(registry.get(handles[1]), Some(1));
    }

    #[test]
    fn many_threads_open_and_close() {
        let registry = Registry::new();
        std::thread::scope(|scope| {
            for t in 0..4u64 {
                let registry = &registry;
                scope.spawn(move || {
                    for n in 0..2000u64 {
                        let value = t * 10_000 + n;
                        let handle = registry.insert(value).unwrap();
                        assert_eq!(registry.get(handle), Some(value));
                        assert_eq!(registry.remove(handle), Some(value));
                        assert_eq!(registry.get(handle), None);
                    }
                });
            }
        });
    }
}
