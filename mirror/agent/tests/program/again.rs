//! What the writer says again comes to the next replica as a copy too: a hole that both have is no copy's loss.

use std::os::fd::OwnedFd;

use trunkline_mirror::layout::{Counter, Key, Rcv, RcvState};

use crate::{
    bench::{OK, ends},
    bench_or_skip,
    packets::Segment,
    sender::{Sender, confirmed},
    sockets::{Numbers, established},
};

/// Where the block starts in the connection from upstream, and in the next one.
const UP_ZERO: u32 = 0xffff_fc00;
const DOWN_ZERO: u32 = 5_120;

/// A relay whose next replica is in step, and the socket that the block comes in by.
struct Relay {
    down: Sender,
    upstream: Key,
    /// Marked copies of the writer's numbers, or the writer's own segments.
    copies: bool,
    _socket: OwnedFd,
}

fn relay(sender: Sender, copies: bool) -> Relay {
    let mut down = sender;
    let (mut client, mut here) = ends(down.v6);
    std::mem::swap(&mut client, &mut here);
    client.set_port(41_000);
    here.set_port(50_010);
    let numbers = Numbers {
        rcv: UP_ZERO,
        ..Numbers::default()
    };
    let socket = established(here, client, numbers).expect("a socket under repair");
    let upstream = Key::new(client, here);
    let flow = Rcv {
        state: RcvState::Started as u8,
        zero: UP_ZERO,
        ready: copies.into(),
        ..Rcv::announced(0, Some(down.key))
    };
    down.bench.set_rcv(upstream, flow);
    if copies {
        down.bench.set_head(upstream, 0);
    }
    let mut flow = down.flow();
    (flow.zero, flow.have_zero) = (DOWN_ZERO, 1);
    down.bench.set_snd(down.key, flow);
    Relay {
        down,
        upstream,
        copies,
        _socket: socket,
    }
}

/// In ms.
const AN_HOUR: i32 = 3_600_000;

impl Relay {
    fn segment(&self, at: u32, octets: usize) -> Segment {
        let (client, here) = ends(self.down.v6);
        let (mut from, mut to) = (here, client);
        from.set_port(41_000);
        to.set_port(50_010);
        let segment = Segment::new(from, to)
            .ack(Numbers::default().snd)
            .data(octets);
        if self.copies {
            segment.marked().seq(at)
        } else {
            segment.seq(UP_ZERO.wrapping_add(at))
        }
    }

    /// The block's octets from `at` on come from upstream.
    fn comes(&mut self, at: u32, octets: usize) {
        let segment = self.segment(at, octets);
        assert_eq!(self.down.bench.in_segment(&segment).verdict, OK);
    }

    /// The writer said it again so much later than it did, in ms: machines that emulate others may stand still for longer
    /// than that counts.
    fn said_later(&mut self, ms: i32) {
        let mut flow = self.down.flow();
        flow.again_ms = flow.again_ms.wrapping_add_signed(ms);
        self.down.bench.set_snd(self.down.key, flow);
    }

    /// Whether the block's octets from `at` on go to the next replica, or only seem to.
    fn goes(&mut self, at: u32, octets: usize) -> bool {
        self.down.send(at, octets).verdict == OK
    }
}

/// The writer's [2,000, 3,000) was lost before the switch: both replicas have what came behind it.
fn shared(v6: bool, copies: bool) {
    let mut r = relay(confirmed(bench_or_skip!(), v6, Numbers::default()), copies);
    r.comes(0, 1_000);
    r.comes(1_000, 1_000);
    r.comes(3_000, 1_400);
    r.comes(4_400, 1_400);
    let told = r.down.sack(2_000, &[(3_000, 5_800)]).step();
    r.down.hear(told);
    r.comes(2_000, 1_000);
    let again = r.down.flow();
    assert_eq!(
        (again.have_again, again.again_from, again.again_to),
        (1, DOWN_ZERO + 2_000, DOWN_ZERO + 3_000)
    );
    r.said_later(AN_HOUR);
    assert!(!r.goes(0, 1_900));
    assert!(
        !r.goes(1_900, 1_900),
        "the copy of what was said again is on its way"
    );
    assert!(r.goes(1_900, 1_900), "the stack wants it sent");
    let heard = r.down.ack(5_800).step();
    r.down.hear(heard);
    assert_eq!(r.down.flow().have_again, 0, "it has come");
    assert_eq!(r.down.counted(Counter::RealHole), 0);
}

