//! MR_RCV: mirrored copies at D_j.

use std::{net::TcpListener, os::fd::OwnedFd};

use trunkline_mirror::layout::{Config, Counter, Key, MARK, Rcv, RcvState, Reason, WINDOW};

use crate::{
    bench::{Bench, OK, SHOT, ends},
    bench_or_skip,
    packets::{ACK, CWR, ECE, FIN, PSH, RST, SYN, Segment, URG},
    sockets::{Numbers, established},
};

/// Where the stream starts in the client's connection, in D_{j-1}'s, and what D_j has had of it.
const HEAD: u32 = 0x7000_0000;
pub const ZERO: u32 = 900_000;
/// The mark of an ACK that was held, on its way to the stack.
const RELEASED: u32 = 0x4d52;

pub struct Receiver {
    pub bench: Bench,
    pub key: Key,
    v6: bool,
    socket: OwnedFd,
}

/// D_j, armed: its socket has had nothing of the block yet.
pub fn receiver(bench: Bench, v6: bool, numbers: Numbers) -> Receiver {
    let mut receiver = unarmed(bench, v6, numbers);
    receiver.bench.set_head(receiver.key, HEAD);
    receiver
}

fn unarmed(mut bench: Bench, v6: bool, numbers: Numbers) -> Receiver {
    let (up, down) = ends(v6);
    let socket = established(down, up, numbers).expect("a socket under repair");
    let key = Key::new(up, down);
    let zero = numbers.rcv;
    bench.set_rcv(
        key,
        Rcv {
            state: RcvState::Started as u8,
            zero,
            ready: 1,
            ..Rcv::announced(0, None)
        },
    );
    Receiver {
        bench,
        key,
        v6,
        socket,
    }
}

impl Receiver {
    /// A mirrored copy of the client's octets from `at` of the block on.
    pub fn copy(&self, at: u32, octets: usize) -> Segment {
        self.we_get(HEAD.wrapping_add(at), octets)
    }

    /// One that has this number.
    pub fn we_get(&self, number: u32, octets: usize) -> Segment {
        let (up, down) = ends(self.v6);
        Segment::new(up, down)
            .marked()
            .seq(number)
            .ack(0xdddd_0000)
            .data(octets)
            .window(77)
    }

    pub fn we_send(&self) -> Segment {
        let (up, down) = ends(self.v6);
        Segment::new(down, up)
    }

    fn upstream_sends(&self) -> Segment {
        let (up, down) = ends(self.v6);
        Segment::new(up, down)
    }

    fn counted(&mut self, counter: Counter) -> u64 {
        self.bench.rcv(self.key).counters[counter as usize]
    }

    fn state(&mut self) -> u8 {
        self.bench.rcv(self.key).state
    }
}

/// Sequence number by delta; ACK, window and timestamps of this connection; flags and options that are not its own gone;
/// sums right. A mismatch of window scales or timestamps between the two connections can't matter then.
fn moved(v6: bool) {
    let numbers = Numbers {
        snd_wnd: 640_000,
        scales: (6, 2),
        ..Numbers::default()
    };
    let mut r = receiver(bench_or_skip!(), v6, numbers);
    let mut copy = r
        .copy(2_000, 1_000)
        .flags(ACK | PSH | ECE | CWR)
        .sack(&[(1, 2)]);
    copy.congested = true;
    let out = r.bench.in_segment(&copy);
    assert_eq!(out.verdict, OK);
    let seen = out.seen();
    assert_eq!((seen.seq, seen.ack), (ZERO + 2_000, numbers.snd));
    assert_eq!(u32::from(seen.window), numbers.snd_wnd >> 6);
    assert_eq!(seen.flags, ACK | PSH);
    assert_eq!(
        seen.ts,
        Some((0, 0)),
        "a socket that heard no timestamp has none to echo"
    );
    assert_eq!((seen.sack.len(), seen.others), (0, 0));
    assert_eq!(seen.payload, copy.payload);
    assert!(seen.ip_sum && seen.whole_sum && !seen.congested);
    assert_eq!(r.counted(Counter::Mirrored), 1);
    assert_eq!(r.counted(Counter::MirroredBytes), 1_000);
    assert_eq!(r.bench.total(Counter::Mirrored), 1);
    assert_eq!(r.state(), RcvState::InStep as u8);
}

