//! Data: all that is read from one.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use ndn_packet::{Data, SigningKey, Verifier};

fuzz_target!(|bytes: &[u8]| {
    let Ok(data) = Data::parse(Bytes::copy_from_slice(bytes)) else {
        return;
    };
    let _ = format!("{data:?} {:?}", data.signature_info());
    let _ = (
        data.final_block_id(),
        data.is_final_block(),
        data.freshness(),
    );
    assert_eq!(data.content(), data.content_slice());
    assert_eq!(data.full_name().parent(), data.name_owned());
    SigningKey::DigestSha256.verifier().verify(&data);
    let _ = Verifier::from_spki(data.content_slice());
});
