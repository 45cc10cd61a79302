//! Any frames from any faces, at any time: no table outgrows its bound, and nothing is left once all faces are gone.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use ndn_forwarder::{Config, FaceId, FaceSpec, Forwarder, StrategyKind};
use ndn_packet::{Name, NetPacket};
use std::time::Duration;

/// What one packet may take beyond a bound before it is noticed.
const SLACK: usize = 16 << 10;

fn config(kind: u8) -> Config {
    Config {
        cs_capacity_bytes: 4 << 10,
        pit_max_entries: 32,
        pit_max_per_face: 16,
        pit_max_bytes: 16 << 10,
        dead_nonce_max_entries: 32,
        learned_max_entries: 8,
        learned_max_bytes: 2 << 10,
        learned_groups: vec![("/a".parse().expect("a name"), 2)],
        rib_max_routes: 16,
        routes_max_bytes: 64 << 10,
        outputs_max_bytes: 16 << 10,
        default_strategy: StrategyKind::ALL[usize::from(kind) % StrategyKind::ALL.len()],
        ..Config::default()
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, mut rest)) = bytes.split_first() else {
        return;
    };
    let mut now = Duration::from_secs(1);
    let mut forwarder = Forwarder::new(config(*kind));
    let faces: Vec<FaceId> = [
        FaceSpec::local("fd://9", "unix:///run/t.sock"),
        FaceSpec::remote("udp4://192.0.2.7:6363", "udp4://192.0.2.2:6363"),
        FaceSpec::remote("tcp4://192.0.2.8:6363", "tcp4://192.0.2.2:6363"),
    ]
    .map(|spec| forwarder.add_face(now, spec))
    .to_vec();
    let _ = forwarder.add_route(&"/a".parse::<Name>().expect("a name"), faces[2], 0);
    // Each frame: face, and whether outputs are taken; 8 milliseconds since the last; length; bytes.
    while let [at, wait, high, low, tail @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(tail.len());
        let (frame, tail) = tail.split_at(length);
        rest = tail;
        now += Duration::from_millis(8 * u64::from(*wait));
        while let Some(due) = forwarder.deadline().filter(|due| *due <= now) {
            forwarder.on_deadline(due);
        }
        if let Ok(Some(packet)) = NetPacket::decode(Bytes::copy_from_slice(frame)) {
            forwarder.receive(now, faces[usize::from(*at) % faces.len()], packet);
        }
        if at & 0x80 != 0 {
            while forwarder.poll_output().is_some() {}
        }
        for (table, held) in forwarder.memory().tables() {
            assert!(
                held.bytes <= held.capacity_bytes + SLACK,
                "{table}: {held:?}"
            );
        }
    }
    for face in faces {
        forwarder.remove_face(now, face);
    }
    while forwarder.poll_output().is_some() {}
    while let Some(due) = forwarder.deadline() {
        forwarder.on_deadline(due);
    }
    assert_eq!(forwarder.status().pit_entries, 0);
});
