//! What a replica advertises towards the client never exceeds what the next one can take.

use std::{net::SocketAddr, os::fd::OwnedFd};

use trunkline_mirror::layout::{Counter, Key, Rcv, RcvState, Snd, SndState};

use crate::{
    bench::{Bench, ends},
    bench_or_skip,
    packets::Segment,
    sockets::{Numbers, established, unsent},
};

const UP_ZERO: u32 = 0xffff_f000;
const DOWN_ZERO: u32 = 70_000;
const SCALE: u8 = 3;

/// The client's connection to D_1, and D_1's to D_2.
fn pair(bench: &mut Bench, v6: bool, next: Snd) -> (Key, OwnedFd) {
    let (client, here) = ends(v6);
    let numbers = Numbers {
        rcv: UP_ZERO,
        scales: (7, SCALE),
        ..Numbers::default()
    };
    let socket = established(here, client, numbers).expect("a socket under repair");
    let (from, to) = down(v6);
    let (up, down) = (Key::new(client, here), Key::new(from, to));
    let flow = Rcv {
        state: RcvState::Started as u8,
        zero: UP_ZERO,
        scale: SCALE,
        ..Rcv::announced(0, Some(down))
    };
    bench.set_rcv(up, flow);
    bench.set_snd(down, next);
    (up, socket)
}

/// The ends of D_1's connection to D_2.
fn down(v6: bool) -> (SocketAddr, SocketAddr) {
    let (mut from, mut to) = ends(v6);
    from.set_port(41_000);
    to.set_port(50_020);
    (from, to)
}

/// D_1's socket to D_2, which lets it send `window` octets.
fn relay(v6: bool, window: u32) -> OwnedFd {
    let numbers = Numbers {
        snd: DOWN_ZERO,
        snd_wnd: window,
        ..Numbers::default()
    };
    let (from, to) = down(v6);
    established(from, to, numbers).expect("a socket under repair")
}

fn advertised(bench: &mut Bench, v6: bool, at: u32, window: u16) -> u32 {
    let (client, here) = ends(v6);
    let segment = Segment::new(here, client)
        .ack(UP_ZERO.wrapping_add(at))
        .window(window);
    let seen = bench.out_segment(&segment).seen();
    assert!(seen.whole_sum);
    u32::from(seen.window) << SCALE
}

/// D_2 can take the stream as far as `edge`, takes copies, and lacks nothing that it knows of.
fn next(edge: u32) -> Snd {
    let edge = DOWN_ZERO + edge;
    Snd {
        state: SndState::Virtual as u8,
        have_zero: 1,
        confirmed: 1,
        in_step: 1,
        zero: DOWN_ZERO,
        sent: DOWN_ZERO,
        acked: DOWN_ZERO,
        heard: DOWN_ZERO,
        edge,
        moved_ms: now_ms() + 600_000, // stands still in no test, however slow the machine is
        ..Snd::announced(0)
    }
}

#[test]
fn a_window_is_lowered_to_what_the_next_replica_can_take() {
    for v6 in [false, true] {
        let mut bench = bench_or_skip!();
        let (up, _socket) = pair(&mut bench, v6, next(80_000));
        assert_eq!(advertised(&mut bench, v6, 0, 60_000), 80_000);
        assert_eq!(
            advertised(&mut bench, v6, 30_000, 60_000),
            50_000,
            "across the wrap"
        );
        assert_eq!(advertised(&mut bench, v6, 30_000, 100), 800, "never raised");
        assert_eq!(advertised(&mut bench, v6, 80_000, 60_000), 0);
        assert_eq!(
            advertised(&mut bench, v6, 90_000, 60_000),
            0,
            "sent before it was coupled"
        );
        assert_eq!(bench.rcv(up).counters[Counter::WindowLowered as usize], 4);
    }
}

/// Its entry is read all the same.
#[test]
fn a_window_is_lowered_while_another_processor_has_the_next_replicas_lock() {
    let mut bench = bench_or_skip!();
    let held = Snd {
        lock: 1,
        ..next(80_000)
    };
    let (_up, _socket) = pair(&mut bench, false, held);
    assert_eq!(advertised(&mut bench, false, 30_000, 60_000), 50_000);
}

