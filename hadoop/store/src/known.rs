//! What is known of the cluster, and what it answers to an Interest.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ndn_packet::{Interest, Name, NameRef, SigningKey};
use ndn_repo::{Listing, MAX_LISTING_BYTES};

use crate::file::{File, MAX_BLOCKS};
use crate::location::is_part;
use crate::questions::{Answer, Topic};
use crate::recent::Recent;

/// How long what the NameNode told is taken for the newest.
const BELIEVED: Duration = Duration::from_secs(1);
/// When a version that is still read is asked about again: one whose file has gone is served no longer.
const CONFIRMED: Duration = Duration::from_secs(10);
/// Paths of which something is known.
const PATHS: usize = 4096;
/// Bytes of a path; HDFS has none longer.
const MAX_PATH: usize = 8000;
/// Block segments, of 64 KiB each, kept at hand: a segment of a file is seldom all of one.
const SEGMENTS: usize = 256;

/// What a store publishes, and how.
#[derive(Debug)]
pub struct StoreOptions {
    /// Under which name.
    pub prefix: Name,
    /// Which folder of the cluster, without a slash at its end.
    pub path: String,
    /// Signs what is published.
    pub key: SigningKey,
}

/// What an answer lacks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Need {
    /// What the NameNode tells.
    Told(Topic),
    /// A block segment.
    Segment(Name),
}

/// How far an answer is.
pub(crate) enum Step {
    /// The packet.
    Answer(Bytes),
    /// There is none.
    Nothing,
    /// It lacks these.
    Lacks(Vec<Need>),
    /// There is none, since this block segment has other bytes than it should.
    Unfit(Name),
}

/// What the NameNode told last of a name.
struct Known {
    at: Duration,
    /// With its version; `None`: there is nothing that could be served.
    newest: Option<Name>,
}

/// What is known of a cluster.
pub(crate) struct Cluster {
    options: StoreOptions,
    files: Recent<Name, Known>,
    versions: Recent<Name, Arc<File>>,
    folders: Recent<Name, Known>,
    listings: Recent<Name, Arc<Listing>>,
    segments: Recent<Name, Bytes>,
    /// Block segments of which the log tells that they do not fit.
    unfit: Recent<Name, ()>,
}

