//! `trunkline put`: serves a file under a name until it is stopped.

use std::time::Duration;

use ndn_io::{App, Client};
use ndn_packet::{Data, MAX_JUMBO_PACKET, MAX_PACKET, NackReason, NetKind, NetPacket};
use ndn_repo::now_us;
use serde_json::json;

use super::publication::Publication;
use super::source::Source;
use crate::args::PutArgs;
use crate::error::CliError;
use crate::forwarder::{self, Stop};
use crate::output;
use crate::serve::{Service, Wake};
use crate::units::show_size;

/// Runs `trunkline put`.
///
/// # Errors
/// A file or key that can't be read, a forwarder that can't be reached or refuses the prefix.
pub fn put(args: &PutArgs) -> Result<(), CliError> {
    let key = args.sign.load()?;
    let segment_bytes = segment_bytes(args)?;
    let source = Source::open(&args.file)?;
    let version = args.version.unwrap_or_else(now_us);
    let publication = Publication::new(
        args.name.clone(),
        version,
        segment_bytes,
        args.freshness,
        source,
        key,
    );
    let stop = Stop::on_signals()?;
    let segment = publication
        .largest()
        .map_err(|e| CliError::file(&args.file, &e))?;
    let facts = json!({
        "name": publication.object().to_string(),
        "versioned": publication.versioned().to_string(),
        "bytes": publication.size(),
        "segments": publication.segment_count(),
        "segment_size": segment_bytes,
    });
    let text = format!(
        "serving {} ({}, {} segments) until stopped",
        publication.versioned(),
        show_size(publication.size()),
        publication.segment_count(),
    );
    let json_wanted = args.json.json;
    let mut app = Putter {
        publication,
        failure: None,
    };
    let prefix = app.publication.object().clone();
    let registered = || {
        if json_wanted {
            output::json_line(&facts)
        } else {
            output::line(&text)
        }
    };
    let service = Service {
        face: &args.face,
        prefixes: std::slice::from_ref(&prefix),
        suits: &|client| check_size(args, segment, client),
        wake: Wake::default(),
    };
    service.run(registered, &mut app, &stop, |app| app.failure.is_some())?;
    let served = &app.publication;
    tracing::info!(
        segments = served.segments,
        bytes = served.bytes,
        unanswered = served.unanswered,
        "served"
    );
    match app.failure {
        Some(error) => {
            Err(CliError::file(&args.file, &error)
                .or("put it again: a new version gets a new name"))
        }
        None => Ok(()),
    }
}

fn segment_bytes(args: &PutArgs) -> Result<u32, CliError> {
    u32::try_from(args.segment_size)
        .ok()
        .filter(|n| (1..MAX_JUMBO_PACKET as u32).contains(n))
        .ok_or_else(|| {
            let thing = format!("--segment-size {}", args.segment_size);
            CliError::usage(thing, "is out of range").or("give 1 to 65000")
        })
}

/// Sees to it that segments pass the forwarder: what is too large would be dropped unseen.
fn check_size(args: &PutArgs, segment: usize, client: &mut Client) -> Result<(), CliError> {
    let most = if segment <= MAX_PACKET {
        return Ok(());
    } else if forwarder::agrees_to_jumbo(client)? {
        MAX_JUMBO_PACKET
    } else {
        MAX_PACKET
    };
    if segment <= most {
        return Ok(());
    }
    let cause = format!(
        "makes packets of {segment} bytes; the forwarder at {} takes {most}",
        client.uri()
    );
    let thing = format!("--segment-size {}", args.segment_size);
    Err(CliError::usage(thing, cause).or(format!("give {} less", segment - most)))
}

/// Answers Interests from a publication.
struct Putter {
    publication: Publication,
    failure: Option<std::io::Error>,
}

impl App for Putter {
    fn on_packet(&mut self, _now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        let token = packet.pit_token;
        let NetKind::Interest(interest) = packet.packet else {
            return;
        };
        let answer = match self.publication.answer(&interest) {
            Ok(answer) => answer,
            Err(error) => {
                self.failure = Some(error);
                return;
            }
        };
        match answer.map(Data::parse) {
            Some(Ok(data)) => out.push(NetPacket::data(data).with_pit_token(token)),
            Some(Err(error)) => {
                tracing::error!(%error, name = %interest.name(), "Data: encoding failed")
            }
            None => out.push(NetPacket::nack(NackReason::NoRoute, interest).with_pit_token(token)),
        }
    }
}
