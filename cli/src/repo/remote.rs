//! Commands to a repository elsewhere, by the repo protocol: it fetches what is put from here.

use std::time::Duration;

use ndn_endpoint::VerifyPolicy;
use ndn_io::{App, Client};
use ndn_packet::{Data, Interest, NackReason, Name, NetKind, NetPacket, SigningKey};
use ndn_repo::now_us;
use ndn_repo::protocol::{Parameters, Response, Verb, command, status};
use serde_json::json;

use crate::args::{PutFileArgs, RmArgs, ToArgs};
use crate::error::{CliError, Exit};
use crate::forwarder::{self, Stop};
use crate::output;
use crate::transfer::progress::Progress;
use crate::transfer::{Publication, Source};
use crate::units::show_size;

/// How long a response is waited for before the command is sent anew.
const WAIT: Duration = Duration::from_secs(2);
/// How often a command is sent.
const TRIES: u32 = 5;
/// How often an answer that is not the repository's is tolerated.
const FORGED: u32 = 3;
/// How often an insertion that came to no end, or that the repository has forgotten, is begun again.
const RESTARTS: u32 = 2;
/// Time until then.
const RESTART_AFTER: Duration = Duration::from_secs(1);
/// Time from one check to the next.
const CHECK_EVERY: Duration = Duration::from_millis(100);
/// How long caches may call a segment fresh.
const FRESHNESS: Duration = Duration::from_secs(10);
/// Bytes of content in a segment, where nothing else is said.
const SEGMENT_BYTES: u64 = 8000;

/// A repository elsewhere, the key that it knows, and the one it is known by.
struct Remote {
    prefix: Name,
    key: SigningKey,
    owner: VerifyPolicy,
}

impl Remote {
    fn open(to: &ToArgs) -> Result<Option<Self>, CliError> {
        let (Some(prefix), Some(sign)) = (&to.to, &to.sign) else {
            return Ok(None);
        };
        let key = sign.load()?;
        let owner = match &to.verify {
            Some(how) => how.load()?,
            None => VerifyPolicy::Signed(key.verifier()),
        };
        Ok(Some(Self {
            prefix: prefix.clone(),
            key,
            owner,
        }))
    }

    /// What the repository says, if it is the repository that says it.
    fn response(&self, data: &Data) -> Option<Result<Response, CliError>> {
        self.owner.holds(data).then(|| {
            Response::decode(data.content_slice())
                .map_err(|e| CliError::failed(data.name().to_string(), e))
        })
    }

    fn forged(&self) -> CliError {
        CliError::new(
            Exit::Unverified,
            format!("repository {}", self.prefix),
            "its answers are signed by another key than is expected",
        )
        .or("give its owner's public key: --verify FILE")
    }

    fn command(&self, verb: Verb, parameters: &Parameters) -> Result<Interest, CliError> {
        let time_ms = now_us() / 1000;
        let nonce = forwarder::seed();
        let wire = command(&self.prefix, verb, parameters, &self.key, time_ms, nonce);
        Interest::parse(wire).map_err(|e| CliError::failed("command", e))
    }

    /// What a response means that is not the one hoped for.
    fn refusal(&self, response: &Response) -> CliError {
        let thing = format!("repository {}", self.prefix);
        let (cause, way_out) = match response.status {
            status::UNAUTHORIZED => (
                "the command is refused: its key may not do this, or this host's clock is wrong",
                "have the key added to the repository's trust policy",
            ),
            status::MALFORMED => (
                "does not understand the command",
                "see whether it speaks the repo protocol",
            ),
            status::NO_SUCH_PROCESS => ("does not know of this insertion any more", "put it again"),
            status::NO_END => (
                "did not get all of it",
                "see whether the forwarders lead to this host, and put it again",
            ),
            status::UNTRUSTED_DATA => (
                "does not believe the packets",
                "see `data` in its trust policy",
            ),
            status::BUSY => ("has too many insertions", "try again later"),
            status::FAILED => (
                "can't keep it",
                "see its log, whether its disk is full, and whether a cluster has this name there",
            ),
            _ => ("gives a status that is not known", "see its log"),
        };
        CliError::failed(thing, format!("{cause} (status {})", response.status)).or(way_out)
    }

