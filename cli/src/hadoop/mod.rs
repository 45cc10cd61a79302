//! `trunkline hadoop …`: what Hadoop's configuration needs.

mod conf;

use crate::args::{ConfPlane, HadoopCommand};
use crate::error::CliError;

/// Runs the subcommand.
///
/// # Errors
/// A usage error for a face URI, or a controller's URL, that is none.
pub fn run(command: HadoopCommand) -> Result<(), CliError> {
    let HadoopCommand::Conf(plane) = command;
    match plane {
        ConfPlane::Ndn {
            face,
            secure,
            large_segments,
            form,
        } => conf::ndn(face.as_deref(), secure, large_segments, form.chosen()),
        ConfPlane::Ucx { form } => {
            conf::ucx(form.chosen());
            Ok(())
        }
        ConfPlane::Mirror { controller, form } => {
            conf::mirror(controller.as_deref(), form.chosen())
        }
    }
}
