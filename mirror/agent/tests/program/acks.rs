//! MR_SND at D_{j-1}'s ingress: D_j's ACKs, as our stack may see them.

use trunkline_mirror::layout::{Counter, REACH, Reason, SndState, UNIT, WINDOW};

use crate::{
    bench::{OK, REDIRECT, STOLEN},
    bench_or_skip,
    packets::Segment,
    sender::{OURS, THEIRS, confirmed, sender},
    sockets::Numbers,
};

#[test]
fn an_ack_with_data_is_lowered_and_keeps_its_data() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    let hdfs_ack = Segment {
        payload: vec![9; 33],
        ..s.ack(7_000).step()
    };
    let seen = s.hear(hdfs_ack).seen();
    assert_eq!(
        (seen.ack, seen.seq, seen.payload),
        (s.number(0), s.numbers.rcv, vec![9; 33])
    );
    assert_eq!(s.flow().acked, s.number(7_000));
}

#[test]
fn sack_is_clipped_to_what_was_sent() {
    for v6 in [false, true] {
        let mut s = confirmed(bench_or_skip!(), v6, Numbers::default());
        s.send(0, 10_000);
        let seen = s
            .hear(s.sack(1_000, &[(8_000, 12_000), (3_000, 4_000)]).step())
            .seen();
        assert_eq!(
            seen.sack,
            [
                (s.number(8_000), s.number(10_000)),
                (s.number(3_000), s.number(4_000))
            ]
        );
        let seen = s
            .hear(s.sack(1_000, &[(20_000, 30_000), (3_000, 4_000)]).step())
            .seen();
        assert_eq!(
            seen.sack,
            [(s.number(3_000), s.number(4_000))],
            "one that is wholly beyond goes"
        );
        let seen = s.hear(s.sack(5_000, &[(20_000, 30_000)]).step()).seen();
        assert_eq!(
            seen.sack,
            [(up(s.number(8_000)), down(s.number(10_000)))],
            "and what was told before stands in its place"
        );
        assert_eq!(seen.ts, Some((THEIRS, OURS)));
        assert_eq!(s.counted(Counter::SackClipped), 3);
        assert_eq!(
            s.flow().heard,
            s.number(30_000),
            "what D_j said is written down unclipped"
        );
    }
}

/// The first unit's beginning from a number on, and the last one's up to it: what is written down are whole units.
fn up(number: u32) -> u32 {
    down(number.wrapping_add(UNIT - 1))
}

fn down(number: u32) -> u32 {
    number / UNIT * UNIT
}

/// Where D_j is ahead, it tells of what our stack has sent before that was sent, and of later octets afterwards.
#[test]
fn what_was_told_before_it_was_sent_is_told_again_range_by_range() {
    for snd in [5_120, 0u32.wrapping_sub(12_000)] {
        let numbers = Numbers {
            snd,
            ..Numbers::default()
        };
        let mut s = confirmed(bench_or_skip!(), false, numbers);
        for block in [(3_000, 8_000), (10_000, 16_000), (18_000, 30_000)] {
            let seen = s.hear(s.sack(0, &[block]).step()).seen();
            assert!(seen.sack.is_empty(), "nothing of it was sent yet");
        }
        s.send(0, 20_000);
        let told: Vec<_> = (0..4)
            .map(|n| {
                let latest = (40_000 + n * 3_000, 42_000 + n * 3_000);
                s.hear(s.sack(0, &[latest]).step()).seen().sack
            })
            .collect();
        let range = |l, r| vec![(up(s.number(l)), down(s.number(r)))];
        let ranges = [(3_000, 8_000), (10_000, 16_000), (18_000, 20_000)];
        for (l, r) in ranges {
            assert!(told.contains(&range(l, r)), "{told:?}");
        }
        assert_eq!(told[0], told[3], "from the first one again");
        let seen = s
            .hear(s.sack(0, &[(12_000, 14_000), (60_000, 61_000)]).step())
            .seen();
        assert_eq!(
            seen.sack,
            [(s.number(12_000), s.number(14_000))],
            "news of what was sent need no help"
        );
        s.hear(s.ack(20_000).step());
        let seen = s.hear(s.sack(20_000, &[(70_000, 71_000)]).step()).seen();
        assert!(seen.sack.is_empty(), "all that was sent has come");
    }
}

