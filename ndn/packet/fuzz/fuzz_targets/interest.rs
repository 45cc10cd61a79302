//! Interests: all that is read from one, and its changed copies.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use ndn_packet::{Interest, SigningKey};

fuzz_target!(|bytes: &[u8]| {
    let Ok(interest) = Interest::parse(Bytes::copy_from_slice(bytes)) else {
        return;
    };
    let _ = format!("{interest:?} {:?}", interest.signature_info());
    let _ = (
        interest.lifetime_or_default(),
        interest.forwarding_hint().count(),
    );
    let _ = (
        interest.application_parameters(),
        interest.signature_value(),
        interest.signed_portion(),
    );
    let digest = interest.verify_params_digest();
    let next = interest.with_nonce(7).with_hop_limit(3);
    assert_eq!(next.nonce(), Some(7));
    assert_eq!(next.verify_params_digest(), digest);
    assert_eq!(Interest::parse(next.wire().clone()).as_ref(), Ok(&next));
    SigningKey::DigestSha256
        .verifier()
        .verify_interest(&interest);
});
