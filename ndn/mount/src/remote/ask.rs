//! What is asked over the network, and remembered for a while.

use std::sync::Arc;

use ndn_endpoint::{ConsumerConfig, ExchangeConfig, rdr};
use ndn_packet::{Data, Name};
use ndn_repo::{ManifestIn, manifest_name};

use super::file::Source;
use super::listing::Listing;
use super::told::Told;
use super::{Remote, RemoteError, TOLD_BYTES};

impl Remote {
    pub(super) fn consumer(&self, prefix: Name) -> ConsumerConfig {
        ConsumerConfig {
            max_stall: self.options.timeout,
            // The way there was found when its metadata was asked for.
            probe: false,
            ..ConsumerConfig::new(prefix)
        }
    }

    fn ask(
        &self,
        questions: impl Iterator<Item = ExchangeConfig>,
    ) -> Vec<Result<Data, RemoteError>> {
        let timeout = self.options.timeout;
        let questions = questions.map(|question| ExchangeConfig {
            timeout,
            ..question
        });
        self.network.ask(questions.collect())
    }

    pub(super) fn ask_one(&self, question: ExchangeConfig) -> Result<Data, RemoteError> {
        let mut answers = self.ask(std::iter::once(question));
        answers.pop().unwrap_or(Err(RemoteError::Stopped))
    }

    /// What is in a folder.
    pub(super) fn listing(&self, folder: &Name) -> Result<Arc<Listing>, RemoteError> {
        if let Some(listing) = self.listings.get(folder) {
            return Ok(listing);
        }
        let listing = Arc::new(self.fetch_listing(folder)?);
        self.listings.put(folder, listing.clone(), listing.bytes());
        Ok(listing)
    }

    /// The versions of a file, the newest first.
    pub(super) fn versions(&self, name: &Name) -> Result<Arc<[u64]>, RemoteError> {
        if let Some(versions) = self.versions.get(name) {
            return Ok(versions);
        }
        let versions: Arc<[u64]> = self.fetch_versions(name)?.into();
        self.versions
            .put(name, versions.clone(), size_of_val(&*versions));
        Ok(versions)
    }

    /// The newest versions of files, asked for at once where they are not remembered.
    pub(super) fn newest(&self, names: &[Name]) -> Vec<Result<Arc<Told>, RemoteError>> {
        let known: Vec<Option<Arc<Told>>> = names.iter().map(|n| self.newest.get(n)).collect();
        let verify = &self.options.verify;
        let unknown = names.iter().zip(&known).filter(|(_, told)| told.is_none());
        let questions = unknown.map(|(name, _)| verify.asking(rdr::discovery(name)));
        let mut answers = self.ask(questions).into_iter();
        names
            .iter()
            .zip(known)
            .map(|(name, known)| match known {
                Some(told) => Ok(told),
                None => {
                    let data = answers.next().unwrap_or(Err(RemoteError::Stopped))?;
                    let told = Arc::new(Told::read(name, &data, verify)?);
                    self.newest.put(name, told.clone(), TOLD_BYTES);
                    Ok(told)
                }
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
        let ahead = self.most_ahead() / told.segment_bytes;
        Ok(Source {
            network: self.network.clone(),
            segments: self.segments.clone(),
            consumer: ConsumerConfig {
                verify: verify.of_segments(&told.metadata),
                max_buffered_segments: usize::try_from(ahead).unwrap_or(0).clamp(16, 8192),
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
