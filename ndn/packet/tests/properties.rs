//! Properties: what is made can be read again, and no bytes whatever make a decoder panic.

use bytes::Bytes;
use ndn_packet::lp::{Fragmenter, LpPacket, Reassembler, ReassemblerConfig};
use ndn_packet::{
    ComponentBuf, Data, Interest, KeyLocator, NackReason, Name, NetKind, NetPacket, Packet,
    PitToken, SignedInterestFields, SigningKey, tlv,
};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use std::time::Duration;

fn component() -> impl Strategy<Value = ComponentBuf> {
    prop_oneof![
        4 => vec(any::<u8>(), 0..20).prop_map(ComponentBuf::generic),
        1 => vec(prop::sample::select(b"./=%a0".to_vec()), 0..5).prop_map(ComponentBuf::generic),
        1 => any::<u64>().prop_map(ComponentBuf::segment),
        1 => (0..300u64).prop_map(ComponentBuf::version),
        1 => any::<u32>().prop_map(|n| ComponentBuf::timestamp(n.into())),
        1 => any::<u16>().prop_map(|n| ComponentBuf::sequence(n.into())),
        1 => any::<u64>().prop_map(ComponentBuf::byte_offset),
        1 => any::<[u8; 32]>().prop_map(|d| ComponentBuf::implicit_digest(&d)),
        2 => (3..=u16::MAX, vec(any::<u8>(), 0..300)).prop_map(|(t, v)| ComponentBuf::new(t, &v)),
    ]
}

fn name() -> impl Strategy<Value = Name> {
    vec(component(), 0..6).prop_map(Name::from_components)
}

/// Bytes that look like TLV more often than by chance: the decoders are led into their depths.
fn tlv_like() -> impl Strategy<Value = Vec<u8>> {
    let typ = prop::sample::select(vec![
        1u32, 2, 5, 6, 7, 8, 10, 12, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 33, 34, 36,
        38, 40, 42, 44, 46, 50, 80, 81, 82, 83, 98, 100, 253, 254, 255, 800, 801, 812, 816, 820,
        821, 832, 836, 844, 848, 944, 70000,
    ]);
    let leaf = prop_oneof![
        vec(any::<u8>(), 0..12),
        Just(vec![0]),
        Just(vec![0; 32]),
        Just(Vec::new())
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        vec((typ.clone(), inner), 0..6).prop_map(|elements| {
            let mut buf = Vec::new();
            for (typ, value) in elements {
                tlv::write_tlv(&mut buf, typ, &value);
            }
            buf
        })
    })
}

/// Uses all that a decoder gives out.
fn use_all(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    let _ = tlv::frame_len(&bytes, 8800);
    if let Ok(name) = Name::from_value(bytes.clone()) {
        let uri = name.to_string();
        assert_eq!(uri.parse::<Name>().as_ref(), Ok(&name), "{uri}");
    }
    if let Ok(interest) = Interest::parse(bytes.clone()) {
        use_interest(&interest);
    }
    if let Ok(data) = Data::parse(bytes.clone()) {
        use_data(&data);
    }
    let _ = Packet::parse(bytes.clone());
    if let Ok(lp) = LpPacket::decode(bytes.clone()) {
        if lp.has_header() {
            assert_eq!(LpPacket::decode(lp.encode()).as_ref(), Ok(&lp));
        }
        let mut reassembler = Reassembler::new(ReassemblerConfig::default());
        let _ = reassembler.receive(Duration::ZERO, 0, lp);
    }
    if let Ok(Some(packet)) = NetPacket::decode(bytes) {
        assert_eq!(NetPacket::decode(packet.to_lp().encode()), Ok(Some(packet)));
    }
}

fn use_interest(interest: &Interest) {
    let _ = format!("{interest:?} {:?}", interest.signature_info());
    let _ = (
        interest.nonce(),
        interest.lifetime_or_default(),
        interest.forwarding_hint().count(),
    );
    let _ = (
        interest.application_parameters(),
        interest.signature_value(),
        interest.signed_portion(),
    );
    assert!(!interest.name_owned().is_empty());
    let digest = interest.verify_params_digest();
    let next = interest.with_nonce(7).with_hop_limit(3);
    assert_eq!(next.nonce(), Some(7));
    assert_eq!(next.name(), interest.name());
    assert_eq!(next.verify_params_digest(), digest);
    assert_eq!(Interest::parse(next.wire().clone()).as_ref(), Ok(&next));
    SigningKey::DigestSha256
        .verifier()
        .verify_interest(interest);
}

