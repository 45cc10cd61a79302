//! MR_SND at D_{j-1}'s egress: fresh data of which D_j has told that a part is lost.

use trunkline_mirror::layout::{Config, Counter, UNIT};

use crate::{
    bench::{OK, REDIRECT, STOLEN},
    bench_or_skip,
    packets::{ACK, see},
    send::MARK,
    sender::{OURS, Sender, THEIRS, confirmed},
    sockets::Numbers,
};

#[test]
fn fresh_data_goes_where_the_next_replica_tells_of_a_hole() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.hear(s.sack(0, &[(10_240, 20_480), (40_960, 51_200)]).step());
    assert_eq!(s.send(0, 2_560).verdict, OK, "the first hole");
    assert_eq!(s.send(2_560, 7_680).verdict, REDIRECT, "a long one in it");
    assert_eq!(s.send(10_240, 10_240).verdict, STOLEN, "what it holds");
    assert_eq!(s.send(20_480, 2_560).verdict, OK, "the second hole");
    assert_eq!(s.send(23_040, 16_640).verdict, REDIRECT);
    assert_eq!(
        s.send(39_680, 2_560).verdict,
        OK,
        "a segment that is half in it"
    );
    assert_eq!(s.send(42_240, 8_960).verdict, STOLEN);
    assert_eq!(
        s.send(51_200, 1_000).verdict,
        STOLEN,
        "nothing is known of what is beyond"
    );
    assert_eq!(s.counted(Counter::RealHole), 3);
}

/// One lost frame has no ten go in its place: our stack, which hears of the hole, says just that again. One octet goes, as
/// the next replica may have nothing else to answer.
#[test]
fn of_a_long_segment_with_a_hole_only_the_hole_goes() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.hear(s.sack(0, &[(10_240, 61_440)]).step());
    asks(&mut s, true);
    assert_eq!(s.counted(Counter::VirtualBytes), 60_000);
    let seen = s.hear(s.sack(0, &[(61_440, 62_000)]).step()).seen();
    let held = (s.number(10_240), s.number(60_000) / UNIT * UNIT);
    assert_eq!(seen.sack, [held]);
    assert_eq!(s.send(0, 1_448).verdict, OK);
    assert_eq!(s.counted(Counter::RetransmittedBytes), 1_448);
}

#[test]
fn so_it_is_over_ipv6_and_where_sums_are_whole() {
    for (v6, partial) in [(true, true), (true, false), (false, false)] {
        let mut s = confirmed(bench_or_skip!(), v6, Numbers::default());
        s.hear(s.sack(0, &[(10_240, 61_440)]).step());
        asks(&mut s, partial);
    }
}

/// Of the first 60,000 octets one goes; it is the stream's own, has the step bit, and is not judged once more.
fn asks(s: &mut Sender, partial: bool) {
    let mut whole = s.data(0, 60_000);
    whole.partial = partial;
    let out = s.bench.out_segment(&whole);
    assert_eq!((out.verdict, out.mark), (REDIRECT, MARK));
    let (seen, from) = (out.seen(), whole.frame());
    assert_eq!((seen.seq, seen.flags, seen.step), (s.number(0), ACK, true));
    assert_eq!(seen.payload, see(&from).payload[..1]);
    assert_eq!(seen.ts, Some((OURS, THEIRS)));
    assert!(if partial {
        seen.partial_sum
    } else {
        seen.whole_sum
    });
    assert!(seen.ip_sum);
    let out = s.bench.marked_egress(&out.frame, MARK);
    assert_eq!((out.verdict, out.mark), (OK, 0));
}

/// Both go, and the ACK that was held comes to our stack.
#[test]
fn asking_keeps_acks_and_releases_others() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.hear(s.sack(5_120, &[(10_240, 61_440)]).step());
    let whole = s.data(0, 60_000).ack(s.numbers.rcv + 5);
    let out = s.bench.out_segment(&whole);
    assert_eq!((out.verdict, out.mark), (REDIRECT, MARK));
    let seen = out.seen();
    assert_eq!((seen.ack, seen.payload.len()), (s.number(5_120), 0));
    assert_eq!(s.counted(Counter::AckKept), 1);
    assert_eq!(s.counted(Counter::AckReleased), 1);
}

/// The answer tells first of the octet that it answers, and then only of what our stack has not sent yet.
#[test]
fn the_answer_tells_of_what_is_held() {
    for has_it in [true, false] {
        let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
        s.hear(s.sack(5_120, &[(10_240, 61_440)]).step());
        s.send(0, 60_000);
        let acked = if has_it { 5_120 } else { 0 };
        let answer = s.sack(acked, &[(0, 1), (80_000, 90_000), (70_000, 71_000)]);
        let seen = s.hear(answer.step()).seen();
        let held = (s.number(10_240), s.number(60_000) / UNIT * UNIT);
        assert_eq!(seen.sack, [held]);
    }
}

#[test]
fn a_long_segment_with_a_hole_goes_whole_where_no_copies_are_taken() {
    for off in [false, true] {
        let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
        if off {
            let config = Config {
                off: 1,
                ..Config::default()
            };
            let mut map = s.bench.program.config().expect("map");
            map.set(0, config, 0).expect("set");
        }
        let told = s.sack(0, &[(20_480, 61_440)]);
        s.hear(if off { told.step() } else { told });
        assert_eq!(s.send(0, 60_000).verdict, OK);
        assert_eq!(s.counted(Counter::RealBytes), 60_000);
    }
}
