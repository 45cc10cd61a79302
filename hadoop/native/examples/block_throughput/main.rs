//! How fast blocks go by name, and what that costs each process; all on
//! loopback, each role in a process of its own.
//!
//! `cargo run --release -p trunkline-native --example block_throughput -- [write|read] [GB] [tcp|unix]`
//!
//! - `write`: a client publishes, a router copies, three DataNodes pull and
//!   verify. As in an HDFS write, the client is at most 80 segments ahead of
//!   the slowest DataNode.
//! - `read`: a DataNode serves a finalized replica from its files, a client
//!   reads it twice over a router whose cache holds it.

mod processes;
mod read;
mod write;

use std::error::Error;
use std::io::Read;
use std::sync::Arc;

use ndn_forwarder::{FaceScope, StrategyKind};
use ndn_io::{FaceUri, ListenConfig, Node, NodeConfig};
use ndn_packet::Name;
use trunkline_native::{DEFAULT_SEGMENT_BYTES, NamedNode, NodeSettings};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Interests that a pull keeps out.
const WINDOW: usize = 64;
/// Data bytes of a segment.
const SEGMENT: u64 = DEFAULT_SEGMENT_BYTES as u64;
/// Checksum bytes of a segment.
const SUMS: usize = DEFAULT_SEGMENT_BYTES as usize / 512 * 4;

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["--router", listen, cache] => router(listen, cache.parse()?),
        ["--pull", face, count] => write::datanode(face, count.parse()?),
        ["--serve", face, folder, length] => read::datanode(face, folder, length.parse()?),
        [] | ["write"] => write::client(2.0, "tcp"),
        ["write", gigabytes] => write::client(gigabytes.parse()?, "tcp"),
        ["write", gigabytes, kind] => write::client(gigabytes.parse()?, kind),
        ["read"] => read::client(1.0, "tcp"),
        ["read", gigabytes] => read::client(gigabytes.parse()?, "tcp"),
        ["read", gigabytes, kind] => read::client(gigabytes.parse()?, kind),
        _ => Err("usage: block_throughput [write|read] [GB] [tcp|unix]".into()),
    }
}

fn block() -> Outcome<Name> {
    Ok("/hadoop/blocks/BP-1/1073741825/v=1001".parse()?)
}

fn router(listen: &str, cache_bytes: usize) -> Outcome {
    let mut listener = ListenConfig::new(FaceUri::parse(listen)?);
    listener.link.scope = Some(FaceScope::NonLocal);
    let mut config = NodeConfig {
        listeners: vec![listener],
        ..NodeConfig::default()
    };
    config.forwarder.cs_capacity_bytes = cache_bytes;
    let blocks = "/hadoop/blocks".parse()?;
    config.strategies.push((blocks, StrategyKind::SelfLearning));
    let node = Node::start(config)?;
    println!("{}", node.listening()[0]);
    until_closed()
}

/// Waits until the process that started this one lets it go.
fn until_closed() -> Outcome {
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn open(face: &str, called: &str) -> Outcome<Arc<NamedNode>> {
    let mut settings = NodeSettings::new("/hadoop".parse()?);
    settings.face = Some(face.to_owned());
    settings.name = called.to_owned();
    settings.cs_bytes = 8 << 20;
    Ok(NamedNode::open(settings)?)
}
