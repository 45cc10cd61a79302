//! Whatever arrives under the names of management, nothing panics.

mod common;

use common::client::*;
use common::*;
use ndn_forwarder::mgmt::*;
use ndn_packet::{Interest, Name, NetPacket, SigningKey, tlv};
use proptest::prelude::*;

fn component() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "localhost",
        "localhop",
        "nfd",
        "faces",
        "rib",
        "fib",
        "cs",
        "strategy-choice",
        "status",
    ];
    let verbs = [
        "list", "query", "events", "create", "update", "register", "info", "config", "general",
        "set",
    ];
    let known = ControlParameters {
        face_id: Some(256),
        flags: Some(1),
        mask: Some(1),
        uri: Some("x".into()),
        strategy: Some(name("/localhost/nfd/strategy/multicast")),
        ..named("/a")
    };
    prop_oneof![
        2 => prop::sample::select(words.to_vec()).prop_map(|w| w.as_bytes().to_vec()),
        2 => prop::sample::select(verbs.to_vec()).prop_map(|w| w.as_bytes().to_vec()),
        1 => (any::<usize>(), any::<u8>()).prop_map(move |(at, byte)| {
            let mut bytes = known.encode().to_vec();
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes
        }),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ]
}

proptest! {
    #[test]
    fn no_name_makes_management_panic(
        parts in prop::collection::vec(component(), 0..7),
        start in any::<bool>(),
        signed in any::<bool>(),
    ) {
        let mut c = Client::new();
        let mut uri = if start { name("/localhost/nfd") } else { Name::new() };
        uri = parts.iter().fold(uri, |name, part| name.append_generic(part));
        if uri.is_empty() {
            return Ok(());
        }
        let packet = if signed {
            c.signed(&uri, &SigningKey::DigestSha256)
        } else {
            let wire = Interest::builder(&uri).can_be_prefix(true).nonce(1).build();
            NetPacket::interest(Interest::parse(wire).unwrap())
        };
        c.w.fw.receive(c.w.now, c.face, packet);
        while c.w.fw.poll_output().is_some() {}
        c.w.wait(ms(5000));
        c.w.assert_idle();
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), typ in any::<u8>()) {
        let mut wrapped = bytes::BytesMut::new();
        tlv::write_tlv(&mut wrapped, u32::from(typ).max(1), &bytes);
        for input in [&bytes[..], &wrapped] {
            let _ = ControlParameters::decode(input);
            let _ = ControlResponse::decode(input);
            let _ = FaceQueryFilter::decode(input);
            let _ = FaceEvent::decode(input);
            let _ = GeneralStatus::decode(input);
            let _ = FaceStatus::decode_all(input);
            let _ = FibEntry::decode_all(input);
            let _ = RibEntry::decode_all(input);
            let _ = StrategyChoice::decode_all(input);
            let _ = CsInfo::decode_all(input);
            let _ = ChannelStatus::decode_all(input);
        }
    }
}
