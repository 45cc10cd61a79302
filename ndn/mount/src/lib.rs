//! A repository for named data as a file system, by FUSE.
//!
//! For programs that know files and nothing of names. [`Mount::local`] mounts a repository that is open in this process:
//! what is read is verified byte by byte, what is written is a new version once it is closed, and versions before it stay
//! readable as `file@v=N`.
//!
//! What is closed is seen by others at once, and durable within a second or by `fsync`. What `fsync` was told of a file that
//! is still open outlives a crash, too.

mod attr;
mod error;
mod fuse;
mod local;
mod names;
mod nodes;
mod session;
mod wire;

pub use error::MountError;
pub use session::{Mount, MountOptions};
