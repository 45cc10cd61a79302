//! The command tree: what can be typed after `trunkline`, and nothing of what it does.

mod fwd;
mod keygen;
mod mirror;
mod mount;
mod qos;
mod repo;
mod sim;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use ndn_packet::Name;

use crate::keys::{SignSpec, VerifySpec};
use crate::units::{parse_duration, parse_size};
use crate::window::WindowSpec;

pub use fwd::{
    AskArgs, CsCommand, FaceCommand, FwdCommand, Persistency, RouteCommand, StrategyCommand, Switch,
};

pub use keygen::{CaArgs, HostArgs, KeyFileArgs, KeyKind, KeygenCommand};

pub use mirror::{
    DoctorArgs, MirrorCommand, OffArgs, PinArgs, SwitchCommand, SwitchOffArgs, SwitchPinArgs,
};

pub use mount::MountArgs;

pub use qos::{ControllerArgs, PolicyFileArgs, QosCommand, TopArgs};

pub use repo::{
    GetFileArgs, LocalArgs, LsArgs, PutFileArgs, RepoCommand, RmArgs, ToArgs, VerifyArgs,
};

pub use sim::{
    CachePotentialArgs, FramingArg, NetworkArgs, PlaneArg, PolicyArg, RoutingArg, SimCacheArgs,
    SimCommand, SimTimeArgs, SimWriteArgs, TimePlaneArg,
};

/// How long nothing may come of what is asked for, where nothing else is said.
const TIMEOUT: &str = "15s";

/// The same, for who has no option for it.
pub fn timeout() -> Duration {
    parse_duration(TIMEOUT).expect("a duration")
}

/// Named data under Hadoop: forward, publish and fetch it.
#[derive(Debug, Parser)]
#[command(
    name = "trunkline",
    version,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub struct Cli {
    /// Say more on standard error: -v for what happens, -vv and -vvv for each step
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// One subcommand a room.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a forwarder, or ask and steer one that runs (this one or NFD)
    #[command(subcommand)]
    Fwd(FwdCommand),
    /// Keep content in a repository and serve it by name
    #[command(subcommand)]
    Repo(RepoCommand),
    /// Named data as files, until stopped: a repository on this host, or one elsewhere to be read
    Mount(MountArgs),
    /// Publish a file under a name and serve it until stopped
    Put(PutArgs),
    /// Fetch what is published under a name
    Get(GetArgs),
    /// Measure the round trip to a ping server
    Ping(PingArgs),
    /// Answer pings under a prefix until stopped
    Pingserver(PingServerArgs),
    /// Queues for Hadoop's traffic in OpenFlow switches: check, apply and watch a policy
    #[command(subcommand)]
    Qos(QosCommand),
    /// Mirrored replication at a DataNode's host: its eBPF program and the agent that keeps it
    #[command(subcommand)]
    Mirror(MirrorCommand),
    /// Settings for Hadoop
    #[command(subcommand)]
    Hadoop(HadoopCommand),
    /// Make a key for --sign and --verify, a CA for TLS, or a host's certificate
    #[command(subcommand)]
    Keygen(KeygenCommand),
    /// Simulate data centres of up to thousands of hosts
    #[command(subcommand)]
    Sim(SimCommand),
    /// How many of a cluster's block reads caches could have served, from its DataNodes' logs
    CachePotential(CachePotentialArgs),
}

/// How a client finds its forwarder.
#[derive(Debug, Clone, Default, Args)]
pub struct FaceArg {
    /// The forwarder to use, as unix:///path, tcp://host:port, tls://host:port or udp://host:port
    /// [default: what TRUNKLINE_FACE or NFD's client.conf says, else unix:///run/nfd/nfd.sock]
    #[arg(long, value_name = "URI")]
    pub face: Option<String>,
    /// How commands to it are signed: digest, hmac:FILE, ecdsa:FILE or ed25519:FILE [default: digest]
    #[arg(long, value_name = "KEY", env = "TRUNKLINE_COMMAND_KEY")]
    pub command_key: Option<SignSpec>,
    /// What a tls:// face needs
    #[command(flatten)]
    pub tls: TlsArgs,
}

/// Certificate, key and CA of a tls:// face.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "With a tls:// face")]
pub struct TlsArgs {
    /// This host's certificate, in PEM
    #[arg(
        long = "tls-certificate",
        value_name = "FILE",
        env = "TRUNKLINE_TLS_CERTIFICATE"
    )]
    pub certificate: Option<PathBuf>,
    /// Its private key, which others must not be able to read
    #[arg(long = "tls-key", value_name = "FILE", env = "TRUNKLINE_TLS_KEY")]
    pub key: Option<PathBuf>,
    /// The certificates of the cluster's CA
    #[arg(long = "tls-ca", value_name = "FILE", env = "TRUNKLINE_TLS_CA")]
    pub ca: Option<PathBuf>,
}

/// How facts are printed.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct JsonArg {
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// `trunkline put`
#[derive(Debug, Args)]
pub struct PutArgs {
    /// The name to publish under; a version and segment numbers are added
    pub name: Name,
    /// The file; `-` or nothing for standard input
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// Bytes of content a segment; up to 8000 pass everywhere, up to 65000 between Trunkline's
    /// own forwarders
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "8000")]
    pub segment_size: u64,
    /// How long caches may call a segment fresh
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10s")]
    pub freshness: Duration,
    /// How to sign: digest, hmac:KEYFILE, ecdsa:KEYFILE or ed25519:KEYFILE
    #[arg(long, value_name = "HOW", default_value = "digest")]
    pub sign: SignSpec,
    /// The version to publish [default: the time now, in microseconds]
    #[arg(long, value_name = "N")]
    pub version: Option<u64>,
    /// Which forwarder
    #[command(flatten)]
    pub face: FaceArg,
    /// In what form
    #[command(flatten)]
    pub json: JsonArg,
}