#[test]
fn a_copy_is_moved_into_the_connection() {
    moved(false);
}

#[test]
fn a_copy_is_moved_into_a_connection_over_ipv6() {
    moved(true);
}

#[test]
fn a_copy_with_options_of_ip_is_moved() {
    let mut r = receiver(bench_or_skip!(), false, Numbers::default());
    let copy = Segment {
        ip_options: true,
        ..r.copy(0, 100)
    };
    let out = r.bench.in_segment(&copy);
    assert_eq!((out.verdict, out.seen().seq), (OK, ZERO));
    assert!(out.seen().ip_sum && out.seen().whole_sum);
    let ack = Segment {
        ip_options: true,
        ..r.we_send().ack(ZERO + 100)
    };
    let seen = r.bench.out_segment(&ack).seen();
    assert!(seen.step && seen.ip_sum && seen.whole_sum);
}

#[test]
fn a_copy_without_timestamps_is_moved() {
    let mut r = receiver(bench_or_skip!(), false, Numbers::default());
    let copy = Segment {
        ts: None,
        ..r.copy(0, 100)
    };
    let out = r.bench.in_segment(&copy);
    assert_eq!(out.verdict, OK);
    assert_eq!((out.seen().seq, out.seen().ts), (ZERO, None));
    assert!(out.seen().whole_sum);
}

#[test]
fn the_delta_wraps() {
    let zero = 0xffff_ff00;
    let numbers = Numbers {
        rcv: zero,
        ..Numbers::default()
    };
    let mut r = receiver(bench_or_skip!(), false, numbers);
    for at in [0u32, 0xff, 0x100, 5_000] {
        let copy = r.copy(at, 1_000);
        let seen = r.bench.in_segment(&copy).seen();
        assert_eq!(seen.seq, zero.wrapping_add(at));
        assert!(seen.whole_sum);
    }
    assert_eq!(r.bench.rcv(r.key).mirrored, zero.wrapping_add(6_000));
    assert_eq!(r.counted(Counter::MirrorStale), 0);
}

/// What the delta is for: if it came from the first copy to arrive, its octets would be taken for the first of the block.
#[test]
fn the_first_copy_may_be_lost() {
    let mut r = receiver(bench_or_skip!(), false, Numbers::default());
    let copy = r.copy(1_448, 1_448);
    assert_eq!(r.bench.in_segment(&copy).seen().seq, ZERO + 1_448);
}

#[test]
fn copies_before_the_start_is_known_are_dropped() {
    let mut r = unarmed(bench_or_skip!(), false, Numbers::default());
    let copy = r.copy(0, 100);
    assert_eq!(
        r.bench.in_segment(&copy).verdict,
        SHOT,
        "the head's start is not known"
    );
    assert_eq!(r.counted(Counter::MirrorUnarmed), 1);
    assert_eq!(r.counted(Counter::Mirrored), 0);
    r.bench.set_head(r.key, HEAD);
    assert_eq!(r.bench.in_segment(&copy).verdict, OK);

    let key = r.key;
    r.bench.set_rcv(key, Rcv::announced(0, None));
    assert_eq!(
        r.bench.in_segment(&copy).verdict,
        SHOT,
        "our own start is not known"
    );
}

#[test]
fn a_copy_for_a_connection_that_is_gone_is_dropped() {
    let r = receiver(bench_or_skip!(), false, Numbers::default());
    let copy = r.copy(0, 100);
    let Receiver {
        mut bench, socket, ..
    } = r;
    drop(socket);
    assert_eq!(bench.in_segment(&copy).verdict, SHOT);
}

/// As there is one at each DataNode: its numbers are none of the connection that is gone.
#[test]
fn a_listener_is_not_taken_for_a_connection_that_is_gone() {
    for v6 in [false, true] {
        let r = receiver(bench_or_skip!(), v6, Numbers::default());
        let copy = r.copy(0, 100);
        let Receiver {
            mut bench,
            key,
            socket,
            ..
        } = r;
        drop(socket);
        let _listener = TcpListener::bind(ends(v6).1).expect("listen");
        assert_eq!(bench.in_segment(&copy).verdict, SHOT);
        let flow = bench.rcv(key);
        assert_eq!(flow.counters[Counter::MirrorUnarmed as usize], 1);
    }
}

