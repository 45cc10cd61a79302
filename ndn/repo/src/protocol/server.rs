//! The repository's side of the protocol: commands in, responses and the Interests of insertions out. No socket, no clock.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use ndn_packet::{Data, Interest, NackReason, Name, NameRef};
use redb::ReadableTable;

use super::command::{Command, Verb};
use super::insertion::{InsertLimits, Process};
use super::message::{Parameters, Response, status};
use super::trust::{Believed, Refusal, Seen, Trust};
use crate::error::Result;
use crate::index::{COMMANDS, Kept, failed};
use crate::inner::random;
use crate::repo::Repo;

/// Commands so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommandCounters {
    /// Taken.
    pub taken: u64,
    /// Refused: nobody has signed them.
    pub unsigned: u64,
    /// Refused: signed by no trusted key.
    pub wrong_signature: u64,
    /// Refused: seen before, or of another time.
    pub replayed: u64,
    /// Refused: the key may not do that there.
    pub forbidden: u64,
    /// Not understood.
    pub malformed: u64,
}

/// Carries out the commands that come to one repository under one prefix.
pub struct Server {
    repo: Repo,
    prefix: Name,
    trust: Trust,
    limits: InsertLimits,
    seen: Seen,
    processes: BTreeMap<u64, Process>,
    counters: CommandCounters,
}

impl Server {
    /// Commands to `repo` come under `prefix`. Insertions that were not over when it ended last can be gone on with.
    ///
    /// # Errors
    /// What the index says.
    pub fn new(repo: Repo, prefix: Name, trust: Trust, limits: InsertLimits) -> Result<Self> {
        let mut seen = Seen::default();
        {
            let tx = repo.inner.index.read()?;
            let table = tx.open_table(COMMANDS).map_err(failed)?;
            for row in table.iter().map_err(failed)? {
                let (key, time) = row.map_err(failed)?;
                if let Ok(key) = key.value().try_into() {
                    seen.restore(key, time.value());
                }
            }
        }
        let mut processes = BTreeMap::new();
        for kept in repo.take_kept() {
            let id = random() >> 1;
            match Process::kept(id, kept) {
                Ok(process) => {
                    processes.insert(id, process);
                }
                Err(kept) => kept.abandon(&repo.inner.packets),
            }
        }
        Ok(Self {
            repo,
            prefix,
            trust,
            limits,
            seen,
            processes,
            counters: CommandCounters::default(),
        })
    }

    /// Commands so far.
    pub fn counters(&self) -> CommandCounters {
        self.counters
    }

    /// Insertions that go on.
    pub fn running(&self) -> usize {
        self.processes.values().filter(|p| !p.is_over()).count()
    }

    /// Takes an Interest if it is a command, and gives the Data that responds to it; `unix_ms` is the time of day.
    pub fn on_interest(
        &mut self,
        now: Duration,
        unix_ms: u64,
        interest: &Interest,
    ) -> Option<Bytes> {
        let response = match Command::read(&self.prefix, interest)? {
            Err(error) => {
                tracing::info!(name = %interest.name(), %error, "a command that is not understood");
                self.counters.malformed += 1;
                Response::of(status::MALFORMED)
            }
            Ok(command) => self.on_command(now, unix_ms, &command),
        };
        let name = interest.name().to_name();
        let wire = Data::builder(&name)
            .freshness(Duration::from_millis(1))
            .content(&response.encode())
            .sign(&*self.repo.inner.key);
        Some(wire)
    }

    fn on_command(&mut self, now: Duration, unix_ms: u64, command: &Command<'_>) -> Response {
        let owner = match self.trust.authorize(command, &mut self.seen, unix_ms) {
            Ok(owner) => owner,
            Err(refusal) => {
                *match refusal {
                    Refusal::Unsigned => &mut self.counters.unsigned,
                    Refusal::WrongSignature => &mut self.counters.wrong_signature,
                    Refusal::Replayed => &mut self.counters.replayed,
                    Refusal::Forbidden => &mut self.counters.forbidden,
                } += 1;
                tracing::warn!(?refusal, verb = ?command.verb, "a command was refused");
                return Response::of(status::UNAUTHORIZED);
            }
        };
        if command.verb != Verb::InsertCheck
            && let Err(error) = self.remember(&owner.0, command.time_ms().unwrap_or(0))
        {
            tracing::error!(%error, "a command can't be carried out");
            return Response::of(status::FAILED);
        }
        let parameters = &command.parameters;
        let response = match (command.verb, &parameters.name) {
            (Verb::InsertCheck, _) => self.check(&owner.0, parameters),
            (Verb::Insert, Some(name)) => self.insert(now, name, parameters, owner),
            (Verb::Delete, Some(name)) => self.delete(name, parameters),
            (_, None) => Response::of(status::MALFORMED),
        };
        match response.status {
            status::MALFORMED => self.counters.malformed += 1,
            _ => self.counters.taken += 1,
        }
        response
    }

    /// A restart must not make an old command new.
    fn remember(&self, key: &[u8; 32], time_ms: u64) -> Result<()> {
        self.repo.inner.index.change(Kept::Durably, |tx| {
            let mut table = tx.open_table(COMMANDS).map_err(failed)?;
            let before = table.get(&key[..]).map_err(failed)?.map(|t| t.value());
            if before.is_none_or(|before| before < time_ms) {
                table.insert(&key[..], time_ms).map_err(failed)?;
            }
            Ok(())
        })
    }

