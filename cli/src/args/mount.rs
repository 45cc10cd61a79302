//! What can be typed after `trunkline mount`.

use std::path::PathBuf;

use clap::Args;
use ndn_packet::Name;

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
}
