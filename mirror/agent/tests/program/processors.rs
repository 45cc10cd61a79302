//! Two processors at the entry of one connection.

use std::thread;

use aya::programs::SchedClassifier;
use trunkline_mirror::layout::{Counter, Snd, SndState};

use crate::{
    bench::{OK, SHOT, run},
    bench_or_skip,
    sender::confirmed,
    sockets::Numbers,
};

const ACKS: u32 = 40_000;
const DATA: u32 = 100;

/// The same program, for another thread.
fn again(program: &SchedClassifier) -> SchedClassifier {
    let info = program.info().expect("its numbers");
    SchedClassifier::from_program_info(info, "again".into()).expect("a descriptor")
}

/// So often in all: a lock that nobody gives back is a failure, and not a test without end.
const DROPPED_MOST: u64 = 200_000;

/// How often frames were dropped, each of which comes again until it is not, as TCP's do.
fn pass<'a>(program: &SchedClassifier, frames: impl Iterator<Item = &'a Vec<u8>>) -> u64 {
    let mut dropped = 0;
    for frame in frames {
        loop {
            let verdict = run(program, frame, 0).verdict;
            if verdict == OK {
                break;
            }
            assert_eq!(verdict, SHOT);
            dropped += 1;
            assert!(dropped < DROPPED_MOST, "the lock is never given back");
        }
    }
    dropped
}

/// What is counted under the lock is counted by plain additions: where two were under it at once, some are lost.
#[test]
fn one_at_a_time_is_at_an_entry() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    let acks: Vec<_> = (1..=ACKS).map(|n| s.ack(n * DATA).step().frame()).collect();
    let program = s.bench.program.ingress().expect("ingress");
    let (one, other) = (again(program), again(program));
    let dropped = thread::scope(|scope| {
        let odd = scope.spawn(|| pass(&one, acks.iter().step_by(2)));
        pass(&other, acks.iter().skip(1).step_by(2)) + odd.join().expect("the other half")
    });
    let flow = s.flow();
    assert_eq!((flow.lock, flow.state), (0, SndState::Virtual as u8));
    assert_eq!(flow.acked, s.number(ACKS * DATA));
    assert_eq!(s.counted(Counter::AckHeld), u64::from(ACKS));
    assert_eq!(s.counted(Counter::Busy), dropped);
}

/// A processor that was taken away with the lock: its host's others go on without the connection.
#[test]
fn nobody_waits_for_a_lock_that_is_not_given_back() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    let held = Snd {
        lock: 1,
        ..s.flow()
    };
    s.bench.set_snd(s.key, held);
    let ack = s.ack(1_000).step();
    assert_eq!(s.bench.in_segment(&ack).verdict, SHOT);
    assert_eq!(s.send(0, 1_000).verdict, SHOT);
    let flow = s.flow();
    assert_eq!((flow.sent, flow.acked), (held.sent, held.acked));
    assert_eq!(s.counted(Counter::Busy), 2);
    s.bench.set_snd(s.key, Snd { lock: 0, ..flow });
    s.hear(ack);
    assert_eq!(s.flow().acked, s.number(1_000));
}
