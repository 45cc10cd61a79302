//! What is known of the cluster, and what it answers to an Interest.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ndn_packet::{Interest, Name, NameRef, Signer, SigningKey, signature_type};
use ndn_repo::{Cache, Listing, MAX_LISTING_BYTES};

use crate::batches::{BatchId, Batches, Gathered};
use crate::file::File;
use crate::location::is_part;
use crate::questions::{Answer, Topic};

/// How long what the NameNode told is taken for the newest.
const BELIEVED: Duration = Duration::from_secs(1);
/// When a version that is still read is asked about again: one whose file has gone is served no longer.
const CONFIRMED: Duration = Duration::from_secs(10);
/// Bytes of what was told last of files, and as much of folders: their names, and which versions are the newest.
const TOLD_BYTES: usize = 4 << 20;
/// Bytes of versions of files: some hundred each, and 32 for each of their blocks.
const VERSIONS_BYTES: usize = 16 << 20;
/// Bytes of a path; HDFS has none longer.
const MAX_PATH: usize = 8000;
/// Bytes of listings: two of the largest, with the digests of their segments.
const LISTINGS_BYTES: usize = 2 * MAX_LISTING_BYTES + (1 << 20);
/// Bytes of block segments kept at hand: a segment of a file is seldom all of one.
const SEGMENTS_BYTES: usize = 16 << 20;
/// Bytes of names of block segments of which the log tells.
const UNFIT_BYTES: usize = 64 << 10;

/// What a store publishes, and how.
#[derive(Debug)]
pub struct StoreOptions {
    /// Under which name.
    pub prefix: Name,
    /// Which folder of the cluster, without a slash at its end.
    pub path: String,
    /// Signs what is published.
    pub key: SigningKey,
    /// How many segments have a signature.
    pub signatures: Signatures,
}

/// How many segments of files have a signature of the owner's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signatures {
    /// Up to 64 have one together ([`ndn_packet::Batch`]), beside a digest each.
    Batch,
    /// Each has one.
    Each,
}

/// What an answer lacks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Need {
    /// What the NameNode tells.
    Told(Topic),
    /// A block segment.
    Segment(Name),
    /// Segments that are signed together.
    Batch(BatchId),
}

/// How far an answer is.
pub(crate) enum Step {
    /// The packet.
    Answer(Bytes),
    /// There is none.
    Nothing,
    /// It lacks these.
    Lacks(Vec<Need>),
    /// It is one of these segments of a file, which are to be signed together.
    Unsigned(BatchId, Arc<File>, Range<u64>),
    /// There is none, since this block segment has other bytes than it should.
    Unfit(Name),
}

/// What the NameNode told last of a name.
struct Known {
    at: Duration,
    /// With its version; `None`: there is nothing that could be served.
    newest: Option<Name>,
    /// The same before trouble that passes: of a folder, what its next listing is compared with.
    before: Option<Name>,
}

impl Known {
    fn new(at: Duration, newest: Option<Name>) -> Self {
        Self {
            at,
            newest,
            before: None,
        }
    }

    /// Bytes that this and the name it is known of point to.
    fn memory(&self, name: &Name) -> usize {
        let versions = self.newest.iter().chain(&self.before);
        name.wire_len() + versions.map(Name::wire_len).sum::<usize>()
    }
}

/// What is known of a cluster.
pub(crate) struct Cluster {
    options: StoreOptions,
    files: Cache<Name, Known>,
    versions: Cache<Name, Arc<File>>,
    folders: Cache<Name, Known>,
    listings: Cache<Name, Arc<Listing>>,
    segments: Cache<Name, Bytes>,
    batches: Batches,
    /// Block segments of which the log tells that they do not fit.
    unfit: Cache<Name, ()>,
}

impl Cluster {
    /// Nothing is known yet.
    pub fn new(options: StoreOptions) -> Self {
        Self {
            options,
            files: Cache::new(TOLD_BYTES),
            versions: Cache::new(VERSIONS_BYTES),
            folders: Cache::new(TOLD_BYTES),
            listings: Cache::new(LISTINGS_BYTES),
            segments: Cache::new(SEGMENTS_BYTES),
            batches: Batches::new(),
            unfit: Cache::new(UNFIT_BYTES),
        }
    }

