//! MR_SND at D_{j-1}'s egress: what is sent, and what only seems to be.

use std::time::Duration;

use trunkline_mirror::layout::{Config, Counter, Key, Reason, Snd, SndState};

use crate::{
    bench::{OK, REDIRECT, STOLEN, ends},
    bench_or_skip,
    packets::{ACK, CWR, FIN, PSH, RST, Segment, URG},
    sender::{OURS, Sender, THEIRS, confirmed, sender},
    sockets::{Numbers, established, in_flight},
};

pub const MARK: u32 = 0x4d52;

#[test]
fn all_goes_really_until_the_next_replica_has_confirmed() {
    for v6 in [false, true] {
        let mut s = sender(bench_or_skip!(), v6, Numbers::default());
        assert_eq!(s.send(0, 1_000).verdict, OK);
        s.hear(s.ack(1_000));
        assert_eq!(
            s.send(1_000, 1_000).verdict,
            OK,
            "an ACK without the bit confirms nothing"
        );
        s.hear(s.ack(2_000).step());
        assert_eq!(s.send(2_000, 1_000).verdict, STOLEN);
        assert_eq!(
            (s.counted(Counter::Real), s.counted(Counter::Virtual)),
            (2, 1)
        );
        assert_eq!(s.counted(Counter::VirtualBytes), 1_000);
        assert_eq!(s.bench.total(Counter::Virtual), 1);
        assert_eq!(s.flow().sent, s.number(3_000));
    }
}

/// A segment really goes, as it is but for the step bit where it is `told`: only by that does D_j take copies.
fn goes(s: &mut Sender, at: u32, flags: u8, told: bool) {
    let segment = Segment {
        partial: false,
        flags,
        ..s.data(at, 500)
    };
    let out = s.bench.out_segment(&segment);
    let wanted = Segment {
        step: told,
        ..segment
    };
    assert_eq!((out.verdict, out.frame), (OK, wanted.frame()), "at {at}");
}

#[test]
fn what_goes_says_that_the_program_stands_by() {
    const DATA: u8 = ACK | PSH;
    for v6 in [false, true] {
        let mut s = sender(bench_or_skip!(), v6, Numbers::default());
        s.no_suppression();
        goes(&mut s, 0, DATA, true);
        goes(&mut s, 0, DATA, true);
        s.hear(s.sack(0, &[(2_000, 3_000)]).step());
        goes(&mut s, 500, DATA, true);
        assert_eq!(s.counted(Counter::RealHole), 1);
        s.hear(s.ack(1_000).step());
        s.send(1_000, 500);
        goes(&mut s, 1_000, DATA, true);
        assert_eq!(s.state(), SndState::Recovery as u8);
        s.hear(s.ack(1_000));

        let ack = Segment {
            partial: false,
            ..s.data(1_500, 0).flags(ACK)
        };
        assert!(!s.bench.out_segment(&ack).seen().step, "not without data");

        s.bench.configure(Config {
            off: 1,
            ..Config::default()
        });
        goes(&mut s, 1_500, DATA, false);
        s.bench.configure(Config::default());
        goes(&mut s, 2_000, DATA, true);
        let gap = s.data(4_000, 500);
        s.bench.out_segment(&gap);
        assert_eq!(s.state(), SndState::Fallen as u8);
        goes(&mut s, 4_500, DATA, false);
    }
}

#[test]
fn without_the_bit_all_goes_really_again() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    assert_eq!(s.send(0, 1_000).verdict, STOLEN);
    s.hear(s.ack(500));
    assert_eq!(s.state(), SndState::Real as u8);
    assert_eq!(s.send(1_000, 1_000).verdict, OK);
    s.hear(s.ack(500).step());
    assert_eq!(s.send(2_000, 1_000).verdict, STOLEN);
}

