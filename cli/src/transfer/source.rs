//! What `put` serves: a file that is read where it is asked for. Nothing but the segment in hand
//! is in memory. What can't be read at a position (a pipe) is first copied into a temporary file
//! without a name.

use std::fs::File;
use std::io::{self, Seek};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::SystemTime;

use crate::error::CliError;

/// An open file whose size stands fast.
pub struct Source {
    file: File,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Source {
    /// Opens `path`, or standard input for `-`.
    ///
    /// # Errors
    /// The path and why it can't be read.
    pub fn open(path: &Path) -> Result<Self, CliError> {
        let failed = |e: io::Error| CliError::file(path, &e);
        let mut file = if path == Path::new("-") {
            spool(&mut io::stdin().lock())
                .map_err(|e| CliError::file(Path::new("standard input"), &e))?
        } else {
            File::open(path).map_err(failed)?
        };
        let found = file.metadata().map_err(failed)?;
        if found.is_dir() {
            return Err(
                CliError::usage(path.display().to_string(), "is a directory").or("name a file"),
            );
        }
        if !found.is_file() {
            file = spool(&mut file).map_err(failed)?;
        }
        let found = file.metadata().map_err(failed)?;
        Ok(Source {
            file,
            bytes: found.len(),
            modified: found.modified().ok(),
        })
    }

    /// The size of the whole, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When it was last changed, in nanoseconds since the Unix epoch.
    pub fn modified_ns(&self) -> Option<u64> {
        let since = self.modified?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        u64::try_from(since.as_nanos()).ok()
    }

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// What the system says; `UnexpectedEof` where the file has become shorter.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    /// Whether the file still is what it was when it was opened, as size and time of change tell.
    pub fn is_unchanged(&self) -> bool {
        self.file
            .metadata()
            .is_ok_and(|m| m.len() == self.bytes && m.modified().ok() == self.modified)
    }
}

/// Copies a stream into a temporary file without a name.
fn spool(stream: &mut impl io::Read) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    io::copy(stream, &mut file)?;
    file.rewind()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn reads_where_asked() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(b"0123456789").expect("written");
        let source = Source::open(file.path()).expect("a source");
        assert_eq!(source.bytes(), 10);
        let mut buffer = [0; 3];
        source.read(7, &mut buffer).expect("read");
        assert_eq!(&buffer, b"789");
        assert_eq!(
            source.read(8, &mut buffer).expect_err("short").kind(),
            io::ErrorKind::UnexpectedEof
        );
        assert!(source.is_unchanged());
        file.write_all(b"x").expect("written");
        assert!(!source.is_unchanged());
    }

    #[test]
    fn a_pipe_is_spooled() {
        let mut file = spool(&mut &b"from a pipe"[..]).expect("a file");
        let mut text = String::new();
        io::Read::read_to_string(&mut file, &mut text).expect("text");
        assert_eq!(text, "from a pipe");
    }

    #[test]
    fn a_directory_is_refused() {
        assert!(Source::open(Path::new("/")).is_err());
    }
}
