//! Where the stream starts: read from the set-up response, on real connections, as it passes or later.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
};

use trunkline_mirror::layout::{Config, Key, Rcv, RcvState, Reason, Snd, SndState};

use crate::{
    bench::{Bench, OK},
    bench_or_skip,
    packets::{ACK, PSH, SYN, Segment},
    sockets::numbers_of,
};

/// A connection on the loopback: D_{j-1}'s end and D_j's. It sent `before` octets up already, then `response`.
struct Hop {
    up: TcpStream,
    down: TcpStream,
    key: Key,
}

fn hop(v6: bool) -> Hop {
    let listener = TcpListener::bind(if v6 { "[::1]:0" } else { "127.0.0.1:0" }).expect("listen");
    let up = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
    let (down, from) = listener.accept().expect("accept");
    let key = Key::new(from, down.local_addr().expect("address"));
    Hop { up, down, key }
}

impl Hop {
    /// D_j sends; the program is run on what went, as it is not attached.
    fn respond(&mut self, octets: usize) {
        self.down.write_all(&vec![7; octets]).expect("write");
        self.up.read_exact(&mut vec![0; octets]).expect("read");
    }

    fn segment(&self, octets: usize, ack: u32) -> Segment {
        let from = self.down.local_addr().expect("address");
        Segment::new(from, self.up.local_addr().expect("address"))
            .flags(ACK | PSH)
            .ack(ack)
            .data(octets)
    }
}

impl Hop {
    fn port(&self) -> u16 {
        self.down.local_addr().expect("address").port()
    }

    /// D_j's next segment, with the numbers that it really has: to be made before the stack sends these octets.
    fn next_down(&self, octets: usize) -> Segment {
        let (seq, ack) = numbers_of(&self.down).expect("numbers");
        self.segment(octets, ack).seq(seq)
    }

    /// D_{j-1}'s.
    fn next_up(&self, octets: usize) -> Segment {
        let (seq, ack) = numbers_of(&self.up).expect("numbers");
        let from = self.up.local_addr().expect("address");
        Segment::new(from, self.down.local_addr().expect("address"))
            .flags(ACK | PSH)
            .seq(seq)
            .ack(ack)
            .data(octets)
    }

    fn write_header(&mut self, octets: usize) {
        self.up.write_all(&vec![8; octets]).expect("write");
        self.down.read_exact(&mut vec![0; octets]).expect("read");
    }
}

/// The bench, told of the port where D_j listens.
fn on_port(mut bench: Bench, hop: &Hop) -> Bench {
    bench.configure(Config::default().with_ports(&[1, hop.port()]));
    bench
}

fn started(bench: &mut Bench, hop: &Hop) -> (u8, u32) {
    let flow = bench.rcv(hop.key);
    (flow.state, flow.zero)
}

#[test]
fn the_start_is_what_the_setup_response_acknowledges() {
    for v6 in [false, true] {
        let mut bench = bench_or_skip!();
        let mut hop = hop(v6);
        bench.set_rcv(hop.key, Rcv::announced(0, None));
        let ack = hop.segment(0, 0x1234_0000);
        bench.out_segment(&ack);
        assert_eq!(
            started(&mut bench, &hop).0,
            RcvState::New as u8,
            "an ACK without data is no response"
        );
        hop.respond(40);
        let response = hop.segment(40, 0xffff_fff0);
        let frame = response.frame();
        let out = bench.egress(&frame);
        assert_eq!((out.verdict, out.frame), (OK, frame), "it goes as it is");
        assert_eq!(
            started(&mut bench, &hop),
            (RcvState::Started as u8, 0xffff_fff0)
        );
        assert_ne!(bench.rcv(hop.key).scale, 0, "as the loopback has it");
        hop.respond(10);
        let later = hop.segment(10, 0x7777_0000);
        bench.out_segment(&later);
        assert_eq!(
            started(&mut bench, &hop),
            (RcvState::Started as u8, 0xffff_fff0),
            "once"
        );
    }
}

#[test]
fn a_handshake_before_the_response_is_not_taken_for_it() {
    let mut bench = bench_or_skip!();
    let mut hop = hop(false);
    bench.set_rcv(hop.key, Rcv::announced(100, None));
    hop.respond(60);
    let handshake = hop.segment(60, 1_000);
    bench.out_segment(&handshake);
    assert_eq!(started(&mut bench, &hop).0, RcvState::New as u8);
    hop.respond(40);
    let handshake = hop.segment(40, 2_000);
    bench.out_segment(&handshake);
    assert_eq!(started(&mut bench, &hop).0, RcvState::New as u8);
    hop.respond(33);
    let response = hop.segment(33, 3_000);
    bench.out_segment(&response);
    assert_eq!(started(&mut bench, &hop), (RcvState::Started as u8, 3_000));
}

