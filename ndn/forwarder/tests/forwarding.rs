//! Interests, Data and Nacks through a whole forwarder: aggregation, loops, scope, bounds, tokens, faces that go.

mod common;

use common::*;
use ndn_forwarder::{FaceId, FaceSpec, LinkType};
use ndn_packet::{NackReason, NetKind};

#[test]
fn data_goes_back_the_way_the_interest_came() {
    let mut w = World::new(|_| {});
    let (app, peer) = (w.local(), w.remote());
    w.route("/a", peer, 1);
    let sent = w.receive(app, interest("/a/b", 1).with_pit_token(token(b"abc")));
    assert_eq!(brief(&sent), ["257 interest /a/b"]);
    let back = w.receive(peer, data("/a/b").with_pit_token(sent[0].1.pit_token));
    assert_eq!(brief(&back), ["256 data /a/b"]);
    assert_eq!(back[0].1.pit_token, token(b"abc"));
    w.assert_idle();
    assert_eq!(w.fw.status().satisfied_interests, 1);
    let counters = w.fw.counters(peer).unwrap();
    assert_eq!(
        (
            counters.out_interests,
            counters.in_data,
            counters.in_interests
        ),
        (1, 1, 0)
    );
}

#[test]
fn data_without_or_with_a_wrong_token_is_matched_by_name() {
    let mut w = World::new(|c| c.cs_capacity_bytes = 0);
    let (app, peer) = (w.local(), w.remote());
    w.route("/a", peer, 1);
    for (n, wrong) in [(1, None), (2, token(b"12345678")), (3, token(b"x"))] {
        w.receive(app, interest("/a/b", n));
        assert_eq!(
            brief(&w.receive(peer, data("/a/b").with_pit_token(wrong))),
            ["256 data /a/b"]
        );
    }
    // A token of ours that leads to another name's entry.
    let other = w.receive(app, interest("/a/c", 9))[0].1.pit_token;
    w.receive(app, interest("/a/b", 4));
    assert_eq!(
        brief(&w.receive(peer, data("/a/b").with_pit_token(other))),
        ["256 data /a/b"]
    );
}

#[test]
fn interests_for_one_name_are_merged_and_the_data_is_copied() {
    let mut w = World::new(|_| {});
    let apps = [w.local(), w.local(), w.local()];
    let peer = w.remote();
    w.route("/a", peer, 1);
    let sent: Vec<_> = apps
        .iter()
        .enumerate()
        .flat_map(|(n, app)| w.receive(*app, interest("/a", n as u32)))
        .collect();
    assert_eq!(brief(&sent), ["259 interest /a"]);
    assert_eq!(faces(&w.receive(peer, data("/a"))), apps);
    w.assert_idle();
}

#[test]
fn data_answers_all_interests_that_it_fits() {
    let mut w = World::new(|_| {});
    let apps = [w.local(), w.local(), w.local(), w.local()];
    let peer = w.remote();
    w.route("/a", peer, 1);
    let answer = data_fresh("/a/b/c", 1000);
    let NetKind::Data(d) = &answer.packet else {
        panic!()
    };
    w.receive(apps[0], interest("/a/b/c", 1));
    w.receive(
        apps[1],
        interest_with("/a/b", |b| b.nonce(2).can_be_prefix(true)),
    );
    w.receive(
        apps[2],
        interest_with("/a/b/c", |b| b.nonce(3).must_be_fresh(true)),
    );
    w.receive(apps[3], interest(&d.full_name().to_string(), 4));
    let sent = w.receive(apps[3], interest("/a/b", 5));
    assert_eq!(w.fw.status().pit_entries, 5);
    // Whichever entry's token comes back.
    assert_eq!(
        faces(&w.receive(peer, answer.with_pit_token(sent[0].1.pit_token))),
        apps
    );
    assert_eq!(w.fw.status().pit_entries, 1);
    w.wait(ms(5000));
    w.assert_idle();
}

#[test]
fn a_nonce_seen_before_on_another_face_is_a_loop() {
    let mut w = World::new(|_| {});
    let (app, other, peer) = (w.local(), w.remote(), w.remote());
    w.route("/a", peer, 1);
    w.receive(app, interest("/a", 7));
    assert_eq!(
        brief(&w.receive(other, interest("/a", 7))),
        ["257 nack(duplicate) /a"]
    );
    // Back from where it went.
    assert_eq!(
        brief(&w.receive(peer, interest("/a", 7))),
        ["258 nack(duplicate) /a"]
    );
    assert_eq!(w.fw.counters(peer).unwrap().dropped_loop, 1);
    // The same again from the same face is a resent packet, too early to be forwarded again.
    assert!(w.receive(app, interest("/a", 7)).is_empty());
}

