//! The HTTP server of a repository: what is in it, for browsers and other programs that speak no NDN, and the page that
//! shows it.
//!
//! For `trunkline repo run`. The server reads and never writes. What it sends was verified first: the signature of a
//! version's metadata by the owner's key, the manifest by that, each segment by the manifest. What does not verify is an
//! error before the first byte, or a connection cut after it; never wrong bytes.
//!
//! | path | what comes |
//! |---|---|
//! | `/` | the page |
//! | `/files/<name>`, `/files/<name>/v=<version>` | a file: whole, a range, or its headers (HEAD) |
//! | `/files/<name>/` | a folder: leads to the page; without the slash it leads to here |
//! | `/api/about` | the prefixes that are served |
//! | `/api/list?folder=…` | what is in a folder, page by page |
//! | `/api/search?under=…&text=…` | files by a part of their name, page by page |
//! | `/api/versions?name=…` | versions of a file, the newest first, page by page |
//! | `/api/file?name=…` | a file's facts, and who signed it |
//! | `/api/download?id=…` | how far a download is that was asked for with `download=<id>` |
//!
//! Names stand in paths as NDN writes them as URIs, in queries once more percent-encoded.
//!
//! # Who may come
//! Whoever reaches the address. On loopback that is this host's users; web pages of others are kept out by the Host
//! header (a name that is not this host's own, as in DNS rebinding) and by Sec-Fetch-Site.
//!
//! # Bounds
//! Connections, header bytes, time for headers and for a reader that stalls, entries in an answer, work in a search:
//! each has one, so that memory does not grow with what strangers do.

mod access;
mod api;
mod body;
mod chain;
mod content;
mod downloads;
mod folder;
#[cfg(fuzzing)]
pub mod fuzzing;
mod kind;
mod label;
mod page;
mod range;
mod reply;
mod route;
mod server;
mod shelf;
mod stall;

pub use server::{HttpError, HttpOptions, HttpServer};
