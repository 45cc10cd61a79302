//! How a client command finds its forwarder, connects, and runs until it is done or stopped.

use std::fmt::Display;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ndn_io::{App, Client, ClientError, ClientOptions, FaceUri, FaceUriError, find_forwarder};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::error::{CliError, Exit, io_cause};

/// How long a forwarder may take to say whether it takes jumbo packets; others than ours never do.
const HELLO_PATIENCE: Duration = Duration::from_secs(1);

/// Set by SIGINT or SIGTERM.
#[derive(Debug, Clone)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// From now on the signals set the flag instead of ending the process; a second one ends it.
    ///
    /// # Errors
    /// The system refuses.
    pub fn on_signals() -> Result<Self, CliError> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(
                signal,
                Exit::Interrupted as i32,
                flag.clone(),
            )
            .and_then(|_| signal_hook::flag::register(signal, flag.clone()))
            .map_err(|e| CliError::failed("signals", e))?;
        }
        Ok(Stop(flag))
    }

    /// Whether one came.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Connects to the forwarder that `face` names, or that is found without it.
///
/// # Errors
/// There is none; says where it was looked for and how to start one.
pub fn connect(face: Option<&str>) -> Result<Client, CliError> {
    connect_to(&find(face)?)
}

/// Where the forwarder is that `face` names, or that is found without it.
///
/// # Errors
/// The address is none.
pub fn find(face: Option<&str>) -> Result<FaceUri, CliError> {
    find_forwarder(face).map_err(|e| CliError::usage("forwarder", e))
}

/// Connects to the forwarder at `uri`.
///
/// # Errors
/// As [`connect`].
pub fn connect_to(uri: &FaceUri) -> Result<Client, CliError> {
    Client::connect(uri, &ClientOptions::default()).map_err(|e| client_error(uri, &e))
}

/// Runs `app` on `client` until it is over or stopped.
///
/// # Errors
/// The forwarder went away.
pub fn drive<A: App>(
    client: &mut Client,
    app: &mut A,
    stop: &Stop,
    over: impl Fn(&A) -> bool,
) -> Result<(), CliError> {
    let uri = client.uri().clone();
    client
        .run(app, |app| stop.is_set() || over(app))
        .map_err(|e| client_error(&uri, &e))
}

/// Whether the forwarder takes packets of 64 KiB.
///
/// # Errors
/// It went away.
pub fn agrees_to_jumbo(client: &mut Client) -> Result<bool, CliError> {
    let uri = client.uri().clone();
    client
        .settle(HELLO_PATIENCE)
        .map_err(|e| client_error(&uri, &e))
}

/// A seed for nonces: no two consumers may have the same.
pub fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// What is wrong with a face's address that `setting` gave.
pub fn bad_uri(setting: &str, text: &str, error: &FaceUriError) -> CliError {
    let said = error.to_string();
    let cause = said.strip_prefix(&format!("`{text}` ")).unwrap_or(&said);
    CliError::usage(format!("{setting} {text}"), cause)
}

/// A forwarder that does not answer its management's questions.
pub fn no_answer(uri: &FaceUri, cause: impl Display) -> CliError {
    let way_out = if uri.is_on_this_host() {
        "see its log; it must let local applications manage it"
    } else {
        "manage it from its own host; it takes prefixes of other hosts where its [management] has localhop = true"
    };
    CliError::new(Exit::NoData, format!("forwarder at {uri}"), cause).or(way_out)
}

/// What became of the connection, in the house's form.
pub fn client_error(uri: &FaceUri, error: &ClientError) -> CliError {
    match error {
        ClientError::Connect { error, .. } => CliError::new(
            Exit::NoForwarder,
            format!("no forwarder at {uri}"),
            io_cause(error),
        )
        .or("start one with trunkline fwd run, or name another with --face"),
        ClientError::Lost { reason, .. } => {
            CliError::new(Exit::NoForwarder, format!("forwarder at {uri}"), reason)
                .or("see whether it still runs")
        }
        ClientError::NoAnswer { what, seen, .. } => {
            no_answer(uri, format!("no answer to {what} but {seen}"))
        }
        ClientError::Refused {
            name, code, text, ..
        } => CliError::failed(
            format!("prefix {name}"),
            format!("the forwarder refused: {code} {text}"),
        ),
        other => CliError::failed(format!("forwarder at {uri}"), other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_differ() {
        assert_ne!(seed(), seed());
    }
}
