//! The management protocol, as a client on a face meets it.

mod common;

use common::*;
use ndn_forwarder::mgmt::*;
use ndn_forwarder::{
    CreateFaceError, FaceId, FacePersistency, FaceSpec, Forwarder, Output, StrategyKind,
};
use ndn_packet::tlv::{self, types};
use ndn_packet::{
    Component, ComponentBuf, Data, Interest, Name, NetKind, NetPacket, SigningKey, Verifier, sha256,
};
use std::time::Duration;

const UNIX: Duration = Duration::from_secs(1_700_000_000);

struct Client {
    w: World,
    face: FaceId,
    nonce: u64,
}

impl Client {
    fn new() -> Self {
        let mut w = World::new(|c| c.unix_time_at_zero = UNIX);
        let face = w.local();
        w.sent();
        Client { w, face, nonce: 0 }
    }

    fn signed(&mut self, name: &Name, key: &SigningKey) -> NetPacket {
        self.nonce += 1;
        let wire = command(name, key, self.nonce, UNIX + self.w.now, ms(4000));
        NetPacket::interest(Interest::parse(wire).unwrap())
    }

    fn command(&mut self, module: &str, verb: &str, p: ControlParameters) -> ControlResponse {
        let name = command_name(Scope::Localhost, module, verb, &p);
        let packet = self.signed(&name, &SigningKey::DigestSha256);
        self.answer_to(packet)
            .unwrap_or_else(|| panic!("no answer to {module}/{verb}"))
    }

    fn answer_to(&mut self, packet: NetPacket) -> Option<ControlResponse> {
        let sent = self.w.receive(self.face, packet);
        response_in(&sent)
    }

    fn dataset(&mut self, name: &str) -> Vec<u8> {
        self.dataset_named(&dataset_name(Scope::Localhost, name))
    }

    fn dataset_named(&mut self, name: &Name) -> Vec<u8> {
        self.nonce += 1;
        let wire = Interest::builder(name)
            .can_be_prefix(true)
            .must_be_fresh(true)
            .nonce(self.nonce as u32)
            .build();
        let mut data = self.ask(wire);
        let mut content = Vec::new();
        loop {
            content.extend_from_slice(data.content_slice());
            if data.is_final_block() {
                return content;
            }
            let segment = data.name().last().unwrap().as_segment().unwrap();
            let next = data
                .name()
                .parent()
                .append(ComponentBuf::segment(segment + 1));
            self.nonce += 1;
            data = self.ask(Interest::builder(&next).nonce(self.nonce as u32).build());
        }
    }

    fn ask(&mut self, wire: bytes::Bytes) -> Data {
        let sent = self.w.receive(
            self.face,
            NetPacket::interest(Interest::parse(wire).unwrap()),
        );
        let [
            (
                _,
                NetPacket {
                    packet: NetKind::Data(data),
                    ..
                },
            ),
        ] = &sent[..]
        else {
            panic!("{}", brief(&sent).join(", "))
        };
        assert!(data.verify_digest());
        data.clone()
    }

    fn rib(&mut self) -> Vec<RibEntry> {
        RibEntry::decode_all(&self.dataset("rib/list")).unwrap()
    }
}

fn response_in(sent: &[(FaceId, NetPacket)]) -> Option<ControlResponse> {
    sent.iter().find_map(|(_, packet)| match &packet.packet {
        NetKind::Data(data) => Some(ControlResponse::decode(data.content_slice()).unwrap()),
        _ => None,
    })
}

fn named(uri: &str) -> ControlParameters {
    ControlParameters {
        name: Some(name(uri)),
        ..Default::default()
    }
}

