//! Data too large for the face that asked for it.

mod common;

use common::{World, brief, interest_with, name};
use ndn_forwarder::{FaceId, FaceSpec, Output};
use ndn_packet::{Data, MAX_PACKET, NetKind, NetPacket, SigningKey};

fn face(w: &mut World, max_packet_bytes: Option<u64>) -> FaceId {
    let spec = FaceSpec {
        max_packet_bytes,
        ..FaceSpec::remote("tcp4://192.0.2.3:6363", "tcp4://192.0.2.2:6363")
    };
    w.fw.add_face(w.now, spec)
}

fn jumbo(uri: &str) -> NetPacket {
    let wire = Data::builder(&name(uri))
        .content(&[7; 20_000])
        .sign(&SigningKey::DigestSha256);
    NetPacket::data(Data::parse(wire).unwrap())
}

fn asked(uri: &str, nonce: u32, token: &[u8]) -> NetPacket {
    let asked = interest_with(uri, |b| b.nonce(nonce).can_be_prefix(true));
    asked.with_pit_token(common::token(token))
}

/// What was sent, and on which faces Data was held back.
fn outcome(w: &mut World) -> (Vec<(FaceId, NetPacket)>, Vec<FaceId>) {
    let (mut sent, mut held_back) = (Vec::new(), Vec::new());
    while let Some(output) = w.fw.poll_output() {
        match output {
            Output::Send { face, packet } => sent.push((face, packet)),
            Output::TooLarge { face, .. } => held_back.push(face),
            other => panic!("unexpected {other:?}"),
        }
    }
    (sent, held_back)
}

#[test]
fn who_asked_for_data_too_large_for_its_face_is_told_by_a_nack() {
    let mut w = World::new(|_| {});
    let standard = Some(MAX_PACKET as u64);
    let (small, large, peer) = (face(&mut w, standard), face(&mut w, None), w.remote());
    w.route("/a", peer, 1);
    w.receive(small, asked("/a", 11, b"small"));
    w.receive(large, asked("/a", 12, b"large"));
    w.fw.receive(w.now, peer, jumbo("/a/1"));
    let (mut sent, held_back) = outcome(&mut w);
    assert_eq!(held_back, [small]);
    sent.sort_by_key(|(face, _)| *face);
    assert_eq!(brief(&sent).len(), 2, "{:?}", brief(&sent));
    let NetKind::Nack { interest, .. } = &sent[0].1.packet else {
        panic!("{:?}", brief(&sent))
    };
    assert_eq!(sent[0].0, small);
    assert_eq!(
        (interest.nonce(), interest.name()),
        (Some(11), name("/a").as_ref())
    );
    assert_eq!(sent[0].1.pit_token, common::token(b"small"));
    assert_eq!(sent[1].0, large);
    assert!(matches!(sent[1].1.packet, NetKind::Data(_)));
    w.assert_idle();

    // From the content store it is the same.
    w.fw.receive(w.now, small, asked("/a", 13, b"again"));
    let (sent, held_back) = outcome(&mut w);
    assert_eq!(held_back, [small]);
    let NetKind::Nack { interest, .. } = &sent[0].1.packet else {
        panic!("{:?}", brief(&sent))
    };
    assert_eq!(
        (sent.len(), sent[0].0, interest.nonce()),
        (1, small, Some(13))
    );

    // What the two ends agree to later counts from then on.
    let spec = FaceSpec {
        max_packet_bytes: Some(66_560),
        ..w.fw.face(small).unwrap().clone()
    };
    w.fw.face_updated(small, spec);
    w.fw.receive(w.now, small, asked("/a", 14, b"more"));
    let (sent, held_back) = outcome(&mut w);
    assert!(held_back.is_empty());
    assert!(matches!(sent[0].1.packet, NetKind::Data(_)));
}
