//! The content of one block segment: a 24-byte header, then exactly the body
//! of an HDFS packet, that is the checksums of its chunks and then its data.
//!
//! ```text
//!  0   magic            'TLB1'
//!  4   checksum type    0 none, 1 CRC32, 2 CRC32C (as in HDFS DataChecksum)
//!  5   reserved         3 bytes, 0
//!  8   bytes a checksum u32
//! 12   data length      u32, bytes
//! 16   offset in block  u64, bytes
//! 24   checksums, then data
//! ```
//! All numbers are big-endian.

use ndn_packet::{MAX_STREAM_PACKET, sha256};
use thiserror::Error;

use crate::seal::sealed_len;

/// Length of the header in bytes.
pub const HEADER_LEN: usize = 24;
/// First four bytes of every segment.
pub const MAGIC: [u8; 4] = *b"TLB1";
/// Data bytes of a segment unless a setting says otherwise: 126 chunks of 512,
/// which is one HDFS packet of default size.
pub const DEFAULT_SEGMENT_BYTES: u32 = 64_512;

/// Greatest packet of a segment with so many data bytes, sealed or not, in bytes: checksums take a 64th of them at
/// most, or what is left of 64 KiB.
pub const fn packet_bytes(segment_bytes: usize) -> usize {
    let body = max_body_bytes(segment_bytes);
    sealed_len(body) - sealed_len(SMALLER_BODY_BYTES) + SMALLER_BODY_BYTES + PACKET_OVERHEAD
}

/// Most bytes of checksums and data of a segment with so many data bytes; as `SegmentHeader.maxBodyBytes` of the plug-in.
pub(crate) const fn max_body_bytes(segment_bytes: usize) -> usize {
    let body = segment_bytes.saturating_add(segment_bytes / 64);
    let body = if body < SMALLER_BODY_BYTES {
        SMALLER_BODY_BYTES
    } else {
        body
    };
    if body < MAX_BODY_BYTES {
        body
    } else {
        MAX_BODY_BYTES
    }
}

/// Most bytes of checksums and data of a segment; as `SegmentHeader.MAX_BODY_BYTES` of the plug-in.
const MAX_BODY_BYTES: usize = MAX_STREAM_PACKET - 4096;

/// Bodies of smaller segments take no more, in bytes.
const SMALLER_BODY_BYTES: usize = 65_536;

/// More than what a packet of a segment has beside its content, in bytes; or beside a body of 64 KiB, sealed or not.
pub(crate) const PACKET_OVERHEAD: usize = 1024;

/// Length of a [`SegmentDigest`] in bytes.
pub const DIGEST_LEN: usize = 16;

/// The first 16 bytes of the SHA-256 of a segment's header and checksums: binds the segment to one write or replica.
///
/// A block's name says which block at which generation stamp, and both can come again (rollback, a restored image,
/// cloned clusters) while a cache still holds what the name stood for before. The chunks' own CRCs match themselves
/// then; this tells the two apart. It covers the data by those CRCs, a thousandth of the bytes, which costs next to
/// nothing; a CRC over CRCs is linear and would not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentDigest(pub [u8; DIGEST_LEN]);

impl SegmentDigest {
    /// Of the content of a segment; `None` when it is no segment, or shorter than it says.
    pub fn of(content: &[u8]) -> Option<Self> {
        let header = SegmentHeader::decode(content).ok()?;
        let covered = content.get(..HEADER_LEN + header.checksums_len())?;
        let whole = sha256(covered);
        whole.first_chunk().copied().map(SegmentDigest)
    }
}

/// How the chunks of a block are summed; ids as in HDFS `DataChecksum`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ChecksumType {
    /// No checksums.
    Null = 0,
    /// CRC-32 of zlib.
    Crc32 = 1,
    /// CRC-32C (Castagnoli).
    Crc32c = 2,
}

impl ChecksumType {
    /// The type of an HDFS id; `None` for ids that no file can have.
    pub fn from_id(id: u8) -> Option<Self> {
        match id {
            0 => Some(ChecksumType::Null),
            1 => Some(ChecksumType::Crc32),
            2 => Some(ChecksumType::Crc32c),
            _ => None,
        }
    }

    /// Bytes of one checksum.
    pub fn size(self) -> usize {
        match self {
            ChecksumType::Null => 0,
            ChecksumType::Crc32 | ChecksumType::Crc32c => 4,
        }
    }
}

/// Why bytes are no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// Fewer bytes than a header has.
    #[error("segment of {0} bytes is shorter than its header of 24")]
    Short(usize),
    /// The first four bytes are others.
    #[error("segment does not begin with TLB1")]
    Magic,
    /// A checksum type that HDFS does not have in files.
    #[error("segment has checksum type {0}, which no block file has")]
    ChecksumType(u8),
    /// Chunks of no bytes.
    #[error("segment has 0 bytes a checksum")]
    BytesPerChecksum,
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// How the chunks are summed.
    pub checksum: ChecksumType,
    /// Data bytes a checksum covers.
    pub bytes_per_checksum: u32,
    /// Data bytes in this segment.
    pub data_len: u32,
    /// Where in the block the data begins, in bytes.
    pub offset_in_block: u64,
}

