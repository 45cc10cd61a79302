//! From a request to its answer.

use std::sync::Arc;

use hyper::header::{ALLOW, CONNECTION, HeaderValue};
use hyper::{Method, Request, StatusCode};
use ndn_packet::Name;
use tokio::task::spawn_blocking;

use crate::access::{self, Refused};
use crate::api::{Api, Query};
use crate::content::{self, Asked};
use crate::reply::{Reply, nothing, refused};
use crate::shelf::Shelf;
use crate::{folder, page};

/// All that answers need.
pub struct Shared {
    /// Files and what is known of them.
    pub shelf: Arc<Shelf>,
    /// What may be asked for.
    pub prefixes: Vec<Name>,
    /// Host names that this server goes by.
    pub hosts: Vec<String>,
}

/// Answers a request.
pub async fn answer<B: hyper::body::Body>(shared: Arc<Shared>, request: Request<B>) -> Reply {
    let has_body = !request.body().is_end_stream();
    let mut reply = route(shared, request.map(drop), has_body).await;
    if has_body {
        // It is not read, so nothing can follow it.
        let close = HeaderValue::from_static("close");
        reply.headers_mut().insert(CONNECTION, close);
    }
    reply
}

async fn route(shared: Arc<Shared>, request: Request<()>, has_body: bool) -> Reply {
    match access::check(&request, &shared.hosts) {
        Ok(()) => {}
        Err(Refused::ForeignHost) => {
            return refused(
                StatusCode::MISDIRECTED_REQUEST,
                "this server does not go by the name in the Host header; use its address, or set http.host to that name",
            );
        }
        Err(Refused::ForeignSite) => {
            return refused(
                StatusCode::FORBIDDEN,
                "requests from pages of other sites are refused",
            );
        }
    }
    let method = request.method().clone();
    if method != Method::GET && method != Method::HEAD {
        let mut reply = refused(StatusCode::METHOD_NOT_ALLOWED, "use GET or HEAD");
        let allowed = HeaderValue::from_static("GET, HEAD");
        reply.headers_mut().insert(ALLOW, allowed);
        return reply;
    }
    if has_body {
        return refused(StatusCode::BAD_REQUEST, "a request must not have a body");
    }
    let path = request.uri().path();
    let query = Query::parse(request.uri().query());
    if let Some(uri) = path.strip_prefix("/files") {
        if let Some(folder) = uri.strip_suffix('/') {
            return match served(&shared.prefixes, folder) {
                Some(name) => folder::open_page(shared.shelf.clone(), name).await,
                None => nothing(),
            };
        }
        return match asked(&shared.prefixes, uri, &query) {
            Some(asked) => content::answer(shared.shelf.clone(), asked, &request).await,
            None => nothing(),
        };
    }
    if let Some(question) = path.strip_prefix("/api/") {
        let question = question.to_owned();
        let answered = spawn_blocking(move || {
            let api = Api {
                shelf: &shared.shelf,
                prefixes: &shared.prefixes,
            };
            api.answer(&question, &query)
        });
        return match answered.await {
            Ok(answer) => answer.unwrap_or_else(nothing),
            Err(error) => refused(StatusCode::INTERNAL_SERVER_ERROR, error),
        };
    }
    page::file(path).unwrap_or_else(nothing)
}

/// The name that a path stands for; `None` where it is no name, or none that is served.
pub(crate) fn served(prefixes: &[Name], uri: &str) -> Option<Name> {
    let name: Name = uri.parse().ok()?;
    prefixes
        .iter()
        .any(|prefix| prefix.is_prefix_of(&name))
        .then_some(name)
}

/// The file that a path asks for; `None` where it is no name, or none that is served.
pub(crate) fn asked(prefixes: &[Name], uri: &str, query: &Query) -> Option<Asked> {
    let name = served(prefixes, uri)?;
    let version = name.last().and_then(|c| c.as_version());
    let name = match version {
        Some(_) => name.parent(),
        None => name,
    };
    prefixes
        .iter()
        .any(|prefix| prefix.is_prefix_of(&name))
        .then(|| Asked {
            name,
            version,
            is_shown: query.get("show").is_some(),
            download: query.get("download").map(str::to_owned),
        })
}
