//! Frames whose sum a device is to complete, and super-segments, as they pass a bridge's port with the switch's program:
//! the kernel says of each what it thinks that it is (struct virtio_net_hdr).

use std::{
    mem::size_of_val,
    net::SocketAddr,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    time::Duration,
};

use aya::programs::{
    TcAttachType,
    tc::{self, NlOptions, TcAttachOptions},
};
use etherparse::PacketBuilder;
use trunkline_mirror::switch::{
    SwitchProgram,
    layout::{Copy, Entry, FlowKey, Key, MARK},
};

use crate::hosts::{Namespace, index, ip, succeeded};

const HEADER: usize = 10;
const NEEDS_SUM: u8 = 1;
const DATA_VALID: u8 = 2;
const SUPER_V4: u8 = 1;
const SUPER_V6: u8 = 4;
const ETHERNET: usize = 14;

/// A packet socket that says and hears what devices are to do.
fn wire(interface: &str) -> OwnedFd {
    const ALL: u16 = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: plain system calls, whose arguments live through them.
    unsafe {
        let socket = succeeded(libc::socket(
            libc::AF_PACKET,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            0,
        ));
        let socket = OwnedFd::from_raw_fd(socket);
        let patience = libc::timeval {
            tv_sec: 5,
            tv_usec: 0,
        };
        let set = |level, option, value: *const libc::c_void, octets: usize| {
            let fd = socket.as_raw_fd();
            succeeded(libc::setsockopt(fd, level, option, value, octets as u32));
        };
        let on = 1i32;
        for option in [libc::PACKET_VNET_HDR, libc::PACKET_IGNORE_OUTGOING] {
            set(libc::SOL_PACKET, option, (&raw const on).cast(), 4);
        }
        let octets = size_of_val(&patience);
        let patience = (&raw const patience).cast();
        set(libc::SOL_SOCKET, libc::SO_RCVTIMEO, patience, octets);
        let mut at: libc::sockaddr_ll = std::mem::zeroed();
        at.sll_family = libc::AF_PACKET as u16;
        at.sll_protocol = ALL;
        at.sll_ifindex = index(interface) as i32;
        let octets = size_of_val(&at) as u32;
        succeeded(libc::bind(
            socket.as_raw_fd(),
            (&raw const at).cast(),
            octets,
        ));
        socket
    }
}

/// The next segment of TCP, behind what is said of it. The kernel's own frames (of multicast groups) come between.
fn heard(wire: &OwnedFd) -> Vec<u8> {
    loop {
        let mut frame = vec![0; 70_000];
        // SAFETY: no more is written than there is room for.
        let octets =
            unsafe { libc::recv(wire.as_raw_fd(), frame.as_mut_ptr().cast(), frame.len(), 0) };
        succeeded(if octets < 0 { -1 } else { 0 });
        frame.truncate(octets as usize);
        let protocol = match frame.get(HEADER + 12..HEADER + 14) {
            Some([8, 0]) => frame.get(HEADER + ETHERNET + 9),
            Some([0x86, 0xdd]) => frame.get(HEADER + ETHERNET + 6),
            _ => None,
        };
        if protocol == Some(&6) {
            return frame;
        }
    }
}

fn add(octets: &[u8]) -> u64 {
    octets
        .chunks(2)
        .map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0)))
        .sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

struct Case {
    v6: bool,
    /// Nobody has summed it up yet.
    partial: bool,
    data: usize,
}

impl Case {
    fn l4(&self) -> usize {
        ETHERNET + if self.v6 { 40 } else { 20 }
    }

    /// The sum of the pseudo-header.
    fn pseudo(&self, frame: &[u8]) -> u64 {
        let addresses = if self.v6 { 22..54 } else { 26..34 };
        add(&frame[addresses]) + 6 + (frame.len() - self.l4()) as u64
    }

    fn end(&self, host: u8, port: u16) -> SocketAddr {
        let text = if self.v6 {
            format!("[fd00::{host}]:{port}")
        } else {
            format!("10.9.0.{host}:{port}")
        };
        text.parse().expect("an address")
    }

    /// What is said of a frame, and the frame.
    fn frame(&self, from: SocketAddr, to: SocketAddr) -> Vec<u8> {
        let ethernet = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let ip = match (from, to) {
            (SocketAddr::V4(from), SocketAddr::V4(to)) => {
                ethernet.ipv4(from.ip().octets(), to.ip().octets(), 64)
            }
            (SocketAddr::V6(from), SocketAddr::V6(to)) => {
                ethernet.ipv6(from.ip().octets(), to.ip().octets(), 64)
            }
            _ => panic!("two families"),
        };
        let data: Vec<u8> = (0..self.data).map(|at| (at % 251) as u8).collect();
        let mut frame = Vec::new();
        ip.tcp(from.port(), to.port(), 77, 1000)
            .ack(5)
            .write(&mut frame, &data)
            .expect("a frame");
        let mut said = [0; HEADER];
        let l4 = self.l4();
        if self.partial {
            let sum = fold(self.pseudo(&frame));
            frame[l4 + 16..l4 + 18].copy_from_slice(&sum.to_be_bytes());
            said[0] = NEEDS_SUM;
            said[6..8].copy_from_slice(&(l4 as u16).to_ne_bytes());
            said[8..10].copy_from_slice(&16u16.to_ne_bytes());
        }
        if self.data > 1460 {
            said[1] = if self.v6 { SUPER_V6 } else { SUPER_V4 };
            said[2..4].copy_from_slice(&(l4 as u16 + 20).to_ne_bytes());
            said[4..6].copy_from_slice(&1400u16.to_ne_bytes());
        }
        [&said[..], &frame].concat()
    }

