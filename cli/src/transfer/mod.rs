//! `trunkline put` and `trunkline get`: files to named segments and back.

mod gather;
mod get;
mod part;
pub(crate) mod progress;
mod publication;
mod put;
mod sink;
mod source;
mod writer;

pub use gather::{GatherError, gather};
pub use get::{Job, fetch_error, get, run};
pub use publication::Publication;
pub use put::put;
pub use source::Source;