#[test]
fn four_blocks_without_timestamps() {
    let mut s = sender(bench_or_skip!(), false, Numbers::default());
    s.send(0, 10_000);
    let blocks = [
        (8_000, 12_000),
        (6_000, 7_000),
        (4_000, 5_000),
        (2_000, 3_000),
    ];
    let segment = Segment {
        ts: None,
        ..s.sack(1_000, &blocks).step()
    };
    let seen = s.hear(segment).seen();
    let mut wanted = blocks.map(|(l, r)| (s.number(l), s.number(r)));
    wanted[0].1 = s.number(10_000);
    assert_eq!(seen.sack, wanted);
}

#[test]
fn dsack_is_stripped() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.send(0, 10_000);
    let seen = s.hear(s.sack(5_000, &[(1_000, 2_000)]).step()).seen();
    assert!(seen.sack.is_empty(), "a duplicate below the ACK");
    let seen = s
        .hear(s.sack(5_000, &[(1_000, 2_000), (7_000, 8_000)]).step())
        .seen();
    assert_eq!(seen.sack, [(s.number(7_000), s.number(8_000))]);
    let seen = s
        .hear(s.sack(5_000, &[(7_000, 7_500), (7_000, 8_000)]).step())
        .seen();
    assert_eq!(
        seen.sack,
        [(s.number(7_000), s.number(8_000))],
        "a duplicate within the second block"
    );
    let seen = s
        .hear(s.sack(5_000, &[(7_000, 8_000), (9_000, 9_500)]).step())
        .seen();
    assert_eq!(seen.sack.len(), 2, "no duplicate");
    assert_eq!(s.counted(Counter::DsackStripped), 3);
}

#[test]
fn the_echo_is_refreshed() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    assert_eq!(
        s.hear(s.ack(0).step()).seen().ts,
        Some((THEIRS, OURS)),
        "not the stale one of what came last really"
    );
    let mut s = sender(bench_or_skip!(), false, Numbers::default());
    assert_eq!(
        s.hear(s.ack(0)).seen().ts,
        Some((THEIRS, OURS - 500)),
        "an unmirrored flow is left alone"
    );
}

#[test]
fn the_step_bit_stays_between_the_programs() {
    let mut s = sender(bench_or_skip!(), false, Numbers::default());
    assert!(!s.hear(s.ack(0).step()).seen().step);
    assert_eq!(s.flow().confirmed, 1);
}

#[test]
fn a_strange_layout_of_options_is_a_doubt() {
    // Timestamps and SACK without the usual padding.
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    let mut options = vec![8, 10];
    options.extend(THEIRS.to_be_bytes());
    options.extend((OURS - 1).to_be_bytes());
    options.extend([5, 10]);
    options.extend(s.number(8_000).to_be_bytes());
    options.extend(s.number(9_000).to_be_bytes());
    let segment = Segment {
        ts: None,
        other_options: options,
        ..s.ack(0).step()
    };
    let frame = segment.frame();
    let out = s.bench.ingress(&frame);
    assert_eq!((out.verdict, out.frame), (OK, frame));
    assert_eq!(s.flow().reason, Reason::Options as u8);
}

#[test]
fn a_doubt_about_what_the_next_replica_cannot_have_sent_is_none() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    let odd = Segment {
        ts: None,
        other_options: vec![30, 4, 0, 0],
        ..s.ack(0x4000_0000).step()
    };
    s.bench.in_segment(&odd);
    assert_eq!(s.state(), SndState::Virtual as u8);
    assert_eq!(s.counted(Counter::AckImplausible), 1);
}

