//! What a command says when it can't do its work: the thing, the cause and the way out,
//! and the exit status that scripts see.

use std::fmt;
use std::process::ExitCode;

/// How a command ended, as the exit status says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The operation was tried and failed.
    Failed = 1,
    /// The command line, a key or a configuration is wrong; nothing was tried.
    Usage = 2,
    /// No forwarder, or no controller, could be reached.
    NoForwarder = 3,
    /// Nobody answered: no data, no echo, a Nack.
    NoData = 4,
    /// What came was not what was signed or asked for.
    Unverified = 5,
    /// Stopped by a signal before it was done.
    Interrupted = 130,
    /// Nobody reads standard output any more; as a shell sees who is ended by SIGPIPE.
    BrokenPipe = 141,
}

impl Exit {
    /// The meaning of an exit status that another of these programs gave.
    pub fn from_code(code: u8) -> Self {
        [
            Exit::Usage,
            Exit::NoForwarder,
            Exit::NoData,
            Exit::Unverified,
            Exit::Interrupted,
            Exit::BrokenPipe,
        ]
        .into_iter()
        .find(|exit| *exit as u8 == code)
        .unwrap_or(Exit::Failed)
    }
}

/// One failure in the house's form: `thing: cause; way out`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliError {
    /// The exit status.
    pub exit: Exit,
    /// What it is about: a file, a face, a name.
    pub thing: String,
    /// Why it failed.
    pub cause: String,
    /// What the reader can do, where there is something.
    pub way_out: Option<String>,
}

impl CliError {
    /// A failure of `thing` because of `cause`.
    pub fn new(exit: Exit, thing: impl Into<String>, cause: impl fmt::Display) -> Self {
        CliError {
            exit,
            thing: thing.into(),
            cause: cause.to_string(),
            way_out: None,
        }
    }

    /// A failure that a library tells in the house's form already.
    pub fn said(exit: Exit, error: &impl fmt::Display) -> Self {
        let text = error.to_string();
        let (thing, rest) = text.split_once(": ").unwrap_or(("trunkline", &text));
        match rest.split_once("; ") {
            None => Self::new(exit, thing, rest),
            Some((cause, way_out)) => Self::new(exit, thing, cause).or(way_out),
        }
    }

    /// A failed operation.
    pub fn failed(thing: impl Into<String>, cause: impl fmt::Display) -> Self {
        Self::new(Exit::Failed, thing, cause)
    }

    /// A mistake in what was asked for.
    pub fn usage(thing: impl Into<String>, cause: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, thing, cause)
    }

    /// A file or directory that could not be used.
    pub fn file(path: &std::path::Path, cause: &std::io::Error) -> Self {
        let way_out = match cause.kind() {
            std::io::ErrorKind::NotFound => Some("check the path"),
            std::io::ErrorKind::PermissionDenied => Some("run as a user who may use it"),
            _ => None,
        };
        let mut error = Self::failed(path.display().to_string(), io_cause(cause));
        error.way_out = way_out.map(str::to_owned);
        error
    }

    /// The same failure with a way out.
    #[must_use]
    pub fn or(mut self, way_out: impl Into<String>) -> Self {
        self.way_out = Some(way_out.into());
        self
    }

    /// The exit status for `main`.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.exit as u8)
    }
}

/// The words of an I/O error without Rust's `(os error 2)`, in lower case as causes are.
pub fn io_cause(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => String::from("unknown error"),
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.thing, self.cause)?;
        match &self.way_out {
            Some(way_out) => write!(f, "; {way_out}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for CliError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_thing_cause_and_way_out() {
        let e = CliError::failed("face unix:///run/nfd/nfd.sock", "permission denied")
            .or("run as a member of group ndn");
        assert_eq!(
            e.to_string(),
            "face unix:///run/nfd/nfd.sock: permission denied; run as a member of group ndn"
        );
    }

    #[test]
    fn takes_apart_what_is_said_in_the_same_form() {
        let text =
            "/a: segment 3 and nothing else came for 10s; is its producer running?; or gone?";
        let e = CliError::said(Exit::NoData, &text);
        assert_eq!((e.exit, e.thing.as_str()), (Exit::NoData, "/a"));
        assert_eq!(e.cause, "segment 3 and nothing else came for 10s");
        assert_eq!(e.to_string(), text);

        let e = CliError::said(Exit::Failed, &"unix:///run/x: refused");
        assert_eq!((e.thing.as_str(), e.way_out), ("unix:///run/x", None));
        let e = CliError::said(Exit::Failed, &"no more threads");
        assert_eq!(e.to_string(), "trunkline: no more threads");
    }

    #[test]
    fn drops_the_number_of_an_os_error() {
        let e = std::io::Error::from_raw_os_error(2);
        assert_eq!(io_cause(&e), "no such file or directory");
    }
}
