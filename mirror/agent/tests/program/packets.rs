//! Frames for the program, and what it made of them.

use std::net::{IpAddr, SocketAddr};

use etherparse::{
    Ipv4HeaderSlice, Ipv6HeaderSlice, PacketBuilder, TcpHeader, TcpHeaderSlice, TcpOptionElement,
};
use trunkline_mirror::layout::MARK;

pub const FIN: u8 = 0x01;
pub const SYN: u8 = 0x02;
pub const RST: u8 = 0x04;
pub const PSH: u8 = 0x08;
pub const ACK: u8 = 0x10;
pub const URG: u8 = 0x20;
pub const ECE: u8 = 0x40;
pub const CWR: u8 = 0x80;
const STEP: u8 = 0x08;
const ETHERNET: usize = 14;

/// A TCP segment; what is not said is an ACK without data.
#[derive(Clone, Debug)]
pub struct Segment {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub seq: u32,
    pub ack: u32,
    pub window: u16,
    pub flags: u8,
    /// The step bit.
    pub step: bool,
    pub ts: Option<(u32, u32)>,
    pub sack: Vec<(u32, u32)>,
    /// Options besides, as they are.
    pub other_options: Vec<u8>,
    /// IPv4's header has options.
    pub ip_options: bool,
    pub payload: Vec<u8>,
    /// The frame bears the mark of a mirrored copy.
    pub marked: bool,
    /// IP says that there is this much payload: a super-segment, of which a test run can hold no more than a page.
    pub claimed: Option<usize>,
    /// The switch marked it as having met congestion.
    pub congested: bool,
    /// As it leaves the stack: only the pseudo-header is summed up.
    pub partial: bool,
}

impl Segment {
    pub fn new(from: SocketAddr, to: SocketAddr) -> Self {
        Self {
            from,
            to,
            seq: 0,
            ack: 0,
            window: 1000,
            flags: ACK,
            step: false,
            ts: Some((0x1111_1111, 0x2222_2222)),
            sack: Vec::new(),
            other_options: Vec::new(),
            ip_options: false,
            payload: Vec::new(),
            marked: false,
            claimed: None,
            congested: false,
            partial: false,
        }
    }

    pub fn seq(mut self, seq: u32) -> Self {
        self.seq = seq;
        self
    }

    pub fn ack(mut self, ack: u32) -> Self {
        self.ack = ack;
        self
    }

    pub fn flags(mut self, flags: u8) -> Self {
        self.flags = flags;
        self
    }

    pub fn data(mut self, octets: usize) -> Self {
        self.payload = (0..octets).map(|at| at as u8).collect();
        self
    }

    pub fn claiming(mut self, octets: usize) -> Self {
        self = self.data(1000);
        self.claimed = Some(octets);
        self
    }

    pub fn step(mut self) -> Self {
        self.step = true;
        self
    }

    pub fn sack(mut self, blocks: &[(u32, u32)]) -> Self {
        self.sack = blocks.to_vec();
        self
    }

    pub fn window(mut self, window: u16) -> Self {
        self.window = window;
        self
    }

    pub fn marked(mut self) -> Self {
        self.marked = true;
        self
    }

    fn options(&self) -> Vec<u8> {
        let mut options = Vec::new();
        if let Some((value, echo)) = self.ts {
            options.extend([1, 1, 8, 10]);
            options.extend(value.to_be_bytes());
            options.extend(echo.to_be_bytes());
        }
        if !self.sack.is_empty() {
            options.extend([1, 1, 5, 2 + 8 * self.sack.len() as u8]);
            for (left, right) in &self.sack {
                options.extend(left.to_be_bytes());
                options.extend(right.to_be_bytes());
            }
        }
        options.extend(&self.other_options);
        options
    }

    pub fn frame(&self) -> Vec<u8> {
        let source = if self.marked {
            [MARK[0], MARK[1], MARK[2], 9, 9, 9]
        } else {
            [2, 0, 0, 0, 0, 1]
        };
        let ethernet = PacketBuilder::ethernet2(source, [2, 0, 0, 0, 0, 2]);
        let ip = match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => ethernet.ipv4(from.octets(), to.octets(), 64),
            (IpAddr::V6(from), IpAddr::V6(to)) => ethernet.ipv6(from.octets(), to.octets(), 64),
            _ => panic!("addresses of two families"),
        };
        let mut tcp = TcpHeader::new(self.from.port(), self.to.port(), self.seq, self.window);
        tcp.acknowledgment_number = self.ack;
        tcp.set_options_raw(&self.options()).expect("options fit");
        let octets = tcp.header_len();
        let mut frame = Vec::new();
        ip.tcp_header(tcp)
            .write(&mut frame, &self.payload)
            .expect("a frame");
        if self.ip_options {
            frame[ETHERNET] += 1;
            frame.splice(ETHERNET + 20..ETHERNET + 20, [1, 1, 1, 0]);
        }
        let l4 = start_of_tcp(&frame);
        frame[l4 + 13] = self.flags;
        if self.step {
            frame[l4 + 12] |= STEP;
        }
        let v6 = self.from.is_ipv6();
        let length = octets + self.claimed.unwrap_or(self.payload.len());
        if v6 {
            frame[ETHERNET + 4..ETHERNET + 6].copy_from_slice(&(length as u16).to_be_bytes());
            frame[ETHERNET + 1] |= if self.congested { 0x30 } else { 0 };
        } else {
            frame[ETHERNET + 2..ETHERNET + 4]
                .copy_from_slice(&((l4 - ETHERNET + length) as u16).to_be_bytes());
            frame[ETHERNET + 1] |= if self.congested { 3 } else { 0 };
            frame[ETHERNET + 10..ETHERNET + 12].fill(0);
            let sum = !fold(add(&frame[ETHERNET..l4]));
            frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&sum.to_be_bytes());
        }
        frame[l4 + 16..l4 + 18].fill(0);
        let pseudo = pseudo(&frame, length);
        let sum = if self.partial {
            fold(pseudo)
        } else {
            !fold(pseudo + add(&frame[l4..]))
        };
        frame[l4 + 16..l4 + 18].copy_from_slice(&sum.to_be_bytes());
        frame
    }
}

