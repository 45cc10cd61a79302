//! `trunkline repo put`: files into a repository on this host.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::Value;

use super::local::{Access, load};
use super::session::{PutRequest, Request};
use super::sources::Sources;
use super::{Stopped, remote};
use crate::args::PutFileArgs;
use crate::error::CliError;
use crate::forwarder::Stop;
use crate::transfer::progress::Progress;
use crate::units::show_size;

/// Files, and bytes of them, that are published together: one wait for the disk for all of them.
const TOGETHER: (usize, u64) = (1024, 256 << 20);

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
    let mut put = Put {
        progress: Progress::new(Sources::size(&args.source)?, args.quiet),
        report: Report::new(args.local.json.json),
        waiting: (0, 0),
        resumed: 0,
        bytes: 0,
    };
    let mut result = Ok(());
    for source in Sources::open(&args.source, &args.name)? {
        result = source.and_then(|source| {
            let request = PutRequest {
                name: source.name.to_string(),
                version: args.version,
                segment_bytes,
                freshness_ms: u64::try_from(config.put.freshness.as_millis()).unwrap_or(u64::MAX),
                mode: 0,
                mtime_ns: None,
                size: None,
            };
            put.put(&mut access, &source.path, request, &stop)
        });
        if result.is_err() {
            break;
        }
    }
    // What is whole is published, whatever came after it.
    let result = put.commit(&mut access).and(result);
    put.progress.finish();
    put.report.end(put.bytes, put.resumed, result.is_ok());
    result
}

/// What a put has done so far.
struct Put {
    progress: Progress,
    report: Report,
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
            self.progress.set(before + bytes);
            if stop.is_set() {
                return Err(Stopped::error());
            }
            Ok(())
        })?;
        let bytes = told["bytes"].as_u64().unwrap_or(0);
        self.bytes += bytes;
        self.resumed += told["resumed_at"].as_u64().unwrap_or(0);
        self.waiting.0 += 1;
        self.waiting.1 += bytes;
        self.progress.set(self.bytes);
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
            self.progress.aside(|| self.report.published(&published));
        }
        Ok(())
    }
}

/// Tells what was published as soon as it is, and keeps none of it.
struct Report {
    json: bool,
    begun: bool,
    /// Whether somebody reads it. Whoever stops reading has not asked for the put to stop.
    is_read: bool,
}

impl Report {
    fn new(json: bool) -> Self {
        Self {
            json,
            begun: false,
            is_read: true,
        }
    }

    fn published(&mut self, files: &[Value]) {
        let rows: Vec<String> = files.iter().map(|file| self.row(file)).collect();
        if !self.json {
            self.say(&rows.join("\n"));
        } else if std::mem::replace(&mut self.begun, true) {
            self.say(&format!(",\n{}", rows.join(",\n")));
        } else {
            self.say(&format!("{{\"published\": [\n{}", rows.join(",\n")));
        }
    }

    fn say(&mut self, text: &str) {
        let mut out = io::stdout().lock();
        self.is_read = self.is_read && writeln!(out, "{text}").and_then(|()| out.flush()).is_ok();
    }

    fn row(&self, file: &Value) -> String {
        if self.json {
            return file.to_string();
        }
        format!(
            "{} ({}, {} segments)",
            file["versioned"].as_str().unwrap_or_default(),
            show_size(file["bytes"].as_u64().unwrap_or(0)),
            file["segments"]
        )
    }

    /// Says the sums; of a put that has failed, no more than makes what was said whole.
    fn end(&mut self, bytes: u64, resumed: u64, is_ok: bool) {
        if !self.json || (!self.begun && !is_ok) {
            return;
        }
        if !self.begun {
            self.say("{\"published\": [");
        }
        self.say(&format!(
            "], \"bytes\": {bytes}, \"resumed_bytes\": {resumed}}}"
        ));
    }
}