fn use_data(data: &Data) {
    let _ = format!("{data:?} {:?}", data.signature_info());
    let _ = (
        data.final_block_id(),
        data.is_final_block(),
        data.freshness(),
        data.content(),
    );
    assert_eq!(data.full_name().parent(), data.name_owned());
    SigningKey::DigestSha256.verifier().verify(data);
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..200)) {
        use_all(&bytes);
    }

    #[test]
    fn bytes_that_look_like_packets_are_survived(bytes in tlv_like(), outer in prop::sample::select(vec![5, 6, 7, 100])) {
        use_all(&bytes);
        let mut packet = Vec::new();
        tlv::write_tlv(&mut packet, outer, &bytes);
        use_all(&packet);
        let mut named = Vec::new();
        tlv::write_tlv(&mut named, 7, &[8, 1, 65]);
        named.extend_from_slice(&bytes);
        packet.clear();
        tlv::write_tlv(&mut packet, outer, &named);
        use_all(&packet);
    }

    #[test]
    fn changed_packets_are_survived(name in name(), at in any::<prop::sample::Index>(), to in any::<u8>(), cut in 0..9usize) {
        let fields = SignedInterestFields { nonce: Some(1), time_ms: Some(2), seq_num: Some(3) };
        let interest = Interest::builder(&name).can_be_prefix(true).must_be_fresh(true).nonce(1)
            .lifetime(Duration::from_secs(1)).hop_limit(3).forwarding_hint(name.clone())
            .sign(&SigningKey::hmac_sha256(b"key").with_key_name(name.clone()), fields);
        let data = Data::builder(&name).freshness(Duration::from_secs(1)).content_type(2)
            .final_block_id(ComponentBuf::segment(1)).content(b"content").sign(&SigningKey::DigestSha256);
        for wire in [interest, data] {
            let mut wire = wire.to_vec();
            let at = at.index(wire.len());
            wire[at] = to;
            use_all(&wire);
            wire.truncate(wire.len() - cut);
            use_all(&wire);
        }
    }

    #[test]
    fn any_text_is_survived_as_a_name(text in "(/[a-z0-9=%.]{0,6}){0,4}|.{0,20}") {
        if let Ok(name) = text.parse::<Name>() {
            prop_assert_eq!(name.to_string().parse::<Name>(), Ok(name));
        }
    }

    #[test]
    fn names_go_round(name in name()) {
        prop_assert_eq!(Name::from_value(name.value_bytes().clone()), Ok(name.clone()));
        prop_assert_eq!(name.to_string().parse::<Name>(), Ok(name.clone()));
        prop_assert_eq!(name.components().rev().count(), name.len());
    }

    #[test]
    fn name_order_is_component_order(a in name(), b in name()) {
        prop_assert_eq!(a.cmp(&b), a.components().cmp(b.components()));
        prop_assert_eq!(a.is_prefix_of(&b), b.prefix(a.len()) == a);
    }

    #[test]
    fn interests_go_round(
        name in name().prop_filter("an Interest's name is not empty", |n| !n.is_empty()),
        (can_be_prefix, must_be_fresh) in any::<(bool, bool)>(), nonce in of(any::<u32>()), lifetime in of(any::<u32>()),
        hops in of(any::<u8>()), hint in vec(name(), 0..3), parameters in of(vec(any::<u8>(), 0..300)),
    ) {
        let mut builder = Interest::builder(&name).can_be_prefix(can_be_prefix).must_be_fresh(must_be_fresh);
        if let Some(nonce) = nonce { builder = builder.nonce(nonce); }
        if let Some(ms) = lifetime { builder = builder.lifetime(Duration::from_millis(ms.into())); }
        if let Some(hops) = hops { builder = builder.hop_limit(hops); }
        for delegation in &hint { builder = builder.forwarding_hint(delegation.clone()); }
        if let Some(parameters) = &parameters { builder = builder.application_parameters(parameters.clone()); }
        let interest = Interest::parse(builder.build()).unwrap();
        prop_assert_eq!(interest.name().prefix(name.len()), name);
        prop_assert_eq!((interest.can_be_prefix(), interest.must_be_fresh()), (can_be_prefix, must_be_fresh));
        prop_assert_eq!(interest.nonce(), nonce);
        prop_assert_eq!(interest.lifetime(), lifetime.map(|ms| Duration::from_millis(ms.into())));
        prop_assert_eq!(interest.hop_limit(), hops);
        prop_assert_eq!(interest.forwarding_hint().map(|n| n.to_name()).collect::<Vec<_>>(), hint);
        prop_assert_eq!(interest.application_parameters().map(|p| p.to_vec()), parameters);
        prop_assert!(interest.verify_params_digest());
        use_interest(&interest);
    }

    #[test]
    fn data_go_round(
        name in name(), freshness in of(any::<u32>()), content_type in any::<u64>(), last in of(component()),
        content in vec(any::<u8>(), 0..600), key_name in name(),
    ) {
        let locator = KeyLocator::Name(key_name.clone());
        let key = SigningKey::hmac_sha256(b"key").with_key_name(key_name);
        let mut builder = Data::builder(&name).content_type(content_type).content(&content);
        if let Some(ms) = freshness { builder = builder.freshness(Duration::from_millis(ms.into())); }
        if let Some(last) = &last { builder = builder.final_block_id(last); }
        let data = Data::parse(builder.sign(&key)).unwrap();
        prop_assert_eq!(data.name(), name);
        prop_assert_eq!(data.freshness(), freshness.map(|ms| Duration::from_millis(ms.into())));
        prop_assert_eq!(data.content_type(), content_type);
        prop_assert_eq!(data.final_block_id().map(|c| c.to_owned()), last);
        prop_assert_eq!(data.content_slice(), &content[..]);
        prop_assert_eq!(data.key_locator(), Some(locator.as_ref()));
        prop_assert!(key.verifier().verify(&data));
    }

    #[test]
    fn link_packets_go_round(
        payload in vec(any::<u8>(), 0..300), token in of(vec(any::<u8>(), 1..=32)), nack in of(any::<u16>()),
        (mark, incoming, next_hop, size) in (of(any::<u64>()), of(any::<u64>()), of(any::<u64>()), of(any::<u64>())),
        (no_cache, non_discovery, rejected) in any::<(bool, bool, bool)>(),
    ) {
        let packet = LpPacket {
            fragment: (!payload.is_empty()).then(|| payload.clone().into()),
            pit_token: token.map(|t| PitToken::new(&t).unwrap()),
            nack: nack.map(|code| NackReason::from_code(code.into())),
            congestion_mark: mark,
            incoming_face: incoming,
            next_hop_face: next_hop,
            cache_policy_no_cache: no_cache,
            non_discovery,
            rejected,
            max_packet_size: size,
            ..LpPacket::default()
        };
        let wire = packet.encode();
        prop_assert_eq!(packet.header_len(payload.len()) + payload.len(), wire.len());
        if packet.has_header() || payload.is_empty() {
            prop_assert_eq!(LpPacket::decode(wire), Ok(packet));
        } else {
            prop_assert_eq!(&wire[..], &payload[..]);
        }
    }

    #[test]
    fn fragments_in_any_order_make_the_packet(
        content in vec(any::<u8>(), 0..20_000), mtu in 100..3000usize, seed in any::<u64>(),
        order in any::<prop::sample::Index>(), marked in any::<bool>(),
    ) {
        let name: Name = "/a".parse().unwrap();
        let data = Data::parse(Data::builder(&name).content(&content).sign(&SigningKey::DigestSha256)).unwrap();
        let packet = NetPacket { congestion_mark: marked.then_some(1), ..NetPacket::data(data) };
        let mut pieces = Vec::new();
        Fragmenter::new(seed).fragment(packet.to_lp(), mtu, &mut pieces).unwrap();
        let rotation = order.index(pieces.len());
        pieces.rotate_left(rotation);
        let mut reassembler = Reassembler::new(ReassemblerConfig { max_packet_size: 30_000, ..ReassemblerConfig::default() });
        let last = pieces.pop().unwrap();
        for piece in pieces {
            let wire = piece.encode();
            prop_assert!(wire.len() <= mtu);
            prop_assert_eq!(reassembler.receive(Duration::ZERO, 0, LpPacket::decode(wire).unwrap()), Ok(None));
        }
        let whole = reassembler.receive(Duration::ZERO, 0, LpPacket::decode(last.encode()).unwrap()).unwrap().unwrap();
        let back = NetPacket::from_lp(whole).unwrap().unwrap();
        prop_assert!(matches!(back.packet, NetKind::Data(_)));
        prop_assert_eq!(back, packet);
    }
}
