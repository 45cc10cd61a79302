use crate::testing::hex;
use crate::{
    DecodeError, Interest, KeyLocatorRef, Name, SignedInterestFields, SigningKey, signature_type,
};
use std::time::Duration;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

const DIGEST: &str = "ff9100e04eaadcf30674d98026a051ba25f56b69bfa026dcccd72c6ea0f7315a";

/// Vectors of ndn-cxx, tests/unit/interest.t.cpp.
const PREFIX: &str = "08056c6f63616c 08036e646e 0806707265666978";

fn full_wire() -> bytes::Bytes {
    hex(&format!(
        "0556 0736 {PREFIX} 0220 {DIGEST} 2100 1200 1e05 0703 080148 0a04 4c1ecb4a 0c02 76a1 2201 dc 2404 c0c1c2c3"
    ))
}

#[test]
fn the_shortest_interest() {
    let wire = hex(&format!("051c 0714 {PREFIX} 0a04 01020304"));
    let made = Interest::builder(&name("/local/ndn/prefix"))
        .nonce(0x0102_0304)
        .build();
    assert_eq!(made, wire);
    let interest = Interest::parse(wire).unwrap();
    assert_eq!(interest.name().to_string(), "/local/ndn/prefix");
    assert_eq!(interest.nonce(), Some(0x0102_0304));
    assert!(!interest.can_be_prefix() && !interest.must_be_fresh());
    assert_eq!(interest.lifetime(), None);
    assert_eq!(interest.lifetime_or_default(), Duration::from_secs(4));
    assert_eq!(interest.hop_limit(), None);
    assert_eq!(interest.forwarding_hint().count(), 0);
    assert_eq!(interest.application_parameters(), None);
    assert!(interest.signature_info().is_none() && interest.signature_value().is_none());
    assert!(interest.verify_params_digest());
}

#[test]
fn all_elements() {
    let made = Interest::builder(&name("/local/ndn/prefix"))
        .can_be_prefix(true)
        .must_be_fresh(true)
        .forwarding_hint(name("/H"))
        .nonce(0x4c1e_cb4a)
        .lifetime(Duration::from_millis(30369))
        .hop_limit(220)
        .application_parameters(hex("c0c1c2c3"))
        .build();
    assert_eq!(made, full_wire());
    let interest = Interest::parse(full_wire()).unwrap();
    assert_eq!(
        interest.name_owned(),
        name(&format!("/local/ndn/prefix/params-sha256={DIGEST}"))
    );
    assert!(interest.can_be_prefix() && interest.must_be_fresh());
    let hint: Vec<_> = interest.forwarding_hint().map(|n| n.to_string()).collect();
    assert_eq!(hint, ["/H"]);
    assert_eq!(interest.nonce(), Some(0x4c1e_cb4a));
    assert_eq!(interest.lifetime(), Some(Duration::from_millis(30369)));
    assert_eq!(interest.hop_limit(), Some(220));
    assert_eq!(interest.application_parameters(), Some(hex("c0c1c2c3")));
    assert!(interest.verify_params_digest());
}

#[test]
fn signed_as_by_ndn_cxx() {
    // goodInterest of Sha256Dataset in ndn-cxx, tests/unit/security/verification-helpers.t.cpp.
    let wire = hex(
        "056b 073a 080474657374 0808696e746572657374 0806536861323536
         0220 8f030b85a705d805318e8081d3e2a85e74d74f3adcff9c44f6a1c66b97998eda
         0a04 f72c8a4b 2400 2c03 1b0100 2e20 ef455575c8185ee92aae52610a944103364c1359d4c7a43aa040614433935e99",
    );
    let made = Interest::builder(&name("/test/interest/Sha256"))
        .nonce(0xf72c_8a4b)
        .sign(&SigningKey::DigestSha256, SignedInterestFields::default());
    assert_eq!(made, wire);
    let interest = Interest::parse(wire).unwrap();
    assert!(
        SigningKey::DigestSha256
            .verifier()
            .verify_interest(&interest)
    );
}

