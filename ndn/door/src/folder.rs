//! A folder's address: with its last slash it leads to the page, which lists the folder; without, to the address with it.
//!
//! Answers are not to be cached: a file may get the folder's name.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{HeaderValue, LOCATION};
use ndn_packet::Name;
use ndn_repo::RepoError;
use percent_encoding::{CONTROLS, utf8_percent_encode};
use tokio::task::spawn_blocking;

use crate::reply::{Reply, internal, nothing, refused, reply};
use crate::shelf::Shelf;

/// Leads to the page, open at the folder `name`; 404 where there is no such folder.
pub async fn open_page(shelf: Arc<Shelf>, name: Name) -> Reply {
    match spawn_blocking(move || is_folder(&shelf, &name).map(|is| (is, name))).await {
        Ok(Ok((true, name))) => redirect(StatusCode::FOUND, &format!("/#{}", slashed(&name))),
        Ok(Ok((false, _))) => nothing(),
        Ok(Err(error)) => internal(&error),
        Err(error) => refused(StatusCode::INTERNAL_SERVER_ERROR, error),
    }
}

/// Leads from the address of the folder `name` without its last slash to that with it, with the same query. `None` where
/// there is no such folder.
///
/// # Errors
/// What the index says.
pub fn add_slash(
    shelf: &Shelf,
    name: &Name,
    query: Option<&str>,
) -> Result<Option<Reply>, RepoError> {
    if !is_folder(shelf, name)? {
        return Ok(None);
    }
    // The parser of requests lets pass what is beyond ASCII, which no header may have.
    let query = query.map(|query| format!("?{}", utf8_percent_encode(query, CONTROLS)));
    let to = format!("/files{}{}", slashed(name), query.unwrap_or_default());
    Ok(Some(redirect(StatusCode::PERMANENT_REDIRECT, &to)))
}

fn is_folder(shelf: &Shelf, name: &Name) -> Result<bool, RepoError> {
    Ok(shelf.repo.folder(name)?.is_some())
}

/// The name as a URI that ends with a slash. It is written anew: nothing of how the client wrote it comes back.
pub(crate) fn slashed(name: &Name) -> String {
    match name.is_empty() {
        true => String::from("/"),
        false => format!("{name}/"),
    }
}

fn redirect(status: StatusCode, to: &str) -> Reply {
    // A name's URI and a query that was parsed and escaped are printable ASCII.
    let Ok(location) = HeaderValue::from_str(to) else {
        return nothing();
    };
    let mut reply = reply(status, "text/plain; charset=utf-8", format!("see {to}\n"));
    reply.headers_mut().insert(LOCATION, location);
    reply
}
