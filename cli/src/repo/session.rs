//! What can be asked of an open repository from the same host: the same whether it is open in this process or in one that
//! serves it.

use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use ndn_packet::Name;
use ndn_repo::protocol::CommandCounters;
use ndn_repo::{Child, FileInfo, FileWriter, PutOptions, Repo, Staged};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::repo_error;
use crate::error::CliError;

/// Children listed at once.
const PAGE: usize = 1000;

/// One question.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum Request {
    /// Take the file that comes with this request; it is published by the next commit.
    Put(PutRequest),
    /// Publish all that was put.
    Commit,
    /// What is in a folder, or all versions of a file.
    Ls {
        /// Of what.
        name: String,
        /// Whether versions are meant.
        versions: bool,
    },
    /// Remove versions of files.
    Rm {
        /// Of what.
        name: String,
        /// This one alone.
        version: Option<u64>,
        /// All but so many of the newest.
        keep: Option<usize>,
        /// Whether all under the name is meant.
        recursive: bool,
    },
    /// What the repository holds.
    Status,
    /// Read everything under a name.
    Verify {
        /// Under what.
        name: String,
    },
    /// Give back room.
    Compact,
}

/// A file to be put.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PutRequest {
    /// Its name.
    pub name: String,
    /// Its version, if not a new one.
    pub version: Option<u64>,
    /// Bytes of content a segment.
    pub segment_bytes: u32,
    /// FreshnessPeriod in milliseconds.
    pub freshness_ms: u64,
    /// `st_mode`.
    pub mode: u32,
    /// Time of last change; `None` for a stream.
    pub mtime_ns: Option<u64>,
    /// Bytes to come; `None` for a stream.
    pub size: Option<u64>,
}

/// Commands that have come to a running repository, told by whoever serves it.
pub type Counters = Arc<Mutex<CommandCounters>>;

/// One user of an open repository.
pub struct Session {
    repo: Repo,
    /// What commands have come to a running repository.
    counters: Option<Counters>,
    staged: Vec<Staged>,
}

impl Session {
    /// Nothing is put yet.
    pub fn new(repo: Repo, counters: Option<Counters>) -> Self {
        Self {
            repo,
            counters,
            staged: Vec::new(),
        }
    }

    /// Does what is asked. `source` is the file of a put; `progress` is told bytes done, and stops the work when it
    /// fails.
    ///
    /// # Errors
    /// What went wrong, in the house's form.
    pub fn answer(
        &mut self,
        request: &Request,
        source: Option<File>,
        progress: &mut dyn FnMut(u64) -> io::Result<()>,
    ) -> Result<Value, CliError> {
        match request {
            Request::Put(put) => {
                let source = source
                    .ok_or_else(|| CliError::failed(put.name.clone(), "no file came with it"))?;
                self.put(put, source, progress)
            }
            Request::Commit => self.commit(),
            Request::Ls { name, versions } => self.ls(&parse(name)?, *versions),
            Request::Rm {
                name,
                version,
                keep,
                recursive,
            } => self.rm(&parse(name)?, *version, *keep, *recursive),
            Request::Status => self.status(),
            Request::Verify { name } => self.verify(&parse(name)?, progress),
            Request::Compact => {
                let freed = self.repo.compact().map_err(|e| repo_error(&e))?;
                Ok(json!({ "freed_bytes": freed }))
            }
        }
    }

    fn status(&self) -> Result<Value, CliError> {
        let status = self.repo.status().map_err(|e| repo_error(&e))?;
        let mut told = json!({
            "files": status.files,
            "bytes": status.file_bytes,
            "series": status.series,
            "packets": status.packets,
            "log_bytes": status.log_bytes,
            "index_bytes": status.index_bytes,
            "free_bytes": status.free_bytes,
            "incoming": status.incoming,
            "damaged_answers": status.damaged_answers,
        });
        if let Some(counters) = &self.counters {
            let c = *counters.lock().unwrap_or_else(PoisonError::into_inner);
            told["commands"] = json!({
                "taken": c.taken,
                "unsigned": c.unsigned,
                "wrong_signature": c.wrong_signature,
                "replayed": c.replayed,
                "forbidden": c.forbidden,
                "malformed": c.malformed,
            });
        }
        Ok(told)
    }

    fn put(
        &mut self,
        put: &PutRequest,
        source: File,
        progress: &mut dyn FnMut(u64) -> io::Result<()>,
    ) -> Result<Value, CliError> {
        let name = parse(&put.name)?;
        let options = PutOptions {
            version: put.version,
            segment_bytes: put.segment_bytes,
            freshness: std::time::Duration::from_millis(put.freshness_ms),
            mode: put.mode,
            mtime_ns: put.mtime_ns,
            size: put.size,
            ..PutOptions::default()
        };
        let mut writer = self.repo.put(&name, &options).map_err(|e| repo_error(&e))?;
        let resumed = writer.position();
        let copied = copy(&mut writer, source, resumed, progress);
        if let Err(error) = copied {
            // What has come is kept: the same put goes on from there.
            if let Err(error) = writer.suspend() {
                tracing::warn!(%error, %name, "can't keep what has come; the put can't be resumed");
            }
            return Err(super::put_error(&name, &error));
        }
        let staged = writer.finish().map_err(|e| repo_error(&e))?;
        let told = json!({
            "versioned": staged.versioned().to_string(),
            "bytes": staged.size(),
            "resumed_at": resumed,
        });
        self.staged.push(staged);
        Ok(told)
    }