/// `trunkline get`
#[derive(Debug, Args)]
pub struct GetArgs {
    /// The name of the object
    pub name: Name,
    /// Where to write it (whole or not at all); `-` for standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Take the name as it is, without asking for its newest version
    #[arg(long)]
    pub no_metadata: bool,
    /// How many Interests are kept on the way: cubic, aimd or fixed:N
    #[arg(long, value_name = "HOW", default_value = "cubic")]
    pub window: WindowSpec,
    /// How to verify: digest (digests are checked, other signatures refused), hmac:KEYFILE,
    /// a public key's file, or none
    #[arg(long, value_name = "HOW", default_value = "digest")]
    pub verify: VerifySpec,
    /// Give up when nothing has come for so long, or one segment has not though others came
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = TIMEOUT)]
    pub timeout: Duration,
    /// No progress bar
    #[arg(short, long)]
    pub quiet: bool,
    /// Which forwarder
    #[command(flatten)]
    pub face: FaceArg,
    /// In what form (standard error when the object goes to standard output)
    #[command(flatten)]
    pub json: JsonArg,
}

/// `trunkline ping`
#[derive(Debug, Args)]
pub struct PingArgs {
    /// The server's prefix
    pub prefix: Name,
    /// How many to send [default: until stopped]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Time from one to the next
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration, default_value = "1s")]
    pub interval: Duration,
    /// How long to wait for an answer
    #[arg(short = 'o', long, value_name = "TIME", value_parser = parse_duration, default_value = "4s")]
    pub timeout: Duration,
    /// The number of the first [default: a random one]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(..1 << 62))]
    pub start: Option<u64>,
    /// Take answers from caches too
    #[arg(long)]
    pub cached: bool,
    /// Only the statistics
    #[arg(short, long)]
    pub quiet: bool,
    /// Which forwarder
    #[command(flatten)]
    pub face: FaceArg,
    /// In what form
    #[command(flatten)]
    pub json: JsonArg,
}

/// `trunkline pingserver`
#[derive(Debug, Args)]
pub struct PingServerArgs {
    /// The prefix to answer under
    pub prefix: Name,
    /// How long caches may call an answer fresh
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "1s")]
    pub freshness: Duration,
    /// Bytes of content in an answer
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "0")]
    pub size: u64,
    /// Which forwarder
    #[command(flatten)]
    pub face: FaceArg,
    /// In what form
    #[command(flatten)]
    pub json: JsonArg,
}

/// `trunkline hadoop …`
#[derive(Debug, Subcommand)]
pub enum HadoopCommand {
    /// Print the properties to paste into Hadoop's configuration
    #[command(subcommand)]
    Conf(ConfPlane),
}

/// `trunkline hadoop conf …`
#[derive(Debug, Subcommand)]
pub enum ConfPlane {
    /// For HDFS over named data
    Ndn {
        /// The router that every daemon and client connects to
        #[arg(long, value_name = "URI")]
        face: Option<String>,
        /// For a cluster with SASL or dfs.encrypt.data.transfer
        #[arg(long)]
        secure: bool,
        /// A segment for each HDFS packet: where each host has a router of its own, and links are of 10 Gbit/s or more
        #[arg(long)]
        large_segments: bool,
        /// In what form
        #[command(flatten)]
        form: ConfForm,
    },
    /// For HDFS over RDMA, or shared memory, by UCX
    Ucx {
        /// In what form
        #[command(flatten)]
        form: ConfForm,
    },
    /// For HDFS over TCP whose segments switches copy to all replicas
    Mirror {
        /// The controller's REST interface, which every DataNode reports to
        #[arg(long, value_name = "URL")]
        controller: Option<String>,
        /// In what form
        #[command(flatten)]
        form: ConfForm,
    },
}

/// `--format` and `--json` of `trunkline hadoop conf`.
#[derive(Debug, Clone, Copy, Args)]
pub struct ConfForm {
    /// In what form: xml for core-site.xml and hdfs-site.xml, properties for -D and Spark, json by file
    #[arg(long, value_enum, default_value_t = ConfFormat::Xml)]
    format: ConfFormat,
    /// The same as --format json
    #[arg(long)]
    json: bool,
}

impl ConfForm {
    /// The form asked for.
    #[must_use]
    pub const fn chosen(self) -> ConfFormat {
        if self.json {
            ConfFormat::Json
        } else {
            self.format
        }
    }
}

/// Forms of a list of Hadoop properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ConfFormat {
    /// `<property>` elements
    Xml,
    /// `key=value` lines
    Properties,
    /// One object
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn tree_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn reads_a_get() {
        let cli = Cli::parse_from([
            "trunkline",
            "get",
            "/a/b",
            "-o",
            "f",
            "--window",
            "fixed:64",
        ]);
        let Command::Get(get) = cli.command else {
            panic!("not a get")
        };
        assert_eq!(get.name, "/a/b".parse::<Name>().expect("a name"));
        assert_eq!(get.window, WindowSpec::Fixed(64));
    }
}
