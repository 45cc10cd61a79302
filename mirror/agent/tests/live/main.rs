//! The program on NICs, under live connections: a client and three replicas in network namespaces, at a switch that copies
//! the client's segments. Each octet is compared at each replica. Needs root, iproute2 and a kernel with BTF; without, each
//! test says so and passes.

mod bridges;
mod chain;
mod hosts;
mod offloads;
mod switch;

use std::{
    io::ErrorKind,
    net::{Ipv6Addr, SocketAddr},
    path::Path,
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError, atomic::Ordering::Relaxed},
    time::Duration,
};

use aya::programs::{
    TcAttachType,
    tc::{self, NlOptions, TcAttachOptions},
};
use trunkline_mirror::{
    Program,
    layout::{Config, Counter, Head, Key, Rcv, RcvState, Reason, Snd},
};

use crate::{
    bridges::Bridges,
    chain::{Chain, PORT, until},
    hosts::{Host, Namespace, hosts},
    switch::{Control, Copies, Switch},
};

/// When something that never comes is given up: later than anything comes on a machine that has other work.
pub const GIVE_UP: Duration = Duration::from_secs(120);
const MIB: u64 = 1 << 20;
const REPLICAS: usize = 3;
/// The entry must be new, as the agent's are.
const NEW: u64 = 1;

/// These tests keep all processors busy; one at a time.
static BUSY: Mutex<()> = Mutex::new(());

struct Rig {
    /// Those of D_1, D_2, …, attached to their NICs.
    programs: Vec<Program>,
    chain: Option<Chain>,
    switch: Middle,
    hosts: Vec<Host>,
    _busy: MutexGuard<'static, ()>,
}

/// What makes the copies.
enum Middle {
    Little(Switch),
    Bridges(Bridges),
}

/// Why there can be no rig here; empty where there can.
fn lack() -> &'static str {
    // SAFETY: asks who we are.
    if unsafe { libc::geteuid() } != 0 {
        "not root"
    } else if Program::object().is_none() {
        "built without clang or libbpf's headers"
    } else if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)"
    } else if Command::new("ip").arg("-V").output().is_err() {
        "no ip command (iproute2)"
    } else {
        ""
    }
}

/// A stream that flows by stock TCP alone as yet: programs are attached, and nothing is announced to them.
fn rig(v6: bool) -> Option<Rig> {
    rig_at(v6, || {
        let middle = Namespace::new();
        let hosts = hosts(&middle, 1 + REPLICAS as u8);
        let switch = Switch::start(&middle, hosts.len() as u8);
        (Middle::Little(switch), hosts)
    })
}

/// The same, at two Linux bridges.
fn bridged_rig() -> Option<Rig> {
    rig_at(false, || {
        let (bridges, hosts) = bridges::two(1 + REPLICAS as u8);
        (Middle::Bridges(bridges), hosts)
    })
}

fn rig_at(v6: bool, make: impl FnOnce() -> (Middle, Vec<Host>)) -> Option<Rig> {
    let lack = lack();
    if !lack.is_empty() {
        println!("skipped: mirror's eBPF program on NICs: {lack}");
        return None;
    }
    let busy = BUSY.lock().unwrap_or_else(PoisonError::into_inner);
    let (switch, hosts) = make();
    for host in &hosts[1..] {
        let clsact = || tc::qdisc_add_clsact("eth0");
        host.namespace.run(clsact).expect("clsact");
    }
    let programs = hosts[1..].iter().map(attached).collect();
    let chain = Some(Chain::start(&hosts, v6));
    Some(Rig {
        programs,
        chain,
        switch,
        hosts,
        _busy: busy,
    })
}

fn attached(host: &Host) -> Program {
    let mut program = Program::load().expect("the kernel takes the program");
    let config = Config::default().with_ports(&[PORT]);
    let mut map = program.config().expect("map");
    map.set(0, config, 0).expect("set");
    host.namespace.run(|| {
        // Not tcx, which takes STOLEN for "go on".
        let clsact = || TcAttachOptions::Netlink(NlOptions::default());
        let ingress = program.ingress().expect("a program");
        let done = ingress.attach_with_options("eth0", TcAttachType::Ingress, clsact());
        done.expect("attached");
        let egress = program.egress().expect("a program");
        let done = egress.attach_with_options("eth0", TcAttachType::Egress, clsact());
        done.expect("attached");
    });
    program
}