    fn silence(&self) -> CliError {
        CliError::new(
            Exit::NoData,
            format!("repository {}", self.prefix),
            "no answer",
        )
        .or("see whether it runs, and whether the forwarders lead there")
    }
}

/// Puts a file into a repository elsewhere; false where none is named.
///
/// # Errors
/// A source that can't be read, or why the repository does not have it.
pub fn put(args: &PutFileArgs) -> Result<bool, CliError> {
    let Some(remote) = Remote::open(&args.to)? else {
        return Ok(false);
    };
    let segment_bytes = u32::try_from(args.segment_size.unwrap_or(SEGMENT_BYTES))
        .ok()
        .filter(|n| (1..=8000).contains(n))
        .ok_or_else(|| {
            let thing = format!("--segment-size {}", args.segment_size.unwrap_or(0));
            CliError::usage(thing, "is out of range").or("give 1 to 8000")
        })?;
    let source = Source::open(&args.source)?;
    let version = args.version.unwrap_or_else(now_us);
    let publication = Publication::new(
        args.name.clone(),
        version,
        segment_bytes,
        FRESHNESS,
        source,
        SigningKey::DigestSha256,
    );
    let stop = Stop::on_signals()?;
    let mut client = forwarder::connect(&args.to.face)?;
    let uri = client.uri().clone();
    client
        .register(publication.versioned())
        .map_err(|e| forwarder::client_error(&uri, &e))?;
    let size = publication.size();
    let parameters = Parameters {
        name: Some(publication.versioned().clone()),
        start: Some(0),
        end: Some(publication.segment_count() - 1),
        ..Parameters::default()
    };
    let mut app = Inserting {
        remote,
        publication,
        verb: Verb::Insert,
        whole: parameters.clone(),
        parameters,
        asked: None,
        tries: 0,
        forged: 0,
        restarts: 0,
        ask_at: Some(Duration::ZERO),
        progress: Progress::new(Some(size), args.quiet),
        segment_bytes: u64::from(segment_bytes),
        over: None,
    };
    let driven = forwarder::drive(&mut client, &mut app, &stop, |app| app.over.is_some());
    app.progress.finish();
    driven?;
    match app.over {
        Some(Ok(())) => {}
        Some(Err(error)) => return Err(error),
        None => {
            return Err(CliError::new(
                Exit::Interrupted,
                args.name.to_string(),
                "interrupted before it was complete",
            )
            .or(format!(
                "run the same command with --version {version} to resume"
            )));
        }
    }
    let versioned = app.publication.versioned();
    if args.local.json.json {
        output::json(&json!({
            "versioned": versioned.to_string(),
            "bytes": size,
            "segments": app.publication.segment_count(),
            "repository": app.remote.prefix.to_string(),
        }));
    } else {
        output::line(&format!(
            "{versioned} ({}, {} segments) is in {}",
            show_size(size),
            app.publication.segment_count(),
            app.remote.prefix
        ));
    }
    Ok(true)
}

/// Removes a version from a repository elsewhere; false where none is named.
///
/// # Errors
/// Why it is still there.
pub fn rm(args: &RmArgs) -> Result<bool, CliError> {
    let Some(remote) = Remote::open(&args.to)? else {
        return Ok(false);
    };
    let Some(version) = args.version else {
        return Err(CliError::usage(
            "--to",
            "a version is needed to remove from a repository elsewhere",
        )
        .or("add --version N"));
    };
    let parameters = Parameters {
        name: Some(args.name.append_version(version)),
        start: Some(0),
        end: Some(u64::MAX),
        process: Some(forwarder::seed()),
        ..Parameters::default()
    };
    let mut client = forwarder::connect(&args.to.face)?;
    let response = ask(&mut client, &remote, Verb::Delete, &parameters)?;
    if response.status != status::DONE {
        return Err(remote.refusal(&response));
    }
    let deleted = response.deleted.unwrap_or(0);
    if deleted == 0 {
        return Err(CliError::new(
            Exit::NoData,
            args.name.append_version(version).to_string(),
            format!("not in {}", remote.prefix),
        ));
    }
    if args.local.json.json {
        output::json(&json!({ "removed": deleted }));
    } else {
        output::line(&format!("{deleted} removed"));
    }
    Ok(true)
}

