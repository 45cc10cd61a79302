//! Strangers who send as much as they like: each table stays within its bound, and an honest exchange still works.

mod common;

use common::*;
use fastrand::Rng;
use ndn_forwarder::{Config, FaceId, FacePersistency, FaceSpec, StrategyKind};
use ndn_packet::NetPacket;

const KIB: usize = 1024;

fn world(change: impl FnOnce(&mut Config)) -> World {
    World::new(|c| {
        c.cs_capacity_bytes = 256 * KIB;
        c.pit_max_bytes = 1024 * KIB;
        c.learned_max_bytes = 64 * KIB;
        c.outputs_max_bytes = 256 * KIB;
        c.dead_nonce_max_entries = 4096;
        change(c);
    })
}

/// Each table holds no more than it may.
fn assert_bounded(w: &World) {
    for (table, held) in w.fw.memory().tables() {
        assert!(held.bytes <= held.capacity_bytes, "{table}: {held:?}");
    }
}

/// A name that nobody has asked for yet, of some number of bytes.
fn new_name(rng: &mut Rng, len: usize) -> String {
    let mut name = format!("/flood/{:x}", rng.u64(..));
    while name.len() < len {
        name.push_str(&format!("/{:016x}", rng.u64(..)));
    }
    name
}

fn rng() -> Rng {
    Rng::with_seed(1)
}

/// An application asks, the upstream answers, the application gets it.
fn assert_honest_exchange(w: &mut World, app: FaceId, up: FaceId, n: u32) {
    let uri = format!("/honest/exchange/of/some/length/{n}");
    assert_eq!(faces(&w.receive(app, interest(&uri, n))), [up]);
    assert_eq!(faces(&w.receive(up, data(&uri))), [app]);
}

/// Interests of ever new names, short and long in turn, over simulated seconds; the driver takes nothing for a while.
#[test]
fn ever_new_names_stay_within_the_bounds() {
    for strategy in StrategyKind::ALL {
        let mut w = world(|c| c.default_strategy = strategy);
        let (app, up) = (w.local(), w.remote());
        let strangers: Vec<FaceId> = (0..4).map(|_| w.remote()).collect();
        w.route("/honest", up, 1);
        w.route("/flood", up, 1);
        w.route("/flood", strangers[0], 2);
        let mut rng = rng();
        for round in 0..40u32 {
            let len = [20, 20, 300, 6000][round as usize % 4];
            for n in 0..500u32 {
                let face = strangers[n as usize % strangers.len()];
                let packet = interest(&new_name(&mut rng, len), rng.u32(..));
                w.fw.receive(w.now, face, packet);
                if n % 100 == 0 {
                    assert_bounded(&w);
                }
            }
            assert_bounded(&w);
            w.sent();
            w.wait(ms(1000));
        }
        assert!(
            w.fw.status().packets.dropped_pit_full > 0,
            "the flood met a bound"
        );
        w.wait(ms(5000));
        w.assert_idle();
        (0..100).for_each(|n| assert_honest_exchange(&mut w, app, up, n));
        let memory = w.fw.memory();
        assert_eq!(memory.outputs.bytes, 0);
    }
}

/// After a flood of the shortest names long ones find room, and the other way round: nothing that a flood leaves keeps
/// others out.
#[test]
fn what_a_flood_leaves_keeps_nobody_out() {
    for (flood, honest) in [(10, 2000), (6000, 10)] {
        let mut w = world(|c| c.cs_capacity_bytes = 0);
        let (stranger, app, up) = (w.remote(), w.local(), w.remote());
        w.route("/flood", up, 1);
        let mut rng = rng();
        let mut ask = |w: &mut World, face: FaceId, len| {
            for n in 0..10_000 {
                let packet = interest(&new_name(&mut rng, len), n);
                if w.receive(face, packet).is_empty() {
                    return n;
                }
            }
            panic!("no bound was met")
        };
        let first = ask(&mut w, stranger, honest);
        w.wait(ms(5000));
        w.assert_idle();
        ask(&mut w, stranger, flood);
        w.wait(ms(5000));
        w.assert_idle();
        let after = ask(&mut w, app, honest);
        assert!(
            after * 5 > first,
            "{after} of {first} with names of {honest} bytes"
        );
        assert_bounded(&w);
    }
}

/// Has `floods` ask in turns for ever new names until nothing more is let in.
fn fill(w: &mut World, rng: &mut Rng, floods: &[FaceId], len: usize) {
    let mut before = None;
    while before != Some(w.fw.status().packets.pending_in) {
        before = Some(w.fw.status().packets.pending_in);
        for &face in floods {
            w.receive(face, interest(&new_name(rng, len), rng.u32(..)));
        }
    }
}

