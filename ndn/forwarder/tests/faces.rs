//! Faces, datasets and notifications of the management protocol.

mod common;

use common::client::*;
use common::*;
use ndn_forwarder::mgmt::*;
use ndn_forwarder::{
    CreateFaceError, FaceId, FacePersistency, FaceSpec, Forwarder, Output, Queues,
};
use ndn_packet::{ComponentBuf, Interest, NetKind, NetPacket, SigningKey};
use std::time::Duration;

#[test]
fn faces_are_listed_and_queried() {
    let mut c = Client::new();
    let peer = c.w.remote();
    c.w.fw.set_channels(vec!["tcp4://0.0.0.0:6363".into()]);
    c.w.receive(c.face, interest("/none", 77));
    let list = FaceStatus::decode_all(&c.dataset("faces/list")).unwrap();
    assert_eq!(
        list.iter().map(|f| f.face_id).collect::<Vec<_>>(),
        [1, c.face.0, peer.0]
    );
    let me = &list[1];
    assert_eq!(
        (me.uri.as_str(), me.scope, me.persistency, me.link_type),
        ("fd://1", 1, 1, 0)
    );
    assert_eq!(me.packets.in_interests, 2);
    let filter = FaceQueryFilter {
        uri_scheme: Some("udp4".into()),
        ..Default::default()
    };
    let query = dataset_name(Scope::Localhost, "faces/query").append_generic(filter.encode());
    let found = FaceStatus::decode_all(&c.dataset_named(&query)).unwrap();
    assert_eq!(
        found.iter().map(|f| f.face_id).collect::<Vec<_>>(),
        [peer.0]
    );
    let channels = ChannelStatus::decode_all(&c.dataset("faces/channels")).unwrap();
    assert_eq!(
        channels,
        [ChannelStatus {
            local_uri: "tcp4://0.0.0.0:6363".into()
        }]
    );
}

#[test]
fn the_general_status_tells_times_and_counts() {
    let mut c = Client::new();
    c.w.wait(ms(5000));
    c.w.fw.set_queues(Queues {
        bytes: 7,
        capacity_bytes: 100,
        refused: 3,
    });
    let status = GeneralStatus::decode(&c.dataset("status/general")).unwrap();
    assert!(status.version.starts_with("trunkline "));
    assert_eq!(status.now_ms - status.start_ms, 5000);
    assert_eq!(status.now_ms, (UNIX + c.w.now).as_millis() as u64);
    assert_eq!(
        (
            status.fib_entries,
            status.pit_entries,
            status.packets.in_interests
        ),
        (1, 1, 1)
    );
    assert_eq!(
        (
            status.queued_bytes,
            status.queue_capacity_bytes,
            status.dropped_queues_full
        ),
        (7, 100, 3)
    );
}

#[test]
fn a_large_dataset_comes_in_segments_of_one_version() {
    let mut c = Client::new();
    for n in 0..2000 {
        c.w.route(&format!("/a/{n}"), c.face, 1);
    }
    let list = c.rib();
    assert_eq!(list.len(), 2000);
    assert_eq!(c.w.fw.status().cs_entries, 0);
}

/// Makes the driver's part of faces/create, and returns the answer.
fn create(
    c: &mut Client,
    p: ControlParameters,
    driver: impl FnOnce(&mut Forwarder, Duration) -> Result<FaceId, CreateFaceError>,
) -> ControlResponse {
    let packet = c.signed(
        &command_name(Scope::Localhost, "faces", "create", &p),
        &SigningKey::DigestSha256,
    );
    c.w.fw.receive(c.w.now, c.face, packet);
    let Some(Output::CreateFace(request)) = c.w.fw.poll_output() else {
        panic!()
    };
    assert_eq!((Some(request.uri.clone()), request.mtu), (p.uri, p.mtu));
    let result = driver(&mut c.w.fw, c.w.now);
    c.w.fw.face_created(c.w.now, request.request_id, result);
    response_in(&c.w.sent()).unwrap()
}

