//! `trunkline sim …` and `trunkline cache-potential`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::JsonArg;
use crate::units::{parse_duration, parse_size};

/// `trunkline sim …`
#[derive(Debug, Subcommand)]
pub enum SimCommand {
    /// Write blocks to replicas, by name and over TCP, and count the bytes on every link
    Write(SimWriteArgs),
    /// Say how long writes and jobs take, planes side by side, where racks share narrower links
    Time(Box<SimTimeArgs>),
    /// Read blocks by name through content stores of a size, as jobs or a cluster's logs have it, and
    /// count who gave what
    Cache(Box<SimCacheArgs>),
}

/// Which network is simulated.
#[derive(Debug, Clone, Args)]
pub struct NetworkArgs {
    /// fat-tree, two-level, paper-16 (the NDN paper's testbed), or a topology file of the lab
    #[arg(long, value_name = "WHICH", default_value = "fat-tree")]
    pub topology: String,
    /// Hosts of a fat tree or a two-level tree
    #[arg(long, value_name = "N", default_value = "128", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub hosts: u32,
    /// Hosts in each rack of a two-level tree
    #[arg(long, value_name = "N", default_value = "32", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rack: u32,
    /// Rate of every link, where no file says it
    #[arg(long, value_name = "RATE", default_value = "10gbit")]
    pub rate: String,
    /// Bytes that may wait at each end of a link, where no file says it
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "16MiB")]
    pub queue: u64,
    /// One-way delay of every link, where no file says it
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "5us")]
    pub delay: std::time::Duration,
    /// How routers know where names lead
    #[arg(long, value_enum, default_value_t = RoutingArg::Computed)]
    pub routing: RoutingArg,
    /// How payload becomes frames
    #[arg(long, value_enum, default_value_t = FramingArg::Ethernet)]
    pub framing: FramingArg,
    /// What chance begins with; the same seed gives the same bytes
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
}

/// How routers know where names lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RoutingArg {
    /// They have been told shortest ways
    Computed,
    /// They ask all around and remember who answered; for trees
    Learned,
}

/// How payload becomes frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FramingArg {
    /// 1448 bytes under 66 of headers, an acknowledgement for each 64 KiB
    Ethernet,
    /// Frames of 64 KiB, as virtual links with segmentation offload count them
    Offload,
    /// Payload alone
    Bare,
}

/// Which plane carries the segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlaneArg {
    /// First TCP, then names
    Both,
    /// By name
    Named,
    /// Stock TCP
    Tcp,
}

/// Numbers of replicas: one, or `1..10` for each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaSpan {
    /// The least.
    pub first: usize,
    /// The greatest.
    pub last: usize,
}

impl std::str::FromStr for ReplicaSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let number = |text: &str| text.parse::<usize>().ok().filter(|n| (1..=512).contains(n));
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => Ok(ReplicaSpan { first, last }),
            _ => Err(format!(
                "`{text}` is no number of replicas; write 3 or 1..10"
            )),
        }
    }
}

/// `trunkline sim write`
#[derive(Debug, Args)]
pub struct SimWriteArgs {
    /// Which network
    #[command(flatten)]
    pub network: NetworkArgs,
    /// Replicas of each block; 1..10 runs each number
    #[arg(long, value_name = "N", default_value = "3")]
    pub replicas: ReplicaSpan,
    /// Blocks in all
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub blocks: u32,
    /// Bytes of a block
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "128MiB")]
    pub block_size: u64,
    /// Bytes of a block in each segment
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "64512")]
    pub segment_size: u64,
    /// Hosts that write at once, taken by chance; each writes its blocks one after the other
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    pub writers: u32,
    /// The host that writes, instead of one taken by chance
    #[arg(long, value_name = "HOST")]
    pub client: Option<String>,
    /// The replicas' hosts in the order of the pipeline, instead of HDFS's placement
    #[arg(long, value_name = "HOST,…", value_delimiter = ',')]
    pub pipeline: Vec<String>,
    /// Which plane
    #[arg(long, value_enum, default_value_t = PlaneArg::Both)]
    pub plane: PlaneArg,
    /// With --json: every direction of every link that carried anything
    #[arg(long)]
    pub links: bool,
    /// No progress bar
    #[arg(short, long)]
    pub quiet: bool,
    /// In what form
    #[command(flatten)]
    pub json: JsonArg,
}

/// Which plane carries replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TimePlaneArg {
    /// From each replica to the next over TCP
    Tcp,
    /// Pulled by name by all replicas
    Named,
    /// Copied by switches
    Mirror,
}

/// How many times more the hosts of a rack can send than its links upward carry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Oversubscription(pub f64);

impl std::str::FromStr for Oversubscription {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix(":1").unwrap_or(text);
        match number.parse::<f64>() {
            Ok(ratio) if (0.1..=1000.0).contains(&ratio) => Ok(Oversubscription(ratio)),
            _ => Err(format!(
                "`{text}` is no oversubscription between 0.1 and 1000; write 4 or 4:1"
            )),
        }
    }
}

