//! Where the stream starts: read from the set-up response, on real connections.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
};

use trunkline_mirror::layout::{Key, Rcv, RcvState, Reason, Snd, SndState};

use crate::{
    bench::{Bench, OK},
    bench_or_skip,
    packets::{ACK, PSH, Segment},
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
