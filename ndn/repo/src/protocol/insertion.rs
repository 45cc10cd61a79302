//! One insertion: fetches what a command names, and keeps it when all of it is here.
//!
//! ```text
//!   Fetching ── all came, believed ──▶ Committing ── on the disk ──▶ Over(200)
//!      │                                   │
//!      │ stall, no end, not believed       │ disk
//!      └──────▶ Over(405, 406) ◀───────────┴──▶ Over(500)
//! ```
//! Where the producer stalled, what has come is not thrown away at once: the same command again goes on from there.

use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use bytes::Bytes;
use ndn_endpoint::{Consumer, ConsumerConfig, Exchange, ExchangeConfig, VerifyPolicy};
use ndn_packet::{Data, Interest, NackReason, Name, NameRef};

use super::message::{Parameters, Response, status};
use super::trust::{Believed, Trust};
use crate::error::RepoError;
use crate::packets::Insertion;
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
    /// How long one whose producer stalled can be gone on with.
    pub resume: Duration,
}

impl Default for InsertLimits {
    fn default() -> Self {
        Self {
            stall: Duration::from_secs(10),
            max_bytes: 1 << 40,
            max_running: 16,
            keep: Duration::from_secs(60),
            resume: Duration::from_secs(600),
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
            Phase::Segments(
                Box::new(Consumer::new(config, now)),
                repo.insert(name, true),
            )
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

    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over | Phase::Suspended(_))
    }

    /// When it came to an end that can be gone on from.
    pub fn suspended_since(&self) -> Option<Duration> {
        matches!(self.phase, Phase::Suspended(_)).then_some(self.over_since)?
    }

    /// Whether this key has asked for just this, and it goes on or can go on.
    pub fn is_same(&self, key: &[u8; 32], parameters: &Parameters) -> bool {
        let asked = |p: &Parameters| (p.name.clone(), p.start, p.end);
        !matches!(self.phase, Phase::Over)
            && self.key == *key
            && asked(&self.asked) == asked(parameters)
    }

    /// Fetches the rest, where the producer had stalled.
    pub fn go_on(&mut self, now: Duration, limits: &InsertLimits) {
        let (Some(name), Some(id)) = (&self.asked.name, self.response.process) else {
            return;
        };
        self.phase = match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Suspended(insertion) => {
                let first = insertion.next_segment().max(self.asked.start.unwrap_or(0));
                let config = segments_from(first, id, name, &self.asked, limits);
                self.response.status = status::GOES_ON;
                self.response.end = self.asked.end;
                self.over_since = None;
                self.rejects = 0;
                Phase::Segments(Box::new(Consumer::new(config, now)), insertion)
            }
            other => other,
        };
    }

    /// Throws away what has come.
    pub fn abandon(&mut self) {
        if self.is_over() {
            self.phase = Phase::Over;
        }
    }

    /// Whether nobody needs to know of it any more.
    pub fn is_forgotten(&self, now: Duration, limits: &InsertLimits) -> bool {
        let keep = match self.phase {
            Phase::Suspended(_) => limits.resume,
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
            Phase::Committing(..) | Phase::Suspended(_) | Phase::Over => false,
        }
    }

    pub fn poll_interest(&mut self, now: Duration) -> Option<Bytes> {
        match &mut self.phase {
            Phase::Segments(consumer, _) => consumer.poll_interest(now),
            Phase::Single(exchange, _) => exchange.poll_interest(now),
            Phase::Committing(..) | Phase::Suspended(_) | Phase::Over => None,
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
            Phase::Committing(..) | Phase::Suspended(_) | Phase::Over => {}
        }
    }

    pub fn on_nack(&mut self, now: Duration, interest: &Interest, reason: NackReason) {
        match &mut self.phase {
            Phase::Segments(consumer, _) => consumer.on_nack(now, interest, reason),
            Phase::Single(exchange, _) => exchange.on_nack(now, interest, reason),
            Phase::Committing(..) | Phase::Suspended(_) | Phase::Over => {}
        }
    }

    pub fn deadline(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Segments(consumer, _) => consumer.deadline(),
            Phase::Single(exchange, _) => exchange.deadline(),
            Phase::Committing(_, at) => Some(*at),
            Phase::Suspended(_) | Phase::Over => None,
        }
    }

    pub fn on_deadline(&mut self, now: Duration) {
        match &mut self.phase {
            Phase::Segments(consumer, _) => consumer.on_deadline(now),
            Phase::Single(exchange, _) => exchange.on_deadline(now),
            Phase::Committing(..) | Phase::Suspended(_) | Phase::Over => {}
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
            Phase::Suspended(_) | Phase::Over => {}
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
            None if consumer.is_done() => self.commit(now),
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
            None => self.commit(now),
        }
    }

    /// On a thread of its own: it waits for the disk.
    fn commit(&mut self, now: Duration) {
        let (tell, done) = channel();
        let waiting = Phase::Committing(done, now + LOOK_AT_DISK);
        let (Phase::Segments(_, insertion) | Phase::Single(_, insertion)) =
            std::mem::replace(&mut self.phase, waiting)
        else {
            return;
        };
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
        self.phase = Phase::Over;
        self.over_since = Some(now);
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
        max_stall: limits.stall,
        max_buffered_segments: WINDOW_PACKETS,
        verify: VerifyPolicy::None,
        seed,
        ..ConsumerConfig::new(name.clone())
    }
}