#[test]
fn faces_are_made_changed_and_destroyed() {
    let mut c = Client::new();
    let p = ControlParameters {
        uri: Some("tcp4://192.0.2.9:6363".into()),
        persistency: Some(2),
        mtu: Some(8800),
        ..Default::default()
    };
    let spec = FaceSpec {
        persistency: FacePersistency::Permanent,
        mtu: Some(8800),
        ..FaceSpec::remote("tcp4://192.0.2.9:6363", "tcp4://192.0.2.1:4444")
    };
    let answer = create(&mut c, p.clone(), |fw, now| Ok(fw.add_face(now, spec)));
    assert_eq!(
        (answer.code, answer.body.local_uri.as_deref()),
        (200, Some("tcp4://192.0.2.1:4444"))
    );
    assert_eq!(
        (answer.body.persistency, answer.body.mtu, answer.body.flags),
        (Some(2), Some(8800), Some(0))
    );
    let id = FaceId(answer.body.face_id.unwrap());
    let exists = CreateFaceError {
        code: 409,
        text: "Face exists".into(),
        existing: Some(id),
    };
    let answer = create(&mut c, p.clone(), |_, _| Err(exists));
    assert_eq!((answer.code, answer.body.face_id), (409, Some(id.0)));
    let failed = CreateFaceError {
        code: 504,
        text: "connection refused".into(),
        existing: None,
    };
    let answer = create(&mut c, p, |_, _| Err(failed));
    assert_eq!(
        (answer.code, answer.text.as_str(), answer.body.face_id),
        (504, "connection refused", None)
    );

    let p = ControlParameters {
        face_id: Some(id.0),
        flags: Some(4),
        mask: Some(4),
        mtu: Some(1500),
        ..Default::default()
    };
    let packet = c.signed(
        &command_name(Scope::Localhost, "faces", "update", &p),
        &SigningKey::DigestSha256,
    );
    c.w.fw.receive(c.w.now, c.face, packet);
    let Some(Output::UpdateFace(update)) = c.w.fw.poll_output() else {
        panic!()
    };
    assert_eq!(
        (update.face, update.mtu, update.congestion_marking),
        (id, Some(1500), Some(true))
    );
    let body = response_in(&c.w.sent()).unwrap().body;
    assert_eq!((body.mtu, body.flags), (Some(1500), Some(4)));
    // Local fields are for local faces: for the asking one, which need not name itself.
    let p = ControlParameters {
        flags: Some(1),
        mask: Some(1),
        ..Default::default()
    };
    let packet = c.signed(
        &command_name(Scope::Localhost, "faces", "update", &p),
        &SigningKey::DigestSha256,
    );
    c.w.fw.receive(c.w.now, c.face, packet);
    assert!(matches!(c.w.fw.poll_output(), Some(Output::UpdateFace(_))));
    assert_eq!(response_in(&c.w.sent()).unwrap().code, 200);
    assert!(c.w.fw.face(c.face).unwrap().local_fields);
    assert_eq!(
        c.command(
            "faces",
            "update",
            ControlParameters {
                face_id: Some(id.0),
                ..p
            }
        )
        .code,
        409
    );

    let p = ControlParameters {
        face_id: Some(id.0),
        ..Default::default()
    };
    let packet = c.signed(
        &command_name(Scope::Localhost, "faces", "destroy", &p),
        &SigningKey::DigestSha256,
    );
    c.w.fw.receive(c.w.now, c.face, packet);
    assert!(matches!(c.w.fw.poll_output(), Some(Output::DestroyFace { face }) if face == id));
    assert_eq!(response_in(&c.w.sent()).unwrap().code, 200);
}

#[test]
fn face_events_are_notified_in_sequence() {
    let mut c = Client::new();
    c.w.wait(ms(2000));
    let stream = dataset_name(Scope::Localhost, "faces/events");
    let first = Interest::builder(&stream)
        .can_be_prefix(true)
        .must_be_fresh(true)
        .nonce(1)
        .build();
    assert!(
        c.w.receive(c.face, NetPacket::interest(Interest::parse(first).unwrap()))
            .is_empty()
    );
    let peer = c.w.remote();
    let event = |sent: &[(FaceId, NetPacket)]| {
        let [
            (
                _,
                NetPacket {
                    packet: NetKind::Data(data),
                    ..
                },
            ),
        ] = sent
        else {
            panic!("{:?}", brief(sent))
        };
        (
            FaceEvent::decode(data.content_slice()).unwrap(),
            data.name().last().unwrap().as_sequence().unwrap(),
        )
    };
    let sent = c.w.sent();
    let (created, seq) = event(&sent);
    assert_eq!(
        (created.kind, created.face.face_id),
        (FaceEventKind::Created, peer.0)
    );
    // The next one is already there when it is asked for.
    c.w.fw.set_face_up(c.w.now, peer, false);
    let next = stream.append(ComponentBuf::sequence(seq + 1));
    let ask =
        NetPacket::interest(Interest::parse(Interest::builder(&next).nonce(2).build()).unwrap());
    let (down, _) = event(&c.w.receive(c.face, ask));
    assert_eq!(
        (down.kind, down.face.face_id),
        (FaceEventKind::Down, peer.0)
    );
}
