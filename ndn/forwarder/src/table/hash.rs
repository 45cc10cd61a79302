//! Hashes of a name and of all its prefixes, in one pass over its bytes.
//!
//! Keyed, so that a stranger cannot choose names that collide: each step multiplies two halves of state and input,
//! both masked by secret keys, and folds the 128-bit product. Not for signatures; tables compare names as well.
//!
//! Not `rustc-hash`, which has no key, nor `foldhash`, most of whose key is fixed unless a process leaks memory for it.

use ndn_packet::{NameRef, tlv};

/// The secret of one forwarder's hashes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HashKey {
    start: u64,
    low: u64,
    high: u64,
    last: u64,
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

#[inline]
fn read8(bytes: &[u8], at: usize) -> u64 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |b| u64::from_le_bytes(*b))
}

#[inline]
fn read4(bytes: &[u8], at: usize) -> u64 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |b| u64::from(u32::from_le_bytes(*b)))
}

impl HashKey {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        HashKey {
            start: random.u64(..),
            low: random.u64(..),
            high: random.u64(..),
            last: random.u64(..) | 1,
        }
    }

    /// Takes one component (type, length and value) into the state.
    #[inline]
    fn absorb(&self, state: u64, tlv: &[u8]) -> u64 {
        let mut state = state ^ (tlv.len() as u64).wrapping_mul(self.last);
        let mut rest = tlv;
        while rest.len() > 16 {
            state = fold(read8(rest, 0) ^ state, read8(rest, 8) ^ self.high) ^ self.low;
            rest = &rest[16..];
        }
        let (a, b) = match rest.len() {
            8..=16 => (read8(rest, 0), read8(rest, rest.len() - 8)),
            4..=7 => (read4(rest, 0), read4(rest, rest.len() - 4)),
            1..=3 => (
                u64::from(rest[0]) | u64::from(rest[rest.len() / 2]) << 8,
                u64::from(rest[rest.len() - 1]),
            ),
            _ => (0, 0),
        };
        fold(a ^ state, b ^ self.high) ^ self.low
    }

    #[inline]
    fn finish(&self, state: u64) -> u64 {
        fold(state ^ self.high, self.last)
    }

    /// A hash of two numbers.
    #[inline]
    pub(crate) fn pair(&self, a: u64, b: u64) -> u64 {
        self.finish(fold(a ^ self.start, b ^ self.high))
    }

    /// The hash of the first `most` components of a name, or of all but its last one where it has no more: an implicit
    /// digest behind that is left aside. Reads no more of the name than that.
    #[inline]
    pub(crate) fn first_components(&self, name: NameRef<'_>, most: usize) -> u64 {
        let mut rest = name.value();
        let mut state = self.start;
        for _ in 0..most {
            let Ok((_, len, header)) = tlv::read_header(rest) else {
                break;
            };
            // Checked, like all below: a packet used where its lender has it may be written to meanwhile.
            let Some((component, behind)) =
                rest.split_at_checked(header.saturating_add(len as usize))
            else {
                break;
            };
            if behind.is_empty() || is_digest(behind) {
                break;
            }
            state = self.absorb(state, component);
            rest = behind;
        }
        self.finish(state)
    }

    /// The hash of a whole name.
    #[cfg(test)]
    pub(crate) fn name(&self, name: NameRef<'_>) -> u64 {
        let mut hashes = NameHashes::default();
        hashes.push(self, name);
        hashes.last(name).full()
    }
}

/// Whether these bytes of a name are an implicit digest alone: type 1, length 32 is the only form of such a component.
#[inline]
pub(crate) fn is_digest(component: &[u8]) -> bool {
    component.len() == 34 && component[0] == 1
}

/// Room for the hashes of the names of a burst; filled anew for each burst without allocating.
#[derive(Debug, Default)]
pub(crate) struct NameHashes {
    steps: Vec<Step>,
}

/// Where a prefix ends and what it hashes to.
#[derive(Debug, Clone, Copy)]
struct Step {
    hash: u64,
    end: u32,
}

impl NameHashes {
    pub(crate) fn clear(&mut self) {
        self.steps.clear();
    }

