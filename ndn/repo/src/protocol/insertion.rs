//! One insertion: fetches what a command names, and keeps it when all of it is here.
//!
//! ```text
//!   Fetching ── all came, trusted ──▶ Committing ── on the disk ──▶ Over(200)
//!      │                                  │
//!      │ stall, no end, not trusted       │ disk
//!      └──────▶ Over(405, 406)            └──▶ Over(500)
//! ```
//! It is never waited for the disk here: what commits is told by [`Process::committed`].
//! Where the producer stalled, what has come is not thrown away at once: the same command again goes on from there. Nor is
//! it where the repository ended: what was kept then is read and checked when the command comes again.

use std::time::Duration;

use ndn_endpoint::{Consumer, ConsumerConfig, Exchange, ExchangeConfig, FailReason, VerifyPolicy};
use ndn_packet::{
    Data, Interest, MAX_JUMBO_PACKET, NackReason, Name, NameRef, NetPacket, content_type,
};

use super::disk_thread::{DiskThread, Job};
use super::ending::{Ending, RefusalLog};
use super::message::{Parameters, Response, status};
use super::trust::{Believed, Trust};
use crate::error::RepoError;
use crate::repo::Repo;
use crate::repo::packets::{Insertion, KeptInsertion};

/// Packets that may be on their way or not yet written.
const WINDOW_PACKETS: usize = 256;
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

/// What an insertion needs of its server to go on.
pub(crate) struct Means {
    pub trust: Trust,
    pub limits: InsertLimits,
    pub disk: DiskThread,
    pub log: RefusalLog,
}

enum Phase {
    Segments(Box<Consumer>, Insertion),
    Single(Box<Exchange>, Insertion),
    Committing,
    /// Over, but what has come is here.
    Suspended(Insertion),
    /// Not over when the repository ended last.
    Kept(KeptInsertion),
    /// What was kept is being read.
    Resuming,
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
    pub fn go_on(&mut self, now: Duration, believed: Believed, means: &mut Means) {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Suspended(insertion) => self.fetch_rest(now, insertion, &means.limits),
            Phase::Kept(kept) => {
                self.believed = believed;
                self.resume(now, kept, means);
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
    fn resume(&mut self, now: Duration, kept: KeptInsertion, means: &mut Means) {
        let id = self.response.process.unwrap_or(0);
        match means.disk.resume(id, kept) {
            Ok(()) => {
                self.response.status = status::GOES_ON;
                self.over_since = None;
                self.phase = Phase::Resuming;
            }
            Err(error) => self.fail(now, &Ending::Thread(error), &mut means.log),
        }
    }

    /// What was kept is read.
    pub fn resumed(
        &mut self,
        now: Duration,
        result: Result<(Insertion, bool), RepoError>,
        means: &mut Means,
    ) {
        let (insertion, is_final) = match result {
            Ok(resumed) => resumed,
            Err(error) => return self.fail(now, &Ending::Disk(error), &mut means.log),
        };
        tracing::info!(
            name = ?self.asked.name.as_ref().map(Name::to_string),
            packets = insertion.packets(),
            "insertion goes on from before the restart"
        );
        self.bytes = insertion.bytes();
        let next = insertion.next_segment();
        if is_final || self.asked.end.is_some_and(|end| next > end) {
            self.response.inserted = Some(insertion.packets());
            self.response.end = next.checked_sub(1);
            return self.commit(now, insertion, means);
        }
        self.fetch_rest(now, insertion, &means.limits);
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
            Phase::Committing
            | Phase::Resuming
            | Phase::Suspended(_)
            | Phase::Kept(_)
            | Phase::Over => false,
        }
    }

    pub fn poll_interest(&mut self, now: Duration) -> Option<NetPacket> {
        match &mut self.phase {
            Phase::Segments(consumer, _) => consumer.poll_interest(now),
            Phase::Single(exchange, _) => exchange.poll_interest(now),
            Phase::Committing
            | Phase::Resuming
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
            Phase::Committing
            | Phase::Resuming
            | Phase::Suspended(_)
            | Phase::Kept(_)
            | Phase::Over => {}
        }
    }

    pub fn on_nack(&mut self, now: Duration, interest: &Interest, reason: NackReason) {
        match &mut self.phase {
            Phase::Segments(consumer, _) => consumer.on_nack(now, interest, reason),
            Phase::Single(exchange, _) => exchange.on_nack(now, interest, reason),
            Phase::Committing
            | Phase::Resuming
            | Phase::Suspended(_)
            | Phase::Kept(_)
            | Phase::Over => {}
        }
    }

    pub fn deadline(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Segments(consumer, _) => consumer.deadline(),
            Phase::Single(exchange, _) => exchange.deadline(),
            Phase::Committing
            | Phase::Resuming
            | Phase::Suspended(_)
            | Phase::Kept(_)
            | Phase::Over => None,
        }
    }

