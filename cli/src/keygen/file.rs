//! Files of keys and certificates: whole or not there, private from the first byte on, and not overwritten by mistake.
//! Each is written beside its place and on the disk before it gets its name, so that a full disk costs none that was there.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::error::CliError;

/// Permissions of what is secret, and of what is to be given away.
pub const PRIVATE: u32 = 0o600;
/// See [`PRIVATE`].
pub const PUBLIC: u32 = 0o644;

/// A file that is whole on the disk, under another name yet.
pub struct Written<'a> {
    file: NamedTempFile,
    path: &'a Path,
}

impl<'a> Written<'a> {
    /// Writes it.
    ///
    /// # Errors
    /// It can't be written.
    pub fn new(path: &'a Path, text: impl AsRef<[u8]>, mode: u32) -> Result<Self, CliError> {
        let file = written(path, text.as_ref(), mode)?;
        Ok(Written { file, path })
    }

    /// Gives it its name, which must not be there yet: a key is never overwritten.
    fn put_new(self) -> Result<(), CliError> {
        let Written { file, path } = self;
        file.persist_noclobber(path)
            .map_err(|e| match e.error.kind() {
                io::ErrorKind::AlreadyExists => {
                    exists(path).or("name another file; a key is never overwritten")
                }
                _ => CliError::file(path, &e.error),
            })?;
        Ok(())
    }

    /// Puts it in the place of one that may be there.
    fn replace(self) -> Result<(), CliError> {
        let Written { file, path } = self;
        file.persist(path)
            .map_err(|e| CliError::file(path, &e.error))?;
        Ok(())
    }
}

/// Two files of one folder that belong together, and are whole on the disk under other names yet. They take their names
/// both or, where one can't, neither.
pub struct Pair<'a> {
    first: Written<'a>,
    second: Written<'a>,
}

impl<'a> Pair<'a> {
    /// The two, of which `first` takes its name first.
    pub fn new(first: Written<'a>, second: Written<'a>) -> Self {
        Pair { first, second }
    }

    /// Gives them their names, which must not be there yet.
    ///
    /// # Errors
    /// One of them is there, or the folder can't be written.
    pub fn put_new(self) -> Result<(), CliError> {
        let first = self.first.path;
        self.first.put_new()?;
        self.second.put_new().inspect_err(|_| {
            // It is the one that was put there just now.
            let _ = std::fs::remove_file(first);
        })?;
        sync_folder(first)
    }

    /// Puts them in the place of two that may be there.
    ///
    /// # Errors
    /// One of them can't be replaced, and both are as they were; or the disk fails.
    pub fn replace(self) -> Result<(), CliError> {
        let first = self.first.path;
        // What goes back there if need be is on the disk as well before anything is changed.
        let before = copy_of(first)?;
        self.first.replace()?;
        self.second.replace().inspect_err(|_| {
            // The error that is told is the one that led here.
            let _ = match before {
                Some(before) => before.replace(),
                None => std::fs::remove_file(first).map_err(|e| CliError::file(first, &e)),
            };
        })?;
        sync_folder(first)
    }
}

/// The same again as is in a file, if there is one.
fn copy_of(path: &Path) -> Result<Option<Written<'_>>, CliError> {
    let read = || -> io::Result<_> {
        let mode = std::fs::metadata(path)?.permissions().mode() & 0o777;
        Ok((std::fs::read(path)?, mode))
    };
    match read() {
        Ok((bytes, mode)) => Written::new(path, bytes, mode).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CliError::file(path, &error)),
    }
}

/// Writes a file that must not be there yet.
///
/// # Errors
/// It is, or it can't be written.
pub fn write_new(path: &Path, text: &str, mode: u32) -> Result<(), CliError> {
    Written::new(path, text, mode)?.put_new()?;
    sync_folder(path)
}

/// A file that is there already.
pub fn exists(path: &Path) -> CliError {
    CliError::usage(path.display().to_string(), "already exists")
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Has the disk know the name of a file, too; as far as the folder may be read, without which it can't be asked for.
fn sync_folder(path: &Path) -> Result<(), CliError> {
    let folder = folder(path);
    File::open(folder).map_or(Ok(()), |opened| {
        opened.sync_all().map_err(|e| CliError::file(folder, &e))
    })
}

fn written(path: &Path, text: &[u8], mode: u32) -> Result<NamedTempFile, CliError> {
    let folder = folder(path);
    let mut file = tempfile::Builder::new()
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder)
        .map_err(|e| CliError::file(folder, &e))?;
    // The umask may have taken some of them away.
    file.as_file()
        .set_permissions(Permissions::from_mode(mode))
        .and_then(|()| file.write_all(text))
        .and_then(|()| file.as_file().sync_all())
        .map_err(|e| CliError::file(path, &e))?;
    Ok(file)
}