#[test]
fn signals_between_client_and_first_replica_are_dropped() {
    let mut r = receiver(bench_or_skip!(), false, Numbers::default());
    for (flags, octets) in [
        (SYN, 0),
        (SYN | ACK, 100),
        (RST, 0),
        (RST | ACK, 10),
        (ACK, 0),
        (FIN | ACK, 0),
    ] {
        let copy = r.copy(0, octets).flags(flags);
        assert_eq!(r.bench.in_segment(&copy).verdict, SHOT, "flags {flags:#x}");
    }
    assert_eq!(r.counted(Counter::MirrorSignal), 6);
}

#[test]
fn the_last_octets_come_without_their_fin() {
    let mut r = receiver(bench_or_skip!(), false, Numbers::default());
    let copy = r.copy(0, 100).flags(FIN | PSH | ACK);
    let out = r.bench.in_segment(&copy);
    assert_eq!((out.verdict, out.seen().flags), (OK, PSH | ACK));
    assert_eq!(out.seen().payload.len(), 100);
}

#[test]
fn stale_copies_are_dropped() {
    let numbers = Numbers::default();
    let mut r = receiver(bench_or_skip!(), false, numbers);
    // The header that the client sent before the stream's start, once more; and what came already.
    for at in [0u32.wrapping_sub(500), 0u32.wrapping_sub(100)] {
        let copy = r.copy(at, 100);
        assert_eq!(r.bench.in_segment(&copy).verdict, SHOT);
    }
    assert_eq!(r.counted(Counter::MirrorStale), 2);
    let copy = r.copy(0u32.wrapping_sub(50), 100);
    assert_eq!(r.bench.in_segment(&copy).verdict, OK, "half of it is new");
}

#[test]
fn a_copy_beyond_the_window_takes_the_flow_out_of_step() {
    let numbers = Numbers {
        rcv_wnd: 10_000,
        ..Numbers::default()
    };
    let mut r = receiver(bench_or_skip!(), false, numbers);
    let copy = r.copy(0, 1_000);
    r.bench.in_segment(&copy);
    let ack = r.we_send().ack(ZERO);
    assert!(r.bench.out_segment(&ack).seen().step);

    let copy = r.copy(9_500, 1_000);
    assert_eq!(
        r.bench.in_segment(&copy).verdict,
        OK,
        "the stack answers it"
    );
    assert_eq!(r.counted(Counter::MirrorAhead), 1);
    assert_eq!(r.state(), RcvState::OutOfStep as u8);
    assert!(!r.bench.out_segment(&ack).seen().step);

    let copy = r.copy(1_000, 1_000);
    r.bench.in_segment(&copy);
    assert!(r.bench.out_segment(&ack).seen().step);
}

/// The evidence that D_{j-1} goes by.
#[test]
fn acks_bear_the_step_bit_only_for_what_the_mirror_brought() {
    let mut r = receiver(bench_or_skip!(), true, Numbers::default());
    let ack = |r: &mut Receiver, at: u32| {
        let segment = r.we_send().ack(ZERO + at);
        let out = r.bench.out_segment(&segment);
        assert_eq!(out.verdict, OK);
        assert!(out.seen().whole_sum);
        assert_eq!((out.seen().ack, out.seen().flags), (ZERO + at, ACK));
        out.seen().step
    };
    assert!(!ack(&mut r, 0), "nothing has come by the mirror");
    let copy = r.copy(0, 1_000);
    r.bench.in_segment(&copy);
    assert!(ack(&mut r, 0));
    assert!(ack(&mut r, 1_000));
    assert!(
        !ack(&mut r, 2_000),
        "the last 1000 came from D_{{j-1}} alone"
    );
    let copy = r.copy(2_000, 1_000);
    r.bench.in_segment(&copy);
    assert!(ack(&mut r, 2_000));
}

/// Numbers wrap: an ACK two gigabytes on would be before what the mirror brought, once more.
#[test]
fn acks_that_have_passed_the_mirror_bear_no_bit_however_far() {
    let mut r = receiver(bench_or_skip!(), false, Numbers::default());
    let copy = r.copy(0, 1_000);
    r.bench.in_segment(&copy);
    for at in [2_000, 1 << 30, (1 << 31) + 2_000] {
        let ack = r.we_send().ack(ZERO + at);
        assert!(!r.bench.out_segment(&ack).seen().step);
    }
}