/// The first that the program sees of an announced connection may be any segment, or an ACK.
#[test]
fn the_start_is_written_down_for_a_later_announcement() {
    for (v6, first_seen) in [(false, 0), (true, 0), (false, 12)] {
        let bench = bench_or_skip!();
        let mut hop = hop(v6);
        let mut bench = on_port(bench, &hop);
        hop.write_header(250);
        let response = hop.next_down(40);
        hop.respond(40);
        bench.out_segment(&response);
        assert_eq!(
            bench.start(hop.key),
            Some((response.ack, response.seq, true))
        );
        hop.write_header(1_000);
        let hdfs_ack = hop.next_down(12);
        hop.respond(12);
        bench.out_segment(&hdfs_ack);
        assert_eq!(
            bench.start(hop.key),
            Some((response.ack, response.seq, true)),
            "of the first alone"
        );

        bench.set_rcv(hop.key, Rcv::announced(0, None));
        let next = hop.next_down(first_seen);
        if first_seen > 0 {
            hop.respond(first_seen);
        }
        let frame = next.frame();
        let out = bench.egress(&frame);
        assert_eq!((out.verdict, out.frame), (OK, frame));
        assert_eq!(
            started(&mut bench, &hop),
            (RcvState::Started as u8, response.ack)
        );
    }
}

#[test]
fn an_announcement_before_the_response_waits_for_it() {
    let bench = bench_or_skip!();
    let mut hop = hop(false);
    let mut bench = on_port(bench, &hop);
    bench.set_rcv(hop.key, Rcv::announced(0, None));
    let ack = hop.next_down(0);
    bench.out_segment(&ack);
    assert_eq!(started(&mut bench, &hop).0, RcvState::New as u8);
    let response = hop.next_down(40);
    hop.respond(40);
    bench.out_segment(&response);
    let wanted = (RcvState::Started as u8, response.ack);
    assert_eq!(started(&mut bench, &hop), wanted);
    // A flow that ended and is announced once more, as its pipeline is armed anew.
    bench.set_rcv(hop.key, Rcv::announced(0, None));
    let ack = hop.next_down(0);
    bench.out_segment(&ack);
    assert_eq!(started(&mut bench, &hop), wanted);
}

#[test]
fn the_start_of_an_earlier_connection_is_not_taken() {
    let bench = bench_or_skip!();
    let mut hop = hop(false);
    let mut bench = on_port(bench, &hop);
    let first = hop.next_down(40).seq;
    hop.respond(40);
    bench.set_start(hop.key, 5_000, first.wrapping_add(1));
    bench.set_rcv(hop.key, Rcv::announced(0, None));
    let ack = hop.next_down(0);
    bench.out_segment(&ack);
    assert_eq!(bench.rcv(hop.key).reason, Reason::Late as u8);

    bench.set_snd(hop.key, Snd::announced(0));
    let data = hop.next_up(100);
    bench.out_segment(&data);
    assert_eq!(bench.snd(hop.key).have_zero, 2);
}

/// Each end sends a SYN of its own; one that comes in may be anybody's.
#[test]
fn a_new_connection_of_the_same_ports_finds_nothing_of_the_old() {
    for v6 in [false, true] {
        let mut bench = bench_or_skip!();
        let hop = hop(v6);
        let there = |bench: &mut Bench| {
            let program = &mut bench.program;
            (
                program.starts().expect("map").get(&hop.key, 0).is_ok(),
                program.snd_flows().expect("map").get(&hop.key, 0).is_ok(),
                program.rcv_flows().expect("map").get(&hop.key, 0).is_ok(),
                program.heads().expect("map").get(&hop.key, 0).is_ok(),
            )
        };
        let announce = |bench: &mut Bench| {
            bench.set_start(hop.key, 5_000, 7);
            bench.set_snd(hop.key, Snd::announced(0));
            bench.set_rcv(hop.key, Rcv::announced(0, None));
            bench.set_head(hop.key, 9);
        };
        let (syn, answer) = (hop.next_up(0).flags(SYN), hop.next_down(0).flags(SYN | ACK));
        announce(&mut bench);
        bench.in_segment(&syn);
        bench.in_segment(&answer);
        assert_eq!(there(&mut bench), (true, true, true, true));
        assert_eq!(bench.out_segment(&syn).verdict, OK);
        assert_eq!(there(&mut bench), (false, false, true, true));
        announce(&mut bench);
        assert_eq!(bench.out_segment(&answer).verdict, OK);
        assert_eq!(there(&mut bench), (false, true, false, false));
    }
}

/// A connection whose start was looked for is not looked at again, but a new one of its ports is.
#[test]
fn the_start_of_a_new_connection_of_the_same_ports_is_looked_for() {
    let bench = bench_or_skip!();
    let mut hop = hop(false);
    let mut bench = on_port(bench, &hop);
    let response = hop.next_down(40);
    bench.in_segment(&response);
    hop.respond(40);
    assert!(matches!(bench.start(hop.key), Some((_, _, true))));
    let syn = hop.next_up(0).flags(SYN);
    bench.out_segment(&syn);
    assert_eq!(bench.start(hop.key), None);
    let hdfs_ack = hop.next_down(12);
    bench.in_segment(&hdfs_ack);
    assert!(matches!(bench.start(hop.key), Some((_, _, false))));
}

