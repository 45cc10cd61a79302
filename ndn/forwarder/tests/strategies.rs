//! What each strategy does with next hops, retransmissions, Nacks and silence.

mod common;

use common::*;
use ndn_forwarder::{FaceId, FaceSpec, PrefixRule, StrategyKind};
use ndn_packet::NackReason;

/// A consumer and three upstreams with routes of rising cost to `/a`.
fn star(strategy: StrategyKind) -> (World, FaceId, [FaceId; 3]) {
    let mut w = World::new(|c| c.cs_capacity_bytes = 0);
    let app = w.local();
    let ups = [w.remote(), w.remote(), w.remote()];
    for (face, cost) in ups.into_iter().zip(1..) {
        w.route("/a", face, cost);
    }
    assert!(w.fw.set_strategy(&name("/a"), strategy));
    (w, app, ups)
}

#[test]
fn best_route_takes_the_cheapest_and_after_a_pause_the_next() {
    let (mut w, app, ups) = star(StrategyKind::BestRoute);
    assert_eq!(faces(&w.receive(app, interest("/a/1", 1))), [ups[0]]);
    w.wait(ms(5));
    assert!(w.receive(app, interest("/a/1", 2)).is_empty(), "suppressed");
    w.wait(ms(6));
    assert_eq!(faces(&w.receive(app, interest("/a/1", 3))), [ups[1]]);
    w.wait(ms(15));
    assert!(
        w.receive(app, interest("/a/1", 4)).is_empty(),
        "the pause has doubled"
    );
    w.wait(ms(6));
    assert_eq!(faces(&w.receive(app, interest("/a/1", 5))), [ups[2]]);
    w.wait(ms(300));
    assert_eq!(
        faces(&w.receive(app, interest("/a/1", 6))),
        [ups[0]],
        "all asked: the one that waits longest"
    );
    // Any of them may answer.
    assert_eq!(faces(&w.receive(ups[1], data("/a/1"))), [app]);
    w.assert_idle();
}

#[test]
fn best_route_goes_on_after_a_nack_and_gives_up_when_all_refused() {
    let (mut w, app, ups) = star(StrategyKind::BestRoute);
    let mut sent = w.receive(app, interest("/a/1", 1));
    for (at, next) in [(0, 1), (1, 2)] {
        sent = w.receive(ups[at], nack_of(&sent[0].1, NackReason::Congestion));
        assert_eq!(faces(&sent), [ups[next]]);
    }
    let refused = w.receive(ups[2], nack_of(&sent[0].1, NackReason::NoRoute));
    assert_eq!(
        brief(&refused),
        ["256 nack(congestion) /a/1"],
        "the mildest reason"
    );
    w.assert_idle();
}

#[test]
fn an_interest_never_goes_back_where_it_came_from() {
    let (mut w, _, ups) = star(StrategyKind::BestRoute);
    assert_eq!(faces(&w.receive(ups[0], interest("/a/1", 1))), [ups[1]]);
    w.fw.set_strategy(&name("/a"), StrategyKind::Multicast);
    assert_eq!(
        faces(&w.receive(ups[0], interest("/a/2", 2))),
        [ups[1], ups[2]]
    );
    w.fw.set_strategy(&name("/a"), StrategyKind::SelfLearning);
    assert_eq!(
        faces(&w.receive(ups[0], interest("/a/3", 3))),
        [ups[1], ups[2]]
    );
}

#[test]
fn multicast_asks_all_and_refuses_when_all_have() {
    let (mut w, app, ups) = star(StrategyKind::Multicast);
    let sent = w.receive(app, interest("/a/1", 1));
    assert_eq!(faces(&sent), ups);
    assert!(w.receive(app, interest("/a/1", 2)).is_empty(), "suppressed");
    w.wait(ms(11));
    let sent = w.receive(app, interest("/a/1", 3));
    assert_eq!(faces(&sent), ups);
    assert!(
        w.receive(ups[0], nack_of(&sent[0].1, NackReason::NoRoute))
            .is_empty()
    );
    assert!(
        w.receive(ups[1], nack_of(&sent[0].1, NackReason::NoRoute))
            .is_empty()
    );
    assert_eq!(
        brief(&w.receive(ups[2], nack_of(&sent[0].1, NackReason::NoRoute))),
        ["256 nack(no route) /a/1"]
    );
    w.assert_idle();
}

