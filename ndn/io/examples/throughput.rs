//! How fast a forwarder carries segments between a producer and a consumer, each a process.
//!
//! `throughput [CASE]...` runs the named cases (all, where none is named) and prints a line of
//! JSON for each: Gbit/s of content, CPU seconds per gigabyte of content in each process, or
//! round trips in microseconds. Digests are made by the producer for each answer and verified
//! by the consumer; with `THROUGHPUT_DIGESTS=0` neither is done, so that the forwarder is what
//! the others wait for. `THROUGHPUT_BYTES` (default 1e9) and `THROUGHPUT_RUNS` (default 5) set
//! size and number of runs; the figures are medians. `THROUGHPUT_WORKERS` (default 1) is the
//! number of the forwarder's workers, `THROUGHPUT_PAIRS` (default 1) that of producers and
//! consumers: Gbit/s are then those of all pairs together.

#[path = "../tests/common/apps.rs"]
mod apps;
#[path = "../tests/common/authority.rs"]
#[allow(dead_code, reason = "shared with the tests of faces")]
mod authority;

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use apps::{NoDigest, Reader, Source};
use authority::Authority;
use bytes::Bytes;
use ndn_endpoint::{Consumer, ConsumerConfig, FixedConfig, VerifyPolicy};
use ndn_io::{
    App, Client, ClientOptions, CredentialFiles, Credentials, FaceUri, LinkOptions, ListenConfig,
    Node, NodeConfig,
};
use ndn_packet::{ComponentBuf, Interest, Name, NetPacket};
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// One thing to measure.
struct Case {
    name: &'static str,
    scheme: &'static str,
    segment_bytes: usize,
    shared_memory: bool,
    window: usize,
}

const CASES: [Case; 11] = [
    case("unix.8000B", "unix", 8000, true, 256),
    case("unix.jumbo", "unix", 64512, true, 64),
    case("unix.8000B.socket", "unix", 8000, false, 256),
    case("unix.jumbo.socket", "unix", 64512, false, 64),
    case("tcp.8000B", "tcp", 8000, false, 256),
    case("tcp.jumbo", "tcp", 64512, false, 64),
    case("tls.8000B", "tls", 8000, false, 256),
    case("tls.jumbo", "tls", 64512, false, 64),
    case("udp.8000B", "udp", 8000, false, 64),
    case("udp.jumbo", "udp", 64512, false, 16),
    case("unix.rtt", "unix", 0, true, 1),
];

const fn case(
    name: &'static str,
    scheme: &'static str,
    segment_bytes: usize,
    shared_memory: bool,
    window: usize,
) -> Case {
    Case {
        name,
        scheme,
        segment_bytes,
        shared_memory,
        window,
    }
}

const PINGS: usize = 20_000;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["forwarder", uri, shm, workers] => forwarder(uri, *shm == "shm", workers.parse()?),
        ["producer", pair, uri, shm, segment] => {
            producer(&prefix(pair), uri, *shm == "shm", segment.parse()?)
        }
        ["consumer", pair, uri, shm, segment, bytes, window] => consumer(
            prefix(pair),
            uri,
            *shm == "shm",
            segment.parse()?,
            bytes.parse()?,
            window.parse()?,
        ),
        names => {
            for case in &CASES {
                if names.is_empty() || names.contains(&case.name) {
                    println!("{}", measure(case)?);
                }
            }
            Ok(())
        }
    }
}

fn setting(name: &str, default: f64) -> f64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Whether digests are made and verified.
fn digests() -> bool {
    setting("THROUGHPUT_DIGESTS", 1.0) != 0.0
}

fn measure(case: &Case) -> Result<Value> {
    let runs = setting("THROUGHPUT_RUNS", 5.0) as usize;
    let mut all = (0..runs)
        .map(|_| run(case))
        .collect::<Result<Vec<Value>>>()?;
    let key = if case.segment_bytes == 0 {
        "p50_us"
    } else {
        "gbit_s"
    };
    all.sort_by(|a, b| {
        a[key]
            .as_f64()
            .unwrap_or(0.0)
            .total_cmp(&b[key].as_f64().unwrap_or(0.0))
    });
    let mut median = all[runs / 2].clone();
    median["case"] = json!(case.name);
    median["runs"] = json!(all.iter().map(|run| run[key].clone()).collect::<Vec<_>>());
    Ok(median)
}

