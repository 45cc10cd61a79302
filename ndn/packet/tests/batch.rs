//! One signature for many packets: each verifies alone, and nothing else does.

use std::convert::Infallible;

use bytes::Bytes;
use ndn_packet::{
    Batch, BatchSignature, Data, DecodeError, KeyLocatorRef, KnownRoots, Name, Signer, SigningKey,
    sha256, signature_type, tlv,
};
use proptest::prelude::*;

const BATCH_SIGNATURE: u32 = 0xf5a0;
const BATCH_PLACE: u32 = 0xf5a2;
const BATCH_PATH: u32 = 0xf5a4;

fn keys() -> Vec<SigningKey> {
    vec![
        SigningKey::hmac_sha256(b"secret"),
        SigningKey::ecdsa_p256_from_pkcs8(&SigningKey::generate_ecdsa_p256().expect("a key"))
            .expect("a key"),
        ed25519(),
    ]
}

fn ed25519() -> SigningKey {
    let pkcs8 = SigningKey::generate_ed25519().expect("a key");
    SigningKey::ed25519_from_pkcs8(&pkcs8).expect("a key")
}

fn object() -> Name {
    "/a/v=1".parse().expect("a name")
}

/// A batch of packets with these contents.
fn signed(key: &SigningKey, contents: &[Vec<u8>]) -> Vec<Data> {
    let mut batch = Batch::new(key, contents.len());
    for (n, content) in contents.iter().enumerate() {
        let name = object().append_segment(n as u64);
        let fill = |place: &mut [u8]| {
            place.copy_from_slice(content);
            Ok::<(), Infallible>(())
        };
        let packet = Data::builder(&name).content_with(content.len(), fill);
        let Ok(()) = packet.join(&mut batch);
    }
    let parse = |wire| Data::parse(wire).expect("well formed");
    batch.sign().into_iter().map(parse).collect()
}

fn some(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|n| vec![n as u8; 40 + n]).collect()
}

#[test]
fn each_packet_verifies_alone_under_its_key_and_no_other() {
    for key in keys() {
        for count in [1, 2, 3, 31, 32, 33] {
            for (n, data) in signed(&key, &some(count)).iter().enumerate() {
                assert_eq!(data.content_slice(), some(count)[n]);
                assert!(key.verifier().verify(data), "{key:?} {n} of {count}");
                assert!(data.verify_digest(), "as any consumer sees it");
                assert_eq!(data.key_locator(), None);
                let told = BatchSignature::of(data).expect("well formed");
                let told = told.expect("it is in a batch");
                assert_eq!(told.key_locator, key.key_locator());
                assert_eq!(told.signature_type, key.signature_type());
                for other in keys() {
                    let is_same = matches!(key, SigningKey::HmacSha256 { .. })
                        && matches!(other, SigningKey::HmacSha256 { .. });
                    assert_eq!(other.verifier().verify(data), is_same);
                }
            }
        }
    }
}

#[test]
fn a_packet_is_no_longer_than_was_announced() {
    for key in keys() {
        for count in [1, 2, 32, 300] {
            let tail = Batch::tail_len(&key, count);
            for (n, data) in signed(&key, &some(count)).iter().enumerate() {
                let name = object().append_segment(n as u64);
                let plain = Data::builder(&name).content(data.content_slice());
                let without = plain.sign(&SigningKey::Null).len();
                // Null's SignatureInfo has five bytes, and its SignatureValue two; outer headers may differ by two.
                assert!(data.wire().len() <= without - 7 + tail + 2, "{key:?} {n}");
            }
        }
    }
}

#[test]
fn packets_of_a_batch_that_is_known_have_its_own_signature() {
    let key = ed25519();
    let verifier = key.verifier();
    let mut known = KnownRoots::default();
    let packets = signed(&key, &some(5));
    for data in &packets {
        assert!(verifier.verify_with(data, &mut known));
    }
    // The root is known, but this is not what was signed: kept by somebody, it would verify nowhere.
    let other = forged(&packets[3], |parts| parts.signature[0] ^= 1);
    assert!(other.verify_digest());
    assert!(!verifier.verify_with(&other, &mut known));
    assert!(verifier.verify_with(&packets[3], &mut known));
    // However many there are, the first still verifies.
    for n in 0..100 {
        let more = signed(&key, &[vec![n]]);
        assert!(verifier.verify_with(&more[0], &mut known));
    }
    assert!(verifier.verify_with(&packets[0], &mut known));
}

/// What a packet of a batch is signed with.
struct Parts {
    kind: u64,
    place: u64,
    path: Vec<u8>,
    signature: Vec<u8>,
    /// Elements behind those.
    more: Vec<u8>,
}

