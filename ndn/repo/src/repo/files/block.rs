//! A block of a file's bytes: filled, written, hashed, and filled again.

use crate::disk::ALIGNMENT;

/// Bytes that are copied and hashed at once.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;

/// At most [`BLOCK_BYTES`] bytes. What was filled once is not zeroed again before the next filling. Where all of its place
/// is taken at once, it lies at a multiple of [`ALIGNMENT`].
#[derive(Debug, Default)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    /// Where in `bytes` it begins.
    start: usize,
    filled: usize,
    /// By how much it is shorter than others.
    short: usize,
}

impl Block {
    /// Bytes in it.
    pub fn len(&self) -> usize {
        self.filled
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Whether no more fit.
    pub fn is_full(&self) -> bool {
        self.filled == BLOCK_BYTES - self.short
    }

    /// The bytes in it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.filled]
    }

    /// Place for more: up to `most` bytes, or less where the block ends.
    pub fn space(&mut self, most: usize) -> &mut [u8] {
        let end = (BLOCK_BYTES - self.short).min(self.filled + most);
        if self.bytes.is_empty() && end == BLOCK_BYTES {
            self.take_place();
        }
        if self.bytes.len() < self.start + end {
            self.bytes.resize(self.start + end, 0);
        }
        &mut self.bytes[self.start + self.filled..self.start + end]
    }

    fn take_place(&mut self) {
        self.bytes = vec![0; BLOCK_BYTES + ALIGNMENT];
        // Where that can't be told, it is not aligned.
        self.start = self.bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
    }

    /// Takes all of its place at once. As the block at `offset` of a file it ends so that the next begins at a multiple of
    /// [`ALIGNMENT`]. Nothing is changed where something is in it.
    pub fn align(&mut self, offset: u64) {
        if self.filled > 0 {
            return;
        }
        if self.bytes.len() < BLOCK_BYTES + ALIGNMENT {
            self.take_place();
        }
        self.short = (offset % ALIGNMENT as u64) as usize;
    }

    /// The first `n` bytes of the space were filled.
    pub fn grow(&mut self, n: usize) {
        self.filled += n;
    }

    /// Takes as many of `bytes` as fit; tells how many.
    pub fn take(&mut self, bytes: &[u8]) -> usize {
        let place = self.space(bytes.len());
        let n = place.len();
        place.copy_from_slice(&bytes[..n]);
        self.grow(n);
        n
    }

    /// The last `n` bytes, or all where there are not so many, are not in it any more.
    pub fn give_back(&mut self, n: usize) {
        self.filled = self.filled.saturating_sub(n);
    }

    /// Empties it.
    pub fn clear(&mut self) {
        (self.filled, self.short) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_filled_to_its_end_and_no_further() {
        let mut block = Block::default();
        assert_eq!(block.take(b"abc"), 3);
        block.space(10)[0] = b'd';
        block.grow(1);
        assert_eq!(block.bytes(), b"abcd");
        assert_eq!(block.take(&vec![7; BLOCK_BYTES]), BLOCK_BYTES - 4);
        assert!(block.is_full() && block.space(1).is_empty());
        block.clear();
        assert!(block.is_empty());
        assert_eq!(block.take(b"x"), 1);
        assert_eq!(block.bytes(), b"x");
    }

    #[test]
    fn a_block_that_is_taken_as_a_whole_is_aligned() {
        let mut block = Block::default();
        assert_eq!(block.space(BLOCK_BYTES).len(), BLOCK_BYTES);
        block.grow(BLOCK_BYTES);
        assert!(block.is_full());
        assert!(block.bytes().as_ptr().addr().is_multiple_of(ALIGNMENT));
    }

    #[test]
    fn a_block_that_begins_elsewhere_ends_where_the_next_is_aligned() {
        let mut block = Block::default();
        block.take(&[1; 10]);
        block.align(10);
        assert_eq!(
            block.take(&[2; BLOCK_BYTES]),
            BLOCK_BYTES - 10,
            "it was begun"
        );
        block.clear();
        block.align(BLOCK_BYTES as u64 + 10);
        assert_eq!(block.take(&[3; 100]), 100);
        assert!(block.bytes().as_ptr().addr().is_multiple_of(ALIGNMENT));
        assert_eq!(block.take(&[3; BLOCK_BYTES]), BLOCK_BYTES - 110);
        assert!(block.is_full() && block.space(1).is_empty());
        block.clear();
        block.align(BLOCK_BYTES as u64 * 2);
        assert_eq!(block.take(&[4; BLOCK_BYTES]), BLOCK_BYTES);
    }
}