#[test]
fn two_that_wait_for_each_other_are_released() {
    let mut w = World::new(|_| {});
    let (app, peer, other) = (w.local(), w.remote(), w.remote());
    w.route("/a", peer, 1);
    w.route("/a", other, 2);
    w.fw.set_strategy(&name("/a"), StrategyKind::Multicast);
    let sent = w.receive(app, interest("/a/1", 1));
    // The peer asks us for the same, while it is the only one left that we can ask.
    w.receive(peer, interest("/a/1", 2));
    let released = w.receive(other, nack_of(&sent[0].1, NackReason::NoRoute));
    assert_eq!(brief(&released), ["257 nack(no route) /a/1"]);
    assert_eq!(faces(&w.receive(peer, data("/a/1"))), [app]);
}

#[test]
fn a_flood_reaches_its_first_asker_when_another_asks() {
    let mut w = World::new(|_| {});
    let (first, second, other) = (w.remote(), w.remote(), w.remote());
    assert!(w.fw.set_strategy(&name("/"), StrategyKind::SelfLearning));
    let flood = w.receive(first, interest("/a/1", 1));
    assert_eq!(faces(&flood), [second, other]);
    // The producer is behind the first asker, which has aggregated: only the second's Interest leads there.
    let back = w.receive(second, interest("/a/1", 2));
    assert_eq!(brief(&back), ["256 interest /a/1"]);
    assert!(
        w.receive(second, interest("/a/1", 3)).is_empty(),
        "asked once for all, and suppressed when asked again at once"
    );
    let refused = w.receive(other, nack_of(&flood[1].1, NackReason::NoRoute));
    assert!(refused.is_empty(), "two are still to answer");
    let refused = w.receive(second, nack_of(&flood[0].1, NackReason::NoRoute));
    assert_eq!(
        brief(&refused),
        ["256 nack(no route) /a/1"],
        "nobody is left for the first asker but itself"
    );
    assert_eq!(faces(&w.receive(first, data("/a/1"))), [second]);
    w.assert_idle();
    assert_eq!(
        faces(&w.receive(second, interest("/a/2", 4))),
        [first],
        "learned"
    );
    assert!(
        w.receive(other, interest("/a/2", 5)).is_empty(),
        "who is asked alone is asked once"
    );
}

#[test]
fn self_learning_floods_once_for_a_block_and_then_asks_who_answered() {
    let (mut w, app, ups) = star(StrategyKind::SelfLearning);
    let sent = w.receive(app, interest("/a/block/seg=0", 1));
    assert_eq!(faces(&sent), ups);
    assert_eq!(
        faces(&w.receive(
            ups[1],
            data("/a/block/seg=0").with_pit_token(sent[1].1.pit_token)
        )),
        [app]
    );
    for n in 1..100u32 {
        let uri = format!("/a/block/seg={n}");
        assert_eq!(faces(&w.receive(app, interest(&uri, n + 1))), [ups[1]]);
        w.receive(ups[1], data(&uri));
    }
    assert_eq!(w.fw.status().floods, 1);
    assert_eq!(
        faces(&w.receive(app, interest("/a/other/seg=0", 200))),
        ups,
        "another block"
    );
}