#[test]
fn sequence_numbers_wrap() {
    let numbers = Numbers {
        snd: 0xffff_fc00,
        ..Numbers::default()
    };
    let mut s = confirmed(bench_or_skip!(), false, numbers);
    for at in (0..4_000).step_by(1_000) {
        assert_eq!(s.send(at, 1_000).verdict, STOLEN);
    }
    assert_eq!(s.flow().sent, 0xffff_fc00u32.wrapping_add(4_000));
    let seen = s.hear(s.ack(5_000).step()).seen();
    assert_eq!(
        seen.ack,
        s.number(4_000),
        "held at what was sent, across the wrap"
    );
    s.hear(s.sack(5_000, &[(6_000, 7_000)]).step());
    assert_eq!(s.send(4_000, 1_000).verdict, REDIRECT);
    assert_eq!(s.send(5_000, 1_000).verdict, OK, "a hole");
}

#[test]
fn switched_off_nothing_new_is_virtual() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.bench.configure(Config {
        off: 1,
        ..Config::default()
    });
    s.hear(s.ack(500).step());
    assert_eq!(
        s.send(0, 500).verdict,
        REDIRECT,
        "what D_j has is not sent, and its ACK is released"
    );
    assert_eq!(s.send(500, 500).verdict, OK);
}

/// The ACK that was held comes to our stack from D_j, for just what has been sent.
fn released(v6: bool, partial: bool, ip_options: bool) {
    let numbers = Numbers {
        snd_wnd: 10_000,
        scales: (4, 7),
        ..Numbers::default()
    };
    let mut s = confirmed(bench_or_skip!(), v6, numbers);
    let ack = Segment {
        ip_options,
        ..s.ack(5_000).step().window(10_000)
    };
    let held = s.hear(ack).seen();
    assert!(held.ip_sum && held.whole_sum);
    assert_eq!(held.ack, s.number(0));
    assert_eq!(
        u32::from(held.window),
        (5_000 + (10_000 << 4)) >> 4,
        "the right edge stays where it is"
    );
    assert!(!held.step);
    assert_eq!(s.counted(Counter::AckHeld), 1);

    let segment = Segment {
        partial,
        ip_options,
        ..s.data(0, 1_400)
    };
    let out = s.bench.out_segment(&segment);
    assert_eq!((out.verdict, out.mark), (REDIRECT, MARK));
    let seen = out.seen();
    let (up, down) = ends(v6);
    assert_eq!((seen.from, seen.to), (down, up));
    assert_eq!(seen.ethernet, ([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]));
    assert_eq!(
        (seen.seq, seen.ack, seen.flags),
        (numbers.rcv, s.number(1_400), ACK)
    );
    assert_eq!(u32::from(seen.window), (5_000 - 1_400 + (10_000 << 4)) >> 4);
    assert_eq!(seen.ts, Some((THEIRS, OURS)));
    assert!(seen.payload.is_empty(), "by IP's length");
    assert!(
        seen.ip_sum
            && if partial {
                seen.partial_sum
            } else {
                seen.whole_sum
            }
    );
    assert_eq!(s.counted(Counter::AckReleased), 1);
    assert_eq!(s.counted(Counter::Virtual), 1);

    // It comes in as the stack's, and is not taken for D_j's once more.
    let out = s.bench.marked_ingress(&out.frame, MARK);
    assert_eq!((out.verdict, out.mark), (OK, 0));
    assert_eq!(s.flow().acked, s.number(5_000));
}

#[test]
fn an_early_ack_is_held_and_released() {
    released(false, true, false);
}

#[test]
fn an_early_ack_is_held_and_released_with_options_of_ip() {
    released(false, true, true);
    released(false, false, true);
}

#[test]
fn an_early_ack_is_held_and_released_over_ipv6() {
    released(true, true, false);
}

#[test]
fn an_early_ack_is_held_and_released_where_sums_are_whole() {
    released(false, false, false);
    released(true, false, false);
}

#[test]
fn a_released_ack_without_timestamps() {
    let mut s = sender(bench_or_skip!(), false, Numbers::default());
    let ack = Segment {
        ts: None,
        ..s.ack(5_000).step()
    };
    s.hear(ack);
    let segment = Segment {
        ts: None,
        ..s.data(0, 1_000)
    };
    let out = s.bench.out_segment(&segment);
    assert_eq!(out.verdict, REDIRECT);
    assert_eq!((out.seen().ack, out.seen().ts), (s.number(1_000), None));
    assert!(out.seen().partial_sum);
}

