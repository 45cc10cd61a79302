//! What can be typed after `trunkline mount`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ndn_packet::Name;

use super::{FaceArg, TIMEOUT};
use crate::keys::VerifySpec;
use crate::units::{parse_duration, parse_size};

/// `trunkline mount`
#[derive(Debug, Args)]
pub struct MountArgs {
    /// The folder at which it is mounted; there, and empty
    pub directory: PathBuf,
    /// The configuration file of a repository on this host; one that runs is mounted by
    /// `repo run --mount`
    #[arg(long, short, value_name = "FILE", env = "TRUNKLINE_REPO")]
    pub config: Option<PathBuf>,
    /// Mount what is under this name [default: mount.prefix of the configuration, else all]
    #[arg(long, value_name = "NAME")]
    pub prefix: Option<Name>,
    /// Versions kept of each file that is written [default: mount.versions of the configuration,
    /// else all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub versions: Option<u64>,
    /// Nothing can be changed
    #[arg(long)]
    pub read_only: bool,
    /// Other users may use it, as modes say
    #[arg(long)]
    pub allow_other: bool,
    /// Mount what is under this name of a repository anywhere on the network, to be read
    #[arg(long, value_name = "NAME", conflicts_with_all = ["prefix", "versions"])]
    pub remote: Option<Name>,
    /// How the network is read
    #[command(flatten)]
    pub network: NetworkReadArgs,
}

/// How a repository elsewhere is read.
#[derive(Debug, Args)]
pub struct NetworkReadArgs {
    /// The repository owner's public key (or hmac:KEYFILE): its signature over listings and
    /// manifests is verified, and every segment against the manifest. Without it, digests alone are
    #[arg(
        long,
        value_name = "HOW",
        default_value = "digest",
        requires = "remote"
    )]
    pub verify: VerifySpec,
    /// A call fails when nothing has come for so long
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = TIMEOUT,
          requires = "remote")]
    pub timeout: Duration,
    /// Most bytes of verified segments that are kept in memory
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "64MiB",
          requires = "remote")]
    pub cache: u64,
    /// How long names, listings and attributes are believed before they are asked for again
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "1s",
          requires = "remote")]
    pub remember: Duration,
    /// Which forwarder
    #[command(flatten)]
    pub face: FaceArg,
}
