//! Commands of the management protocol, as a client on a face meets them.

mod common;

use common::client::*;
use common::*;
use ndn_forwarder::mgmt::*;
use ndn_forwarder::{FaceId, FaceSpec, PrefixRule, StrategyKind, origin};
use ndn_packet::tlv::{self, types};
use ndn_packet::{Component, Interest, Name, NetPacket, SigningKey, Verifier, sha256};

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

/// Neighbours may register; an application of this host does not get past the key as one.
#[test]
fn nobody_on_this_host_commands_as_a_neighbour() {
    let mut c = Client::new();
    c.w = World::new(|config| {
        config.commands.local = Trust::Keys(vec![Verifier::hmac_sha256(b"secret")]);
        config.commands.localhop_rib = Some(Trust::Any);
    });
    c.face = c.w.local();
    let peer = c.w.remote();
    c.w.sent();
    let name = command_name(Scope::Localhop, "rib", "register", &named("/app"));
    let packet = c.signed(&name, &SigningKey::DigestSha256);
    assert_eq!(c.answer_to(packet).unwrap().code, 403);
    let packet = c.signed(&name, &SigningKey::hmac_sha256(b"secret"));
    assert_eq!(c.answer_to(packet).unwrap().code, 200);
    let packet = c.signed(&name, &SigningKey::DigestSha256);
    let sent = c.w.receive(peer, packet);
    assert_eq!(response_in(&sent).unwrap().code, 200, "a neighbour");
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
fn a_neighbour_registers_for_its_own_face_alone() {
    let mut c = Client::new();
    c.w = World::new(|config| config.commands.localhop_rib = Some(Trust::Any));
    let (peer, victim) = (c.w.remote(), c.w.remote());
    c.face = c.w.local();
    c.w.route("/b", victim, 1);
    let mut ask = |verb, uri, face: Option<FaceId>| {
        let p = ControlParameters {
            face_id: face.map(|id| id.0),
            origin: Some(origin::STATIC),
            ..named(uri)
        };
        let name = command_name(Scope::Localhop, "rib", verb, &p);
        let packet = c.signed(&name, &SigningKey::DigestSha256);
        let answer = response_in(&c.w.receive(peer, packet)).unwrap();
        (answer.code, answer.body.face_id)
    };
    assert_eq!(ask("register", "/a", Some(victim)), (403, None));
    assert_eq!(ask("unregister", "/b", Some(victim)), (403, None));
    assert_eq!(ask("register", "/a", Some(peer)), (200, Some(peer.0)));
    assert_eq!(ask("register", "/a/c", None), (200, Some(peer.0)));
    assert_eq!(
        ask("unregister", "/a/c", Some(FaceId(0))),
        (200, Some(peer.0))
    );
    assert_eq!(c.w.fw.lookup_route(&name("/a/c")), [(peer, 0)]);
    assert_eq!(c.w.fw.lookup_route(&name("/b")), [(victim, 1)]);
}

/// A face whose other end has proven to have a name.
fn proven(w: &mut World, name: &str) -> FaceId {
    let spec = FaceSpec {
        peer_names: vec![name.to_owned()],
        ..FaceSpec::remote("tls4://192.0.2.1:6364", "tls4://192.0.2.2:6364")
    };
    w.fw.add_face(w.now, spec)
}

#[test]
fn a_neighbour_registers_what_the_rules_allow_those_with_its_name() {
    let mut c = Client::new();
    c.w = World::new(|config| {
        config.commands.localhop_rib = Some(Trust::Any);
        let rule = PrefixRule {
            peer: "*.rack1".parse().unwrap(),
            prefixes: vec![name("/a")],
        };
        config.prefix_rules = Some([rule].into());
    });
    let named_face = proven(&mut c.w, "host1.rack1");
    let (other, bare) = (proven(&mut c.w, "host1.rack2"), c.w.remote());
    let local = c.w.local();
    c.face = local;
    c.w.sent();
    let mut ask = |face, scope, uri| {
        let name = command_name(scope, "rib", "register", &named(uri));
        let packet = c.signed(&name, &SigningKey::DigestSha256);
        response_in(&c.w.receive(face, packet)).unwrap()
    };
    assert_eq!(ask(named_face, Scope::Localhop, "/a/b").code, 200);
    for (face, uri) in [
        (named_face, "/ab"),
        (named_face, "/"),
        (other, "/a"),
        (bare, "/a"),
    ] {
        let refused = ask(face, Scope::Localhop, uri);
        assert_eq!(refused.code, 403);
        assert!(
            refused.text.contains(&format!("register {uri}")),
            "{}",
            refused.text
        );
    }
    // What is of each host's own, no rule gives away: its management would be asked elsewhere.
    for uri in ["/localhost/nfd/rib", "/localhop/nfd/rib/register"] {
        let refused = ask(named_face, Scope::Localhop, uri);
        assert_eq!(refused.code, 403);
        assert!(refused.text.contains("each host's own"), "{}", refused.text);
    }
    // This host's own applications are not asked.
    assert_eq!(ask(local, Scope::Localhost, "/z").code, 200);
    let faces = FaceStatus::decode_all(&c.dataset("faces/list")).unwrap();
    let listed = faces
        .iter()
        .find(|face| face.face_id == named_face.0)
        .unwrap();
    assert_eq!(listed.peer_names, ["host1.rack1"]);
}

/// A face that connects again may find somebody else at the other end.
#[test]
fn what_a_peer_has_registered_goes_where_another_takes_its_place() {
    let mut c = Client::new();
    c.w = World::new(|config| config.commands.localhop_rib = Some(Trust::Any));
    let peer = proven(&mut c.w, "host1");
    c.face = c.w.local();
    c.w.route("/", peer, 5);
    c.w.sent();
    let ask = |c: &mut Client, verb, uri, origin| {
        let p = ControlParameters {
            origin,
            ..named(uri)
        };
        let name = command_name(Scope::Localhop, "rib", verb, &p);
        let packet = c.signed(&name, &SigningKey::DigestSha256);
        let answer = response_in(&c.w.receive(peer, packet));
        assert_eq!(answer.expect("an answer").code, 200);
    };
    let routes = |c: &Client, uri: &str| c.w.fw.lookup_route(&name(uri));
    // Whatever origin it gives: what was set on this host stays as it is.
    ask(&mut c, "unregister", "/", Some(origin::STATIC));
    assert_eq!(routes(&c, "/"), [(peer, 5)]);
    for origin in [None, Some(origin::STATIC), Some(65)] {
        ask(&mut c, "register", "/a", origin);
    }
    ask(&mut c, "register", "/", Some(origin::STATIC));
    assert_eq!(
        (routes(&c, "/a"), routes(&c, "/")),
        (vec![(peer, 0)], vec![(peer, 0)])
    );

    let again = |c: &mut Client, peer_name: &str| {
        let spec = FaceSpec {
            peer_names: vec![peer_name.to_owned()],
            ..c.w.fw.face(peer).expect("a face").clone()
        };
        c.w.fw.set_face_up(c.w.now, peer, false);
        c.w.fw.face_updated(peer, spec);
        c.w.fw.set_face_up(c.w.now, peer, true);
        c.w.sent();
    };
    again(&mut c, "host1");
    assert_eq!(routes(&c, "/a"), [(peer, 0)], "it is still there");
    // Its Interest waits: the answer is for it alone.
    let local = c.face;
    c.w.route("/local", local, 0);
    assert_eq!(faces(&c.w.receive(peer, interest("/local/1", 1))), [local]);
    again(&mut c, "host2");
    assert_eq!(
        (routes(&c, "/a"), routes(&c, "/")),
        (vec![(peer, 5)], vec![(peer, 5)])
    );
    let route = c.rib();
    assert!(
        route.iter().all(|entry| entry.routes.len() == 1),
        "{route:?}"
    );
    assert!(c.w.receive(local, data("/local/1")).is_empty());

    // The operator takes back what a peer has registered.
    ask(&mut c, "register", "/b", None);
    let p = ControlParameters {
        face_id: Some(peer.0),
        ..named("/b")
    };
    assert_eq!(c.command("rib", "unregister", p).code, 200);
    assert_eq!(routes(&c, "/b"), [(peer, 5)]);
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
fn link_reliability_is_refused() {
    let mut c = Client::new();
    let wanted = |p| ControlParameters {
        flags: Some(FLAG_LP_RELIABILITY),
        mask: Some(FLAG_LP_RELIABILITY),
        ..p
    };
    let create = ControlParameters {
        uri: Some("udp4://192.0.2.1:6363".into()),
        ..Default::default()
    };
    assert_eq!(c.command("faces", "create", wanted(create)).code, 406);
    let update = ControlParameters {
        face_id: Some(c.face.0),
        ..Default::default()
    };
    let answer = c.command("faces", "update", wanted(update));
    let refused = Some(FLAG_LP_RELIABILITY);
    assert_eq!((answer.code, answer.body.flags), (409, refused));
}

/// A forwarding hint to this host's management leads no name there that is not of it: another host could give commands.
#[test]
fn a_hint_leads_nobody_to_management() {
    let mut c = Client::new();
    let far = c.w.remote();
    let face = c.face;
    let parameters = ControlParameters {
        face_id: Some(face.0),
        ..named("/stolen")
    };
    let prefix = name("/x/nfd/rib/register").append_generic(parameters.encode());
    for hint in ["/localhost/nfd", "/localhop/nfd/rib"] {
        c.nonce += 1;
        let fields = ndn_packet::SignedInterestFields {
            nonce: Some(c.nonce),
            time_ms: u64::try_from((UNIX + c.w.now).as_millis()).ok(),
            seq_num: None,
        };
        let wire = Interest::builder(&prefix)
            .forwarding_hint(name(hint))
            .nonce(c.nonce as u32)
            .sign(&SigningKey::DigestSha256, fields);
        let packet = NetPacket::interest(Interest::parse(wire).unwrap());
        assert_eq!(response_in(&c.w.receive(far, packet)), None, "{hint}");
        assert!(c.w.fw.lookup_route(&name("/stolen")).is_empty(), "{hint}");
    }
}