fn start_of_tcp(frame: &[u8]) -> usize {
    ETHERNET
        + if frame[12..14] == [0x86, 0xdd] {
            40
        } else {
            usize::from(frame[ETHERNET] & 15) * 4
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

fn pseudo(frame: &[u8], tcp: usize) -> u64 {
    let addresses = if frame[12..14] == [0x86, 0xdd] {
        &frame[22..54]
    } else {
        &frame[26..34]
    };
    add(addresses) + 6 + tcp as u64
}

/// What a frame says.
#[derive(Debug)]
pub struct Seen {
    pub ethernet: ([u8; 6], [u8; 6]),
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub seq: u32,
    pub ack: u32,
    pub window: u16,
    pub flags: u8,
    pub step: bool,
    pub ts: Option<(u32, u32)>,
    pub sack: Vec<(u32, u32)>,
    /// Options but timestamps, SACK and NOP.
    pub others: usize,
    pub payload: Vec<u8>,
    /// The frame's own length, which may be more than IP says.
    pub octets: usize,
    pub congested: bool,
    /// IP's sum is right, where it has one.
    pub ip_sum: bool,
    /// TCP's sum is right.
    pub whole_sum: bool,
    /// TCP's sum is right for one that a device will complete.
    pub partial_sum: bool,
}

pub fn see(frame: &[u8]) -> Seen {
    let l4 = start_of_tcp(frame);
    let (from, to, length, ip_sum, congested);
    if frame[12..14] == [0x86, 0xdd] {
        let ip = Ipv6HeaderSlice::from_slice(&frame[ETHERNET..]).expect("IPv6");
        (from, to) = (IpAddr::from(ip.source()), IpAddr::from(ip.destination()));
        length = usize::from(ip.payload_length());
        ip_sum = true;
        congested = ip.traffic_class() & 3 == 3;
    } else {
        let ip = Ipv4HeaderSlice::from_slice(&frame[ETHERNET..]).expect("IPv4");
        (from, to) = (IpAddr::from(ip.source()), IpAddr::from(ip.destination()));
        length = usize::from(ip.total_len()) - usize::from(ip.ihl()) * 4;
        ip_sum = fold(add(&frame[ETHERNET..l4])) == 0xffff;
        congested = frame[ETHERNET + 1] & 3 == 3;
    }
    let tcp = TcpHeaderSlice::from_slice(&frame[l4..]).expect("TCP");
    let (mut ts, mut sack, mut others) = (None, Vec::new(), 0);
    for option in tcp.options_iterator() {
        match option.expect("well-formed options") {
            TcpOptionElement::Timestamp(value, echo) => ts = Some((value, echo)),
            TcpOptionElement::SelectiveAcknowledgement(first, more) => {
                sack = std::iter::once(first)
                    .chain(more.into_iter().flatten())
                    .collect();
            }
            TcpOptionElement::Noop => {}
            _ => others += 1,
        }
    }
    let end = (l4 + length).min(frame.len());
    let mut zeroed = frame[l4..end].to_vec();
    let field = u16::from_be_bytes([zeroed[16], zeroed[17]]);
    zeroed[16..18].fill(0);
    let pseudo = pseudo(frame, length);
    Seen {
        ethernet: (
            frame[6..12].try_into().expect("6"),
            frame[..6].try_into().expect("6"),
        ),
        from: SocketAddr::new(from, tcp.source_port()),
        to: SocketAddr::new(to, tcp.destination_port()),
        seq: tcp.sequence_number(),
        ack: tcp.acknowledgment_number(),
        window: tcp.window_size(),
        flags: frame[l4 + 13],
        step: frame[l4 + 12] & STEP != 0,
        ts,
        sack,
        others,
        payload: frame[l4 + usize::from(tcp.data_offset()) * 4..end].to_vec(),
        octets: frame.len(),
        congested,
        ip_sum,
        whole_sum: field == !fold(pseudo + add(&zeroed)),
        partial_sum: field == fold(pseudo),
    }
}
