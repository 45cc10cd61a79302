//! How a client command finds its forwarder, connects, registers a prefix, and runs until it is
//! done or stopped.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ndn_io::{
    App, Client, ClientError, ClientOptions, FaceUri, FaceUriError, Host, find_forwarder,
};
use ndn_packet::Name;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::error::{CliError, Exit, io_cause};
use crate::nfd;

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
    let uri = find_forwarder(face).map_err(|e| CliError::usage("forwarder", e))?;
    Client::connect(&uri, &ClientOptions::default()).map_err(|e| client_error(&uri, &e))
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

/// Registers `prefix`, says so by `registered`, and runs `app` until it is over or stopped; then
/// the route is taken back.
///
/// # Errors
/// The forwarder refuses the prefix or went away.
pub fn serve<A: App>(
    client: &mut Client,
    prefix: &Name,
    registered: impl FnOnce(),
    app: &mut A,
    stop: &Stop,
    over: impl Fn(&A) -> bool,
) -> Result<(), CliError> {
    nfd::register(client, prefix)?;
    registered();
    drive(client, app, stop, over)?;
    // The route goes with the face in any case; this is for those who look in between.
    if let Err(error) = nfd::unregister(client, prefix) {
        tracing::debug!(%error, "not unregistered");
    }
    Ok(())
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

/// Whether a forwarder takes this face for one from its own host, so that it listens to
/// `/localhost` commands: over UDP none does.
pub fn is_local(uri: &FaceUri) -> bool {
    match uri {
        FaceUri::Unix(_) => true,
        FaceUri::Tcp(endpoint) => match &endpoint.host {
            Host::Ip(ip) => IpAddr::to_canonical(ip).is_loopback(),
            Host::Name(name) => name == "localhost",
        },
        FaceUri::Udp(_) => false,
    }
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
        other => CliError::failed(format!("forwarder at {uri}"), other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_faces() {
        for (uri, local) in [
            ("unix:///a", true),
            ("tcp://127.0.0.9", true),
            ("tcp://[::1]:6363", true),
            ("udp://localhost", false),
            ("tcp://192.0.2.1", false),
            ("udp://router.example.org", false),
        ] {
            assert_eq!(
                is_local(&FaceUri::parse(uri).expect("a URI")),
                local,
                "{uri}"
            );
        }
    }

    #[test]
    fn seeds_differ() {
        assert_ne!(seed(), seed());
    }
}
