//! MR_SND at D_{j-1}'s egress: fresh data of which D_j has told that a part is lost.

use trunkline_mirror::layout::{Config, Counter, UNIT};

use crate::{
    bench::{OK, STOLEN},
    bench_or_skip,
    sender::confirmed,
    sockets::Numbers,
};

#[test]
fn fresh_data_goes_where_the_next_replica_tells_of_a_hole() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.hear(s.sack(0, &[(10_240, 20_480), (40_960, 51_200)]).step());
    assert_eq!(s.send(0, 2_560).verdict, OK, "the first hole");
    assert_eq!(s.send(2_560, 7_680).verdict, STOLEN, "a long one in it");
    assert_eq!(s.send(10_240, 10_240).verdict, STOLEN, "what it holds");
    assert_eq!(s.send(20_480, 2_560).verdict, OK, "the second hole");
    assert_eq!(s.send(23_040, 16_640).verdict, STOLEN);
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

/// One lost frame has no ten go in its place: our stack, which hears of the hole, says just that again.
#[test]
fn of_a_long_segment_with_a_hole_only_the_hole_goes() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.hear(s.sack(0, &[(20_480, 61_440)]).step());
    let whole = s.data(0, 60_000);
    assert_eq!(s.bench.out_segment(&whole).verdict, STOLEN);
    assert_eq!(s.counted(Counter::VirtualBytes), 60_000);
    let seen = s.hear(s.sack(0, &[(61_440, 62_000)]).step()).seen();
    let held = (s.number(20_480), s.number(60_000) / UNIT * UNIT);
    assert_eq!(seen.sack, [held]);
    assert_eq!(s.send(0, 1_448).verdict, OK);
    assert_eq!(s.counted(Counter::RetransmittedBytes), 1_448);
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
