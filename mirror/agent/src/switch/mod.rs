//! Mirrored replication at a Linux bridge: the user's half of `mirror/bpf/switch.bpf.c`, which makes of a bridge what flow
//! entries make of an OpenFlow switch.
//!
//! [`SwitchAgent`] keeps the program at the bridge's ports, tells the controller of its ports, of other switches and of
//! hosts, and makes the entries that the controller wants. [`SwitchStatus`] and [`off`](off::off) work without one, by the
//! pins ([`pins`]).

pub mod layout;
pub mod off;

mod agent;
mod attach;
mod batch;
mod bridge;
mod events;
mod fit;
mod frames;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod hosts;
mod identity;
mod keeper;
mod maps;
mod metrics;
mod neighbours;
mod packets;
mod ports;
mod program;
mod session;
mod status;
mod unusable;
mod wire;

pub use agent::{SwitchAgent, SwitchError, SwitchOptions};
pub use attach::pins;
pub use program::SwitchProgram;
pub use status::{CopyStatus, EntryStatus, StatusError, SwitchStatus};

/// Where a bridge's agent pins unless it is told otherwise.
pub const DEFAULT_PIN: &str = "/sys/fs/bpf/trunkline-mirror-switch";