#[test]
fn signature_fields_against_replay() {
    let fields = SignedInterestFields {
        nonce: Some(0x0102_0304_0506_0708),
        time_ms: Some(1_700_000_000_000),
        seq_num: Some(3),
    };
    let key = SigningKey::hmac_sha256(b"a secret").with_key_name(name("/key"));
    let made = Interest::builder(&name("/a")).sign(&key, fields);
    let interest = Interest::parse(made).unwrap();
    let info = interest.signature_info().unwrap();
    assert_eq!(info.signature_type, signature_type::HMAC_WITH_SHA256);
    assert_eq!(
        info.key_locator,
        Some(KeyLocatorRef::Name(name("/key").as_ref()))
    );
    assert_eq!(info.nonce, Some(&[1, 2, 3, 4, 5, 6, 7, 8][..]));
    assert_eq!(
        (info.time, info.seq_num),
        (Some(1_700_000_000_000), Some(3))
    );
    assert!(key.verifier().verify_interest(&interest));
    assert!(
        !SigningKey::hmac_sha256(b"another")
            .verifier()
            .verify_interest(&interest)
    );
}

#[test]
fn signature_covers_application_elements_around_its_info() {
    // As ndn-cxx's SignedApplicationElements, whose signature value is a placeholder: only the digest is right.
    let wire = hex(&format!(
        "058f 0736 {PREFIX} 0220 bc3630a4d65e0db5483dfa0d28b3312fcac1d441ec8961d4175e61751778108e
         1200 0a04 4c1ecb4a 2404 c0c1c2c3 fd01fe08 1020304050607080 2c0d 1b01 00 2608 0102030405060708
         2e20 12471ae0f8723ac1156c370a38711ebebf2817de9b2dd94e9b7e62f117b876c1 fd020008 1122334455667788"
    ));
    let interest = Interest::parse(wire).unwrap();
    assert!(interest.verify_params_digest());
    let covered = interest.signed_portion()[2];
    assert_eq!(
        covered,
        &hex("2404c0c1c2c3 fd01fe081020304050607080 2c0d1b0100 26080102030405060708")[..]
    );
    assert!(
        !SigningKey::DigestSha256
            .verifier()
            .verify_interest(&interest)
    );
}

#[test]
fn a_digest_in_the_name_is_moved_to_its_end_by_signing_only() {
    let at = name(&format!("/a/params-sha256={DIGEST}/b"));
    let plain = Interest::builder(&at)
        .application_parameters(&b"x"[..])
        .build();
    let plain = Interest::parse(plain).unwrap();
    assert!(plain.verify_params_digest());
    assert!(plain.name().get(1).unwrap().is_params_digest());
    let signed =
        Interest::builder(&at).sign(&SigningKey::DigestSha256, SignedInterestFields::default());
    let signed = Interest::parse(signed).unwrap();
    assert!(signed.name().get(2).unwrap().is_params_digest());
    assert!(SigningKey::DigestSha256.verifier().verify_interest(&signed));
}

#[test]
fn a_wrong_digest_is_noticed() {
    let mut wire = full_wire().to_vec();
    *wire.last_mut().unwrap() ^= 1;
    assert!(!Interest::parse(wire.into()).unwrap().verify_params_digest());
}

#[test]
fn hop_limit_and_nonce_are_changed_in_a_copy() {
    let interest = Interest::parse(full_wire()).unwrap();
    let next = interest.with_hop_limit_decremented().unwrap();
    assert_eq!(
        (interest.hop_limit(), next.hop_limit()),
        (Some(220), Some(219))
    );
    assert_eq!(next, Interest::parse(next.wire().clone()).unwrap());
    assert!(
        next.with_hop_limit(0)
            .with_hop_limit_decremented()
            .is_none()
    );
    assert_eq!(next.with_nonce(7).nonce(), Some(7));

    let bare = Interest::parse(hex("0509 0703080141 2100 1200")).unwrap();
    assert_eq!(bare.with_hop_limit_decremented(), Some(bare.clone()));
    let with = bare.with_nonce(0xa0a1_a2a3);
    assert_eq!(
        with.wire()[..],
        hex("050f 0703080141 2100 1200 0a04a0a1a2a3")[..]
    );
    assert_eq!(with.nonce(), Some(0xa0a1_a2a3));
}

