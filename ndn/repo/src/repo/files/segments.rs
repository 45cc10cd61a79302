//! The Data packets of a file version: the same bytes each time they are made, signed by a digest that was computed when
//! the file came in.

use std::time::Duration;

use bytes::{BufMut, Bytes};
use ndn_packet::{ComponentBuf, Data, DataBuilder, KeyLocatorRef, Name, Signer, signature_type};

use crate::index::FileEntry;

/// Bytes of a digest.
pub(crate) const DIGEST_BYTES: usize = 32;

/// What the packets of a version have in common.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    /// Name with version.
    pub versioned: Name,
    pub segment_bytes: u32,
    pub freshness: Duration,
    /// Last segment, where each packet tells it.
    pub final_in_all: Option<u64>,
}

impl Shape {
    /// Of a version in the index.
    pub fn of(versioned: Name, entry: &FileEntry) -> Self {
        Self {
            versioned,
            segment_bytes: entry.segment_bytes,
            freshness: Duration::from_millis(u64::from(entry.freshness_ms)),
            final_in_all: entry.final_in_all.then(|| entry.last_segment()),
        }
    }

    fn builder<'a>(&self, name: &'a Name, segment: u64, is_last: bool) -> DataBuilder<'a> {
        let builder = Data::builder(name).freshness(self.freshness);
        match self.final_in_all {
            Some(last) => builder.final_block_id(ComponentBuf::segment(last)),
            None if is_last => builder.final_block_id(ComponentBuf::segment(segment)),
            None => builder,
        }
    }

    /// The SignatureValue of a segment with this content.
    pub fn digest(&self, segment: u64, is_last: bool, content: &[u8]) -> [u8; DIGEST_BYTES] {
        let name = self.versioned.append_segment(segment);
        self.builder(&name, segment, is_last).digest(content)
    }

    /// The packet of a segment whose SignatureValue is known; `fill` writes its content.
    pub fn packet<E>(
        &self,
        segment: u64,
        is_last: bool,
        digest: [u8; DIGEST_BYTES],
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Bytes, E> {
        let name = self.versioned.append_segment(segment);
        self.builder(&name, segment, is_last)
            .content_with(len, fill)
            .sign(&KnownDigest(digest))
    }
}

/// A DigestSha256 that was computed before.
struct KnownDigest([u8; DIGEST_BYTES]);

impl Signer for KnownDigest {
    fn signature_type(&self) -> u64 {
        signature_type::DIGEST_SHA256
    }

    fn key_locator(&self) -> Option<KeyLocatorRef<'_>> {
        None
    }

    fn max_signature_len(&self) -> usize {
        DIGEST_BYTES
    }

    fn sign(&self, _pieces: &[&[u8]], signature: &mut dyn BufMut) {
        signature.put_slice(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_made_later_has_the_signature_computed_before() {
        for final_in_all in [None, Some(7)] {
            let shape = Shape {
                versioned: "/a/v=1".parse().expect("a name"),
                segment_bytes: 8,
                freshness: Duration::from_secs(1),
                final_in_all,
            };
            for (segment, content) in [(0, &b"12345678"[..]), (7, b"1"), (7, b"")] {
                let digest = shape.digest(segment, segment == 7, content);
                let wire = shape
                    .packet(segment, segment == 7, digest, content.len(), |place| {
                        place.copy_from_slice(content);
                        Ok::<(), ()>(())
                    })
                    .expect("filled");
                let data = Data::parse(wire).expect("well formed");
                assert!(data.verify_digest());
                assert_eq!(data.is_final_block(), segment == 7);
                assert_eq!(
                    data.final_block_id().is_some(),
                    final_in_all.is_some() || segment == 7
                );
            }
        }
    }
}
