//! Of two who answer for a name one lies: whoever verifies gets what is right, and the liar is told.

mod common;

use std::time::Duration;

use common::apps::Source;
use common::{client, faces, fetch, listen, node, prefix, uri};
use ndn_forwarder::StrategyKind;
use ndn_io::{App, ClientOptions};
use ndn_packet::{Data, NetKind, NetPacket};

const SEGMENT_BYTES: usize = 4000;

/// Answers as the honest one does, with one byte of content changed.
struct Liar(Source);

impl App for Liar {
    fn on_packet(&mut self, now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        let from = out.len();
        self.0.on_packet(now, packet, out);
        for packet in &mut out[from..] {
            let NetKind::Data(data) = &packet.packet else {
                continue;
            };
            let mut wire = data.wire().to_vec();
            let middle = wire.len() / 2;
            wire[middle] ^= 1;
            packet.packet = NetKind::Data(Data::parse(wire.into()).expect("well formed"));
        }
    }
}

#[test]
fn a_liar_is_asked_past_and_told() {
    for strategy in StrategyKind::ALL {
        let dir = tempfile::tempdir().expect("a folder");
        let place = format!("unix://{}/f.sock", dir.path().display());
        let node = node(vec![listen(&place)]);
        let attach = |app: Box<dyn App>, name| node.attach(app, name).expect("an app");
        let liar = attach(Box::new(Liar(Source::new(SEGMENT_BYTES))), "liar");
        let honest = attach(Box::new(Source::new(SEGMENT_BYTES)), "honest");
        let (near, far) = (liar.face_id(), honest.face_id());
        let routes = node.with_forwarder(move |fw, _| {
            fw.set_strategy(&prefix(), strategy)
                && fw.add_route(&prefix(), near, 0).is_ok()
                && fw.add_route(&prefix(), far, 10).is_ok()
        });
        assert!(routes.expect("a running node"));
        let mut reader = client(&uri(&place), &ClientOptions::default());
        let stats = fetch(&mut reader, 200, SEGMENT_BYTES, 8);
        assert!(stats.rejected > 0, "{strategy}: {stats:?}");
        for face in faces(&node) {
            let rejected = face.packets.rejected;
            match face.id {
                id if id == near => assert_eq!(rejected, stats.rejected, "{strategy}"),
                _ => assert_eq!(rejected, 0, "{strategy}: {}", face.spec.remote_uri),
            }
        }
        if strategy == StrategyKind::SelfLearning {
            assert!(stats.rejected < 50, "it has learned: {stats:?}");
        }
    }
}