    /// Hashes a name and all its prefixes; returns where they lie, for [`NameHashes::get`].
    #[inline]
    pub(crate) fn push(&mut self, key: &HashKey, name: NameRef<'_>) -> (u32, u32) {
        let value = name.value();
        let first = self.steps.len();
        let mut state = key.start;
        self.steps.push(Step {
            hash: key.finish(state),
            end: 0,
        });
        let mut start = 0;
        while let Ok((_, len, header)) = tlv::read_header(&value[start..]) {
            let end = (start + header).saturating_add(len as usize);
            let Some(component) = value.get(start..end) else {
                break;
            };
            state = key.absorb(state, component);
            self.steps.push(Step {
                hash: key.finish(state),
                end: end as u32,
            });
            start = end;
        }
        (first as u32, self.steps.len() as u32)
    }

    /// The hashed name at a place that [`NameHashes::push`] returned for it.
    pub(crate) fn get<'a>(&'a self, (first, end): (u32, u32), name: NameRef<'a>) -> HashedName<'a> {
        HashedName {
            value: name.value(),
            steps: &self.steps[first as usize..end as usize],
        }
    }

    /// The name, when it is the only one hashed.
    pub(crate) fn last<'a>(&'a self, name: NameRef<'a>) -> HashedName<'a> {
        HashedName {
            value: name.value(),
            steps: &self.steps,
        }
    }
}

/// A name with the hashes of all its prefixes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HashedName<'a> {
    value: &'a [u8],
    /// One for each prefix, the empty one first.
    steps: &'a [Step],
}

impl<'a> HashedName<'a> {
    /// Number of components.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.steps.len() - 1
    }

    /// Hash of the first `n` components.
    #[inline]
    pub(crate) fn hash(&self, n: usize) -> u64 {
        self.steps[n].hash
    }

    /// Hash of the whole name.
    #[inline]
    pub(crate) fn full(&self) -> u64 {
        self.steps[self.steps.len() - 1].hash
    }

    /// Bytes of the first `n` components.
    #[inline]
    pub(crate) fn prefix(&self, n: usize) -> &'a [u8] {
        &self.value[..self.steps[n].end as usize]
    }

    /// Bytes of the whole name.
    #[inline]
    pub(crate) fn value(&self) -> &'a [u8] {
        self.value
    }

    /// The name without its last `k` components.
    pub(crate) fn without_last(&self, k: usize) -> HashedName<'a> {
        let n = self.len().saturating_sub(k);
        HashedName {
            value: self.prefix(n),
            steps: &self.steps[..=n],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndn_packet::Name;

    #[test]
    fn a_prefix_hashes_as_the_name_that_it_is() {
        let key = HashKey::new(1);
        let name: Name = "/hadoop/blocks/BP-1-a-very-long-pool-name-of-many-bytes/v=3/seg=70000"
            .parse()
            .unwrap();
        let mut hashes = NameHashes::default();
        hashes.push(&key, name.as_ref());
        let hashed = hashes.last(name.as_ref());
        assert_eq!(hashed.len(), 5);
        for n in 0..=5 {
            let prefix = name.prefix(n);
            assert_eq!(hashed.prefix(n), prefix.value());
            assert_eq!(hashed.hash(n), key.name(prefix.as_ref()), "{prefix}");
        }
        assert_eq!(
            hashed.without_last(2).full(),
            key.name(name.prefix(3).as_ref())
        );
    }

    #[test]
    fn another_key_gives_another_hash() {
        let name: Name = "/a".parse().unwrap();
        assert_ne!(
            HashKey::new(1).name(name.as_ref()),
            HashKey::new(2).name(name.as_ref())
        );
    }

    /// Tables take the high bits: they must spread for names that differ in a number alone.
    #[test]
    fn numbered_names_spread() {
        let key = HashKey::new(7);
        let mut buckets = vec![0u32; 1 << 12];
        for n in 0..40_960 {
            let name: Name = format!("/a/b/seg={n}").parse().unwrap();
            buckets[(key.name(name.as_ref()) >> 52) as usize] += 1;
        }
        let most = buckets.iter().max().unwrap();
        assert!(
            *most < 35,
            "10 expected in each bucket, {most} found in one"
        );
    }
}
