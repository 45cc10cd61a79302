//! Numbered slots that are used again. Grows by chunks, so that growing copies nothing and stalls nobody.

/// Slots in chunks of 2^`SHIFT`. A freed slot keeps its value, so that its buffers can serve the next user.
#[derive(Debug)]
pub(crate) struct Slab<T, const SHIFT: u32> {
    chunks: Vec<Box<[T]>>,
    free: Vec<u32>,
    used: u32,
}

impl<T: Default, const SHIFT: u32> Slab<T, SHIFT> {
    const MASK: usize = (1 << SHIFT) - 1;

    pub(crate) fn new() -> Self {
        Slab {
            chunks: Vec::new(),
            free: Vec::new(),
            used: 0,
        }
    }

    /// A slot that nobody uses, the last freed one first: it is the likeliest to be in the processor's cache.
    #[inline]
    pub(crate) fn take(&mut self) -> u32 {
        if let Some(id) = self.free.pop() {
            return id;
        }
        let id = self.used;
        if (id as usize) >> SHIFT == self.chunks.len() {
            self.chunks
                .push((0..1usize << SHIFT).map(|_| T::default()).collect());
        }
        self.used += 1;
        id
    }

    /// Gives a slot back.
    #[inline]
    pub(crate) fn give_back(&mut self, id: u32) {
        self.free.push(id);
    }

    /// The slot's value; for any number that [`Slab::take`] ever returned.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> &T {
        &self.chunks[id as usize >> SHIFT][id as usize & Self::MASK]
    }

    /// As [`Slab::get`], to change it.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: u32) -> &mut T {
        &mut self.chunks[id as usize >> SHIFT][id as usize & Self::MASK]
    }

    /// The slot's value, if there ever was such a slot.
    #[inline]
    pub(crate) fn try_get(&self, id: u32) -> Option<&T> {
        self.chunks
            .get(id as usize >> SHIFT)?
            .get(id as usize & Self::MASK)
    }

    /// Numbers of all slots ever taken, free ones included.
    pub(crate) fn ids(&self) -> std::ops::Range<u32> {
        0..self.used
    }

    /// Bytes of memory held, not counting what the values hold.
    pub(crate) fn memory(&self) -> usize {
        (self.chunks.len() << SHIFT) * size_of::<T>() + self.free.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_again_and_keep_their_values() {
        let mut slab: Slab<Vec<u8>, 1> = Slab::new();
        let ids: Vec<u32> = (0..5).map(|_| slab.take()).collect();
        assert_eq!(ids, [0, 1, 2, 3, 4]);
        slab.get_mut(3).push(7);
        slab.give_back(3);
        assert_eq!(slab.take(), 3);
        assert_eq!(slab.get(3), &[7]);
        assert_eq!(slab.take(), 5);
        assert!(slab.try_get(100).is_none());
        assert_eq!(slab.ids(), 0..6);
    }
}
