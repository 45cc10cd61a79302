//! What can be typed after `trunkline qos`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::JsonArg;
use crate::units::parse_duration;

/// `trunkline qos …`
#[derive(Debug, Subcommand)]
pub enum QosCommand {
    /// Check a policy file, against the connected switches too, and change nothing
    Check(PolicyFileArgs),
    /// Put a policy in force on all switches
    Apply(PolicyFileArgs),
    /// Show the policy in force, its queues by category, and how they take effect
    Show(ControllerArgs),
    /// Back to no policy: everything in each port's default queue
    Clear(ControllerArgs),
    /// Watch the busiest links and queues
    Top(TopArgs),
}

/// Which controller, and in what form.
#[derive(Debug, Args)]
pub struct ControllerArgs {
    /// The controller, as http://host:port or https://host:port
    #[arg(
        long,
        value_name = "URL",
        env = "TRUNKLINE_CONTROLLER",
        default_value = "http://127.0.0.1:8181"
    )]
    pub controller: String,
    /// File with the controller's token, where it has http.token_file
    #[arg(long, value_name = "FILE", env = "TRUNKLINE_CONTROLLER_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// PEM file with the authority that signed the controller's certificate [default: those that
    /// browsers trust]
    #[arg(long, value_name = "FILE", env = "TRUNKLINE_CONTROLLER_CA")]
    pub ca: Option<PathBuf>,
    /// In what form
    #[command(flatten)]
    pub json: JsonArg,
}

/// `trunkline qos check` and `trunkline qos apply`
#[derive(Debug, Args)]
pub struct PolicyFileArgs {
    /// The policy file, in YAML; `-` for standard input
    pub file: PathBuf,
    /// Which controller
    #[command(flatten)]
    pub controller: ControllerArgs,
}

/// `trunkline qos top`
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Print once and end
    #[arg(long)]
    pub once: bool,
    /// Time from one look to the next
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "2s")]
    pub interval: Duration,
    /// How many links, and how many queues
    #[arg(long, value_name = "N", default_value = "15", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub rows: u16,
    /// Which controller
    #[command(flatten)]
    pub controller: ControllerArgs,
}