/// Copies and retransmissions together are more than the next replica's link carries.
#[test]
fn while_a_replica_is_sent_what_it_lacks_the_client_does_not_run_away() {
    for (state, room) in [
        (SndState::Virtual, 500_000),
        (SndState::Recovery, 262_144),
        (SndState::Real, 500_000),
    ] {
        let mut bench = bench_or_skip!();
        let next = Snd {
            state: state as u8,
            recover: DOWN_ZERO + 1000,
            ..next(500_000)
        };
        let (_up, _socket) = pair(&mut bench, false, next);
        assert_eq!(advertised(&mut bench, false, 0, 65_000), room, "{state:?}");
        let left = advertised(&mut bench, false, 200_000, 65_000);
        assert_eq!(left, room - 200_000);
        let smaller = advertised(&mut bench, false, 0, 1000);
        assert_eq!(smaller, 8000, "never raised");
    }
}

#[test]
fn windows_of_what_is_not_mirrored_are_left_alone() {
    let unconfirmed = Snd {
        confirmed: 0,
        ..next(1_000)
    };
    let unstarted = Snd {
        have_zero: 0,
        ..next(1_000)
    };
    let closed = Snd {
        state: SndState::Closed as u8,
        ..next(1_000)
    };
    // Its edge may be one that never moves again.
    let fallen = Snd {
        state: SndState::Fallen as u8,
        ..next(1_000)
    };
    for next in [unconfirmed, unstarted, closed, fallen] {
        let mut bench = bench_or_skip!();
        let (_, _socket) = pair(&mut bench, false, next);
        assert_eq!(advertised(&mut bench, false, 0, 60_000), 480_000);
    }
}

/// Where the stream starts may not be known then, so a window by it would be of any size.
#[test]
fn windows_are_left_alone_where_what_comes_has_fallen_back() {
    let mut bench = bench_or_skip!();
    let (up, _socket) = pair(&mut bench, false, next(1_000));
    let fallen = Rcv {
        state: RcvState::Fallen as u8,
        zero: 0,
        ..bench.rcv(up)
    };
    bench.set_rcv(up, fallen);
    assert_eq!(advertised(&mut bench, false, 0, 60_000), 480_000);
}

/// Else a client that is further ahead than the next replica's window stays so, and no copy ever lands.
#[test]
fn windows_are_coupled_while_the_mirror_settles() {
    let begun = Snd {
        state: SndState::Real as u8,
        confirmed: 0,
        acked: DOWN_ZERO,
        ..next(300_000)
    };
    let narrow = Snd {
        acked: DOWN_ZERO + 250_000,
        ..begun
    };
    let fallen = Snd {
        state: SndState::Fallen as u8,
        ..begun
    };
    // What else is advertised is 480,000.
    for (next, hours_ago, wanted) in [
        (begun, 0, 300_000),
        (begun, 1, 480_000),
        (narrow, 0, 250_000 + 98_304),
        (fallen, 0, 480_000),
    ] {
        let mut bench = bench_or_skip!();
        let next = Snd {
            begun_ns: now_ns().wrapping_sub(hours_ago * 3_600_000_000_000),
            ..next
        };
        let (_, _socket) = pair(&mut bench, false, next);
        assert_eq!(advertised(&mut bench, false, 0, 60_000), wanted);
    }
}

/// D_1 fills its buffers then, as it does over stock TCP: without HDFS's heartbeats it would give up before D_2.
#[test]
fn a_replica_that_stands_still_closes_no_window() {
    for (moved_ms, wanted) in [
        (next(0).moved_ms, 80_000),
        (now_ms().wrapping_sub(3_000), 480_000),
    ] {
        let mut bench = bench_or_skip!();
        let next = Snd {
            moved_ms,
            ..next(80_000)
        };
        let (_, _socket) = pair(&mut bench, false, next);
        assert_eq!(advertised(&mut bench, false, 0, 60_000), wanted);
    }
}

