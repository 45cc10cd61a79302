//! A doubly linked list over slab slots, kept beside the slab: order of use for least-recently-used tables.
//!
//! Not `lru`: it has a hash table of its own and allocates each entry. A use among a million took 1.9 times as long.

use super::NIL;
use super::prefetch::{large_vec, prefetch_at};

#[derive(Debug, Clone, Copy)]
struct Links {
    prev: u32,
    next: u32,
}

/// Slots in order, newest first.
#[derive(Debug, Clone)]
pub(crate) struct List {
    links: Vec<Links>,
    head: u32,
    tail: u32,
}

impl List {
    pub(crate) fn new() -> Self {
        List {
            links: Vec::new(),
            head: NIL,
            tail: NIL,
        }
    }

    /// Bytes that a slot takes.
    pub(crate) const BYTES_PER_ENTRY: usize = size_of::<Links>();

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.links.capacity() * size_of::<Links>()
    }

    /// Puts a slot that is not in the list at the front.
    #[inline]
    pub(crate) fn push_front(&mut self, id: u32) {
        let at = id as usize;
        if at >= self.links.capacity() {
            let mut links = large_vec((at + 1).next_power_of_two());
            links.extend_from_slice(&self.links);
            self.links = links;
        }
        if at >= self.links.len() {
            self.links.resize(
                at + 1,
                Links {
                    prev: NIL,
                    next: NIL,
                },
            );
        }
        self.links[at] = Links {
            prev: NIL,
            next: self.head,
        };
        match self.head {
            NIL => self.tail = id,
            head => self.links[head as usize].prev = id,
        }
        self.head = id;
    }

    /// Takes a slot that is in the list out of it.
    #[inline]
    pub(crate) fn remove(&mut self, id: u32) {
        let Links { prev, next } = self.links[id as usize];
        match prev {
            NIL => self.head = next,
            prev => self.links[prev as usize].next = next,
        }
        match next {
            NIL => self.tail = prev,
            next => self.links[next as usize].prev = prev,
        }
    }

    /// Fetches ahead what [`List::prefetch_neighbours`] reads.
    #[inline]
    pub(crate) fn prefetch(&self, id: u32) {
        prefetch_at(&self.links, id as usize);
    }

    /// Fetches ahead what [`List::touch`] changes.
    #[inline]
    pub(crate) fn prefetch_neighbours(&self, id: u32) {
        if let Some(links) = self.links.get(id as usize) {
            prefetch_at(&self.links, links.prev as usize);
            prefetch_at(&self.links, links.next as usize);
        }
    }

    /// Moves a slot that is in the list to the front.
    #[inline]
    pub(crate) fn touch(&mut self, id: u32) {
        if self.head != id {
            self.remove(id);
            self.push_front(id);
        }
    }

    /// The slot at the end: the one longest unused.
    pub(crate) fn last(&self) -> Option<u32> {
        (self.tail != NIL).then_some(self.tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn agrees_with_a_deque(ops in prop::collection::vec((0u8..3, 0u32..10), 1..200)) {
            let mut list = List::new();
            let mut model: VecDeque<u32> = VecDeque::new();
            for (op, id) in ops {
                let held = model.iter().position(|&x| x == id);
                match (op, held) {
                    (0, None) => { list.push_front(id); model.push_front(id); }
                    (1, Some(at)) => { list.remove(id); model.remove(at); }
                    (2, Some(at)) => { list.touch(id); model.remove(at); model.push_front(id); }
                    _ => {}
                }
                prop_assert_eq!(list.last(), model.back().copied());
            }
            while let Some(id) = list.last() {
                prop_assert_eq!(model.pop_back(), Some(id));
                list.remove(id);
            }
            prop_assert!(model.is_empty());
        }
    }
}
