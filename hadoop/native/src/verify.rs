//! What guards a segment on its way, and how it is verified before a byte of it
//! is delivered.
//!
//! A segment carries the CRC of each of its chunks, as HDFS made them at the
//! writer, and says which bytes of the block it holds. Checking those covers
//! all that is delivered at a twentieth of what SHA-256 of the whole packet
//! costs, and covers the way before the packet was made too. A digest tells no
//! more about the sender than a CRC does, since anybody can make either. So a
//! segment with CRCs needs no signature of its own: its packet says that it has
//! none (SignatureType Null).

use crc_fast::{CrcAlgorithm, Digest};
use ndn_packet::{Data, SigningKey, Verifier, signature_type};

use crate::segment::{ChecksumType, HEADER_LEN, SegmentHeader};

/// What segments are guarded by: made with, and checked by when pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Verify {
    /// The CRCs that the segment carries; the packet's digest where it carries
    /// none.
    #[default]
    Checksums,
    /// The packet's digest, and the CRCs that the segment carries. A segment that
    /// a writer with the other setting made has no digest: its CRCs must do.
    Digest,
}

impl Verify {
    /// The setting's name for it: `checksums` or `digest`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "checksums" => Some(Verify::Checksums),
            "digest" => Some(Verify::Digest),
            _ => None,
        }
    }

    /// What a segment with such checksums is signed with.
    pub(crate) fn signer(self, checksum: ChecksumType) -> SigningKey {
        match (self, checksum) {
            (Verify::Checksums, ChecksumType::Crc32 | ChecksumType::Crc32c) => SigningKey::Null,
            _ => SigningKey::DigestSha256,
        }
    }

    /// Whether the checksums of an open segment decide alone if its content may be
    /// delivered.
    pub(crate) fn is_up_to_checksums(self, header: &SegmentHeader, data: &Data) -> bool {
        let unsigned = data.signature_type() == signature_type::NULL;
        header.checksum != ChecksumType::Null && (unsigned || self == Verify::Checksums)
    }

    /// Whether the segment's content may be delivered.
    pub fn accepts(self, data: &Data) -> bool {
        let summed = checksums_match(data.content_slice());
        let unsigned = data.signature_type() == signature_type::NULL;
        match self {
            _ if unsigned => summed == Some(true),
            Verify::Checksums if summed == Some(true) => true,
            _ => summed != Some(false) && Verifier::DigestSha256.verify(data),
        }
    }
}

fn algorithm(checksum: ChecksumType) -> Option<CrcAlgorithm> {
    match checksum {
        ChecksumType::Null => None,
        ChecksumType::Crc32 => Some(CrcAlgorithm::Crc32IsoHdlc),
        ChecksumType::Crc32c => Some(CrcAlgorithm::Crc32Iscsi),
    }
}

/// Whether each chunk has the checksum that stands before it; `None` when there
/// is nothing to check it by.
pub(crate) fn checksums_match(content: &[u8]) -> Option<bool> {
    let header = SegmentHeader::decode(content).ok()?;
    let body = &content[HEADER_LEN..];
    if header.checksum != ChecksumType::Null && body.len() != header.body_len() {
        return Some(false);
    }
    let (sums, data) = body.split_at_checked(header.checksums_len())?;
    chunks_match(&header, sums, data)
}

/// Whether the chunks of `data`, whole ones but for the segment's last, have the
/// checksums `sums`; `None` when such a segment has none.
pub(crate) fn chunks_match(header: &SegmentHeader, sums: &[u8], data: &[u8]) -> Option<bool> {
    let algorithm = algorithm(header.checksum)?;
    let chunks = data.chunks(header.bytes_per_checksum as usize);
    let sums = sums.as_chunks::<4>().0.iter();
    Some(sums.zip(chunks).all(|(sum, chunk)| {
        crc_fast::checksum(algorithm, chunk) == u64::from(u32::from_be_bytes(*sum))
    }))
}

/// Checks a segment's data against its checksums as they come, in pieces of any
/// length.
pub(crate) struct Chunks {
    header: SegmentHeader,
    begun: Digest,
    /// Data bytes so far.
    taken: usize,
}

impl Chunks {
    /// Of a segment with that header; `None` where it has no checksums.
    pub(crate) fn new(header: &SegmentHeader) -> Option<Self> {
        Some(Chunks {
            header: *header,
            begun: Digest::new(algorithm(header.checksum)?),
            taken: 0,
        })
    }

    /// Whether the chunks that end in this piece of the data have their checksums;
    /// `front` is the segment's content up to its data, at least.
    pub(crate) fn take(&mut self, front: &[u8], mut piece: &[u8]) -> bool {
        let chunk = self.header.bytes_per_checksum as usize;
        while !piece.is_empty() {
            let missing = chunk - self.taken % chunk;
            let (now, rest) = piece.split_at(missing.min(piece.len()));
            self.begun.update(now);
            self.taken += now.len();
            if now.len() == missing && !self.ends(front) {
                return false;
            }
            piece = rest;
        }
        true
    }

    /// Whether that was all of a segment whose content is so long.
    pub(crate) fn are_all(mut self, front: &[u8], len: usize) -> bool {
        let whole = self
            .taken
            .is_multiple_of(self.header.bytes_per_checksum as usize);
        len == HEADER_LEN + self.header.body_len() && (whole || self.ends(front))
    }

    /// Whether the chunk that ends here has its checksum.
    fn ends(&mut self, front: &[u8]) -> bool {
        let chunk = (self.taken - 1) / self.header.bytes_per_checksum as usize;
        let sums = &front[HEADER_LEN..HEADER_LEN + self.header.checksums_len()];
        let sum = sums.as_chunks::<4>().0.get(chunk).copied();
        let is = self.begun.finalize_reset();
        sum.is_some_and(|sum| is == u64::from(u32::from_be_bytes(sum)))
    }
}

