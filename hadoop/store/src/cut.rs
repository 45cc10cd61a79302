//! How files of a cluster become segments.

use std::time::Duration;

use ndn_packet::Name;

/// How files are cut.
#[derive(Debug, Clone)]
pub struct Cut {
    /// `trunkline.ndn.root` of the cluster.
    pub root: Name,
    /// `trunkline.ndn.segment.bytes` of the cluster: data bytes of a block segment.
    pub block_segment_bytes: u32,
    /// Bytes of content in a segment of a file.
    pub segment_bytes: u32,
    /// How long caches may call a segment fresh.
    pub freshness: Duration,
}