    /// Whether names under this one are the cluster's.
    pub fn has(&self, name: NameRef<'_>) -> bool {
        self.options.prefix.as_ref().is_prefix_of(name)
    }

    /// The path that a topic's name stands for; `None` where it can't be one.
    pub fn path(&self, topic: &Topic) -> Option<String> {
        let (Topic::File(name) | Topic::Folder(name)) = topic;
        let mut path = self.options.path.clone();
        for component in name.components().skip(self.options.prefix.len()) {
            let part = std::str::from_utf8(component.as_generic()?).ok()?;
            // Below the root is another view of all files, encrypted bytes among them; in any folder there may be one of
            // files that have been deleted.
            if !is_part(part) || part == ".snapshot" || (path.is_empty() && part == ".reserved") {
                return None;
            }
            path.push('/');
            path.push_str(part);
        }
        (path.len() <= MAX_PATH).then_some(path)
    }

    /// Takes what the NameNode has told.
    pub fn learn(&mut self, topic: Topic, answer: Answer, now: Duration) {
        match (topic, answer) {
            (Topic::File(name), Answer::File(found)) => {
                let newest = match found {
                    Ok(Some(file)) => {
                        let versioned = file.versioned().clone();
                        let bytes = file.memory();
                        self.versions.insert(versioned.clone(), file, bytes);
                        Some(versioned)
                    }
                    // It has no newest version now; the old ones are what they were.
                    Err(why) if why.is_passing() => None,
                    Ok(None) | Err(_) => {
                        let is_of = |version: &Name| version.as_ref().parent() == name.as_ref();
                        self.versions.remove_all(is_of);
                        None
                    }
                };
                let known = Known::new(now, newest);
                let bytes = known.memory(&name);
                self.files.insert(name, known, bytes);
            }
            (Topic::Folder(name), Answer::Folder(found)) => {
                let known = match found {
                    Ok(Some(listing)) => {
                        let listing = self.same(&name, &listing).unwrap_or(listing);
                        let versioned = listing.versioned().clone();
                        let bytes = versioned.wire_len() + listing.memory();
                        self.listings.insert(versioned.clone(), listing, bytes);
                        Known::new(now, Some(versioned))
                    }
                    Err(why) if why.is_passing() => Known {
                        before: self.last_listed(&name).cloned(),
                        ..Known::new(now, None)
                    },
                    Ok(None) | Err(_) => {
                        // Versions are below `32=ls`.
                        let is_of =
                            |version: &Name| version.as_ref().parent().parent() == name.as_ref();
                        self.listings.remove_all(is_of);
                        Known::new(now, None)
                    }
                };
                let bytes = known.memory(&name);
                self.folders.insert(name, known, bytes);
            }
            (topic, _) => tracing::error!(
                ?topic,
                "NameNode's answer is of another kind than the question"
            ),
        }
    }

    /// The listing of `folder` that was told last, if it tells the same: a folder has a new version when something else is
    /// in it, so that who reads its listing is not overtaken by who asks for it.
    fn same(&self, folder: &Name, told: &Listing) -> Option<Arc<Listing>> {
        let last = self.listings.peek(self.last_listed(folder)?)?;
        (last.content() == told.content()).then(|| last.clone())
    }

    /// The version of a folder's listing that was told last.
    fn last_listed(&self, folder: &Name) -> Option<&Name> {
        let known = self.folders.peek(folder)?;
        known.newest.as_ref().or(known.before.as_ref())
    }

    /// Takes the content of a block segment, and tells which batches lack nothing more. What is kept is a copy: the packet
    /// lies in a buffer with many others.
    pub fn keep(&mut self, name: &Name, content: &[u8], now: Duration) -> Vec<(BatchId, Gathered)> {
        let bytes = name.wire_len() + content.len();
        let content = Bytes::copy_from_slice(content);
        self.segments.insert(name.compact(), content.clone(), bytes);
        self.batches.came(name, &content, &self.options.key, now)
    }

