//! What is asked over the network, and remembered for a while.

use std::sync::Arc;

use ndn_endpoint::{ConsumerConfig, FetchConfig, Find, Goal};
use ndn_packet::Name;
use ndn_repo::ManifestFile;

use super::file::Source;
use super::listing::Listing;
use super::network_loop::Fetched;
use super::shared_answers::SharedAnswer;
use super::version_metadata::VersionMetadata;
use super::{Remote, RemoteError};

/// Segments of a list or a manifest on their way, which may be as large as packets are: 8 MiB.
const BUFFERED_SEGMENTS: usize = 128;
/// Bytes of a segment's packet beside its name and content, and of its place among those on their way: signatures by keys of
/// known kinds take less.
const BESIDE: usize = 2048;
/// Fewest segments on their way that keep a path busy.
const LEAST_SEGMENTS: usize = 16;

impl Remote {
    /// How `object` is fetched: its newest version.
    pub(super) fn fetch(&self, object: Name) -> FetchConfig {
        FetchConfig {
            consumer: ConsumerConfig {
                give_up_after: self.options.timeout,
                // The way there is found when its metadata are asked for.
                probe: false,
                max_buffered_segments: BUFFERED_SEGMENTS,
                verify: self.options.verify.clone(),
                ..ConsumerConfig::new(object.clone())
            },
            store: Box::new(ManifestFile::default()),
            ..FetchConfig::new(object)
        }
    }

    /// How the metadata of `object` are fetched.
    fn metadata_of(&self, object: &Name, find: Find) -> FetchConfig {
        FetchConfig {
            find,
            goal: Goal::Metadata,
            ..self.fetch(object.clone())
        }
    }

    /// What is in a folder.
    pub(super) fn listing(&self, folder: &Name) -> Result<Arc<Listing>, RemoteError> {
        self.listings.get(folder, || {
            let listing = self.fetch_listing(folder)?;
            let bytes = listing.bytes();
            Ok((Arc::new(listing), bytes))
        })
    }

    /// The versions of a file, the newest first.
    pub(super) fn versions(&self, name: &Name) -> Result<Arc<[u64]>, RemoteError> {
        self.versions.get(name, || {
            let versions: Arc<[u64]> = self.fetch_versions(name)?.into();
            let bytes = size_of_val(&*versions);
            Ok((versions, bytes))
        })
    }

    /// The newest versions of files, asked for at once where they are not remembered.
    pub(super) fn newest(&self, names: &[Name]) -> Vec<Result<Arc<VersionMetadata>, RemoteError>> {
        let mut answers: Vec<Option<SharedAnswer<_>>> = names
            .iter()
            .map(|name| Some(self.newest.find(name)))
            .collect();
        let unknown: Vec<usize> = (0..names.len())
            .filter(|place| matches!(answers[*place], Some(SharedAnswer::Unknown(_))))
            .collect();
        let mut found: Vec<Option<Result<Arc<VersionMetadata>, RemoteError>>> =
            vec![None; names.len()];
        let read = |name, fetched: Result<Fetched, RemoteError>| {
            let version = VersionMetadata::read(name, &fetched?)?;
            let bytes = version.bytes();
            Ok((Arc::new(version), bytes))
        };
        let fetches = unknown
            .iter()
            .map(|place| self.metadata_of(&names[*place], Find::Newest));
        // Whoever waits for one of them has its answer at once: the others' may never come.
        self.network.fetch_each(fetches, |fetch, answer| {
            let place = unknown[fetch];
            if let Some(SharedAnswer::Unknown(question)) = answers[place].take() {
                found[place] = Some(question.answer(read(&names[place], answer)));
            }
        });
        found
            .into_iter()
            .zip(answers)
            .map(|known| match known {
                (Some(found), _) => found,
                (None, Some(SharedAnswer::Known(version))) => Ok(version),
                // Others are waited for once none waits for this call any more.
                (None, Some(SharedAnswer::Pending(pending))) => pending.wait(),
                (None, _) => Err(RemoteError::Stopped),
            })
            .collect()
    }

    /// The newest version of a file.
    pub(super) fn newest_of(&self, name: &Name) -> Result<Arc<VersionMetadata>, RemoteError> {
        let mut found = self.newest(std::slice::from_ref(name));
        found.pop().unwrap_or(Err(RemoteError::Stopped))
    }

    /// The metadata of one version.
    pub(super) fn version(
        &self,
        name: &Name,
        version: u64,
    ) -> Result<Arc<VersionMetadata>, RemoteError> {
        let config = self.metadata_of(name, Find::Version(version));
        let fetched = self.network.fetch(config)?;
        let found = VersionMetadata::read(name, &fetched)?;
        match found.version == version {
            true => Ok(Arc::new(found)),
            false => Err(RemoteError::Malformed(format!(
                "{}: its metadata are of another version",
                name.append_version(version)
            ))),
        }
    }

    /// How a version's segments come here: with the manifest that vouches for them, where a key must.
    pub(super) fn source(&self, version: &VersionMetadata) -> Result<Source, RemoteError> {
        let metadata = &version.metadata;
        let needs_manifest = metadata.manifest_digest.is_some() && self.options.verify.wants_key();
        let manifest = match needs_manifest {
            false => None,
            true => {
                let mut known = metadata.clone();
                known.last = Some(version.last);
                let config = FetchConfig {
                    find: Find::Known(Box::new(known), None),
                    goal: Goal::Manifest,
                    ..self.fetch(version.name.clone())
                };
                self.network.fetch(config)?.manifest
            }
        };
        // What a segment can be that is what it claims: longer ones are dropped, or they would fill the memory. A packet
        // is no longer than 64 KiB and some.
        let most_bytes = version.segment_bytes as usize + metadata.name.wire_len() + BESIDE;
        let ahead = usize::try_from(self.most_ahead()).unwrap_or(0) / most_bytes;
        Ok(Source {
            network: self.network.clone(),
            segments: self.segments.clone(),
            consumer: ConsumerConfig {
                max_buffered_segments: ahead.max(LEAST_SEGMENTS),
                max_packet_bytes: most_bytes,
                ..self.fetch(version.name.clone()).consumer
            },
            manifest,
        })
    }
}