#[test]
fn self_learning_floods_again_after_a_nack() {
    let (mut w, app, ups) = star(StrategyKind::SelfLearning);
    w.receive(app, interest("/a/b/0", 1));
    w.receive(ups[0], data("/a/b/0"));
    let sent = w.receive(app, interest("/a/b/1", 2));
    assert_eq!(faces(&sent), [ups[0]]);
    let sent = w.receive(ups[0], nack_of(&sent[0].1, NackReason::NoRoute));
    assert_eq!(
        faces(&sent),
        [ups[1], ups[2]],
        "the pending Interest at once"
    );
    assert!(
        w.receive(ups[1], nack_of(&sent[0].1, NackReason::NoRoute))
            .is_empty()
    );
    assert_eq!(faces(&w.receive(ups[2], data("/a/b/1"))), [app]);
    assert_eq!(faces(&w.receive(app, interest("/a/b/2", 3))), [ups[2]]);
}

#[test]
fn self_learning_floods_again_when_the_learned_face_stays_silent() {
    let (mut w, app, ups) = star(StrategyKind::SelfLearning);
    w.receive(app, interest("/a/b/0", 1));
    w.receive(ups[0], data("/a/b/0"));
    let short =
        |n: u64, nonce| interest_with(&format!("/a/b/{n}"), |b| b.nonce(nonce).lifetime(ms(500)));
    assert_eq!(faces(&w.receive(app, short(1, 2))), [ups[0]]);
    w.wait(ms(502));
    w.assert_idle();
    assert_eq!(faces(&w.receive(app, short(1, 3))), ups);
    assert_eq!(
        faces(&w.receive(app, short(2, 4))),
        [ups[0]],
        "one flood at a time"
    );
    w.receive(ups[2], data("/a/b/1"));
    assert_eq!(faces(&w.receive(app, short(3, 5))), [ups[2]]);
}

#[test]
fn self_learning_sends_a_retransmission_to_the_learned_face_once_more_and_then_everywhere() {
    let (mut w, app, ups) = star(StrategyKind::SelfLearning);
    w.receive(app, interest("/a/b/0", 1));
    w.receive(ups[0], data("/a/b/0"));
    assert_eq!(faces(&w.receive(app, interest("/a/b/1", 2))), [ups[0]]);
    w.wait(ms(11));
    assert_eq!(faces(&w.receive(app, interest("/a/b/1", 3))), [ups[0]]);
    w.wait(ms(21));
    assert_eq!(faces(&w.receive(app, interest("/a/b/1", 4))), ups);
    w.receive(ups[1], data("/a/b/1"));
    assert_eq!(faces(&w.receive(app, interest("/a/b/2", 5))), [ups[1]]);
}

#[test]
fn self_learning_floods_again_when_the_learned_face_is_gone() {
    let (mut w, app, ups) = star(StrategyKind::SelfLearning);
    w.receive(app, interest("/a/b/0", 1));
    w.receive(ups[0], data("/a/b/0"));
    w.receive(app, interest("/a/b/1", 2));
    w.fw.set_face_up(w.now, ups[0], false);
    assert_eq!(
        faces(&w.sent()),
        [ups[1], ups[2]],
        "what it was asked is asked of the others"
    );
    w.receive(ups[1], data("/a/b/1"));
    assert_eq!(faces(&w.receive(app, interest("/a/b/2", 3))), [ups[1]]);
    w.fw.remove_face(w.now, ups[1]);
    assert_eq!(faces(&w.sent()), [ups[2]]);
}

#[test]
fn self_learning_tries_all_other_hosts_where_there_is_no_route() {
    let mut w = World::new(|c| c.default_strategy = StrategyKind::SelfLearning);
    let (app, app2, one, two) = (w.local(), w.local(), w.remote(), w.remote());
    let sent = w.receive(app, interest("/x/b/0", 1));
    assert_eq!(faces(&sent), [one, two], "not {app2}");
    w.receive(one, nack_of(&sent[0].1, NackReason::NoRoute));
    assert_eq!(
        brief(&w.receive(two, nack_of(&sent[1].1, NackReason::NoRoute))),
        ["256 nack(no route) /x/b/0"]
    );
    // Names of this host stay on it.
    assert_eq!(
        brief(&w.receive(app, interest("/localhost/x", 2))),
        ["256 nack(no route) /localhost/x"]
    );
    // A second application that registers the name is asked alone.
    w.route("/x", app2, 0);
    assert_eq!(faces(&w.receive(app, interest("/x/b/1", 3))), [app2]);
}

