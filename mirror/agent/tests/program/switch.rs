//! The switch's program. All of its ports are the loopback: copies are told apart by their marks, and caught as they leave.

use std::{
    mem::{size_of, size_of_val},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

use trunkline_mirror::switch::{
    SwitchProgram,
    layout::{COPIES, Config, Copy, Counter, Entry, FlowKey, Key, MARK, Port},
};

use crate::{
    bench::{OK, Outcome, REDIRECT, SHOT, ready, run},
    packets::{FIN, PSH, RST, SYN, Seen, Segment, see},
};

const LOOPBACK: u32 = 1;

struct Switch {
    program: SwitchProgram,
    wire: OwnedFd,
}

fn switch() -> Option<Switch> {
    ready().then(|| Switch {
        program: SwitchProgram::load().expect("the kernel takes the program"),
        wire: wire(),
    })
}

macro_rules! switch_or_skip {
    () => {
        match switch() {
            Some(switch) => switch,
            None => return,
        }
    };
}

/// What leaves by the loopback.
fn wire() -> OwnedFd {
    const ALL: u16 = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: plain system calls; the address lives through them.
    unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let socket = libc::socket(libc::AF_PACKET, kind, 0);
        assert!(socket >= 0, "{}", std::io::Error::last_os_error());
        let socket = OwnedFd::from_raw_fd(socket);
        let mut at: libc::sockaddr_ll = std::mem::zeroed();
        at.sll_family = libc::AF_PACKET as u16;
        at.sll_protocol = ALL;
        at.sll_ifindex = LOOPBACK as i32;
        let octets = size_of_val(&at) as u32;
        let done = libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&at).cast(), octets);
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        socket
    }
}

impl Switch {
    /// The frames that left since it was last asked.
    fn left(&self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        loop {
            let mut frame = vec![0; 8192];
            // SAFETY: all zero is an address; no more is written than there is room for.
            let (octets, kind) = unsafe {
                let mut from: libc::sockaddr_ll = std::mem::zeroed();
                let mut length = size_of::<libc::sockaddr_ll>() as u32;
                let octets = libc::recvfrom(
                    self.wire.as_raw_fd(),
                    frame.as_mut_ptr().cast(),
                    frame.len(),
                    0,
                    std::ptr::from_mut(&mut from).cast(),
                    &mut length,
                );
                (octets, from.sll_pkttype)
            };
            if octets < 0 {
                return frames;
            }
            frame.truncate(octets as usize);
            if kind == libc::PACKET_OUTGOING {
                frames.push(frame);
            }
        }
    }

    fn come(&mut self, frame: &[u8]) -> Outcome {
        run(self.program.classifier().expect("a program"), frame, 0)
    }

    fn announce(&mut self, flow: FlowKey, marked: bool, copies: &[Copy]) {
        let key = Key {
            flow,
            port: LOOPBACK,
            marked: marked.into(),
            pad: [0; 3],
        };
        let entry = Entry::new(copies).expect("few enough");
        let mut entries = self.program.entries().expect("map");
        entries.insert(key, entry, 0).expect("room");
    }

    /// The port leads to another switch.
    fn admit(&mut self) {
        let mut ports = self.program.ports().expect("map");
        ports.insert(LOOPBACK, Port { admits: 1 }, 0).expect("room");
    }

    fn total(&mut self, counter: Counter) -> u64 {
        self.program.totals().expect("totals")[counter as usize]
    }
}

fn address(v6: bool, host: u8) -> IpAddr {
    match v6 {
        true => Ipv6Addr::new(0xfd00, 0, 0, 7, 0x1234, 0xffff, 0, host.into()).into(),
        false => Ipv4Addr::new(10, 9, 200, host).into(),
    }
}

/// The connection to D_`position`; the client is host 0.
fn hop(v6: bool, position: u8) -> (SocketAddr, SocketAddr) {
    let from = SocketAddr::new(address(v6, position - 1), 40_000 + u16::from(position));
    (from, SocketAddr::new(address(v6, position), 9866))
}

fn flow(v6: bool, position: u8) -> FlowKey {
    let (from, to) = hop(v6, position);
    FlowKey::new(from, to)
}

const fn mac(position: u8) -> [u8; 6] {
    [2, 0, 0, 0, 7, position]
}

/// The copy that is to come out at D_`position`.
fn to_replica(v6: bool, position: u8) -> Copy {
    Copy {
        flow: flow(v6, position),
        port: LOOPBACK,
        to: mac(position),
        position,
        pad: 0,
    }
}

fn onward() -> Copy {
    Copy {
        position: 0,
        to: [0; 6],
        ..to_replica(false, 1)
    }
}

fn sent(v6: bool) -> Segment {
    let (from, to) = hop(v6, 1);
    Segment::new(from, to).seq(77).data(1001)
}

/// As another switch sends it on.
fn in_transit(v6: bool) -> Vec<u8> {
    let mut frame = sent(v6).frame();
    frame[6..12].copy_from_slice(&mark(0));
    frame
}