/// Our ACKs would be ahead of all that D_{j-1} has sent, and its stack, without the program, throws such away.
#[test]
fn copies_are_taken_while_the_previous_replica_stands_by() {
    for v6 in [false, true] {
        let mut r = receiver(bench_or_skip!(), v6, Numbers::default());
        let flow = Rcv {
            ready: 0,
            ..r.bench.rcv(r.key)
        };
        r.bench.set_rcv(r.key, flow);
        let copy = r.copy(500, 1_000);
        assert_eq!(r.bench.in_segment(&copy).verdict, SHOT);
        assert_eq!(r.counted(Counter::MirrorUnarmed), 1);

        let data = r.upstream_sends().seq(ZERO).data(100);
        let signals = [
            (
                "an ACK",
                Segment {
                    step: true,
                    ..r.upstream_sends().seq(ZERO)
                },
            ),
            ("no bit", data.clone()),
            (
                "too old",
                data.clone().seq(ZERO.wrapping_sub(WINDOW + 1)).step(),
            ),
            (
                "beyond the window",
                data.clone().seq(ZERO + (1 << 20) + 1).step(),
            ),
        ];
        for (what, signal) in signals {
            assert_eq!(r.bench.in_segment(&signal).verdict, OK);
            assert_eq!(r.bench.in_segment(&copy).verdict, SHOT, "{what}");
        }

        let standing_by = data.clone().step();
        let frame = standing_by.frame();
        let out = r.bench.ingress(&frame);
        assert_eq!((out.verdict, out.frame), (OK, frame), "its data passes");
        assert_eq!(r.bench.in_segment(&copy).verdict, OK);
        let ack = r.we_send().ack(ZERO);
        assert!(r.bench.out_segment(&ack).seen().step);

        r.bench.in_segment(&data);
        assert_eq!(
            r.bench.in_segment(&copy).verdict,
            SHOT,
            "its program was switched off"
        );
        assert!(!r.bench.out_segment(&ack).seen().step);
    }
}

#[test]
fn acks_of_the_previous_replica_are_raised_where_the_mirror_ran_ahead() {
    for v6 in [false, true] {
        let numbers = Numbers {
            snd: 5_000,
            rcv: ZERO,
            ..Numbers::default()
        };
        let mut r = receiver(bench_or_skip!(), v6, numbers);
        let late = r.upstream_sends().seq(ZERO - 3_000).ack(5_010);
        assert_eq!(
            r.bench.in_segment(&late).seen().seq,
            ZERO - 3_000,
            "nothing has come by the mirror"
        );
        let copy = r.copy(0, 1_000);
        r.bench.in_segment(&copy);
        let seen = r.bench.in_segment(&late).seen();
        assert_eq!((seen.seq, seen.ack), (ZERO, 5_010));
        assert!(seen.whole_sum);
        assert_eq!(r.counted(Counter::AckRaised), 1);

        // As far behind as a window may be.
        let far = r
            .upstream_sends()
            .seq(ZERO.wrapping_sub(40 << 20))
            .ack(5_010);
        assert_eq!(r.bench.in_segment(&far).seen().seq, ZERO);
        assert_eq!(r.counted(Counter::AckRaised), 2);

        let probe = r.upstream_sends().seq(ZERO - 1).ack(5_000);
        assert_eq!(
            r.bench.in_segment(&probe).seen().seq,
            ZERO - 1,
            "a keep-alive wants its answer"
        );
        let data = r.upstream_sends().seq(ZERO - 3_000).ack(5_010).data(100);
        assert_eq!(
            r.bench.in_segment(&data).seen().seq,
            ZERO - 3_000,
            "data is not moved"
        );
    }
}

