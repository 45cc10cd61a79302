//! What the page asks for, as JSON: lists in pages of bounded size, each with a cursor to the next.

use std::fmt::Display;

use hyper::StatusCode;
use ndn_packet::{Component, ComponentBuf, Name, NameRef};
use ndn_repo::{Child, FileInfo, RepoError};
use serde_json::{Value, json};

use crate::chain::Distrust;
use crate::downloads::{State, is_id};
use crate::kind::kind_of;
use crate::label::label;
use crate::reply::{Reply, refused, told};
use crate::shelf::Shelf;

/// Entries in an answer, and most that can be asked for.
pub(crate) const PAGE: usize = 500;
/// Versions that one search looks at.
const SEARCH_BUDGET: usize = 50_000;
/// Longest text to search for, in bytes.
const MAX_TEXT: usize = 200;

/// A question's parameters.
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what stands after `?`.
    pub fn parse(text: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(text.unwrap_or_default().as_bytes());
        Self(pairs.into_owned().collect())
    }

    /// The first value under `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        let pair = self.0.iter().find(|(k, _)| k == key);
        pair.map(|(_, value)| value.as_str())
    }

    /// A name; `None` where there is none, or it is malformed.
    pub(crate) fn name(&self, key: &str) -> Option<Name> {
        self.get(key)?.parse().ok()
    }

    /// How many entries are wanted.
    pub(crate) fn limit(&self) -> usize {
        let asked = self.get("limit").and_then(|text| text.parse().ok());
        asked.unwrap_or(PAGE).clamp(1, PAGE)
    }
}

/// Why a question is not answered.
struct No(StatusCode, String);

/// What is served, and how it is told.
pub struct Api<'a> {
    /// Where files are.
    pub shelf: &'a Shelf,
    /// What may be asked for.
    pub prefixes: &'a [Name],
}

impl Api<'_> {
    /// Answers a question; `None` where there is no such question.
    pub fn answer(&self, question: &str, query: &Query) -> Option<Reply> {
        let answer = match question {
            "about" => Ok(self.about()),
            "list" => self.list(query),
            "search" => self.search(query),
            "versions" => self.versions(query),
            "file" => self.file(query),
            "download" => self.download(query),
            _ => return None,
        };
        Some(answer.map_or_else(|No(status, why)| refused(status, why), |value| told(&value)))
    }

    fn about(&self) -> Value {
        let prefixes: Vec<String> = self.prefixes.iter().map(ToString::to_string).collect();
        json!({ "prefixes": prefixes, "version": env!("CARGO_PKG_VERSION") })
    }

    /// The name under `key`, which must be one that is served.
    fn served(&self, query: &Query, key: &str) -> Result<Name, No> {
        let name = query.name(key).ok_or_else(|| {
            bad(format!(
                "parameter {key}: is no NDN name; give one as {key}=/a/b"
            ))
        })?;
        match self.prefixes.iter().any(|p| p.is_prefix_of(&name)) {
            true => Ok(name),
            false => Err(No(
                StatusCode::NOT_FOUND,
                format!("{name}: not served here"),
            )),
        }
    }

    fn list(&self, query: &Query) -> Result<Value, No> {
        let folder = self.served(query, "folder")?;
        let most = query.limit();
        let after = match query.get("after") {
            None => None,
            Some(cursor) => Some(self.child(&folder, cursor)?),
        };
        let children = self
            .shelf
            .repo
            .list(&folder, after.as_ref(), most)
            .map_err(internal)?;
        let next = children
            .last()
            .filter(|_| children.len() >= most)
            .map(|child| cursor(child.file.is_some(), child.component.as_component()));
        let entries: Vec<Value> = children
            .iter()
            .map(|child| match &child.file {
                Some(file) => file_value(file),
                None => json!({
                    "folder": true,
                    "name": folder.append(&child.component).to_string(),
                    "label": label(child.component.as_component()),
                }),
            })
            .collect();
        Ok(json!({ "entries": entries, "next": next }))
    }

    /// What a cursor of [`Api::list`] stands for.
    fn child(&self, folder: &Name, cursor: &str) -> Result<Child, No> {
        let unknown = || bad("parameter after: is no value of `next` from an answer");
        let (is_file, component) = from_cursor(cursor).ok_or_else(unknown)?;
        let file = match is_file {
            true => {
                let file = folder.append(&component);
                self.shelf.repo.find(&file, None).map_err(internal)?
            }
            false => None,
        };
        Ok(Child { component, file })
    }

    fn search(&self, query: &Query) -> Result<Value, No> {
        let folder = self.served(query, "under")?;
        let text = query.get("text").unwrap_or_default().to_lowercase();
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() || text.len() > MAX_TEXT {
            return Err(bad(format!(
                "parameter text: give a part of a name, at most {MAX_TEXT} bytes"
            )));
        }
        let after = match query.get("after") {
            None => None,
            Some(_) => Some(self.served(query, "after")?),
        };
        let skip = folder.len();
        let wanted = |name: NameRef<'_>| {
            let path = name
                .components()
                .skip(skip)
                .map(label)
                .collect::<Vec<_>>()
                .join("/")
                .to_lowercase();
            words.iter().all(|word| path.contains(word))
        };
        let found = self
            .shelf
            .repo
            .search(
                &folder,
                after.as_ref(),
                query.limit(),
                SEARCH_BUDGET,
                &wanted,
            )
            .map_err(internal)?;
        let entries: Vec<Value> = found.files.iter().map(file_value).collect();
        let next = found.next.map(|name| name.to_string());
        Ok(json!({ "entries": entries, "next": next }))
    }

    fn versions(&self, query: &Query) -> Result<Value, No> {
        let name = self.served(query, "name")?;
        let before = match query.get("before") {
            None => None,
            Some(text) => Some(
                text.parse()
                    .map_err(|_| bad("parameter before: is no version"))?,
            ),
        };
        let most = query.limit();
        let versions = self
            .shelf
            .repo
            .versions_before(&name, before, most)
            .map_err(internal)?;
        let next = versions
            .last()
            .filter(|_| versions.len() >= most)
            .map(|info| info.version.to_string());
        let entries: Vec<Value> = versions.iter().map(file_value).collect();
        Ok(json!({ "entries": entries, "next": next }))
    }

    fn file(&self, query: &Query) -> Result<Value, No> {
        let name = self.served(query, "name")?;
        let version = match query.get("version") {
            None => None,
            Some(text) => Some(
                text.parse()
                    .map_err(|_| bad("parameter version: is no number"))?,
            ),
        };
        let found = self.shelf.repo.find(&name, version).map_err(internal)?;
        let info = found.ok_or_else(|| internal(RepoError::NotFound(name.clone())))?;
        let mut value = file_value(&info);
        value["signature"] = match self.shelf.open(&name, Some(info.version)) {
            Ok(reader) => match self.shelf.chain.check(&reader) {
                Ok(voucher) => json!({
                    "state": if voucher.is_signed { "signed" } else { "digest" },
                    "algorithm": voucher.algorithm,
                    "key": voucher.key,
                }),
                Err(error) => json!({ "state": "refused", "why": error.to_string() }),
            },
            Err(Distrust::Repo(error @ RepoError::NotFound(_))) => return Err(internal(error)),
            Err(error) => json!({ "state": "refused", "why": error.to_string() }),
        };
        Ok(value)
    }

    fn download(&self, query: &Query) -> Result<Value, No> {
        let id = query.get("id").unwrap_or_default();
        if !is_id(id) {
            return Err(bad("parameter id: give letters, digits and -, at most 40"));
        }
        // Whoever looks is often here before the download, which is no fault.
        let Some(download) = self.shelf.downloads.find(id) else {
            return Ok(json!({ "state": "none" }));
        };
        let (at, total, state) = download.told();
        let state = match state {
            State::Running => "running",
            State::Done => "done",
            State::Stopped => "stopped",
            State::Failed => "failed",
        };
        Ok(json!({ "at": at, "total": total, "state": state }))
    }
}

