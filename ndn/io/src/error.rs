//! What can go wrong in starting and using a node or a client, with the way out.

use std::io;

use crate::config::ConfigErrors;
use crate::uri::FaceUri;

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Settings that make no sense.
    #[error("{0}")]
    Config(#[from] ConfigErrors),
    /// A listener could not be opened.
    #[error("listen {uri}: {}", explain(.error, .uri))]
    Listen {
        /// The listener.
        uri: FaceUri,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A configured face could not be made.
    #[error("face {uri}: {}", explain(.error, .uri))]
    Face {
        /// The face.
        uri: FaceUri,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The loop itself could not be set up.
    #[error("cannot set up the node's loop: {0}")]
    Loop(#[source] io::Error),
}

/// Why a call on a running node failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    /// The node has shut down.
    #[error("the node has shut down")]
    Stopped,
    /// A call that waits for the loop came from the loop's own thread.
    #[error("an application must not wait for the loop that drives it")]
    OnLoopThread,
    /// The forwarder takes no such route.
    #[error("{0}")]
    Route(ndn_forwarder::RouteError),
}

/// Why a client could not reach, or lost, its forwarder.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No forwarder was named and no usual place names one.
    #[error("{0}")]
    NoForwarder(String),
    /// Settings that make no sense.
    #[error("{0}")]
    Config(#[from] ConfigErrors),
    /// The face could not be opened.
    #[error("face {uri}: {}", explain(.error, .uri))]
    Connect {
        /// The face.
        uri: FaceUri,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The face was open and is no more.
    #[error("face {uri}: {reason}; the forwarder has gone or closed the face")]
    Lost {
        /// The face.
        uri: FaceUri,
        /// What was seen.
        reason: String,
    },
    /// The forwarder refused a management command.
    #[error(
        "face {uri}: {verb} {name} was refused with {code} {text}; see the forwarder's log for why it does not accept this command"
    )]
    Refused {
        /// The face.
        uri: FaceUri,
        /// The command, such as `register`.
        verb: &'static str,
        /// The prefix.
        name: Box<str>,
        /// Status code of the answer.
        code: u64,
        /// Its text.
        text: String,
    },
    /// The forwarder did not answer a management command, or not in its terms.
    #[error(
        "face {uri}: no answer to {what} but {seen}; check that an NDN forwarder listens there"
    )]
    NoAnswer {
        /// The face.
        uri: FaceUri,
        /// What was asked.
        what: String,
        /// What was seen instead of an answer.
        seen: String,
    },
    /// The event loop could not be set up.
    #[error("cannot set up the client's loop: {0}")]
    Loop(#[source] io::Error),
}

/// The system's error and what an operator can do about it.
pub(crate) fn explain(error: &io::Error, uri: &FaceUri) -> String {
    let way_out = match (error.kind(), uri.path()) {
        (io::ErrorKind::PermissionDenied, Some(_)) => {
            "run as a user who may use this socket's path, or choose another path"
        }
        (io::ErrorKind::PermissionDenied, _) => "choose a port above 1023, or run with the right",
        (io::ErrorKind::AddrInUse, Some(_)) => {
            "a live process listens there: stop it, or choose another path"
        }
        (io::ErrorKind::AddrInUse, _) => {
            "another process has this port: stop it, or choose another port"
        }
        (io::ErrorKind::AddrNotAvailable, _) => "choose an address that this host has",
        (io::ErrorKind::NotFound, Some(_)) => {
            "no such socket or folder: start the forwarder, or correct the path"
        }
        (io::ErrorKind::ConnectionRefused, Some(_)) => {
            "nobody listens on this socket: start the forwarder"
        }
        (io::ErrorKind::ConnectionRefused, _) => "nobody listens there: start the forwarder",
        (io::ErrorKind::TimedOut, _) => "the host does not answer: check its address and firewall",
        _ => return error.to_string(),
    };
    format!("{error}; {way_out}")
}
