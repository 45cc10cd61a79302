//! Blocks as they are named and cut into segments.

use ndn_packet::{Name, NameRef};

use crate::topology::NodeId;

/// Bytes that one checksum is for.
const CHUNK: u64 = 512;
/// Generation stamps begin here, as HDFS's do.
const FIRST_STAMP: u64 = 1001;

/// Name of a block, numbered as HDFS does it: from 2^30 + 1, with generation stamps from 1001.
pub(crate) fn block_name(root: &Name, id: u32) -> Name {
    root.append_generic("BP-1-10.0.0.1-1700000000000")
        .append_generic((u64::from(id) + (1 << 30) + 1).to_string())
        .append_version(u64::from(id) + FIRST_STAMP)
}

/// The block and segment that a name of a segment is of.
pub(crate) fn block_of(name: NameRef<'_>) -> Option<(u32, u64)> {
    let stamp = name.parent().last()?.as_version()?;
    let block = u32::try_from(stamp.checked_sub(FIRST_STAMP)?).ok()?;
    Some((block, name.last()?.as_segment()?))
}

/// How blocks become segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Block bytes of a segment. Default 64,512.
    pub segment_bytes: u64,
    /// Bytes of checksums for each 512 bytes begun. Default 4.
    pub checksum_bytes: u64,
    /// Bytes of a segment's own header, by name. Default 24.
    pub segment_header: u64,
    /// Bytes of the header that goes before a segment over TCP. Default 31.
    pub packet_header: u64,
}

impl Default for Cut {
    fn default() -> Self {
        Cut {
            segment_bytes: 64_512,
            checksum_bytes: 4,
            segment_header: 24,
            packet_header: 31,
        }
    }
}

impl Cut {
    /// Segments of a block of so many bytes; one even for none.
    pub fn segments(&self, block_bytes: u64) -> u64 {
        block_bytes.div_ceil(self.segment_bytes.max(1)).max(1)
    }

    /// Block bytes in a segment.
    pub fn data(&self, block_bytes: u64, segment: u64) -> u64 {
        let start = segment.saturating_mul(self.segment_bytes);
        self.segment_bytes.min(block_bytes - start.min(block_bytes))
    }

    /// Bytes of a segment with its checksums.
    pub fn body(&self, block_bytes: u64, segment: u64) -> u64 {
        let data = self.data(block_bytes, segment);
        data + data.div_ceil(CHUNK) * self.checksum_bytes
    }
}

/// A block to be written: where from, and to which replicas in which order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockPlan {
    /// Where the writer is.
    pub writer: NodeId,
    /// The chain.
    pub replicas: Vec<NodeId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_its_segments() {
        let (cut, block) = (Cut::default(), 128 << 20);
        assert_eq!(cut.segments(block), 2081);
        assert_eq!(cut.body(block, 0), 64_512 + 504);
        let last: u64 = block - 2080 * 64_512;
        assert_eq!(cut.body(block, 2080), last + last.div_ceil(512) * 4);
        assert_eq!((cut.segments(0), cut.body(0, 0)), (1, 0));
    }

    #[test]
    fn names_tell_the_segment() {
        let root: Name = "/hadoop/blocks".parse().expect("a name");
        let name = block_name(&root, 70_000).append_segment(300);
        assert_eq!(block_of(name.as_ref()), Some((70_000, 300)));
        assert_eq!(block_of(root.as_ref()), None);
        assert_eq!(block_of(Name::default().as_ref()), None);
    }
}
