//! What is asked of all workers: datasets.

use std::time::Duration;

use ndn_forwarder::mgmt::*;
use ndn_forwarder::{FaceId, Forwarder};
use ndn_packet::{NetKind, NetPacket};

use crate::common::*;
use crate::several::{Several, config, spec, take_outputs};

/// What all workers have sent.
fn sent(several: &mut Several) -> Vec<(FaceId, NetPacket)> {
    let mut sent = Vec::new();
    several
        .workers
        .iter_mut()
        .for_each(|worker| take_outputs(worker, &mut sent));
    sent
}

/// Asks for a dataset on a face and gives its content, of one segment.
fn dataset(several: &mut Several, face: FaceId, name: &str, nonce: u32) -> Option<Vec<u8>> {
    let now = Duration::from_secs(1000);
    sent(several);
    let name = dataset_name(Scope::Localhost, name).to_string();
    let asked = interest_with(&name, |b| {
        b.nonce(nonce).can_be_prefix(true).must_be_fresh(true)
    });
    several.of(face).receive(now, face, asked);
    while several.deliver(now) {}
    let sent = sent(several);
    sent.into_iter()
        .find_map(|(to, packet)| match packet.packet {
            NetKind::Data(data) if to == face => Some(data.content_slice().to_vec()),
            _ => None,
        })
}

#[test]
fn datasets_are_of_all_workers() {
    let now = Duration::from_secs(1000);
    let mut several = Several::new(&config(), 4, 4);
    let asker = several.workers[1].add_face(now, spec(0));
    let producer = several.workers[2].add_face(now, spec(3));
    while several.deliver(now) {}
    several.workers[0]
        .add_route(&name("/n"), producer, 1)
        .unwrap();
    while several.deliver(now) {}
    for n in 0..30 {
        let uri = format!("/n/{n}/seg=0");
        several.of(asker).receive(now, asker, interest(&uri, n));
        while several.deliver(now) {}
        several.of(producer).receive(now, producer, data(&uri));
        while several.deliver(now) {}
    }
    let by_worker = several
        .workers
        .iter()
        .map(|worker| worker.status().cs_entries);
    assert!(
        by_worker.clone().all(|n| n > 0),
        "{:?}",
        by_worker.collect::<Vec<_>>()
    );

    let faces = dataset(&mut several, asker, "faces/list", 1).expect("the list");
    let faces = FaceStatus::decode_all(&faces).unwrap();
    let of = |face: FaceId| {
        faces
            .iter()
            .find(|f| f.face_id == face.0)
            .expect("a face")
            .packets
    };
    assert_eq!((of(asker).in_interests, of(asker).out_data), (31, 30));
    assert_eq!((of(producer).out_interests, of(producer).in_data), (30, 30));

    let info = dataset(&mut several, asker, "cs/info", 2).expect("the store's");
    let info = CsInfo::decode_all(&info).unwrap()[0];
    assert_eq!((info.entries, info.misses), (30, 32));
    assert_eq!(info.capacity, config().cs_capacity_bytes as u64);

    let status = dataset(&mut several, asker, "status/general", 3).expect("the status");
    let status = GeneralStatus::decode(&status).unwrap();
    assert_eq!((status.cs_entries, status.satisfied_interests), (30, 32));
    let part = |part: &str| {
        status
            .memory
            .iter()
            .find(|m| m.name == part)
            .expect("a part")
    };
    let alone = Forwarder::new(config()).memory();
    for (name, bound) in alone.tables() {
        let (sum, bound) = (part(name).capacity_bytes, bound.capacity_bytes as u64);
        assert!(
            sum.abs_diff(bound) <= bound / 100,
            "{name}: {sum} of {bound}"
        );
    }
}

/// Whoever asks for figures without end has so many requests going from worker to worker, and no more.
#[test]
fn requests_that_go_by_all_workers_are_bounded() {
    let now = Duration::from_secs(1000);
    let mut several = Several::new(&config(), 3, 4);
    let asker = several.workers[0].add_face(now, spec(0));
    while several.deliver(now) {}
    for n in 0..100 {
        let uri = dataset_name(Scope::Localhost, "status/general").append_segment(0);
        // Each of another name: none waits for another's answer.
        let uri = format!("{}/{n}", uri.parent());
        several.of(asker).receive(now, asker, interest(&uri, n));
    }
    several.collect();
    assert_eq!(several.under_way.len(), 16);
    while several.deliver(now) {}
    assert!(
        dataset(&mut several, asker, "status/general", 1000).is_some(),
        "they have come back"
    );
}