/// The same packet with other parts, and a digest that is right.
fn forged(data: &Data, change: impl FnOnce(&mut Parts)) -> Data {
    let mut parts = Parts {
        kind: 0,
        place: 0,
        path: Vec::new(),
        signature: Vec::new(),
        more: Vec::new(),
    };
    let mut locator = Vec::new();
    let signed = data.signed_portion();
    let info = elements(signed)
        .into_iter()
        .find(|e| e.0 == 0x16)
        .expect("there");
    let batch = elements(&info.1)
        .into_iter()
        .find(|e| e.0 == BATCH_SIGNATURE)
        .expect("there");
    for (typ, value) in elements(&batch.1) {
        match typ {
            0x1b => parts.kind = tlv::read_nonneg(&value).expect("a number"),
            0x1c => tlv::write_tlv(&mut locator, typ, &value),
            BATCH_PLACE => parts.place = tlv::read_nonneg(&value).expect("a number"),
            BATCH_PATH => parts.path = value,
            _ => parts.signature = value,
        }
    }
    change(&mut parts);
    let mut batch = Vec::new();
    tlv::write_nonneg_tlv(&mut batch, 0x1b, parts.kind);
    batch.extend(locator);
    tlv::write_nonneg_tlv(&mut batch, BATCH_PLACE, parts.place);
    tlv::write_tlv(&mut batch, BATCH_PATH, &parts.path);
    tlv::write_tlv(&mut batch, 0x17, &parts.signature);
    batch.extend(parts.more);
    let mut info = vec![0x1b, 1, 0];
    tlv::write_tlv(&mut info, BATCH_SIGNATURE, &batch);
    with_info(data, &info)
}

/// The same packet with another SignatureInfo, and a digest that is right.
fn with_info(data: &Data, info: &[u8]) -> Data {
    let mut body = Vec::new();
    for (typ, value) in elements(data.signed_portion()) {
        tlv::write_tlv(&mut body, typ, if typ == 0x16 { info } else { &value });
    }
    whole(body)
}

/// The packet with this signed portion, and a digest that is right.
fn whole(mut body: Vec<u8>) -> Data {
    let digest = sha256(&body);
    tlv::write_tlv(&mut body, 0x17, &digest);
    let mut wire = Vec::new();
    tlv::write_tlv(&mut wire, 6, &body);
    Data::parse(Bytes::from(wire)).expect("well formed")
}

fn elements(bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let mut reader = tlv::Reader::new(bytes);
    std::iter::from_fn(|| reader.next().expect("well formed"))
        .map(|e| (e.typ, e.value.to_vec()))
        .collect()
}

#[test]
fn what_is_changed_does_not_verify() {
    let key = ed25519();
    let verifier = key.verifier();
    let data = signed(&key, &some(4)).remove(2);
    assert!(verifier.verify(&forged(&data, |_| {})), "nothing changed");
    let changes: [fn(&mut Parts); 8] = [
        |p| p.place = 3,
        |p| p.place = 4,
        |p| p.path[40] ^= 1,
        |p| p.path.truncate(32),
        |p| p.path.extend([0; 32]),
        |p| p.signature[5] ^= 1,
        |p| p.signature.clear(),
        |p| p.kind = signature_type::SHA256_WITH_ECDSA,
    ];
    for (n, change) in changes.into_iter().enumerate() {
        let other = forged(&data, change);
        assert!(other.verify_digest());
        assert!(!verifier.verify(&other), "change {n}");
    }
    // Another content, whose digest is right.
    let mut body = Vec::new();
    for (typ, value) in elements(data.signed_portion()) {
        let value = if typ == 0x15 { vec![9; 42] } else { value };
        tlv::write_tlv(&mut body, typ, &value);
    }
    assert!(!verifier.verify(&whole(body)));
    // The right one, whose digest is wrong.
    let mut wire = data.wire().to_vec();
    *wire.last_mut().expect("a digest") ^= 1;
    assert!(!verifier.verify(&Data::parse(wire.into()).expect("well formed")));
}

#[test]
fn nothing_unsigned_rides_along() {
    let key = ed25519();
    let verifier = key.verifier();
    let data = signed(&key, &some(2)).remove(0);
    // Within the element.
    let other = forged(&data, |p| tlv::write_tlv(&mut p.more, 0xf5a6, b"x"));
    assert!(BatchSignature::of(&other).is_err() && !verifier.verify(&other));
    // Beside it.
    let info = elements(data.signed_portion())
        .into_iter()
        .find(|e| e.0 == 0x16)
        .expect("there")
        .1;
    let time = [&info[..], &[0x28, 1, 5]].concat();
    assert!(!verifier.verify(&with_info(&data, &time)));
    // Behind SignatureInfo, where packets may have what nobody knows.
    let body = [data.signed_portion(), &[0xf0, 1, 7]].concat();
    let other = whole(body);
    assert!(other.verify_digest() && !verifier.verify(&other));
}

