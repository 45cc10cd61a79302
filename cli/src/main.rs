//! The `trunkline` command: named data forwarded, published, fetched and steered from a shell.
//!
//! One module a subcommand; [`args`] has the command tree, [`error`] the exit statuses.

mod args;
mod error;
mod forwarder;
mod fuse;
mod fwd;
mod hadoop;
mod keygen;
mod keys;
mod logging;
mod mirror;
mod mount;
mod nfd;
mod output;
mod ping;
mod potential;
mod qos;
mod repo;
mod serve;
mod settings;
mod sim;
mod tls;
mod transfer;
mod units;
mod window;

use std::process::ExitCode;

use args::{Cli, Command, FwdCommand, MirrorCommand, RepoCommand, SwitchCommand};
use clap::Parser;
use error::{CliError, Exit};

/// A forwarder's tables hold millions of small packets; this keeps those of an age together.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Who closes a pipe knows that it did.
            if error.exit != Exit::BrokenPipe {
                eprintln!("trunkline: {error}");
            }
            error.code()
        }
    }
}

fn run(cli: Cli) -> Result<(), CliError> {
    let verbose = cli.verbose;
    // A daemon's log is set by its configuration, which is yet to be read.
    if !matches!(
        cli.command,
        Command::Fwd(FwdCommand::Run { .. })
            | Command::Repo(RepoCommand::Run { .. })
            | Command::Mirror(
                MirrorCommand::Run { .. } | MirrorCommand::Switch(SwitchCommand::Run { .. })
            )
            | Command::Mount(_)
    ) {
        logging::start(verbose, "warn");
    }
    match cli.command {
        Command::Fwd(command) => fwd::run(command, verbose),
        Command::Repo(command) => repo::run(command, verbose),
        Command::Mount(args) => mount::run(&args, verbose),
        Command::Put(args) => transfer::put(&args),
        Command::Get(args) => transfer::get(&args),
        Command::Ping(args) => ping::ping(&args),
        Command::Pingserver(args) => ping::pingserver(&args),
        Command::Qos(command) => qos::run(&command),
        Command::Mirror(command) => mirror::run(&command, verbose),
        Command::Hadoop(command) => hadoop::run(command),
        Command::Keygen(command) => keygen::run(&command),
        Command::Sim(command) => sim::run(&command),
        Command::CachePotential(args) => potential::run(&args),
    }
}
