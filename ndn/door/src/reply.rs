//! Answers: their bodies, and the headers that all of them have.

use std::io;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Response, StatusCode};
use ndn_repo::RepoError;
use serde_json::{Value, json};

/// The body of an answer.
pub type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, io::Error>;
/// An answer.
pub type Reply = Response<Body>;

/// The page loads nothing from elsewhere, runs no script but its own, and stands in nobody's frame.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; \
     connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A body that is there as a whole.
pub fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// An answer with a body of this type, which nobody may cache.
pub fn reply(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(whole(body));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(PAGE_POLICY),
    );
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    secure(&mut reply);
    reply
}

/// Headers that every answer has: no guessing of types, no use by other sites, no names told to them.
pub fn secure(reply: &mut Reply) {
    let headers = reply.headers_mut();
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// A value as JSON.
pub fn told(value: &Value) -> Reply {
    reply(
        StatusCode::OK,
        "application/json; charset=utf-8",
        value.to_string(),
    )
}

/// The status and why there is no other answer, as JSON.
pub fn refused(status: StatusCode, why: impl std::fmt::Display) -> Reply {
    reply(
        status,
        "application/json; charset=utf-8",
        json!({ "error": format!("{status}: {why}") }).to_string(),
    )
}

/// What the repository can't answer: the cause goes to the log, too.
pub fn internal(error: &RepoError) -> Reply {
    tracing::error!(%error, "HTTP request failed");
    refused(StatusCode::INTERNAL_SERVER_ERROR, error)
}

/// The answer where nothing has the path that is asked for.
pub fn nothing() -> Reply {
    refused(StatusCode::NOT_FOUND, "nothing has this path")
}
