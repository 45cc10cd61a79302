//! How a client command finds its forwarder, connects, and runs until it is done or stopped.

use std::fmt::Display;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ndn_io::{
    App, Client, ClientError, ClientOptions, FaceUri, FaceUriError, LinkOptions, find_forwarder,
};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::args::FaceArg;
use crate::error::{CliError, Exit, io_cause};
use crate::keys::SignSpec;

/// How long a forwarder may take to say whether it takes jumbo packets; others than ours never do.
const HELLO_PATIENCE: Duration = Duration::from_secs(1);

/// Set by SIGINT or SIGTERM.
#[derive(Debug, Clone)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    /// Has something to read once the flag is set, or something else is to be looked at.
    wake: Arc<UnixStream>,
    waker: Arc<UnixStream>,
}

impl Stop {
    /// From now on the signals set the flag instead of ending the process; a second one ends it.
    ///
    /// # Errors
    /// The system refuses.
    pub fn on_signals() -> Result<Self, CliError> {
        let failed = |e| CliError::failed("signals", e);
        let flag = Arc::new(AtomicBool::new(false));
        let (wake, waker) = UnixStream::pair().map_err(failed)?;
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(
                signal,
                Exit::Interrupted as i32,
                flag.clone(),
            )
            .and_then(|_| signal_hook::flag::register(signal, flag.clone()))
            .and_then(|_| signal_hook::low_level::pipe::register(signal, waker.try_clone()?))
            .map_err(failed)?;
        }
        Ok(Stop {
            flag,
            wake: Arc::new(wake),
            waker: Arc::new(waker),
        })
    }

    /// Whether one came.
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Ends [`Stop::wait_or`]'s wait so that it looks again.
    ///
    /// # Errors
    /// The system refuses.
    pub fn waker(&self) -> Result<impl FnOnce() + Send + 'static, CliError> {
        let waker = self
            .waker
            .try_clone()
            .map_err(|e| CliError::failed("signals", e))?;
        Ok(move || {
            // Where it cannot take more, there is something to read.
            let _ = (&waker).write(&[0]);
        })
    }

    /// Waits for one, or until `done`, which is asked again each time that a waker is called.
    pub fn wait_or(&self, done: impl Fn() -> bool) {
        while !self.is_set() && !done() {
            if self.wake.set_read_timeout(None).is_err() {
                break;
            }
            // Of whatever comes of it: those two tell.
            let _ = (&*self.wake).read(&mut [0]);
        }
    }

    /// Waits for one, `time` at most; whether one came.
    pub fn wait(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while !self.is_set() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.wake.set_read_timeout(Some(left)).is_err() {
                break;
            }
            // Of whatever comes of it: the flag tells.
            let _ = (&*self.wake).read(&mut [0]);
        }
        self.is_set()
    }
}

/// A forwarder to connect to.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where it is.
    pub uri: FaceUri,
    /// Settings of a face to it.
    pub link: LinkOptions,
    /// Signs commands to it.
    pub command_key: SignSpec,
}

impl Target {
    /// The forwarder that `face` names, or that is found without it.
    ///
    /// # Errors
    /// The address is none, or it needs a certificate that is not there or can't be used.
    pub fn find(face: &FaceArg) -> Result<Self, CliError> {
        let uri = find_forwarder(face.face.as_deref());
        let uri = uri.map_err(|e| CliError::usage("forwarder", e))?;
        let link = face.tls.link(&uri)?;
        let command_key = face.command_key.clone().unwrap_or(SignSpec::Digest);
        Ok(Self {
            uri,
            link,
            command_key,
        })
    }

    /// Connects to it.
    ///
    /// # Errors
    /// There is none; says where it was looked for and how to start one.
    pub fn connect(&self) -> Result<Client, CliError> {
        let options = ClientOptions {
            link: self.link.clone(),
            ..ClientOptions::default()
        };
        let key = self.command_key.load()?;
        let connected = Client::connect(&self.uri, &options);
        let mut client = connected.map_err(|e| client_error(&self.uri, &e))?;
        client.sign_commands(key);
        Ok(client)
    }
}

/// Connects to the forwarder that `face` names, or that is found without it.
///
/// # Errors
/// As [`Target::find`] and [`Target::connect`].
pub fn connect(face: &FaceArg) -> Result<Client, CliError> {
    Target::find(face)?.connect()
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
        "see its log; it must have this command and let local applications manage it"
    } else {
        "manage it from its own host; it takes prefixes of other hosts where its [management] has localhop = true"
    };
    CliError::new(Exit::NoData, format!("forwarder at {uri}"), cause).or(way_out)
}

/// What became of the connection, in the house's form.
pub fn client_error(uri: &FaceUri, error: &ClientError) -> CliError {
    match error {
        // What comes back of a handshake is not what a socket says.
        ClientError::Connect { error, .. }
            if uri.needs_certificate()
                && matches!(
                    error.kind(),
                    io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
                ) =>
        {
            CliError::new(Exit::NoForwarder, format!("face {uri}"), error)
                .or("both ends need certificates of one CA, the forwarder's with the name in the URI; see docs/tls.md")
        }
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
