//! How the forwarder's speed holds up when its tables grow: the same work with 1,000 and with 1,000,000 entries.
//!
//! Prints one JSON object a line, `{"name","value","unit"}`; `ratio` lines compare the large tables with the small.
//! Run with `cargo run --release -p ndn-forwarder --example table_scale`. Takes some 3 GB of memory.

use bytes::Bytes;
use ndn_forwarder::{Config, FaceId, FaceSpec, Forwarder, Output};
use ndn_packet::{Data, Interest, Name, NetPacket, PitToken, SigningKey};
use std::time::{Duration, Instant};

/// The one of the `trunkline` command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SMALL: usize = 1_000;
const LARGE: usize = 1_000_000;
/// Packets handed over together, as a busy face does.
const BURST: usize = 64;
/// Bursts in a round. A round's figure is that of its median burst: those in which another process ran do not count.
const BURSTS: usize = 4_000;
/// Rounds, on the small and the large tables in turn; each figure is the median of them.
const ROUNDS: usize = 7;

struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below
    }
}

fn prefix(n: usize) -> Name {
    // A tenth of the prefixes is one component shorter, another tenth one longer.
    let uri = match n % 10 {
        0 => format!("/hadoop/blocks/BP-{n}"),
        1 => format!("/hadoop/blocks/BP-{}/blk-{n}/v=1001", n % 16),
        _ => format!("/hadoop/blocks/BP-{}/blk-{n}", n % 16),
    };
    uri.parse().expect("a name")
}

/// A name under the prefix of this number.
fn below_prefix(n: usize) -> Name {
    prefix(n)
        .append_version(1001)
        .append_segment(n as u64 % 2080)
}

/// The segment of this number, in blocks of 1,000.
fn segment(n: usize) -> Name {
    prefix(n / 1000 * 10 + 2)
        .append_version(1001)
        .append_segment(n as u64 % 1000)
}

fn report(name: &str, value: f64, unit: &str) {
    println!("{{\"name\":\"{name}\",\"value\":{value:.3},\"unit\":\"{unit}\"}}");
}

struct Bench {
    forwarder: Forwarder,
    consumer: FaceId,
    producer: FaceId,
}

impl Bench {
    fn new(cs_bytes: usize) -> Self {
        let config = Config {
            cs_capacity_bytes: cs_bytes,
            seed: 42,
            ..Config::default()
        };
        let mut forwarder = Forwarder::new(config);
        let consumer = forwarder.add_face(
            Duration::ZERO,
            FaceSpec::local("fd://1", "unix:///run/nfd/nfd.sock"),
        );
        let producer = forwarder.add_face(
            Duration::ZERO,
            FaceSpec::remote("tcp4://192.0.2.1:6363", "tcp4://192.0.2.2:1"),
        );
        Bench {
            forwarder,
            consumer,
            producer,
        }
    }

    fn with_routes(count: usize, cs_bytes: usize) -> Self {
        let mut bench = Bench::new(cs_bytes);
        for n in 0..count {
            bench
                .forwarder
                .add_route(&prefix(n), bench.producer, 10)
                .expect("room for the route");
        }
        bench
    }

    fn sent(&mut self) -> Vec<NetPacket> {
        std::iter::from_fn(|| self.forwarder.poll_output())
            .filter_map(|output| match output {
                Output::Send { packet, .. } => Some(packet),
                _ => None,
            })
            .collect()
    }

    /// Nanoseconds of an Interest, and of the Data that answers it.
    fn exchange(&mut self, mut name: impl FnMut() -> Name) -> (f64, f64) {
        let (mut interests, mut data) = (Vec::new(), Vec::new());
        let mut nonce = 0u32;
        for round in 0..BURSTS {
            let now = Duration::from_micros(10 * round as u64);
            let mut batch: Vec<NetPacket> = (0..BURST)
                .map(|_| {
                    nonce += 1;
                    let token = PitToken::from_u48(u64::from(nonce));
                    interest(&name(), nonce).with_pit_token(Some(token))
                })
                .collect();
            let start = Instant::now();
            self.forwarder.receive_batch(now, self.consumer, &mut batch);
            let sent = self.sent();
            interests.push(start.elapsed());
            let mut answers: Vec<NetPacket> = sent
                .iter()
                .map(|packet| content(&packet.name().to_name()).with_pit_token(packet.pit_token))
                .collect();
            drop(sent);
            let start = Instant::now();
            self.forwarder
                .receive_batch(now, self.producer, &mut answers);
            let sent = self.sent();
            data.push(start.elapsed());
            drop(sent);
        }
        (per_packet(interests), per_packet(data))
    }

    /// Puts so many Data into the content store, as answers to Interests.
    fn fill(&mut self, count: usize) {
        self.forwarder
            .add_route(&Name::new(), self.producer, 10)
            .expect("room for the route");
        for n in 0..count {
            let name = segment(n);
            self.forwarder
                .receive(Duration::ZERO, self.consumer, interest(&name, n as u32));
            self.forwarder
                .receive(Duration::ZERO, self.producer, content(&name));
            self.sent();
        }
        assert_eq!(self.forwarder.status().cs_entries, count);
    }

    /// Nanoseconds of an Interest that the content store answers.
    fn hits(&mut self, numbers: &mut Numbers, count: usize) -> f64 {
        let times = (0..BURSTS).map(|round| {
            let nonce = (round * BURST) as u32;
            let mut batch: Vec<NetPacket> = (0..BURST)
                .map(|n| interest(&segment(numbers.next(count)), nonce + n as u32))
                .collect();
            let start = Instant::now();
            self.forwarder
                .receive_batch(Duration::ZERO, self.consumer, &mut batch);
            let sent = self.sent();
            let time = start.elapsed();
            assert_eq!(sent.len(), BURST);
            time
        });
        per_packet(times.collect())
    }

