//! Segments that are signed together: gathered until all their bytes are here, then kept until they are asked for.
//!
//! ```text
//!   asked for ──▶ gathering ──── last block segment came ────▶ signed ──▶ forgotten for want of room
//!                     │
//!                     └── one can't be had, or does not fit ──▶ apart: each of its segments is signed alone for a while
//! ```

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ndn_packet::{Name, SigningKey};
use ndn_repo::Cache;

use crate::file::{File, Piece};

/// Bytes of packets that are signed.
const SIGNED_BYTES: usize = 16 << 20;
/// Bytes of what is gathered: content, and names of the block segments that have it.
const GATHERED_BYTES: usize = 32 << 20;
/// Bytes of which batches are apart.
const APART_BYTES: usize = 64 << 10;
/// How long one that can't be had whole is apart.
const APART: Duration = Duration::from_secs(10);
/// When block segments that did not come are asked for again, if somebody still wants them.
const AGAIN: Duration = Duration::from_millis(400);

/// A batch of a version of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct BatchId {
    /// The version.
    pub versioned: Name,
    /// The first segment.
    pub first: u64,
}

/// What has come of a batch.
struct Gathering {
    file: Arc<File>,
    segments: Range<u64>,
    pieces: Vec<Piece>,
    /// Block segments, one for each piece.
    contents: Vec<Option<Bytes>>,
    /// When those that lack were asked for.
    asked: Duration,
    /// Nobody waits for it any more then.
    until: Duration,
    bytes: usize,
}

/// What becomes of a wish for a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Gathered {
    /// It is signed.
    Signed,
    /// It lacks block segments, of which these are to be asked for now.
    Lacks(Vec<Name>),
    /// It is apart, as this block segment does not fit.
    Unfit(Name),
    /// There is no room to gather it.
    NoRoom,
}

/// All batches.
pub(crate) struct Batches {
    signed: Cache<BatchId, Vec<Bytes>>,
    gathering: HashMap<BatchId, Gathering>,
    /// Which lack a block segment.
    lacking: HashMap<Name, Vec<BatchId>>,
    gathered_bytes: usize,
    apart: Cache<BatchId, Duration>,
}

impl Batches {
    /// There are none.
    pub fn new() -> Self {
        Self {
            signed: Cache::new(SIGNED_BYTES),
            gathering: HashMap::new(),
            lacking: HashMap::new(),
            gathered_bytes: 0,
            apart: Cache::new(APART_BYTES),
        }
    }

    /// Segment `n` of the batch, if that is signed.
    pub fn packet(&self, id: &BatchId, n: u64) -> Option<Bytes> {
        let packets = self.signed.peek(id)?;
        let place = usize::try_from(n.checked_sub(id.first)?).ok()?;
        packets.get(place).cloned()
    }

    /// Whether the batch's segments are to be signed one by one.
    pub fn is_apart(&self, id: &BatchId, now: Duration) -> bool {
        self.apart
            .peek(id)
            .is_some_and(|since| now < *since + APART)
    }

    /// Somebody waits for these segments of `file` until `until`. `at_hand` has block segments.
    pub fn gather(
        &mut self,
        id: &BatchId,
        (file, segments): (&Arc<File>, Range<u64>),
        at_hand: impl Fn(&Name) -> Option<Bytes>,
        key: &SigningKey,
        (now, until): (Duration, Duration),
    ) -> Gathered {
        if let Some(gathering) = self.gathering.get_mut(id) {
            gathering.until = gathering.until.max(until);
            if now < gathering.asked + AGAIN {
                return Gathered::Lacks(Vec::new());
            }
            gathering.asked = now;
            return Gathered::Lacks(gathering.lacks());
        }
        let pieces = file.batch_pieces(&segments).unwrap_or_default();
        let contents: Vec<_> = pieces.iter().map(|piece| at_hand(&piece.name)).collect();
        let gathering = Gathering {
            bytes: bytes_of(&pieces),
            file: file.clone(),
            segments,
            pieces,
            contents,
            asked: now,
            until,
        };
        let lacks = gathering.lacks();
        if lacks.is_empty() {
            return match self.sign(id, gathering, key, now) {
                Ok(()) => Gathered::Signed,
                Err(name) => Gathered::Unfit(name),
            };
        }
        if self.gathered_bytes + gathering.bytes > GATHERED_BYTES {
            self.forget_late(now);
        }
        if self.gathered_bytes + gathering.bytes > GATHERED_BYTES {
            return Gathered::NoRoom;
        }
        self.gathered_bytes += gathering.bytes;
        for name in &lacks {
            let all = self.lacking.entry(name.clone());
            // Most are alone: a vector makes room for four at once.
            all.or_insert_with(|| Vec::with_capacity(1))
                .push(id.clone());
        }
        self.gathering.insert(id.clone(), gathering);
        Gathered::Lacks(lacks)
    }

