//! Commands to a repository on this host: through its control socket where it runs, else by opening it here.

use std::fs::File;
use std::io;

use serde_json::Value;

use super::config::RepoConfig;
use super::control::ControlClient;
use super::session::{Request, Session};
use super::{Stopped, listing, remote};
use crate::args::{LocalArgs, LsArgs, RmArgs, VerifyArgs};
use crate::error::{CliError, Exit};
use crate::forwarder::Stop;
use crate::output::{self, Table};
use crate::transfer::progress::Progress;
use crate::units::show_size;

/// A repository on this host.
pub(super) enum Access {
    Here(Box<Session>),
    Running(ControlClient),
}

impl Access {
    pub(super) fn open(config: &RepoConfig) -> Result<Self, CliError> {
        if let Some(client) = ControlClient::connect(&config.control_socket()) {
            return Ok(Access::Running(client));
        }
        match config.open() {
            Ok(repo) => Ok(Access::Here(Box::new(Session::new(repo, None)))),
            // It may have started in this moment.
            Err(error) => ControlClient::connect(&config.control_socket())
                .map(Access::Running)
                .ok_or(error),
        }
    }

    pub(super) fn ask(
        &mut self,
        request: &Request,
        file: Option<&File>,
        progress: &mut dyn FnMut(u64) -> io::Result<()>,
    ) -> Result<Value, CliError> {
        match self {
            Access::Here(session) => {
                let file = file
                    .map(File::try_clone)
                    .transpose()
                    .map_err(|e| CliError::failed("file", e))?;
                session.answer(request, file, progress)
            }
            Access::Running(client) => client.ask(request, file, progress),
        }
    }

    pub(super) fn tell(&mut self, request: &Request) -> Result<Value, CliError> {
        self.ask(request, None, &mut |_| Ok(()))
    }
}

fn open(local: &LocalArgs) -> Result<Access, CliError> {
    Access::open(&load(local)?)
}

pub(super) fn load(local: &LocalArgs) -> Result<RepoConfig, CliError> {
    match &local.config {
        Some(path) => RepoConfig::load(path),
        None => Err(CliError::usage("repository", "none is named")
            .or("give --config FILE, or set TRUNKLINE_REPO")),
    }
}

/// Runs `trunkline repo ls`.
///
/// # Errors
/// What the repository says.
pub fn ls(args: &LsArgs) -> Result<(), CliError> {
    let rows = if args.by_name {
        listing::fetch(args)?
    } else {
        let request = Request::Ls {
            name: args.name.to_string(),
            versions: args.versions,
        };
        open(&args.local)?.tell(&request)?
    };
    if args.local.json.json {
        output::json(&rows);
        return Ok(());
    }
    let mut table = Table::new(&["version", "bytes", "name"]);
    for row in rows.as_array().into_iter().flatten() {
        let text = |key: &str| match &row[key] {
            Value::Null => String::from("-"),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        table.row(match row.get("folder") {
            Some(folder) => vec![
                String::from("-"),
                String::from("-"),
                format!("{}/", folder.as_str().unwrap_or_default()),
            ],
            None => vec![text("version"), text("bytes"), text("name")],
        });
    }
    table.print("nothing");
    Ok(())
}

/// Runs `trunkline repo rm`.
///
/// # Errors
/// What the repository says.
pub fn rm(args: &RmArgs) -> Result<(), CliError> {
    if remote::rm(args)? {
        return Ok(());
    }
    let request = Request::Rm {
        name: args.name.to_string(),
        version: args.version,
        keep: args.keep,
        recursive: args.recursive,
    };
    let told = open(&args.local)?.tell(&request)?;
    if args.local.json.json {
        output::json(&told);
    } else {
        output::line(&format!("{} versions removed", told["removed"]));
    }
    Ok(())
}

/// Runs `trunkline repo status`.
///
/// # Errors
/// What the repository says.
pub fn status(args: &LocalArgs) -> Result<(), CliError> {
    let mut access = open(args)?;
    let running = matches!(access, Access::Running(_));
    let mut told = access.tell(&Request::Status)?;
    told["running"] = running.into();
    if args.json.json {
        output::json(&told);
        return Ok(());
    }
    for (key, value) in told.as_object().into_iter().flatten() {
        let shown = match value.as_u64() {
            Some(n) if key.ends_with("bytes") => show_size(n),
            _ => value.to_string(),
        };
        output::line(&format!("{:24} {shown}", key.replace('_', " ")));
    }
    Ok(())
}

/// Runs `trunkline repo verify`.
///
/// # Errors
/// What the repository says; something is damaged.
pub fn verify(args: &VerifyArgs) -> Result<(), CliError> {
    let stop = Stop::on_signals()?;
    let progress = Progress::new(None, args.quiet);
    let request = Request::Verify {
        name: args.name.to_string(),
    };
    let told = open(&args.local)?.ask(&request, None, &mut |bytes| {
        progress.set(bytes);
        match stop.is_set() {
            true => Err(Stopped::error()),
            false => Ok(()),
        }
    });
    progress.finish();
    let told = told?;
    let damaged = told["damaged"].as_array().map_or(&[][..], |r| r);
    if args.local.json.json {
        output::json(&told);
    } else {
        for one in damaged {
            output::line(&format!(
                "{}: {}",
                one["name"].as_str().unwrap_or_default(),
                one["cause"].as_str().unwrap_or_default()
            ));
        }
        output::line(&format!(
            "{} read in {} files and {} packets, {} damaged",
            show_size(told["bytes"].as_u64().unwrap_or(0)),
            told["files"],
            told["packets"],
            damaged.len()
        ));
    }
    if damaged.is_empty() {
        return Ok(());
    }
    let cause = format!("{} damaged, which are not served", damaged.len());
    Err(
        CliError::new(Exit::Unverified, args.name.to_string(), cause)
            .or("put them again from another copy, or remove them"),
    )
}

/// Runs `trunkline repo compact`.
///
/// # Errors
/// What the repository says.
pub fn compact(args: &LocalArgs) -> Result<(), CliError> {
    let told = open(args)?.tell(&Request::Compact)?;
    if args.json.json {
        output::json(&told);
    } else {
        let freed = told["freed_bytes"].as_u64().unwrap_or(0);
        output::line(&format!("{} given back", show_size(freed)));
    }
    Ok(())
}