/// Numbers beyond 2^53 are no numbers in JavaScript: versions are told as text.
fn file_value(info: &FileInfo) -> Value {
    let last = info.name.last().unwrap_or(Component::generic(b""));
    let (content_type, preview) = kind_of(last.value);
    json!({
        "name": info.name.to_string(),
        "label": label(last),
        "version": info.version.to_string(),
        "href": format!("/files{}", info.name.append_version(info.version)),
        "bytes": info.entry.size,
        "segments": info.entry.last_segment() + 1,
        "segment_size": info.entry.segment_bytes,
        "mtime_ms": info.entry.mtime_ns / 1_000_000,
        "type": content_type,
        "preview": preview.word(),
    })
}

/// What stands for a place in a list.
pub(crate) fn cursor(is_file: bool, component: Component<'_>) -> String {
    let kind = if is_file { 'f' } else { 'd' };
    format!("{kind}{component}")
}

/// What a [`cursor`] stands for; `None` where it is none.
pub(crate) fn from_cursor(cursor: &str) -> Option<(bool, ComponentBuf)> {
    let (kind, component) = cursor.split_at_checked(1)?;
    let is_file = match kind {
        "f" => true,
        "d" => false,
        _ => return None,
    };
    let name: Name = format!("/{component}").parse().ok()?;
    match (name.len(), name.get(0)) {
        (1, Some(component)) => Some((is_file, component.to_owned())),
        _ => None,
    }
}

fn bad(why: impl Display) -> No {
    No(StatusCode::BAD_REQUEST, why.to_string())
}

fn internal(error: RepoError) -> No {
    let status = match error {
        RepoError::NotFound(_) => StatusCode::NOT_FOUND,
        _ => {
            tracing::error!(%error, "HTTP request failed");
            StatusCode::INTERNAL_SERVER_ERROR
        }
    };
    No(status, error.to_string())
}