#[test]
fn what_self_learning_remembers_is_bounded() {
    let mut w = World::new(|c| {
        c.default_strategy = StrategyKind::SelfLearning;
        c.learned_max_entries = 10;
    });
    let (app, one, _two) = (w.local(), w.remote(), w.remote());
    for n in 0..100 {
        w.receive(app, interest(&format!("/x/{n}/0"), n));
        w.receive(one, data(&format!("/x/{n}/0")));
    }
    assert_eq!(w.fw.status().learned_prefixes, 10);
    assert_eq!(w.receive(app, interest("/x/99/1", 1000)).len(), 1);
    assert_eq!(w.receive(app, interest("/x/0/1", 1001)).len(), 2);
}

#[test]
fn the_strategy_of_the_longest_prefix_is_in_charge() {
    let (mut w, app, ups) = star(StrategyKind::Multicast);
    w.fw.set_strategy(&name("/a/one"), StrategyKind::BestRoute);
    assert_eq!(faces(&w.receive(app, interest("/a/one/1", 1))), [ups[0]]);
    assert_eq!(faces(&w.receive(app, interest("/a/two/1", 2))), ups);
    assert!(w.fw.unset_strategy(&name("/a/one")));
    assert!(!w.fw.unset_strategy(&name("/a/one")));
    assert_eq!(faces(&w.receive(app, interest("/a/one/2", 3))), ups);
    assert_eq!(w.fw.strategy(&name("/b")), StrategyKind::BestRoute);
}

#[test]
fn strategies_are_known_by_label_and_by_name() {
    for kind in StrategyKind::ALL {
        assert_eq!(StrategyKind::from_label(kind.label()), Some(kind));
        assert_eq!(
            StrategyKind::from_label(&kind.name().to_string()),
            Some(kind)
        );
        assert_eq!(
            StrategyKind::from_name(kind.name().parent().as_ref()),
            Some(kind)
        );
    }
    assert_eq!(
        StrategyKind::from_label("/localhost/nfd/strategy/best-route/v=1"),
        Some(StrategyKind::BestRoute)
    );
    assert_eq!(
        StrategyKind::from_label("/localhost/nfd/strategy/best-route/v=6"),
        None
    );
    assert_eq!(
        StrategyKind::from_label("/localhost/nfd/strategy/asf"),
        None
    );
}

#[test]
fn a_downstream_that_asks_for_the_first_time_waits_with_the_others() {
    for strategy in StrategyKind::ALL {
        let (mut w, app, ups) = star(strategy);
        let late = w.local();
        let asked = faces(&w.receive(app, interest("/a/1", 1)));
        assert!(!asked.is_empty());
        w.wait(ms(100));
        assert!(
            w.receive(late, interest("/a/1", 2)).is_empty(),
            "{strategy}: what is on its way must not cross the link twice"
        );
        assert!(
            !w.receive(late, interest("/a/1", 3)).is_empty(),
            "{strategy}: who asks again has lost something, perhaps"
        );
        let answer = w.receive(ups[0], data("/a/1"));
        assert_eq!(faces(&answer), [app, late], "{strategy}");
    }
}