fn mark(position: u8) -> [u8; 6] {
    [MARK[0], MARK[1], MARK[2], 0, 0, position]
}

fn is_copy_for(seen: &Seen, v6: bool, position: u8) {
    assert_eq!(seen.ethernet, (mark(position), mac(position)));
    assert_eq!((seen.from, seen.to), hop(v6, position));
    assert!(seen.ip_sum && seen.whole_sum, "{seen:?}");
    let whole = see(&sent(v6).frame());
    assert_eq!(
        (seen.seq, seen.ack, seen.ts),
        (whole.seq, whole.ack, whole.ts)
    );
    assert_eq!(seen.payload, whole.payload);
}

fn the_client_s_own(v6: bool) {
    let mut s = switch_or_skip!();
    s.announce(
        flow(v6, 1),
        false,
        &[onward(), to_replica(v6, 2), to_replica(v6, 3)],
    );
    let frame = sent(v6).frame();
    let out = s.come(&frame);
    assert_eq!(out.verdict, OK, "it goes on to the bridge");
    assert_eq!(out.frame, frame, "as it came");
    let left = s.left();
    assert_eq!(left.len(), 3);
    let (mut transit, own) = (left[0].clone(), frame.clone());
    assert_eq!(transit[6..12], mark(0));
    transit[6..12].copy_from_slice(&own[6..12]);
    assert_eq!(transit, own, "nothing but the mark is changed in transit");
    is_copy_for(&see(&left[1]), v6, 2);
    is_copy_for(&see(&left[2]), v6, 3);
    assert_eq!(s.total(Counter::Copied), 3);
    assert_eq!(s.total(Counter::CopiedBytes), 3 * 1001);
    assert_eq!(s.total(Counter::Lost), 0);
}

#[test]
fn a_client_s_segment_is_copied_and_goes_on() {
    the_client_s_own(false);
}

#[test]
fn a_client_s_segment_over_ipv6_is_copied_and_goes_on() {
    the_client_s_own(true);
}

fn last_switch(v6: bool) {
    let mut s = switch_or_skip!();
    s.admit();
    s.announce(
        flow(v6, 1),
        true,
        &[onward(), to_replica(v6, 2), to_replica(v6, 4)],
    );
    let frame = in_transit(v6);
    let out = s.come(&frame);
    assert_eq!(out.verdict, REDIRECT, "the last copy is the frame itself");
    is_copy_for(&out.seen(), v6, 4);
    let left = s.left();
    assert_eq!(left.len(), 2);
    assert_eq!(left[0], frame);
    is_copy_for(&see(&left[1]), v6, 2);
    assert_eq!(s.total(Counter::Copied), 3);
}

#[test]
fn a_copy_in_transit_comes_out_at_replicas() {
    last_switch(false);
}

#[test]
fn a_copy_in_transit_over_ipv6_comes_out_at_replicas() {
    last_switch(true);
}

#[test]
fn a_copy_in_transit_that_only_passes_is_not_copied_at_all() {
    let mut s = switch_or_skip!();
    s.admit();
    s.announce(flow(false, 1), true, &[onward()]);
    let frame = in_transit(false);
    let out = s.come(&frame);
    assert_eq!((out.verdict, out.frame), (REDIRECT, frame));
    assert_eq!(s.left(), Vec::<Vec<u8>>::new());
}

#[test]
fn marks_count_from_other_switches_alone() {
    let mut s = switch_or_skip!();
    for marked in [false, true] {
        s.announce(flow(false, 1), marked, &[to_replica(false, 2)]);
    }
    let mut came_out = in_transit(false);
    came_out[6..12].copy_from_slice(&mark(2));
    for frame in [in_transit(false), came_out] {
        assert_eq!(s.come(&frame).verdict, SHOT);
    }
    assert_eq!(s.left(), Vec::<Vec<u8>>::new());
    assert_eq!(s.total(Counter::Forged), 2);
    // Of no connection at all, and no IP either.
    let mut arp = vec![0; 60];
    arp[6..12].copy_from_slice(&mark(0));
    arp[12..14].copy_from_slice(&[8, 6]);
    assert_eq!(s.come(&arp).verdict, SHOT);
    assert_eq!(s.total(Counter::Forged), 3);
}

#[test]
fn marked_frames_that_nobody_has_announced_are_dropped() {
    let mut s = switch_or_skip!();
    s.admit();
    s.announce(flow(false, 1), false, &[to_replica(false, 2)]);
    assert_eq!(s.come(&in_transit(false)).verdict, SHOT);
    assert_eq!(s.total(Counter::Unknown), 1);
    assert_eq!(s.left(), Vec::<Vec<u8>>::new());
}

#[test]
fn what_is_not_announced_passes() {
    let mut s = switch_or_skip!();
    s.announce(flow(false, 1), true, &[to_replica(false, 2)]);
    s.announce(flow(false, 2), false, &[to_replica(false, 2)]);
    let (from, to) = hop(false, 1);
    let mut other = sent(false);
    other.from.set_port(1);
    for segment in [
        sent(false),
        Segment::new(to, from).data(10),
        other,
        sent(true),
    ] {
        let frame = segment.frame();
        let out = s.come(&frame);
        assert_eq!((out.verdict, out.frame), (OK, frame));
    }
    let short = [0; 20];
    assert_eq!(s.come(&short).verdict, OK);
    assert_eq!(s.left(), Vec::<Vec<u8>>::new());
}

