//! One insertion: fetches what a command names, and keeps it when all of it is here.
//!
//! ```text
//!   Fetching ── all came, believed ──▶ Committing ── on the disk ──▶ Over(200)
//!      │                                   │
//!      │ stall, no end, not believed       │ disk
//!      └──────▶ Over(405, 406) ◀───────────┴──▶ Over(500)
//! ```
//! Where the producer stalled, what has come is not thrown away at once: the same command again goes on from there. Nor is
//! it where the repository ended: what was kept then is read and checked when the command comes again.

use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use bytes::Bytes;
use ndn_endpoint::{Consumer, ConsumerConfig, Exchange, ExchangeConfig, VerifyPolicy};
use ndn_packet::{Data, Interest, NackReason, Name, NameRef};

use super::message::{Parameters, Response, status};
use super::trust::{Believed, Trust};
use crate::error::RepoError;
use crate::packets::{Insertion, KeptInsertion};
use crate::repo::Repo;

/// Packets that may be on their way or not yet written.
const WINDOW_PACKETS: usize = 256;
/// How often it is looked whether the disk is done.
const LOOK_AT_DISK: Duration = Duration::from_millis(2);
/// How often a packet that is not believed is asked for again.
const MAX_REJECTS: u32 = 3;

/// Bounds of insertions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsertLimits {
    /// How long a producer may send nothing.
    pub stall: Duration,
    /// Bytes that an insertion may bring.
    pub max_bytes: u64,
    /// Insertions that may go on at once.
    pub max_running: usize,
    /// How long one that is over can be asked about.
    pub keep: Duration,
    /// How long one whose producer stalled can be gone on with; or that a restart has interrupted, from then on.
    pub resume: Duration,
    /// Under which name nothing is taken: what is there comes from elsewhere, and packets would never be asked for here.
    pub closed: Option<Name>,
}

impl Default for InsertLimits {
    fn default() -> Self {
        Self {
            stall: Duration::from_secs(10),
            max_bytes: 1 << 40,
            max_running: 16,
            keep: Duration::from_secs(60),
            resume: Duration::from_secs(600),
            closed: None,
        }
    }
}

/// An insertion.
pub(crate) struct Process {
    /// Whose it is.
    pub key: [u8; 32],
    pub response: Response,
    asked: Parameters,
    believed: Believed,
    phase: Phase,
    bytes: u64,
    rejects: u32,
    over_since: Option<Duration>,
}

enum Phase {
    Segments(Box<Consumer>, Insertion),
    Single(Box<Exchange>, Insertion),
    Committing(Receiver<Result<u64, RepoError>>, Duration),
    /// Over, but what has come is here.
    Suspended(Insertion),
    /// Not over when the repository ended last.
    Kept(KeptInsertion),
    /// What was kept is being read.
    Resuming(Receiver<Result<(Insertion, bool), RepoError>>, Duration),
    Over,
}

impl Process {
    /// Begins to fetch what the parameters name.
    pub fn new(
        repo: &Repo,
        id: u64,
        name: &Name,
        parameters: &Parameters,
        limits: &InsertLimits,
        owner: ([u8; 32], Believed),
        now: Duration,
    ) -> Self {
        let segmented = parameters.start.is_some() || parameters.end.is_some();
        let phase = if segmented {
            let first = parameters.start.unwrap_or(0);
            let config = segments_from(first, id, name, parameters, limits);
            let mut insertion = repo.insert(name, true);
            insertion.keep(&tag(&owner.0, parameters));
            Phase::Segments(Box::new(Consumer::new(config, now)), insertion)
        } else {
            let config = ExchangeConfig {
                timeout: limits.stall,
                verify: VerifyPolicy::None,
                seed: id,
                ..ExchangeConfig::new(name.clone())
            };
            let segment = name.last().and_then(|c| c.as_segment()).is_some();
            let insertion = match segment {
                true => repo.insert(&name.parent(), true),
                false => repo.insert(name, false),
            };
            Phase::Single(Box::new(Exchange::new(config, now)), insertion)
        };
        Self {
            key: owner.0,
            response: Response {
                process: Some(id),
                status: status::GOES_ON,
                start: segmented.then(|| parameters.start.unwrap_or(0)),
                end: parameters.end,
                inserted: Some(0),
                deleted: None,
            },
            asked: parameters.clone(),
            believed: owner.1,
            phase,
            bytes: 0,
            rejects: 0,
            over_since: None,
        }
    }

