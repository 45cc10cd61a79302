//! `trunkline get`: fetches an object into a file, whole or not at all.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ndn_endpoint::{
    ConsumerConfig, ConsumerStats, Fetch, FetchConfig, FetchError, FetchErrorKind, Find, Goal,
    VerifyPolicy,
};
use ndn_io::App;
use ndn_packet::{Name, NetPacket};
use ndn_repo::ManifestFile;
use serde_json::json;

use super::gather::{receive, send};
use super::part::Part;
use super::progress::Progress;
use super::sink::Sink;
use super::writer::Writer;
use crate::args::{FaceArg, GetArgs};
use crate::error::{CliError, Exit};
use crate::forwarder::{self, Stop};
use crate::keys::VerifySpec;
use crate::output;
use crate::units::{as_ms, mbit_per_s, show_rate, show_size};
use crate::window::WindowSpec;

/// One object to be fetched.
pub struct Job<'a> {
    /// Its name.
    pub name: &'a Name,
    /// Its version, if not the newest.
    pub version: Option<u64>,
    /// Where it is written.
    pub output: &'a Path,
    /// Whether an interrupted transfer goes on where it stopped.
    pub resume: bool,
    /// Whether metadata is asked for.
    pub metadata: bool,
    /// Congestion control.
    pub window: WindowSpec,
    /// What is verified.
    pub verify: &'a VerifySpec,
    /// How long nothing may come.
    pub timeout: Duration,
    /// Whether a progress bar and a report are unwanted.
    pub quiet: bool,
    /// Which forwarder.
    pub face: &'a FaceArg,
    /// Whether the report is JSON.
    pub json: bool,
}

/// Runs `trunkline get`.
///
/// # Errors
/// Why there is no object. Nothing is left of it then.
pub fn get(args: &GetArgs) -> Result<(), CliError> {
    run(&Job {
        name: &args.name,
        version: None,
        output: &args.output,
        resume: false,
        metadata: !args.no_metadata,
        window: args.window,
        verify: &args.verify,
        timeout: args.timeout,
        quiet: args.quiet,
        face: &args.face,
        json: args.json.json,
    })
}

/// Fetches an object.
///
/// # Errors
/// Why there is no object. What has come of it is left only where the transfer can go on.
pub fn run(job: &Job<'_>) -> Result<(), CliError> {
    let verify = job.verify.load()?;
    let (sink, start) = if job.resume {
        let (sink, part) = Sink::resumable(job.output)?;
        let part = Arc::new(part);
        (sink, Some(part))
    } else {
        (Sink::open(job.output)?, None)
    };
    let to_stdout = sink.is_stdout();
    let plan = job.plan(verify);
    let stop = Stop::on_signals()?;
    let mut client = forwarder::connect(job.face)?;
    let Sink { output, end } = sink;
    let writer = Writer::start(output).map_err(|e| CliError::failed("writing thread", e))?;
    let mut app = Getter {
        fetch: Fetch::new(plan, client.now()),
        writer,
        progress: Progress::new(None, job.quiet),
        bytes: 0,
        segment_bytes: None,
        window: job.window,
        before: start.clone(),
        failed: None,
    };
    let started = Instant::now();
    let driven = forwarder::drive(&mut client, &mut app, &stop, Getter::is_over);
    app.progress.finish();
    let fetched = driven.and_then(|()| match app.failure() {
        Some(error) => Err(error),
        None if !app.is_over() => Err(CliError::new(
            Exit::Interrupted,
            job.name.to_string(),
            "interrupted before it was complete",
        )),
        None => Ok(()),
    });
    let resumed = start.as_ref().map_or(0, |part| part.bytes());
    let wrote = app.writer.finish();
    if let Err(mut error) = fetched {
        if start.is_some() && resumed + app.bytes > 0 {
            let kept = "what was received is kept: run the same command to resume";
            error.way_out = Some(match error.way_out {
                None => kept.to_owned(),
                Some(way_out) => format!("{way_out}; {kept}"),
            });
        }
        return Err(error);
    }
    wrote
        .and_then(|()| end.reach())
        .map_err(|e| match e.kind() {
            io::ErrorKind::BrokenPipe => {
                CliError::new(Exit::BrokenPipe, "output", "closed by its reader")
            }
            _ => CliError::file(job.output, &e),
        })?;
    let report = Report {
        name: app.fetch.versioned().unwrap_or(job.name).to_string(),
        bytes: app.bytes,
        resumed,
        time: started.elapsed(),
        verified: verified(job.verify),
        stats: app.fetch.stats().unwrap_or_default(),
    };
    report.print(job, to_stdout);
    Ok(())
}

fn verified(verify: &VerifySpec) -> &'static str {
    match verify {
        VerifySpec::Digest => "digest",
        VerifySpec::Hmac(_) => "hmac",
        VerifySpec::Public(_) => "key",
        VerifySpec::None => "none",
    }
}

impl Job<'_> {
    /// What is fetched first: metadata where they are asked for, since how the content is fetched depends on them.
    fn plan(&self, verify: VerifyPolicy) -> FetchConfig {
        let (object, find) = match (self.metadata, self.version) {
            (true, None) => (self.name.clone(), Find::Newest),
            (true, Some(version)) => (self.name.clone(), Find::Version(version)),
            (false, None) => (self.name.clone(), Find::AsNamed),
            (false, Some(version)) => (self.name.append_version(version), Find::AsNamed),
        };
        FetchConfig {
            find,
            goal: match self.metadata {
                true => Goal::Metadata,
                false => Goal::Content,
            },
            consumer: ConsumerConfig {
                congestion: self.window.congestion(),
                give_up_after: self.timeout,
                max_buffered_segments: self.window.buffer(None),
                verify,
                seed: forwarder::seed(),
                ..ConsumerConfig::new(object.clone())
            },
            // However many segments a file has.
            store: Box::new(ManifestFile::default()),
            ..FetchConfig::new(object)
        }
    }
}