impl Drop for Rig {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.explain();
        }
        if let Some(chain) = &self.chain {
            chain.stop();
        }
        // Where they are attached: interfaces are known by numbers, which mean others elsewhere.
        for (program, host) in self.programs.drain(..).zip(&self.hosts[1..]) {
            host.namespace.run(|| drop(program));
        }
    }
}

impl Rig {
    /// What a test may change at the little switch.
    fn control(&self) -> &Control {
        match &self.switch {
            Middle::Little(switch) => &switch.control,
            Middle::Bridges(_) => panic!("bridges lose nothing"),
        }
    }

    fn chain(&self) -> &Chain {
        self.chain.as_ref().expect("not ended")
    }

    /// The connection to D_`position`.
    fn key(&self, position: usize) -> Key {
        self.chain().keys[position - 1]
    }

    /// Lets the stream go on until all replicas have so much more of it.
    fn flow(&self, octets: u64) {
        let goal = self.chain().everywhere() + octets;
        until("the stream goes on", || self.chain().everywhere() >= goal);
    }

    /// The same, until more than half of such a part of the stream is sent virtually: where a busy machine delays copies,
    /// octets go for real meanwhile.
    fn flow_mostly_virtually(&mut self, octets: u64) {
        let sent = |rig: &mut Self| -> Vec<u64> {
            let of = |at| rig.total(at, Counter::VirtualBytes);
            (1..REPLICAS).map(of).collect()
        };
        until("more than half is sent virtually", || {
            let before = sent(self);
            self.flow(octets);
            let after = sent(self);
            let mut parts = after.iter().zip(before);
            parts.all(|(after, before)| after - before > octets / 2)
        });
    }

    fn announce_receiving(&mut self, position: usize) {
        let next = (position < REPLICAS).then(|| self.key(position + 1));
        let (key, entry) = (self.key(position), Rcv::announced(0, next));
        let mut flows = self.programs[position - 1].rcv_flows().expect("map");
        flows.insert(key, entry, NEW).expect("room");
    }

    /// At D_`position`, which sends to the next.
    fn announce_sending(&mut self, position: usize) {
        let key = self.key(position + 1);
        let mut flows = self.programs[position - 1].snd_flows().expect("map");
        flows.insert(key, Snd::announced(0), NEW).expect("room");
    }

    /// Brings the start of the stream, as D_1's program knows it, to all others.
    fn tell_head(&mut self) {
        until("D_1 knows the start", || {
            self.rcv(1).state == RcvState::Started as u8
        });
        let zero = self.rcv(1).zero;
        for position in 2..=REPLICAS {
            let key = self.key(position);
            let mut heads = self.programs[position - 1].heads().expect("map");
            heads.insert(key, Head { zero }, NEW).expect("room");
        }
    }

    /// Has the switch copy what the client sends to all replicas but the first.
    fn copy(&mut self) {
        let keys: Vec<Key> = (1..=REPLICAS).map(|position| self.key(position)).collect();
        if let Middle::Bridges(bridges) = &mut self.switch {
            return bridges.copy(&keys);
        }
        let ends = |key: Key| {
            let end = |address: [u8; 16], port: [u8; 2]| {
                let address = Ipv6Addr::from(address).to_canonical();
                SocketAddr::new(address, u16::from_be_bytes(port))
            };
            (
                end(key.source, key.source_port),
                end(key.target, key.target_port),
            )
        };
        let (client, first) = ends(self.key(1));
        let copies = (2..=REPLICAS).map(|position| {
            let (source, target) = ends(self.key(position));
            Copies {
                client,
                first,
                source,
                target,
                position: position as u8,
            }
        });
        *self.control().copies.lock().expect("not poisoned") = copies.collect();
    }

    fn announce_all(&mut self) {
        for position in 1..=REPLICAS {
            self.announce_receiving(position);
        }
        for position in 1..REPLICAS {
            self.announce_sending(position);
        }
        self.tell_head();
    }

    fn rcv(&mut self, position: usize) -> Rcv {
        let key = self.key(position);
        let flows = self.programs[position - 1].rcv_flows().expect("map");
        flows.get(&key, 0).expect("the flow")
    }

