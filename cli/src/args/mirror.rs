//! What can be typed after `trunkline mirror`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::JsonArg;
use crate::units::parse_duration;

/// `trunkline mirror …`
#[derive(Debug, Subcommand)]
pub enum MirrorCommand {
    /// Have this host's DataNodes mirrored until SIGTERM or SIGINT; the programs stay after that
    Run {
        /// The configuration file; cli/mirror.sample.toml explains every setting
        #[arg(long, short, value_name = "FILE")]
        config: PathBuf,
        /// Take the programs of another release off at once: connections that they have may break
        #[arg(long)]
        replace: bool,
        /// Read the configuration, say whether it is right, and end
        #[arg(long)]
        check: bool,
    },
    /// Show this host's mirrored connections, whether an agent runs or not
    Status(PinArgs),
    /// Take the programs off this host and put it back as it was
    Off(OffArgs),
    /// Check what this host needs, and change it only if told to
    Doctor(DoctorArgs),
    /// Mirror at a Linux bridge, in the place of an OpenFlow switch
    #[command(subcommand)]
    Switch(SwitchCommand),
    /// List the settings of `mirror run`
    #[command(hide = true)]
    Settings {
        /// As the page docs/settings-mirror.md
        #[arg(long)]
        markdown: bool,
    },
}

/// Where the programs are pinned, and in what form.
#[derive(Debug, Args)]
pub struct PinArgs {
    /// The agent's configuration file, for its agent.pin
    #[arg(long, short, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The folder of the pins [default: that of --config, else /sys/fs/bpf/trunkline-mirror]
    #[arg(long, value_name = "DIR")]
    pub pin: Option<PathBuf>,
    /// In what form
    #[command(flatten)]
    pub json: JsonArg,
}

/// `trunkline mirror off`
#[derive(Debug, Args)]
pub struct OffArgs {
    /// How long to wait until connections can do without the programs
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    pub wait: Duration,
    /// After that, take them off all the same: connections that rely on copies may break
    #[arg(long)]
    pub force: bool,
    /// Which pins
    #[command(flatten)]
    pub pins: PinArgs,
}

/// `trunkline mirror doctor`
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Make the changes that can be made here, and say what they were
    #[arg(long)]
    pub fix: bool,
    /// An interface to check; may be given again [default: those of --config, else all that are up]
    #[arg(long, value_name = "NAME")]
    pub interface: Vec<String>,
    /// Which pins
    #[command(flatten)]
    pub pins: PinArgs,
}

/// `trunkline mirror switch …`
#[derive(Debug, Subcommand)]
pub enum SwitchCommand {
    /// Have a bridge copy segments as the controller says, until SIGTERM or SIGINT; it copies on after that
    Run {
        /// The configuration file, with a table [switch]; cli/mirror.sample.toml explains every setting
        #[arg(long, short, value_name = "FILE")]
        config: PathBuf,
        /// Read the configuration, say whether it is right, and end
        #[arg(long)]
        check: bool,
    },
    /// Show what a bridge copies, whether its agent runs or not
    Status(SwitchPinArgs),
    /// Take the program off a bridge and put its host back as it was
    Off(SwitchOffArgs),
}

/// Where a bridge's program is pinned, and in what form.
#[derive(Debug, Args)]
pub struct SwitchPinArgs {
    /// The agent's configuration file, for its switch.pin
    #[arg(long, short, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The folder of the pins [default: that of --config, else /sys/fs/bpf/trunkline-mirror-switch]
    #[arg(long, value_name = "DIR")]
    pub pin: Option<PathBuf>,
    /// In what form
    #[command(flatten)]
    pub json: JsonArg,
}

/// `trunkline mirror switch off`
#[derive(Debug, Args)]
pub struct SwitchOffArgs {
    /// How long to wait for the end of a running agent
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "15s")]
    pub wait: Duration,
    /// Which pins
    #[command(flatten)]
    pub pins: SwitchPinArgs,
}