    /// A block segment came. Tells which batches lack nothing more: they are signed, or apart where it does not fit.
    pub fn came(
        &mut self,
        name: &Name,
        content: &Bytes,
        key: &SigningKey,
        now: Duration,
    ) -> Vec<(BatchId, Gathered)> {
        let mut done = Vec::new();
        for id in self.lacking.remove(name).unwrap_or_default() {
            let Some(gathering) = self.gathering.get_mut(&id) else {
                continue;
            };
            for (piece, place) in gathering.pieces.iter().zip(&mut gathering.contents) {
                if piece.name == *name {
                    *place = Some(content.clone());
                }
            }
            if gathering.contents.iter().any(Option::is_none) {
                continue;
            }
            if let Some(whole) = self.gathering.remove(&id) {
                self.gathered_bytes -= whole.bytes;
                let signed = self.sign(&id, whole, key, now);
                done.push((
                    id,
                    signed.map_or_else(Gathered::Unfit, |()| Gathered::Signed),
                ));
            }
        }
        done
    }

    /// A block segment can't be had. Tells which batches lack it: they are gathered no longer, and apart where
    /// `apart` says so.
    pub fn refused(&mut self, name: &Name, apart: bool, now: Duration) -> Vec<BatchId> {
        let ids = self.lacking.get(name).cloned().unwrap_or_default();
        for id in &ids {
            self.let_go(id);
            if apart {
                self.set_apart(id, now);
            }
        }
        ids
    }

    fn sign(
        &mut self,
        id: &BatchId,
        whole: Gathering,
        key: &SigningKey,
        now: Duration,
    ) -> Result<(), Name> {
        let contents: Vec<Bytes> = whole.contents.into_iter().flatten().collect();
        let signed = whole
            .file
            .signed_batch(&whole.segments, &whole.pieces, &contents, key);
        match signed {
            Ok(packets) => {
                let each = |packet: &Bytes| packet.len() + size_of::<Bytes>();
                let bytes = id.versioned.wire_len() + packets.iter().map(each).sum::<usize>();
                self.signed.insert(id.clone(), packets, bytes);
                Ok(())
            }
            Err(name) => {
                self.set_apart(id, now);
                Err(name)
            }
        }
    }

    fn set_apart(&mut self, id: &BatchId, now: Duration) {
        self.apart.insert(id.clone(), now, id.versioned.wire_len());
    }

    /// A batch is gathered no longer.
    fn let_go(&mut self, id: &BatchId) {
        let Some(gathering) = self.gathering.remove(id) else {
            return;
        };
        self.gathered_bytes -= gathering.bytes;
        for name in gathering.lacks() {
            if let Some(ids) = self.lacking.get_mut(&name) {
                ids.retain(|other| other != id);
                if ids.is_empty() {
                    self.lacking.remove(&name);
                }
            }
        }
    }

    fn forget_late(&mut self, now: Duration) {
        let is_late = |(_, gathering): &(&BatchId, &Gathering)| gathering.until <= now;
        let late: Vec<BatchId> = self
            .gathering
            .iter()
            .filter(is_late)
            .map(|(id, _)| id.clone())
            .collect();
        for id in late {
            self.let_go(&id);
        }
    }
}

impl Gathering {
    /// Block segments that have not come, each once.
    fn lacks(&self) -> Vec<Name> {
        let all = self.pieces.iter().zip(&self.contents);
        let lacking = all.filter(|(_, content)| content.is_none());
        let mut names: Vec<Name> = lacking.map(|(piece, _)| piece.name.clone()).collect();
        names.dedup();
        names
    }
}

/// Bytes of memory that a batch of these pieces takes while it is gathered: whole block segments, with their checksums, and
/// names, here and where it is noted that they lack.
fn bytes_of(pieces: &[Piece]) -> usize {
    let each = |piece: &Piece| {
        let content = piece.data_len as usize + piece.data_len as usize / 64;
        content + 3 * piece.name.wire_len() + size_of::<Piece>() + 300
    };
    size_of::<Gathering>() + pieces.iter().map(each).sum::<usize>()
}

#[cfg(test)]
mod tests;