#[test]
fn a_digest_is_no_key() {
    let data = Data::parse(Data::builder(&object()).sign(&SigningKey::DigestSha256));
    let data = data.expect("well formed");
    for key in keys() {
        assert!(!key.verifier().verify(&data));
    }
    assert_eq!(BatchSignature::of(&data), Ok(None));
    // Nor is what a batch has in a packet that says it is signed otherwise.
    let batched = signed(&ed25519(), &some(1)).remove(0);
    let info = elements(batched.signed_portion())
        .into_iter()
        .find(|e| e.0 == 0x16)
        .expect("there")
        .1;
    let other = with_info(&batched, &[&[0x1b, 1, 5], &info[3..]].concat());
    assert_eq!(BatchSignature::of(&other), Ok(None));
}

/// What is signed of three packets, computed step by step as docs/names.md has it.
#[test]
fn the_tree_is_what_the_documentation_says() {
    let key = SigningKey::hmac_sha256(b"k");
    let packets = signed(&key, &some(3));
    let leaf = |data: &Data| {
        let mut body = Vec::new();
        for (typ, value) in elements(data.signed_portion()) {
            if typ != 0x16 {
                tlv::write_tlv(&mut body, typ, &value);
            }
        }
        sha256(&body)
    };
    let join = |left: [u8; 32], right: [u8; 32]| sha256(&[&[1][..], &left, &right].concat());
    let leaves: Vec<_> = packets.iter().map(leaf).collect();
    let root = join(join(leaves[0], leaves[1]), join(leaves[2], [0; 32]));
    let what = [&b"\0trunkline batch signature 1"[..], &root].concat();
    let mut signature = Vec::new();
    key.sign(&[&what], &mut signature);
    for data in &packets {
        assert!(data.wire().windows(32).any(|part| part == signature));
    }
}

proptest! {
    #[test]
    fn any_element_is_read_or_refused(
        value in prop::collection::vec(any::<u8>(), 0..200),
        place in 0..100_000u64,
        path in 0..2000usize,
        cut in 0..400usize,
    ) {
        let data = signed(&SigningKey::hmac_sha256(b"k"), &some(1)).remove(0);
        let mut element = Vec::new();
        tlv::write_nonneg_tlv(&mut element, 0x1b, 4);
        tlv::write_nonneg_tlv(&mut element, BATCH_PLACE, place);
        tlv::write_tlv(&mut element, BATCH_PATH, &vec![3; path]);
        tlv::write_tlv(&mut element, 0x17, &value);
        let is_right = path % 32 == 0 && path / 32 <= 16 && place >> (path / 32) == 0;
        for (bytes, expected) in [(&value[..], None), (&element[..], Some(is_right)),
            (&element[..cut.min(element.len() - 1)], Some(false))] {
            let mut info = vec![0x1b, 1, 0];
            tlv::write_tlv(&mut info, BATCH_SIGNATURE, bytes);
            let other = with_info(&data, &info);
            let read = BatchSignature::of(&other);
            if let Some(expected) = expected {
                prop_assert_eq!(matches!(read, Ok(Some(_))), expected, "{:?}", read);
            }
            prop_assert!(!SigningKey::hmac_sha256(b"k").verifier().verify(&other));
        }
    }

    #[test]
    fn any_contents_come_back(
        contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..40),
    ) {
        let key = SigningKey::hmac_sha256(b"k");
        let mut known = KnownRoots::default();
        for (data, content) in signed(&key, &contents).iter().zip(&contents) {
            prop_assert_eq!(data.content_slice(), &content[..]);
            prop_assert!(key.verifier().verify_with(data, &mut known));
        }
    }
}

#[test]
fn what_is_wrong_is_told() {
    let data = signed(&ed25519(), &some(2)).remove(0);
    let told = |change: fn(&mut Parts)| BatchSignature::of(&forged(&data, change)).map(drop);
    assert_eq!(
        told(|p| p.path.push(0)).map_err(|e| e.to_string()),
        Err(String::from(
            "element of type 0xf5a4 has the wrong length 33"
        ))
    );
    assert!(matches!(
        told(|p| p.place = 2),
        Err(DecodeError::Invalid(_))
    ));
}

/// The key's name is told, which is no part of what is signed.
#[test]
fn a_key_may_have_a_name() {
    let name: Name = "/owner/KEY/1".parse().expect("a name");
    let key = ed25519().with_key_name(name.clone());
    let data = signed(&key, &some(2)).remove(1);
    let told = BatchSignature::of(&data).expect("well formed");
    let told = told.expect("in a batch").key_locator;
    assert_eq!(told, Some(KeyLocatorRef::Name(name.as_ref())));
    assert!(key.verifier().verify(&data));
}