#[test]
fn the_nonce_of_an_interest_that_died_is_remembered_for_a_while() {
    let mut w = World::new(|_| {});
    let (app, peer) = (w.local(), w.remote());
    w.route("/a", peer, 1);
    w.receive(app, interest_with("/a", |b| b.nonce(7).lifetime(ms(100))));
    assert!(w.wait(ms(102)).is_empty());
    w.assert_idle();
    assert_eq!(w.fw.status().unsatisfied_interests, 1);
    assert_eq!(
        brief(&w.receive(peer, interest("/a", 7))),
        ["257 nack(duplicate) /a"]
    );
    w.wait(ms(15_000));
    assert_eq!(
        brief(&w.receive(app, interest("/a", 7))),
        ["257 interest /a"]
    );
}

#[test]
fn an_answered_interest_that_comes_around_is_known_even_without_a_content_store() {
    let mut w = World::new(|c| c.cs_capacity_bytes = 0);
    let (app, peer) = (w.local(), w.remote());
    w.route("/a", peer, 1);
    w.receive(app, interest("/a", 7));
    w.receive(peer, data("/a"));
    assert_eq!(
        brief(&w.receive(peer, interest("/a", 7))),
        ["257 nack(duplicate) /a"]
    );
}

#[test]
fn an_interest_without_nonce_gets_one() {
    let mut w = World::new(|_| {});
    let (app, peer) = (w.local(), w.remote());
    w.route("/a", peer, 1);
    let sent = w.receive(app, interest_with("/a", |b| b));
    let NetKind::Interest(i) = &sent[0].1.packet else {
        panic!()
    };
    assert!(i.nonce().is_some());
}

#[test]
fn hop_limit_is_counted_down() {
    let mut w = World::new(|_| {});
    let (app, peer, local) = (w.local(), w.remote(), w.local());
    w.route("/a", peer, 1);
    w.route("/l", local, 1);
    let sent = w.receive(app, interest_with("/a/1", |b| b.nonce(1).hop_limit(2)));
    let NetKind::Interest(i) = &sent[0].1.packet else {
        panic!()
    };
    assert_eq!(i.hop_limit(), Some(1));
    // The last hop is that to an application, not to another host.
    assert_eq!(
        brief(&w.receive(app, interest_with("/a/2", |b| b.nonce(2).hop_limit(1)))),
        ["256 nack(no route) /a/2"]
    );
    assert_eq!(
        brief(&w.receive(app, interest_with("/l", |b| b.nonce(3).hop_limit(1)))),
        ["258 interest /l"]
    );
    assert!(
        w.receive(app, interest_with("/a/4", |b| b.nonce(4).hop_limit(0)))
            .is_empty()
    );
    assert_eq!(w.fw.counters(app).unwrap().dropped_hop_limit, 1);
}

/// NDNd's forwarder takes only tokens of its own length; whoever asks us may have any.
#[test]
fn tokens_upstream_are_of_six_bytes_and_those_of_downstreams_come_back_as_they_are() {
    let mut w = World::new(|c| c.cs_capacity_bytes = 0);
    let (down, up) = (w.remote(), w.remote());
    w.route("/a", up, 1);
    for len in [1, 4, 6, 8, 32] {
        let theirs = token(&[7; 32][..len]);
        let asked = w.receive(down, interest("/a/1", len as u32).with_pit_token(theirs));
        let ours = asked[0].1.pit_token.unwrap();
        assert_eq!(ours.as_slice().len(), 6);
        let sent = w.receive(up, data("/a/1").with_pit_token(Some(ours)));
        assert_eq!(sent[0].1.pit_token, theirs);
    }
    w.assert_idle();
}

#[test]
fn localhost_stays_on_this_host_and_localhop_on_this_link() {
    let mut w = World::new(|_| {});
    let (app, app2, peer, peer2) = (w.local(), w.local(), w.remote(), w.remote());
    for face in [app2, peer] {
        w.route("/localhost/x", face, 1);
        w.route("/localhop/x", face, 1);
    }
    w.fw.set_strategy(&name("/"), ndn_forwarder::StrategyKind::Multicast);
    assert!(w.receive(peer2, interest("/localhost/x", 1)).is_empty());
    assert_eq!(w.fw.counters(peer2).unwrap().dropped_scope, 1);
    assert_eq!(faces(&w.receive(app, interest("/localhost/x", 2))), [app2]);
    assert!(w.receive(peer, data("/localhost/x")).is_empty());
    assert_eq!(w.fw.counters(peer).unwrap().dropped_scope, 1);
    assert_eq!(
        faces(&w.receive(app, interest("/localhop/x/1", 3))),
        [app2, peer]
    );
    assert_eq!(
        faces(&w.receive(peer2, interest("/localhop/x/2", 4))),
        [app2]
    );
}

