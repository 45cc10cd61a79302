//! One write to three replicas by name: a client publishes, a router copies,
//! three DataNodes pull and verify, each in a process of its own on loopback.
//!
//! Prints the rate and the CPU time of each process:
//! `cargo run --release -p trunkline-native --example throughput -- [GB] [tcp|unix]`
//!
//! As in an HDFS write, the client is at most 80 segments ahead of the slowest
//! DataNode.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use ndn_forwarder::{FaceScope, StrategyKind};
use ndn_io::{FaceUri, ListenConfig, Node, NodeConfig};
use ndn_packet::Name;
use trunkline_native::{
    ChecksumType, DEFAULT_SEGMENT_BYTES, HEADER_LEN, NamedNode, NativeError, NodeSettings,
    PullSettings, SegmentHeader,
};

/// Segments that a client may be ahead of the slowest DataNode, as
/// `dfs.client.write.max-packets-in-flight`.
const AHEAD: u64 = 80;
/// Segments between two acknowledgements of a DataNode; each is a byte.
const ACK_EVERY: u64 = 4;
const WINDOW: usize = 64;
const SUMS: usize = DEFAULT_SEGMENT_BYTES as usize / 512 * 4;

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["--router", listen] => run_router(listen),
        ["--pull", face, count] => run_pull(face, count.parse()?),
        [] => run_client(2.0, "tcp"),
        [gigabytes] => run_client(gigabytes.parse()?, "tcp"),
        [gigabytes, kind] => run_client(gigabytes.parse()?, kind),
        _ => Err("usage: throughput [GB] [tcp|unix]".into()),
    }
}

fn run_router(listen: &str) -> Outcome {
    let mut listener = ListenConfig::new(FaceUri::parse(listen)?);
    listener.link.scope = Some(FaceScope::NonLocal);
    let mut config = NodeConfig {
        listeners: vec![listener],
        ..NodeConfig::default()
    };
    config.forwarder.cs_capacity_bytes = 64 << 20;
    config
        .strategies
        .push(("/hadoop/blocks".parse()?, StrategyKind::SelfLearning));
    let node = Node::start(config)?;
    println!("{}", node.listening()[0]);
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn block() -> Result<Name, Box<dyn Error>> {
    Ok("/hadoop/blocks/BP-1/1073741825/v=1001".parse()?)
}

fn open(face: &str, called: &str) -> Result<Arc<NamedNode>, Box<dyn Error>> {
    let mut settings = NodeSettings::new("/hadoop".parse()?);
    settings.face = Some(face.to_owned());
    settings.name = called.to_owned();
    settings.cs_bytes = 8 << 20;
    Ok(NamedNode::open(settings)?)
}

fn run_pull(face: &str, count: u64) -> Outcome {
    let node = open(face, "pull")?;
    let settings = PullSettings {
        first: 0,
        last: None,
        window: WINDOW,
        live: true,
    };
    let pull = node.open_pull(&block()?, settings)?;
    let mut out = std::io::stdout();
    // What BlockReceiver reads into, in the JVM.
    let mut packet = vec![0; HEADER_LEN + SUMS + DEFAULT_SEGMENT_BYTES as usize];
    for n in 0..count {
        let content = pull
            .take(n, Duration::from_secs(30))?
            .ok_or("a segment did not come")?;
        packet[..content.len()].copy_from_slice(&content);
        if (n + 1) % ACK_EVERY == 0 || n + 1 == count {
            out.write_all(b".")?;
            out.flush()?;
        }
    }
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn spawn(args: &[&str]) -> Result<Child, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    Ok(command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?)
}

/// CPU seconds of a process so far (utime and stime of proc(5), 100 a second).
fn cpu_s(pid: u32) -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields = stat.rsplit_once(')').ok_or("odd /proc/stat")?.1;
    let ticks = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? / 100.0)
}

