//! What is asked over the network, and remembered for a while.

use std::sync::Arc;

use ndn_endpoint::{ConsumerConfig, ExchangeConfig, rdr};
use ndn_packet::{Data, Name};
use ndn_repo::{ManifestIn, manifest_name};

use super::file::Source;
use super::lately::Found;
use super::listing::Listing;
use super::told::Told;
use super::{Remote, RemoteError};

/// Segments of a list or a manifest on their way, which may be as large as packets are: 8 MiB.
const BUFFERED_SEGMENTS: usize = 128;
/// Bytes of a segment's packet beside its name and content, and of its place among those on their way: signatures by keys of
/// known kinds take less.
const BESIDE: usize = 2048;
/// Fewest segments on their way that keep a path busy.
const LEAST_SEGMENTS: usize = 16;

impl Remote {
    pub(super) fn consumer(&self, prefix: Name) -> ConsumerConfig {
        ConsumerConfig {
            give_up_after: self.options.timeout,
            // The way there was found when its metadata was asked for.
            probe: false,
            max_buffered_segments: BUFFERED_SEGMENTS,
            ..ConsumerConfig::new(prefix)
        }
    }

    fn ask(
        &self,
        questions: impl Iterator<Item = ExchangeConfig>,
        answered: impl FnMut(usize, Result<Data, RemoteError>),
    ) {
        let timeout = self.options.timeout;
        let questions = questions.map(|question| ExchangeConfig {
            timeout,
            ..question
        });
        self.network.ask(questions, answered);
    }

    pub(super) fn ask_one(&self, question: ExchangeConfig) -> Result<Data, RemoteError> {
        let mut found = Err(RemoteError::Stopped);
        self.ask(std::iter::once(question), |_, answer| found = answer);
        found
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
    pub(super) fn newest(&self, names: &[Name]) -> Vec<Result<Arc<Told>, RemoteError>> {
        let verify = &self.options.verify;
        let mut found: Vec<Option<Found<_>>> = names
            .iter()
            .map(|name| Some(self.newest.find(name)))
            .collect();
        let unknown: Vec<usize> = (0..names.len())
            .filter(|place| matches!(found[*place], Some(Found::Unknown(_))))
            .collect();
        let mut told: Vec<Option<Result<Arc<Told>, RemoteError>>> = vec![None; names.len()];
        let read = |name, data: Result<Data, RemoteError>| {
            let told = Told::read(name, &data?, verify)?;
            let bytes = told.bytes();
            Ok((Arc::new(told), bytes))
        };
        let questions = unknown
            .iter()
            .map(|place| verify.asking(rdr::discovery(&names[*place])));
        // Whoever waits for one of them is told at once: nobody may ever tell of the others.
        self.ask(questions, |question, answer| {
            let place = unknown[question];
            if let Some(Found::Unknown(asking)) = found[place].take() {
                told[place] = Some(asking.answer(read(&names[place], answer)));
            }
        });
        told.into_iter()
            .zip(found)
            .map(|known| match known {
                (Some(told), _) => told,
                (None, Some(Found::Known(told))) => Ok(told),
                // Others are waited for once none waits for this call any more.
                (None, Some(Found::Asked(waiting))) => waiting.answer(),
                (None, _) => Err(RemoteError::Stopped),
            })
            .collect()
    }

    /// The newest version of a file.
    pub(super) fn newest_of(&self, name: &Name) -> Result<Arc<Told>, RemoteError> {
        let mut told = self.newest(std::slice::from_ref(name));
        told.pop().unwrap_or(Err(RemoteError::Stopped))
    }

    /// What is told of one version.
    pub(super) fn version(&self, name: &Name, version: u64) -> Result<Arc<Told>, RemoteError> {
        let question = ExchangeConfig::new(
            rdr::discovery_name(name)
                .append_version(version)
                .append_segment(0),
        );
        let verify = &self.options.verify;
        let data = self.ask_one(verify.asking(question))?;
        let told = Told::read(name, &data, verify)?;
        match told.version == version {
            true => Ok(Arc::new(told)),
            false => Err(RemoteError::Malformed(format!(
                "{}: tells of another version",
                data.name()
            ))),
        }
    }

    /// How a version's segments come here: with the manifest that vouches for them, where a key must.
    pub(super) fn source(&self, told: &Told) -> Result<Source, RemoteError> {
        let verify = &self.options.verify;
        let signed = told.metadata.manifest_digest.filter(|_| verify.wants_key());
        let vouched = match signed {
            None => None,
            Some(signed) => {
                let stream = manifest_name(&told.metadata.name);
                let wrong = format!("{stream}: is not the manifest that was signed");
                let segments = told.last.saturating_add(1);
                let manifest = self.network.read_all(
                    self.consumer(stream),
                    ManifestIn::new(segments).map_err(no_room)?,
                    |manifest, data| {
                        let pushed = manifest.push(data.content_slice());
                        pushed.map_err(|error| match error.kind() {
                            std::io::ErrorKind::InvalidData => {
                                RemoteError::Unverified(format!("{}: {error}", data.name()))
                            }
                            _ => no_room(error),
                        })
                    },
                )?;
                let manifest = manifest.finish(&signed);
                Some(manifest.ok_or(RemoteError::Unverified(wrong))?)
            }
        };
        // What a segment can be that is what it claims: longer ones are dropped, or they would fill the memory. A packet
        // is no longer than 64 KiB and some.
        let most_bytes = told.segment_bytes as usize + told.metadata.name.wire_len() + BESIDE;
        let ahead = usize::try_from(self.most_ahead()).unwrap_or(0) / most_bytes;
        Ok(Source {
            network: self.network.clone(),
            segments: self.segments.clone(),
            consumer: ConsumerConfig {
                verify: verify.of_segments(&told.metadata),
                max_buffered_segments: ahead.max(LEAST_SEGMENTS),
                max_packet_bytes: most_bytes,
                ..self.consumer(told.metadata.name.clone())
            },
            vouched,
        })
    }
}

/// There is no room for a manifest.
fn no_room(error: std::io::Error) -> RemoteError {
    RemoteError::NoRoom(format!("{}: {error}", std::env::temp_dir().display()))
}
