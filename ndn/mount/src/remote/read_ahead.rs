//! How far a reader's next bytes are fetched before it asks for them.
//!
//! Reads that go on where others ended double the distance; one that goes elsewhere takes it back to nothing. The system
//! itself reads a little ahead, by several calls at once that come in any order: what lies near the end of the last one
//! goes on with it.

/// Distance after the first read that goes on where another ended.
const FIRST: u64 = 128 << 10;
/// How far from the end of the last read another may begin and still go on with it.
const NEAR: u64 = 1 << 20;

/// One reader's way through a file.
#[derive(Debug)]
pub struct ReadAhead {
    /// Where the furthest read of those in order ended.
    end: u64,
    /// Bytes beyond it that are fetched.
    distance: u64,
    most: u64,
}

impl ReadAhead {
    /// A reader at the beginning of a file, for whom at most `most` bytes are fetched ahead.
    pub fn new(most: u64) -> Self {
        Self {
            end: 0,
            distance: 0,
            most,
        }
    }

    /// It reads `len` bytes at `offset`. Tells up to which byte, not counting that one, is to be fetched.
    pub fn on_read(&mut self, offset: u64, len: u64) -> u64 {
        let end = offset.saturating_add(len);
        let goes_on = offset.abs_diff(self.end) <= NEAR;
        if !goes_on {
            (self.end, self.distance) = (end, 0);
        } else if end > self.end {
            // The first read of all tells nothing yet.
            if self.end > 0 {
                self.distance = (self.distance * 2).clamp(FIRST.min(self.most), self.most);
            }
            self.end = end;
        }
        end.max(self.end.saturating_add(self.distance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    #[test]
    fn grows_while_reads_are_in_order() {
        let mut ahead = ReadAhead::new(4 * MIB);
        let step = 128 * KIB;
        let distances: Vec<u64> = (0..9)
            .map(|n| ahead.on_read(n * step, step) - (n + 1) * step)
            .collect();
        let wanted = [0, 128, 256, 512, 1024, 2048, 4096, 4096, 4096].map(|kib| kib * KIB);
        assert_eq!(distances, wanted);
    }

    #[test]
    fn one_read_elsewhere_ends_it() {
        let mut ahead = ReadAhead::new(4 * MIB);
        for n in 0..6 {
            ahead.on_read(n * 4096, 4096);
        }
        assert_eq!(ahead.on_read(500 * MIB, 4096), 500 * MIB + 4096);
        assert_eq!(ahead.on_read(90 * MIB, 4096), 90 * MIB + 4096);
        assert_eq!(
            ahead.on_read(90 * MIB + 4096, 4096),
            90 * MIB + 8192 + 128 * KIB
        );
    }

    #[test]
    fn calls_at_once_come_in_any_order() {
        let mut ahead = ReadAhead::new(4 * MIB);
        for n in [0, 2, 1, 3, 5, 4, 7, 6] {
            ahead.on_read(n * 128 * KIB, 128 * KIB);
        }
        assert!(ahead.distance >= MIB, "{}", ahead.distance);
        // One that comes late asks for no less than was asked for.
        assert_eq!(
            ahead.on_read(4 * 128 * KIB, 128 * KIB),
            MIB + ahead.distance
        );
    }

    proptest! {
        #[test]
        fn always_what_is_read_and_never_more_than_allowed(
            most in 0..64 * MIB,
            reads in prop::collection::vec((any::<u64>(), 0..4 * MIB), 1..50),
        ) {
            let mut ahead = ReadAhead::new(most);
            for (offset, len) in reads {
                let upto = ahead.on_read(offset, len);
                prop_assert!(upto >= offset.saturating_add(len));
                prop_assert!(upto <= offset.saturating_add(len).saturating_add(NEAR + 4 * MIB + most));
            }
        }
    }
}
