//! Files of keys and certificates: whole or not there, private from the first byte on, and not overwritten by mistake.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::error::CliError;

/// Permissions of what is secret, and of what is to be given away.
pub const PRIVATE: u32 = 0o600;
/// See [`PRIVATE`].
pub const PUBLIC: u32 = 0o644;

/// Writes a file that must not be there yet: a key is never overwritten.
///
/// # Errors
/// It is, or it can't be written.
pub fn write_new(path: &Path, text: &str, mode: u32) -> Result<(), CliError> {
    let file = written(path, text, mode)?;
    file.persist_noclobber(path)
        .map_err(|e| match e.error.kind() {
            io::ErrorKind::AlreadyExists => {
                exists(path).or("name another file; a key is never overwritten")
            }
            _ => CliError::file(path, &e.error),
        })?;
    Ok(())
}

/// Writes a file in the place of one that may be there.
///
/// # Errors
/// It can't be written.
pub fn replace(path: &Path, text: &str, mode: u32) -> Result<(), CliError> {
    let file = written(path, text, mode)?;
    file.persist(path)
        .map_err(|e| CliError::file(path, &e.error))?;
    Ok(())
}

/// A file that is there already.
pub fn exists(path: &Path) -> CliError {
    CliError::usage(path.display().to_string(), "already exists")
}

fn written(path: &Path, text: &str, mode: u32) -> Result<NamedTempFile, CliError> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new()
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder)
        .map_err(|e| CliError::file(folder, &e))?;
    // The umask may have taken some of them away.
    file.as_file()
        .set_permissions(Permissions::from_mode(mode))
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| file.as_file().sync_all())
        .map_err(|e| CliError::file(path, &e))?;
    Ok(file)
}
