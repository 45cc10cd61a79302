//! Interests for the segments of one stream, written from a template: one allocation a packet, no name built.

use bytes::{Bytes, BytesMut};
use ndn_packet::Name;
use ndn_packet::tlv::{self, types};
use std::time::Duration;

/// Everything of the stream's Interests but segment number, nonce and MustBeFresh.
#[derive(Debug, Clone)]
pub(crate) struct InterestTemplate {
    prefix: Name,
    lifetime_ms: u64,
}

/// Type and length of a nonce and its four bytes.
const NONCE_LEN: usize = 6;
/// MustBeFresh has no value.
const MUST_BE_FRESH_LEN: usize = 2;

impl InterestTemplate {
    pub(crate) fn new(prefix: Name, lifetime: Duration) -> Self {
        Self {
            prefix,
            lifetime_ms: u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX),
        }
    }

    pub(crate) fn prefix(&self) -> &Name {
        &self.prefix
    }

    /// The Interest for `segment` (NDN Packet Format 0.3, Interest; the elements in their order).
    pub(crate) fn interest(&self, segment: u64, nonce: u32, must_be_fresh: bool) -> Bytes {
        let typ = u32::from(types::SEGMENT_COMPONENT);
        let name_len = self.prefix.value().len() + tlv::nonneg_tlv_len(typ, segment);
        let body_len = tlv::tlv_len(types::NAME, name_len)
            + if must_be_fresh { MUST_BE_FRESH_LEN } else { 0 }
            + NONCE_LEN
            + tlv::nonneg_tlv_len(types::INTEREST_LIFETIME, self.lifetime_ms);
        let mut wire = BytesMut::with_capacity(tlv::tlv_len(types::INTEREST, body_len));
        tlv::write_header(&mut wire, types::INTEREST, body_len);
        tlv::write_header(&mut wire, types::NAME, name_len);
        wire.extend_from_slice(self.prefix.value());
        tlv::write_nonneg_tlv(&mut wire, typ, segment);
        if must_be_fresh {
            tlv::write_header(&mut wire, types::MUST_BE_FRESH, 0);
        }
        tlv::write_tlv(&mut wire, types::NONCE, &nonce.to_be_bytes());
        tlv::write_nonneg_tlv(&mut wire, types::INTEREST_LIFETIME, self.lifetime_ms);
        wire.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndn_packet::Interest;

    #[test]
    fn is_what_the_builder_makes() {
        let prefix: Name = "/a/b/v=3".parse().expect("a name");
        let template = InterestTemplate::new(prefix.clone(), Duration::from_millis(4000));
        for segment in [
            0,
            1,
            255,
            256,
            65535,
            65536,
            u64::from(u32::MAX) + 1,
            u64::MAX,
        ] {
            for fresh in [false, true] {
                let interest = Interest::parse(template.interest(segment, 0x0102_0304, fresh))
                    .expect("well formed");
                assert_eq!(interest.name_owned(), prefix.append_segment(segment));
                assert_eq!(interest.nonce(), Some(0x0102_0304));
                assert_eq!(interest.lifetime(), Some(Duration::from_secs(4)));
                assert_eq!(interest.must_be_fresh(), fresh);
                let built = Interest::builder(&prefix.append_segment(segment))
                    .must_be_fresh(fresh)
                    .nonce(0x0102_0304)
                    .lifetime(Duration::from_secs(4))
                    .build();
                assert_eq!(&built, interest.wire());
            }
        }
    }
}
