//! What can be typed after `trunkline fwd`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use ndn_packet::Name;

use super::{FaceArg, JsonArg};
use crate::units::{parse_duration, parse_size};

/// `trunkline fwd …`
#[derive(Debug, Subcommand)]
pub enum FwdCommand {
    /// Run a forwarder until SIGTERM or SIGINT
    Run {
        /// The configuration file; cli/fwd.sample.toml explains every setting
        #[arg(long, short, value_name = "FILE")]
        config: PathBuf,
        /// Read the configuration, say whether it is right, and end
        #[arg(long)]
        check: bool,
    },
    /// Show what a forwarder has done so far
    Status(AskArgs),
    /// Faces: the forwarder's links
    #[command(subcommand)]
    Face(FaceCommand),
    /// Routes: which face a prefix is reached by
    #[command(subcommand)]
    Route(RouteCommand),
    /// Strategies: how a prefix is forwarded
    #[command(subcommand)]
    Strategy(StrategyCommand),
    /// The content store
    #[command(subcommand)]
    Cs(CsCommand),
    /// List the settings of `fwd run`
    #[command(hide = true)]
    Settings {
        /// As the page docs/settings-fwd.md
        #[arg(long)]
        markdown: bool,
    },
}

/// What every question to a forwarder takes.
#[derive(Debug, Clone, Args)]
pub struct AskArgs {
    /// Which forwarder
    #[command(flatten)]
    pub face: FaceArg,
    /// In what form
    #[command(flatten)]
    pub json: JsonArg,
}

/// `trunkline fwd face …`
#[derive(Debug, Subcommand)]
pub enum FaceCommand {
    /// List the faces with their counters
    List(AskArgs),
    /// Make a face to a remote forwarder
    Create {
        /// Where to, as tcp://host:port, udp://host:port or tls://address:port (whose certificate the
        /// forwarder checks for that address, and shows its own)
        uri: String,
        /// persistent faces go when the link fails, permanent ones are made again
        #[arg(long, value_enum, default_value_t = Persistency::Persistent)]
        persistency: Persistency,
        /// The largest packet the link takes, in bytes (e.g. 1400 or 8KiB)
        #[arg(long, value_name = "SIZE", value_parser = parse_size)]
        mtu: Option<u64>,
        /// Whether packets lost on the link are sent again there (NDNLPv2 reliability; NFD has it, this forwarder does not)
        #[arg(long, value_enum)]
        reliability: Option<Switch>,
        /// Which forwarder, in what form
        #[command(flatten)]
        ask: AskArgs,
    },
    /// Close a face
    Destroy {
        /// Its number or its remote URI
        face_id: String,
        /// Which forwarder, in what form
        #[command(flatten)]
        ask: AskArgs,
    },
}

/// What becomes of a face when its link fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Persistency {
    /// Kept until it fails
    Persistent,
    /// Kept and made again
    Permanent,
}

/// `trunkline fwd route …`
#[derive(Debug, Subcommand)]
pub enum RouteCommand {
    /// List the routes
    List(AskArgs),
    /// Send Interests under a prefix to a face
    Add {
        /// The prefix
        prefix: Name,
        /// The face's number, or its URI (made if there is none)
        nexthop: String,
        /// The lower, the sooner it is tried
        #[arg(long, default_value_t = 0)]
        cost: u64,
        /// Who made the route (255: by hand)
        #[arg(long, default_value_t = 255)]
        origin: u64,
        /// Do not let longer prefixes use it too
        #[arg(long)]
        no_inherit: bool,
        /// Keep shorter prefixes' routes out
        #[arg(long)]
        capture: bool,
        /// Forget it after this time (e.g. 1h)
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        expires: Option<Duration>,
        /// Which forwarder, in what form
        #[command(flatten)]
        ask: AskArgs,
    },
    /// Take a route away
    Remove {
        /// The prefix
        prefix: Name,
        /// The face's number or URI
        nexthop: String,
        /// Who made the route (255: by hand)
        #[arg(long, default_value_t = 255)]
        origin: u64,
        /// Which forwarder, in what form
        #[command(flatten)]
        ask: AskArgs,
    },
}

/// `trunkline fwd strategy …`
#[derive(Debug, Subcommand)]
pub enum StrategyCommand {
    /// List the strategies chosen
    List(AskArgs),
    /// Choose a strategy for a prefix
    Set {
        /// The prefix
        prefix: Name,
        /// best-route, multicast, self-learning, or a strategy's full name
        strategy: String,
        /// Which forwarder, in what form
        #[command(flatten)]
        ask: AskArgs,
    },
    /// Let a prefix follow the next shorter one's choice
    Unset {
        /// The prefix
        prefix: Name,
        /// Which forwarder, in what form
        #[command(flatten)]
        ask: AskArgs,
    },
}

/// `trunkline fwd cs …`
#[derive(Debug, Subcommand)]
pub enum CsCommand {
    /// Show capacity, entries, hits and misses
    Info(AskArgs),
    /// Change capacity and what it does
    Config {
        /// The new capacity: bytes here (e.g. 256MiB), packets in NFD
        #[arg(long, value_name = "SIZE", value_parser = parse_size)]
        capacity: Option<u64>,
        /// Whether to keep Data that passes
        #[arg(long, value_enum)]
        admit: Option<Switch>,
        /// Whether to answer from what is kept
        #[arg(long, value_enum)]
        serve: Option<Switch>,
        /// Which forwarder, in what form
        #[command(flatten)]
        ask: AskArgs,
    },
    /// Drop what is kept under a prefix
    Erase {
        /// The prefix
        prefix: Name,
        /// At most so many packets
        #[arg(long, value_name = "N")]
        limit: Option<u64>,
        /// Which forwarder, in what form
        #[command(flatten)]
        ask: AskArgs,
    },
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Yes
    On,
    /// No
    Off,
}