fn run(case: &Case) -> Result<Value> {
    let dir = tempfile::tempdir()?;
    let uri = match case.scheme {
        "unix" => format!("unix://{}/f.sock", dir.path().display()),
        scheme => format!("{scheme}4://127.0.0.1:0"),
    };
    let authority = Authority::new();
    let files = authority.host(&["bench", "127.0.0.1"]);
    let certificates = [files.certificate, files.key, files.ca];
    let shm = if case.shared_memory { "shm" } else { "socket" };
    let segment = case.segment_bytes.to_string();
    let bytes = setting("THROUGHPUT_BYTES", 1e9).to_string();
    let window = case.window.to_string();
    let workers = setting("THROUGHPUT_WORKERS", 1.0).to_string();
    let pairs = setting("THROUGHPUT_PAIRS", 1.0) as usize;
    let pairs: Vec<String> = (0..pairs).map(|pair| pair.to_string()).collect();

    let start = |args: &[&str]| Process::start(args, &certificates);
    let mut forwarder = start(&["forwarder", &uri, shm, &workers])?;
    let uri = forwarder.line()?;
    let mut producers = Vec::new();
    for pair in &pairs {
        let mut producer = start(&["producer", pair, &uri, shm, &segment])?;
        producer.line()?;
        producers.push(producer);
    }
    let cpu = |processes: &[Process]| processes.iter().map(Process::cpu).sum::<Result<f64>>();
    let before = (forwarder.cpu()?, cpu(&producers)?);
    let consumers = pairs
        .iter()
        .map(|pair| start(&["consumer", pair, &uri, shm, &segment, &bytes, &window]));
    let mut consumers = consumers.collect::<Result<Vec<_>>>()?;
    let results = consumers.iter_mut().map(|consumer| {
        let line = consumer.line()?;
        Ok(serde_json::from_str::<Value>(&line)?)
    });
    let results = results.collect::<Result<Vec<_>>>()?;
    let mut result = results[0].clone();
    for key in ["bytes", "gbit_s", "retransmitted"] {
        if result[key].is_number() {
            let all = results.iter().filter_map(|result| result[key].as_f64());
            result[key] = json!(all.sum::<f64>());
        }
    }
    let gigabytes = result["bytes"].as_f64().unwrap_or(0.0) / 1e9;
    if gigabytes > 0.0 {
        let per_gb = |seconds: f64| (seconds / gigabytes * 1000.0).round() / 1000.0;
        result["cpu_s_per_gb"] = json!({
            "forwarder": per_gb(forwarder.cpu()? - before.0),
            "producer": per_gb(cpu(&producers)? - before.1),
            "consumer": per_gb(cpu(&consumers)?),
        });
    }
    result["forwarder_peak_mb"] = json!(forwarder.peak_memory_mb()?);
    Ok(result)
}

/// Where a process finds certificate, key and CA.
const CERTIFICATES: [&str; 3] = ["BENCH_CERTIFICATE", "BENCH_KEY", "BENCH_CA"];

/// Settings of a face to or from `uri`.
fn link(uri: &FaceUri, shared_memory: bool) -> Result<LinkOptions> {
    let mut link = LinkOptions {
        shared_memory,
        ..LinkOptions::default()
    };
    if uri.needs_certificate() {
        let [certificate, key, ca] =
            CERTIFICATES.map(|name| std::env::var(name).map(PathBuf::from));
        link.tls = Some(Credentials::load(CredentialFiles {
            certificate: certificate?,
            key: key?,
            ca: ca?,
        })?);
    }
    Ok(link)
}

/// A process of this program in another role; it ends when this end of its input closes.
struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn start(args: &[&str], certificates: &[PathBuf; 3]) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(args)
            .envs(CERTIFICATES.iter().zip(certificates))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Self { child, output })
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err("a process ended early".into());
        }
        Ok(line.trim().to_owned())
    }

    /// CPU seconds of all its threads so far.
    fn cpu(&self) -> Result<f64> {
        let mut nanoseconds = 0.0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
            nanoseconds += text.split(' ').next().unwrap_or("0").parse::<f64>()?;
        }
        Ok(nanoseconds / 1e9)
    }
}