#[test]
fn a_super_segment_releases_as_one() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.hear(s.ack(30_000).step());
    let whole = s.data(0, 60_000);
    let out = s.bench.out_segment(&whole);
    assert_eq!(out.verdict, REDIRECT);
    assert_eq!(out.seen().ack, s.number(30_000), "as far as D_j has it");
    assert!(out.seen().payload.is_empty());
}

#[test]
fn a_retransmission_of_what_the_next_replica_has_releases_its_ack() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.send(0, 1_000);
    s.hear(s.ack(1_000).step());
    let out = s.send(0, 1_000);
    assert_eq!((out.verdict, out.seen().ack), (REDIRECT, s.number(1_000)));
    assert_eq!(s.counted(Counter::Retransmitted), 0);
}

/// What our segment acknowledges of D_j's octets must not vanish with it.
fn kept(v6: bool, partial: bool) {
    let mut s = confirmed(bench_or_skip!(), v6, Numbers::default());
    let segment = Segment {
        partial,
        ..s.data(0, 1_400).ack(s.numbers.rcv + 33)
    };
    let out = s.bench.out_segment(&segment);
    assert_eq!((out.verdict, out.mark), (REDIRECT, 0));
    let seen = out.seen();
    let (up, down) = ends(v6);
    assert_eq!((seen.from, seen.to), (up, down));
    assert_eq!(
        (seen.seq, seen.ack, seen.flags),
        (s.number(1_400), s.numbers.rcv + 33, ACK)
    );
    assert_eq!(seen.ts, Some((OURS, THEIRS)));
    assert_eq!(
        seen.octets,
        14 + if v6 { 40 } else { 20 } + 32,
        "cut on the wire too"
    );
    assert!(
        seen.ip_sum
            && if partial {
                seen.partial_sum
            } else {
                seen.whole_sum
            }
    );
    assert_eq!(s.counted(Counter::AckKept), 1);

    // On its way out once more it is an ACK like any other; then there is nothing new to tell.
    let out = s.bench.egress(&out.frame);
    assert_eq!(out.verdict, OK);
    let segment = s.data(1_400, 1_400).ack(s.numbers.rcv + 33);
    assert_eq!(s.bench.out_segment(&segment).verdict, STOLEN);
    assert_eq!(s.counted(Counter::AckKept), 1);
}

#[test]
fn a_piggybacked_ack_is_kept() {
    kept(false, true);
}

#[test]
fn a_piggybacked_ack_is_kept_over_ipv6() {
    kept(true, true);
    kept(true, false);
}

#[test]
fn a_piggybacked_ack_is_kept_where_sums_are_whole() {
    kept(false, false);
}

/// To cut a long segment costs the kernel a copy of it.
#[test]
fn an_ack_on_a_long_segment_waits_for_a_short_one() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.send(0, 100);
    let told = s.counted(Counter::AckKept);
    let next = s.numbers.rcv + 20;
    let long = s.data(100, 60_000).ack(next);
    assert_eq!(s.bench.out_segment(&long).verdict, STOLEN);
    assert_eq!(s.counted(Counter::AckKept), told);
    let short = s.data(60_100, 1_000).ack(next);
    let out = s.bench.out_segment(&short);
    assert_eq!((out.verdict, out.seen().ack), (REDIRECT, next));
    assert_eq!(s.counted(Counter::AckKept), told + 1);
}

/// D_j sends no more than its window of what is not acknowledged: it is told before that is full.
#[test]
fn no_more_than_some_answers_wait_for_a_short_segment() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.send(0, 100);
    let told = s.counted(Counter::AckKept);
    for (at, answers, verdict) in [(100, 60, STOLEN), (60_100, 80, REDIRECT)] {
        let long = s.data(at, 60_000).ack(s.numbers.rcv + answers);
        assert_eq!(s.bench.out_segment(&long).verdict, verdict, "{answers}");
    }
    assert_eq!(s.counted(Counter::AckKept), told + 1);
}

