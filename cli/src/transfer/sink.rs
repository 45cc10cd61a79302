//! Where `get` writes to. A file appears under its name only when it is whole: until then its
//! bytes lie in a temporary file beside it, which goes away if the transfer ends early.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tempfile::{Builder, TempPath};

use super::part::{Part, PartFiles};
use crate::error::CliError;

/// A place for the bytes of an object.
pub struct Sink {
    /// Where they are written.
    pub output: Output,
    /// What is to be done when all are.
    pub end: End,
}

/// Where bytes are written, in order.
pub enum Output {
    /// Standard output.
    Stdout(io::Stdout),
    /// A file, a device or a pipe.
    File(File),
}

/// What is to be done when the object is whole. Dropped instead, it leaves nothing behind.
pub enum End {
    /// Nothing.
    Leave,
    /// Give the temporary file its name.
    Name(TempPath, PathBuf),
    /// Give the file that outlives an interrupted transfer its name.
    Whole(PartFiles, PathBuf),
}

impl Sink {
    /// Opens the place that `-o` names; `-` is standard output.
    ///
    /// # Errors
    /// The path and why it can't be written.
    pub fn open(path: &Path) -> Result<Self, CliError> {
        if path == Path::new("-") {
            return Ok(Sink {
                output: Output::Stdout(io::stdout()),
                end: End::Leave,
            });
        }
        let failed = |e: io::Error| CliError::file(path, &e);
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                return Err(
                    CliError::usage(path.display().to_string(), "is a directory")
                        .or("name a file in it"),
                );
            }
            Ok(found) if is_special(&found) => {
                let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
                return Ok(Sink {
                    output: Output::File(file),
                    end: End::Leave,
                });
            }
            _ => {}
        }
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let name = path
            .file_name()
            .map_or_else(|| "object".into(), |n| n.to_string_lossy());
        let temporary = Builder::new()
            .prefix(&format!(".{name}."))
            .suffix(".part")
            .permissions(fs::Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(failed)?;
        let (file, temporary) = temporary.into_parts();
        Ok(Sink {
            output: Output::File(file),
            end: End::Name(temporary, path.to_owned()),
        })
    }

    /// As [`Sink::open`], but what has come outlives an interrupted transfer, and the next one goes on from there.
    ///
    /// # Errors
    /// As there.
    pub fn resumable(path: &Path) -> Result<(Self, Part), CliError> {
        if path == Path::new("-") || fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(CliError::usage(
                path.display().to_string(),
                "is no regular file, so that an interrupted transfer could not be resumed",
            )
            .or("name a file, or use trunkline get"));
        }
        let (files, part) = Part::open(path)?;
        let output = Output::File(part.output().map_err(|e| CliError::file(path, &e))?);
        let end = End::Whole(files, path.to_owned());
        Ok((Sink { output, end }, part))
    }

    /// Whether the object goes to standard output, where nothing else may then be written.
    pub fn is_stdout(&self) -> bool {
        matches!(self.output, Output::Stdout(_))
    }
}

impl Output {
    /// Writes all of `parts`, in order, without joining them.
    ///
    /// # Errors
    /// What the system says.
    pub fn write_all(&mut self, parts: &[Bytes]) -> io::Result<()> {
        let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|p| IoSlice::new(p)).collect();
        let mut rest: &mut [IoSlice<'_>] = &mut slices;
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let written = match self {
                Output::Stdout(out) => out.write_vectored(rest),
                Output::File(file) => file.write_vectored(rest),
            };
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => IoSlice::advance_slices(&mut rest, n),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Sees to it that nothing is kept back.
    ///
    /// # Errors
    /// What the system says.
    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Stdout(out) => out.flush(),
            Output::File(_) => Ok(()),
        }
    }
}

impl End {
    /// Gives the object its name.
    ///
    /// # Errors
    /// What the system says.
    pub fn reach(self) -> io::Result<()> {
        match self {
            End::Leave => Ok(()),
            End::Name(temporary, path) => temporary.persist(path).map_err(|e| e.error),
            End::Whole(files, path) => files.whole(&path),
        }
    }
}

fn is_special(found: &fs::Metadata) -> bool {
    let kind = found.file_type();
    kind.is_char_device() || kind.is_block_device() || kind.is_fifo() || kind.is_socket()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(folder: &Path) -> usize {
        fs::read_dir(folder).expect("a folder").count()
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("object");
        let mut sink = Sink::open(&path).expect("a sink");
        let parts = [
            Bytes::from_static(b"ab"),
            Bytes::new(),
            Bytes::from_static(b"c"),
        ];
        sink.output.write_all(&parts).expect("written");
        assert!(!path.exists());
        sink.end.reach().expect("named");
        assert_eq!(fs::read(&path).expect("the file"), b"abc");

        let mut sink = Sink::open(&path).expect("a sink");
        sink.output
            .write_all(&[Bytes::from_static(b"other")])
            .expect("written");
        drop(sink.end);
        assert_eq!(fs::read(&path).expect("the file"), b"abc");
        assert_eq!(entries(folder.path()), 1);
    }

    #[test]
    fn a_device_is_written_as_it_is() {
        let mut sink = Sink::open(Path::new("/dev/null")).expect("a sink");
        assert!(matches!(sink.end, End::Leave));
        sink.output
            .write_all(&[Bytes::from_static(b"gone")])
            .expect("written");
    }

    #[test]
    fn a_directory_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let Err(error) = Sink::open(folder.path()) else {
            panic!("opened a directory")
        };
        assert!(error.to_string().contains("is a directory"));
    }
}
