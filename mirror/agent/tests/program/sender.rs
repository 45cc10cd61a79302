//! D_{j-1}, for the tests of MR_SND.

use std::os::fd::OwnedFd;

use trunkline_mirror::layout::{Config, Counter, Key, Snd, SndState};

use crate::{
    bench::{Bench, OK, Outcome, ends},
    packets::{ACK, PSH, Segment},
    sockets::{Numbers, established},
};

/// Timestamps: D_j's, and ours.
pub const THEIRS: u32 = 0x0777_0001;
pub const OURS: u32 = 0x0888_0001;

pub struct Sender {
    pub bench: Bench,
    pub key: Key,
    pub v6: bool,
    pub numbers: Numbers,
    socket: Option<OwnedFd>,
}

/// Announced, its socket known: all is sent really as yet.
pub fn sender(bench: Bench, v6: bool, numbers: Numbers) -> Sender {
    let (up, down) = ends(v6);
    let socket = established(up, down, numbers).expect("a socket under repair");
    let key = Key::new(up, down);
    let mut sender = Sender {
        bench,
        key,
        v6,
        numbers,
        socket: Some(socket),
    };
    sender.bench.set_snd(key, Snd::announced(0));
    let ack = sender.data(0, 0).flags(ACK);
    assert_eq!(sender.bench.out_segment(&ack).verdict, OK);
    assert_eq!(sender.state(), SndState::Real as u8);
    sender
}

/// The same, and D_j has said that the mirror reaches it.
pub fn confirmed(bench: Bench, v6: bool, numbers: Numbers) -> Sender {
    let mut sender = sender(bench, v6, numbers);
    let ack = sender.ack(0).step();
    assert_eq!(sender.bench.in_segment(&ack).verdict, OK);
    assert_eq!(sender.state(), SndState::Virtual as u8);
    sender
}

impl Sender {
    /// A retransmission goes however soon it follows on another.
    pub fn no_suppression(&mut self) {
        self.bench.configure(Config {
            repeat_ms: 0,
            ..Config::default()
        });
    }

    /// The stack has sent so much more, unseen, and D_j has acknowledged it.
    pub fn move_on(&mut self, octets: u32) {
        let (up, down) = ends(self.v6);
        self.socket = None;
        let numbers = Numbers {
            snd: self.number(octets),
            ..self.numbers
        };
        self.socket = Some(established(up, down, numbers).expect("a socket under repair"));
    }

    /// The number of the block's octet `at`.
    pub fn number(&self, at: u32) -> u32 {
        self.numbers.snd.wrapping_add(at)
    }

    /// A segment to D_j that starts with the block's octet `at`.
    pub fn data(&self, at: u32, octets: usize) -> Segment {
        let (up, down) = ends(self.v6);
        let segment = Segment::new(up, down)
            .flags(ACK | PSH)
            .seq(self.number(at))
            .ack(self.numbers.rcv);
        // A test run holds no more than a page.
        let segment = if octets > 2_000 {
            segment.claiming(octets)
        } else {
            segment.data(octets)
        };
        Segment {
            ts: Some((OURS, THEIRS)),
            partial: true,
            ..segment
        }
    }

    /// D_j's ACK for all before octet `at`.
    pub fn ack(&self, at: u32) -> Segment {
        let (up, down) = ends(self.v6);
        let segment = Segment::new(down, up)
            .seq(self.numbers.rcv)
            .ack(self.number(at))
            .window(8_000);
        Segment {
            ts: Some((THEIRS, OURS - 500)),
            ..segment
        }
    }

    /// The same, with SACK blocks given by the block's octets.
    pub fn sack(&self, at: u32, blocks: &[(u32, u32)]) -> Segment {
        let blocks: Vec<_> = blocks
            .iter()
            .map(|(l, r)| (self.number(*l), self.number(*r)))
            .collect();
        self.ack(at).sack(&blocks)
    }

    pub fn send(&mut self, at: u32, octets: usize) -> Outcome {
        let segment = self.data(at, octets);
        self.bench.out_segment(&segment)
    }

    pub fn hear(&mut self, segment: Segment) -> Outcome {
        let out = self.bench.in_segment(&segment);
        assert_eq!(out.verdict, OK, "D_j's segments are never dropped");
        assert!(out.seen().whole_sum);
        out
    }

    pub fn flow(&mut self) -> Snd {
        self.bench.snd(self.key)
    }

    pub fn state(&mut self) -> u8 {
        self.flow().state
    }

    pub fn counted(&mut self, counter: Counter) -> u64 {
        self.flow().counters[counter as usize]
    }
}
