//! MR_SND at D_{j-1}'s ingress: D_j's ACKs, as our stack may see them.

use trunkline_mirror::layout::{Counter, REACH, Reason, SndState};

use crate::{
    bench::OK,
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
        let seen = s.hear(s.sack(1_000, &[(20_000, 30_000)]).step()).seen();
        assert!(seen.sack.is_empty());
        assert_eq!(seen.ts, Some((THEIRS, OURS)));
        assert_eq!(s.counted(Counter::SackClipped), 3);
        assert_eq!(
            s.flow().heard,
            s.number(30_000),
            "what D_j said is written down unclipped"
        );
    }
}

#[test]
fn four_blocks_without_timestamps() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
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
fn an_implausible_ack_is_no_news() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    let before = s.flow();
    let far = s.ack(REACH + 1_000_000).step();
    let strange = Segment {
        seq: s.numbers.rcv.wrapping_add(0x4000_0000),
        ..s.ack(5_000).step()
    };
    for segment in [far, strange] {
        let frame = segment.frame();
        let out = s.bench.ingress(&frame);
        assert_eq!((out.verdict, out.frame), (OK, frame), "our stack judges it");
    }
    let flow = s.flow();
    assert_eq!(
        (flow.acked, flow.edge, flow.heard),
        (before.acked, before.edge, before.heard)
    );
    assert_eq!(s.counted(Counter::AckImplausible), 2);
    assert_ne!(
        s.send(0, 1_000).verdict,
        crate::bench::REDIRECT,
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

#[test]
fn too_far_ahead_is_a_doubt() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.hear(s.sack(0, &[(REACH, REACH + 10_000)]).step());
    let flow = s.flow();
    assert_eq!(
        (flow.state, flow.reason),
        (SndState::Fallen as u8, Reason::Reach as u8)
    );
}
