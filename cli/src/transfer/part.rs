//! What an interrupted transfer leaves: the bytes that came in `FILE.part`, and in `FILE.part.json` what they are of.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ndn_endpoint::rdr::Metadata;
use serde::{Deserialize, Serialize};

use crate::error::CliError;

/// The two files.
pub struct PartFiles {
    bytes: PathBuf,
    facts: PathBuf,
}

/// The bytes that came, to be gone on with.
pub struct Part {
    file: File,
    path: PathBuf,
    facts_path: PathBuf,
    found: Option<Facts>,
    bytes: AtomicU64,
}

/// What the bytes are of.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Facts {
    versioned: String,
    segment_bytes: u64,
    size: u64,
}

impl Part {
    /// Opens what is left of a transfer to `path`, or begins anew.
    ///
    /// # Errors
    /// The path and why it can't be written.
    pub fn open(path: &Path) -> Result<(PartFiles, Self), CliError> {
        let beside = |suffix: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        let files = PartFiles {
            bytes: beside(".part"),
            facts: beside(".part.json"),
        };
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&files.bytes)
            .map_err(|e| CliError::file(&files.bytes, &e))?;
        // Two transfers to one file would mix their bytes.
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).map_err(
            |_| {
                CliError::failed(
                    files.bytes.display().to_string(),
                    "another transfer is writing it",
                )
                .or("wait for its end, or write to another file")
            },
        )?;
        let found = fs::read(&files.facts)
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok());
        let part = Part {
            file,
            path: files.bytes.clone(),
            facts_path: files.facts.clone(),
            found,
            bytes: AtomicU64::new(0),
        };
        Ok((files, part))
    }

    /// Where further bytes are written.
    ///
    /// # Errors
    /// What the system says.
    pub fn output(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// The first segment that is still wanted, once it is known what is fetched; what is here of something else goes.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn begin(&self, metadata: &Metadata) -> Result<u64, CliError> {
        let failed = |e: io::Error| CliError::file(&self.path, &e);
        let facts = match (metadata.segment_bytes, metadata.size) {
            (Some(segment_bytes), Some(size)) if segment_bytes > 0 => Some(Facts {
                versioned: metadata.name.to_string(),
                segment_bytes,
                size,
            }),
            _ => None,
        };
        let here = self.file.metadata().map_err(failed)?.len();
        let first = match &facts {
            // The last segment is fetched in any case: it ends the transfer.
            Some(facts) if self.found.as_ref() == Some(facts) => {
                (here / facts.segment_bytes).min(metadata.last.unwrap_or(0))
            }
            _ => 0,
        };
        let bytes = first * facts.as_ref().map_or(0, |f| f.segment_bytes);
        self.file.set_len(bytes).map_err(failed)?;
        self.bytes.store(bytes, Ordering::Relaxed);
        match &facts {
            Some(facts) => {
                let text = serde_json::to_vec(facts)
                    .map_err(|e| CliError::failed(self.facts_path.display().to_string(), e))?;
                fs::write(&self.facts_path, text)
                    .map_err(|e| CliError::file(&self.facts_path, &e))?;
            }
            // What can't be gone on with must not look as if it could.
            None => drop(fs::remove_file(&self.facts_path)),
        }
        Ok(first)
    }

    /// Bytes that came in earlier transfers.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl PartFiles {
    /// All has come: the file gets its name.
    ///
    /// # Errors
    /// What the system says.
    pub fn whole(&self, path: &Path) -> io::Result<()> {
        fs::rename(&self.bytes, path)?;
        match fs::remove_file(&self.facts) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn told(versioned: &str) -> Metadata {
        Metadata {
            last: Some(2),
            segment_bytes: Some(10),
            size: Some(25),
            ..Metadata::new(versioned.parse().expect("a name"))
        }
    }

    #[test]
    fn goes_on_with_whole_segments_of_the_same_version_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        let begin = |versioned: &str, more: &[u8]| {
            let (_, part) = Part::open(&path).expect("a part");
            let first = part.begin(&told(versioned)).expect("begun");
            part.output()
                .and_then(|mut f| f.write_all(more))
                .expect("written");
            (first, part.bytes())
        };
        assert_eq!(begin("/a/v=1", &[1; 17]), (0, 0));
        assert_eq!(begin("/a/v=1", &[1; 15]), (1, 10));
        assert_eq!(begin("/a/v=1", &[]), (2, 20));
        assert_eq!(begin("/a/v=2", &[]), (0, 0));
        let (files, part) = Part::open(&path).expect("a part");
        assert!(Part::open(&path).is_err(), "two write it");
        drop(part);
        files.whole(&path).expect("named");
        assert_eq!(
            std::fs::read_dir(folder.path()).expect("a folder").count(),
            1
        );
    }
}
