use super::*;
use crate::testing::hex;
use crate::{ComponentBuf, Name, SigningKey, Verifier};
use std::time::Duration;

/// Vector of ndn-cxx, tests/unit/data.t.cpp, signed with RSA.
fn rsa_signed() -> Bytes {
    hex(
        "06c5 0714 08056c6f63616c 08036e646e 0806707265666978 1404 19022710 1508 5355434345535321
         161b 1b0101 1c16 0714 080474657374 08036b6579 08076c6f6361746f72
         1780 2fd6f16e806f10beb16f3e31ece3b9ea83304003fca013d9b3c625162da65841
         69625 6d8b36a387656ea61b232701cb64d101ddc928e52a58a1dd9965ec0620b
         cf3a9d7fcabea14171857a8b5da964d666b4e98d0c2843eea664e855f61c190b
         ef99251edc78b3a7aa0d145830e5376a6ddb56aca3fc907ab8669c0ef6b764d1",
    )
}

#[test]
fn all_usual_elements() {
    let data = Data::parse(rsa_signed()).unwrap();
    assert_eq!(data.name().to_string(), "/local/ndn/prefix");
    assert_eq!(data.content_type(), content_type::BLOB);
    assert_eq!(data.freshness(), Some(Duration::from_secs(10)));
    assert_eq!(data.final_block_id(), None);
    assert_eq!(&data.content()[..], b"SUCCESS!");
    assert_eq!(data.content().as_ptr(), data.content_slice().as_ptr());
    assert_eq!(data.signature_type(), signature_type::SHA256_WITH_RSA);
    let key: Name = "/test/key/locator".parse().unwrap();
    assert_eq!(data.key_locator(), Some(KeyLocatorRef::Name(key.as_ref())));
    assert_eq!(data.signature_value().len(), 128);
    assert_eq!(
        data.signed_portion(),
        &data.wire()[2..data.wire().len() - 130]
    );
    assert!(!data.verify_digest());
}

#[test]
fn the_shortest_data() {
    let data = Data::parse(hex("0609 0700 16031b0100 1700")).unwrap();
    assert!(data.name().is_empty() && data.content().is_empty());
    assert_eq!(data.freshness(), None);
    assert_eq!(data.final_block_id(), None);
    assert!(!data.is_final_block());
}

#[test]
fn digest_and_full_name_as_by_ndn_cxx() {
    // goodData of Sha256Dataset in ndn-cxx, tests/unit/security/verification-helpers.t.cpp.
    let data = Data::parse(hex(
        "0641 0714 080474657374 080464617461 0806536861323536 1400 1500 16031b0100
         1720 e2e22f0270a7f74870452946bdd26224a61e1d752a269804ad9c4763f8985a49",
    ))
    .unwrap();
    assert!(data.verify_digest());
    assert!(Verifier::DigestSha256.verify(&data));
    let full = data.full_name();
    assert_eq!(full.len(), 4);
    assert_eq!(full.last().unwrap().value, data.implicit_digest());
}

#[test]
fn made_and_read_again() {
    let name: Name = "/a/v=1/seg=7".parse().unwrap();
    let wire = Data::builder(&name)
        .content_type(content_type::KEY)
        .freshness(Duration::from_millis(4000))
        .final_block_id(ComponentBuf::segment(7))
        .content(b"abc")
        .sign(&SigningKey::DigestSha256);
    let start =
        "0645 0709 080161 360101 320107 140c 180102 19020fa0 1a03320107 1503616263 16031b0100 1720";
    let start = hex(start);
    assert_eq!(wire[..start.len()], start[..]);
    let data = Data::parse(wire).unwrap();
    assert_eq!(data.content_type(), content_type::KEY);
    assert_eq!(data.freshness(), Some(Duration::from_secs(4)));
    assert_eq!(data.final_block_id().unwrap().as_segment(), Some(7));
    assert!(data.is_final_block() && data.verify_digest());
}

#[test]
fn what_may_be_ignored_is_ignored() {
    let data = Data::parse(hex(
        "063c 0703080144 fc00 1402fc00 fc00 1500 fc00 16031b0100 fc00
         1720612a79399e60304a9f701c1ecac7956bf2f1b046e6c6f0d6c29b3fe3a29bad76 fc00",
    ))
    .unwrap();
    assert_eq!(data.name().to_string(), "/D");
    assert_eq!(
        data.signed_portion(),
        &data.wire()[2..26],
        "all before SignatureValue is signed"
    );
}

#[test]
fn certificate_elements_are_read() {
    let data = Data::parse(hex(
        "0653 0703080144 164a 1b0105 1c03 1d0101 280800000172cea8e753
         fd00fd26 fd00fe0f 313937303031303154303030303030 fd00ff0f 323034303036313454323231373531
         fd01020a 00010203040506070809 1700",
    ));
    let data = data.unwrap();
    let info = data.signature_info();
    assert_eq!(info.key_locator, Some(KeyLocatorRef::KeyDigest(&[1])));
    assert_eq!(info.time, Some(0x0172_cea8_e753));
    assert_eq!(info.validity.unwrap().not_before, b"19700101T000000");
    assert_eq!(info.validity.unwrap().not_after, b"20400614T221751");
}

