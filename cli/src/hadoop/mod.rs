//! `trunkline hadoop …`: what Hadoop's configuration needs.

mod conf;

use crate::args::{ConfPlane, HadoopCommand};
use crate::error::CliError;

/// Runs the subcommand.
///
/// # Errors
/// A usage error for a face URI that is none.
pub fn run(command: HadoopCommand) -> Result<(), CliError> {
    let HadoopCommand::Conf(ConfPlane::Ndn { face, format, json }) = command;
    conf::ndn(
        face.as_deref(),
        if json {
            crate::args::ConfFormat::Json
        } else {
            format
        },
    )
}
