//! MR_SND at D_{j-1}'s egress: what is said again, and what only the stack takes for lost.

use trunkline_mirror::layout::{Config, Counter, SndState};

use crate::{
    bench::{OK, SHOT, STOLEN},
    bench_or_skip,
    sender::confirmed,
    sockets::Numbers,
};

#[test]
fn retransmissions_go_and_recovery_lasts_until_caught_up() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.no_suppression();
    for at in [0, 1_000, 2_000] {
        assert_eq!(s.send(at, 1_000).verdict, STOLEN);
    }
    assert_eq!(s.send(0, 1_000).verdict, OK);
    assert_eq!(s.counted(Counter::RetransmittedBytes), 1_000);
    assert_eq!(s.state(), SndState::Recovery as u8);
    s.hear(s.ack(1_000).step());
    assert_eq!(s.state(), SndState::Recovery as u8);
    s.hear(s.ack(3_000).step());
    assert_eq!(s.state(), SndState::Virtual as u8);
    assert_eq!(s.send(3_000, 1_000).verdict, STOLEN);
}

/// Copies go on while a lost one is said again.
#[test]
fn in_recovery_fresh_data_goes_only_without_the_bit() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.no_suppression();
    for at in [0, 1_000, 2_000] {
        assert_eq!(s.send(at, 1_000).verdict, STOLEN);
    }
    assert_eq!(s.send(0, 1_000).verdict, OK);
    assert_eq!(s.state(), SndState::Recovery as u8);
    assert_eq!(s.send(3_000, 1_000).verdict, STOLEN);
    s.hear(s.ack(1_000));
    assert_eq!(s.state(), SndState::Recovery as u8);
    assert_eq!(s.send(4_000, 1_000).verdict, OK);
    s.hear(s.ack(2_000).step());
    assert_eq!(s.send(5_000, 1_000).verdict, STOLEN);
}

#[test]
fn recovery_without_the_bit_ends_in_real_sending() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.no_suppression();
    s.send(0, 1_000);
    s.send(0, 1_000);
    s.hear(s.ack(1_000));
    assert_eq!(s.state(), SndState::Real as u8);
    assert_eq!(s.send(1_000, 1_000).verdict, OK);
}

#[test]
fn a_retransmission_is_not_repeated_at_once() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.bench.configure(Config {
        off: 0,
        repeat_ms: 600_000,
        ..Config::default()
    });
    s.send(0, 1_000);
    assert_eq!(s.send(0, 1_000).verdict, OK);
    assert_eq!(
        s.send(0, 1_000).verdict,
        SHOT,
        "the stack must not take it for sent"
    );
    assert_eq!(s.counted(Counter::RepeatSuppressed), 1);
    s.no_suppression();
    assert_eq!(s.send(0, 1_000).verdict, OK, "after its time it goes again");
}

/// Our stack takes copies for lost that the next replica can't have told of yet.
#[test]
fn a_copy_of_which_nothing_can_be_known_yet_is_not_said_again() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.no_suppression();
    for at in (0..6_000).step_by(1_000) {
        s.send(at, 1_000);
    }
    s.hear(s.sack(0, &[(1_024, 3_072)]).step());
    assert_eq!(s.send(0, 1_000).verdict, OK, "the first that lacks");
    assert_eq!(s.send(4_000, 1_000).verdict, SHOT);
    assert_eq!(s.send(5_000, 1_000).verdict, OK, "a probe of the end");
    assert_eq!(s.counted(Counter::RepeatSuppressed), 1);
    s.hear(s.sack(0, &[(1_024, 3_072), (5_120, 6_000)]).step());
    assert_eq!(s.send(4_000, 1_000).verdict, OK, "told as a hole");
    s.hear(s.ack(500));
    s.hear(s.sack(500, &[(1_024, 3_072)]));
    assert_eq!(s.send(4_000, 1_000).verdict, OK, "no copies are taken");
}
