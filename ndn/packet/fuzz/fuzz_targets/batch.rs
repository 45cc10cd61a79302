//! A batch's signature: any bytes as the element, in a packet whose digest is right, and any bytes as a packet. Nothing that
//! was made without the key verifies.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use ndn_packet::{BatchSignature, Data, KnownRoots, SigningKey, sha256, tlv};

/// BatchSignature.
const ELEMENT: u32 = 0xf5a0;

fuzz_target!(|bytes: &[u8]| {
    let verifier = SigningKey::hmac_sha256(b"nobody's").verifier();
    let mut known = KnownRoots::default();
    if let Ok(data) = Data::parse(Bytes::copy_from_slice(bytes)) {
        let _ = BatchSignature::of(&data);
        assert!(!verifier.verify_with(&data, &mut known));
    }
    let mut info = vec![0x1b, 1, 0];
    tlv::write_tlv(&mut info, ELEMENT, bytes);
    // Name /a, no content.
    let mut body = vec![7, 3, 8, 1, b'a', 0x15, 0];
    tlv::write_tlv(&mut body, 0x16, &info);
    let digest = sha256(&body);
    tlv::write_tlv(&mut body, 0x17, &digest);
    let mut wire = Vec::new();
    tlv::write_tlv(&mut wire, 6, &body);
    let data = Data::parse(wire.into()).expect("well formed");
    assert!(data.verify_digest());
    if let Ok(Some(batch)) = BatchSignature::of(&data) {
        let _ = format!("{batch:?}");
    }
    assert!(!verifier.verify_with(&data, &mut known));
});
