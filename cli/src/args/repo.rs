//! What can be typed after `trunkline repo`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use ndn_packet::Name;
use trunkline_store::Location;

use super::{FaceArg, JsonArg, TIMEOUT};
use crate::keys::{SignSpec, VerifySpec};
use crate::units::{parse_duration, parse_size};
use crate::window::WindowSpec;

/// `trunkline repo …`
#[derive(Debug, Subcommand)]
pub enum RepoCommand {
    /// Serve a repository by name until SIGTERM or SIGINT
    Run {
        /// The configuration file; cli/repo.sample.toml explains every setting
        #[arg(long, short, value_name = "FILE")]
        config: PathBuf,
        /// Serve the page of the repository and the files behind it by HTTP on this address and port,
        /// as 127.0.0.1:8080
        #[arg(long, value_name = "ADDRESS:PORT")]
        http: Option<SocketAddr>,
        /// Mount it at this folder, too [default: mount.directory of the configuration]
        #[arg(long, value_name = "DIR")]
        mount: Option<PathBuf>,
        /// Publish the files of a Hadoop cluster, too, read-only: hdfs://namenode:port/path
        #[arg(long, value_name = "URL")]
        store: Option<Location>,
        /// Read the configuration, say whether it is right, and end
        #[arg(long)]
        check: bool,
    },
    /// Put files into a repository: on this host, running or not, or elsewhere
    Put(PutFileArgs),
    /// Fetch a file over the network, verified; an interrupted transfer goes on where it stopped
    Get(GetFileArgs),
    /// List what is in a repository: on this host, or in any by name
    Ls(LsArgs),
    /// Remove files from a repository on this host, or a version from one elsewhere
    Rm(RmArgs),
    /// Show what a repository on this host holds and has done
    Status(LocalArgs),
    /// Read everything and compare it with what was put
    Verify(VerifyArgs),
    /// Give back the room of what was removed
    Compact(LocalArgs),
    /// List the settings of `repo run`
    #[command(hide = true)]
    Settings {
        /// As the page docs/settings-repo.md
        #[arg(long)]
        markdown: bool,
    },
}

/// Which repository elsewhere.
#[derive(Debug, Clone, Args)]
pub struct ToArgs {
    /// The repository elsewhere, by its name: it is commanded by the repo protocol
    #[arg(long, value_name = "NAME", requires = "sign")]
    pub to: Option<Name>,
    /// The key that the repository elsewhere trusts: hmac:KEYFILE, ecdsa:KEYFILE or
    /// ed25519:KEYFILE
    #[arg(long, value_name = "HOW", requires = "to")]
    pub sign: Option<SignSpec>,
    /// The public key of that repository's owner (or hmac:KEYFILE, or none): what is not signed by
    /// it is no response [default: the key of --sign]
    #[arg(long, value_name = "HOW", requires = "to")]
    pub verify: Option<VerifySpec>,
    /// Which forwarder, to a repository elsewhere
    #[command(flatten)]
    pub face: FaceArg,
}

/// Which repository on this host.
#[derive(Debug, Clone, Args)]
pub struct LocalArgs {
    /// The configuration file of a repository on this host
    #[arg(long, short, value_name = "FILE", env = "TRUNKLINE_REPO")]
    pub config: Option<PathBuf>,
    /// In what form
    #[command(flatten)]
    pub json: JsonArg,
}

/// `trunkline repo put`
#[derive(Debug, Args)]
pub struct PutFileArgs {
    /// The name to publish under; what is in a folder goes under it by its path
    pub name: Name,
    /// A file, a folder, or `-` for standard input
    pub source: PathBuf,
    /// The version to publish [default: the time now, in microseconds]
    #[arg(long, value_name = "N")]
    pub version: Option<u64>,
    /// Bytes of content a segment [default: repo.segment_size of the configuration]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub segment_size: Option<u64>,
    /// No progress bar
    #[arg(short, long)]
    pub quiet: bool,
    /// Which repository
    #[command(flatten)]
    pub local: LocalArgs,
    /// Or which one elsewhere
    #[command(flatten)]
    pub to: ToArgs,
}

/// `trunkline repo get`
#[derive(Debug, Args)]
pub struct GetFileArgs {
    /// The name of the file
    pub name: Name,
    /// Where to write it; it has this name when it is whole, and .part until then
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// The version [default: the newest]
    #[arg(long, value_name = "N")]
    pub version: Option<u64>,
    /// The repository owner's public key (or hmac:KEYFILE): its signature over the manifest is
    /// verified, and every segment against the manifest. Without it, digests alone are
    #[arg(long, value_name = "HOW", default_value = "digest")]
    pub verify: VerifySpec,
    /// How many Interests are kept on the way: cubic, aimd or fixed:N
    #[arg(long, value_name = "HOW", default_value = "cubic")]
    pub window: WindowSpec,
    /// Give up when nothing has come for so long, or one segment has not though others came
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = TIMEOUT)]
    pub timeout: Duration,
    /// No progress bar
    #[arg(short, long)]
    pub quiet: bool,
    /// Which forwarder
    #[command(flatten)]
    pub face: FaceArg,
    /// In what form
    #[command(flatten)]
    pub json: JsonArg,
}

/// `trunkline repo ls`
#[derive(Debug, Args)]
pub struct LsArgs {
    /// The folder
    #[arg(default_value = "/")]
    pub name: Name,
    /// All versions of the file of this name
    #[arg(long)]
    pub versions: bool,
    /// Ask for the listing by name, as any other host does: of whatever repository has the name
    #[arg(long, conflicts_with = "versions")]
    pub by_name: bool,
    /// The repository owner's public key (or hmac:KEYFILE), by which the listing is verified.
    /// Without it, digests alone are
    #[arg(
        long,
        value_name = "HOW",
        default_value = "digest",
        requires = "by_name"
    )]
    pub verify: VerifySpec,
    /// Which forwarder, by name
    #[command(flatten)]
    pub face: FaceArg,
    /// Which repository
    #[command(flatten)]
    pub local: LocalArgs,
}

/// `trunkline repo rm`
#[derive(Debug, Args)]
pub struct RmArgs {
    /// The file
    pub name: Name,
    /// This version alone [default: all]
    #[arg(long, value_name = "N", conflicts_with_all = ["keep", "recursive"])]
    pub version: Option<u64>,
    /// All versions but so many of the newest
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
    /// Everything under the name, too
    #[arg(short, long)]
    pub recursive: bool,
    /// Which repository
    #[command(flatten)]
    pub local: LocalArgs,
    /// Or which one elsewhere
    #[command(flatten)]
    pub to: ToArgs,
}

/// `trunkline repo verify`
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Only what is under this name
    #[arg(default_value = "/")]
    pub name: Name,
    /// No progress bar
    #[arg(short, long)]
    pub quiet: bool,
    /// Which repository
    #[command(flatten)]
    pub local: LocalArgs,
}
