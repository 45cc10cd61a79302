//! The bytes of a file on their way out: verified segment for segment, read ahead by one part, cut off where they do not
//! verify.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use ndn_repo::{FileReader, RepoError};
use tokio::task::{JoinError, JoinHandle, spawn_blocking};

use crate::chain::Distrust;
use crate::downloads::{Download, State};
use crate::shelf::Shelf;

/// Bytes read at once, but at least one segment.
const PART_BYTES: u64 = 128 << 10;
/// Segments read at once, where they are tiny.
const PART_SEGMENTS: u64 = 4096;

/// A part of a file, verified: bytes from `from` on, as many as are read at once, not beyond `to`.
pub async fn read(reader: Arc<FileReader>, from: u64, to: u64) -> Result<Bytes, RepoError> {
    spawn_blocking(move || read_part(&reader, from, to))
        .await
        .unwrap_or_else(|error| Err(not_read(error)))
}

/// The thread that was to read has panicked.
fn not_read(error: JoinError) -> RepoError {
    RepoError::Io {
        path: "files".into(),
        error: io::Error::other(error),
    }
}

fn read_part(reader: &FileReader, from: u64, to: u64) -> Result<Bytes, RepoError> {
    if from >= to {
        return Ok(Bytes::new());
    }
    let each = u64::from(reader.entry().segment_bytes);
    let first = from / each;
    let count = ((to - 1) / each - first + 1)
        .min((PART_BYTES / each).max(1))
        .min(PART_SEGMENTS);
    let mut bytes = vec![0; (count * each) as usize];
    let mut len = 0;
    for n in first..first + count {
        len += reader.read_verified(n, &mut bytes[len..])?;
    }
    let start = (from - first * each) as usize;
    let end = len.min((to - first * each) as usize);
    Ok(Bytes::from(bytes).slice(start..end))
}

/// The body of an answer: parts of a file.
pub struct FileBody {
    shelf: Arc<Shelf>,
    reader: Arc<FileReader>,
    at: u64,
    end: u64,
    first: Option<Bytes>,
    next: Option<JoinHandle<Result<Bytes, RepoError>>>,
    download: Option<Arc<Download>>,
}

impl FileBody {
    /// Bytes from `from` up to and without `end`, of which `first` are read already; `download` counts what is sent.
    pub fn new(
        shelf: Arc<Shelf>,
        reader: Arc<FileReader>,
        from: u64,
        end: u64,
        first: Bytes,
        download: Option<Arc<Download>>,
    ) -> Self {
        if let Some(download) = &download
            && from >= end
        {
            download.ended(State::Done);
        }
        Self {
            shelf,
            reader,
            at: from,
            end,
            first: Some(first),
            next: None,
            download,
        }
    }

    /// Hands out a part, and begins to read the one after it.
    fn hand_out(&mut self, bytes: Bytes) -> Option<Result<Frame<Bytes>, io::Error>> {
        self.at += bytes.len() as u64;
        if self.at < self.end {
            let (reader, from, to) = (self.reader.clone(), self.at, self.end);
            self.next = Some(spawn_blocking(move || read_part(&reader, from, to)));
        }
        if let Some(download) = &self.download {
            download.reached(self.at);
            if self.at >= self.end {
                download.ended(State::Done);
            }
        }
        Some(Ok(Frame::data(bytes)))
    }

    /// The connection is cut: what was promised does not come.
    fn cut(&mut self, error: RepoError) -> Option<Result<Frame<Bytes>, io::Error>> {
        let error = Distrust::from(error);
        self.shelf.note(self.reader.versioned(), &error);
        if let Some(download) = self.download.take() {
            download.ended(State::Failed);
        }
        Some(Err(io::Error::other(error.to_string())))
    }
}

impl hyper::body::Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(first) = self.first.take().filter(|first| !first.is_empty()) {
            return Poll::Ready(self.hand_out(first));
        }
        let Some(next) = &mut self.next else {
            return Poll::Ready(None);
        };
        let read = ready!(Pin::new(next).poll(context));
        self.next = None;
        let read = read.unwrap_or_else(|error| Err(not_read(error)));
        Poll::Ready(match read {
            Ok(bytes) => self.hand_out(bytes),
            Err(error) => self.cut(error),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.at >= self.end
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.end - self.at)
    }
}

impl Drop for FileBody {
    fn drop(&mut self) {
        if let Some(download) = &self.download
            && self.at < self.end
        {
            download.ended(State::Stopped);
        }
    }
}
