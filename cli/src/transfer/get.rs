//! `trunkline get`: fetches an object into a file, whole or not at all.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ndn_endpoint::{ConsumerConfig, ConsumerStats};
use ndn_io::App;
use ndn_packet::{Interest, Name, NetKind, NetPacket};
use serde_json::json;

use super::WindowSpec;
use super::fetch::{Fetch, FetchPlan, Start};
use super::part::Part;
use super::progress::Progress;
use super::sink::Sink;
use super::writer::Writer;
use crate::args::GetArgs;
use crate::error::{CliError, Exit};
use crate::forwarder::{self, Stop};
use crate::keys::VerifySpec;
use crate::output;
use crate::units::{as_ms, mbit_per_s, show_rate, show_size};

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
    pub face: Option<&'a str>,
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
        face: args.face.face.as_deref(),
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
    let mut consumer = ConsumerConfig::new(job.name.clone());
    consumer.give_up_after = job.timeout;
    consumer.verify = verify;
    consumer.seed = forwarder::seed();
    let plan = FetchPlan {
        object: job.name.clone(),
        metadata: job.metadata,
        version: job.version,
        start: start
            .clone()
            .map(|part| -> Start { Box::new(move |told| part.begin(told)) }),
        window: job.window,
        consumer,
    };

    let stop = Stop::on_signals()?;
    let mut client = forwarder::connect(job.face)?;
    let Sink { output, end } = sink;
    let writer = Writer::start(output).map_err(|e| CliError::failed("writing thread", e))?;
    let mut app = Getter {
        fetch: Fetch::new(plan, client.now()),
        writer,
        progress: Progress::new(None, job.quiet),
        bytes: 0,
        before: start.clone(),
    };
    let started = Instant::now();
    let driven = forwarder::drive(&mut client, &mut app, &stop, Getter::is_over);
    app.progress.finish();
    let fetched = driven.and_then(|()| match app.fetch.failure() {
        Some(error) => Err(error),
        None if !app.fetch.is_done() && !app.writer.has_stopped() => Err(CliError::new(
            Exit::Interrupted,
            job.name.to_string(),
            "stopped before it was whole",
        )),
        None => Ok(()),
    });
    let resumed = start.as_ref().map_or(0, |part| part.bytes());
    let wrote = app.writer.finish();
    if let Err(mut error) = fetched {
        if start.is_some() && resumed + app.bytes > 0 {
            let kept = "what has come is kept: the same command goes on from there";
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

/// Drives a fetch and hands what it brings to the writing thread.
struct Getter {
    fetch: Fetch,
    writer: Writer,
    progress: Progress,
    bytes: u64,
    /// What came in an earlier transfer.
    before: Option<Arc<Part>>,
}

impl Getter {
    fn is_over(&self) -> bool {
        self.fetch.is_done() || self.fetch.failure().is_some() || self.writer.has_stopped()
    }

    /// Moves on what can be moved on: segments to the writer, Interests to the network.
    fn turn(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        let before = self.bytes;
        while self.writer.has_room()
            && let Some(content) = self.fetch.read()
        {
            self.bytes += content.len() as u64;
            self.writer.push(now, content);
        }
        if self.bytes != before {
            let before = self.before.as_ref().map_or(0, |part| part.bytes());
            self.progress.set(before + self.bytes);
            if let Some(size) = self.fetch.size() {
                self.progress.set_total(size);
            }
        }
        while let Some(wire) = self.fetch.poll_interest(now) {
            if let Ok(interest) = Interest::parse(wire) {
                out.push(NetPacket::interest(interest));
            }
        }
    }
}

impl App for Getter {
    fn on_packet(&mut self, now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        let marked = packet.is_marked();
        match packet.packet {
            NetKind::Data(data) => self.fetch.on_data(now, data, marked),
            NetKind::Nack { reason, interest } => self.fetch.on_nack(now, &interest, reason),
            NetKind::Interest(_) => return,
        }
        self.turn(now, out);
    }

    fn on_wake(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        self.turn(now, out);
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
        self.turn(now, out);
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