#[test]
fn a_nonce_goes_before_lifetime_and_parameters() {
    let made = Interest::builder(&name("/A"))
        .lifetime(Duration::from_millis(1))
        .application_parameters(&b"x"[..])
        .build();
    let with = Interest::parse(made).unwrap().with_nonce(1);
    assert_eq!(with.nonce(), Some(1));
    assert!(with.verify_params_digest());
    assert_eq!(with.lifetime(), Some(Duration::from_millis(1)));
}

#[test]
fn what_may_be_ignored_is_ignored() {
    let wire = hex("051f 0703080144 fc00 2100 fc00 1200 fc00 0a0400000001 fc00 2201b4 2201b5 fc00");
    let interest = Interest::parse(wire).unwrap();
    assert!(interest.can_be_prefix() && interest.must_be_fresh());
    assert_eq!(
        interest.hop_limit(),
        Some(0xb4),
        "a second HopLimit is out of order and not critical"
    );
}

#[test]
fn what_is_refused() {
    use DecodeError::*;
    let refused = [
        (
            "0503 0a0101",
            UnexpectedType {
                expected: 7,
                found: 0x0a,
            },
        ),
        (
            "0502 0700",
            Invalid("Name: an Interest's name has at least one component"),
        ),
        ("0500", Missing("Name")),
        (
            "0607 0703080141 2100",
            UnexpectedType {
                expected: 5,
                found: 6,
            },
        ),
        ("0507 0703080141 fb00", UnknownCritical(0xfb)),
        ("0507 0703080141 1f00", UnknownCritical(0x1f)),
        ("0509 0703080141 1200 2100", OutOfOrder(0x21)),
        ("0509 0703080141 2100 2100", OutOfOrder(0x21)),
        ("0508 0703080141 210101", BadLength { typ: 0x21, len: 1 }),
        ("0508 0703080141 0a0101", BadLength { typ: 0x0a, len: 1 }),
        ("0507 0703080141 2200", BadLength { typ: 0x22, len: 0 }),
        (
            "050a 0703080141 0c03000001",
            BadLength { typ: 0x0c, len: 3 },
        ),
        ("0507 0703080141 1e00", Missing("Name in ForwardingHint")),
        (
            "0507 0703080141 2400",
            Missing("ParametersSha256DigestComponent"),
        ),
        (
            "050a 0703080141 2c031b0100",
            Missing("ApplicationParameters of a signed Interest"),
        ),
        ("0505 070308014100", TrailingBytes(1)),
        ("0506 0703080141", Truncated),
        ("0505 0704080141", Truncated),
        ("fd0005 05 0703080141", NonMinimal),
        ("05fd0005 0703080141", NonMinimal),
        ("0506 0704 fd000800", NonMinimal),
        ("0504 07020000", TypeOutOfRange(0)),
        ("0508 0706 fe0001000000", TypeOutOfRange(0x10000)),
        ("0506 0704 02020000", BadLength { typ: 2, len: 2 }),
    ];
    for (wire, error) in refused {
        assert_eq!(Interest::parse(hex(wire)).unwrap_err(), error, "{wire}");
    }
    let with_digest = format!("0529 0727 080148 0220{DIGEST} 0800");
    assert_eq!(
        Interest::parse(hex(&with_digest)).unwrap_err(),
        Missing("ApplicationParameters for the digest in the Name")
    );
    let twice = format!("0546 0744 0220{DIGEST} 0220{DIGEST}");
    assert_eq!(
        Interest::parse(hex(&twice)).unwrap_err(),
        Invalid("Name: more than one ParametersSha256DigestComponent")
    );
    let half_signed = format!("052d 0724 0220{DIGEST} 0800 2400 2c031b0100");
    assert_eq!(
        Interest::parse(hex(&half_signed)).unwrap_err(),
        Missing("InterestSignatureInfo or InterestSignatureValue")
    );
}