    fn snd(&mut self, position: usize) -> Snd {
        let key = self.key(position + 1);
        let flows = self.programs[position - 1].snd_flows().expect("map");
        flows.get(&key, 0).expect("the flow")
    }

    /// A sum over all flows of D_`position`.
    fn total(&mut self, position: usize, counter: Counter) -> u64 {
        self.programs[position - 1].totals().expect("totals")[counter as usize]
    }

    /// All but the last replica send virtually.
    fn mirrored(&mut self) {
        for position in 1..REPLICAS {
            until("the mirror is taken for certain", || {
                self.total(position, Counter::Virtual) > 0
            });
        }
    }

    /// Ends the stream, and sees that it came whole; prints what the programs counted.
    fn end(&mut self) {
        let ends = self.chain.take().expect("not ended").end();
        let octets = ends
            .into_iter()
            .enumerate()
            .map(|(host, octets)| octets.unwrap_or_else(|error| panic!("host {host}: {error}")));
        let octets: Vec<_> = octets.collect();
        self.print(octets[0]);
        assert!(
            octets.iter().all(|count| *count == octets[0]),
            "not all have all: {octets:?}"
        );
    }

    fn print(&mut self, octets: u64) {
        let (copied, lost) = match &mut self.switch {
            Middle::Little(switch) => (
                switch.control.copied.load(Relaxed),
                switch.control.lost.load(Relaxed),
            ),
            Middle::Bridges(bridges) => bridges.copied(),
        };
        println!("{} MiB; copies sent {copied}, lost {lost}", octets / MIB);
        for (at, program) in self.programs.iter_mut().enumerate() {
            let totals = program.totals().expect("totals");
            let fallbacks = program.fallbacks().expect("fallbacks");
            println!("D_{}: {totals:?} {fallbacks:?}", at + 1);
        }
    }

    /// For who reads of a test that has failed.
    fn explain(&mut self) {
        let sent = self
            .chain
            .as_ref()
            .map_or(0, |chain| chain.progress[0].load(Relaxed));
        self.print(sent);
        if let Some(chain) = &self.chain {
            println!("octets had: {:?}", chain.progress);
        }
        for (at, program) in self.programs.iter_mut().enumerate() {
            for (_, flow) in program.rcv_flows().expect("map").iter().flatten() {
                let (state, ready, reason) = (flow.state, flow.ready, flow.reason);
                println!(
                    "D_{} receives: state {state}, ready {ready}, reason {reason}",
                    at + 1
                );
            }
            for (_, flow) in program.snd_flows().expect("map").iter().flatten() {
                let (state, confirmed, in_step) = (flow.state, flow.confirmed, flow.in_step);
                let of = |number: u32| number.wrapping_sub(flow.acked) as i32;
                println!(
                    "D_{} sends: state {state}, confirmed {confirmed}, in step {in_step}, reason {}; from the ACK on: \
                     sent {}, edge {}",
                    at + 1,
                    flow.reason,
                    of(flow.sent),
                    of(flow.edge)
                );
            }
        }
    }

    fn no_fallback(&mut self) {
        for program in &mut self.programs {
            let fallbacks = program.fallbacks().expect("fallbacks");
            assert!(fallbacks.iter().all(|flows| *flows == 0), "{fallbacks:?}");
        }
    }
}

macro_rules! rig_or_skip {
    () => {
        rig_or_skip!(rig(false))
    };
    ($rig:expr) => {
        match $rig {
            Some(rig) => rig,
            None => return,
        }
    };
}

/// Copies come before any entry is there, entries one by one, those by which early ACKs are held last of all; and nothing
/// stands still meanwhile.
#[test]
fn entries_are_made_in_mid_stream() {
    let mut rig = rig_or_skip!();
    rig.flow(2 * MIB);
    rig.copy();
    until("copies come", || rig.total(3, Counter::MirrorUnknown) > 0);
    for position in [3, 2, 1] {
        rig.announce_receiving(position);
    }
    rig.tell_head();
    rig.flow(2 * MIB);
    for position in [2, 3] {
        until("copies come to entries", || {
            rig.total(position, Counter::MirrorUnarmed) > 0
        });
        assert_eq!(rig.total(position, Counter::Mirrored), 0, "nobody is ready");
    }
    rig.announce_sending(2);
    rig.flow(2 * MIB);
    assert_eq!(rig.total(2, Counter::Mirrored), 0, "D_1 is not ready");
    rig.announce_sending(1);
    rig.mirrored();
    rig.flow_mostly_virtually(24 * MIB);
    for position in 1..REPLICAS {
        assert_eq!(rig.snd(position).have_zero, 1, "windows are coupled");
    }
    rig.end();
    rig.no_fallback();
}

