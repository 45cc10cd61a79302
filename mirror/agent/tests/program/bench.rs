//! A place to run the program on frames, by the kernel's BPF_PROG_TEST_RUN.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
};

use aya::programs::{TestRun as _, TestRunOptions};
use trunkline_mirror::{
    Program,
    layout::{Config, Counter, Head, Key, Rcv, Snd, Start},
};

use crate::{
    packets::{Seen, Segment, see},
    pool::{Lent, lend},
    sockets,
};

/// On to the next filter, or the stack: TC_ACT_UNSPEC.
pub const OK: u32 = u32::MAX;
pub const SHOT: u32 = 2;
pub const STOLEN: u32 = 4;
pub const REDIRECT: u32 = 7;

/// Where `mark` and the whole of `struct __sk_buff` are.
const MARK_AT: usize = 8;
const CONTEXT: usize = 192;

/// What the program made of a frame.
#[derive(Debug)]
pub struct Outcome {
    pub verdict: u32,
    pub mark: u32,
    pub frame: Vec<u8>,
}

impl Outcome {
    pub fn seen(&self) -> Seen {
        see(&self.frame)
    }
}

pub struct Bench {
    pub program: Lent,
}

/// Whether programs can be run, and this thread is in a network namespace of its own; where not, the reason is printed.
/// With `TRUNKLINE_MIRROR_MUST` set that is a failure: a guest made for these tests has no reason.
pub fn ready() -> bool {
    // SAFETY: asks who we are.
    let lack = if unsafe { libc::geteuid() } != 0 {
        "not root"
    } else if Program::object().is_none() {
        "built without clang or libbpf's headers"
    } else if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)"
    } else {
        ""
    };
    if !lack.is_empty() {
        assert!(
            std::env::var_os("TRUNKLINE_MIRROR_MUST").is_none(),
            "{lack}"
        );
        println!("skipped: mirror's eBPF program: {lack}");
        return false;
    }
    sockets::own_namespace().expect("a network namespace");
    true
}

/// A bench, where there can be one.
pub fn bench() -> Option<Bench> {
    ready().then(|| Bench { program: lend() })
}

/// The bench, or the end of the test.
#[macro_export]
macro_rules! bench_or_skip {
    () => {
        match $crate::bench::bench() {
            Some(bench) => bench,
            None => return,
        }
    };
}

/// D_{j-1} and D_j.
pub fn ends(v6: bool) -> (SocketAddr, SocketAddr) {
    let (a, b) = if v6 {
        (
            IpAddr::V6(Ipv6Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        )
    } else {
        (
            IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)),
            IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3)),
        )
    };
    (SocketAddr::new(a, 40_000), SocketAddr::new(b, 50_010))
}

impl Bench {
    pub fn ingress(&mut self, frame: &[u8]) -> Outcome {
        run(self.program.ingress().expect("ingress"), frame, 0)
    }

    pub fn marked_ingress(&mut self, frame: &[u8], mark: u32) -> Outcome {
        run(self.program.ingress().expect("ingress"), frame, mark)
    }

    pub fn egress(&mut self, frame: &[u8]) -> Outcome {
        run(self.program.egress().expect("egress"), frame, 0)
    }

    pub fn marked_egress(&mut self, frame: &[u8], mark: u32) -> Outcome {
        run(self.program.egress().expect("egress"), frame, mark)
    }

    pub fn in_segment(&mut self, segment: &Segment) -> Outcome {
        self.ingress(&segment.frame())
    }

    pub fn out_segment(&mut self, segment: &Segment) -> Outcome {
        self.egress(&segment.frame())
    }

    pub fn set_snd(&mut self, key: Key, value: Snd) {
        self.program
            .snd_flows()
            .expect("map")
            .insert(key, value, 0)
            .expect("room");
    }

    pub fn snd(&mut self, key: Key) -> Snd {
        self.program
            .snd_flows()
            .expect("map")
            .get(&key, 0)
            .expect("the flow")
    }

    pub fn set_rcv(&mut self, key: Key, value: Rcv) {
        self.program
            .rcv_flows()
            .expect("map")
            .insert(key, value, 0)
            .expect("room");
    }

    pub fn rcv(&mut self, key: Key) -> Rcv {
        self.program
            .rcv_flows()
            .expect("map")
            .get(&key, 0)
            .expect("the flow")
    }

    pub fn set_head(&mut self, key: Key, zero: u32) {
        self.program
            .heads()
            .expect("map")
            .insert(key, Head { zero }, 0)
            .expect("room");
    }

    pub fn configure(&mut self, config: Config) {
        self.program
            .config()
            .expect("map")
            .set(0, config, 0)
            .expect("set");
    }

    pub fn set_start(&mut self, key: Key, zero: u32, first: u32) {
        let start = Start {
            zero,
            first,
            known: 1,
            pad: 0,
        };
        self.program
            .starts()
            .expect("map")
            .insert(key, start, 0)
            .expect("room");
    }

    /// What is written down of a connection's start: what the response acknowledges, its own number, whether it is known.
    pub fn start(&mut self, key: Key) -> Option<(u32, u32, bool)> {
        let start = self.program.starts().expect("map").get(&key, 0).ok()?;
        Some((start.zero, start.first, start.known == 1))
    }

    pub fn total(&mut self, counter: Counter) -> u64 {
        self.program.totals().expect("totals")[counter as usize]
    }
}

pub fn run(program: &aya::programs::SchedClassifier, frame: &[u8], mark: u32) -> Outcome {
    let mut context = [0; CONTEXT];
    context[MARK_AT..MARK_AT + 4].copy_from_slice(&mark.to_ne_bytes());
    let (mut out, mut context_out) = (vec![0; 8192], [0; CONTEXT]);
    let result = program
        .test_run(TestRunOptions {
            data_in: Some(frame),
            data_out: Some(&mut out),
            ctx_in: Some(&context),
            ctx_out: Some(&mut context_out),
            ..TestRunOptions::new()
        })
        .expect("BPF_PROG_TEST_RUN");
    out.truncate(result.data_size_out as usize);
    let mark = u32::from_ne_bytes(context_out[MARK_AT..MARK_AT + 4].try_into().expect("4"));
    Outcome {
        verdict: result.return_value,
        mark,
        frame: out,
    }
}
