//! Hostile peers beside honest ones: for 20 seconds they send as fast as they can what costs a router most. Its memory
//! stays under the sum that its configuration says, and no honest ping goes unanswered.
//!
//! One after the other: each needs the machine's processors for itself and its router.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::{Bench, free_port, text, until};
use ndn_packet::{Interest, Name};
use socket2::{Domain, Socket, Type};

/// What a router may take beside what its configuration counts: the program itself, and what the allocator keeps.
const BESIDE: u64 = 64 << 20;
/// How many pings are sent during a flood, and how often: 20 seconds in all.
const PINGS: u64 = 80;
const PING_INTERVAL: &str = "250ms";
/// How long a ping may wait for its answer.
const PING_LIFETIME: &str = "15s";
/// Lines that a router may log in that time, whatever its peers do.
const MOST_LINES: usize = 400;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A router of little memory, so that the bound is met within seconds.
const MEMORY: &str = "
[memory]
capacity = \"288MiB\"
[content_store]
capacity = \"16MiB\"
[pit]
memory = \"32MiB\"
nonces = 65536
[self_learning]
memory = \"8MiB\"
[send_queues]
capacity = \"32MiB\"
[outputs]
capacity = \"16MiB\"
[receive_buffers]
capacity = \"32MiB\"
[reassembly]
capacity = \"8MiB\"
[faces]
capacity = \"32MiB\"
[management]
memory = \"16MiB\"
";

/// A router under attack, with an honest ping server.
struct Target {
    _alone: MutexGuard<'static, ()>,
    bench: Bench,
    address: SocketAddr,
    sum: u64,
}

impl Target {
    fn start(face: &str, more: &str) -> Self {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let listen = format!("[[face]]\nlisten = \"tcp://{address}\"\n{face}\n{MEMORY}{more}");
        let bench = Bench::start(&listen);
        // Its Unix socket, which the bench waits for, is there before the other one; it answers when both are.
        bench.ok(&["fwd", "status"]);
        Target {
            _alone: alone,
            sum: 288 << 20,
            bench,
            address,
        }
    }

    /// Runs `attack` in as many threads as it has parts while an honest peer pings; both begin and end together.
    fn withstands(&mut self, attack: &[&(dyn Fn(&AtomicBool) + Sync)]) {
        let (_server, _) = self.bench.serve(&["pingserver", "/honest"]);
        let over = AtomicBool::new(false);
        let pings = std::thread::scope(|scope| {
            for part in attack {
                let over = &over;
                scope.spawn(move || part(over));
            }
            let arguments = [
                "ping",
                "/honest",
                "--count",
                &PINGS.to_string(),
                "--interval",
                PING_INTERVAL,
                "--timeout",
                PING_LIFETIME,
                "--json",
            ];
            let pings = self.bench.run(&arguments);
            over.store(true, Ordering::Relaxed);
            pings
        });
        let said = text(&pings.stdout);
        let peak = peak_resident(self.bench.forwarder().id());
        println!(
            "at most {} MiB resident, {} MiB configured\n{said}",
            peak >> 20,
            self.sum >> 20
        );
        println!("{}", self.bench.ok(&["fwd", "status"]));
        assert!(
            peak <= self.sum + BESIDE,
            "{peak} bytes resident, {} configured",
            self.sum
        );
        let pings: serde_json::Value =
            serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"));
        assert_eq!(
            (&pings["sent"], &pings["received"]),
            (&PINGS.into(), &PINGS.into()),
            "{pings}"
        );
    }

    /// Faces that the router has now, that of who asks included.
    fn faces(&self) -> usize {
        let faces = self.bench.json(&["fwd", "face", "list", "--json"]);
        faces.as_array().map_or(0, Vec::len)
    }

    /// `count` connections of a stranger.
    fn connections(&self, count: usize) -> Vec<TcpStream> {
        (0..count)
            .map(|_| {
                let stream = TcpStream::connect(self.address).expect("a connection");
                stream.set_nonblocking(true).expect("a socket");
                stream
            })
            .collect()
    }
}

/// The most memory that a process has had, in bytes.
fn peak_resident(process: u32) -> u64 {
    let status =
        std::fs::read_to_string(format!("/proc/{process}/status")).expect("a running process");
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .expect("a figure");
    kib.trim().parse::<u64>().expect("a number") << 10
}

/// Interests of ever new names, as small as they can be: 27 bytes.
struct TinyInterests(u32);

impl TinyInterests {
    fn batch(&mut self, bytes: &mut Vec<u8>) {
        bytes.clear();
        for _ in 0..2048 {
            self.0 = self.0.wrapping_add(1);
            let number = format!("{:013x}", self.0);
            let before = bytes.len();
            bytes.extend_from_slice(&[0x05, 25, 0x07, 17, 0x08, 1, b'x', 0x08, 12]);
            bytes.extend_from_slice(&number.as_bytes()[1..]);
            bytes.extend_from_slice(&[0x0a, 4]);
            bytes.extend_from_slice(&self.0.to_be_bytes());
            assert_eq!(bytes.len() - before, 27);
        }
    }
}

/// Interests of ever new names of 8000 bytes.
struct LongNames(u32);