impl Cluster {
    /// Nothing is known yet.
    pub fn new(options: StoreOptions) -> Self {
        Self {
            options,
            files: Recent::new(PATHS),
            versions: Recent::new(MAX_BLOCKS),
            folders: Recent::new(PATHS),
            listings: Recent::new(2 * MAX_LISTING_BYTES),
            segments: Recent::new(SEGMENTS),
            unfit: Recent::new(SEGMENTS),
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
                        // Those without blocks weigh something, too.
                        let weight = file.block_count() + 64;
                        self.versions.insert(versioned.clone(), file, weight);
                        Some(versioned)
                    }
                    // It has no newest version now; the old ones are what they were.
                    Err(why) if why.is_passing() => None,
                    Ok(None) | Err(_) => {
                        self.versions.remove_all(|version| version.parent() == name);
                        None
                    }
                };
                self.files.insert(name, Known { at: now, newest }, 1);
            }
            (Topic::Folder(name), Answer::Folder(found)) => {
                let newest = match found {
                    Ok(Some(listing)) => {
                        let versioned = listing.versioned().clone();
                        let weight = listing.size() + 1024;
                        self.listings.insert(versioned.clone(), listing, weight);
                        Some(versioned)
                    }
                    Err(why) if why.is_passing() => None,
                    Ok(None) | Err(_) => {
                        // Versions are below `32=ls`.
                        let is_of =
                            |version: &Name| version.as_ref().parent().parent() == name.as_ref();
                        self.listings.remove_all(is_of);
                        None
                    }
                };
                self.folders.insert(name, Known { at: now, newest }, 1);
            }
            (topic, _) => tracing::error!(?topic, "is answered with something else"),
        }
    }

    /// Takes a block segment.
    pub fn keep(&mut self, name: Name, content: Bytes) {
        self.segments.insert(name, content, 1);
    }

    /// Lets go of a block segment that has other bytes than it should: another one may come when it is asked for again.
    pub fn drop_unfit(&mut self, name: &Name) {
        self.segments.remove(name);
        if self.unfit.get(name).is_none() {
            self.unfit.insert(name.clone(), (), 1);
            tracing::error!(
                %name,
                "a block segment has other bytes than it should; set store.block_segment_size to the cluster's trunkline.ndn.segment.bytes"
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
            None => self.newest(name, now, |file| self.segment(file, 0)),
        }
    }

    /// The file of whose version this Interest asks something that is known, if it is time to ask whether it is still
    /// there.
    pub fn doubtful(&self, interest: &Interest, now: Duration) -> Option<Topic> {
        let (name, version) = version_asked(interest.name())?;
        self.versions.get(&name.append_version(version))?;
        // What was told may have made room for what was told of others.
        let told = self.files.get(&name);
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
            None => self.version(&versioned.to_name(), now, |file| self.segment(file, n)),
        }
    }

    /// The packet of a listing that was told lately.
    fn listed(&self, versioned: NameRef<'_>, of: impl Fn(&Listing) -> Option<Bytes>) -> Step {
        let listing = self.listings.get(&versioned.to_name());
        let packet = listing.and_then(|listing| of(listing));
        packet.map_or(Step::Nothing, Step::Answer)
    }

    /// What `answer` makes of a version of a file, if it is known or the newest.
    fn version(&self, versioned: &Name, now: Duration, answer: impl Fn(&File) -> Step) -> Step {
        match self.versions.get(versioned) {
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
    fn newest(&self, name: NameRef<'_>, now: Duration, answer: impl Fn(&File) -> Step) -> Step {
        let name = name.to_name();
        let fresh = self
            .files
            .get(&name)
            .filter(|known| known.at + BELIEVED > now);
        match fresh.map(|known| known.newest.as_ref().map(|v| self.versions.get(v))) {
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
            .get(&folder)
            .filter(|known| known.at + BELIEVED > now);
        match fresh.map(|known| known.newest.as_ref().map(|v| self.listings.get(v))) {
            Some(None) => Step::Nothing,
            Some(Some(Some(listing))) => Step::Answer(listing.metadata(&self.options.key)),
            None | Some(Some(None)) => self.lacks(Topic::Folder(folder)),
        }
    }

    fn segment(&self, file: &File, n: u64) -> Step {
        let Some(pieces) = file.pieces(n) else {
            return Step::Nothing;
        };
        let lacking: Vec<Need> = pieces
            .iter()
            .filter(|piece| self.segments.get(&piece.name).is_none())
            .map(|piece| Need::Segment(piece.name.clone()))
            .collect();
        if !lacking.is_empty() {
            return Step::Lacks(lacking);
        }
        let content = |name: &Name| self.segments.get(name);
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
mod tests {
    use super::*;
    use crate::file::Draft;
    use crate::questions::Cut;

    fn cluster() -> Cluster {
        Cluster::new(StoreOptions {
            prefix: name("/c"),
            path: String::new(),
            key: SigningKey::DigestSha256,
        })
    }

    fn name(text: &str) -> Name {
        text.parse().expect("a name")
    }

    fn interest(name: &Name) -> Interest {
        let wire = Interest::builder(name).can_be_prefix(true).nonce(1).build();
        Interest::parse(wire).expect("an Interest")
    }

    /// Tells of an empty file at `/c/f`, and what its version's name is.
    fn told(cluster: &mut Cluster) -> Name {
        let status = serde_json::from_str(
            r#"{"type":"FILE","length":0,"blockSize":1,"modificationTime":5,"fileId":7,"permission":"644"}"#,
        )
        .expect("a status");
        let cut = Cut {
            root: name("/hadoop"),
            block_segment_bytes: 10,
            segment_bytes: 8,
            freshness: Duration::from_secs(1),
        };
        let file = Draft::new()
            .finish(&name("/c/f"), &status, &cut)
            .expect("served");
        let versioned = file.versioned().clone();
        let answer = Answer::File(Ok(Some(Arc::new(file))));
        cluster.learn(Topic::File(name("/c/f")), answer, Duration::ZERO);
        versioned
    }

    #[test]
    fn whatever_is_asked_of_a_version_makes_it_doubtful_in_time() {
        let mut cluster = cluster();
        let versioned = told(&mut cluster);
        let version = versioned
            .last()
            .and_then(|c| c.as_version())
            .expect("a version");
        let metadata = name("/c/f/32=metadata").append_version(version);
        for asked in [
            versioned.append_segment(3),
            versioned.clone(),
            metadata.append_segment(0),
            metadata,
        ] {
            let doubt = |now| cluster.doubtful(&interest(&asked), now);
            assert_eq!(doubt(CONFIRMED - Duration::from_millis(1)), None, "{asked}");
            let topic = Topic::File(name("/c/f"));
            assert_eq!(doubt(CONFIRMED), Some(topic), "{asked}");
        }
        let unknown = interest(&name("/c/f").append_version(version + 1));
        assert_eq!(cluster.doubtful(&unknown, CONFIRMED), None);
    }

    #[test]
    fn a_version_stays_doubtful_where_others_took_the_place_of_what_was_told() {
        let mut cluster = cluster();
        let asked = interest(&told(&mut cluster).append_segment(0));
        assert_eq!(cluster.doubtful(&asked, Duration::ZERO), None);
        for n in 0..PATHS {
            let other = Topic::File(name(&format!("/c/none{n}")));
            cluster.learn(other, Answer::File(Ok(None)), Duration::ZERO);
        }
        assert!(cluster.doubtful(&asked, Duration::ZERO).is_some());
        let topic = Topic::File(name("/c/f"));
        cluster.learn(topic, Answer::File(Ok(None)), Duration::ZERO);
        assert!(!matches!(
            cluster.step(&asked, Duration::ZERO),
            Step::Answer(_)
        ));
    }

    #[test]
    fn a_folder_that_has_gone_is_listed_no_longer() {
        let mut cluster = cluster();
        let mut tell = |folder: &str, found| {
            let topic = Topic::Folder(name(folder));
            cluster.learn(topic, Answer::Folder(found), Duration::ZERO);
        };
        let listing = |folder: &str| {
            let versioned = name(folder).append_keyword("ls").append_version(5);
            Arc::new(Listing::new(versioned, Bytes::from_static(b"a\0")))
        };
        for folder in ["/c/d", "/c/e"] {
            tell(folder, Ok(Some(listing(folder))));
        }
        tell("/c/d", Ok(None));
        for (folder, is_listed) in [("/c/d", false), ("/c/e", true)] {
            let asked = listing(folder).versioned().append_segment(0);
            let step = cluster.step(&interest(&asked), Duration::ZERO);
            assert_eq!(matches!(step, Step::Answer(_)), is_listed, "{folder}");
        }
    }
}
