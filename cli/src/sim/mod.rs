//! `trunkline sim …`: data centres that exist in memory.

mod network;
mod write;

use crate::args::SimCommand;
use crate::error::CliError;

/// Runs the subcommand.
///
/// # Errors
/// A usage error for a network or pipeline that can't be, a failure when blocks can't be written.
pub fn run(command: &SimCommand) -> Result<(), CliError> {
    let SimCommand::Write(args) = command;
    write::run(args)
}
