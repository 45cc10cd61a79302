//! The repository's side of the protocol: commands in, responses and the Interests of insertions out. No socket, no clock.
//!
//! ```text
//!   command ── refused ───────────────────────────────────────────────▶ response
//!      └── taken ──▶ pending ── remembered, deleted, on the disk ──▶ response: done, or an insertion has begun
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use ndn_packet::{Data, Interest, NackReason, Name, NameRef, NetPacket, PitToken};
use redb::ReadableTable;

use super::command::{Command, Verb};
use super::disk_thread::{Deletion, DiskThread, Done, Job, Waker};
use super::ending::RefusalLog;
use super::insertion::{InsertLimits, Means, Process};
use super::message::{Parameters, Response, status};
use super::trust::{Believed, Refusal, Seen, Trust};
use crate::error::Result;
use crate::ids::random;
use crate::index::{COMMANDS, failed};
use crate::repo::Repo;

/// Commands that may wait for the disk; further ones are told to come back.
const MAX_PENDING: usize = 64;

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
///
/// What must wait for the disk is done by a thread of its own, and answered when it is durable: [`Server::poll_response`]
/// has an answer then, and whoever drives the server is woken to ask for it.
pub struct Server {
    repo: Repo,
    prefix: Name,
    means: Means,
    seen: Seen,
    processes: BTreeMap<u64, Process>,
    counters: CommandCounters,
    /// Commands that wait for the disk.
    pending: BTreeMap<u64, Pending>,
    next_command: u64,
    responses: VecDeque<NetPacket>,
}

/// A command that was taken and is not durable yet.
struct Pending {
    name: Name,
    token: Option<PitToken>,
    action: Action,
}

/// What is to be done once a command is durable.
enum Action {
    Insert(Parameters, ([u8; 32], Believed)),
    /// It is done with it.
    Delete(Parameters),
}