#[test]
fn after_a_handshake_nothing_that_was_written_down_counts() {
    let bench = bench_or_skip!();
    let mut hop = hop(false);
    let mut bench = on_port(bench, &hop);
    let handshake = hop.next_down(100);
    hop.respond(100);
    bench.out_segment(&handshake);
    hop.respond(40);
    bench.set_rcv(hop.key, Rcv::announced(100, None));
    let ack = hop.next_down(0);
    bench.out_segment(&ack);
    assert_eq!(bench.rcv(hop.key).reason, Reason::Late as u8);
}

#[test]
fn connections_of_other_ports_are_not_written_down() {
    let mut bench = bench_or_skip!();
    let mut hop = hop(false);
    bench.configure(Config::default().with_ports(&[1, 0]));
    let response = hop.next_down(40);
    bench.in_segment(&response);
    hop.respond(40);
    bench.out_segment(&response);
    assert_eq!(bench.start(hop.key), None);
}

/// At D_{j-1}, which couples windows by it.
#[test]
fn the_next_replicas_start_is_written_down_for_a_later_announcement() {
    for v6 in [false, true] {
        let bench = bench_or_skip!();
        let mut hop = hop(v6);
        let mut bench = on_port(bench, &hop);
        hop.write_header(300);
        let response = hop.next_down(40);
        let behind = response.clone().seq(response.seq.wrapping_add(500));
        bench.in_segment(&behind);
        assert_eq!(
            bench.start(hop.key),
            None,
            "what comes behind a gap is not the first"
        );
        bench.in_segment(&response);
        hop.respond(40);
        let hdfs_ack = hop.next_down(12);
        bench.in_segment(&hdfs_ack);
        hop.respond(12);
        assert_eq!(
            bench.start(hop.key),
            Some((response.ack, response.seq, true))
        );

        bench.set_snd(hop.key, Snd::announced(0));
        let hdfs_ack = hop.next_down(12);
        bench.in_segment(&hdfs_ack);
        assert_eq!(
            bench.snd(hop.key).have_zero,
            0,
            "between two segments the socket may be at work"
        );
        let data = hop.next_up(100);
        bench.out_segment(&data);
        let flow = bench.snd(hop.key);
        assert_eq!((flow.have_zero, flow.zero), (1, response.ack));
    }
}

#[test]
fn a_response_that_passed_unseen_is_never_known() {
    let bench = bench_or_skip!();
    let mut hop = hop(false);
    let mut bench = on_port(bench, &hop);
    hop.respond(40);
    let hdfs_ack = hop.next_down(12);
    bench.in_segment(&hdfs_ack);
    assert!(matches!(bench.start(hop.key), Some((_, _, false))));
    hop.respond(12);
    bench.out_segment(&hdfs_ack);
    bench.set_snd(hop.key, Snd::announced(0));
    let data = hop.next_up(100);
    bench.out_segment(&data);
    assert_eq!(bench.snd(hop.key).have_zero, 2);
    bench.set_rcv(hop.key, Rcv::announced(0, None));
    let ack = hop.next_down(0);
    bench.out_segment(&ack);
    assert_eq!(bench.rcv(hop.key).reason, Reason::Late as u8);
}

/// Announced in mid-stream, an HDFS ack would be taken for the response, and each octet would land in the wrong place.
#[test]
fn a_flow_announced_too_late_stays_unmirrored() {
    let mut bench = bench_or_skip!();
    let mut hop = hop(false);
    hop.respond(40);
    bench.set_rcv(hop.key, Rcv::announced(0, None));
    hop.respond(12);
    let ack = hop.segment(12, 5_000);
    bench.out_segment(&ack);
    let flow = bench.rcv(hop.key);
    assert_eq!(
        (flow.state, flow.reason),
        (RcvState::Fallen as u8, Reason::Late as u8)
    );
}

#[test]
fn without_a_socket_nothing_starts() {
    let mut bench = bench_or_skip!();
    let (up, down) = crate::bench::ends(false);
    let key = Key::new(up, down);
    bench.set_rcv(key, Rcv::announced(0, None));
    let response = Segment::new(down, up).data(10);
    bench.out_segment(&response);
    assert_eq!(bench.rcv(key).reason, Reason::NoSocket as u8);
    bench.set_snd(key, Snd::announced(0));
    let data = Segment::new(up, down).data(10);
    assert_eq!(bench.out_segment(&data).verdict, OK);
    let flow = bench.snd(key);
    assert_eq!(
        (flow.state, flow.reason),
        (SndState::Fallen as u8, Reason::NoSocket as u8)
    );
    let ack = Segment::new(down, up).ack(1_000_000);
    assert_eq!(
        bench.in_segment(&ack).seen().ack,
        1_000_000,
        "nothing is held"
    );
}
