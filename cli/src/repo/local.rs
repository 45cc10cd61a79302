//! Commands to a repository on this host: through its door where it runs, else by opening it here.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ndn_packet::{Component, Name};
use serde_json::Value;

use super::config::RepoConfig;
use super::door::Visitor;
use super::session::{PutRequest, Request, Session};
use super::{STOPPED, remote};
use crate::args::{LocalArgs, LsArgs, PutFileArgs, RmArgs, VerifyArgs};
use crate::error::{CliError, Exit};
use crate::forwarder::Stop;
use crate::output::{self, Table};
use crate::transfer::progress::Progress;
use crate::units::show_size;

/// Files, and bytes of them, that are published together: one wait for the disk for all of them.
const TOGETHER: (usize, u64) = (1024, 256 << 20);

/// A repository on this host.
enum Access {
    Here(Box<Session>),
    Running(Visitor),
}

impl Access {
    fn open(config: &RepoConfig) -> Result<Self, CliError> {
        if let Some(visitor) = Visitor::enter(&config.door()) {
            return Ok(Access::Running(visitor));
        }
        match config.open() {
            Ok(repo) => Ok(Access::Here(Box::new(Session::new(repo, None)))),
            // It may have started in this moment.
            Err(error) => Visitor::enter(&config.door())
                .map(Access::Running)
                .ok_or(error),
        }
    }

    fn ask(
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
            Access::Running(visitor) => visitor.ask(request, file, progress),
        }
    }

    fn tell(&mut self, request: &Request) -> Result<Value, CliError> {
        self.ask(request, None, &mut |_| Ok(()))
    }
}

fn open(local: &LocalArgs) -> Result<Access, CliError> {
    Access::open(&load(local)?)
}

fn load(local: &LocalArgs) -> Result<RepoConfig, CliError> {
    match &local.config {
        Some(path) => RepoConfig::load(path),
        None => Err(CliError::usage("repository", "none is named")
            .or("give --config FILE, or set TRUNKLINE_REPO")),
    }
}

/// Runs `trunkline repo put`.
///
/// # Errors
/// A source that can't be read, or what the repository says.
pub fn put(args: &PutFileArgs) -> Result<(), CliError> {
    if remote::put(args)? {
        return Ok(());
    }
    let config = load(&args.local)?;
    let segment_bytes = match args.segment_size {
        None => config.put.segment_bytes,
        Some(n) => u32::try_from(n).unwrap_or(u32::MAX),
    };
    let stop = Stop::on_signals()?;
    let mut access = Access::open(&config)?;
    let sources = Sources::find(&args.source, &args.name)?;
    let progress = Progress::new(sources.bytes, args.quiet);
    let mut done = Put {
        published: Vec::new(),
        waiting: (0, 0),
        resumed: 0,
        bytes: 0,
    };
    let mut result = Ok(());
    for source in sources.files {
        let request = PutRequest {
            name: source.name.to_string(),
            version: args.version,
            segment_bytes,
            freshness_ms: u64::try_from(config.put.freshness.as_millis()).unwrap_or(u64::MAX),
            mode: 0,
            mtime_ns: None,
            size: None,
        };
        result = done.put(&mut access, &source.path, request, &stop, &progress);
        if result.is_err() {
            break;
        }
    }
    // What is whole is published, whatever came after it.
    let committed = done.commit(&mut access);
    progress.finish();
    committed?;
    result?;
    done.print(args);
    Ok(())
}

/// What `put` has done so far.
struct Put {
    published: Vec<Value>,
    /// Files and bytes not published yet.
    waiting: (usize, u64),
    resumed: u64,
    bytes: u64,
}

