//! `trunkline get`: fetches an object into a file, whole or not at all.

use std::io;
use std::time::{Duration, Instant};

use ndn_endpoint::{ConsumerConfig, ConsumerStats};
use ndn_io::App;
use ndn_packet::{Interest, NetKind, NetPacket};
use serde_json::json;

use super::fetch::{Fetch, FetchPlan};
use super::progress::Progress;
use super::sink::Sink;
use super::writer::Writer;
use crate::args::GetArgs;
use crate::error::{CliError, Exit};
use crate::forwarder::{self, Stop};
use crate::output;
use crate::units::{as_ms, mbit_per_s, show_rate, show_size};

/// Runs `trunkline get`.
///
/// # Errors
/// Why there is no object. Nothing is left of it then.
pub fn get(args: &GetArgs) -> Result<(), CliError> {
    let verify = args.verify.load()?;
    let sink = Sink::open(&args.output)?;
    let to_stdout = sink.is_stdout();
    let mut consumer = ConsumerConfig::new(args.name.clone());
    consumer.max_stall = args.timeout;
    consumer.verify = verify;
    consumer.seed = forwarder::seed();
    let plan = FetchPlan {
        object: args.name.clone(),
        metadata: !args.no_metadata,
        window: args.window,
        consumer,
    };

    let stop = Stop::on_signals()?;
    let mut client = forwarder::connect(args.face.face.as_deref())?;
    let Sink { output, end } = sink;
    let writer = Writer::start(output).map_err(|e| CliError::failed("writing thread", e))?;
    let mut app = Getter {
        fetch: Fetch::new(plan, client.now()),
        writer,
        progress: Progress::new(None, args.quiet),
        bytes: 0,
    };
    let started = Instant::now();
    let driven = forwarder::drive(&mut client, &mut app, &stop, Getter::is_over);
    app.progress.finish();
    driven?;
    if let Some(error) = app.fetch.failure() {
        return Err(error);
    }
    if !app.fetch.is_done() && !app.writer.has_stopped() {
        return Err(CliError::new(
            Exit::Interrupted,
            args.name.to_string(),
            "stopped before it was whole",
        ));
    }
    let wrote = app.writer.finish().and_then(|()| end.reach());
    wrote.map_err(|e| match e.kind() {
        io::ErrorKind::BrokenPipe => {
            CliError::new(Exit::BrokenPipe, "output", "closed by its reader")
        }
        _ => CliError::file(&args.output, &e),
    })?;
    let report = Report {
        name: app.fetch.versioned().unwrap_or(&args.name).to_string(),
        bytes: app.bytes,
        time: started.elapsed(),
        verified: verified(args),
        stats: app.fetch.stats().unwrap_or_default(),
    };
    report.print(args, to_stdout);
    Ok(())
}

fn verified(args: &GetArgs) -> &'static str {
    match args.verify {
        crate::keys::VerifySpec::Digest => "digest",
        crate::keys::VerifySpec::Hmac(_) => "hmac",
        crate::keys::VerifySpec::Public(_) => "key",
        crate::keys::VerifySpec::None => "none",
    }
}

/// Drives a fetch and hands what it brings to the writing thread.
struct Getter {
    fetch: Fetch,
    writer: Writer,
    progress: Progress,
    bytes: u64,
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
            self.progress.set(self.bytes);
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
        match packet.packet {
            NetKind::Data(data) => {
                self.fetch
                    .on_data(now, data, packet.congestion_mark.is_some_and(|m| m > 0))
            }
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
    time: Duration,
    verified: &'static str,
    stats: ConsumerStats,
}

impl Report {
    fn print(&self, args: &GetArgs, to_stdout: bool) {
        let s = &self.stats;
        if args.json.json {
            let facts = json!({
                "name": self.name,
                "bytes": self.bytes,
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
        } else if !args.quiet {
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