    /// Somebody waits until `until` for a batch: what becomes of that.
    pub fn gather(
        &mut self,
        id: &BatchId,
        batch: (&Arc<File>, Range<u64>),
        now: Duration,
        until: Duration,
    ) -> Gathered {
        let at_hand = |name: &Name| self.segments.peek(name).cloned();
        let key = &self.options.key;
        self.batches.gather(id, batch, at_hand, key, (now, until))
    }

    /// A block segment can't be had; `passing` where it may be in a moment. Tells which batches lack it.
    pub fn refused(&mut self, name: &Name, passing: bool, now: Duration) -> Vec<BatchId> {
        self.batches.refused(name, !passing, now)
    }

    /// Lets go of a block segment that has other bytes than it should: another one may come when it is asked for again.
    pub fn drop_unfit(&mut self, name: &Name) {
        self.segments.remove(name);
        if self.unfit.peek(name).is_none() {
            self.unfit.insert(name.clone(), (), name.wire_len());
            tracing::error!(
                %name,
                "block segment has another size than expected; set store.block_segment_size to the cluster's trunkline.ndn.segment.bytes"
            );
        }
    }

    /// The answer, or what it lacks.
    pub fn step(&self, interest: &Interest, now: Duration) -> Step {
        let name = interest.name();
        let Some(last) = name.last() else {
            return Step::Nothing;
        };
        if let Some(n) = last.as_segment() {
            return self.packet(name.parent(), n, now);
        }
        if !interest.can_be_prefix() {
            return Step::Nothing;
        }
        if last.as_keyword() == Some(b"metadata") {
            let object = name.parent();
            return match object.last().and_then(|c| c.as_keyword()) {
                Some(b"ls") => self.folder_metadata(object.parent(), now),
                _ => self.newest(object, now, |file| self.file_metadata(file)),
            };
        }
        match last.as_version() {
            Some(_) => self.packet(name, 0, now),
            None => self.newest(name, now, |file| self.segment(file, 0, now)),
        }
    }

    /// The file of whose version this Interest asks something that is known, if it is time to ask whether it is still
    /// there.
    pub fn doubtful(&self, interest: &Interest, now: Duration) -> Option<Topic> {
        let (name, version) = version_asked(interest.name())?;
        self.versions.peek(&name.append_version(version))?;
        // What was told may have made room for what was told of others.
        let told = self.files.peek(&name);
        told.is_none_or(|known| known.at + CONFIRMED <= now)
            .then_some(Topic::File(name))
    }

    /// Segment `n` of what has this name: a version of a file or of a listing, or metadata.
    fn packet(&self, versioned: NameRef<'_>, n: u64, now: Duration) -> Step {
        let object = versioned.parent();
        let Some(version) = versioned.last().and_then(|c| c.as_version()) else {
            return match versioned.last().and_then(|c| c.as_keyword()) {
                Some(b"manifest") => self.listed(object, |listing| listing.manifest_packet(n)),
                _ => Step::Nothing,
            };
        };
        match object.last().and_then(|c| c.as_keyword()) {
            Some(b"ls") => self.listed(versioned, |listing| listing.packet(n)),
            Some(b"metadata") if n == 0 => {
                let versioned = object.parent().to_name().append_version(version);
                self.version(&versioned, now, |file| self.file_metadata(file))
            }
            Some(_) => Step::Nothing,
            None => self.version(&versioned.to_name(), now, |file| self.segment(file, n, now)),
        }
    }

    /// The packet of a listing that was told lately.
    fn listed(&self, versioned: NameRef<'_>, of: impl Fn(&Listing) -> Option<Bytes>) -> Step {
        let listing = self.listings.peek(&versioned.to_name());
        let packet = listing.and_then(|listing| of(listing));
        packet.map_or(Step::Nothing, Step::Answer)
    }

    /// What `answer` makes of a version of a file, if it is known or the newest.
    fn version(
        &self,
        versioned: &Name,
        now: Duration,
        answer: impl Fn(&Arc<File>) -> Step,
    ) -> Step {
        match self.versions.peek(versioned) {
            Some(file) => answer(file),
            None => self.newest(versioned.as_ref().parent(), now, |file| {
                match file.versioned() == versioned {
                    true => answer(file),
                    false => Step::Nothing,
                }
            }),
        }
    }