impl Put {
    fn put(
        &mut self,
        access: &mut Access,
        path: &Path,
        mut request: PutRequest,
        stop: &Stop,
        progress: &Progress,
    ) -> Result<(), CliError> {
        let failed = |e: io::Error| CliError::file(path, &e);
        let file = if path == Path::new("-") {
            File::from(
                std::os::fd::AsFd::as_fd(&io::stdin())
                    .try_clone_to_owned()
                    .map_err(failed)?,
            )
        } else {
            File::open(path).map_err(failed)?
        };
        let found = file.metadata().map_err(failed)?;
        request.mode = found.mode();
        if found.is_file() {
            request.size = Some(found.len());
            let seconds = u64::try_from(found.mtime()).unwrap_or(0);
            let nanos = u64::try_from(found.mtime_nsec()).unwrap_or(0);
            request.mtime_ns = Some(seconds.saturating_mul(1_000_000_000) + nanos);
        } else {
            request.mode = 0o100_644;
        }
        let before = self.bytes;
        let told = access.ask(&Request::Put(request), Some(&file), &mut |bytes| {
            progress.set(before + bytes);
            if stop.is_set() {
                return Err(io::Error::other(STOPPED));
            }
            Ok(())
        })?;
        let bytes = told["bytes"].as_u64().unwrap_or(0);
        self.bytes += bytes;
        self.resumed += told["resumed_at"].as_u64().unwrap_or(0);
        self.waiting.0 += 1;
        self.waiting.1 += bytes;
        progress.set(self.bytes);
        if self.waiting.0 >= TOGETHER.0 || self.waiting.1 >= TOGETHER.1 {
            self.commit(access)?;
        }
        Ok(())
    }

    fn commit(&mut self, access: &mut Access) -> Result<(), CliError> {
        if self.waiting.0 == 0 {
            return Ok(());
        }
        self.waiting = (0, 0);
        if let Value::Array(published) = access.tell(&Request::Commit)? {
            self.published.extend(published);
        }
        Ok(())
    }

    fn print(&self, args: &PutFileArgs) {
        if args.local.json.json {
            output::json(&serde_json::json!({
                "published": self.published,
                "bytes": self.bytes,
                "resumed_bytes": self.resumed,
            }));
            return;
        }
        for file in &self.published {
            output::line(&format!(
                "{} ({}, {} segments)",
                file["versioned"].as_str().unwrap_or_default(),
                show_size(file["bytes"].as_u64().unwrap_or(0)),
                file["segments"]
            ));
        }
    }
}

/// What is to be put.
struct Sources {
    files: Vec<Source>,
    /// Bytes of all, where known.
    bytes: Option<u64>,
}

struct Source {
    path: PathBuf,
    name: Name,
}

impl Sources {
    fn find(path: &Path, name: &Name) -> Result<Self, CliError> {
        let mut sources = Sources {
            files: Vec::new(),
            bytes: Some(0),
        };
        if path == Path::new("-") {
            sources.bytes = None;
            sources.files.push(Source {
                path: path.to_owned(),
                name: name.clone(),
            });
            return Ok(sources);
        }
        let found = std::fs::metadata(path).map_err(|e| CliError::file(path, &e))?;
        if found.is_dir() {
            sources.walk(path, name)?;
        } else {
            sources.add(path.to_owned(), name.clone(), &found);
        }
        Ok(sources)
    }

    fn add(&mut self, path: PathBuf, name: Name, found: &std::fs::Metadata) {
        match &mut self.bytes {
            Some(bytes) if found.is_file() => *bytes += found.len(),
            bytes => *bytes = None,
        }
        self.files.push(Source { path, name });
    }

    /// All regular files below a folder, in the order of their names.
    fn walk(&mut self, folder: &Path, name: &Name) -> Result<(), CliError> {
        use std::os::unix::ffi::OsStrExt;
        let failed = |e: io::Error| CliError::file(folder, &e);
        let mut entries = std::fs::read_dir(folder)
            .and_then(Iterator::collect::<io::Result<Vec<_>>>)
            .map_err(failed)?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let below = name.append(Component::generic(entry.file_name().as_bytes()));
            let found = entry.metadata().map_err(|e| CliError::file(&path, &e))?;
            if found.is_dir() {
                self.walk(&path, &below)?;
            } else if found.is_file() {
                self.add(path, below, &found);
            } else {
                tracing::warn!(path = %path.display(), "is neither file nor folder: left out");
            }
        }
        Ok(())
    }
}

/// Runs `trunkline repo ls`.
///
/// # Errors
/// What the repository says.
pub fn ls(args: &LsArgs) -> Result<(), CliError> {
    let request = Request::Ls {
        name: args.name.to_string(),
        versions: args.versions,
    };
    let rows = open(&args.local)?.tell(&request)?;
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
            true => Err(io::Error::other(STOPPED)),
            false => Ok(()),
        }
    });
    progress.finish();
    let told = told?;
    let rotten = told["rotten"].as_array().map_or(&[][..], |r| r);
    if args.local.json.json {
        output::json(&told);
    } else {
        for one in rotten {
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
            rotten.len()
        ));
    }
    if rotten.is_empty() {
        return Ok(());
    }
    let cause = format!("{} damaged, which are not served", rotten.len());
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