/// `trunkline sim time`
#[derive(Debug, Args)]
pub struct SimTimeArgs {
    /// Which network
    #[command(flatten)]
    pub network: NetworkArgs,
    /// How many times more the hosts of a rack can send than its links upward carry, one after the
    /// other; 1,2,4,8 where no topology file says how fast those are
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub oversubscription: Vec<Oversubscription>,
    /// Hosts that write at once, taken by chance; all that may where not given, 0 for none
    #[arg(long, value_name = "N")]
    pub writers: Option<u32>,
    /// Blocks of each writer, one after the other
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub blocks_each: u32,
    /// Bytes of a block, and of the split of a job's task
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "128MiB")]
    pub block_size: u64,
    /// Replicas of each block
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub replicas: u32,
    /// Replicas stand anywhere, as HDFS places them where no racks are configured
    #[arg(long)]
    pub no_racks: bool,
    /// Jobs at once, each of which reads, shuffles and writes; 0 for none
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub jobs: u32,
    /// Tasks of a job, each on a host of its own
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub tasks: u32,
    /// Which planes
    #[arg(
        long,
        value_enum,
        value_name = "PLANE,…",
        value_delimiter = ',',
        default_value = "tcp,named,mirror"
    )]
    pub plane: Vec<TimePlaneArg>,
    /// Simulate every packet of the writes beside it, over TCP and by name: for small networks
    #[arg(long)]
    pub packets: bool,
    /// No progress bar
    #[arg(short, long)]
    pub quiet: bool,
    /// In what form
    #[command(flatten)]
    pub json: JsonArg,
}

/// Which packets content stores give up first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PolicyArg {
    /// First LRU, then S3-FIFO
    Both,
    /// What was not asked for the longest
    Lru,
    /// First what came once and was not asked for again
    S3Fifo,
}

/// `trunkline sim cache`
#[derive(Debug, Args)]
pub struct SimCacheArgs {
    /// Which network
    #[command(flatten)]
    pub network: NetworkArgs,
    /// DataNode logs whose reads are repeated, instead of those of generated jobs; `-` for standard
    /// input
    #[arg(long, value_name = "LOG", num_args = 1..)]
    pub trace: Vec<PathBuf>,
    /// Which host of the logs is in which rack: lines of an address and a rack. Without it they fill
    /// racks in the order of their addresses
    #[arg(long, value_name = "FILE", requires = "trace")]
    pub racks: Option<PathBuf>,
    /// Data sets that jobs read, the first the most often
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub data_sets: u32,
    /// Blocks of a data set, each the split of a task
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub blocks: u32,
    /// Bytes of a block
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "16MiB")]
    pub block_size: u64,
    /// Replicas of a block
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub replicas: u32,
    /// Jobs, each of which reads a data set
    #[arg(long, value_name = "N", default_value = "40", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub jobs: u32,
    /// Tasks of a job that run at once
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub slots: u32,
    /// Of 100 tasks, how many run beside a replica of their split
    #[arg(long, value_name = "N", default_value = "70", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub local: u8,
    /// Of 100 tasks, how many run elsewhere in a rack with one; the others run anywhere
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub near: u8,
    /// Bytes of what each host of a job fetches first, its archive and configuration
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "1MiB")]
    pub resources: u64,
    /// Content store of each host's forwarder
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "2MiB")]
    pub store_hosts: u64,
    /// Content store of each router on which hosts are
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "64MiB")]
    pub store_racks: u64,
    /// Content store of each router above those
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "64MiB")]
    pub store_core: u64,
    /// Which packets they give up first
    #[arg(long, value_enum, default_value_t = PolicyArg::Both)]
    pub policy: PolicyArg,
    /// No progress bar
    #[arg(short, long)]
    pub quiet: bool,
    /// In what form
    #[command(flatten)]
    pub json: JsonArg,
}

/// `trunkline cache-potential`
#[derive(Debug, Args)]
pub struct CachePotentialArgs {
    /// DataNode logs with client trace lines; `-` for standard input
    #[arg(required = true)]
    pub logs: Vec<PathBuf>,
    /// Which host is in which rack: lines of an address and a rack. Without it all are in one
    #[arg(long, value_name = "FILE")]
    pub racks: Option<PathBuf>,
    /// Where phases begin, as TIME=NAME with TIME as in the logs; what lies before the first is `setup`
    #[arg(long, value_name = "TIME=NAME")]
    pub phase: Vec<String>,
    /// Length of each step over time
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "30s")]
    pub bin: std::time::Duration,
    /// In what form
    #[command(flatten)]
    pub json: JsonArg,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_replicas() {
        let span = |first, last| Ok(ReplicaSpan { first, last });
        assert_eq!("3".parse(), span(3, 3));
        assert_eq!("1..10".parse(), span(1, 10));
        for bad in ["", "0", "..", "3..1", "x", "1..1000"] {
            assert!(bad.parse::<ReplicaSpan>().is_err(), "{bad}");
        }
    }

    #[test]
    fn oversubscriptions() {
        for (text, ratio) in [("1", 1.0), ("8:1", 8.0), ("2.5", 2.5)] {
            assert_eq!(text.parse(), Ok(Oversubscription(ratio)));
        }
        for bad in ["", "0", ":1", "1:4", "-2", "nan", "inf", "1001"] {
            assert!(bad.parse::<Oversubscription>().is_err(), "{bad}");
        }
    }
}