/// What waited too long goes with a long segment, too.
#[test]
fn an_ack_does_not_wait_long() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.send(0, 100);
    let told = s.counted(Counter::AckKept);
    let mut at = 100;
    // However slow this host is: segments follow until one takes the ACK with it.
    loop {
        let long = s.data(at, 60_000).ack(s.numbers.rcv + 20);
        let out = s.bench.out_segment(&long);
        at += 60_000;
        if out.verdict == REDIRECT {
            break;
        }
        assert_eq!(out.verdict, STOLEN);
        std::thread::sleep(Duration::from_millis(4));
    }
    assert!(at > 60_100, "the first one never does");
    assert_eq!(s.counted(Counter::AckKept), told + 1);
}

#[test]
fn a_window_that_opens_is_kept() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    let shut = s.data(0, 0).flags(ACK).window(0);
    s.bench.out_segment(&shut);
    assert_eq!(s.send(0, 100).verdict, REDIRECT);
    assert_eq!(s.counted(Counter::AckKept), 1);
}

#[test]
fn an_ack_is_kept_and_another_released() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.hear(s.ack(5_000).step());
    let segment = s.data(0, 1_000).ack(s.numbers.rcv + 5);
    let out = s.bench.out_segment(&segment);
    assert_eq!((out.verdict, out.mark), (REDIRECT, MARK));
    assert_eq!(out.seen().ack, s.number(1_000));
    assert!(out.seen().partial_sum);
    assert_eq!(
        (s.counted(Counter::AckKept), s.counted(Counter::AckReleased)),
        (1, 1)
    );
}

#[test]
fn a_reduced_window_is_told_with_data() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    let segment = s.data(0, 1_000).flags(ACK | CWR);
    assert_eq!(s.bench.out_segment(&segment).verdict, OK);
    assert_eq!(s.send(1_000, 1_000).verdict, STOLEN);
}

#[test]
fn the_end_of_the_stream_goes_really() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.send(0, 1_000);
    goes(&mut s, 1_000, ACK | PSH | FIN, true);
    assert_eq!(s.flow().sent, s.number(1_501), "a FIN takes a number");
    let seen = s.hear(s.ack(1_501).step()).seen();
    assert_eq!(seen.ack, s.number(1_501));

    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.send(0, 1_000);
    s.hear(s.ack(1_000).step());
    let fin = s.data(1_000, 0).flags(ACK | FIN);
    assert_eq!(s.bench.out_segment(&fin).seen().flags, ACK | FIN);
    assert_eq!(s.hear(s.ack(1_001)).seen().ack, s.number(1_001));
    assert_eq!(s.counted(Counter::Aborted), 0);
}

/// D_{j-1} dies while D_j is ahead of it by the mirror: what it says then would be out of D_j's window.
#[test]
fn an_early_end_becomes_an_rst_where_the_next_replica_is() {
    for (flags, becomes) in [(ACK | FIN, ACK | RST), (ACK | RST, ACK | RST), (RST, RST)] {
        for v6 in [false, true] {
            let mut s = confirmed(bench_or_skip!(), v6, Numbers::default());
            s.send(0, 1_000);
            s.hear(s.ack(9_000).step());
            let end = Segment {
                partial: false,
                ..s.data(1_000, 0).flags(flags)
            };
            let out = s.bench.out_segment(&end);
            assert_eq!(out.verdict, OK);
            assert_eq!(
                (out.seen().seq, out.seen().flags),
                (s.number(9_000), becomes)
            );
            assert!(out.seen().whole_sum);
            assert_eq!(s.state(), SndState::Closed as u8);
            assert_eq!(s.counted(Counter::Aborted), 1);
            // From here on D_j's answers reach our stack as they are.
            assert_eq!(s.hear(s.ack(9_500)).seen().ack, s.number(9_500));
        }
    }
}

/// The last octets and the FIN are one segment, mostly.
#[test]
fn an_early_end_with_data_becomes_an_rst_without() {
    for (v6, partial) in [(false, true), (true, true), (false, false), (true, false)] {
        let mut s = confirmed(bench_or_skip!(), v6, Numbers::default());
        s.send(0, 1_000);
        s.hear(s.sack(4_000, &[(8_000, 9_000)]).step());
        let end = Segment {
            partial,
            ..s.data(1_000, 500).flags(ACK | PSH | FIN)
        };
        let out = s.bench.out_segment(&end);
        assert_eq!((out.verdict, out.mark), (REDIRECT, 0));
        let seen = out.seen();
        assert_eq!((seen.seq, seen.flags), (s.number(4_000), ACK | RST));
        assert_eq!(seen.octets, 14 + if v6 { 40 } else { 20 } + 32, "cut");
        assert!(
            seen.ip_sum
                && if partial {
                    seen.partial_sum
                } else {
                    seen.whole_sum
                }
        );
        assert_eq!(s.state(), SndState::Closed as u8);
        assert_eq!(s.counted(Counter::Aborted), 1);
        let again = s.bench.egress(&out.frame);
        assert_eq!((again.verdict, again.frame), (OK, out.frame));
    }
}