/// The checksum of one chunk, for tests that write block files.
#[cfg(test)]
pub(crate) fn crc32c(chunk: &[u8]) -> u32 {
    crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, chunk) as u32
}

/// The content of a block's first segment, for tests.
#[cfg(test)]
pub(crate) fn segment(checksum: ChecksumType, bytes_per_checksum: u32, data: &[u8]) -> Vec<u8> {
    let header = SegmentHeader {
        checksum,
        bytes_per_checksum,
        data_len: data.len() as u32,
        offset_in_block: 0,
    };
    let mut content = header.encode().to_vec();
    for chunk in data.chunks(bytes_per_checksum as usize) {
        let sum = match checksum {
            ChecksumType::Null => continue,
            ChecksumType::Crc32 => crc_fast::checksum(CrcAlgorithm::Crc32IsoHdlc, chunk) as u32,
            ChecksumType::Crc32c => crc32c(chunk),
        };
        content.extend(sum.to_be_bytes());
    }
    content.extend(data);
    content
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndn_packet::{Name, SigningKey};

    fn content(checksum: ChecksumType, data: &[u8]) -> Vec<u8> {
        segment(checksum, 512, data)
    }

    /// A packet, with a bit of it turned after it was signed.
    fn packet(content: &[u8], turned: Option<usize>) -> Data {
        signed(content, &SigningKey::DigestSha256, turned)
    }

    fn signed(content: &[u8], key: &SigningKey, turned: Option<usize>) -> Data {
        let name: Name = "/hadoop/blocks/BP-1/7/v=3/seg=0".parse().unwrap();
        let wire = Data::builder(&name).content(content).sign(key);
        let mut wire = wire.to_vec();
        if let Some(at) = turned {
            let start = wire.windows(content.len()).position(|w| w == content);
            wire[start.unwrap() + at] ^= 0x10;
        }
        Data::parse(wire.into()).unwrap()
    }

    #[test]
    fn known_checksums() {
        for (checksum, sum) in [
            (ChecksumType::Crc32, 0xcbf4_3926_u32),
            (ChecksumType::Crc32c, 0xe306_9283),
        ] {
            let content = content(checksum, b"123456789");
            assert_eq!(content[HEADER_LEN..HEADER_LEN + 4], sum.to_be_bytes());
            assert_eq!(checksums_match(&content), Some(true));
        }
    }

    #[test]
    fn every_turned_byte_is_found() {
        let data: Vec<u8> = (0..1300u32).map(|n| ((n * 31) >> 2) as u8).collect();
        for checksum in [
            ChecksumType::Null,
            ChecksumType::Crc32,
            ChecksumType::Crc32c,
        ] {
            let content = content(checksum, &data);
            for verify in [Verify::Checksums, Verify::Digest] {
                assert!(verify.accepts(&packet(&content, None)), "{checksum:?}");
                // The reserved bytes and the offset are the taker's to compare.
                let offset = 16..HEADER_LEN;
                for at in (0..content.len()).filter(|at| !(5..8).contains(at)) {
                    let seen = !verify.accepts(&packet(&content, Some(at)));
                    let by_taker = offset.contains(&at) && verify == Verify::Checksums;
                    assert!(
                        seen || by_taker,
                        "byte {at} turned, {checksum:?}, {verify:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn without_a_signature_the_checksums_decide() {
        for verify in [Verify::Checksums, Verify::Digest] {
            for checksum in [ChecksumType::Crc32, ChecksumType::Crc32c] {
                let content = content(checksum, &[7; 1300]);
                let accepts = |turned| verify.accepts(&signed(&content, &SigningKey::Null, turned));
                assert!(accepts(None));
                assert!(!accepts(Some(HEADER_LEN)), "a checksum turned");
                assert!(!accepts(Some(content.len() - 1)), "data turned");
            }
            for bare in [
                content(ChecksumType::Null, &[7; 600]),
                b"anything else".to_vec(),
            ] {
                assert!(!verify.accepts(&signed(&bare, &SigningKey::Null, None)));
            }
        }
    }

    #[test]
    fn only_what_has_checksums_goes_unsigned() {
        for (verify, checksum, expected) in [
            (Verify::Checksums, ChecksumType::Crc32, signature_type::NULL),
            (
                Verify::Checksums,
                ChecksumType::Crc32c,
                signature_type::NULL,
            ),
            (
                Verify::Checksums,
                ChecksumType::Null,
                signature_type::DIGEST_SHA256,
            ),
            (
                Verify::Digest,
                ChecksumType::Crc32c,
                signature_type::DIGEST_SHA256,
            ),
        ] {
            let content = content(checksum, &[7; 600]);
            let data = signed(&content, &verify.signer(checksum), None);
            assert_eq!(data.signature_type(), expected);
            assert!(verify.accepts(&data));
        }
    }

    #[test]
    fn what_is_no_segment_has_its_digest() {
        for content in [&b""[..], b"TLB1", b"anything else"] {
            assert!(Verify::Checksums.accepts(&packet(content, None)));
        }
        assert!(!Verify::Checksums.accepts(&packet(b"anything else", Some(3))));
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        let mut long = content(ChecksumType::Crc32c, &[7; 600]);
        long.push(0);
        assert!(!Verify::Checksums.accepts(&packet(&long, None)));
        let mut huge = content(ChecksumType::Crc32c, &[7; 600]);
        huge[12..16].fill(0xff);
        assert!(!Verify::Checksums.accepts(&packet(&huge, None)));
    }
}