/// A replica drops such copies.
#[test]
fn what_has_no_data_is_not_copied() {
    let mut s = switch_or_skip!();
    s.admit();
    for marked in [false, true] {
        s.announce(flow(false, 1), marked, &[to_replica(false, 2)]);
    }
    let (from, to) = hop(false, 1);
    for segment in [
        Segment::new(from, to),
        Segment::new(from, to).flags(FIN),
        sent(false).flags(SYN),
        sent(false).flags(RST),
    ] {
        let mut frame = segment.frame();
        assert_eq!(s.come(&frame).verdict, OK);
        frame[6..12].copy_from_slice(&mark(0));
        assert_eq!(s.come(&frame).verdict, SHOT);
    }
    assert_eq!(s.left(), Vec::<Vec<u8>>::new());
    let last = sent(false).flags(FIN | PSH).frame();
    assert_eq!(s.come(&last).verdict, OK);
    assert_eq!(s.left().len(), 1);
}

#[test]
fn as_many_copies_as_a_pipeline_may_need_are_made() {
    let mut s = switch_or_skip!();
    let copies: Vec<_> = (2..2 + COPIES as u8)
        .map(|at| to_replica(true, at))
        .collect();
    s.announce(flow(true, 1), false, &copies);
    let frame = sent(true).frame();
    let out = s.come(&frame);
    assert_eq!((out.verdict, out.frame), (OK, frame));
    let left = s.left();
    assert_eq!(left.len(), COPIES);
    for (copy, position) in left.iter().zip(2..) {
        is_copy_for(&see(copy), true, position);
    }
}

/// A claimed length is that of a super-segment, of which a test run holds no more than a page.
#[test]
fn a_super_segment_is_one_copy() {
    let mut s = switch_or_skip!();
    s.announce(flow(false, 1), false, &[to_replica(false, 2)]);
    let (from, to) = hop(false, 1);
    let frame = Segment::new(from, to).claiming(40_000).frame();
    let out = s.come(&frame);
    assert_eq!((out.verdict, out.frame), (OK, frame));
    assert_eq!(s.left().len(), 1);
    assert_eq!(s.total(Counter::CopiedBytes), 40_000);
}

#[test]
fn a_port_that_is_gone_loses_its_copies_alone() {
    let mut s = switch_or_skip!();
    let gone = Copy {
        port: 7777,
        ..to_replica(false, 2)
    };
    s.announce(flow(false, 1), false, &[gone, to_replica(false, 3)]);
    let frame = sent(false).frame();
    let out = s.come(&frame);
    assert_eq!((out.verdict, out.frame), (OK, frame));
    let left = s.left();
    assert_eq!(left.len(), 1);
    is_copy_for(&see(&left[0]), false, 3);
    assert_eq!((s.total(Counter::Copied), s.total(Counter::Lost)), (1, 1));
}

#[test]
fn switched_off_it_copies_nothing_and_still_drops_marks() {
    let mut s = switch_or_skip!();
    s.admit();
    for marked in [false, true] {
        s.announce(flow(false, 1), marked, &[to_replica(false, 2)]);
    }
    let mut config = s.program.config().expect("map");
    config.set(0, Config { off: 1 }, 0).expect("set");
    assert_eq!(s.come(&sent(false).frame()).verdict, OK);
    assert_eq!(s.come(&in_transit(false)).verdict, SHOT);
    assert_eq!(s.left(), Vec::<Vec<u8>>::new());
}

#[test]
fn sums_are_right_whatever_the_addresses() {
    let mut s = switch_or_skip!();
    let mut dice = fastrand::Rng::with_seed(1);
    for round in 0..64 {
        let v6 = round % 2 == 0;
        let any = |dice: &mut fastrand::Rng| {
            let ip: IpAddr = match v6 {
                true => Ipv6Addr::from(dice.u128(..)).into(),
                false => Ipv4Addr::from(dice.u32(..)).into(),
            };
            SocketAddr::new(ip, dice.u16(1..))
        };
        let ends = [(); 4].map(|()| any(&mut dice));
        let copy = Copy {
            flow: FlowKey::new(ends[2], ends[3]),
            ..to_replica(v6, 2)
        };
        s.announce(FlowKey::new(ends[0], ends[1]), false, &[copy]);
        let frame = Segment::new(ends[0], ends[1])
            .seq(dice.u32(..))
            .data(dice.usize(1..1400))
            .frame();
        let out = s.come(&frame);
        assert_eq!((out.verdict, &out.frame), (OK, &frame));
        let left = s.left();
        let seen = see(&left[0]);
        assert_eq!((seen.from, seen.to), (ends[2], ends[3]));
        assert!(seen.ip_sum && seen.whole_sum, "{ends:?}");
    }
}