fn ask(
    client: &mut Client,
    remote: &Remote,
    verb: Verb,
    parameters: &Parameters,
) -> Result<Response, CliError> {
    let uri = client.uri().clone();
    let mut forged = 0;
    for _ in 0..TRIES {
        let answer = client
            .ask(remote.command(verb, parameters)?, WAIT)
            .map_err(|e| forwarder::client_error(&uri, &e))?;
        if let Some(NetKind::Data(data)) = answer.map(|packet| packet.packet) {
            match remote.response(&data) {
                Some(response) => return response,
                None => forged += 1,
            }
        }
    }
    Err(match forged {
        0 => remote.silence(),
        _ => remote.forged(),
    })
}

/// Serves a publication while a repository fetches it, and asks how far it is.
struct Inserting {
    remote: Remote,
    publication: Publication,
    verb: Verb,
    /// Of the insertion.
    whole: Parameters,
    /// Of the next command.
    parameters: Parameters,
    /// The command that is not answered yet.
    asked: Option<Interest>,
    tries: u32,
    /// Answers that were not the repository's.
    forged: u32,
    restarts: u32,
    ask_at: Option<Duration>,
    progress: Progress,
    segment_bytes: u64,
    over: Option<Result<(), CliError>>,
}

impl Inserting {
    fn ask(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        if self.asked.take().is_some() {
            self.tries += 1;
        }
        if self.tries >= TRIES {
            self.over = Some(Err(self.remote.silence()));
            return;
        }
        match self.remote.command(self.verb, &self.parameters) {
            Ok(interest) => {
                out.push(NetPacket::interest(interest.clone()));
                self.asked = Some(interest);
                self.ask_at = Some(now + WAIT);
            }
            Err(error) => self.over = Some(Err(error)),
        }
    }

    fn on_response(&mut self, now: Duration, data: &Data) {
        let response = match self.remote.response(data) {
            Some(Ok(response)) => response,
            Some(Err(error)) => {
                self.over = Some(Err(error));
                return;
            }
            None => {
                self.forged += 1;
                if self.forged >= FORGED {
                    self.over = Some(Err(self.remote.forged()));
                }
                self.ask_at = Some(now);
                return;
            }
        };
        self.asked = None;
        self.tries = 0;
        self.ask_at = Some(now + CHECK_EVERY);
        match response.status {
            status::BEGUN => {
                self.verb = Verb::InsertCheck;
                self.parameters = Parameters {
                    name: self.parameters.name.take(),
                    process: response.process,
                    ..Parameters::default()
                };
            }
            status::GOES_ON => {
                let segments = response.inserted.unwrap_or(0);
                self.progress.set(segments * self.segment_bytes);
            }
            status::DONE => self.over = Some(Ok(())),
            // What has come to the repository is still there, or it was started anew in between.
            status::NO_END | status::NO_SUCH_PROCESS if self.restarts < RESTARTS => {
                self.restarts += 1;
                self.verb = Verb::Insert;
                self.parameters = self.whole.clone();
                self.ask_at = Some(now + RESTART_AFTER);
            }
            _ => self.over = Some(Err(self.remote.refusal(&response))),
        }
    }

    fn serve(&mut self, interest: Interest) -> Option<NetPacket> {
        match self.publication.answer(&interest) {
            Ok(Some(wire)) => Data::parse(wire).ok().map(NetPacket::data),
            Ok(None) => Some(NetPacket::nack(NackReason::NoRoute, interest)),
            Err(error) => {
                self.over = Some(Err(CliError::failed(
                    self.publication.object().to_string(),
                    error,
                )));
                None
            }
        }
    }
}

impl App for Inserting {
    fn on_packet(&mut self, now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        let token = packet.pit_token;
        match packet.packet {
            NetKind::Interest(interest) => {
                out.extend(self.serve(interest).map(|p| p.with_pit_token(token)));
            }
            NetKind::Data(data) => {
                let is_answer = self
                    .asked
                    .as_ref()
                    .is_some_and(|interest| interest.name() == data.name());
                if is_answer {
                    self.on_response(now, &data);
                }
            }
            // It is sent anew when the time is over.
            NetKind::Nack { .. } => {}
        }
    }

    fn on_wake(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        self.ask(now, out);
    }

    fn deadline(&self) -> Option<Duration> {
        self.ask_at
    }

    fn on_deadline(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        if self.ask_at.is_some_and(|at| at <= now) {
            self.ask(now, out);
        }
    }
}
