//! From an answer of Java to open replicas.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::answer::Answer;
use super::replica::Replica;
use super::request::{About, Asked, BlockKey, Subject};
use super::served::{Gate, KeySource, Served};
use super::shared::Shared;
use crate::rate_limit::RateLimit;

/// Said of replicas that are known and can't be served, which may be asked for without end.
static UNSERVABLE: RateLimit = RateLimit::new();

/// A replica that Java has told of. Its files are opened for whoever may have
/// something of it, and not before.
pub(super) struct Found {
    block: PathBuf,
    meta: PathBuf,
    length: u64,
    genstamp: u64,
    /// How often the block may have been [invalidated](super::shared::Invalidated) for it to be
    /// remembered; `None` for never.
    remembered: Option<u64>,
    ways: Vec<Way>,
}

/// One way in which it may be served: open, or guarded by a key.
struct Way {
    subject: Subject,
    source: Option<KeySource>,
    gate: Option<Gate>,
    segment_bytes: u32,
    served: OnceLock<Option<Arc<Served>>>,
}

impl Found {
    /// What was found of what was asked about: open, or guarded by the keys that
    /// the question is about, the write's first.
    pub fn new(
        shared: &Shared,
        asked: &Subject,
        answer: &Answer<'_>,
        remembered: Option<u64>,
    ) -> Self {
        let mut ways = Vec::new();
        let mut add = |about, source: Option<KeySource>, segment_bytes| {
            ways.push(Way {
                subject: Subject {
                    block: asked.block.clone(),
                    about,
                },
                gate: source.as_ref().map(|s| s.gate(answer.genstamp)),
                source,
                segment_bytes,
                served: OnceLock::new(),
            });
        };
        let secrets = &answer.secrets;
        let token = matches!(asked.about, About::Token(_));
        if asked.about == About::Replica && !shared.guarded {
            add(About::Replica, None, shared.segment_bytes);
        }
        if let Some(written) = secrets
            .written
            .filter(|_| token || asked.about == About::WriteKey)
        {
            // Cut otherwise than the write cut it, it would be other segments.
            let source = KeySource::Write(written.key.clone(), written.sealed);
            add(About::WriteKey, Some(source), written.segment_bytes);
        }
        if let Some((serial, secret)) = secrets
            .block_key
            .filter(|(serial, _)| token || asked.about == About::BlockKey(*serial))
        {
            let source = KeySource::BlockKey(serial, secret.clone());
            add(About::BlockKey(serial), Some(source), shared.segment_bytes);
        }
        Found {
            block: answer.block.to_owned(),
            meta: answer.meta.to_owned(),
            length: answer.length,
            genstamp: answer.genstamp,
            remembered,
            ways,
        }
    }

    /// Whether something is to be opened for whoever asks this: not for a sealed
    /// segment under a key id that nobody was told.
    pub fn admits(&self, asked: &Asked) -> bool {
        match asked {
            Asked::Sealed { id, .. } => self
                .ways
                .iter()
                .any(|way| way.gate.is_some_and(|gate| gate.admits(id))),
            _ => true,
        }
    }

    /// The replica in one way after the other, each opened when it comes to it.
    pub fn replicas(&self, shared: &Shared) -> impl Iterator<Item = Arc<Served>> {
        self.ways.iter().filter_map(|way| {
            let served = way.served.get_or_init(|| self.open(shared, way));
            served.clone()
        })
    }

    /// The replica that is known already, or else opened, and remembered unless the
    /// block was invalidated since it was asked about.
    fn open(&self, shared: &Shared, way: &Way) -> Option<Arc<Served>> {
        if way.source.is_some()
            && let Some((known, _)) = shared.lock().known.get(&way.subject, Instant::now())
            && known.replica().genstamp() == self.genstamp
            && known.replica().length() == self.length
            && known.source() == way.source.as_ref()
        {
            // It has read its checksums already.
            return Some(known);
        }
        let opened = Replica::open(
            &self.block,
            &self.meta,
            self.length,
            self.genstamp,
            way.segment_bytes,
        );
        let served = match opened {
            Ok(replica) => Arc::new(Served::new(replica, way.source.clone())),
            Err(error) => {
                if UNSERVABLE.allows() {
                    let BlockKey { pool, block } = &way.subject.block;
                    tracing::warn!(pool, block, %error, "a replica can't be served");
                }
                return None;
            }
        };
        let mut inner = shared.lock();
        let count = inner.invalidated.count(&way.subject.block);
        if self.remembered == Some(count) && !inner.closed {
            let subject = way.subject.clone();
            inner.known.insert(subject, served.clone(), Instant::now());
        }
        Some(served)
    }
}
