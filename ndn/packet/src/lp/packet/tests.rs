use super::*;
use crate::testing::hex;

fn decode(wire: &str) -> Result<LpPacket, DecodeError> {
    LpPacket::decode(hex(wire))
}

/// Decodes to the same as `packet`, and encodes to `wire`.
fn both_ways(packet: &LpPacket, wire: &str) {
    let wire = hex(wire);
    assert_eq!(packet.encode(), wire);
    assert_eq!(LpPacket::decode(wire.clone()).as_ref(), Ok(packet));
    let len = packet.fragment.as_ref().map_or(0, Bytes::len);
    assert_eq!(packet.header_len(len) + len, wire.len());
    assert_eq!(packet.encode_header(len)[..], wire[..wire.len() - len]);
}

#[test]
fn vectors_of_ndn_cxx() {
    // tests/unit/lp/packet.t.cpp
    let fragment = LpPacket {
        sequence: Some(1000),
        ..LpPacket::bare(hex("03e8"))
    };
    both_ways(&fragment, "640e 5108 00000000000003e8 5002 03e8");
    let nack = LpPacket {
        nack: Some(NackReason::Duplicate),
        ..LpPacket::default()
    };
    both_ways(&nack, "6409 fd032005 fd03210164");
    let non_discovery = LpPacket {
        non_discovery: true,
        ..LpPacket::default()
    };
    both_ways(&non_discovery, "6404 fd034c00");
    let rejected = LpPacket {
        rejected: true,
        ..LpPacket::bare(hex("0505 0703080141"))
    };
    both_ways(&rejected, "640d fd03a400 5007 0505 0703080141");
    both_ways(&LpPacket::default(), "6400");
    let with_acks = "642e 520100 530101 fd034408 0000000000000001 fd034408 0000000000000003
        fd034408 0000000000000002 5002 03e8";
    assert_eq!(decode(with_acks), Ok(LpPacket::bare(hex("03e8"))));
    assert_eq!(
        decode("6406 520100 530101"),
        Ok(LpPacket::default()),
        "idle"
    );
    assert_eq!(
        decode("6406 520100 520101"),
        Err(DecodeError::OutOfOrder(0x52))
    );
    assert_eq!(
        decode("6408 5002 03e8 5002 03e9"),
        Err(DecodeError::OutOfOrder(0x50))
    );
}

#[test]
fn all_fields() {
    let packet = LpPacket {
        fragment: Some(hex("0505 0703080141")),
        sequence: Some(1),
        frag_index: 1,
        frag_count: 300,
        pit_token: Some(PitToken::new(&[0xa0, 0xa1]).unwrap()),
        nack: Some(NackReason::NoRoute),
        congestion_mark: Some(1),
        incoming_face: Some(256),
        next_hop_face: Some(70000),
        cache_policy_no_cache: true,
        non_discovery: true,
        prefix_announcement: Some(hex("0600")),
        rejected: true,
        max_packet_size: Some(66560),
        lent: Some(Lent {
            place: 0x102,
            len: 0x3040506,
            offset: 7,
        }),
    };
    both_ways(
        &packet,
        "646b 5108 0000000000000001 520101 5302012c 6202a0a1 fd032005 fd03210196 fd032c02 0100 fd033004 00011170
         fd033405 fd03350101 fd034001 01 fd034c00 fd035002 0600 fd03a400 fd03b004 00010400
         fd03a00e 0102 03040506 0000000000000007 5007 05050703080141",
    );
}

#[test]
fn bare_packets() {
    let interest = hex("0505 0703080141");
    assert_eq!(
        LpPacket::decode(interest.clone()),
        Ok(LpPacket::bare(interest.clone()))
    );
    both_ways(&LpPacket::bare(interest.clone()), "0505 0703080141");
    assert_eq!(
        LpPacket::bare(interest.clone()).encode().as_ptr(),
        interest.as_ptr()
    );
    assert_eq!(
        decode("0505 0703080141 00"),
        Err(DecodeError::TrailingBytes(1))
    );
    assert_eq!(decode("0506 0703080141"), Err(DecodeError::Truncated));
    assert_eq!(decode("0703080141"), Err(DecodeError::UnknownCritical(7)));
    assert_eq!(decode(""), Err(DecodeError::Truncated));
}

#[test]
fn fragments_share_the_frame() {
    let frame = hex("6409 5007 05050703080141");
    let packet = LpPacket::decode(frame.clone()).unwrap();
    assert_eq!(packet.fragment.unwrap().as_ptr(), frame[4..].as_ptr());
}

#[test]
fn nack_without_a_reason_we_know() {
    assert_eq!(
        decode("6404 fd032000").unwrap().nack,
        Some(NackReason::None)
    );
    assert_eq!(
        decode("6409 fd032005 fd03210107").unwrap().nack,
        Some(NackReason::Other(7))
    );
    assert_eq!(
        decode("6408 fd032004 fd032400").unwrap().nack,
        Some(NackReason::None)
    );
    let none = LpPacket {
        nack: Some(NackReason::None),
        ..LpPacket::default()
    };
    both_ways(&none, "6404 fd032000");
}

#[test]
fn which_unknown_fields_are_passed_over() {
    // 800 to 959 and divisible by four
    for known in ["fd035400", "fd03bc00", "fd032400"] {
        assert_eq!(
            decode(&format!("6404 {known}")),
            Ok(LpPacket::default()),
            "{known}"
        );
    }
    for (wire, typ) in [
        ("fd035500", 0x355),
        ("fd035600", 0x356),
        ("fd031c00", 0x31c),
        ("fd03c000", 0x3c0),
    ] {
        assert_eq!(
            decode(&format!("6404 {wire}")),
            Err(DecodeError::UnknownCritical(typ))
        );
    }
    assert_eq!(decode("6402 5400"), Err(DecodeError::UnknownCritical(0x54)));
    assert_eq!(
        decode("6403 550101"),
        Err(DecodeError::UnknownCritical(0x55))
    );
}

#[test]
fn what_is_refused() {
    use DecodeError::*;
    for (wire, error) in [
        ("6403 510101", BadLength { typ: 0x51, len: 1 }),
        ("6402 6200", BadLength { typ: 0x62, len: 0 }),
        ("6405 fd034c0101", BadLength { typ: 0x34c, len: 1 }),
        ("6405 fd03a40101", BadLength { typ: 0x3a4, len: 1 }),
        ("6405 fd03a00101", BadLength { typ: 0x3a0, len: 1 }),
        ("6404 fd033400", Missing("CachePolicyType")),
        ("6403 530100", Invalid("FragIndex or FragCount")),
        ("6403 520101", Invalid("FragIndex or FragCount")),
        (
            "6405 530102 5000",
            Missing("Sequence or Fragment of a fragment"),
        ),
        (
            "6406 530102 500105",
            Missing("Sequence or Fragment of a fragment"),
        ),
        (
            "6406 fd035002 0500",
            UnexpectedType {
                expected: 6,
                found: 5,
            },
        ),
        ("6407 500105 fd034c00", OutOfOrder(0x34c)),
        ("6408 fd03a400 fd03a400", OutOfOrder(0x3a4)),
        ("6404 500105", Truncated),
    ] {
        assert_eq!(decode(wire), Err(error), "{wire}");
    }
    let long_token = format!("6423 6221 {}", "00".repeat(33));
    assert_eq!(decode(&long_token), Err(BadLength { typ: 0x62, len: 33 }));
}