    /// One of before the last start; gives back what is not understood.
    pub fn kept(id: u64, kept: KeptInsertion) -> Result<Self, KeptInsertion> {
        let read = kept.tag.split_first_chunk().and_then(|(key, rest)| {
            let asked = Parameters::decode(rest).ok()?;
            asked.name.is_some().then_some((*key, asked))
        });
        let Some((key, asked)) = read else {
            return Err(kept);
        };
        Ok(Self {
            key,
            response: Response {
                process: Some(id),
                status: status::NO_END,
                start: Some(asked.start.unwrap_or(0)),
                end: asked.end,
                inserted: Some(0),
                deleted: None,
            },
            asked,
            // Who goes on with it says anew.
            believed: Believed::Signed,
            phase: Phase::Kept(kept),
            bytes: 0,
            rejects: 0,
            over_since: Some(Duration::ZERO),
        })
    }

    pub fn is_over(&self) -> bool {
        matches!(
            self.phase,
            Phase::Over | Phase::Suspended(_) | Phase::Kept(_)
        )
    }

    /// When it came to an end that can be gone on from.
    pub fn suspended_since(&self) -> Option<Duration> {
        matches!(self.phase, Phase::Suspended(_) | Phase::Kept(_)).then_some(self.over_since)?
    }

    /// Whether this key has asked for just this, and it goes on or can go on.
    pub fn is_same(&self, key: &[u8; 32], parameters: &Parameters) -> bool {
        let asked = |p: &Parameters| (p.name.clone(), p.start, p.end);
        !matches!(self.phase, Phase::Over)
            && self.key == *key
            && asked(&self.asked) == asked(parameters)
    }

