//! `trunkline sim …`: data centres that exist in memory.

mod cache;
mod network;
mod recorded;
mod time;
mod write;

use crate::args::SimCommand;
use crate::error::CliError;

/// Runs the subcommand.
///
/// # Errors
/// A usage error for a network or pipeline that can't be, a failure when blocks can't be written or read.
pub fn run(command: &SimCommand) -> Result<(), CliError> {
    match command {
        SimCommand::Write(args) => write::run(args),
        SimCommand::Time(args) => time::run(args),
        SimCommand::Cache(args) => cache::run(args),
    }
}
