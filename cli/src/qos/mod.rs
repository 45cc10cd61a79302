//! `trunkline qos …`: an OpenFlow controller's policy, queues and loads, by its REST interface.

mod answers;
mod client;
mod policy;
mod top;

pub use client::address;

use crate::args::QosCommand;
use crate::error::CliError;

/// Runs a subcommand.
///
/// # Errors
/// The file or the controller's address is wrong, the controller can't be reached, or it refuses.
pub fn run(command: &QosCommand) -> Result<(), CliError> {
    match command {
        QosCommand::Check(args) => policy::check(args),
        QosCommand::Apply(args) => policy::apply(args),
        QosCommand::Show(args) => policy::show(args),
        QosCommand::Clear(args) => policy::clear(args),
        QosCommand::Top(args) => top::top(args),
    }
}
