//! The end of a file's way: all bytes are in, and what vouches for them is written and signed.

use ndn_endpoint::rdr::Metadata;

use super::hasher::Hashed;
use super::manifest::encode_end;
use super::writer::{FileWriter, Hashing, SmallParts, Staged};
use crate::error::{At, RepoError, Result};
use crate::layout::incoming;

impl FileWriter {
    /// All bytes are in: the file is whole, signed, and not yet published.
    ///
    /// # Errors
    /// [`RepoError::Short`] when not all came that were said to, else what the disk says. A file that was kept stays for the
    /// next start, any other is removed.
    pub fn finish(mut self) -> Result<Staged> {
        let staged = self.try_finish();
        if staged.is_err() {
            self.leave();
        }
        staged
    }

    /// As [`FileWriter::finish`]; where it fails, it can be tried again, unless a part of the file is lost:
    /// [`FileWriter::is_lost`]. To be dropped where it does not.
    ///
    /// # Errors
    /// As [`FileWriter::finish`].
    pub fn try_finish(&mut self) -> Result<Staged> {
        let paths = incoming(self.facts.entry.content);
        self.write_all_taken().at(&paths.0)?;
        if let Some(said) = self.said
            && said != self.at
        {
            return Err(RepoError::Short {
                name: self.facts.name.clone(),
                said,
                came: self.at,
            });
        }
        let staged = self.make_whole();
        if staged.is_err() {
            // The content is there: it is hashed once more, where it was hashed as it came.
            if self.is_of_unknown_size() {
                (self.facts.entry.size, self.facts.entry.final_in_all) = (0, false);
            }
        }
        staged
    }

    fn make_whole(&mut self) -> Result<Staged> {
        let paths = incoming(self.facts.entry.content);
        let hashed = match std::mem::replace(&mut self.hashing, Hashing::AtTheEnd) {
            Hashing::AsItComes(lane) => lane.finish(),
            Hashing::AtTheEnd | Hashing::Lost => self.hash_again(),
        };
        let hashed = hashed.at(&paths.1)?;
        // A version never changes: it needs no room beyond its end.
        self.longer |= std::mem::take(&mut self.asked) > self.at;
        self.trim().at(&paths.0)?;
        self.facts.entry.size = self.at;
        let end = encode_end(&hashed.root, &self.metadata(&hashed));
        self.manifest.write_at(hashed.at, &end).at(&paths.1)?;
        if self.manifest_room.is_some() {
            // File systems give back by it what is reserved beyond. If not, the file is as good.
            let _ = self.manifest.set_size(hashed.at + end.len() as u64);
        }
        let small = self.small.take().map(|small| SmallParts {
            content: small.content.take().into(),
            manifest: small.manifest.take().into(),
        });
        self.keep = true;
        Ok(Staged {
            repo: self.repo.clone(),
            facts: self.facts.clone(),
            published: false,
            draft: self.draft,
            small,
        })
    }

    /// The one signature of this version.
    fn metadata(&self, hashed: &Hashed) -> bytes::Bytes {
        let metadata = Metadata {
            manifest_digest: Some(hashed.root),
            ..self.facts.entry.metadata(self.versioned())
        };
        metadata.packet(
            &self.facts.name,
            self.facts.version,
            crate::repo::METADATA_FRESHNESS,
            &*self.repo.key,
        )
    }
}
