//! Mirrored replication (TCP-MR) at a DataNode: the user's half of the eBPF program in `mirror/bpf`.
//!
//! [`Program`] loads it and gives typed views of its maps, whose layouts are in [`layout`]. What the program does, and
//! its two state machines, are told above its code. [`Agent`] keeps it at a host's interfaces and has its maps follow
//! what the controller says; [`status`], [`off`](mod@off) and [`doctor`] work without one, by the pins ([`pins`]).
//!
//! The loader is aya and not libbpf-rs. Both are well kept, and both know clsact, BTF maps, CO-RE and pinning. But
//! libbpf-rs links libelf and zlib: each machine that builds the workspace would need their headers, and each host that
//! runs the `trunkline` command their libraries, whether it mirrors or not. aya is Rust alone.

pub mod controller;
pub mod cost;
pub mod doctor;
pub mod layout;
pub mod metrics;
pub mod off;
pub mod pins;
pub mod status;
pub mod switch;

mod agent;
mod attach;
mod complaints;
mod fallen;
mod foreign;
#[cfg(fuzzing)]
pub mod fuzzing;
mod http;
mod interfaces;
mod keeper;
mod maps;
mod netlink;
mod program;
mod reconcile;
mod session;
mod sockets;
mod standing;
mod tc;
mod wire;
mod words;

pub use agent::{Agent, AgentError, AgentOptions, Loaded};
pub use attach::AttachError;
pub use maps::MapsError;
pub use program::{LoadError, Program};
pub use standing::Standing;