#[test]
fn an_application_registers_a_prefix_for_itself() {
    let mut c = Client::new();
    let answer = c.command("rib", "register", named("/app"));
    assert_eq!((answer.code, answer.text.as_str()), (200, "OK"));
    let expected = ControlParameters {
        face_id: Some(c.face.0),
        origin: Some(0),
        cost: Some(0),
        flags: Some(1),
        ..named("/app")
    };
    assert_eq!(answer.body, expected);
    let route = Route {
        face_id: c.face.0,
        origin: 0,
        cost: 0,
        flags: 1,
        expires_ms: None,
    };
    assert_eq!(
        c.rib(),
        [RibEntry {
            prefix: name("/app"),
            routes: vec![route]
        }]
    );
    let other = c.w.local();
    assert_eq!(faces(&c.w.receive(other, interest("/app/1", 1))), [c.face]);
    assert_eq!(c.command("rib", "unregister", named("/app")).code, 200);
    assert!(c.rib().is_empty());
    assert_eq!(c.w.fw.status().pit_entries, 1);
}

#[test]
fn a_route_expires() {
    let mut c = Client::new();
    let p = ControlParameters {
        expiration_ms: Some(60_000),
        cost: Some(7),
        origin: Some(255),
        ..named("/app")
    };
    assert_eq!(
        c.command("rib", "register", p).body.expiration_ms,
        Some(60_000)
    );
    c.w.wait(ms(20_000));
    assert_eq!(c.rib()[0].routes[0].expires_ms, Some(40_000));
    c.w.wait(ms(40_000));
    assert!(c.rib().is_empty());
    assert!(c.w.fw.lookup_route(&name("/app")).is_empty());
}

#[test]
fn a_command_sent_again_is_answered_but_not_done_again() {
    let mut c = Client::new();
    let packet = c.signed(
        &command_name(Scope::Localhost, "rib", "register", &named("/app")),
        &SigningKey::DigestSha256,
    );
    assert_eq!(c.answer_to(packet.clone()).unwrap().code, 200);
    c.command("rib", "unregister", named("/app"));
    c.w.wait(ms(20_000));
    assert_eq!(c.answer_to(packet).unwrap().code, 200);
    assert!(c.rib().is_empty());
}

#[test]
fn old_forged_and_unsigned_commands_are_refused() {
    let mut c = Client::new();
    let name = command_name(Scope::Localhost, "rib", "register", &named("/app"));
    let old = command(&name, &SigningKey::DigestSha256, 1, UNIX, ms(4000));
    let old = NetPacket::interest(Interest::parse(old).unwrap());
    assert_eq!(c.answer_to(old).unwrap().code, 403);

    let mut forged = c.signed(&name, &SigningKey::DigestSha256).wire().to_vec();
    let last = forged.len() - 1;
    forged[last] ^= 1;
    let forged = NetPacket::interest(Interest::parse(forged.into()).unwrap());
    assert_eq!(c.answer_to(forged).unwrap().code, 403);

    let unsigned =
        NetPacket::interest(Interest::parse(Interest::builder(&name).nonce(5).build()).unwrap());
    assert_eq!(c.answer_to(unsigned).unwrap().code, 403);
    assert!(c.rib().is_empty());
}

#[test]
fn only_trusted_keys_command_when_the_policy_says_so() {
    let key = SigningKey::hmac_sha256(b"secret");
    let mut c = Client::new();
    c.w = World::new(|config| {
        config.commands.local = Trust::Keys(vec![Verifier::hmac_sha256(b"secret")])
    });
    c.face = c.w.local();
    c.w.sent();
    assert_eq!(c.command("rib", "register", named("/app")).code, 403);
    let packet = c.signed(
        &command_name(Scope::Localhost, "rib", "register", &named("/app")),
        &key,
    );
    assert_eq!(c.answer_to(packet).unwrap().code, 200);
}