#[test]
fn a_doubt_has_the_flow_fall_back() {
    let signed = vec![1, 1, 19, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for (other_options, flags, reason) in [
        (signed, ACK, Reason::Options),
        (vec![], ACK | URG, Reason::Urgent),
    ] {
        let mut r = receiver(bench_or_skip!(), false, Numbers::default());
        let copy = r.copy(0, 1_000);
        r.bench.in_segment(&copy);
        let odd = Segment {
            other_options,
            ts: None,
            ..r.copy(1_000, 100).flags(flags)
        };
        assert_eq!(r.bench.in_segment(&odd).verdict, SHOT);
        let flow = r.bench.rcv(r.key);
        assert_eq!(
            (flow.state, flow.reason),
            (RcvState::Fallen as u8, reason as u8)
        );
        assert_eq!(r.bench.total(Counter::FellBack), 1);
        let copy = r.copy(1_000, 100);
        assert_eq!(r.bench.in_segment(&copy).verdict, SHOT);
        let ack = r.we_send().ack(ZERO);
        assert!(!r.bench.out_segment(&ack).seen().step);
    }
}

#[test]
fn forged_marks_are_dropped() {
    let mut bench = bench_or_skip!();
    let (up, down) = ends(false);
    let forged = Segment::new(up, down).marked().data(100);
    assert_eq!(bench.in_segment(&forged).verdict, SHOT);
    // Nor are others than TCP, or fragments, or from the other end of an announced flow.
    let mut r = receiver(bench, false, Numbers::default());
    let mut udp = r.copy(0, 100).frame();
    udp[14 + 9] = 17;
    assert_eq!(r.bench.ingress(&udp).verdict, SHOT);
    let mut fragment = r.copy(0, 100).frame();
    fragment[14 + 6] = 0x20;
    assert_eq!(r.bench.ingress(&fragment).verdict, SHOT);
    let back = Segment {
        marked: true,
        ..r.we_send().data(10)
    };
    assert_eq!(r.bench.in_segment(&back).verdict, SHOT);
    assert_eq!(r.bench.total(Counter::MirrorUnknown), 4);
    assert_eq!(r.counted(Counter::Mirrored), 0);
    // Unmarked, it is nobody's and passes as it is.
    let plain = Segment::new(down, up).data(100);
    let frame = plain.frame();
    let out = r.bench.ingress(&frame);
    assert_eq!((out.verdict, out.frame), (OK, frame));
}

#[test]
fn a_super_segment_that_the_host_put_together_is_moved_as_one() {
    let mut r = receiver(
        bench_or_skip!(),
        false,
        Numbers {
            rcv_wnd: 1 << 20,
            ..Numbers::default()
        },
    );
    let copy = r.copy(0, 0).claiming(60_000);
    let out = r.bench.in_segment(&copy);
    assert_eq!((out.verdict, out.seen().seq), (OK, ZERO));
    assert_eq!(r.counted(Counter::MirroredBytes), 60_000);
    assert_eq!(r.bench.rcv(r.key).mirrored, ZERO + 60_000);
}

/// Behind it is another release's program, which drops marked frames of flows that are not its own, and has flows of its own.
#[test]
fn before_another_release_what_is_not_known_goes_on_to_that() {
    let mut bench = bench_or_skip!();
    let (up, down) = ends(false);
    let copy = Segment::new(up, down).marked().data(100).frame();
    let mut udp = copy.clone();
    udp[14 + 9] = 17;
    let released = Segment::new(down, up).frame();
    for (before, verdict, mark, counted) in [(0, SHOT, 0, 2), (1, OK, RELEASED, 2)] {
        bench.configure(Config {
            before,
            ..Config::default()
        });
        for frame in [&copy, &udp] {
            let out = bench.ingress(frame);
            assert_eq!((out.verdict, &out.frame), (verdict, frame), "{before}");
        }
        assert_eq!(bench.total(Counter::MirrorUnknown), counted, "{before}");
        // An ACK that either of them has released must not be taken for D_j's by the one behind.
        let out = bench.marked_ingress(&released, RELEASED);
        assert_eq!((out.verdict, out.mark), (OK, mark), "{before}");
    }
}

#[test]
fn before_another_release_what_is_known_loses_its_mark() {
    let mut r = receiver(bench_or_skip!(), false, Numbers::default());
    r.bench.configure(Config {
        before: 1,
        ..Config::default()
    });
    let taken = r.copy(0, 1_000);
    let out = r.bench.in_segment(&taken);
    assert_eq!((out.verdict, out.seen().seq), (OK, ZERO));
    assert_ne!(out.frame[6..9], MARK, "the one behind would drop it");
    assert!(out.seen().whole_sum);
    // What is dropped here is no affair of the other.
    let signal = r.copy(0, 0);
    assert_eq!(r.bench.in_segment(&signal).verdict, SHOT);
}