impl Process {
    fn peak_memory_mb(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib: u64 = peak
            .ok_or("no peak")?
            .trim()
            .trim_end_matches(" kB")
            .parse()?;
        Ok(kib / 1000)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn say(text: &str) {
    println!("{text}");
    let _ = std::io::stdout().flush();
}

fn forwarder(uri: &str, shared_memory: bool, workers: usize) -> Result<()> {
    let mut listener = ListenConfig::new(FaceUri::parse(uri)?);
    listener.link = link(&listener.uri, shared_memory)?;
    listener.link.scope = Some(ndn_forwarder::FaceScope::Local);
    // Over UDP and TLS the producer asks as a neighbour.
    let mut config = NodeConfig {
        listeners: vec![listener],
        ..NodeConfig::default()
    };
    config.forwarder.commands.localhop_rib = Some(ndn_forwarder::mgmt::Trust::Any);
    config.workers.count = workers;
    let node = Node::start(config)?;
    say(&node.listening()[0].to_string());
    wait_for_end()
}

fn wait_for_end() -> Result<()> {
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

/// Under which the producer of a pair has its segments.
fn prefix(pair: &str) -> Name {
    let own = (pair != "0").then_some(pair);
    let names = ["bench"].into_iter().chain(own).map(ComponentBuf::generic);
    Name::from_components(names.chain([ComponentBuf::version(1)]))
}

fn connect(uri: &str, shared_memory: bool) -> Result<Client> {
    let uri = FaceUri::parse(uri)?;
    let options = ClientOptions {
        link: link(&uri, shared_memory)?,
        ..ClientOptions::default()
    };
    let mut client = Client::connect(&uri, &options)?;
    client.settle(Duration::from_secs(1))?;
    Ok(client)
}

fn producer(prefix: &Name, uri: &str, shared_memory: bool, segment_bytes: usize) -> Result<()> {
    let mut client = connect(uri, shared_memory)?;
    let mut source = if digests() {
        Source::new(segment_bytes)
    } else {
        Source::signed(segment_bytes, NoDigest)
    };
    client.register(prefix)?;
    say("ready");
    client.run(&mut source, |_| false)?;
    Ok(())
}

fn consumer(
    prefix: Name,
    uri: &str,
    shared_memory: bool,
    segment_bytes: usize,
    bytes: f64,
    window: usize,
) -> Result<()> {
    let mut client = connect(uri, shared_memory)?;
    let result = if segment_bytes == 0 {
        round_trips(&mut client, prefix)?
    } else {
        let mut config = ConsumerConfig::new(prefix);
        config.last = Some((bytes / segment_bytes as f64) as u64);
        config.congestion = Arc::new(FixedConfig::new(window));
        if !digests() {
            config.verify = VerifyPolicy::None;
        }
        let start = Instant::now();
        let mut reader = Reader::new(Consumer::new(config, client.now()), |_, _| {});
        client.run(&mut reader, |reader| reader.consumer.is_done())?;
        let seconds = start.elapsed().as_secs_f64();
        if let Some(reason) = reader.consumer.failure() {
            return Err(format!("{reason:?}").into());
        }
        let stats = reader.consumer.stats();
        json!({
            "gbit_s": (reader.bytes as f64 * 8.0 / seconds / 1e6).round() / 1e3,
            "bytes": reader.bytes,
            "retransmitted": stats.retransmitted,
        })
    };
    say(&result.to_string());
    wait_for_end()
}

struct Pinger {
    prefix: Name,
    sent: Instant,
    trips: Vec<Duration>,
}

impl Pinger {
    fn ping(&mut self, out: &mut Vec<NetPacket>) {
        let name = self.prefix.append_segment(self.trips.len() as u64);
        let wire: Bytes = Interest::builder(&name)
            .nonce(self.trips.len() as u32)
            .build();
        if let Ok(interest) = Interest::parse(wire) {
            self.sent = Instant::now();
            out.push(NetPacket::interest(interest));
        }
    }
}

impl App for Pinger {
    fn on_packet(&mut self, _: Duration, _: NetPacket, out: &mut Vec<NetPacket>) {
        self.trips.push(self.sent.elapsed());
        if self.trips.len() < PINGS {
            self.ping(out);
        }
    }

    fn on_wake(&mut self, _: Duration, out: &mut Vec<NetPacket>) {
        self.ping(out);
    }
}

fn round_trips(client: &mut Client, prefix: Name) -> Result<Value> {
    let mut pinger = Pinger {
        prefix,
        sent: Instant::now(),
        trips: Vec::with_capacity(PINGS),
    };
    client.run(&mut pinger, |pinger| pinger.trips.len() == PINGS)?;
    pinger.trips.sort();
    let at = |part: f64| pinger.trips[(PINGS as f64 * part) as usize].as_nanos() as f64 / 1000.0;
    Ok(json!({"p50_us": at(0.5), "p99_us": at(0.99), "bytes": 0}))
}