fn run_client(gigabytes: f64, kind: &str) -> Outcome {
    let segment = u64::from(DEFAULT_SEGMENT_BYTES);
    let count = (gigabytes * 1e9) as u64 / segment;
    let socket =
        std::env::temp_dir().join(format!("trunkline-throughput-{}.sock", std::process::id()));
    let listen = match kind {
        "unix" => format!("unix://{}", socket.display()),
        _ => "tcp://127.0.0.1:0".to_owned(),
    };
    let mut router = spawn(&["--router", &listen])?;
    let mut face = String::new();
    BufReader::new(router.stdout.take().ok_or("no pipe")?).read_line(&mut face)?;
    let face = face.trim();
    let node = open(face, "client")?;
    let producer = node.open_producer(&block()?, 2 * AHEAD as usize)?;

    let acked = Arc::new((Mutex::new([0u64; 3]), Condvar::new()));
    let mut pulls = Vec::new();
    for n in 0..3 {
        let mut pull = spawn(&["--pull", face, &count.to_string()])?;
        let mut acks = pull.stdout.take().ok_or("no pipe")?;
        let acked = acked.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 64];
            while let Ok(got @ 1..) = acks.read(&mut bytes) {
                acked.0.lock().expect("no panic")[n] += got as u64 * ACK_EVERY;
                acked.1.notify_one();
            }
        });
        pulls.push(pull);
    }
    std::thread::sleep(Duration::from_millis(500));

    let pids = [
        std::process::id(),
        router.id(),
        pulls[0].id(),
        pulls[1].id(),
        pulls[2].id(),
    ];
    let before: Vec<f64> = pids
        .iter()
        .map(|&pid| cpu_s(pid))
        .collect::<Result<_, _>>()?;
    let body: Vec<u8> = (0..SUMS as u32 + DEFAULT_SEGMENT_BYTES)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let waits = AtomicU64::new(0);
    let started = Instant::now();
    let behind = |upto: u64| {
        let mut slowest = acked.0.lock().expect("no panic");
        while slowest
            .iter()
            .min()
            .is_some_and(|&least| least + AHEAD <= upto)
        {
            waits.fetch_add(1, Ordering::Relaxed);
            slowest = acked.1.wait(slowest).expect("no panic");
        }
    };
    for n in 0..count {
        behind(n);
        let header = SegmentHeader {
            checksum: ChecksumType::Crc32c,
            bytes_per_checksum: 512,
            data_len: DEFAULT_SEGMENT_BYTES,
            offset_in_block: n * segment,
        };
        producer.publish(n, HEADER_LEN + body.len(), |content| {
            content[..HEADER_LEN].copy_from_slice(&header.encode());
            content[HEADER_LEN..].copy_from_slice(&body);
            Ok::<(), NativeError>(())
        })?;
    }
    behind(count + AHEAD - ACK_EVERY);
    let wall = started.elapsed().as_secs_f64();
    let after: Vec<f64> = pids
        .iter()
        .map(|&pid| cpu_s(pid))
        .collect::<Result<_, _>>()?;

    let bytes = count as f64 * segment as f64;
    println!(
        "{:.2} GB by {kind} in {wall:.2} s: {:.2} Gbit/s",
        bytes / 1e9,
        bytes * 8.0 / wall / 1e9
    );
    let mut total = 0.0;
    for (n, called) in ["client", "router", "datanode 1", "datanode 2", "datanode 3"]
        .iter()
        .enumerate()
    {
        let spent = (after[n] - before[n]) / (bytes / 1e9);
        total += spent;
        println!("{called:>12}: {spent:.2} CPU-s/GB");
    }
    println!(
        "{:>12}: {total:.2} CPU-s/GB, the client waited {} times",
        "all",
        waits.into_inner()
    );
    println!("client: {}", node.status()?);
    for child in pulls.iter_mut().chain([&mut router]) {
        drop(child.stdin.take());
        child.wait()?;
    }
    let _ = std::fs::remove_file(socket);
    Ok(())
}
