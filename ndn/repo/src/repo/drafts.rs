//! Drafts: what was being written and was to be kept when a crash came, published as it was found.

use ndn_packet::Name;

use super::Repo;
use super::change::Change;
use super::files::{Facts, FileWriter, Staged};
use crate::error::{At, RepoError, Result};
use crate::layout::incoming;

/// Publishes drafts as a crash has left them. One that can't be published now stays for another start.
pub(super) fn publish(repo: &Repo, drafts: Vec<u64>) {
    for content in drafts {
        match publish_draft(repo, content) {
            Ok(name) => tracing::info!(%name, "file synced before a crash is published"),
            Err(error) => {
                tracing::error!(%error, "can't publish a file synced before a crash; the next start tries again")
            }
        }
    }
}

fn publish_draft(repo: &Repo, content: u64) -> Result<Name> {
    let paths = incoming(content);
    let bytes = repo.inner.disk.open(&paths.0).at(&paths.0)?;
    let manifest = repo.inner.disk.open(&paths.1).at(&paths.1)?;
    let (mut facts, _) = Facts::read(&*manifest).ok_or_else(|| RepoError::Format {
        path: paths.1.clone(),
        cause: String::from("has lost its beginning; remove it"),
    })?;
    let newest = repo.find(&facts.name, None)?.map_or(0, |info| info.version);
    if newest >= facts.version {
        // It was being written when that one came; it is the last that was said of this name.
        facts.version = newest + 1;
    }
    let staged = FileWriter::draft(repo.inner.clone(), facts, bytes, manifest)?.finish()?;
    let name = staged.versioned();
    let change = Change {
        publish: vec![staged],
        ..Change::default()
    };
    match repo.apply(change) {
        Ok(_) => Ok(name),
        Err(not) => {
            not.publish.into_iter().for_each(Staged::leave);
            Err(not.error)
        }
    }
}
