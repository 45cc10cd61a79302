//! What is to be put: a file, standard input, or a folder's files one after the other, so that a million of them take no
//! memory.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ndn_packet::{Component, Name};

use crate::error::CliError;

/// A file and the name that it is to have.
pub struct Source {
    /// Where it lies; `-` is standard input.
    pub path: PathBuf,
    /// Its name.
    pub name: Name,
}

/// Regular files at or below a path, in the order of their names.
pub struct Sources {
    /// A single source.
    one: Option<Source>,
    /// The folder in hand is the last.
    folders: Vec<Folder>,
}

struct Folder {
    path: PathBuf,
    name: Name,
    /// What is left of it, the next at the end.
    entries: Vec<OsString>,
}

impl Sources {
    /// What `path` stands for; files in a folder are named below `name`.
    ///
    /// # Errors
    /// It is not there, or can't be read.
    pub fn open(path: &Path, name: &Name) -> Result<Self, CliError> {
        let failed = |e: io::Error| CliError::file(path, &e);
        let mut sources = Sources {
            one: None,
            folders: Vec::new(),
        };
        if path != Path::new("-") && fs::metadata(path).map_err(failed)?.is_dir() {
            sources.enter(path.to_owned(), name.clone())?;
        } else {
            sources.one = Some(Source {
                path: path.to_owned(),
                name: name.clone(),
            });
        }
        Ok(sources)
    }

    /// Bytes of all that `path` stands for; `None` where that shows at the end alone.
    ///
    /// # Errors
    /// It is not there, or can't be read.
    pub fn size(path: &Path) -> Result<Option<u64>, CliError> {
        let mut bytes = 0;
        for source in Self::open(path, &Name::new())? {
            let source = source?.path;
            if source == Path::new("-") {
                return Ok(None);
            }
            let found = fs::metadata(&source).map_err(|e| CliError::file(&source, &e))?;
            if !found.is_file() {
                return Ok(None);
            }
            bytes += found.len();
        }
        Ok(Some(bytes))
    }

    fn enter(&mut self, path: PathBuf, name: Name) -> Result<(), CliError> {
        let mut entries = fs::read_dir(&path)
            .and_then(|folder| {
                folder
                    .map(|entry| Ok(entry?.file_name()))
                    .collect::<io::Result<Vec<_>>>()
            })
            .map_err(|e| CliError::file(&path, &e))?;
        entries.sort_unstable_by(|a, b| b.cmp(a));
        self.folders.push(Folder {
            path,
            name,
            entries,
        });
        Ok(())
    }

    /// What an entry of a folder is: a file, or a folder that is entered, or nothing to put.
    fn entry(&mut self, path: PathBuf, name: Name) -> Result<Option<Source>, CliError> {
        let found: Metadata = fs::symlink_metadata(&path).map_err(|e| CliError::file(&path, &e))?;
        if found.is_file() {
            return Ok(Some(Source { path, name }));
        }
        if found.is_dir() {
            self.enter(path, name)?;
        } else {
            tracing::warn!(path = %path.display(), "neither file nor folder: skipped");
        }
        Ok(None)
    }
}

impl Iterator for Sources {
    type Item = Result<Source, CliError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(one) = self.one.take() {
            return Some(Ok(one));
        }
        while let Some(folder) = self.folders.last_mut() {
            let Some(entry) = folder.entries.pop() else {
                self.folders.pop();
                continue;
            };
            let path = folder.path.join(&entry);
            let name = folder.name.append(Component::generic(entry.as_bytes()));
            match self.entry(path, name) {
                Ok(None) => {}
                Ok(Some(source)) => return Some(Ok(source)),
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_gone_through_in_the_order_of_names() {
        let folder = tempfile::tempdir().expect("a folder");
        for path in ["b/2", "b/1", "a", "c/d/3"] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            fs::write(path, b"four").expect("a file");
        }
        std::os::unix::fs::symlink("a", folder.path().join("link")).expect("a link");
        let name: Name = "/x".parse().expect("a name");
        let found: Vec<String> = Sources::open(folder.path(), &name)
            .expect("open")
            .map(|source| source.expect("a source").name.to_string())
            .collect();
        assert_eq!(found, ["/x/a", "/x/b/1", "/x/b/2", "/x/c/d/3"]);
        assert_eq!(Sources::size(folder.path()).expect("read"), Some(16));
        assert_eq!(Sources::size(Path::new("-")).expect("read"), None);
        assert!(Sources::open(Path::new("/none/such"), &name).is_err());
    }
}
