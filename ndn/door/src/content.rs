//! A file on its way out: verified segment for segment, read ahead by one part, cut off where it does not verify.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use hyper::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MATCH,
    IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED, RANGE,
};
use hyper::{Method, Response, StatusCode};
use ndn_packet::{Component, Name};
use ndn_repo::{FileReader, Repo, RepoError};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::chain::{Chain, Distrust};
use crate::downloads::{Download, Downloads, State};
use crate::kind::{Preview, kind_of};
use crate::range::{Wanted, wanted};
use crate::reply::{Body, Reply, refused, secure, whole};

/// Bytes read at once, but at least one segment.
const PART_BYTES: u64 = 128 << 10;
/// Segments read at once, where they are tiny.
const PART_SEGMENTS: u64 = 4096;
/// What a file shown in the page may do: nothing.
const SHOWN_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; media-src 'self'; \
     sandbox; frame-ancestors 'self'";
/// Browsers start their viewer of PDF in no sandbox; it runs nothing of ours, and the file is nothing else for them.
const PDF_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; object-src 'self'; frame-ancestors 'self'";

/// What of a file is asked for, and how.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The file, without version.
    pub name: Name,
    /// This version, or the newest.
    pub version: Option<u64>,
    /// Whether it is shown in the page, not saved.
    pub is_shown: bool,
    /// The download that counts what is sent.
    pub download: Option<String>,
}

/// Who answers for files.
pub struct Shelf {
    /// The repository.
    pub repo: Repo,
    /// Whom it trusts.
    pub chain: Chain,
    /// Downloads of late.
    pub downloads: Downloads,
}

impl Shelf {
    /// Opens a version that verifies up to its manifest.
    ///
    /// # Errors
    /// It does not, is not there or can't be read.
    pub fn open(&self, name: &Name, version: Option<u64>) -> Result<Arc<FileReader>, Distrust> {
        let checked = self
            .repo
            .open_file(name, version)
            .map_err(Distrust::from)
            .and_then(|reader| self.chain.check(&reader).map(|_| reader));
        if let Err(error) = &checked {
            self.note(name, error);
        }
        checked
    }

    /// Counts and tells what is not served.
    fn note(&self, name: &Name, error: &Distrust) {
        match error {
            Distrust::Repo(RepoError::NotFound(_)) => return,
            Distrust::Repo(RepoError::Rotten { .. }) => self.repo.count_rotten(),
            _ => {}
        }
        tracing::error!(%name, %error, "not served by HTTP");
    }
}

/// Answers with a file, or a part of it.
pub async fn answer(
    shelf: Arc<Shelf>,
    asked: Asked,
    method: &Method,
    headers: &HeaderMap,
) -> Reply {
    let opened = {
        let (shelf, asked) = (shelf.clone(), asked.clone());
        spawn_blocking(move || shelf.open(&asked.name, asked.version)).await
    };
    let reader = match opened {
        Ok(Ok(reader)) => reader,
        Ok(Err(error)) => return failed(&error),
        Err(error) => return refused(StatusCode::INTERNAL_SERVER_ERROR, error),
    };
    let facts = Facts::of(&asked, &reader);
    let text = |name| {
        headers
            .get(name)
            .and_then(|v: &HeaderValue| v.to_str().ok())
    };
    if text(IF_MATCH).is_some_and(|tags| !facts.is_among(tags)) {
        return facts.head(StatusCode::PRECONDITION_FAILED, whole(Bytes::new()));
    }
    if text(IF_NONE_MATCH).is_some_and(|tags| facts.is_among(tags)) {
        return facts.head(StatusCode::NOT_MODIFIED, whole(Bytes::new()));
    }
    let size = reader.size();
    let range = text(RANGE).filter(|_| text(IF_RANGE).is_none_or(|tag| tag == facts.tag));
    let (status, from, to) = match wanted(range, size) {
        Wanted::Whole => (StatusCode::OK, 0, size),
        Wanted::Part(from, to) => (StatusCode::PARTIAL_CONTENT, from, to),
        Wanted::Outside => {
            let mut reply = facts.head(StatusCode::RANGE_NOT_SATISFIABLE, whole(Bytes::new()));
            set(&mut reply, CONTENT_RANGE, &format!("bytes */{size}"));
            return reply;
        }
    };
    let body = if method == Method::HEAD {
        whole(Bytes::new())
    } else {
        // The first part comes before the status line: what is damaged there is an error, not a cut.
        let first = match read(reader.clone(), from, to).await {
            Ok(first) => first,
            Err(error) => {
                let error = Distrust::from(error);
                shelf.note(reader.versioned(), &error);
                return failed(&error);
            }
        };
        let download = asked
            .download
            .as_deref()
            .and_then(|id| shelf.downloads.begin(id, from, size));
        FileBody::new(shelf, reader, from, to, first, download).boxed_unsync()
    };
    let mut reply = facts.head(status, body);
    set(&mut reply, CONTENT_LENGTH, &(to - from).to_string());
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {from}-{}/{size}", to - 1);
        set(&mut reply, CONTENT_RANGE, &range);
    }
    reply
}