#[test]
fn without_a_route_the_downstream_is_told() {
    let mut w = World::new(|_| {});
    let app = w.local();
    let sent = w.receive(app, interest("/a", 7).with_pit_token(token(b"t")));
    assert_eq!(brief(&sent), ["256 nack(no route) /a"]);
    assert_eq!(sent[0].1.pit_token, token(b"t"));
    w.assert_idle();
}

#[test]
fn data_that_nobody_asked_this_face_for_is_dropped() {
    let mut w = World::new(|_| {});
    let (app, peer, liar) = (w.local(), w.remote(), w.remote());
    w.route("/a", peer, 1);
    let sent = w.receive(app, interest("/a", 1));
    assert!(
        w.receive(liar, data("/a").with_pit_token(sent[0].1.pit_token))
            .is_empty()
    );
    assert!(w.receive(peer, data("/b")).is_empty());
    assert_eq!(w.fw.counters(liar).unwrap().dropped_unsolicited, 1);
    assert_eq!(w.fw.status().cs_entries, 0);
    assert_eq!(brief(&w.receive(peer, data("/a"))), ["256 data /a"]);
}

#[test]
fn the_content_store_answers_and_honours_freshness_and_policy() {
    let mut w = World::new(|_| {});
    let (app, peer) = (w.local(), w.remote());
    w.route("/a", peer, 1);
    w.receive(app, interest("/a/1", 1));
    w.receive(peer, data_fresh("/a/1", 100));
    let sent = w.receive(app, interest("/a/1", 2).with_pit_token(token(b"x")));
    assert_eq!(brief(&sent), ["256 data /a/1"]);
    assert_eq!(sent[0].1.pit_token, token(b"x"));
    assert_eq!(
        brief(&w.receive(app, interest_with("/a", |b| b.nonce(3).can_be_prefix(true)))),
        ["256 data /a/1"]
    );
    let fresh = |nonce| interest_with("/a/1", |b| b.nonce(nonce).must_be_fresh(true));
    assert_eq!(brief(&w.receive(app, fresh(4))), ["256 data /a/1"]);
    w.wait(ms(100));
    assert_eq!(brief(&w.receive(app, fresh(5))), ["257 interest /a/1"]);
    let status = w.fw.status();
    assert_eq!(
        (status.cs_hits, status.cs_misses, status.cs_entries),
        (3, 2, 1)
    );

    w.receive(app, interest("/a/2", 6));
    let mut secret = data("/a/2");
    secret.no_cache = true;
    assert_eq!(w.receive(peer, secret).len(), 1);
    assert_eq!(w.fw.status().cs_entries, 1);
    assert_eq!(w.fw.erase_cs(&name("/a")), 1);
}

#[test]
fn a_peer_that_sends_interests_without_end_meets_its_bound_and_others_do_not() {
    let mut w = World::new(|c| {
        c.pit_max_per_face = 100;
        c.pit_max_entries = 250;
    });
    let (flood, app, app2, peer) = (w.remote(), w.local(), w.local(), w.remote());
    w.route("/a", peer, 1);
    for n in 0..1000 {
        w.receive(flood, interest(&format!("/a/{n}"), n));
    }
    assert_eq!(w.fw.status().pit_entries, 100);
    assert_eq!(w.fw.counters(flood).unwrap().dropped_pit_full, 900);
    // Nor may it wait for what others wait for.
    w.receive(app, interest("/a/x", 1));
    w.receive(flood, interest("/a/x", 2));
    assert_eq!(faces(&w.receive(peer, data("/a/x"))), [app]);
    for n in 0..1000 {
        w.receive(app, interest(&format!("/b/a/{n}"), n));
        w.receive(app2, interest(&format!("/a/b/{n}"), n));
    }
    // As many as are left.
    assert_eq!(w.fw.status().pit_entries, 100 + 75);
    w.wait(ms(5000));
    w.assert_idle();
    assert_eq!(w.receive(flood, interest("/a/y", 1)).len(), 1);
}