    fn commit(&mut self) -> Result<Value, CliError> {
        let published = self
            .repo
            .publish(std::mem::take(&mut self.staged))
            .map_err(|e| repo_error(&e))?;
        Ok(Value::Array(published.iter().map(told).collect()))
    }

    fn ls(&self, name: &Name, versions: bool) -> Result<Value, CliError> {
        let failed = |e| repo_error(&e);
        if versions {
            let versions = self.repo.versions(name).map_err(failed)?;
            return Ok(Value::Array(versions.iter().map(told).collect()));
        }
        let mut rows = Vec::new();
        let mut after: Option<Child> = None;
        loop {
            let page = self.repo.list(name, after.as_ref(), PAGE).map_err(failed)?;
            let Some(last) = page.last() else {
                return Ok(Value::Array(rows));
            };
            rows.extend(page.iter().map(|child| match &child.file {
                Some(file) => told(file),
                None => json!({ "folder": name.append(&child.component).to_string() }),
            }));
            after = Some(last.clone());
        }
    }

    fn rm(
        &self,
        name: &Name,
        version: Option<u64>,
        keep: Option<usize>,
        recursive: bool,
    ) -> Result<Value, CliError> {
        let failed = |e| repo_error(&e);
        let mut to_remove = Vec::new();
        for file in self.files(name, recursive)? {
            let mut versions = self.repo.versions(&file).map_err(failed)?;
            versions.retain(|info| version.is_none_or(|v| v == info.version));
            versions.truncate(versions.len().saturating_sub(keep.unwrap_or(0)));
            to_remove.extend(versions.into_iter().map(|info| (info.name, info.version)));
        }
        let removed = self.repo.remove(&to_remove).map_err(failed)?;
        let folder = recursive && keep.is_none();
        let folders = match folder {
            true => self.repo.remove_folders(name).map_err(failed)?,
            false => 0,
        };
        if removed + folders == 0 && keep.is_none() {
            return Err(CliError::failed(name.to_string(), "not in this repository")
                .or("see what is there with trunkline repo ls"));
        }
        Ok(json!({ "removed": removed, "folders": folders }))
    }

    /// The file `name`, and all under it where that is meant.
    fn files(&self, name: &Name, recursive: bool) -> Result<Vec<Name>, CliError> {
        if !recursive {
            return Ok(vec![name.clone()]);
        }
        let mut files = vec![name.clone()];
        self.repo
            .walk(name, &mut |info: &FileInfo| {
                if files.last() != Some(&info.name) {
                    files.push(info.name.clone());
                }
                Ok(())
            })
            .map_err(|e| repo_error(&e))?;
        files.dedup();
        Ok(files)
    }

    fn verify(
        &self,
        name: &Name,
        progress: &mut dyn FnMut(u64) -> io::Result<()>,
    ) -> Result<Value, CliError> {
        let mut bytes = 0;
        let mut stopped = None;
        let report = self
            .repo
            .verify(name, &mut |n| {
                bytes += n;
                match progress(bytes) {
                    Ok(()) => true,
                    Err(error) => {
                        stopped = Some(error);
                        false
                    }
                }
            })
            .map_err(|e| repo_error(&e))?;
        if let Some(error) = stopped {
            return Err(super::put_error(name, &error));
        }
        Ok(json!({
            "files": report.files,
            "packets": report.packets,
            "bytes": report.bytes,
            "damaged": report.damaged.iter().map(|r| json!({
                "name": r.name.to_string(), "cause": r.cause,
            })).collect::<Vec<_>>(),
        }))
    }
}

/// Copies the rest of `source` from `from` on.
fn copy(
    writer: &mut FileWriter,
    mut source: File,
    from: u64,
    progress: &mut dyn FnMut(u64) -> io::Result<()>,
) -> io::Result<()> {
    if from > 0 {
        io::Seek::seek(&mut source, io::SeekFrom::Start(from))?;
    }
    let mut watched = Watched {
        source,
        at: from,
        progress,
    };
    writer.copy_from(&mut watched, &mut |_| {})
}

/// A source whose reading is told, and can be stopped.
struct Watched<'a> {
    source: File,
    at: u64,
    progress: &'a mut dyn FnMut(u64) -> io::Result<()>,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (self.progress)(self.at)?;
        let n = self.source.read(buffer)?;
        self.at += n as u64;
        Ok(n)
    }
}

/// A version as answers tell it.
fn told(info: &FileInfo) -> Value {
    json!({
        "name": info.name.to_string(),
        "version": info.version,
        "versioned": info.name.append_version(info.version).to_string(),
        "bytes": info.entry.size,
        "segments": info.entry.last_segment() + 1,
        "segment_size": info.entry.segment_bytes,
        "mtime_ns": info.entry.mtime_ns,
    })
}

fn parse(name: &str) -> Result<Name, CliError> {
    name.parse()
        .map_err(|e| CliError::usage(name, format!("is no name: {e}")))
}