#[test]
fn an_implausible_ack_is_no_news() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    let before = s.flow();
    let ack = s.ack(5_000).step();
    let far = s.ack(WINDOW + 1_000_000).step();
    let old = s.ack(0u32.wrapping_sub(REACH + 1)).step();
    let strange = Segment {
        seq: s.numbers.rcv.wrapping_add(0x4000_0000),
        ..ack.clone()
    };
    let stamped = |ts| Segment { ts, ..ack.clone() };
    let behind = stamped(Some((THEIRS - (1 << 21), OURS)));
    let ahead = stamped(Some((THEIRS + (1 << 24), OURS)));
    for segment in [far, old, strange, behind, ahead, stamped(None)] {
        let frame = segment.frame();
        let out = s.bench.ingress(&frame);
        assert_eq!((out.verdict, out.frame), (OK, frame), "our stack judges it");
    }
    let flow = s.flow();
    assert_eq!(
        (flow.acked, flow.edge, flow.heard),
        (before.acked, before.edge, before.heard)
    );
    assert_eq!(s.counted(Counter::AckImplausible), 6);
    assert_ne!(
        s.send(0, 1_000).verdict,
        REDIRECT,
        "nothing was taken for acknowledged"
    );
}

#[test]
fn an_old_ack_takes_nothing_back() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.send(0, 5_000);
    s.hear(s.ack(4_000).step());
    s.hear(s.ack(2_000));
    let flow = s.flow();
    assert_eq!(
        (flow.acked, flow.state),
        (s.number(4_000), SndState::Virtual as u8)
    );
}

/// A window of 64 MiB, of which copies have filled more than the bitmap has bits for when a hole at its start is closed.
#[test]
fn windows_larger_than_the_bitmap_do_no_harm() {
    const HELD: u32 = 40 << 20;
    let numbers = Numbers {
        snd_wnd: 64 << 20,
        scales: (12, 7),
        ..Numbers::default()
    };
    for timestamps in [true, false] {
        let mut s = sender(bench_or_skip!(), false, numbers);
        let heard = |segment: Segment| Segment {
            ts: segment.ts.filter(|_| timestamps),
            ..segment.step().window(16_000)
        };
        s.hear(heard(s.sack(0, &[(2 * UNIT, HELD)])));
        let flow = s.flow();
        assert_eq!(
            (flow.state, flow.heard),
            (SndState::Virtual as u8, s.number(REACH))
        );
        assert_eq!(s.send(0, 2 * UNIT as usize).verdict, OK, "the hole");
        assert_eq!(s.send(2 * UNIT, 1_000).verdict, STOLEN);
        let seen = s.hear(heard(s.ack(HELD))).seen();
        assert_eq!(seen.ack, s.number(2 * UNIT + 1_000), "held");
        assert_eq!(s.counted(Counter::AckImplausible), 0);
        assert_eq!(s.flow().acked, s.number(HELD));
        let out = s.send(2 * UNIT + 1_000, 1_000);
        assert_eq!(out.verdict, REDIRECT);
        assert_eq!(out.seen().ack, s.number(2 * UNIT + 2_000));
        s.hear(heard(s.sack(HELD, &[(HELD + 5_000, HELD + 6_000)])));
        assert_eq!(s.flow().heard, s.number(HELD + 6_000));
    }
}

/// As far as its window is open, or has been told to be when its ACKs were lost.
#[test]
fn an_ack_from_beyond_the_known_window_is_believed_by_its_timestamp() {
    let far = 50 << 20;
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    assert_eq!(s.hear(s.ack(far).step()).seen().ack, s.number(0));
    assert_eq!(s.flow().acked, s.number(far));

    let mut s = sender(bench_or_skip!(), false, Numbers::default());
    let unstamped = Segment {
        ts: None,
        ..s.ack(far).step()
    };
    assert_eq!(s.hear(unstamped).seen().ack, s.number(far));
    assert_eq!(s.counted(Counter::AckImplausible), 1);
}