/// Asserts that faces which asked alike have about equally much pending; returns how much.
fn assert_fair(w: &World, floods: &[FaceId]) -> u64 {
    let pending = floods.iter().map(|&f| w.fw.counters(f).unwrap().pending_in);
    let pending: Vec<u64> = pending.collect();
    let (least, most) = (pending.iter().min().unwrap(), pending.iter().max().unwrap());
    assert!(*least > 0 && most - least <= 2 + most / 8, "{pending:?}");
    *least
}

/// Faces that fill the table hold equal shares, and another one finds a share that is free.
#[test]
fn floods_leave_a_share_of_the_table_to_others() {
    let by_entries: fn(&mut Config) = |c| c.pit_max_entries = 1000;
    let by_bytes: fn(&mut Config) = |_| {};
    for (bound, count, len) in [
        (by_entries, 1, 30),
        (by_entries, 4, 30),
        (by_bytes, 4, 30),
        (by_bytes, 4, 1000),
        (by_bytes, 4, 8000),
        (by_bytes, 40, 1000),
    ] {
        let mut w = world(bound);
        let (app, up) = (w.local(), w.remote());
        let floods: Vec<FaceId> = (0..count).map(|_| w.remote()).collect();
        w.route("/honest", up, 1);
        w.route("/flood", up, 1);
        let mut rng = rng();
        // A second time in what the first has left behind, with names of another length.
        for len in [len, len / 2 + 10] {
            fill(&mut w, &mut rng, &floods, len);
            let share = assert_fair(&w, &floods);
            assert_bounded(&w);
            for n in 0..share.min(100) as u32 / 2 {
                let asked = w.receive(app, interest(&format!("/honest/{n}"), rng.u32(..)));
                assert_eq!(faces(&asked), [up], "{count} floods, {len} bytes");
            }
            let uri = format!("/honest/answered/{len}");
            w.receive(app, interest(&uri, rng.u32(..)));
            assert_eq!(faces(&w.receive(up, data(&uri))), [app]);
            w.wait(ms(5000));
            w.assert_idle();
        }
    }
}

/// However often strangers connect, an eighth of the table is left to faces of this host, of its configuration, and of
/// whom a certificate names.
#[test]
fn however_many_strangers_flood_other_faces_have_their_part() {
    let by_entries: fn(&mut Config) = |c| c.pit_max_entries = 1600;
    let by_bytes: fn(&mut Config) = |_| {};
    for (bound, len, most) in [(by_entries, 30, 1600), (by_bytes, 1000, 400)] {
        let mut w = world(bound);
        let up = w.remote();
        w.route("/honest", up, 1);
        w.route("/flood", up, 1);
        let named = FaceSpec {
            peer_names: vec!["dn1.rack1".into()],
            persistency: FacePersistency::OnDemand,
            ..FaceSpec::remote("tls4://192.0.2.7:5000", "tls4://192.0.2.2:6363")
        };
        let honest = [w.local(), w.remote(), w.fw.add_face(w.now, named)];
        let strangers: Vec<FaceId> = (0..1000).map(|_| w.stranger()).collect();
        w.sent();
        let mut rng = rng();
        fill(&mut w, &mut rng, &strangers, len);
        assert_bounded(&w);
        let filled = w.fw.status().packets.pending_in;
        assert!(filled > most / 2, "{filled}");
        let mut pending = 0;
        for &face in &honest {
            for n in 0..most as u32 / 80 {
                let uri = format!("/honest/{}/{n}", face.0);
                let asked = w.receive(face, interest(&uri, rng.u32(..)));
                assert_eq!(faces(&asked), [up], "{pending} and {filled} strangers'");
                pending += 1;
            }
        }
        // Who connects later is a stranger, too.
        let late: Vec<FaceId> = (0..1000).map(|_| w.stranger()).collect();
        w.sent();
        fill(&mut w, &mut rng, &late, len);
        assert!(w.fw.status().packets.pending_in < filled + pending + filled / 10);
        assert_bounded(&w);
    }
}

