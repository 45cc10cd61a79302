//! Which bytes of a block have been seen.

use std::collections::BTreeMap;

/// Disjoint ranges of bytes, by where they begin.
#[derive(Debug, Clone, Default)]
pub struct Spans(BTreeMap<u64, u64>);

impl Spans {
    /// How many bytes of `from..to` were seen before; from now on all are.
    pub fn see(&mut self, from: u64, to: u64) -> u64 {
        if from >= to {
            return 0;
        }
        let (mut first, mut last, mut seen) = (from, to, 0);
        let before = self.0.range(..=to).rev();
        let touching: Vec<(u64, u64)> = before
            .take_while(|&(_, &end)| end >= from)
            .map(|(&start, &end)| (start, end))
            .collect();
        for (start, end) in touching {
            seen += end.min(to).saturating_sub(start.max(from));
            first = first.min(start);
            last = last.max(end);
            self.0.remove(&start);
        }
        self.0.insert(first, last);
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_set_of_bytes(ranges in prop::collection::vec((0u64..60, 0u64..20), 0..60)) {
            let mut spans = Spans::default();
            let mut bytes = [false; 80];
            for (from, len) in ranges {
                let range = &mut bytes[from as usize..][..len as usize];
                let before = range.iter().filter(|&&seen| seen).count() as u64;
                range.fill(true);
                prop_assert_eq!(spans.see(from, from + len), before);
            }
        }
    }
}
