//! A file's headers and what of it is sent.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH,
    IF_RANGE, LAST_MODIFIED, RANGE,
};
use hyper::{Method, Request, Response, StatusCode};
use ndn_packet::{Component, Name};
use ndn_repo::{FileReader, RepoError};
use tokio::task::spawn_blocking;

use crate::body::{FileBody, read};
use crate::chain::Distrust;
use crate::folder;
use crate::kind::{Preview, kind_of};
use crate::label::disposition;
use crate::range::{Wanted, wanted};
use crate::reply::{Body, Reply, internal, refused, secure, whole};
use crate::shelf::Shelf;

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

/// Answers with a file, or a part of it.
pub async fn answer(shelf: Arc<Shelf>, asked: Asked, request: &Request<()>) -> Reply {
    let headers = request.headers();
    let opened = {
        let (shelf, asked) = (shelf.clone(), asked.clone());
        let query = request.uri().query().map(str::to_owned);
        spawn_blocking(move || open(&shelf, &asked, query.as_deref())).await
    };
    let reader = match opened {
        Ok(Ok(reader)) => reader,
        Ok(Err(reply)) => return *reply,
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
    let body = if request.method() == Method::HEAD {
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

/// Opens what is asked for; else the answer instead, which leads to the page where it is a folder.
fn open(shelf: &Shelf, asked: &Asked, query: Option<&str>) -> Result<Arc<FileReader>, Box<Reply>> {
    let error = match shelf.open(&asked.name, asked.version) {
        Ok(reader) => return Ok(reader),
        Err(error) => error,
    };
    if asked.version.is_none() && matches!(error, Distrust::Repo(RepoError::NotFound(_))) {
        match folder::add_slash(shelf, &asked.name, query) {
            Ok(Some(reply)) => return Err(Box::new(reply)),
            Ok(None) => {}
            Err(error) => return Err(Box::new(internal(&error))),
        }
    }
    Err(Box::new(failed(&error)))
}

/// What is told of a file that can't be served.
fn failed(error: &Distrust) -> Reply {
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