    /// Nanoseconds of a search for the route of a name alone.
    fn routes(&self, numbers: &mut Numbers, count: usize) -> f64 {
        search(
            || below_prefix(numbers.next(count)),
            |names| {
                self.forwarder
                    .lookup_routes(names, |_, hops| assert!(!hops.is_empty()))
            },
        )
    }

    /// Nanoseconds of a search for the content of a name alone.
    fn contents(&self, numbers: &mut Numbers, count: usize) -> f64 {
        search(
            || segment(numbers.next(count)),
            |names| assert_eq!(self.forwarder.count_cached(names), names.len()),
        )
    }
}

fn search(mut name: impl FnMut() -> Name, look_up: impl Fn(&[Name])) -> f64 {
    let times = (0..BURSTS).map(|_| {
        let names: Vec<Name> = (0..BURST).map(|_| name()).collect();
        let start = Instant::now();
        look_up(&names);
        start.elapsed()
    });
    per_packet(times.collect())
}

/// Nanoseconds a packet of the median burst.
fn per_packet(bursts: Vec<Duration>) -> f64 {
    median(
        bursts
            .iter()
            .map(|time| time.as_nanos() as f64 / BURST as f64)
            .collect(),
    )
}

fn interest(name: &Name, nonce: u32) -> NetPacket {
    NetPacket::interest(
        Interest::parse(Interest::builder(name).nonce(nonce).build()).expect("an Interest"),
    )
}

fn content(name: &Name) -> NetPacket {
    let wire: Bytes = Data::builder(name)
        .content(&[7; 100])
        .sign(&SigningKey::DigestSha256);
    NetPacket::data(Data::parse(wire).expect("a Data packet"))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Median of rounds that are measured in turn on the small and the large tables, so that both meet the same noise.
fn compare(name: &str, mut small: impl FnMut() -> f64, mut large: impl FnMut() -> f64) {
    let pairs: Vec<(f64, f64)> = (0..ROUNDS).map(|_| (small(), large())).collect();
    let (small, large): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
    let (small, large) = (median(small), median(large));
    report(&format!("{name}.{SMALL}"), small, "ns");
    report(&format!("{name}.{LARGE}"), large, "ns");
    report(&format!("{name}.ratio"), large / small, "ratio");
}

/// The route tables, large and small.
fn measure_fib() {
    let (mut numbers, mut more) = (Numbers(1), Numbers(2));
    let mut small = Bench::with_routes(SMALL, 0);
    let mut large = Bench::with_routes(LARGE, 0);
    let status = large.forwarder.status();
    let bytes = status.fib_bytes as f64 / status.fib_entries as f64;
    report("forwarder.fib.bytes_per_entry", bytes, "bytes");
    compare(
        "forwarder.fib.lookup",
        || small.routes(&mut numbers, SMALL),
        || large.routes(&mut more, LARGE),
    );
    let sum = |(interest, data): (f64, f64)| interest + data;
    compare(
        "forwarder.fib.interest_and_data",
        || sum(small.exchange(|| below_prefix(numbers.next(SMALL)))),
        || sum(large.exchange(|| below_prefix(more.next(LARGE)))),
    );
}

/// The content stores, large and small.
fn measure_cs() {
    let (mut numbers, mut more) = (Numbers(1), Numbers(2));
    let mut small = Bench::new(4 << 30);
    small.fill(SMALL);
    let mut large = Bench::new(4 << 30);
    large.fill(LARGE);
    let status = large.forwarder.status();
    let packet = content(&segment(LARGE / 2)).wire().len();
    let bytes = status.cs_bytes as f64 / status.cs_entries as f64 - packet as f64;
    report(
        "forwarder.cs.bytes_per_entry",
        bytes,
        "bytes beside the packet",
    );
    compare(
        "forwarder.cs.lookup",
        || small.contents(&mut numbers, SMALL),
        || large.contents(&mut more, LARGE),
    );
    compare(
        "forwarder.cs.hit",
        || small.hits(&mut numbers, SMALL),
        || large.hits(&mut more, LARGE),
    );
}

/// Interests for the segments of blocks one after another and the Data that comes back, without and with a content store that keeps it.
fn measure_exchange() {
    for (name, cs_bytes) in [("forwarder", 0), ("forwarder.caching", 64 << 20)] {
        let mut bench = Bench::with_routes(SMALL, cs_bytes);
        bench
            .forwarder
            .add_route(&Name::new(), bench.producer, 10)
            .expect("room for the route");
        let mut next = 0..;
        let rounds: Vec<(f64, f64)> = (0..ROUNDS)
            .map(|_| bench.exchange(|| segment(next.next().unwrap_or(0))))
            .collect();
        let (interests, data): (Vec<f64>, Vec<f64>) = rounds.into_iter().unzip();
        report(&format!("{name}.interest"), median(interests), "ns");
        report(&format!("{name}.data"), median(data), "ns");
    }
}

/// Measures the parts named on the command line (`fib`, `cs`, `exchange`), or all.
fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for (part, measure) in [
        ("fib", measure_fib as fn()),
        ("cs", measure_cs),
        ("exchange", measure_exchange),
    ] {
        if wanted.is_empty() || wanted.iter().any(|w| w == part) {
            measure();
        }
    }
}
