//! `trunkline hadoop …`: what Hadoop's configuration needs.

mod conf;

use crate::args::{ConfPlane, HadoopCommand};
use crate::error::CliError;

/// Runs the subcommand.
///
/// # Errors
/// A usage error for a face URI that is none.
pub fn run(command: HadoopCommand) -> Result<(), CliError> {
    let HadoopCommand::Conf(plane) = command;
    match plane {
        ConfPlane::Ndn { face, form } => conf::ndn(face.as_deref(), form.chosen()),
        ConfPlane::Ucx { form } => {
            conf::ucx(form.chosen());
            Ok(())
        }
    }
}