/// A DataNode passes on whole packets: where D_2 lacks the beginning of one, D_1 sends it when the end has come.
#[test]
fn the_rest_of_a_packet_has_room_however_long_it_is() {
    let out_of_step = Snd {
        in_step: 0,
        ..next(65_536)
    };
    let unconfirmed = Snd {
        state: SndState::Real as u8,
        confirmed: 0,
        in_step: 0,
        begun_ns: now_ns() + 600_000_000_000, // begun lately, however slow the machine is
        ..next(65_536)
    };
    let hole = Snd {
        heard: DOWN_ZERO + 60_000,
        ..next(65_536)
    };
    // All copies to the window's end were lost, so nothing tells of a hole.
    let silent = next(65_536);
    for (next, is_silent) in [
        (out_of_step, false),
        (unconfirmed, false),
        (hole, false),
        (silent, true),
    ] {
        for v6 in [false, true] {
            let mut bench = bench_or_skip!();
            let (_, _socket) = pair(&mut bench, v6, next);
            let _relay = relay(v6, 1 << 20);
            let (from, to) = down(v6);
            let down = Key::new(from, to);
            let mut come = 65_536;
            while come < 16 << 20 {
                if is_silent {
                    // Anew each time: a slow machine takes long for all of it.
                    let moved_ms = now_ms().wrapping_sub(200);
                    let so_far = bench.snd(down);
                    bench.set_snd(down, Snd { moved_ms, ..so_far });
                }
                let room = advertised(&mut bench, v6, come, 60_000);
                assert!(room > 30_000, "{room} at {come}");
                assert!(
                    room <= 480_000.min(come + 8),
                    "twice what has come: {room} at {come}"
                );
                come += room.min(100_000);
            }
        }
    }
}

/// Else a client that is further ahead than the next replica's window stays so, and no copy ever lands.
#[test]
fn what_waits_to_be_passed_on_is_no_part_of_a_packet() {
    let behind = Snd {
        in_step: 0,
        ..next(65_536)
    };
    let sent = Snd {
        sent: DOWN_ZERO + 65_536,
        ..behind
    };
    for (next, window, waits, room) in [
        (behind, 1 << 20, false, 90_000),
        (sent, 1 << 20, false, 98_304 - 90_000),
        (behind, 0, true, 98_304 - 90_000),
    ] {
        let mut bench = bench_or_skip!();
        let (_, _socket) = pair(&mut bench, false, next);
        let relay = relay(false, window);
        if waits {
            unsent(&relay, 1_000).expect("what is written");
        }
        let seen = advertised(&mut bench, false, 90_000, 60_000);
        assert_eq!(seen, room, "in units of eight");
    }
}

#[test]
fn a_replica_that_takes_all_copies_but_is_slow_closes_the_window() {
    let mut bench = bench_or_skip!();
    let full = Snd {
        acked: DOWN_ZERO + 65_536,
        heard: DOWN_ZERO + 65_536,
        moved_ms: now_ms().wrapping_sub(200),
        ..next(65_536)
    };
    let (_, _socket) = pair(&mut bench, false, full);
    let _relay = relay(false, 1 << 20);
    assert_eq!(advertised(&mut bench, false, 65_536, 60_000), 0);
}

/// As the program has it, in 2^20 ns.
fn now_ms() -> u32 {
    (now_ns() >> 20) as u32
}

/// By the program's clock, which is behind by as long as a machine loses ticks.
fn now_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time lives through the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[test]
fn the_next_replicas_start_and_edge_are_read_from_its_response() {
    let mut bench = bench_or_skip!();
    let (from, to) = ends(false);
    let numbers = Numbers {
        snd: DOWN_ZERO,
        scales: (2, 2),
        snd_wnd: 1_000,
        ..Numbers::default()
    };
    let _socket = established(from, to, numbers).expect("a socket under repair");
    let key = Key::new(from, to);
    bench.set_snd(key, Snd::announced(0));
    let header = Segment::new(from, to)
        .seq(DOWN_ZERO - 10)
        .ack(numbers.rcv)
        .data(10);
    bench.out_segment(&header);
    let ack = Segment::new(to, from).seq(numbers.rcv).ack(DOWN_ZERO);
    bench.in_segment(&ack);
    assert_eq!(
        bench.snd(key).have_zero,
        0,
        "an ACK without data is no response"
    );
    let later = Segment::new(to, from)
        .seq(numbers.rcv + 500)
        .ack(DOWN_ZERO + 5)
        .data(40);
    bench.in_segment(&later);
    assert_eq!(
        bench.snd(key).have_zero,
        0,
        "nor is what comes behind a gap"
    );
    let response = Segment::new(to, from)
        .seq(numbers.rcv)
        .ack(DOWN_ZERO)
        .data(40)
        .window(5_000);
    bench.in_segment(&response);
    let flow = bench.snd(key);
    assert_eq!(
        (flow.have_zero, flow.zero, flow.edge),
        (1, DOWN_ZERO, DOWN_ZERO + 20_000)
    );
}