#[test]
fn a_hole_that_the_writer_fills_is_not_filled_by_the_first_replica() {
    shared(false, false);
    shared(true, false);
}

#[test]
fn nor_by_one_that_the_copy_came_to() {
    shared(false, true);
}

#[test]
fn a_hole_beside_what_is_said_again_is_a_copys_loss() {
    let mut r = relay(
        confirmed(bench_or_skip!(), false, Numbers::default()),
        false,
    );
    for at in 0..16 {
        r.comes(1_024 * at, 1_024);
    }
    let told = r
        .down
        .sack(2_048, &[(3_072, 8_192), (9_728, 16_384)])
        .step();
    r.down.hear(told);
    r.comes(2_048, 1_024);
    r.said_later(AN_HOUR);
    assert!(!r.goes(0, 4_096));
    assert!(!r.goes(4_096, 4_096));
    assert!(r.goes(8_192, 1_024), "nobody else sends it");
    assert_eq!(r.down.counted(Counter::RealHole), 1);
}

/// The copy of what was said again was lost, too, or what lies between two such ranges was: the next replica would have told
/// of it by now.
#[test]
fn what_was_said_again_long_ago_is_on_its_way_no_more() {
    let mut r = relay(
        confirmed(bench_or_skip!(), false, Numbers::default()),
        false,
    );
    for at in 0..16 {
        r.comes(1_024 * at, 1_024);
    }
    let told = r.down.sack(2_048, &[(4_096, 8_192)]).step();
    r.down.hear(told);
    r.comes(2_048, 1_024);
    r.said_later(AN_HOUR);
    assert!(!r.goes(0, 3_072));
    r.said_later(-AN_HOUR - 120);
    assert!(r.goes(3_072, 1_024), "nobody else sends it");
    r.comes(5_120, 1_024);
    let again = r.down.flow();
    assert_eq!(
        (again.have_again, again.again_from, again.again_to),
        (1, DOWN_ZERO + 5_120, DOWN_ZERO + 6_144)
    );
}

/// What the replica before sends really is copied to nobody.
#[test]
fn what_comes_from_the_replica_before_is_not_the_writers() {
    let mut r = relay(
        confirmed(bench_or_skip!(), false, Numbers::default()),
        false,
    );
    for at in [0, 1_000, 3_000] {
        let segment = r.segment(at, 1_000).step();
        r.down.bench.in_segment(&segment);
    }
    let told = r.down.sack(2_000, &[(3_000, 8_000)]).step();
    r.down.hear(told);
    let segment = r.segment(2_000, 1_000).step();
    r.down.bench.in_segment(&segment);
    assert_eq!(r.down.flow().have_again, 0);
    assert!(!r.goes(0, 1_500));
    assert!(r.goes(1_500, 2_500));
}

/// A number that no window can have let through would have everything look like said again.
#[test]
fn a_strangers_number_is_forgotten() {
    let mut r = relay(
        confirmed(bench_or_skip!(), false, Numbers::default()),
        false,
    );
    r.comes(1 << 29, 1_000);
    r.comes(0, 1_000);
    r.comes(1_000, 1_000);
    assert_eq!(r.down.flow().have_again, 0);
    assert_eq!(
        r.down.bench.rcv(r.upstream).high,
        UP_ZERO.wrapping_add(2_000)
    );
}