/// A face that is made a permanent one is no stranger's any more.
#[test]
fn an_operator_may_know_a_face() {
    let mut w = world(|c| c.pit_max_entries = 800);
    let (up, known) = (w.remote(), w.stranger());
    w.route("/flood", up, 1);
    let strangers = (0..800).map(|_| w.stranger());
    let strangers: Vec<FaceId> = strangers.chain([known]).collect();
    w.sent();
    let mut rng = rng();
    fill(&mut w, &mut rng, &strangers, 30);
    assert!(
        w.receive(known, interest("/flood/1/2/3", 1)).is_empty(),
        "nothing is left for it"
    );
    let spec = FaceSpec {
        persistency: FacePersistency::Permanent,
        ..w.fw.face(known).expect("a face").clone()
    };
    w.fw.face_updated(known, spec);
    assert_eq!(faces(&w.receive(known, interest("/flood/1/2/3", 2))), [up]);
}

/// An Interest that goes to many faces is charged, with all its records, to the face that asked.
#[test]
fn discovery_is_charged_to_who_asks() {
    let mut w = world(|c| c.default_strategy = StrategyKind::SelfLearning);
    let (app, up) = (w.local(), w.remote());
    let floods: Vec<FaceId> = (0..40).map(|_| w.remote()).collect();
    w.route("/honest", up, 1);
    let mut rng = rng();
    fill(&mut w, &mut rng, &floods[..4], 30);
    assert_bounded(&w);
    let few = assert_fair(&w, &floods[..4]);
    // Those who were only asked have their share as yet.
    let sent = w.receive(floods[39], interest("/other/1", 1));
    assert_eq!(sent.len(), 40, "all but itself, {few} pending of each");
    w.wait(ms(5000));
    w.assert_idle();
    fill(&mut w, &mut rng, &floods, 30);
    assert_bounded(&w);
    for n in 1..4 {
        assert_honest_exchange(&mut w, app, up, n);
    }
    w.wait(ms(5000));
    w.assert_idle();
}

/// Many faces ask for one name: its records count, and go with their faces.
#[test]
fn many_downstreams_of_one_name_stay_within_the_bounds() {
    let mut w = world(|c| c.pit_max_bytes = 256 * KIB);
    let (app, up) = (w.local(), w.remote());
    w.route("/a", up, 1);
    w.route("/honest", up, 1);
    let faces: Vec<FaceId> = (0..5000).map(|_| w.remote()).collect();
    w.sent();
    let long = [9; 32];
    for (n, &face) in faces.iter().enumerate() {
        w.receive(
            face,
            interest("/a/1", n as u32).with_pit_token(token(&long)),
        );
        assert_bounded(&w);
    }
    let status = w.fw.status();
    assert!(status.packets.dropped_pit_full > 0, "the bound was met");
    assert!(status.packets.pending_in > 1000);
    for &face in &faces {
        w.fw.remove_face(w.now, face);
    }
    w.sent();
    assert_eq!(w.fw.status().packets.pending_in, 0);
    assert_honest_exchange(&mut w, app, up, 1_000_000);
    w.assert_idle();
}

/// Faces that come, ask and go.
#[test]
fn faces_that_come_and_go_leave_nothing() {
    let mut w = world(|c| c.default_strategy = StrategyKind::SelfLearning);
    let (app, up) = (w.local(), w.remote());
    w.route("/honest", up, 1);
    let mut rng = rng();
    for _ in 0..2000 {
        let face = w.remote();
        for n in 0..20 {
            w.fw.receive(w.now, face, interest(&new_name(&mut rng, 40), n));
        }
        w.sent();
        w.fw.remove_face(w.now, face);
        w.sent();
        assert_bounded(&w);
        w.now += ms(1);
    }
    assert_eq!(w.fw.status().pit_entries, 0);
    assert_honest_exchange(&mut w, app, up, 1_000_000);
    w.wait(ms(5000));
    w.assert_idle();
}

/// An upstream that takes everything and goes: its downstreams are told, within the bound of outputs.
#[test]
fn an_upstream_that_goes_with_much_pending_stays_within_the_outputs() {
    let mut w = world(|c| {
        c.pit_max_bytes = 64 << 20;
        c.cs_capacity_bytes = 0;
    });
    let (app, up) = (w.local(), w.remote());
    w.route("/a", up, 1);
    for n in 0..20_000 {
        let sent = w.receive(app, interest(&format!("/a/{n}"), n));
        assert_eq!(sent.len(), 1);
    }
    w.fw.remove_face(w.now, up);
    assert_bounded(&w);
    let dropped = w.fw.counters(app).unwrap().dropped_outputs_full;
    let sent: Vec<(FaceId, NetPacket)> = w.sent();
    assert!(dropped > 0 && !sent.is_empty());
    assert_eq!(sent.len() as u64 + dropped, 20_000);
    w.assert_idle();
}