/// What is told of a file that can't be served.
pub fn failed(error: &Distrust) -> Reply {
    let status = match error {
        Distrust::Repo(RepoError::NotFound(_)) => StatusCode::NOT_FOUND,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    refused(status, error)
}

/// What headers tell of a file.
struct Facts {
    tag: String,
    content_type: &'static str,
    policy: &'static str,
    disposition: String,
    cache: &'static str,
    modified: String,
}

impl Facts {
    fn of(asked: &Asked, reader: &FileReader) -> Self {
        let version = reader.versioned().last().and_then(|c| c.as_version());
        let last = asked.name.last().unwrap_or(Component::generic(b""));
        let (content_type, preview) = kind_of(last.value);
        // As text where it is looked at: a browser would save it else.
        let content_type = match preview {
            Preview::Text if asked.is_shown => "text/plain; charset=utf-8",
            _ => content_type,
        };
        let mtime = SystemTime::UNIX_EPOCH + Duration::from_nanos(reader.entry().mtime_ns);
        // What HTTP can't tell: years of five digits.
        let latest = SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_799);
        Self {
            tag: format!("\"{}\"", version.unwrap_or(0)),
            content_type,
            policy: match preview {
                Preview::Pdf => PDF_POLICY,
                _ => SHOWN_POLICY,
            },
            disposition: disposition(last, asked.is_shown),
            cache: match asked.version {
                Some(_) => "private, max-age=31536000, immutable",
                None => "private, no-cache",
            },
            modified: httpdate::fmt_http_date(mtime.min(latest)),
        }
    }

    fn is_among(&self, tags: &str) -> bool {
        tags.split(',')
            .map(|tag| tag.trim().trim_start_matches("W/"))
            .any(|tag| tag == "*" || tag == self.tag)
    }

    fn head(&self, status: StatusCode, body: Body) -> Reply {
        let mut reply = Response::new(body);
        *reply.status_mut() = status;
        for (name, value) in [
            (ETAG, self.tag.as_str()),
            (CONTENT_TYPE, self.content_type),
            (CONTENT_SECURITY_POLICY, self.policy),
            (CONTENT_DISPOSITION, &self.disposition),
            (CACHE_CONTROL, self.cache),
            (LAST_MODIFIED, &self.modified),
            (ACCEPT_RANGES, "bytes"),
        ] {
            set(&mut reply, name, value);
        }
        secure(&mut reply);
        reply
    }
}

fn set(reply: &mut Reply, name: HeaderName, value: &str) {
    // All of them are made of printable ASCII.
    if let Ok(value) = HeaderValue::from_str(value) {
        reply.headers_mut().insert(name, value);
    }
}

/// Content-Disposition (RFC 6266) for a file with this last component.
fn disposition(last: Component<'_>, is_shown: bool) -> String {
    let way = if is_shown { "inline" } else { "attachment" };
    let label = crate::api::label(last);
    let clean: String = label
        .chars()
        .map(|c| match c {
            '/' | '\\' => '_',
            c if c.is_control() => '_',
            c => c,
        })
        .collect();
    let plain: String = clean
        .chars()
        .map(|c| match c {
            '"' | '%' => '_',
            ' '..='~' => c,
            _ => '_',
        })
        .collect();
    let escaped = Component::generic(clean.as_bytes()).to_string();
    // An NDN escape, but for dots alone, is a percent-encoding.
    let escaped = match clean.chars().all(|c| c == '.') {
        true => String::from("file"),
        false => escaped,
    };
    format!("{way}; filename=\"{plain}\"; filename*=UTF-8''{escaped}")
}

/// A part of a file, verified: bytes from `from` on, as many as are read at once, not beyond `to`.
async fn read(reader: Arc<FileReader>, from: u64, to: u64) -> Result<Bytes, RepoError> {
    spawn_blocking(move || read_part(&reader, from, to))
        .await
        .unwrap_or_else(|error| Err(RepoError::Index(error.to_string())))
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
struct FileBody {
    shelf: Arc<Shelf>,
    reader: Arc<FileReader>,
    at: u64,
    end: u64,
    first: Option<Bytes>,
    next: Option<JoinHandle<Result<Bytes, RepoError>>>,
    download: Option<Arc<Download>>,
}

impl FileBody {
    fn new(
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
        let read = read.unwrap_or_else(|error| Err(RepoError::Index(error.to_string())));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_in_headers_can_end_neither_word_nor_line() {
        for (component, right) in [
            (
                &b"a.txt"[..],
                "attachment; filename=\"a.txt\"; filename*=UTF-8''a.txt",
            ),
            (
                b"a\"; x=\"\r\nSet-Cookie: b",
                "attachment; filename=\"a_; x=___Set-Cookie: b\"; filename*=UTF-8''a%22%3B%20x%3D%22__Set-Cookie%3A%20b",
            ),
            (
                "gr\u{fc}n \u{1f980}".as_bytes(),
                "attachment; filename=\"gr_n _\"; filename*=UTF-8''gr%C3%BCn%20%F0%9F%A6%80",
            ),
            (
                b"../../etc/passwd",
                "attachment; filename=\".._.._etc_passwd\"; filename*=UTF-8''.._.._etc_passwd",
            ),
            (b"..", "attachment; filename=\"..\"; filename*=UTF-8''file"),
        ] {
            assert_eq!(disposition(Component::generic(component), false), right);
        }
    }
}