impl LongNames {
    fn batch(&mut self, bytes: &mut Vec<u8>) {
        bytes.clear();
        for _ in 0..8 {
            self.0 = self.0.wrapping_add(1);
            let mut component = vec![b'x'; 8000];
            component[..4].copy_from_slice(&self.0.to_be_bytes());
            // Self-learning remembers the name without its last component.
            let name: Name = "/long".parse::<Name>().expect("a name");
            let name = name.append_generic(&component).append_segment(1);
            bytes.extend_from_slice(&Interest::builder(&name).nonce(self.0).build());
        }
    }
}

/// Writes batches to all of `streams` until it is over, as fast as each takes them.
fn flood(streams: &[TcpStream], over: &AtomicBool, mut next: impl FnMut(&mut Vec<u8>)) {
    let mut waiting: Vec<(Vec<u8>, usize)> = streams.iter().map(|_| (Vec::new(), 0)).collect();
    while !over.load(Ordering::Relaxed) {
        let mut idle = true;
        for (mut stream, (bytes, at)) in streams.iter().zip(&mut waiting) {
            if *at == bytes.len() {
                next(bytes);
                *at = 0;
            }
            match stream.write(&bytes[*at..]) {
                Ok(n) => {
                    *at += n;
                    idle = false;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("the router closed a face: {error}"),
            }
        }
        if idle {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Reads and drops what comes, from all of `streams`, until it is over.
fn drain(streams: &[TcpStream], over: &AtomicBool) {
    let mut bytes = vec![0; 1 << 18];
    while !over.load(Ordering::Relaxed) {
        let mut idle = true;
        for mut stream in streams {
            idle &= !matches!(stream.read(&mut bytes), Ok(1..));
        }
        if idle {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Four connections ask for what has no route; two of them never read the answers.
#[test]
fn flood_without_a_route() {
    flood_of_refused("");
}

/// The same, where half of the Interests and of their Nacks go from thread to thread.
#[test]
fn flood_of_several_workers() {
    flood_of_refused("[workers]\ncount = 2\n");
}

fn flood_of_refused(more: &str) {
    let mut target = Target::start("", more);
    let streams = target.connections(4);
    target.withstands(&[
        &|over| {
            let mut interests = TinyInterests(0);
            flood(&streams, over, |bytes| interests.batch(bytes));
        },
        &|over| drain(&streams[..2], over),
    ]);
}

/// Forty faces of other hosts, each of which hears what the other 39 ask for. Half of them never read.
#[test]
fn flood_under_self_learning() {
    let mut target = Target::start(
        "scope = \"non-local\"",
        "[[strategy]]\nprefix = \"/\"\nname = \"self-learning\"\n",
    );
    let streams = target.connections(40);
    target.withstands(&[
        &|over| {
            let mut interests = TinyInterests(0);
            flood(&streams, over, |bytes| interests.batch(bytes));
        },
        &|over| drain(&streams[..20], over),
    ]);
}

/// Names of 8000 bytes, each of which is pending and has a prefix that self-learning remembers.
#[test]
fn flood_of_long_names() {
    let mut target = Target::start(
        "scope = \"non-local\"",
        "[[strategy]]\nprefix = \"/\"\nname = \"self-learning\"\n",
    );
    let streams = target.connections(4);
    target.withstands(&[
        &|over| {
            let mut interests = LongNames(0);
            flood(&streams, over, |bytes| interests.batch(bytes));
        },
        &|over| drain(&streams, over),
    ]);
}

/// Peers that come, send Interests, the beginning of another packet or noise, and go: by TCP from many addresses, and
/// by the Unix socket. Nothing is left of them, and the log is not full of them.
#[test]
fn flood_of_connections() {
    let mut target = Target::start("", "");
    let before = target.faces();
    let came = AtomicU64::new(0);
    let (address, socket): (_, PathBuf) = (target.address, target.bench.socket());
    target.withstands(&[
        &|over| {
            let mut interests = TinyInterests(0);
            let (mut bytes, mut turn) = (Vec::new(), 0u32);
            while !over.load(Ordering::Relaxed) {
                turn += 1;
                interests.batch(&mut bytes);
                // Strangers of a whole network; no port waits for its connection's last packets.
                let own = Ipv4Addr::from(0x7f00_0002 + turn % 0xff_0000);
                let stream = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
                stream
                    .bind(&SocketAddr::new(IpAddr::V4(own), 0).into())
                    .expect("an address of this host");
                stream
                    .set_linger((turn % 2 == 0).then_some(Duration::ZERO))
                    .expect("an option");
                stream.connect(&address.into()).expect("a connection");
                let sent = match turn % 3 {
                    0 => &bytes[..27 * 16],
                    1 => &bytes[..27 * 16 + 20],
                    _ => &[0x99; 64][..],
                };
                // The router may have closed the face already.
                let _ = (&stream).write_all(sent);
                came.fetch_add(1, Ordering::Relaxed);
            }
        },
        &|over| {
            let mut interests = TinyInterests(1 << 31);
            let mut bytes = Vec::new();
            while !over.load(Ordering::Relaxed) {
                interests.batch(&mut bytes);
                if let Ok(mut stream) = UnixStream::connect(&socket) {
                    let _ = stream.write_all(&bytes[..27 * 16 + 20]);
                    came.fetch_add(1, Ordering::Relaxed);
                }
            }
        },
    ]);
    let lines = target.bench.log().lines().count();
    let came = came.into_inner();
    println!("{came} connections, {lines} lines logged");
    assert!(came > MOST_LINES as u64, "only {came} connections");
    assert!(lines < MOST_LINES, "{lines} lines for {came} connections");
    until(|| target.faces() == before);
}