/// The client goes on although D_{j-1} has ended: D_j comes past the FIN by copies, and must hear of the end all the same.
#[test]
fn an_end_that_copies_have_come_past_is_said_again() {
    for octets in [0, 500] {
        let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
        s.no_suppression();
        s.send(0, 1_000);
        let end = s.number(1_000 + octets);
        let fin = s.data(1_000, octets as usize).flags(ACK | FIN);
        assert_eq!(s.bench.out_segment(&fin).seen().flags, ACK | FIN);
        let held = s.hear(s.ack(9_000).step()).seen();
        assert_eq!(held.ack, end, "the FIN was not heard");
        let out = s.bench.out_segment(&fin);
        assert_eq!(
            (out.seen().seq, out.seen().flags, out.seen().payload.len()),
            (s.number(9_000), ACK | RST, 0)
        );
        assert_eq!(s.state(), SndState::Closed as u8);
    }
}

#[test]
fn an_rst_in_its_place_stays_as_it_is() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.send(0, 1_000);
    let frame = s.data(1_000, 0).flags(RST).frame();
    let out = s.bench.egress(&frame);
    assert_eq!((out.verdict, out.frame), (OK, frame));
    assert_eq!(s.state(), SndState::Closed as u8);
}

#[test]
fn a_doubt_has_the_flow_fall_back() {
    let multipath = vec![30, 4, 0, 0];
    let plain = Vec::new;
    for (at, flags, other_options, reason) in [
        (5_000, ACK | PSH, plain(), Reason::Gap),
        (0, ACK | PSH, multipath, Reason::Options),
        (0, ACK | URG, plain(), Reason::Urgent),
    ] {
        let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
        s.hear(s.ack(9_000).step());
        let odd = Segment {
            other_options,
            ..s.data(at, 1_000).flags(flags)
        };
        let frame = odd.frame();
        let out = s.bench.egress(&frame);
        assert_eq!(
            (out.verdict, out.frame),
            (OK, frame),
            "it goes really, as it is"
        );
        let flow = s.flow();
        assert_eq!(
            (flow.state, flow.reason),
            (SndState::Fallen as u8, reason as u8)
        );
        assert_eq!(s.counted(Counter::FellBack), 1);
        assert_eq!(
            s.send(at + 1_000, 1_000).verdict,
            OK,
            "all that follows goes, too, though D_j has it"
        );
        let seen = s.hear(s.ack(9_000).step()).seen();
        assert_eq!(
            seen.ack,
            s.number(at + 2_000),
            "ACKs ahead of what was sent are still held"
        );
    }
}

/// The program was away for more than it can compare numbers by.
#[test]
fn after_a_gap_the_socket_is_asked_anew() {
    const GAP: u32 = 40 << 20;
    for v6 in [false, true] {
        let mut s = confirmed(bench_or_skip!(), v6, Numbers::default());
        s.hear(s.ack(9_000).step());
        s.move_on(GAP);
        assert_eq!(s.send(GAP, 1_000).verdict, OK);
        let flow = s.flow();
        assert_eq!(
            (flow.state, flow.reason, flow.confirmed),
            (SndState::Fallen as u8, Reason::Gap as u8, 0)
        );
        assert_eq!(
            (flow.acked, flow.edge),
            (s.number(GAP), s.number(GAP + (1 << 20)))
        );
        let early = Segment {
            ts: None,
            ..s.ack(GAP + 5_000)
        };
        assert_eq!(
            s.bench.in_segment(&early).seen().ack,
            s.number(GAP + 5_000),
            "without a timestamp, where there were some, it is a stranger's"
        );
        let seen = s.hear(s.ack(GAP + 5_000)).seen();
        assert_eq!(seen.ack, s.number(GAP + 1_000), "held");
        assert_eq!(
            seen.ts,
            Some((THEIRS, OURS - 500)),
            "echoes are of what was seen by D_j"
        );
    }
}