/// Else who makes the Interest would choose who answers, for everybody.
#[test]
fn a_hint_leads_to_nobody_who_may_not_announce_the_name() {
    let mut w = World::new(|config| {
        let rule = PrefixRule {
            peer: "host2".parse().unwrap(),
            prefixes: vec![name("/host2")],
        };
        config.prefix_rules = Some([rule].into());
    });
    let asker = w.local();
    let liar = w.fw.add_face(
        w.now,
        FaceSpec {
            peer_names: vec!["host2".into()],
            ..FaceSpec::remote("tls4://192.0.2.1:6364", "tls4://192.0.2.2:6364")
        },
    );
    w.route("/host2", liar, 0);
    w.sent();
    let hinted =
        |uri: &str, nonce| interest_with(uri, |b| b.nonce(nonce).forwarding_hint(name("/host2")));
    let refused = w.receive(asker, hinted("/others/1", 1));
    assert_eq!(
        brief(&refused),
        [format!("{asker} nack(no route) /others/1")]
    );
    assert!(w.receive(liar, data("/others/1")).is_empty());
    assert_eq!(faces(&w.receive(asker, hinted("/host2/1", 2))), [liar]);
    // What an operator has a route for, that face may answer.
    w.route("/others", liar, 0);
    assert_eq!(faces(&w.receive(asker, hinted("/others/2", 3))), [liar]);
}

#[test]
fn self_learning_asks_those_who_may_announce_a_name_and_hears_no_others() {
    let mut w = World::new(|config| {
        config.default_strategy = StrategyKind::SelfLearning;
        let rule = PrefixRule {
            peer: "producer".parse().unwrap(),
            prefixes: vec![name("/a")],
        };
        config.prefix_rules = Some([rule].into());
    });
    let named = |peer_names: &[&str]| FaceSpec {
        peer_names: peer_names.iter().map(|name| (*name).to_owned()).collect(),
        ..FaceSpec::remote("tls4://192.0.2.1:6364", "tls4://192.0.2.2:6364")
    };
    let asker = w.local();
    let producer = w.fw.add_face(w.now, named(&["producer"]));
    let stranger = w.remote();
    w.sent();
    let asked = w.receive(asker, interest("/a/1", 1));
    assert_eq!(faces(&asked), [producer]);
    assert!(w.receive(stranger, data("/a/1")).is_empty());
    assert_eq!(w.fw.counters(stranger).unwrap().dropped_unsolicited, 1);
    assert_eq!(faces(&w.receive(producer, data("/a/1"))), [asker]);
    let refused = w.receive(asker, interest("/b/1", 2));
    assert_eq!(brief(&refused), [format!("{asker} nack(no route) /b/1")]);
    // A route is somebody's who may make it: the face behind it is asked.
    w.route("/b", stranger, 0);
    assert_eq!(faces(&w.receive(asker, interest("/b/2", 3))), [stranger]);
    // Another peer at the other end of the same face.
    w.fw.face_updated(producer, named(&["other"]));
    let refused = w.receive(asker, interest("/a/2", 4));
    assert_eq!(brief(&refused), [format!("{asker} nack(no route) /a/2")]);
}

#[test]
fn what_was_learned_of_a_peer_is_forgotten_where_another_takes_its_place() {
    let mut w = World::new(|config| config.default_strategy = StrategyKind::SelfLearning);
    let named = |name: &str| FaceSpec {
        peer_names: vec![name.to_owned()],
        ..FaceSpec::remote("tls4://192.0.2.1:6364", "tls4://192.0.2.2:6364")
    };
    let asker = w.local();
    let (one, two) = (
        w.fw.add_face(w.now, named("one")),
        w.fw.add_face(w.now, named("two")),
    );
    w.sent();
    assert_eq!(faces(&w.receive(asker, interest("/a/1", 1))), [one, two]);
    w.receive(one, data("/a/1"));
    assert_eq!(faces(&w.receive(asker, interest("/a/2", 2))), [one]);
    w.receive(one, data("/a/2"));
    w.fw.face_updated(one, named("one"));
    assert_eq!(faces(&w.receive(asker, interest("/a/3", 3))), [one]);
    w.receive(one, data("/a/3"));
    w.fw.face_updated(one, named("other"));
    assert_eq!(faces(&w.receive(asker, interest("/a/4", 4))), [one, two]);
}
