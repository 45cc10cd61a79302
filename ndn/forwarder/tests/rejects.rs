//! What is done with an Interest that tells of a rejected Data: who is asked instead, what is believed, and at what cost.

mod common;

use common::client::Client;
use common::*;
use ndn_forwarder::mgmt::{Dataset, FaceStatus};
use ndn_forwarder::{FaceId, StrategyKind};
use ndn_packet::{NackReason, NetKind, NetPacket};

/// An Interest whose sender has rejected a Data of this name.
fn rejecting(uri: &str, nonce: u32) -> NetPacket {
    NetPacket {
        rejected: true,
        ..interest_with(uri, |b| b.nonce(nonce).must_be_fresh(true))
    }
}

/// An application that has got `/a/1` from the first, the liar, of three upstreams.
fn lied_to(strategy: StrategyKind) -> (World, FaceId, [FaceId; 3]) {
    let mut w = World::new(|_| {});
    let app = w.local();
    let ups = [w.remote(), w.remote(), w.remote()];
    for (face, cost) in ups.into_iter().zip(1..) {
        w.route("/a", face, cost);
    }
    assert!(w.fw.set_strategy(&name("/a"), strategy));
    w.receive(app, interest("/a/1", 1));
    assert_eq!(faces(&w.receive(ups[0], data_fresh("/a/1", 60_000))), [app]);
    (w, app, ups)
}

fn rejected(w: &World, face: FaceId) -> u64 {
    w.fw.counters(face).expect("a face").rejected
}

#[test]
fn best_route_asks_the_next_one_and_the_liar_last() {
    let (mut w, app, ups) = lied_to(StrategyKind::BestRoute);
    let mut sent = w.receive(app, rejecting("/a/1", 2));
    for (at, next) in [(1, 2), (2, 0)] {
        assert_eq!(faces(&sent), [ups[at]]);
        assert!(sent[0].1.rejected, "the next hop is told");
        sent = w.receive(ups[at], nack_of(&sent[0].1, NackReason::NoRoute));
        assert_eq!(faces(&sent), [ups[next]]);
    }
    w.receive(ups[0], data("/a/1"));
    assert_eq!(
        brief(&w.receive(app, rejecting("/a/1", 3))),
        [format!("{app} data /a/1")],
        "what came instead may have been lost on the way down"
    );
    assert_eq!(faces(&w.receive(app, rejecting("/a/1", 4))), [ups[1]]);
    w.wait(ms(11));
    assert_eq!(faces(&w.receive(app, rejecting("/a/1", 5))), [ups[2]]);
    w.wait(ms(25));
    assert_eq!(faces(&w.receive(app, rejecting("/a/1", 6))), [ups[0]]);
    assert_eq!(rejected(&w, ups[0]), 2, "repeats are no other rejects");
    assert_eq!(w.fw.status().packets.rejected, 2);
    assert_eq!(w.blamed, [ups[0]], "once");
    // Of other names the liar is asked as ever.
    assert_eq!(faces(&w.receive(app, interest("/a/2", 7))), [ups[0]]);
}

#[test]
fn multicast_asks_all_others_and_then_the_liar() {
    let (mut w, app, ups) = lied_to(StrategyKind::Multicast);
    let sent = w.receive(app, rejecting("/a/1", 2));
    assert_eq!(faces(&sent), ups[1..]);
    let refuse = |n: usize| nack_of(&sent[n].1, NackReason::NoRoute);
    assert!(w.receive(ups[1], refuse(0)).is_empty());
    let last = w.receive(ups[2], refuse(1));
    assert_eq!(faces(&last), [ups[0]]);
    let refused = w.receive(ups[0], nack_of(&last[0].1, NackReason::NoRoute));
    assert_eq!(brief(&refused), [format!("{app} nack(no route) /a/1")]);
    assert_eq!(faces(&w.receive(app, rejecting("/a/1", 3))), ups[1..]);
    w.wait(ms(11));
    assert_eq!(faces(&w.receive(app, rejecting("/a/1", 4))), ups);
    assert_eq!(rejected(&w, ups[0]), 2);
}