    /// What `answer` makes of the newest version of a file.
    fn newest(
        &self,
        name: NameRef<'_>,
        now: Duration,
        answer: impl Fn(&Arc<File>) -> Step,
    ) -> Step {
        let name = name.to_name();
        let fresh = self
            .files
            .peek(&name)
            .filter(|known| known.at + BELIEVED > now);
        match fresh.map(|known| known.newest.as_ref().map(|v| self.versions.peek(v))) {
            Some(None) => Step::Nothing,
            Some(Some(Some(file))) => answer(file),
            None | Some(Some(None)) => self.lacks(Topic::File(name)),
        }
    }

    fn lacks(&self, topic: Topic) -> Step {
        match self.path(&topic) {
            Some(_) => Step::Lacks(vec![Need::Told(topic)]),
            None => Step::Nothing,
        }
    }

    fn file_metadata(&self, file: &File) -> Step {
        Step::Answer(file.metadata(&self.options.key))
    }

    fn folder_metadata(&self, folder: NameRef<'_>, now: Duration) -> Step {
        let folder = folder.to_name();
        let fresh = self
            .folders
            .peek(&folder)
            .filter(|known| known.at + BELIEVED > now);
        match fresh.map(|known| known.newest.as_ref().map(|v| self.listings.peek(v))) {
            Some(None) => Step::Nothing,
            Some(Some(Some(listing))) => Step::Answer(listing.metadata(&self.options.key)),
            None | Some(Some(None)) => self.lacks(Topic::Folder(folder)),
        }
    }

    fn segment(&self, file: &Arc<File>, n: u64, now: Duration) -> Step {
        match self.batch(file, n) {
            Some((id, _)) if self.batches.is_apart(&id, now) => self.alone(file, n),
            Some((id, batch)) => match self.batches.packet(&id, n) {
                Some(wire) => Step::Answer(wire),
                None => Step::Unsigned(id, file.clone(), batch),
            },
            None => self.alone(file, n),
        }
    }

    /// The batch that segment `n` is one of, if it is to be signed in one.
    fn batch(&self, file: &File, n: u64) -> Option<(BatchId, Range<u64>)> {
        let key = &self.options.key;
        let is_key = !matches!(
            key.signature_type(),
            signature_type::DIGEST_SHA256 | signature_type::NULL
        );
        if self.options.signatures == Signatures::Each || !is_key {
            return None;
        }
        let batch = file.batch(n, key)?;
        let id = BatchId {
            versioned: file.versioned().clone(),
            first: batch.start,
        };
        Some((id, batch))
    }

    /// Segment `n` with a signature of its own.
    fn alone(&self, file: &File, n: u64) -> Step {
        let Some(pieces) = file.pieces(n) else {
            return Step::Nothing;
        };
        let lacking: Vec<Need> = pieces
            .iter()
            .filter(|piece| self.segments.peek(&piece.name).is_none())
            .map(|piece| Need::Segment(piece.name.clone()))
            .collect();
        if !lacking.is_empty() {
            return Step::Lacks(lacking);
        }
        let content = |name: &Name| self.segments.peek(name);
        match file.segment(n, &pieces, content, &self.options.key) {
            Ok(Some(wire)) => Step::Answer(wire),
            Ok(None) => Step::Nothing,
            Err(name) => Step::Unfit(name),
        }
    }
}

/// The file and its version that a name asks a segment or the metadata of: `<file>/v=<n>`, `<file>/32=metadata/v=<n>`, with
/// a segment number or without.
fn version_asked(name: NameRef<'_>) -> Option<(Name, u64)> {
    let versioned = match name.last()?.as_segment() {
        Some(_) => name.parent(),
        None => name,
    };
    let version = versioned.last()?.as_version()?;
    let object = versioned.parent();
    let file = match object.last().and_then(|c| c.as_keyword()) {
        Some(b"metadata") => object.parent(),
        _ => object,
    };
    Some((file.to_name(), version))
}

#[cfg(test)]
mod tests;