#[test]
fn one_of_a_hundred_copies_is_lost() {
    let mut rig = rig_or_skip!();
    rig.control().lose_copies.store(10, Relaxed);
    rig.copy();
    rig.announce_all();
    rig.mirrored();
    rig.flow(24 * MIB);
    rig.end();
    rig.no_fallback();
    for position in 1..REPLICAS {
        let really =
            rig.total(position, Counter::RealHole) + rig.total(position, Counter::Retransmitted);
        assert!(really > 0, "what was lost came from D_{position}");
    }
}

#[test]
fn one_of_two_hundred_frames_of_any_kind_is_lost() {
    lossy(false);
}

#[test]
fn one_of_two_hundred_frames_of_any_kind_is_lost_over_ipv6() {
    lossy(true);
}

fn lossy(v6: bool) {
    let mut rig = rig_or_skip!(rig(v6));
    rig.control().lose_copies.store(5, Relaxed);
    rig.control().lose_others.store(5, Relaxed);
    rig.copy();
    rig.announce_all();
    rig.mirrored();
    rig.flow(8 * MIB);
    rig.end();
    rig.no_fallback();
}

/// While copies still come: what follows has to be taken from D_1 alone, by a stack that knows nothing of the mirror.
#[test]
fn a_program_is_switched_off_and_taken_away() {
    let mut rig = rig_or_skip!();
    rig.copy();
    rig.announce_all();
    rig.mirrored();
    rig.flow(4 * MIB);
    let off = Config {
        off: 1,
        ..Config::default()
    };
    let mut config = rig.programs[0].config().expect("map");
    config.set(0, off, 0).expect("set");
    until("D_2 is not ahead of D_1", || {
        let flow = rig.snd(1);
        flow.in_step == 0 && flow.acked.wrapping_sub(flow.sent) as i32 <= 0
    });
    assert_eq!(rig.rcv(2).reason, Reason::None as u8);
    let first = rig.programs.remove(0);
    rig.hosts[1].namespace.run(|| drop(first));
    rig.programs.insert(0, attached(&rig.hosts[1]));
    rig.flow(8 * MIB);
    assert_eq!(rig.rcv(2).ready, 0);
    rig.end();
}

/// D_2 is ahead of it by the mirror, and would take what its stack says at the end for old.
#[test]
fn a_replica_that_dies_takes_the_next_ones_along() {
    let mut rig = rig_or_skip!();
    rig.copy();
    rig.announce_all();
    rig.mirrored();
    rig.flow(4 * MIB);
    let chain = rig.chain.take().expect("not ended");
    chain.kill_the_first();
    for (host, end) in chain.end().into_iter().enumerate() {
        let waited = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
        match end {
            Ok(_) => assert_eq!(host, REPLICAS, "only the last may have seen an orderly end"),
            Err(error) => assert!(!waited.contains(&error.kind()), "host {host}: {error}"),
        }
    }
}

/// The client is ahead of D_2 by all that D_1 has not sent yet, when the mirror begins.
#[test]
fn uplinks_are_slow() {
    let mut rig = rig_or_skip!();
    for host in &rig.hosts[1..REPLICAS] {
        host.slow_down("50mbit");
    }
    rig.flow(2 * MIB);
    rig.copy();
    rig.announce_all();
    rig.mirrored();
    rig.flow_mostly_virtually(24 * MIB);
    rig.end();
    rig.no_fallback();
}

/// With super-segments, whose sums nobody has made yet: what leaves a bridge is as it would be without one.
#[test]
fn bridges_make_the_copies() {
    let mut rig = rig_or_skip!(bridged_rig());
    rig.flow(2 * MIB);
    rig.copy();
    rig.announce_all();
    rig.mirrored();
    rig.flow_mostly_virtually(24 * MIB);
    rig.end();
    rig.no_fallback();
}
