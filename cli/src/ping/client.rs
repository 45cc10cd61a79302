//! `trunkline ping`: the pinger on a face, and what it tells.

use std::time::Duration;

use ndn_io::App;
use ndn_packet::{Interest, NetKind, NetPacket};
use serde_json::json;

use super::pinger::{Echo, PingPlan, Pinger};
use crate::args::PingArgs;
use crate::error::{CliError, Exit};
use crate::forwarder::{self, Stop};
use crate::output;
use crate::units::as_ms;

/// Runs `trunkline ping`.
///
/// # Errors
/// A forwarder that can't be reached, or not a single answer.
pub fn ping(args: &PingArgs) -> Result<(), CliError> {
    let stop = Stop::on_signals()?;
    let mut client = forwarder::connect(&args.face)?;
    let plan = PingPlan {
        prefix: args.prefix.clone(),
        count: args.count,
        interval: args.interval,
        timeout: args.timeout,
        start: args.start.unwrap_or_else(|| forwarder::seed() >> 2),
        cached: args.cached,
    };
    // Truncation is meant: a nonce has 32 bits.
    let pinger = Pinger::new(plan, forwarder::seed() as u32, client.now());
    let mut app = Client {
        pinger,
        tell: !args.quiet && !args.json.json,
    };
    forwarder::drive(&mut client, &mut app, &stop, |app| app.pinger.is_over())?;
    let p = &app.pinger;
    let refused: u64 = p.nacks.values().sum();
    if args.json.json {
        output::json(&json!({
            "prefix": args.prefix.to_string(),
            "face": client.uri().to_string(),
            "sent": p.sent(),
            "received": p.rtt.count(),
            "nacked": refused,
            "nacks": p.nacks,
            "lost": p.lost,
            "rtt_ms": p.rtt.json(),
        }));
    } else {
        output::line(&format!(
            "{}: {} sent, {} received, {refused} refused, {} lost",
            args.prefix,
            p.sent(),
            p.rtt.count(),
            p.lost,
        ));
        if p.rtt.count() > 0 {
            output::line(&p.rtt.line());
        }
    }
    if p.rtt.count() > 0 || p.sent() == 0 {
        return Ok(());
    }
    let cause = if refused > 0 {
        format!(
            "every ping was refused ({})",
            p.nacks.keys().cloned().collect::<Vec<_>>().join(", ")
        )
    } else {
        String::from("no ping was answered")
    };
    Err(
        CliError::new(Exit::NoData, args.prefix.to_string(), cause).or(format!(
            "start a server with trunkline pingserver {}",
            args.prefix
        )),
    )
}

struct Client {
    pinger: Pinger,
    tell: bool,
}

impl Client {
    fn turn(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        while let Some(wire) = self.pinger.poll_interest(now) {
            match Interest::parse(wire) {
                Ok(interest) => out.push(NetPacket::interest(interest)),
                Err(error) => tracing::error!(%error, "ping Interest: encoding failed"),
            }
        }
        while let Some(echo) = self.pinger.poll_echo() {
            if self.tell {
                output::line(&match echo {
                    Echo::Answer(number, rtt) => format!("{number}: {:.3} ms", as_ms(rtt)),
                    Echo::Nack(number, reason, rtt) => {
                        format!("{number}: refused ({reason}) after {:.3} ms", as_ms(rtt))
                    }
                    Echo::Timeout(number) => format!("{number}: no answer"),
                });
            }
        }
    }
}

impl App for Client {
    fn on_packet(&mut self, now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        match packet.packet {
            NetKind::Data(data) => self.pinger.on_data(data.name()),
            NetKind::Nack { reason, interest } => self.pinger.on_nack(interest.name(), reason),
            NetKind::Interest(_) => {}
        }
        self.turn(now, out);
    }

    fn on_wake(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        self.turn(now, out);
    }

    fn deadline(&self) -> Option<Duration> {
        self.pinger.deadline()
    }

    fn on_deadline(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        self.pinger.on_deadline(now);
        self.turn(now, out);
    }
}