/// The form of signed Interests before Packet Format 0.3, as old clients send it.
#[test]
fn the_older_form_of_commands_is_understood() {
    let mut c = Client::new();
    let element = |typ, value: &[u8]| {
        let mut buf = bytes::BytesMut::new();
        tlv::write_tlv(&mut buf, typ, value);
        buf
    };
    let time = (UNIX + c.w.now).as_millis() as u64;
    let unsigned = command_name(Scope::Localhost, "rib", "register", &named("/old"))
        .append_generic(time.to_be_bytes())
        .append_generic([1, 2, 3, 4, 5, 6, 7, 8])
        .append_generic(element(types::SIGNATURE_INFO, b"\x1b\x01\x00"));
    let sign = |digest: &[u8]| {
        unsigned.append(Component::generic(&element(types::SIGNATURE_VALUE, digest)))
    };
    let ask = |name: &Name| {
        NetPacket::interest(Interest::parse(Interest::builder(name).nonce(1).build()).unwrap())
    };
    assert_eq!(c.answer_to(ask(&sign(&[0; 32]))).unwrap().code, 403);
    assert_eq!(
        c.answer_to(ask(&sign(&sha256(unsigned.value()))))
            .unwrap()
            .code,
        200
    );
    assert_eq!(c.rib()[0].prefix, name("/old"));
}

#[test]
fn neighbours_register_prefixes_where_the_policy_allows_it() {
    let register = |c: &mut Client, peer| {
        let packet = c.signed(
            &command_name(Scope::Localhop, "rib", "register", &named("/peer")),
            &SigningKey::DigestSha256,
        );
        c.w.receive(peer, packet)
    };
    let mut c = Client::new();
    let peer = c.w.remote();
    c.w.sent();
    assert_eq!(response_in(&register(&mut c, peer)), None);
    c.w = World::new(|config| config.commands.localhop_rib = Some(Trust::Any));
    let peer = c.w.remote();
    c.face = c.w.local();
    c.w.sent();
    assert_eq!(
        response_in(&register(&mut c, peer)).unwrap().body.face_id,
        Some(peer.0)
    );
    // Nothing else, and not under /localhost.
    let p = ControlParameters {
        face_id: Some(peer.0),
        ..Default::default()
    };
    for (scope, module, verb) in [
        (Scope::Localhop, "faces", "destroy"),
        (Scope::Localhost, "rib", "register"),
    ] {
        let packet = c.signed(
            &command_name(scope, module, verb, &p),
            &SigningKey::DigestSha256,
        );
        assert_eq!(response_in(&c.w.receive(peer, packet)), None);
    }
    assert_eq!(c.rib().len(), 1);
}

#[test]
fn wrong_commands_are_refused_with_a_reason() {
    let mut c = Client::new();
    let long: Name = (0..64).map(|_| Component::generic(b"x")).collect();
    let none = ControlParameters::default;
    let cases = [
        ("rib", "register", none(), 400),
        (
            "rib",
            "register",
            ControlParameters {
                face_id: Some(9999),
                ..named("/a")
            },
            410,
        ),
        (
            "rib",
            "register",
            ControlParameters {
                name: Some(long.clone()),
                ..none()
            },
            414,
        ),
        ("rib", "fly", named("/a"), 501),
        (
            "fib",
            "add-nexthop",
            ControlParameters {
                face_id: Some(9999),
                ..named("/a")
            },
            410,
        ),
        (
            "fib",
            "remove-nexthop",
            ControlParameters {
                face_id: Some(9999),
                ..named("/a")
            },
            200,
        ),
        ("strategy-choice", "set", named("/a"), 400),
        (
            "strategy-choice",
            "set",
            ControlParameters {
                strategy: Some(name("/x")),
                ..named("/a")
            },
            404,
        ),
        ("strategy-choice", "unset", named("/"), 400),
        (
            "cs",
            "config",
            ControlParameters {
                flags: Some(1),
                ..none()
            },
            400,
        ),
        (
            "cs",
            "erase",
            ControlParameters {
                count: Some(0),
                ..named("/a")
            },
            400,
        ),
        ("faces", "create", none(), 400),
        (
            "faces",
            "update",
            ControlParameters {
                face_id: Some(9999),
                ..none()
            },
            404,
        ),
        (
            "faces",
            "update",
            ControlParameters {
                persistency: Some(9),
                ..none()
            },
            409,
        ),
        ("faces", "destroy", none(), 400),
        (
            "faces",
            "destroy",
            ControlParameters {
                face_id: Some(1),
                ..none()
            },
            400,
        ),
        (
            "faces",
            "destroy",
            ControlParameters {
                face_id: Some(9999),
                ..none()
            },
            200,
        ),
    ];
    for (module, verb, p, code) in cases {
        let answer = c.command(module, verb, p);
        assert_eq!(answer.code, code, "{module}/{verb}: {}", answer.text);
    }
    let garbage = name("/localhost/nfd/rib/register/garbage");
    let packet = c.signed(&garbage, &SigningKey::DigestSha256);
    assert_eq!(c.answer_to(packet).unwrap().code, 400);
}

