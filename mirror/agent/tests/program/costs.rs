//! What the program costs a segment: nanoseconds by the kernel's own count (BPF_ENABLE_STATS), the median of many runs on
//! frames of each kind. Measured only when asked for: `make bench ONLY=mirror.bpf`.

use aya::sys::{Stats, enable_stats};
use trunkline_mirror::layout::{Config, Rcv, RcvState, Snd, SndState};

use crate::{
    bench::{Bench, ends},
    bench_or_skip,
    packets::{PSH, Segment},
    receive::{Receiver, ZERO, receiver},
    send::MARK,
    sender::{Sender, confirmed},
    sockets::{Numbers, established},
};

const RUNS: u32 = 4_000;
const DATA: usize = 1_448;

#[derive(Clone, Copy)]
enum Hook {
    Ingress,
    Egress,
    /// The program lets it pass at once: what is measured is the measuring.
    Passed,
}

/// What each of the frames took; the median.
fn median(bench: &mut Bench, hook: Hook, frame: impl Fn(u32) -> Vec<u8>) -> u64 {
    let taken = |bench: &mut Bench| {
        let program = match hook {
            Hook::Ingress => bench.program.ingress(),
            Hook::Egress | Hook::Passed => bench.program.egress(),
        };
        let info = program.expect("a program").info().expect("its numbers");
        info.run_time()
    };
    let mut times: Vec<_> = (0..RUNS)
        .map(|n| {
            let frame = frame(n);
            let before = taken(bench);
            match hook {
                Hook::Ingress => bench.ingress(&frame),
                Hook::Egress => bench.egress(&frame),
                Hook::Passed => bench.marked_egress(&frame, MARK),
            };
            (taken(bench) - before).as_nanos() as u64
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn say(name: &str, ns: u64) {
    println!(r#"{{"name": "mirror.bpf.{name}", "value": {ns}}}"#);
}

/// Where frame `n` begins in the stream.
fn at(n: u32) -> u32 {
    n * DATA as u32
}

fn copies(bench: Bench) -> (Bench, u64) {
    let mut r = receiver(bench, false, Numbers::wide());
    let copies: Vec<_> = (0..RUNS).map(|n| r.copy(at(n), DATA).frame()).collect();
    let ns = median(&mut r.bench, Hook::Ingress, |n| copies[n as usize].clone());
    (r.bench, ns)
}

fn acks_with_the_step_bit(bench: Bench) -> (Bench, u64) {
    let mut r: Receiver = receiver(bench, false, Numbers::wide());
    let copy = r.copy(16 << 20, DATA);
    r.bench.in_segment(&copy);
    let acks: Vec<_> = (0..RUNS)
        .map(|n| r.we_send().ack(ZERO + at(n)).frame())
        .collect();
    let ns = median(&mut r.bench, Hook::Egress, |n| acks[n as usize].clone());
    (r.bench, ns)
}

fn held_acks(bench: Bench) -> (Bench, u64) {
    let mut s = confirmed(bench, false, Numbers::wide());
    let acks: Vec<_> = (0..RUNS).map(|n| s.ack(at(n + 1)).step().frame()).collect();
    let ns = median(&mut s.bench, Hook::Ingress, |n| acks[n as usize].clone());
    (s.bench, ns)
}

/// Segments that are not sent: D_j has acknowledged them already if `early`.
fn virtually(bench: Bench, early: bool) -> (Bench, u64) {
    let mut s: Sender = confirmed(bench, false, Numbers::wide());
    if early {
        s.hear(s.ack(at(RUNS)).step());
    }
    let data: Vec<_> = (0..RUNS).map(|n| s.data(at(n), DATA).frame()).collect();
    let ns = median(&mut s.bench, Hook::Egress, |n| data[n as usize].clone());
    (s.bench, ns)
}

/// Whose entry another processor holds: dropped after so long.
fn busy(bench: Bench) -> (Bench, u64) {
    let mut s: Sender = confirmed(bench, false, Numbers::wide());
    let held = Snd {
        lock: 1,
        ..s.flow()
    };
    s.bench.set_snd(s.key, held);
    let data = s.data(0, DATA).frame();
    let ns = median(&mut s.bench, Hook::Egress, |_| data.clone());
    (s.bench, ns)
}

/// To the client, by the window of the next replica.
fn coupled_acks(mut bench: Bench) -> (Bench, u64) {
    let (client, here) = ends(false);
    let _socket = established(here, client, Numbers::wide()).expect("a socket under repair");
    let (mut from, mut to) = ends(false);
    from.set_port(41_000);
    to.set_port(50_020);
    let keys =
        [(client, here), (from, to)].map(|(from, to)| trunkline_mirror::layout::Key::new(from, to));
    let flow = Rcv {
        state: RcvState::Started as u8,
        zero: ZERO,
        scale: 12,
        ..Rcv::announced(0, Some(keys[1]))
    };
    let next = Snd {
        state: SndState::Virtual as u8,
        have_zero: 1,
        confirmed: 1,
        in_step: 1,
        edge: 8 << 20,
        moved_ms: i32::MAX as u32, // it never stands still
        ..Snd::announced(0)
    };
    bench.set_rcv(keys[0], flow);
    bench.set_snd(keys[1], next);
    let ack = |n| {
        let ack = Segment::new(here, client).ack(ZERO + at(n));
        ack.window(60_000).frame()
    };
    let ns = median(&mut bench, Hook::Egress, ack);
    (bench, ns)
}

/// The client's own segments at D_1.
fn first_replicas_data(bench: Bench) -> (Bench, u64) {
    let mut r = receiver(bench, false, Numbers::wide());
    let flow = Rcv {
        ready: 0,
        ..r.bench.rcv(r.key)
    };
    r.bench.set_rcv(r.key, flow);
    let data: Vec<_> = (0..RUNS)
        .map(|n| Segment {
            marked: false,
            ..r.copy(at(n), DATA)
        })
        .collect();
    let ns = median(&mut r.bench, Hook::Ingress, |n| data[n as usize].frame());
    (r.bench, ns)
}

/// Of a connection that nobody has announced: of a data port, and of any other.
fn unannounced(mut bench: Bench, hook: Hook, port: u16) -> (Bench, u64) {
    bench.configure(Config::default().with_ports(&[port]));
    let (client, mut here) = ends(false);
    here.set_port(50_099);
    let socket = match hook {
        Hook::Ingress => established(client, here, Numbers::wide()),
        Hook::Egress | Hook::Passed => established(here, client, Numbers::wide()),
    };
    let _socket = socket.expect("a socket under repair");
    let data = |n| {
        let data = Segment::new(here, client).seq(ZERO + at(n));
        data.flags(PSH | 0x10).data(DATA).frame()
    };
    let ns = median(&mut bench, hook, data);
    (bench, ns)
}

#[test]
#[ignore = "measures, and asserts nothing"]
fn costs() {
    let mut bench = bench_or_skip!();
    // Cases use the same addresses one after another, as they close their sockets.
    let _counting = enable_stats(Stats::RunTime).expect("the kernel counts");
    let mut arp = vec![0; 60];
    arp[12..14].copy_from_slice(&[8, 6]);
    let ns = median(&mut bench, Hook::Passed, |_| arp.clone());
    say("counting_ns", ns);
    let ns = median(&mut bench, Hook::Ingress, |_| arp.clone());
    say("not_tcp_ns", ns);
    let ports = Config::default().with_ports(&[ends(false).1.port()]);
    type Case = fn(Bench) -> (Bench, u64);
    let cases: [(&str, Case); 7] = [
        ("copy", copies),
        ("ack_with_step_bit", acks_with_the_step_bit),
        ("ack_held", held_acks),
        ("sent_virtually", |bench| virtually(bench, false)),
        ("ack_released", |bench| virtually(bench, true)),
        ("ack_with_coupled_window", coupled_acks),
        ("first_replicas_data", first_replicas_data),
    ];
    let (mut sum, count) = (0, cases.len() as u64);
    for (name, case) in cases {
        bench.configure(ports);
        let ns;
        (bench, ns) = case(bench);
        say(&format!("{name}_ns"), ns);
        sum += ns;
    }
    say("ns_per_segment", sum / count);
    let ns;
    (bench, ns) = busy(bench);
    say("busy_ns", ns);
    for (name, hook, port) in [
        ("data_port_in", Hook::Ingress, 50_099),
        ("data_port_out", Hook::Egress, 50_099),
        ("other_port_in", Hook::Ingress, 50_010),
        ("other_port_out", Hook::Egress, 50_010),
    ] {
        let ns;
        (bench, ns) = unannounced(bench, hook, port);
        say(&format!("unmirrored.{name}_ns"), ns);
    }
}