#[test]
fn pending_interests_are_bounded_in_bytes() {
    let mut w = World::new(|c| c.pit_max_bytes = 100_000);
    let (app, peer) = (w.local(), w.remote());
    w.route("/a", peer, 1);
    for n in 0..100 {
        w.receive(
            app,
            interest_with(&format!("/a/{n}"), |b| {
                b.nonce(n).application_parameters(vec![0; 8000])
            }),
        );
    }
    let status = w.fw.status();
    assert!(
        status.pit_bytes <= 60_000 && (5..=6).contains(&status.pit_entries),
        "one face has about half of what there is: {status:?}"
    );
}

#[test]
fn a_face_that_goes_takes_what_depends_on_it_along() {
    let mut w = World::new(|_| {});
    let (app, peer, backup) = (w.local(), w.remote(), w.remote());
    w.route("/a", peer, 1);
    w.route("/a", backup, 2);
    w.receive(app, interest("/a/1", 1));
    w.fw.remove_face(w.now, peer);
    // What it was asked is asked of the next one, and so is all that comes later.
    assert_eq!(brief(&w.sent()), ["258 interest /a/1"]);
    assert_eq!(
        brief(&w.receive(app, interest("/a/2", 2))),
        ["258 interest /a/2"]
    );
    assert!(w.receive(peer, data("/a/1")).is_empty());
    w.fw.remove_face(w.now, backup);
    assert_eq!(
        brief(&w.sent()),
        ["256 nack(no route) /a/1", "256 nack(no route) /a/2"]
    );
    w.assert_idle();
    assert_eq!(w.fw.status().fib_entries, 1, "that of management alone");
    assert_eq!(
        w.fw.add_route(&name("/a"), peer, 1),
        Err(ndn_forwarder::RouteError::NoSuchFace(peer))
    );
}

#[test]
fn a_downstream_that_goes_is_waited_for_no_longer() {
    let mut w = World::new(|_| {});
    let (app, app2, peer) = (w.local(), w.local(), w.remote());
    w.route("/a", peer, 1);
    w.receive(app, interest("/a/1", 1));
    w.receive(app2, interest("/a/1", 2));
    w.receive(app, interest("/a/2", 3));
    w.fw.remove_face(w.now, app);
    assert_eq!(w.fw.status().pit_entries, 1);
    assert_eq!(faces(&w.receive(peer, data("/a/1"))), [app2]);
    w.assert_idle();
}

#[test]
fn a_face_that_is_down_gets_nothing_until_it_is_up() {
    let mut w = World::new(|_| {});
    let (app, peer, backup) = (w.local(), w.remote(), w.remote());
    w.route("/a", peer, 1);
    w.route("/a", backup, 2);
    w.fw.set_face_up(w.now, peer, false);
    assert_eq!(faces(&w.receive(app, interest("/a/1", 1))), [backup]);
    w.fw.set_face_up(w.now, peer, true);
    assert_eq!(faces(&w.receive(app, interest("/a/2", 2))), [peer]);
}

#[test]
fn local_fields_work_on_faces_that_enabled_them_alone() {
    let mut w = World::new(|_| {});
    let plain = w.local();
    let app = w.fw.add_face(
        w.now,
        FaceSpec {
            local_fields: true,
            ..FaceSpec::local("fd://2", "unix:///run/t.sock")
        },
    );
    let (peer, other) = (w.remote(), w.remote());
    w.route("/a", peer, 1);
    let mut wish = interest("/a/1", 1);
    wish.next_hop_face = Some(other.0);
    assert_eq!(faces(&w.receive(app, wish)), [other]);
    let answer = w.receive(other, data("/a/1"));
    assert_eq!(answer[0].1.incoming_face, Some(other.0));
    assert_eq!(
        w.receive(app, interest("/a/1", 5))[0].1.incoming_face,
        Some(FaceId::CONTENT_STORE.0)
    );
    let mut wish = interest("/a/2", 2);
    wish.next_hop_face = Some(other.0);
    assert_eq!(faces(&w.receive(plain, wish)), [peer]);
    assert_eq!(w.receive(peer, data("/a/2"))[0].1.incoming_face, None);
    w.route("/app", app, 1);
    assert_eq!(
        w.receive(peer, interest("/app", 3))[0].1.incoming_face,
        Some(peer.0)
    );
}

#[test]
fn congestion_marks_are_passed_on() {
    let mut w = World::new(|_| {});
    let (app, peer) = (w.local(), w.remote());
    w.route("/a", peer, 1);
    let mut marked = interest("/a", 1);
    marked.congestion_mark = Some(1);
    assert_eq!(w.receive(app, marked)[0].1.congestion_mark, Some(1));
    let mut marked = data("/a");
    marked.congestion_mark = Some(2);
    assert_eq!(w.receive(peer, marked)[0].1.congestion_mark, Some(2));
    // Who is answered by the store meets no congestion.
    assert_eq!(w.receive(app, interest("/a", 2))[0].1.congestion_mark, None);
}