#[test]
fn fib_commands_and_list() {
    let mut c = Client::new();
    let peer = c.w.remote();
    c.w.sent();
    let p = ControlParameters {
        face_id: Some(peer.0),
        cost: Some(9),
        ..named("/a")
    };
    assert_eq!(c.command("fib", "add-nexthop", p.clone()).body, p);
    let entry = FibEntry {
        prefix: name("/a"),
        next_hops: vec![NextHopRecord {
            face_id: peer.0,
            cost: 9,
        }],
    };
    assert!(
        FibEntry::decode_all(&c.dataset("fib/list"))
            .unwrap()
            .contains(&entry)
    );
    assert!(c.rib().is_empty());
    assert_eq!(c.command("fib", "remove-nexthop", p).code, 200);
    assert_eq!(
        FibEntry::decode_all(&c.dataset("fib/list")).unwrap().len(),
        1
    );
}

#[test]
fn strategies_are_chosen_and_listed() {
    let mut c = Client::new();
    let p = ControlParameters {
        strategy: Some(name("/localhost/nfd/strategy/multicast")),
        ..named("/a")
    };
    assert_eq!(
        c.command("strategy-choice", "set", p).body.strategy,
        Some(StrategyKind::Multicast.name())
    );
    let choice = |uri, kind: StrategyKind| StrategyChoice {
        prefix: name(uri),
        strategy: kind.name(),
    };
    let list = StrategyChoice::decode_all(&c.dataset("strategy-choice/list")).unwrap();
    assert_eq!(
        list,
        [
            choice("/", StrategyKind::BestRoute),
            choice("/a", StrategyKind::Multicast)
        ]
    );
    assert_eq!(c.w.fw.strategy(&name("/a/b")), StrategyKind::Multicast);
    assert_eq!(c.command("strategy-choice", "unset", named("/a")).code, 200);
    assert_eq!(c.w.fw.strategy(&name("/a/b")), StrategyKind::BestRoute);
}

#[test]
fn the_content_store_is_configured_erased_and_described() {
    let mut c = Client::new();
    let peer = c.w.remote();
    c.w.route("/a", peer, 1);
    c.w.sent();
    for n in 0..5 {
        c.w.receive(c.face, interest(&format!("/a/{n}"), n));
        c.w.receive(peer, data(&format!("/a/{n}")));
    }
    let info = CsInfo::decode_all(&c.dataset("cs/info")).unwrap()[0];
    assert_eq!((info.entries, info.flags, info.capacity), (5, 3, 256 << 20));
    assert!(info.bytes.unwrap() > 0);
    let p = ControlParameters {
        count: Some(2),
        ..named("/a")
    };
    assert_eq!(c.command("cs", "erase", p).body.count, Some(2));
    assert_eq!(c.command("cs", "erase", named("/a")).body.count, Some(3));
    let p = ControlParameters {
        capacity: Some(1000),
        flags: Some(0),
        mask: Some(2),
        ..Default::default()
    };
    let body = c.command("cs", "config", p).body;
    assert_eq!((body.capacity, body.flags), (Some(1000), Some(1)));
}

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

mod hostile {
    use super::*;
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
}
