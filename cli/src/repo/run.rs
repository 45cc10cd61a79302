//! `trunkline repo run`: a repository served by name until a signal ends it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::PoisonError;
use std::time::Duration;

use bytes::Bytes;
use ndn_io::App;
use ndn_packet::{Data, Interest, NackReason, NetKind, NetPacket, PitToken};
use ndn_repo::protocol::Server;
use ndn_repo::{RateLimit, Repo, RepoError, now_us};
use trunkline_store::{Location, Store};

use super::config::RepoConfig;
use super::control::ControlSocket;
use super::session::Counters;
use crate::error::CliError;
use crate::forwarder::Stop;
use crate::serve::{Service, Wake};
use crate::{fuse, logging, output};

/// Runs the repository, or only checks its configuration.
///
/// # Errors
/// A wrong configuration, a folder in use or damaged, no forwarder at the start.
pub fn run(
    path: &Path,
    http: Option<SocketAddr>,
    mount_at: Option<&Path>,
    store: Option<Location>,
    check: bool,
    verbose: u8,
) -> Result<(), CliError> {
    let mut config = RepoConfig::load(path)?;
    config.http.listen = http.or(config.http.listen);
    config.store.location = store.or(config.store.location.take());
    config.check_serving()?;
    if check {
        output::line(&format!("{}: configuration is valid", path.display()));
        return Ok(());
    }
    logging::start(verbose, &config.log);
    let stop = Stop::on_signals()?;
    let repo = config.open()?;
    let counters = Counters::default();
    let _control = ControlSocket::open(&config.control_socket(), &repo, &counters)?;
    let page = config
        .http
        .start(&repo, &config.serve, &config.load_key()?)?;
    let wake = Wake::default();
    let mut prefixes = config.serve.clone();
    let commands = match &config.name {
        None => None,
        Some(name) => {
            prefixes.push(name.clone());
            let trust = config.load_trust()?;
            let limits = config.insert_limits();
            let server = Server::new(repo.clone(), name.clone(), trust, limits, wake.caller());
            Some(server.map_err(|e| config.error(&e))?)
        }
    };
    let store = config.open_store(&repo, wake.caller())?;
    let mut app = Serving {
        repo,
        commands,
        store,
        counters,
        unread: RateLimit::default(),
    };
    let mounted = match mount_at.or(config.mount_at.as_deref()) {
        Some(at) => Some(fuse::start(
            &app.repo,
            &config.directory,
            at,
            &config.mount,
        )?),
        None => None,
    };
    let service = Service {
        face: &config.face,
        prefixes: &prefixes,
        suits: &|_| Ok(()),
        wake,
    };
    let names: Vec<String> = prefixes.iter().map(ToString::to_string).collect();
    let text = format!(
        "serving {} from {} until stopped",
        names.join(", "),
        config.directory.display()
    );
    let registered = || {
        output::line(&text);
        if let Some(page) = &page {
            output::line(&format!("page at http://{}/", page.address()));
        }
    };
    let served = service.run(registered, &mut app, &stop, |_| false);
    let unmounted = mounted.map_or(Ok(()), fuse::end);
    served.and(unmounted)
}

/// Answers Interests from the repository, and carries out commands.
struct Serving {
    repo: Repo,
    commands: Option<Server>,
    store: Option<Store>,
    counters: Counters,
    /// Of lines about what could not be read.
    unread: RateLimit,
}

impl Serving {
    fn on_interest(
        &mut self,
        now: Duration,
        interest: Interest,
        token: Option<PitToken>,
    ) -> Option<NetPacket> {
        if let Some(commands) = &mut self.commands
            && commands.on_interest(now, now_us() / 1000, &interest, token)
        {
            *self.counters.lock().unwrap_or_else(PoisonError::into_inner) = commands.counters();
            return None;
        }
        let answer = match self.repo.answer(&interest) {
            Ok(Some(wire)) => packet(wire, &interest),
            Ok(None) => Some(NetPacket::nack(NackReason::NoRoute, interest)),
            Err(error) => {
                if let Some(left_out) = self.unread.allows(now) {
                    tracing::error!(name = %interest.name(), %error, left_out, "Interest not answered");
                }
                match error {
                    // It may be whole in another repository.
                    RepoError::Damaged { .. } => {
                        Some(NetPacket::nack(NackReason::NoRoute, interest))
                    }
                    // It may be read another time.
                    _ => None,
                }
            }
        };
        answer.map(|answer| answer.with_pit_token(token))
    }

    /// Gives the store what is its own, and gives back what is not.
    fn offer_to_store(
        &mut self,
        now: Duration,
        packet: NetPacket,
        out: &mut Vec<NetPacket>,
    ) -> Option<NetPacket> {
        let marked = packet.is_marked();
        let Some(store) = &mut self.store else {
            return Some(packet);
        };
        let is_taken = match &packet.packet {
            NetKind::Interest(interest) if store.has(interest.name()) => {
                store.on_interest(now, interest.clone(), packet.pit_token, out);
                true
            }
            NetKind::Interest(_) => false,
            NetKind::Data(data) => store.on_data(now, data, marked, out),
            NetKind::Nack { reason, interest } => store.on_nack(now, interest, *reason, out),
        };
        (!is_taken).then_some(packet)
    }

    /// Sends what commands are answered, and the Interests of insertions.
    fn send(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        let Some(commands) = &mut self.commands else {
            return;
        };
        out.extend(std::iter::from_fn(|| commands.poll_response()));
        out.extend(std::iter::from_fn(|| commands.poll_interest(now)));
    }
}

fn packet(wire: Bytes, interest: &Interest) -> Option<NetPacket> {
    match Data::parse(wire) {
        Ok(data) => Some(NetPacket::data(data)),
        Err(error) => {
            tracing::error!(%error, name = %interest.name(), "answer is malformed");
            None
        }
    }
}

impl App for Serving {
    fn on_packet(&mut self, now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        let token = packet.pit_token;
        let marked = packet.is_marked();
        let Some(packet) = self.offer_to_store(now, packet, out) else {
            return;
        };
        match (packet.packet, &mut self.commands) {
            (NetKind::Interest(interest), _) => {
                out.extend(self.on_interest(now, interest, token));
            }
            (NetKind::Data(data), Some(commands)) => commands.on_data(now, &data, marked),
            (NetKind::Nack { reason, interest }, Some(commands)) => {
                commands.on_nack(now, &interest, reason);
            }
            (_, None) => {}
        }
        self.send(now, out);
    }

    fn on_wake(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        if let Some(commands) = &mut self.commands {
            commands.on_wake(now);
        }
        if let Some(store) = &mut self.store {
            store.on_wake(now, out);
        }
        self.send(now, out);
    }

    fn deadline(&self) -> Option<Duration> {
        self.commands.as_ref().and_then(Server::deadline)
    }

    fn on_deadline(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        if let Some(commands) = &mut self.commands {
            commands.on_deadline(now);
        }
        self.send(now, out);
    }
}
