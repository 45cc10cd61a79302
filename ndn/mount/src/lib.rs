//! A repository for named data as a file system, by FUSE.
//!
//! For programs that know files and nothing of names. [`Mount::local`] mounts a repository that is open in this process:
//! what is read is verified byte by byte, what is written is a new version once it is closed, and versions before it stay
//! readable as `file@v=N`. [`Mount::remote`] mounts a folder of a repository anywhere on the network, to be read: segments
//! are fetched as they are needed or a little before, and no byte of one is seen that is not what was signed.
//!
//! What is closed is seen by others at once, and durable within a second or by `fsync`. What `fsync` was told of a file that
//! is still open outlives a crash, too.

mod attr;
mod error;
mod handles;
mod local;
mod names;
mod nodes;
mod remote;
mod remote_error;
mod session;
mod wire;
mod xattr;

pub use error::MountError;
pub use remote::RemoteOptions;
pub use remote_error::RemoteError;
pub use session::{Mount, MountOptions};