    /// Fetches the rest, where the producer had stalled or the repository was started anew.
    pub fn go_on(&mut self, repo: &Repo, now: Duration, believed: Believed, limits: &InsertLimits) {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Suspended(insertion) => self.fetch_rest(now, insertion, limits),
            Phase::Kept(kept) => {
                self.believed = believed;
                self.resume(repo, now, kept);
            }
            other => {
                self.phase = other;
                return;
            }
        }
        self.response.end = self.asked.end;
        self.rejects = 0;
    }

    fn fetch_rest(&mut self, now: Duration, insertion: Insertion, limits: &InsertLimits) {
        let (Some(name), Some(id)) = (&self.asked.name, self.response.process) else {
            return;
        };
        let first = insertion.next_segment().max(self.asked.start.unwrap_or(0));
        let config = segments_from(first, id, name, &self.asked, limits);
        self.response.status = status::GOES_ON;
        self.response.inserted = Some(insertion.packets());
        self.over_since = None;
        self.phase = Phase::Segments(Box::new(Consumer::new(config, now)), insertion);
    }

    /// On a thread of its own: it reads all that has come.
    fn resume(&mut self, repo: &Repo, now: Duration, kept: KeptInsertion) {
        let (tell, done) = channel();
        let repo = repo.clone();
        let started = std::thread::Builder::new()
            .name(String::from("resume"))
            .spawn(move || {
                // Nobody listens any more where the repository ends.
                let _ = tell.send(kept.resume(&repo));
            });
        match started {
            Ok(_) => {
                self.response.status = status::GOES_ON;
                self.over_since = None;
                self.phase = Phase::Resuming(done, now + LOOK_AT_DISK);
            }
            Err(error) => {
                tracing::error!(%error, "an insertion can't be gone on with");
                self.end(now, status::FAILED);
            }
        }
    }

    /// What was kept is read.
    fn resumed(
        &mut self,
        now: Duration,
        insertion: Insertion,
        is_final: bool,
        limits: &InsertLimits,
    ) {
        tracing::info!(
            name = ?self.asked.name.as_ref().map(Name::to_string),
            packets = insertion.packets(),
            "an insertion goes on from before the start"
        );
        self.bytes = insertion.bytes();
        let next = insertion.next_segment();
        if is_final || self.asked.end.is_some_and(|end| next > end) {
            self.response.inserted = Some(insertion.packets());
            self.response.end = next.checked_sub(1);
            return self.commit(now, insertion);
        }
        self.fetch_rest(now, insertion, limits);
    }

    /// Throws away what has come.
    pub fn abandon(&mut self, repo: &Repo) {
        if !self.is_over() {
            return;
        }
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Suspended(insertion) => insertion.abandon(),
            Phase::Kept(kept) => kept.abandon(&repo.inner.packets),
            _ => {}
        }
    }

    /// Whether nobody needs to know of it any more.
    pub fn is_forgotten(&self, now: Duration, limits: &InsertLimits) -> bool {
        let keep = match self.phase {
            Phase::Suspended(_) | Phase::Kept(_) => limits.resume,
            _ => limits.keep,
        };
        self.over_since.is_some_and(|since| now >= since + keep)
    }

    pub fn wants(&self, name: NameRef<'_>) -> bool {
        match &self.phase {
            Phase::Segments(consumer, _) => consumer.wants(name),
            Phase::Single(exchange, insertion) => {
                exchange.result().is_none() && insertion.is_for(name)
            }
            Phase::Committing(..)
            | Phase::Resuming(..)
            | Phase::Suspended(_)
            | Phase::Kept(_)
            | Phase::Over => false,
        }
    }

    pub fn poll_interest(&mut self, now: Duration) -> Option<Bytes> {
        match &mut self.phase {
            Phase::Segments(consumer, _) => consumer.poll_interest(now),
            Phase::Single(exchange, _) => exchange.poll_interest(now),
            Phase::Committing(..)
            | Phase::Resuming(..)
            | Phase::Suspended(_)
            | Phase::Kept(_)
            | Phase::Over => None,
        }
    }

    pub fn on_data(&mut self, now: Duration, data: Data, marked: bool) {
        match &mut self.phase {
            Phase::Segments(consumer, _) => {
                consumer.on_data(now, data, marked);
            }
            Phase::Single(exchange, _) => {
                exchange.on_data(data);
            }
            Phase::Committing(..)
            | Phase::Resuming(..)
            | Phase::Suspended(_)
            | Phase::Kept(_)
            | Phase::Over => {}
        }
    }

    pub fn on_nack(&mut self, now: Duration, interest: &Interest, reason: NackReason) {
        match &mut self.phase {
            Phase::Segments(consumer, _) => consumer.on_nack(now, interest, reason),
            Phase::Single(exchange, _) => exchange.on_nack(now, interest, reason),
            Phase::Committing(..)
            | Phase::Resuming(..)
            | Phase::Suspended(_)
            | Phase::Kept(_)
            | Phase::Over => {}
        }
    }

    pub fn deadline(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Segments(consumer, _) => consumer.deadline(),
            Phase::Single(exchange, _) => exchange.deadline(),
            Phase::Committing(_, at) | Phase::Resuming(_, at) => Some(*at),
            Phase::Suspended(_) | Phase::Kept(_) | Phase::Over => None,
        }
    }

    pub fn on_deadline(&mut self, now: Duration) {
        match &mut self.phase {
            Phase::Segments(consumer, _) => consumer.on_deadline(now),
            Phase::Single(exchange, _) => exchange.on_deadline(now),
            Phase::Committing(..)
            | Phase::Resuming(..)
            | Phase::Suspended(_)
            | Phase::Kept(_)
            | Phase::Over => {}
        }
    }

    /// Moves on what can be moved on.
    pub fn turn(&mut self, now: Duration, trust: &Trust, limits: &InsertLimits) {
        match &mut self.phase {
            Phase::Segments(..) => self.read_segments(now, trust, limits),
            Phase::Single(..) => self.read_single(now, trust),
            Phase::Committing(done, look_at) => match done.try_recv() {
                Ok(Ok(_)) => self.end(now, status::DONE),
                Ok(Err(error)) => {
                    tracing::error!(%error, "an insertion was not kept");
                    self.end(now, status::FAILED);
                }
                Err(TryRecvError::Empty) => *look_at = now + LOOK_AT_DISK,
                Err(TryRecvError::Disconnected) => self.end(now, status::FAILED),
            },
            Phase::Resuming(done, look_at) => match done.try_recv() {
                Ok(Ok((insertion, is_final))) => self.resumed(now, insertion, is_final, limits),
                Ok(Err(error)) => {
                    tracing::error!(%error, "an insertion can't be gone on with");
                    self.end(now, status::FAILED);
                }
                Err(TryRecvError::Empty) => *look_at = now + LOOK_AT_DISK,
                Err(TryRecvError::Disconnected) => self.end(now, status::FAILED),
            },
            Phase::Suspended(_) | Phase::Kept(_) | Phase::Over => {}
        }
    }

    fn read_segments(&mut self, now: Duration, trust: &Trust, limits: &InsertLimits) {
        let Phase::Segments(consumer, insertion) = &mut self.phase else {
            return;
        };
        let mut over = None;
        while let Some((segment, data)) = consumer.read() {
            if !trust.believes(&self.key, self.believed, &data) {
                self.rejects += 1;
                if self.rejects > MAX_REJECTS || !consumer.reject(segment) {
                    over = Some(status::UNTRUSTED_DATA);
                    break;
                }
                continue;
            }
            self.bytes += data.wire().len() as u64;
            if self.bytes > limits.max_bytes {
                over = Some(status::NO_END);
                break;
            }
            if let Err(error) = insertion.push(&data) {
                tracing::error!(%error, "an insertion can't be kept");
                over = Some(status::FAILED);
                break;
            }
        }
        self.response.inserted = Some(insertion.packets());
        if let Some(last) = consumer.last() {
            self.response.end = Some(last);
        }
        if over.is_none() && consumer.failure().is_some() {
            tracing::info!(reason = ?consumer.failure(), "an insertion came to no end");
            return self.suspend(now);
        }
        match over {
            Some(code) => self.end(now, code),
            None if consumer.is_done() => self.commit_taken(now),
            None => {}
        }
    }

    fn read_single(&mut self, now: Duration, trust: &Trust) {
        let Phase::Single(exchange, insertion) = &mut self.phase else {
            return;
        };
        let over = match exchange.result() {
            None => return,
            Some(Err(_)) => Some(status::NO_END),
            Some(Ok(data)) if !trust.believes(&self.key, self.believed, data) => {
                Some(status::UNTRUSTED_DATA)
            }
            Some(Ok(data)) => match insertion.push(data) {
                Ok(()) => None,
                Err(error) => {
                    tracing::error!(%error, "an insertion can't be kept");
                    Some(status::FAILED)
                }
            },
        };
        self.response.inserted = Some(insertion.packets());
        match over {
            Some(code) => self.end(now, code),
            None => self.commit_taken(now),
        }
    }

    fn commit_taken(&mut self, now: Duration) {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Segments(_, insertion) | Phase::Single(_, insertion) => {
                self.commit(now, insertion);
            }
            other => self.phase = other,
        }
    }

    /// On a thread of its own: it waits for the disk.
    fn commit(&mut self, now: Duration, insertion: Insertion) {
        let (tell, done) = channel();
        self.phase = Phase::Committing(done, now + LOOK_AT_DISK);
        let started = std::thread::Builder::new()
            .name(String::from("commit"))
            .spawn(move || {
                // Nobody listens any more where the repository ends.
                let _ = tell.send(insertion.commit());
            });
        if let Err(error) = started {
            tracing::error!(%error, "an insertion can't be kept");
            self.end(now, status::FAILED);
        }
    }

    fn end(&mut self, now: Duration, code: u64) {
        self.response.status = code;
        self.over_since = Some(now);
        if let Phase::Segments(_, insertion) = std::mem::replace(&mut self.phase, Phase::Over) {
            insertion.abandon();
        }
    }

    /// The producer sends no more.
    fn suspend(&mut self, now: Duration) {
        let insertion = match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Segments(_, insertion) if insertion.packets() > 0 => Some(insertion),
            _ => None,
        };
        self.end(now, status::NO_END);
        if let Some(insertion) = insertion {
            self.phase = Phase::Suspended(insertion);
        }
    }
}

/// Whose an insertion is and what was asked for, as it is kept.
fn tag(key: &[u8; 32], asked: &Parameters) -> Vec<u8> {
    [&key[..], &asked.encode()].concat()
}

/// How segments are fetched from `first` on.
fn segments_from(
    first: u64,
    seed: u64,
    name: &Name,
    parameters: &Parameters,
    limits: &InsertLimits,
) -> ConsumerConfig {
    let lifetime = parameters.lifetime_ms.map_or(Duration::from_secs(4), |ms| {
        Duration::from_millis(ms.clamp(100, 60_000))
    });
    ConsumerConfig {
        first,
        last: parameters.end,
        interest_lifetime: lifetime,
        give_up_after: limits.stall,
        max_buffered_segments: WINDOW_PACKETS,
        verify: VerifyPolicy::None,
        seed,
        ..ConsumerConfig::new(name.clone())
    }
}