#[test]
fn what_is_refused() {
    use DecodeError::*;
    let refused = [
        ("0600", Missing("Name")),
        (
            "0605 16031b0100",
            UnexpectedType {
                expected: 7,
                found: 0x16,
            },
        ),
        (
            "0505 0703080141",
            UnexpectedType {
                expected: 6,
                found: 5,
            },
        ),
        ("0605 0703080141", Missing("SignatureInfo")),
        ("060a 0703080141 16031b0100", Missing("SignatureValue")),
        ("0609 0703080141 1600 1700", Missing("SignatureType")),
        ("060e 0703080141 1500 1400 16031b0100", OutOfOrder(0x14)),
        ("0609 0703080141 1500 1500", OutOfOrder(0x15)),
        ("0609 0703080141 fd00f900", NonMinimal),
        ("0607 0703080141 fb00", UnknownCritical(0xfb)),
        ("060a 0703080141 1403180100 1500", TrailingBytes(2)),
        ("0609 0703080141 14021900", BadLength { typ: 0x19, len: 0 }),
        ("060c 0703080141 1405 180100 1d00", UnknownCritical(0x1d)),
        (
            "060f 0703080141 1408 1a06 080141 080142",
            Invalid("FinalBlockId: one name component is required"),
        ),
        (
            "0609 0703080141 1402 1a00",
            Invalid("FinalBlockId: one name component is required"),
        ),
        (
            "060c 0703080141 1605 1b0100 1c00",
            Missing("Name or KeyDigest in KeyLocator"),
        ),
        (
            "0610 0703080141 1609 1b0100 1c04 1d00 1d00",
            OutOfOrder(0x1d),
        ),
        (
            "060e 0703080141 1607 1b0100 fd00fd00",
            Missing("NotBefore or NotAfter in ValidityPeriod"),
        ),
        ("06ff ffffffffffffffff", Truncated),
    ];
    for (wire, error) in refused {
        let found = Data::parse(hex(wire)).unwrap_err();
        assert_eq!(found, error, "{wire}");
    }
}

#[test]
fn content_is_written_in_place_in_one_buffer() {
    let name: Name = "/a/v=1/seg=7".parse().unwrap();
    for len in [0, 1, 100, 252, 253, 65000, 65536, 70000] {
        let content: Vec<u8> = (0..len).map(|i| i as u8).collect();
        let copied = Data::builder(&name)
            .content(&content)
            .sign(&SigningKey::DigestSha256);
        let written = Data::builder(&name)
            .content_with(len, |buf| {
                assert_eq!(buf.len(), len);
                buf.copy_from_slice(&content);
                Ok::<(), ()>(())
            })
            .sign(&SigningKey::DigestSha256)
            .unwrap();
        assert_eq!(copied, written);
        let buffer = written.clone().try_into_mut().err().map(|b| b.len());
        assert_eq!(buffer, Some(written.len()));
        assert_eq!(Data::parse(written).unwrap().content(), content);
    }
    let failed = Data::builder(&name)
        .content_with(9, |_| Err("disk"))
        .sign(&SigningKey::DigestSha256);
    assert_eq!(failed, Err("disk"));
}

#[test]
fn a_digest_is_known_before_the_packet_is_put_together() {
    let name: Name = "/a/v=1/seg=300".parse().unwrap();
    for len in [0, 1, 252, 253, 8000] {
        let content = vec![5; len];
        let builder = Data::builder(&name)
            .freshness(Duration::from_secs(10))
            .final_block_id(ComponentBuf::segment(300));
        let digest = builder.digest(&content);
        let data = Data::parse(builder.content(&content).sign(&SigningKey::DigestSha256)).unwrap();
        assert_eq!(data.signature_value(), digest);
    }
    assert_eq!(
        Data::builder(&name).digest(b"x"),
        Data::parse(
            Data::builder(&name)
                .content(b"x")
                .sign(&SigningKey::DigestSha256)
        )
        .unwrap()
        .signature_value()
    );
}

#[test]
fn a_packet_made_in_memory_of_the_caller_is_the_same() {
    let name: Name = "/a/b".parse().unwrap();
    for (key, content) in [
        (SigningKey::DigestSha256, 0),
        (SigningKey::DigestSha256, 300),
        (SigningKey::Null, 70_000),
    ] {
        let builder = || {
            Data::builder(&name)
                .freshness(Duration::from_secs(1))
                .final_block_id(ComponentBuf::segment(9))
                .content_with(content, |to| {
                    to.fill(7);
                    Ok::<(), ()>(())
                })
        };
        let expected = builder().sign(&key).unwrap();
        for spare in [0, 1, 5000] {
            let memory = vec![0xee; expected.len() + 8 + spare];
            let at = memory.as_ptr_range();
            let made = builder().sign_in(&key, Some(memory)).unwrap();
            assert_eq!(made, expected);
            assert!(at.contains(&made.as_ptr()), "made where it was to be");
        }
        let small = vec![0xee; expected.len() - 1];
        assert_eq!(builder().sign_in(&key, Some(small)).unwrap(), expected);
        let none: Option<Vec<u8>> = None;
        assert_eq!(builder().sign_in(&key, none).unwrap(), expected);
    }
    let failed = Data::builder(&name).content_with(5, |_| Err("no"));
    assert_eq!(
        failed.sign_in(&SigningKey::Null, Some(vec![0; 500])),
        Err("no")
    );
}
