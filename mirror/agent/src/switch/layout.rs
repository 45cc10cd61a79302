//! Keys and values of the switch's maps: the twins of `mirror/bpf/switch.h`, field by field in C's layout; it says what
//! each means. A map whose entries are of another size is refused when it is opened.

use aya::Pod;

pub use crate::layout::{Key as FlowKey, MARK};

/// Copies that one entry makes at most.
pub const COPIES: usize = 5;
/// How many [`Counter`]s there are.
pub const COUNTERS: usize = Counter::Unknown as usize + 1;
/// Names of counters, by [`Counter`].
pub const COUNTER: [&str; COUNTERS] = ["copied", "copied_bytes", "lost", "forged", "unknown"];

/// What is counted over all entries.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "switch.h says what each counts")]
pub enum Counter {
    Copied,
    CopiedBytes,
    Lost,
    Forged,
    Unknown,
}

/// Segments of a pipeline at this switch.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The copied connection, as on the wire.
    pub flow: FlowKey,
    /// The interface that they come in by.
    pub port: u32,
    /// 1: copies in transit, from another switch; 0: the client's own.
    pub marked: u8,
    #[allow(missing_docs)]
    pub pad: [u8; 3],
}

/// A copy that is to be made of each.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// The connection that it enters; unused in transit.
    pub flow: FlowKey,
    /// The interface that it leaves by.
    pub port: u32,
    /// Ethernet address of the replica's host; unused in transit.
    pub to: [u8; 6],
    /// The replica's position; 0: it stays in transit.
    pub position: u8,
    #[allow(missing_docs)]
    pub pad: u8,
}

/// What is made of a key's segments.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// How many of the copies are used.
    pub copies: u32,
    #[allow(missing_docs)]
    pub pad: u32,
    /// Those in transit come first.
    pub copy: [Copy; COPIES],
    /// Copies that left.
    pub copied: u64,
    /// Their payload.
    pub copied_bytes: u64,
    /// Copies that a port did not take.
    pub lost: u64,
}

/// A port that leads to another mirroring switch.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// 1.
    pub admits: u32,
}

/// What holds for all entries.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Config {
    /// Not 0: no copy is made.
    pub off: u32,
}

impl Entry {
    /// As it is made; `None` where there are too many copies.
    #[must_use]
    pub fn new(copies: &[Copy]) -> Option<Self> {
        // SAFETY: integers and arrays of them; all zero is a value of each.
        let mut entry: Self = unsafe { std::mem::zeroed() };
        entry.copies = u32::try_from(copies.len()).ok()?;
        entry.copy.get_mut(..copies.len())?.copy_from_slice(copies);
        Some(entry)
    }

    /// The copies that are used.
    #[must_use]
    pub fn used(&self) -> &[Copy] {
        &self.copy[..(self.copies as usize).min(COPIES)]
    }
}

// SAFETY: plain integers without padding that the compiler would add.
unsafe impl Pod for Key {}
// SAFETY: as above.
unsafe impl Pod for Entry {}
// SAFETY: as above.
unsafe impl Pod for Port {}
// SAFETY: as above.
unsafe impl Pod for Config {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_header() {
        assert_eq!(size_of::<Key>(), 44);
        assert_eq!(size_of::<Copy>(), 48);
        assert_eq!(size_of::<Entry>(), 8 + COPIES * 48 + 24);
    }

    #[test]
    fn counters_are_those_of_the_header() {
        let text = include_str!("../../../bpf/switch.h");
        let named: Vec<_> = text
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .filter_map(|word| word.strip_prefix("MR_SW_C_"))
            .map(str::to_lowercase)
            .collect();
        assert_eq!(named, COUNTER);
    }
}
