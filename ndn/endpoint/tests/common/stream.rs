//! The object that the simulated source serves.

use super::prefix;
use bytes::Bytes;
use ndn_endpoint::Segmenter;
use ndn_packet::SigningKey;
use std::collections::BTreeMap;
use std::convert::Infallible;

/// The stream that every test serves: each segment's content tells its number.
pub struct Stream {
    segmenter: Segmenter,
    made: BTreeMap<u64, Bytes>,
}

impl Stream {
    pub fn new(segments: u64, segment_bytes: u32) -> Self {
        let segmenter =
            Segmenter::new(prefix(), segments * u64::from(segment_bytes), segment_bytes);
        Self {
            segmenter,
            made: BTreeMap::new(),
        }
    }

    pub fn last(&self) -> u64 {
        self.segmenter.last()
    }

    pub fn wire(&mut self, n: u64) -> Bytes {
        let Self { segmenter, made } = self;
        made.entry(n)
            .or_insert_with(|| {
                let made = segmenter.segment(n, &SigningKey::DigestSha256, |offset, content| {
                    for (i, byte) in content.iter_mut().enumerate() {
                        *byte = content_byte(offset + i as u64);
                    }
                    Ok::<(), Infallible>(())
                });
                made.unwrap_or_else(|never| match never {})
                    .expect("within the stream")
            })
            .clone()
    }
}

/// The byte of the stream's object at `offset`.
pub fn content_byte(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}