#[test]
fn self_learning_asks_around_past_the_liar_and_learns_who_answers_instead() {
    let (mut w, app, ups) = lied_to(StrategyKind::SelfLearning);
    assert_eq!(faces(&w.receive(app, interest("/a/2", 2))), [ups[0]]);
    let sent = w.receive(app, rejecting("/a/1", 3));
    assert_eq!(faces(&sent), ups[1..]);
    assert!(sent.iter().all(|(_, packet)| packet.rejected));
    assert_eq!(
        faces(&w.receive(app, interest("/a/3", 4))),
        [ups[0]],
        "as long as nobody has answered instead"
    );
    w.receive(ups[1], data("/a/1"));
    assert_eq!(faces(&w.receive(app, interest("/a/4", 5))), [ups[1]]);
    w.receive(ups[0], data("/a/2"));
    w.receive(ups[0], data("/a/3"));
    assert_eq!(
        faces(&w.receive(app, interest("/a/5", 6))),
        [ups[1]],
        "what the liar was asked before changes nothing"
    );
    assert_eq!(faces(&w.receive(app, rejecting("/a/2", 7))), [ups[1]]);
    assert_eq!((rejected(&w, ups[0]), rejected(&w, ups[1])), (2, 0));
    // The one that answers now goes: the other is asked again, as anybody.
    w.fw.set_face_up(w.now, ups[1], false);
    w.sent();
    assert_eq!(
        faces(&w.receive(app, interest("/a/6", 8))),
        [ups[0], ups[2]]
    );
}

#[test]
fn self_learning_uses_a_face_again_when_no_other_answers() {
    let (mut w, app, ups) = lied_to(StrategyKind::SelfLearning);
    let sent = w.receive(app, rejecting("/a/1", 2));
    let refuse = |n: usize| nack_of(&sent[n].1, NackReason::NoRoute);
    assert!(w.receive(ups[1], refuse(0)).is_empty());
    assert_eq!(faces(&w.receive(ups[2], refuse(1))), [ups[0]]);
    assert_eq!(faces(&w.receive(ups[0], data("/a/1"))), [app]);
    assert_eq!(faces(&w.receive(app, interest("/a/2", 3))), [ups[0]]);
}

#[test]
fn a_face_that_is_the_only_one_is_asked_again() {
    for strategy in StrategyKind::ALL {
        let (mut w, app, ups) = lied_to(strategy);
        for other in &ups[1..] {
            w.fw.remove_route(&name("/a"), *other);
        }
        let sent = w.receive(app, rejecting("/a/1", 2));
        assert_eq!(faces(&sent), [ups[0]], "{strategy}: and no cache answers");
    }
}

#[test]
fn a_reject_of_what_is_not_held_changes_nothing() {
    let (mut w, app, ups) = lied_to(StrategyKind::BestRoute);
    let sent = w.receive(app, rejecting("/a/2", 2));
    assert_eq!(faces(&sent), [ups[0]]);
    assert!(sent[0].1.rejected);
    w.fw.remove_face(w.now, ups[0]);
    w.sent();
    // Whom it came from is gone, and whoever has its place now is another.
    let next = w.remote();
    assert_eq!(faces(&w.receive(app, rejecting("/a/1", 3))), [ups[1]]);
    assert_eq!((rejected(&w, next), w.blamed.len()), (0, 0));
}

/// Replicas of a block that take the same bad packet out of one cache reject it one after the other.
#[test]
fn what_came_instead_is_not_taken_for_what_was_rejected() {
    let (mut w, app, ups) = lied_to(StrategyKind::BestRoute);
    let others = [w.local(), w.local()];
    for (other, nonce) in others.into_iter().zip(2..) {
        let got = w.receive(other, interest("/a/1", nonce));
        assert_eq!(brief(&got), [format!("{other} data /a/1")], "the bad one");
    }
    w.receive(app, rejecting("/a/1", 4));
    assert_eq!(faces(&w.receive(ups[1], data("/a/1"))), [app]);
    for (other, nonce) in [others[0], others[1], others[1]].into_iter().zip(5..) {
        let got = w.receive(other, rejecting("/a/1", nonce));
        assert_eq!(brief(&got), [format!("{other} data /a/1")], "the good one");
    }
    assert_eq!((rejected(&w, ups[0]), rejected(&w, ups[1])), (1, 0));
    // Who has rejected it as often as it was given means this one.
    assert_eq!(faces(&w.receive(others[1], rejecting("/a/1", 8))), [ups[0]]);
    assert_eq!(rejected(&w, ups[1]), 1);
}

