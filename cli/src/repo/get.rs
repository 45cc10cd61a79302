//! `trunkline repo get`: a file from any repository, verified by its manifest; an interrupted transfer goes on.

use crate::args::GetFileArgs;
use crate::error::CliError;
use crate::transfer::{self, Job};

/// Runs `trunkline repo get`.
///
/// # Errors
/// Why the file is not here.
pub fn get(args: &GetFileArgs) -> Result<(), CliError> {
    transfer::run(&Job {
        name: &args.name,
        version: args.version,
        output: &args.output,
        resume: true,
        metadata: true,
        window: args.window,
        verify: &args.verify,
        timeout: args.timeout,
        quiet: args.quiet,
        face: &args.face,
        json: args.json.json,
    })
}