#[test]
fn a_flow_announced_in_mid_stream_goes_by_its_socket() {
    let mut bench = bench_or_skip!();
    let (up, down) = ends(false);
    let numbers = Numbers {
        snd: 0x8000_0000,
        ..Numbers::default()
    };
    let _socket = established(up, down, numbers).expect("a socket under repair");
    let key = Key::new(up, down);
    bench.set_snd(key, Snd::announced(0));
    let early = Segment::new(down, up)
        .seq(numbers.rcv)
        .ack(numbers.snd)
        .step();
    let frame = early.frame();
    let out = bench.ingress(&frame);
    assert_eq!(
        out.frame, frame,
        "nothing is known before our first segment"
    );
    let data = Segment::new(up, down)
        .seq(numbers.snd)
        .ack(numbers.rcv)
        .data(1_000);
    assert_eq!(bench.out_segment(&data).verdict, OK);
    let flow = bench.snd(key);
    assert_eq!(
        (flow.state, flow.acked, flow.sent, flow.scale),
        (
            SndState::Real as u8,
            numbers.snd,
            numbers.snd + 1_000,
            numbers.scales.0
        )
    );
}

/// Announced in mid-stream, when a loss is just being made good.
#[test]
fn the_first_segment_that_is_seen_may_be_a_retransmission() {
    let mut bench = bench_or_skip!();
    let (up, down) = ends(false);
    let numbers = Numbers {
        snd: 0xffff_fa00,
        ..Numbers::default()
    };
    let socket = established(up, down, numbers).expect("a socket under repair");
    in_flight(&socket, 3_000).expect("octets in flight");
    let key = Key::new(up, down);
    bench.set_snd(key, Snd::announced(0));
    let number = |at: u32| numbers.snd.wrapping_add(at);
    let data = |at: u32| {
        Segment::new(up, down)
            .seq(number(at))
            .ack(numbers.rcv)
            .data(1_000)
    };
    let ack = |at: u32| Segment::new(down, up).seq(numbers.rcv).ack(number(at));
    let early = ack(1_000).step().frame();
    assert_eq!(
        bench.ingress(&early).frame,
        early,
        "an ACK before any segment is none of ours yet"
    );
    assert_eq!(bench.out_segment(&data(0)).verdict, OK);
    let flow = bench.snd(key);
    assert_eq!(
        (flow.state, flow.acked, flow.sent),
        (SndState::Real as u8, number(0), number(3_000))
    );
    assert_eq!(flow.counters[Counter::Retransmitted as usize], 1);
    assert_eq!(
        bench.out_segment(&data(3_000)).verdict,
        OK,
        "fresh data is no gap"
    );
    assert_eq!(bench.snd(key).reason, Reason::None as u8);
    bench.in_segment(&ack(4_000).step());
    assert_eq!(
        bench.out_segment(&data(4_000)).verdict,
        STOLEN,
        "by its step bit, all as if announced in time"
    );
    assert_eq!(
        bench.in_segment(&ack(9_000).step()).seen().ack,
        number(5_000),
        "held across the wrap"
    );
}

#[test]
fn other_traffic_passes_as_it_is() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    let (up, down) = ends(false);
    let mut other = up;
    other.set_port(4_711);
    for segment in [
        Segment::new(other, down).data(500),
        Segment::new(down, other).data(500),
    ] {
        let frame = segment.frame();
        let out = s.bench.egress(&frame);
        assert_eq!((out.verdict, &out.frame), (OK, &frame));
        let out = s.bench.ingress(&frame);
        assert_eq!((out.verdict, &out.frame), (OK, &frame));
    }
    let mut arp = vec![0; 60];
    arp[12..14].copy_from_slice(&[8, 6]);
    assert_eq!(s.bench.ingress(&arp).verdict, OK);
    assert_eq!(s.bench.egress(&arp).verdict, OK);
}