#[test]
fn on_an_ad_hoc_link_packets_may_go_out_where_they_came_in() {
    let mut w = World::new(|_| {});
    let radio = FaceSpec {
        link_type: LinkType::AdHoc,
        ..FaceSpec::remote("ether://[01:00:5e:00:17:aa]", "dev://wlan0")
    };
    let radio = w.fw.add_face(w.now, radio);
    let peer = w.remote();
    w.route("/a", radio, 1);
    w.route("/b", peer, 1);
    assert_eq!(faces(&w.receive(radio, interest("/a", 1))), [radio]);
    assert_eq!(faces(&w.receive(radio, data("/a"))), [radio]);
    assert_eq!(
        brief(&w.receive(peer, interest("/b", 2))),
        ["257 nack(no route) /b"]
    );
}

#[test]
fn forwarding_hint_leads_until_its_region_is_reached() {
    let mut w = World::new(|c| c.producer_regions = vec![name("/region/here")]);
    let (app, peer, producer) = (w.local(), w.remote(), w.local());
    w.route("/region", peer, 1);
    w.route("/a", producer, 1);
    let hinted =
        |nonce, hint: &str| interest_with("/a/1", |b| b.nonce(nonce).forwarding_hint(name(hint)));
    assert_eq!(faces(&w.receive(app, hinted(1, "/region/there"))), [peer]);
    let mut w2 = World::new(|c| c.producer_regions = vec![name("/region/here")]);
    let (app, peer, producer) = (w2.local(), w2.remote(), w2.local());
    w2.route("/region", peer, 1);
    w2.route("/a", producer, 1);
    assert_eq!(faces(&w2.receive(app, hinted(1, "/region"))), [producer]);
}

#[test]
fn a_batch_does_what_its_packets_do_one_by_one() {
    let mut w = World::new(|_| {});
    let (app, peer) = (w.local(), w.remote());
    w.route("/a", peer, 1);
    let mut batch: Vec<_> = (0..100).map(|n| interest(&format!("/a/{n}"), n)).collect();
    w.fw.receive_batch(w.now, app, &mut batch);
    assert!(batch.is_empty());
    let sent = w.sent();
    assert_eq!(sent.len(), 100);
    let mut batch: Vec<_> = sent
        .iter()
        .map(|(_, p)| data(&p.name().to_name().to_string()).with_pit_token(p.pit_token))
        .collect();
    w.fw.receive_batch(w.now, peer, &mut batch);
    assert_eq!(w.sent().len(), 100);
    w.assert_idle();
}

#[test]
fn a_nack_counts_only_from_who_was_asked_and_for_what_was_sent() {
    let mut w = World::new(|_| {});
    let (app, peer, liar) = (w.local(), w.remote(), w.remote());
    w.route("/a", peer, 1);
    let sent = w.receive(app, interest("/a", 1));
    assert!(
        w.receive(liar, nack_of(&sent[0].1, NackReason::NoRoute))
            .is_empty()
    );
    assert!(
        w.receive(peer, nack_of(&interest("/a", 2), NackReason::NoRoute))
            .is_empty()
    );
    assert_eq!(
        brief(&w.receive(peer, nack_of(&sent[0].1, NackReason::Congestion))),
        ["256 nack(congestion) /a"]
    );
    w.assert_idle();
}

#[test]
fn ever_other_digests_of_one_name_meet_a_bound_and_keep_out_nobody_else() {
    let mut w = World::new(|_| {});
    let (stranger, other, producer) = (w.remote(), w.remote(), w.remote());
    w.route("/a", producer, 1);
    for n in 0..100u8 {
        let digest = format!("/a/b/sha256digest={}", format!("{n:02x}").repeat(32));
        w.receive(stranger, interest(&digest, n.into()));
    }
    let bound = 32;
    assert_eq!(w.fw.status().pit_entries, bound);
    assert_eq!(
        w.fw.counters(stranger).unwrap().dropped_pit_full,
        100 - bound as u64
    );
    let asked = w.receive(other, interest("/a/b", 1000));
    assert_eq!(brief(&asked), [format!("{producer} interest /a/b")]);
    let elsewhere = w.receive(stranger, interest("/a/c", 1001));
    assert_eq!(brief(&elsewhere), [format!("{producer} interest /a/c")]);
    // A packet of another digest answers those alone who named none.
    let sent = w.receive(producer, data("/a/b"));
    assert_eq!(brief(&sent), [format!("{other} data /a/b")]);
}