    pub fn on_deadline(&mut self, now: Duration) {
        match &mut self.phase {
            Phase::Segments(consumer, _) => consumer.on_deadline(now),
            Phase::Single(exchange, _) => exchange.on_deadline(now),
            Phase::Committing
            | Phase::Resuming
            | Phase::Suspended(_)
            | Phase::Kept(_)
            | Phase::Over => {}
        }
    }

    /// Moves on what can be moved on.
    pub fn turn(&mut self, now: Duration, means: &mut Means) {
        match &mut self.phase {
            Phase::Segments(..) => self.read_segments(now, means),
            Phase::Single(..) => self.read_single(now, means),
            Phase::Committing
            | Phase::Resuming
            | Phase::Suspended(_)
            | Phase::Kept(_)
            | Phase::Over => {}
        }
    }

    fn read_segments(&mut self, now: Duration, means: &mut Means) {
        let Phase::Segments(consumer, insertion) = &mut self.phase else {
            return;
        };
        let (mut ending, mut refused) = (None, None);
        while let Some((segment, data)) = consumer.read() {
            if let Err(why) = means.trust.check(&self.key, self.believed, &data) {
                self.rejects += 1;
                if self.rejects > MAX_REJECTS || !consumer.reject(segment) {
                    let packet = data.name_owned();
                    ending = Some(Ending::Untrusted { packet, why });
                    break;
                }
                continue;
            }
            if data.content_type() == content_type::NACK {
                let prefix = consumer.prefix().clone();
                refused = Some(FailReason::Refused { prefix, segment });
                break;
            }
            self.bytes += data.wire().len() as u64;
            if self.bytes > means.limits.max_bytes {
                ending = Some(Ending::TooLarge(means.limits.max_bytes));
                break;
            }
            if let Err(error) = insertion.push(&data) {
                ending = Some(Ending::Disk(error));
                break;
            }
        }
        self.response.inserted = Some(insertion.packets());
        if let Some(last) = consumer.last() {
            self.response.end = Some(last);
        }
        match (ending, refused.as_ref().or(consumer.failure())) {
            (Some(ending), _) => self.fail(now, &ending, &mut means.log),
            (None, Some(reason)) => {
                let ending = Ending::NoEnd(reason.to_string());
                self.suspend(now, &ending, &mut means.log);
            }
            (None, None) if consumer.is_done() => self.commit_taken(now, means),
            (None, None) => {}
        }
    }

    fn read_single(&mut self, now: Duration, means: &mut Means) {
        let Phase::Single(exchange, insertion) = &mut self.phase else {
            return;
        };
        let ending = match exchange.result() {
            None => return,
            Some(Err(error)) => Some(Ending::NoEnd(error.to_string())),
            Some(Ok(data)) => match means.trust.check(&self.key, self.believed, data) {
                Err(why) => Some(Ending::Untrusted {
                    packet: data.name_owned(),
                    why,
                }),
                Ok(()) => insertion.push(data).err().map(Ending::Disk),
            },
        };
        self.response.inserted = Some(insertion.packets());
        match ending {
            Some(ending) => self.fail(now, &ending, &mut means.log),
            None => self.commit_taken(now, means),
        }
    }

    fn commit_taken(&mut self, now: Duration, means: &mut Means) {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Segments(_, insertion) | Phase::Single(_, insertion) => {
                self.commit(now, insertion, means);
            }
            other => self.phase = other,
        }
    }

    /// By the thread that waits for the disk.
    fn commit(&mut self, now: Duration, insertion: Insertion, means: &mut Means) {
        let process = self.response.process.unwrap_or(0);
        self.phase = Phase::Committing;
        if !means.disk.push(Job::Commit { process, insertion }) {
            self.fail(now, &Ending::NoCommit, &mut means.log);
        }
    }

    /// It is on the disk, or failed.
    pub fn committed(
        &mut self,
        now: Duration,
        result: Result<u64, RepoError>,
        log: &mut RefusalLog,
    ) {
        match result {
            Ok(_) => self.end(now, status::DONE),
            Err(error) => self.fail(now, &Ending::Disk(error), log),
        }
    }

    fn fail(&mut self, now: Duration, ending: &Ending, log: &mut RefusalLog) {
        let status = ending.status();
        log.refused(now, status, "insertion", self.asked.name.as_ref(), ending);
        self.end(now, status);
    }

    fn end(&mut self, now: Duration, code: u64) {
        self.response.status = code;
        self.over_since = Some(now);
        if let Phase::Segments(_, insertion) = std::mem::replace(&mut self.phase, Phase::Over) {
            insertion.abandon();
        }
    }

    /// The producer sends no more.
    fn suspend(&mut self, now: Duration, ending: &Ending, log: &mut RefusalLog) {
        let insertion = match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Segments(_, insertion) if insertion.packets() > 0 => Some(insertion),
            _ => None,
        };
        self.fail(now, ending, log);
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
        max_packet_bytes: MAX_JUMBO_PACKET,
        verify: VerifyPolicy::None,
        // Only one that is trusted is believed.
        believe_nack: false,
        seed,
        ..ConsumerConfig::new(name.clone())
    }
}