    /// Sums are right, and nothing but the header is another than was sent.
    fn check(&self, sent: &[u8], came: &[u8]) {
        assert_eq!(came.len(), sent.len());
        let l4 = self.l4();
        let is_partial = came[0] & NEEDS_SUM != 0;
        assert_eq!(is_partial, self.partial, "{:?}", &came[..HEADER]);
        assert_eq!(came[1], sent[1], "the kind of super-segment");
        assert_eq!(came[4..6], sent[4..6], "and its parts");
        assert!(came[0] & !(NEEDS_SUM | DATA_VALID) == 0);
        let frame = &came[HEADER..];
        let mut zeroed = frame.to_vec();
        zeroed[l4 + 16..l4 + 18].fill(0);
        let field = u16::from_be_bytes([frame[l4 + 16], frame[l4 + 17]]);
        let pseudo = self.pseudo(frame);
        let right = if self.partial {
            fold(pseudo)
        } else {
            !fold(pseudo + add(&zeroed[l4..]))
        };
        assert_eq!(field, right, "TCP's sum");
        if !self.v6 {
            assert_eq!(fold(add(&frame[ETHERNET..l4])), 0xffff, "IP's sum");
        }
        assert_eq!(
            frame[l4 + 4..l4 + 16],
            sent[HEADER + l4 + 4..HEADER + l4 + 16]
        );
        assert_eq!(frame[l4 + 18..], sent[HEADER + l4 + 18..]);
    }
}

fn passes(case: &Case) {
    let lack = crate::lack();
    if !lack.is_empty() {
        println!("skipped: mirror's eBPF program at a bridge: {lack}");
        return;
    }
    Namespace::new().run(|| {
        for pair in ["a", "b", "c"] {
            ip(&format!("link add {pair}0 type veth peer name {pair}1"));
            ip(&format!("link set {pair}0 up"));
            ip(&format!("link set {pair}1 up"));
        }
        // What comes in by a1 the bridge sends on by c0; copies leave by b0.
        ip("link add br0 type bridge");
        ip("link set br0 up");
        ip("link set a1 master br0");
        ip("link set c0 master br0");
        let mut program = SwitchProgram::load().expect("the kernel takes the program");
        tc::qdisc_add_clsact("a1").expect("clsact");
        let options = TcAttachOptions::Netlink(NlOptions::default());
        let classifier = program.classifier().expect("a program");
        let done = classifier.attach_with_options("a1", TcAttachType::Ingress, options);
        done.expect("attached");
        let (client, first) = (case.end(1, 40_000), case.end(2, 9866));
        let hop = (case.end(2, 41_000), case.end(3, 9866));
        let key = Key {
            flow: FlowKey::new(client, first),
            port: index("a1"),
            marked: 0,
            pad: [0; 3],
        };
        let copy = |position| Copy {
            flow: FlowKey::new(hop.0, hop.1),
            port: index("b0"),
            to: [2, 0, 0, 0, 0, 3],
            position,
            pad: 0,
        };
        let entry = Entry::new(&[copy(0), copy(2)]).expect("few enough");
        let mut entries = program.entries().expect("map");
        entries.insert(key, entry, 0).expect("room");

        let (out, copies, onward) = (wire("a0"), wire("b1"), wire("c1"));
        std::thread::sleep(Duration::from_millis(100)); // until the bridge forwards
        let sent = case.frame(client, first);
        // SAFETY: no more than there is.
        let octets = unsafe { libc::send(out.as_raw_fd(), sent.as_ptr().cast(), sent.len(), 0) };
        succeeded(if octets < 0 { -1 } else { 0 });

        let own = heard(&onward);
        case.check(&sent, &own);
        assert_eq!(
            own[HEADER..],
            sent[HEADER..],
            "the client's own, as it came"
        );
        let transit = heard(&copies);
        case.check(&sent, &transit);
        let mark = |position| [MARK[0], MARK[1], MARK[2], 0, 0, position];
        assert_eq!(transit[HEADER + 6..HEADER + 12], mark(0));
        assert_eq!(transit[HEADER + 12..], sent[HEADER + 12..]);
        let replica = heard(&copies);
        case.check(&sent, &replica);
        assert_eq!(replica[HEADER..HEADER + 6], [2, 0, 0, 0, 0, 3]);
        assert_eq!(replica[HEADER + 6..HEADER + 12], mark(2));
        let wanted = case.frame(hop.0, hop.1);
        let l3 = HEADER + ETHERNET;
        assert_eq!(
            replica[l3..],
            wanted[l3..],
            "as its host would have sent it"
        );
    });
}

#[test]
fn a_frame_whose_sum_is_made() {
    for v6 in [false, true] {
        passes(&Case {
            v6,
            partial: false,
            data: 1001,
        });
    }
}

#[test]
fn a_frame_whose_sum_a_device_is_to_make() {
    for v6 in [false, true] {
        passes(&Case {
            v6,
            partial: true,
            data: 1001,
        });
    }
}

#[test]
fn a_super_segment() {
    for v6 in [false, true] {
        passes(&Case {
            v6,
            partial: true,
            data: 40_000,
        });
    }
}