/// A fetch's failure in the house's form.
pub fn fetch_error(error: &FetchError) -> CliError {
    let exit = match error.kind() {
        FetchErrorKind::Silent | FetchErrorKind::Unreachable | FetchErrorKind::Absent => {
            Exit::NoData
        }
        FetchErrorKind::Unverified => Exit::Unverified,
        FetchErrorKind::Malformed | FetchErrorKind::NoRoom => Exit::Failed,
    };
    let said = CliError::said(exit, error);
    match error.kind() {
        FetchErrorKind::Malformed => said.or("use --no-metadata with the versioned name"),
        _ => said,
    }
}

/// Drives a fetch and hands what it brings to the writing thread.
struct Getter {
    fetch: Fetch,
    writer: Writer,
    progress: Progress,
    bytes: u64,
    /// Of the first that came.
    segment_bytes: Option<u64>,
    window: WindowSpec,
    /// What came in an earlier transfer.
    before: Option<Arc<Part>>,
    /// Why nothing can be begun.
    failed: Option<CliError>,
}

impl Getter {
    /// Whether metadata are all that is here, and the content is yet to be begun.
    fn is_at_metadata(&self) -> bool {
        self.fetch.is_done() && self.fetch.versioned().is_none()
    }

    fn is_over(&self) -> bool {
        let is_whole = self.fetch.is_done() && !self.is_at_metadata();
        is_whole || self.failure().is_some() || self.writer.has_stopped()
    }

    fn failure(&self) -> Option<CliError> {
        let fetch = || self.fetch.failure().map(|error| fetch_error(&error));
        self.failed.clone().or_else(fetch)
    }

    /// Begins with the content, at the first segment that is not here.
    fn begin(&mut self, now: Duration) {
        let (Some(metadata), None) = (self.fetch.metadata(), &self.failed) else {
            return;
        };
        let first = self
            .before
            .as_ref()
            .map_or(Ok(0), |part| part.begin(metadata));
        let window = self.window;
        match first {
            Err(error) => self.failed = Some(error),
            Ok(first) => self.fetch.begin(now, |metadata, consumer| {
                consumer.first = first;
                consumer.max_buffered_segments = window.buffer(metadata.segment_bytes);
            }),
        }
    }

    /// Moves on what can be moved on: segments to the writer, Interests to the network.
    fn advance(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        if self.is_at_metadata() {
            self.begin(now);
        }
        let before = self.bytes;
        while self.writer.has_room()
            && let Some((_, data)) = self.fetch.read()
        {
            let content = data.content();
            self.segment_bytes.get_or_insert(content.len() as u64);
            self.bytes += content.len() as u64;
            self.writer.push(now, content);
        }
        if self.bytes != before {
            let before = self.before.as_ref().map_or(0, |part| part.bytes());
            self.progress.set(before + self.bytes);
            if let Some(size) = self.size() {
                self.progress.set_total(size);
            }
        }
        send(&mut self.fetch, now, out);
    }

    /// The size in bytes: as the metadata tell, else as segments make it probable.
    fn size(&self) -> Option<u64> {
        let size = self.fetch.metadata().and_then(|metadata| metadata.size);
        size.or_else(|| Some((self.fetch.last()? + 1) * self.segment_bytes?))
    }
}

impl App for Getter {
    fn on_packet(&mut self, now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        receive(&mut self.fetch, now, packet);
        self.advance(now, out);
    }

    fn on_wake(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        self.advance(now, out);
    }

    fn deadline(&self) -> Option<Duration> {
        [self.fetch.deadline(), self.writer.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    fn on_deadline(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        self.writer.on_deadline(now);
        if self.fetch.deadline().is_some_and(|at| at <= now) {
            self.fetch.on_deadline(now);
        }
        self.advance(now, out);
    }
}

/// What was done, for people and programs.
struct Report {
    name: String,
    bytes: u64,
    resumed: u64,
    time: Duration,
    verified: &'static str,
    stats: ConsumerStats,
}

impl Report {
    fn print(&self, job: &Job<'_>, to_stdout: bool) {
        let s = &self.stats;
        if job.json {
            let facts = json!({
                "name": self.name,
                "bytes": self.bytes,
                "resumed_bytes": self.resumed,
                "seconds": self.time.as_secs_f64(),
                "mbit_s": mbit_per_s(self.bytes, self.time),
                "verified": self.verified,
                "segments": s.read,
                "interests": s.sent,
                "retransmitted": s.retransmitted,
                "timeouts": s.timeouts,
                "nacks": s.nacks,
                "congestion_marks": s.marks,
                "duplicates": s.duplicates,
                "rejected": s.rejected,
                "rtt_ms": s.srtt.map(as_ms),
            });
            if to_stdout {
                eprintln!("{facts:#}");
            } else {
                output::json(&facts);
            }
        } else if !job.quiet {
            eprintln!(
                "{}: {} in {:.2} s, {}, {} segments, {} retransmitted, verified: {}",
                self.name,
                show_size(self.bytes),
                self.time.as_secs_f64(),
                show_rate(self.bytes, self.time),
                s.read,
                s.retransmitted,
                self.verified,
            );
        }
    }
}
