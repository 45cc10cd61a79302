//! What can go wrong on the way between Java and named data.

use thiserror::Error;

/// A failure as Java sees it: each is thrown as the class that the module `jni`
/// names for it, with this text.
#[derive(Debug, Error)]
pub enum NativeError {
    /// The handle was never given out, or what it stood for is closed.
    #[error("{what} handle {handle}: not open; it was closed or never given out")]
    NotOpen {
        /// Kind of thing that was asked for.
        what: &'static str,
        /// The handle as it came from Java.
        handle: i64,
    },
    /// What the call waited on was closed while it waited.
    #[error("{what} {name}: closed")]
    Closed {
        /// Kind of thing.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The node's configuration is refused.
    #[error("node configuration: {0}")]
    Config(String),
    /// The text is no name.
    #[error("name {text:?}: {cause}")]
    Name {
        /// The text as it came from Java.
        text: String,
        /// Why it is refused.
        cause: String,
    },
    /// An argument lies outside of what it may be.
    #[error("{0}")]
    Argument(String),
    /// The wait ended before anything came.
    #[error("{what}: nothing within {ms} ms")]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long, in milliseconds.
        ms: u64,
    },
    /// A segment did not verify however often it was asked for.
    #[error(
        "{name}: segment {segment} was asked for {times} times and never verified: whoever answers \
         holds a damaged one, or another write's"
    )]
    Unverified {
        /// The stream's name.
        name: String,
        /// Number of the segment.
        segment: u64,
        /// How often it was asked for.
        times: u32,
    },
    /// There is no room for more within a bound.
    #[error("{0}")]
    NoRoom(String),
    /// A stream or file failed for good.
    #[error("{0}")]
    Failed(String),
}

/// The result of everything Java can ask for.
pub type Result<T> = std::result::Result<T, NativeError>;
