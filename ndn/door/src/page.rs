//! The page: a few small files, carried in the program.

use hyper::StatusCode;

use crate::reply::{Reply, reply};

/// The file of the page at `path`; `None` where there is none.
pub fn file(path: &str) -> Option<Reply> {
    let (content_type, text) = match path {
        "/" => ("text/html; charset=utf-8", include_str!("page/index.html")),
        "/page.css" => ("text/css; charset=utf-8", include_str!("page/page.css")),
        "/page.js" => (
            "text/javascript; charset=utf-8",
            include_str!("page/page.js"),
        ),
        "/parts.js" => (
            "text/javascript; charset=utf-8",
            include_str!("page/parts.js"),
        ),
        "/icon.svg" | "/favicon.ico" => ("image/svg+xml", include_str!("page/icon.svg")),
        _ => return None,
    };
    Some(reply(StatusCode::OK, content_type, text))
}
