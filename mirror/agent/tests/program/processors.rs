//! Two processors at the entry of one connection.

use std::{sync::Barrier, thread};

use aya::programs::{SchedClassifier, TestRun as _, TestRunOptions};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use trunkline_mirror::layout::{Counter, Rcv, RcvState, Snd, SndState};

use crate::{
    bench::{OK, SHOT, run},
    bench_or_skip,
    packets::{RST, Segment},
    receive::{ZERO, receiver},
    sender::confirmed,
    sockets::Numbers,
};

const FRAMES: u32 = 40_000;
const RUNS: u32 = 200_000;
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

/// What each of two processors does of `work` at once; by turns where there is one alone.
fn by_two<T: Send>(
    program: &SchedClassifier,
    work: impl Fn(SchedClassifier, usize) -> T + Sync,
) -> [T; 2] {
    let all = sched_getaffinity(None).expect("processors");
    let processors: Vec<_> = (0..CpuSet::MAX_CPU)
        .filter(|cpu| all.is_set(*cpu))
        .collect();
    let (work, begin) = (&work, &Barrier::new(2));
    let one = |number: usize| {
        let (program, processor) = (again(program), processors[number % processors.len()]);
        move || {
            let mut own = CpuSet::new();
            own.set(processor);
            sched_setaffinity(None, &own).expect("a processor");
            begin.wait();
            work(program, number)
        }
    };
    thread::scope(|scope| {
        [0, 1]
            .map(|number| scope.spawn(one(number)))
            .map(|thread| thread.join().expect("a processor's work"))
    })
}

/// What is counted under the lock is counted by plain additions: where two were under it at once, some are lost.
#[test]
fn one_at_a_time_is_at_an_entry() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    let acks: Vec<_> = (1..=FRAMES)
        .map(|n| s.ack(n * DATA).step().frame())
        .collect();
    let program = s.bench.program.ingress().expect("ingress");
    let dropped = by_two(program, |program, number| {
        pass(&program, acks.iter().skip(number).step_by(2))
    });
    let flow = s.flow();
    assert_eq!((flow.lock, flow.state), (0, SndState::Virtual as u8));
    assert_eq!(flow.acked, s.number(FRAMES * DATA));
    assert_eq!(s.counted(Counter::AckHeld), u64::from(FRAMES));
    assert_eq!(s.counted(Counter::Busy), dropped[0] + dropped[1]);
}

/// Of copies likewise: one whose number stays as it is, which the kernel runs again and again.
#[test]
fn one_copy_at_a_time_is_at_an_entry() {
    let mut r = receiver(bench_or_skip!(), false, Numbers::wide());
    r.bench.set_head(r.key, ZERO);
    let copy = r.we_get(ZERO, 1_000).frame();
    by_two(r.bench.program.ingress().expect("ingress"), |program, _| {
        let options = TestRunOptions {
            data_in: Some(&copy),
            repeat: RUNS,
            ..TestRunOptions::new()
        };
        program.test_run(options).expect("BPF_PROG_TEST_RUN");
    });
    let flow = r.bench.rcv(r.key);
    assert_eq!((flow.lock, flow.state), (0, RcvState::InStep as u8));
    assert_eq!(flow.mirrored, ZERO + 1_000);
    let [copies, busy] = [Counter::Mirrored, Counter::Busy].map(|c| flow.counters[c as usize]);
    assert_eq!(copies + busy, 2 * u64::from(RUNS));
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

/// Nobody would say it again: the socket that sent it is gone.
#[test]
fn an_rst_goes_without_the_lock() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    s.hear(s.ack(9_000).step());
    let held = Snd {
        lock: 1,
        ..s.flow()
    };
    s.bench.set_snd(s.key, held);
    let end = Segment {
        partial: false,
        ..s.data(0, 0).flags(RST)
    };
    let out = s.bench.out_segment(&end);
    assert_eq!((out.verdict, out.seen().flags), (OK, RST));
    assert_eq!(out.seen().seq, s.number(9_000));
    let flow = s.flow();
    assert_eq!((flow.state, flow.lock), (SndState::Closed as u8, 1));
}

/// Nor would our stack say an ACK again that took the place of a segment.
#[test]
fn an_ack_alone_goes_without_the_lock() {
    let mut s = confirmed(bench_or_skip!(), false, Numbers::default());
    let held = Snd {
        lock: 1,
        ..s.flow()
    };
    s.bench.set_snd(s.key, held);
    let ack = s.data(0, 0).frame();
    let out = s.bench.egress(&ack);
    assert_eq!((out.verdict, out.frame), (OK, ack));
    assert_eq!(s.counted(Counter::Busy), 0);
}

#[test]
fn nor_does_a_copy() {
    let mut r = receiver(bench_or_skip!(), false, Numbers::wide());
    let copy = r.copy(0, 1_000);
    assert_eq!(r.bench.in_segment(&copy).verdict, OK);
    let held = Rcv {
        lock: 1,
        ..r.bench.rcv(r.key)
    };
    r.bench.set_rcv(r.key, held);
    let next = r.copy(1_000, 1_000);
    assert_eq!(r.bench.in_segment(&next).verdict, SHOT);
    // An ACK of more than copies brought goes, and says once more that they land.
    let ack = r.we_send().ack(ZERO + 1_001);
    assert!(r.bench.out_segment(&ack).seen().step);
    let flow = r.bench.rcv(r.key);
    assert_eq!((flow.mirrored, flow.have_mirrored), (ZERO + 1_000, 1));
    assert_eq!(flow.counters[Counter::Busy as usize], 1);
    r.bench.set_rcv(r.key, Rcv { lock: 0, ..flow });
    assert!(!r.bench.out_segment(&ack).seen().step);
    assert_eq!(r.bench.in_segment(&next).verdict, OK);
    assert_eq!(r.bench.rcv(r.key).mirrored, ZERO + 2_000);
}
