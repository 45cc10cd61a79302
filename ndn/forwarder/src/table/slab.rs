//! Numbered slots that are used again. Grows by chunks, so that growing copies nothing and stalls nobody.
//!
//! Not `slab`: it copies all when it grows (over a second at a million entries) and drops what a freed slot could keep.

use super::prefetch::large_vec;

/// Slots in chunks, the first of 2^`SHIFT` slots and each later one twice as large as that before it. A freed slot
/// keeps its value, so that its buffers can serve the next user.
#[derive(Debug)]
pub(crate) struct Slab<T, const SHIFT: u32> {
    chunks: Vec<Vec<T>>,
    free: Vec<u32>,
    used: u32,
}

/// Chunk of a slot, and its place there.
#[inline]
fn place<const SHIFT: u32>(id: u32) -> (usize, usize) {
    let from_one = u64::from(id) + (1 << SHIFT);
    let chunk = from_one.ilog2();
    ((chunk - SHIFT) as usize, (from_one - (1 << chunk)) as usize)
}

impl<T: Default, const SHIFT: u32> Slab<T, SHIFT> {
    pub(crate) fn new() -> Self {
        Slab {
            chunks: Vec::new(),
            free: Vec::new(),
            used: 0,
        }
    }

    /// A slot that nobody uses, the last freed one first: it is the likeliest to be in the processor's cache.
    #[inline]
    pub(crate) fn allocate(&mut self) -> u32 {
        if let Some(id) = self.free.pop() {
            return id;
        }
        let id = self.used;
        let (chunk, _) = place::<SHIFT>(id);
        if chunk == self.chunks.len() {
            self.chunks.push(large_vec(1 << (SHIFT as usize + chunk)));
        }
        self.chunks[chunk].push(T::default());
        self.used += 1;
        id
    }

    /// Gives a slot back.
    #[inline]
    pub(crate) fn release(&mut self, id: u32) {
        self.free.push(id);
    }

    /// The slot's value; for any number that [`Slab::allocate`] ever returned.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> &T {
        let (chunk, at) = place::<SHIFT>(id);
        &self.chunks[chunk][at]
    }

    /// As [`Slab::get`], to change it.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: u32) -> &mut T {
        let (chunk, at) = place::<SHIFT>(id);
        &mut self.chunks[chunk][at]
    }

    /// The slot's value, if there ever was such a slot.
    #[inline]
    pub(crate) fn try_get(&self, id: u32) -> Option<&T> {
        let (chunk, at) = place::<SHIFT>(id);
        self.chunks.get(chunk)?.get(at)
    }

    /// Number of all slots ever taken, free ones included.
    pub(crate) fn len(&self) -> usize {
        self.used as usize
    }

    /// The value that the next slot taken has, if it is one that was freed.
    #[inline]
    pub(crate) fn next_free(&self) -> Option<&T> {
        self.free.last().map(|&id| self.get(id))
    }

    /// Calls `f` with the values of all free slots.
    pub(crate) fn for_free(&mut self, mut f: impl FnMut(&mut T)) {
        for &id in &self.free {
            let (chunk, at) = place::<SHIFT>(id);
            f(&mut self.chunks[chunk][at]);
        }
    }

    /// Numbers of all slots ever taken, free ones included.
    pub(crate) fn ids(&self) -> std::ops::Range<u32> {
        0..self.used
    }

    /// Bytes of memory used, not counting what the values hold.
    pub(crate) fn memory(&self) -> usize {
        self.used as usize * size_of::<T>() + self.free.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_again_and_keep_their_values() {
        let mut slab: Slab<Vec<u8>, 1> = Slab::new();
        let ids: Vec<u32> = (0..5).map(|_| slab.allocate()).collect();
        assert_eq!(ids, [0, 1, 2, 3, 4]);
        slab.get_mut(3).push(7);
        slab.release(3);
        assert_eq!(slab.allocate(), 3);
        assert_eq!(slab.get(3), &[7]);
        assert_eq!(slab.allocate(), 5);
        assert!(slab.try_get(6).is_none());
        assert!(slab.try_get(u32::MAX).is_none());
        assert_eq!(slab.ids(), 0..6);
    }

    #[test]
    fn every_slot_has_a_place_of_its_own() {
        let mut slab: Slab<u32, 3> = Slab::new();
        for n in 0..10_000 {
            let id = slab.allocate();
            *slab.get_mut(id) = n;
        }
        assert!((0..10_000).all(|n| *slab.get(n) == n));
    }
}
