//! What the metadata packet of a block tells a reader.

use std::time::Duration;

use bytes::Bytes;
use ndn_endpoint::rdr::Metadata;
use ndn_packet::{Name, SigningKey};

use crate::error::{NativeError, Result};

/// Facts of a finalized block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockMetadata {
    /// Generation stamp: the version in the names of its segments.
    pub genstamp: u64,
    /// Length in bytes.
    pub length: u64,
    /// Data bytes of every segment but the last.
    pub segment_bytes: u64,
    /// Checksum type: 0 none, 1 CRC32, 2 CRC32C.
    pub checksum_type: u64,
    /// Data bytes a checksum covers.
    pub bytes_per_checksum: u64,
    /// SHA-256 of the manifest; `None` for a block without checksums.
    pub manifest_digest: Option<[u8; 32]>,
}

impl BlockMetadata {
    /// The signed metadata packet of `block`, `/<root>/blocks/<pool>/<id>`.
    /// `version` must grow from packet to packet.
    pub fn packet(&self, block: &Name, version: u64, freshness: Duration) -> Bytes {
        self.described(block)
            .packet(block, version, freshness, &SigningKey::DigestSha256)
    }

    /// The content of a metadata packet of `block`.
    pub fn encode(&self, block: &Name) -> Bytes {
        self.described(block).encode()
    }

    fn described(&self, block: &Name) -> Metadata {
        let last = self.length.div_ceil(self.segment_bytes.max(1)).max(1) - 1;
        Metadata {
            last: Some(last),
            segment_bytes: Some(self.segment_bytes),
            size: Some(self.length),
            checksum_type: Some(self.checksum_type),
            bytes_per_checksum: Some(self.bytes_per_checksum),
            manifest_digest: self.manifest_digest,
            ..Metadata::new(block.append_version(self.genstamp))
        }
    }

    /// The facts in the order in which Java has them: generation stamp, length, data bytes of a segment, checksum type,
    /// data bytes that a checksum covers. What no `long` holds is -1.
    pub fn to_java(&self) -> [i64; 5] {
        [
            self.genstamp,
            self.length,
            self.segment_bytes,
            self.checksum_type,
            self.bytes_per_checksum,
        ]
        .map(|number| i64::try_from(number).unwrap_or(-1))
    }

    /// Reads the content of a metadata packet.
    ///
    /// # Errors
    /// When it is malformed or says nothing of a block.
    pub fn decode(content: &[u8]) -> Result<Self> {
        let failed = |text: String| NativeError::Failed(format!("block metadata: {text}"));
        let metadata = Metadata::decode(content).map_err(|e| failed(e.to_string()))?;
        let genstamp = metadata
            .name
            .last()
            .and_then(|version| version.as_version());
        let facts = (|| {
            Some(BlockMetadata {
                genstamp: genstamp?,
                length: metadata.size?,
                segment_bytes: metadata.segment_bytes.filter(|&bytes| bytes > 0)?,
                checksum_type: metadata.checksum_type?,
                bytes_per_checksum: metadata.bytes_per_checksum?,
                manifest_digest: metadata.manifest_digest,
            })
        })();
        facts.ok_or_else(|| failed(format!("{} lacks what a block has", metadata.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndn_packet::Data;

    #[test]
    fn goes_round() {
        let block: Name = "/hadoop/blocks/BP-1/7".parse().unwrap();
        let facts = BlockMetadata {
            genstamp: 1001,
            length: 134_217_728,
            segment_bytes: 64_512,
            checksum_type: 2,
            bytes_per_checksum: 512,
            manifest_digest: Some([7; 32]),
        };
        let wire = facts.packet(&block, 5, Duration::from_millis(200));
        let data = Data::parse(wire).unwrap();
        assert_eq!(
            data.name_owned().to_string(),
            "/hadoop/blocks/BP-1/7/32=metadata/v=5/seg=0"
        );
        assert_eq!(BlockMetadata::decode(data.content_slice()).unwrap(), facts);
        assert_eq!(facts.to_java(), [1001, 134_217_728, 64_512, 2, 512]);
        let endless = BlockMetadata {
            length: u64::MAX,
            ..facts
        };
        assert_eq!(endless.to_java()[1], -1);
    }

    #[test]
    fn other_content_is_refused() {
        assert!(BlockMetadata::decode(b"").is_err());
        let bare = Metadata::new("/a/v=1".parse().unwrap()).encode();
        assert!(BlockMetadata::decode(&bare).is_err());
    }
}