impl Server {
    /// Commands to `repo` come under `prefix`. Insertions that were not over when it ended last can be gone on with.
    /// `wake` is called, by other threads, when [`Server::on_wake`] is to be.
    ///
    /// # Errors
    /// What the index says; the system gives no thread.
    pub fn new(
        repo: Repo,
        prefix: Name,
        trust: Trust,
        limits: InsertLimits,
        wake: Waker,
    ) -> Result<Self> {
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
        let disk = DiskThread::start(&repo, MAX_PENDING + limits.max_running, wake)?;
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
            means: Means {
                trust,
                limits,
                disk,
                log: RefusalLog::default(),
            },
            seen,
            processes,
            counters: CommandCounters::default(),
            pending: BTreeMap::new(),
            next_command: 0,
            responses: VecDeque::new(),
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

    /// Takes an Interest if it is a command; `unix_ms` is the time of day. Its answer comes by [`Server::poll_response`], with
    /// `token`: at once, or once it is durable.
    pub fn on_interest(
        &mut self,
        now: Duration,
        unix_ms: u64,
        interest: &Interest,
        token: Option<PitToken>,
    ) -> bool {
        let Some(command) = Command::read(&self.prefix, interest) else {
            return false;
        };
        let name = interest.name();
        // Sent again, because its answer is late.
        if let Some(pending) = self.pending.values_mut().find(|p| p.name == name) {
            pending.token = token;
            return true;
        }
        let name = name.to_name().compact();
        let response = match command {
            Err(error) => {
                self.counters.malformed += 1;
                self.means
                    .log
                    .refused(now, status::MALFORMED, "command", Some(&name), &error);
                Some(Response::of(status::MALFORMED))
            }
            Ok(command) => self.on_command(now, unix_ms, &command, &name, token),
        };
        if let Some(response) = response {
            let wire = self.sign(&name, &response);
            self.respond(wire, token);
        }
        true
    }

    /// The next answer to send.
    pub fn poll_response(&mut self) -> Option<NetPacket> {
        self.responses.pop_front()
    }

    fn sign(&self, name: &Name, response: &Response) -> Bytes {
        Data::builder(name)
            .freshness(Duration::from_millis(1))
            .content(&response.encode())
            .sign(&*self.repo.inner.key)
    }

    fn respond(&mut self, wire: Bytes, token: Option<PitToken>) {
        match Data::parse(wire) {
            Ok(data) => self
                .responses
                .push_back(NetPacket::data(data).with_pit_token(token)),
            Err(error) => tracing::error!(%error, "a response to a command is malformed"),
        }
    }

    /// The response, where there is one already.
    fn on_command(
        &mut self,
        now: Duration,
        unix_ms: u64,
        command: &Command<'_>,
        name: &Name,
        token: Option<PitToken>,
    ) -> Option<Response> {
        let owner = match self.means.trust.authorize(command, &mut self.seen, unix_ms) {
            Ok(owner) => owner,
            Err(refusal) => {
                *match refusal {
                    Refusal::Unsigned => &mut self.counters.unsigned,
                    Refusal::WrongSignature => &mut self.counters.wrong_signature,
                    Refusal::Replayed => &mut self.counters.replayed,
                    Refusal::Forbidden => &mut self.counters.forbidden,
                } += 1;
                let why = match command.key_locator() {
                    Some(key) => format!("{refusal}; it names key {key}"),
                    None => refusal.to_string(),
                };
                let about = command.parameters.name.as_ref();
                let status = status::UNAUTHORIZED;
                self.means
                    .log
                    .refused(now, status, command.verb.command(), about, &why);
                return Some(Response::of(status));
            }
        };
        let parameters = &command.parameters;
        let refused = match (command.verb, &parameters.name) {
            (Verb::InsertCheck, _) => Some(self.check(&owner.0, parameters)),
            (Verb::Insert, Some(name)) => self.refuse_insert(now, name, parameters),
            (Verb::Delete, Some(_)) => refuse_delete(parameters),
            (_, None) => Some(Response::of(status::MALFORMED)),
        };
        let response = refused.or_else(|| {
            self.begin(
                now,
                command,
                owner,
                Pending::of(command, name, token, owner),
            )
        });
        match response {
            Some(Response {
                status: status::MALFORMED,
                ..
            }) => {
                self.counters.malformed += 1;
                let why = "its parameters do not say what to do";
                let about = parameters.name.as_ref();
                let verb = command.verb.command();
                self.means
                    .log
                    .refused(now, status::MALFORMED, verb, about, &why);
            }
            _ => self.counters.taken += 1,
        }
        response
    }

    /// Has the command made durable; then it is carried out. The response where that can't be begun.
    fn begin(
        &mut self,
        now: Duration,
        command: &Command<'_>,
        owner: ([u8; 32], Believed),
        pending: Pending,
    ) -> Option<Response> {
        let deletion = match &pending.action {
            Action::Insert(..) => None,
            Action::Delete(parameters) => Some(Deletion {
                name: parameters.name.clone().unwrap_or_default(),
                segments: segments(parameters),
            }),
        };
        let id = self.next_command;
        let job = Job::Command {
            id,
            key: owner.0,
            time_ms: command.time_ms().unwrap_or(0),
            deletion,
        };
        if self.pending.len() >= MAX_PENDING || !self.means.disk.push(job) {
            let why = format!("{} commands wait for the disk", self.pending.len());
            let about = command.parameters.name.as_ref();
            let verb = command.verb.command();
            self.means.log.refused(now, status::BUSY, verb, about, &why);
            return Some(Response::of(status::BUSY));
        }
        self.next_command += 1;
        self.pending.insert(id, pending);
        None
    }

    /// Takes what the disk has done: commands that were taken are answered, insertions are over.
    pub fn on_wake(&mut self, now: Duration) {
        while let Some(done) = self.means.disk.poll() {
            match done {
                Done::Command { id, deleted } => self.on_durable(now, id, deleted),
                Done::Commit { process, result } => {
                    if let Some(process) = self.processes.get_mut(&process) {
                        process.committed(now, result, &mut self.means.log);
                    }
                }
                Done::Resumed { process, result } => {
                    if let Some(process) = self.processes.get_mut(&process) {
                        process.resumed(now, result, &mut self.means);
                    }
                }
            }
        }
    }

    fn on_durable(&mut self, now: Duration, id: u64, deleted: Result<u64>) {
        let Some(pending) = self.pending.remove(&id) else {
            return;
        };
        let response = match (pending.action, deleted) {
            (Action::Insert(parameters, owner), Ok(_)) => self.insert(now, &parameters, owner),
            (Action::Delete(parameters), Ok(deleted)) => Response {
                process: parameters.process,
                start: segments(&parameters).map(|s| s.0),
                end: parameters.end,
                deleted: Some(deleted),
                ..Response::of(status::DONE)
            },
            (Action::Insert(parameters, _) | Action::Delete(parameters), Err(error)) => {
                let about = parameters.name.as_ref();
                self.means
                    .log
                    .refused(now, status::FAILED, "command", about, &error);
                Response {
                    process: parameters.process,
                    ..Response::of(status::FAILED)
                }
            }
        };
        let wire = self.sign(&pending.name, &response);
        self.respond(wire, pending.token);
    }

    /// The response to an insertion that can't be, whatever goes on.
    fn refuse_insert(
        &mut self,
        now: Duration,
        name: &Name,
        parameters: &Parameters,
    ) -> Option<Response> {
        let start = parameters.start.unwrap_or(0);
        if parameters.end.is_some_and(|end| start > end) || name.is_empty() {
            return Some(Response::of(status::MALFORMED));
        }
        let closed = self.means.limits.closed.as_ref();
        if closed.is_some_and(|closed| closed.is_prefix_of(name)) {
            let why = "what has this name is not served from this repository's folder";
            self.means
                .log
                .refused(now, status::FAILED, "insertion", Some(name), &why);
            return Some(Response::of(status::FAILED));
        }
        None
    }

    fn insert(
        &mut self,
        now: Duration,
        parameters: &Parameters,
        owner: ([u8; 32], Believed),
    ) -> Response {
        let Some(name) = &parameters.name else {
            return Response::of(status::MALFORMED);
        };
        let same = self
            .processes
            .iter()
            .find(|(_, process)| process.is_same(&owner.0, parameters))
            .map(|(id, process)| (*id, process.is_over()));
        if self.running() >= self.means.limits.max_running
            && same.is_none_or(|(_, is_over)| is_over)
        {
            let why = format!("{} insertions go on (insert.max_running)", self.running());
            self.means
                .log
                .refused(now, status::BUSY, "insertion", Some(name), &why);
            return Response::of(status::BUSY);
        }
        // Whoever was interrupted asks for the same again.
        if let Some(process) = same.and_then(|(id, _)| self.processes.get_mut(&id)) {
            process.go_on(now, owner.1, &mut self.means);
            return Response {
                status: status::BEGUN,
                ..process.response
            };
        }
        let id = random() >> 1;
        let process = Process::new(
            &self.repo,
            id,
            name,
            parameters,
            &self.means.limits,
            owner,
            now,
        );
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
        if suspended.count() > self.means.limits.max_running
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

    /// Whether an insertion waits for Data of this name.
    pub fn wants(&self, name: NameRef<'_>) -> bool {
        self.processes.values().any(|p| p.wants(name))
    }

    /// Takes Data that an insertion waits for; `marked` when its link-layer header bore a congestion mark.
    pub fn on_data(&mut self, now: Duration, data: &Data, marked: bool) {
        for process in self.processes.values_mut() {
            if process.wants(data.name()) {
                process.on_data(now, data.clone(), marked);
                process.turn(now, &mut self.means);
            }
        }
    }

    /// Takes a Nack for an insertion's Interest.
    pub fn on_nack(&mut self, now: Duration, interest: &Interest, reason: NackReason) {
        for process in self.processes.values_mut() {
            process.on_nack(now, interest, reason);
            process.turn(now, &mut self.means);
        }
    }

    /// The next Interest to send, if one may be sent now.
    pub fn poll_interest(&mut self, now: Duration) -> Option<NetPacket> {
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
            process.turn(now, &mut self.means);
        }
        let (limits, repo) = (&self.means.limits, &self.repo);
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

impl Pending {
    fn of(
        command: &Command<'_>,
        name: &Name,
        token: Option<PitToken>,
        owner: ([u8; 32], Believed),
    ) -> Self {
        let parameters = command.parameters.clone();
        Self {
            name: name.clone(),
            token,
            action: match command.verb {
                Verb::Delete => Action::Delete(parameters),
                _ => Action::Insert(parameters, owner),
            },
        }
    }
}

/// The segments that a deletion is about; `None` for a packet or all of a version.
fn segments(parameters: &Parameters) -> Option<(u64, u64)> {
    match (parameters.start, parameters.end) {
        (None, None) => None,
        (start, end) => Some((start.unwrap_or(0), end.unwrap_or(u64::MAX))),
    }
}

fn refuse_delete(parameters: &Parameters) -> Option<Response> {
    let is_backward = segments(parameters).is_some_and(|(start, end)| start > end);
    is_backward.then(|| Response::of(status::MALFORMED))
}
