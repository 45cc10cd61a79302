//! The repo protocol: insertion, check and deletion by signed commands.
//!
//! Source: named-data.net, repo-ng wiki, "Repo Command", "Basic Repo Insertion Protocol", "Repo Deletion Protocol".

mod command;
mod disk_thread;
mod ending;
mod insertion;
mod message;
mod server;
mod trust;

pub use command::{Command, Verb, command};
pub use disk_thread::Waker;
pub use insertion::InsertLimits;
pub use message::{Parameters, Response, status};
pub use server::{CommandCounters, Server};
pub use trust::{Believed, MAX_KEYS, Refusal, Right, Trust, TrustedKey};