/// Somebody has rejected an honest Data, answered that himself, and is gone; those who ask are many.
#[test]
fn what_a_liar_leaves_in_the_store_does_not_outlast_its_rejects() {
    let (mut w, planter, ups) = lied_to(StrategyKind::SelfLearning);
    let [honest, liar, _] = ups;
    w.receive(planter, rejecting("/a/1", 2));
    w.receive(liar, data_fresh("/a/1", 1 << 40));
    for face in [planter, liar] {
        w.fw.remove_face(w.now, face);
    }
    w.sent();
    let clients = [w.local(), w.local(), w.local()];
    for round in 0..2 {
        for (client, n) in clients.into_iter().zip(0..) {
            let got = w.receive(client, rejecting("/a/1", 10 + 10 * round + n));
            assert_eq!(faces(&got), [client], "it may not have had it, or lost it");
        }
    }
    let sent = w.receive(clients[0], rejecting("/a/1", 40));
    assert!(faces(&sent).contains(&honest), "it has had it twice");
    w.wait(ms(5000));
    let late = w.local();
    let sent = w.receive(late, rejecting("/a/1", 50));
    assert!(
        faces(&sent).contains(&honest),
        "whom others have rejected since"
    );
    w.receive(honest, data_fresh("/a/1", 1000));
    let got = w.receive(clients[1], interest("/a/1", 60));
    let NetKind::Data(data) = &got[0].1.packet else {
        panic!("{got:?}")
    };
    assert_eq!(data.freshness(), Some(ms(1000)), "the honest one");
}

/// 500 names of 50 prefixes that all come from one honest face.
#[test]
fn false_claims_empty_nothing_and_cost_few_floods() {
    let mut w = World::new(|c| c.default_strategy = StrategyKind::SelfLearning);
    let (app, hostile) = (w.local(), w.local());
    let (honest, other) = (w.remote(), w.remote());
    let uri = |n: u32| format!("/a/{}/{n}", n % 50);
    for n in 0..500 {
        w.receive(app, interest(&uri(n), n));
        w.receive(honest, data(&uri(n)));
    }
    let (before, held) = (w.fw.status(), w.fw.memory());
    assert_eq!(before.cs_entries, 500);
    let mut floods = 0;
    for round in 0..20 {
        for n in 0..500 {
            let asked = w.receive(hostile, rejecting(&uri(n), 1000 + 500 * round + n));
            match &faces(&asked)[..] {
                [to] if *to == honest => drop(w.receive(honest, data(&uri(n)))),
                [to] if *to == other => floods += 1,
                [to] if *to == hostile => {} // what has just come instead
                other => panic!("asked {other:?}"),
            }
        }
        w.wait(ms(5000));
    }
    let seconds = 100;
    assert!((10..=10 + 5 * seconds).contains(&floods), "{floods}");
    w.assert_idle();
    let (after, holds) = (w.fw.status(), w.fw.memory());
    assert_eq!(
        (after.cs_entries, after.cs_bytes, after.learned_prefixes),
        (before.cs_entries, before.cs_bytes, before.learned_prefixes)
    );
    assert_eq!(holds.strategies.bytes, held.strategies.bytes);
    assert_eq!(w.blamed, [honest]);
    assert!((10 * 500..=20 * 500).contains(&rejected(&w, honest)));
    for n in 0..500 {
        let got = w.receive(app, interest(&uri(n), 50_000 + n));
        assert_eq!(faces(&got), [app], "out of the store");
        let next = w.receive(app, interest(&uri(1000 + n), 60_000 + n));
        assert_eq!(faces(&next), [honest], "still whom to ask is known");
    }
}

#[test]
fn the_list_of_faces_shows_whose_data_was_rejected() {
    let mut c = Client::new();
    let (app, liar) = (c.w.local(), c.w.remote());
    c.w.route("/a", liar, 1);
    c.w.receive(app, interest("/a/1", 1));
    c.w.receive(liar, data("/a/1"));
    c.w.receive(app, rejecting("/a/1", 2));
    let list = FaceStatus::decode_all(&c.dataset("faces/list")).expect("a list");
    for face in list {
        let expected = u64::from(face.face_id == liar.0);
        assert_eq!(face.rejected, Some(expected), "{}", face.face_id);
    }
}