    fn insert(
        &mut self,
        now: Duration,
        name: &Name,
        parameters: &Parameters,
        owner: ([u8; 32], Believed),
    ) -> Response {
        let start = parameters.start.unwrap_or(0);
        if parameters.end.is_some_and(|end| start > end) || name.is_empty() {
            return Response::of(status::MALFORMED);
        }
        if self
            .limits
            .closed
            .as_ref()
            .is_some_and(|closed| closed.is_prefix_of(name))
        {
            tracing::error!(%name, "not inserted: what has this name is not served from this repository's folder");
            return Response::of(status::FAILED);
        }
        let same = self
            .processes
            .iter()
            .find(|(_, process)| process.is_same(&owner.0, parameters))
            .map(|(id, process)| (*id, process.is_over()));
        if self.running() >= self.limits.max_running && same.is_none_or(|(_, is_over)| is_over) {
            return Response::of(status::BUSY);
        }
        // Whoever was interrupted asks for the same again.
        if let Some(process) = same.and_then(|(id, _)| self.processes.get_mut(&id)) {
            process.go_on(&self.repo, now, owner.1, &self.limits);
            return Response {
                status: status::BEGUN,
                ..process.response
            };
        }
        let id = random() >> 1;
        let process = Process::new(&self.repo, id, name, parameters, &self.limits, owner, now);
        let response = Response {
            status: status::BEGUN,
            ..process.response
        };
        self.processes.insert(id, process);
        response
    }

    /// No more wait to be gone on with than may run at once: they take room in the logs.
    fn abandon_oldest(&mut self) {
        let suspended = self.processes.values().filter_map(Process::suspended_since);
        if suspended.count() > self.limits.max_running
            && let Some(oldest) = self
                .processes
                .values_mut()
                .filter(|p| p.suspended_since().is_some())
                .min_by_key(|p| p.suspended_since())
        {
            oldest.abandon(&self.repo);
        }
    }

    fn check(&self, key: &[u8; 32], parameters: &Parameters) -> Response {
        let Some(id) = parameters.process else {
            return Response::of(status::MALFORMED);
        };
        match self.processes.get(&id).filter(|p| p.key == *key) {
            Some(process) => process.response,
            None => Response {
                process: Some(id),
                ..Response::of(status::NO_SUCH_PROCESS)
            },
        }
    }

    fn delete(&self, name: &Name, parameters: &Parameters) -> Response {
        let segments = match (parameters.start, parameters.end) {
            (None, None) => None,
            (start, end) => Some((start.unwrap_or(0), end.unwrap_or(u64::MAX))),
        };
        if segments.is_some_and(|(start, end)| start > end) {
            return Response::of(status::MALFORMED);
        }
        let version = name.last().and_then(|c| c.as_version());
        let removed = match version {
            // A version of a file goes as a whole.
            Some(version) if segments.is_none_or(|s| s == (0, u64::MAX)) => self
                .repo
                .remove(&[(name.parent(), version)])
                .and_then(|files| match files {
                    0 => self.repo.remove_packets(name, segments),
                    files => Ok(files),
                }),
            _ => self.repo.remove_packets(name, segments),
        };
        match removed {
            Ok(removed) => Response {
                process: parameters.process,
                start: segments.map(|s| s.0),
                end: parameters.end,
                deleted: Some(removed),
                ..Response::of(status::DONE)
            },
            Err(error) => {
                tracing::error!(%error, %name, "not deleted");
                Response {
                    process: parameters.process,
                    ..Response::of(status::FAILED)
                }
            }
        }
    }

    /// Whether an insertion waits for Data of this name.
    pub fn wants(&self, name: NameRef<'_>) -> bool {
        self.processes.values().any(|p| p.wants(name))
    }

    /// Takes Data that an insertion waits for; `marked` when its link-layer header bore a congestion mark.
    pub fn on_data(&mut self, now: Duration, data: &Data, marked: bool) {
        for process in self.processes.values_mut() {
            if process.wants(data.name()) {
                process.on_data(now, data.clone(), marked);
                process.turn(now, &self.trust, &self.limits);
            }
        }
    }

    /// Takes a Nack for an insertion's Interest.
    pub fn on_nack(&mut self, now: Duration, interest: &Interest, reason: NackReason) {
        for process in self.processes.values_mut() {
            process.on_nack(now, interest, reason);
            process.turn(now, &self.trust, &self.limits);
        }
    }

    /// The next Interest to send, if one may be sent now.
    pub fn poll_interest(&mut self, now: Duration) -> Option<Bytes> {
        self.processes
            .values_mut()
            .find_map(|process| process.poll_interest(now))
    }

    /// When [`Server::on_deadline`] is to be called.
    pub fn deadline(&self) -> Option<Duration> {
        self.processes.values().filter_map(Process::deadline).min()
    }

    /// Time has passed.
    pub fn on_deadline(&mut self, now: Duration) {
        for process in self.processes.values_mut() {
            if process.deadline().is_some_and(|at| at <= now) {
                process.on_deadline(now);
            }
            process.turn(now, &self.trust, &self.limits);
        }
        let (limits, repo) = (&self.limits, &self.repo);
        self.processes.retain(|_, process| {
            let is_forgotten = process.is_forgotten(now, limits);
            if is_forgotten {
                process.abandon(repo);
            }
            !is_forgotten
        });
        self.abandon_oldest();
    }
}