impl SegmentHeader {
    /// Writes the header.
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        out[..4].copy_from_slice(&MAGIC);
        out[4] = self.checksum as u8;
        out[8..12].copy_from_slice(&self.bytes_per_checksum.to_be_bytes());
        out[12..16].copy_from_slice(&self.data_len.to_be_bytes());
        out[16..24].copy_from_slice(&self.offset_in_block.to_be_bytes());
        out
    }

    /// Reads the header at the front of `content`.
    pub fn decode(content: &[u8]) -> Result<Self, HeaderError> {
        let Some(head) = content.first_chunk::<HEADER_LEN>() else {
            return Err(HeaderError::Short(content.len()));
        };
        if head[..4] != MAGIC {
            return Err(HeaderError::Magic);
        }
        let word =
            |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let header = SegmentHeader {
            checksum: ChecksumType::from_id(head[4]).ok_or(HeaderError::ChecksumType(head[4]))?,
            bytes_per_checksum: word(8),
            data_len: word(12),
            offset_in_block: u64::from(word(16)) << 32 | u64::from(word(20)),
        };
        if header.bytes_per_checksum == 0 {
            return Err(HeaderError::BytesPerChecksum);
        }
        Ok(header)
    }

    /// Bytes of the checksums that stand before the data.
    pub fn checksums_len(&self) -> usize {
        self.data_len.div_ceil(self.bytes_per_checksum) as usize * self.checksum.size()
    }

    /// Bytes of checksums and data together.
    pub fn body_len(&self) -> usize {
        self.checksums_len() + self.data_len as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: SegmentHeader = SegmentHeader {
        checksum: ChecksumType::Crc32c,
        bytes_per_checksum: 512,
        data_len: DEFAULT_SEGMENT_BYTES,
        offset_in_block: 5 * DEFAULT_SEGMENT_BYTES as u64,
    };

    #[test]
    fn layout_is_as_written() {
        let bytes = FULL.encode();
        assert_eq!(&bytes[..8], b"TLB1\x02\0\0\0");
        assert_eq!(bytes[8..12], [0, 0, 2, 0]);
        assert_eq!(bytes[12..16], [0, 0, 0xfc, 0]);
        assert_eq!(bytes[16..], [0, 0, 0, 0, 0, 4, 0xec, 0]);
        assert_eq!(SegmentHeader::decode(&bytes), Ok(FULL));
    }

    #[test]
    fn every_segment_has_room_in_its_packet() {
        use ndn_packet::MAX_JUMBO_PACKET;
        assert_eq!(
            packet_bytes(64_512),
            MAX_JUMBO_PACKET,
            "a UDP face takes it"
        );
        for (data, sums) in [(1, 4), (64_512, 504), (516_096, 4032), (1_032_192, 8064)] {
            let sealed = sealed_len(HEADER_LEN + sums + data);
            assert!(sealed + 700 <= packet_bytes(data), "{data} bytes of data");
            assert!(packet_bytes(data) <= MAX_STREAM_PACKET);
        }
    }

    #[test]
    fn digest_covers_header_and_checksums() {
        let small = SegmentHeader {
            data_len: 512,
            ..FULL
        };
        let mut content = small.encode().to_vec();
        content.extend([1, 2, 3, 4]);
        content.extend([7; 512]);
        let digest = SegmentDigest::of(&content).unwrap();
        assert_eq!(digest.0, sha256(&content[..HEADER_LEN + 4])[..DIGEST_LEN]);
        for at in [4, 23, HEADER_LEN] {
            let mut other = content.clone();
            other[at] ^= 1;
            assert_ne!(SegmentDigest::of(&other), Some(digest), "byte {at}");
        }
        assert_eq!(SegmentDigest::of(&content[..HEADER_LEN + 3]), None);
        assert_eq!(SegmentDigest::of(b"TLB1"), None);
    }

    #[test]
    fn lengths() {
        assert_eq!(FULL.checksums_len(), 126 * 4);
        assert_eq!(FULL.body_len(), 126 * 516);
        let tail = SegmentHeader {
            data_len: 513,
            ..FULL
        };
        assert_eq!(tail.checksums_len(), 8);
        let none = SegmentHeader {
            checksum: ChecksumType::Null,
            ..FULL
        };
        assert_eq!(none.body_len(), 64_512);
        let empty = SegmentHeader {
            data_len: 0,
            ..FULL
        };
        assert_eq!(empty.body_len(), 0);
    }

    #[test]
    fn wrong_bytes_are_refused() {
        let good = FULL.encode();
        assert_eq!(
            SegmentHeader::decode(&good[..23]),
            Err(HeaderError::Short(23))
        );
        let mut bad = good;
        bad[0] = b'X';
        assert_eq!(SegmentHeader::decode(&bad), Err(HeaderError::Magic));
        let mut bad = good;
        bad[4] = 3;
        assert_eq!(
            SegmentHeader::decode(&bad),
            Err(HeaderError::ChecksumType(3))
        );
        let mut bad = good;
        bad[8..12].fill(0);
        assert_eq!(
            SegmentHeader::decode(&bad),
            Err(HeaderError::BytesPerChecksum)
        );
    }
}
