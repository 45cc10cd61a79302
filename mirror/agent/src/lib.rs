//! Mirrored replication (TCP-MR) at a DataNode: the user's half of the eBPF program in `mirror/bpf`.
//!
//! [`Program`] loads it and gives typed views of its maps, whose layouts are in [`layout`]. What the program does, and
//! its two state machines, are told above its code.
//!
//! The loader is aya and not libbpf-rs. Both are well kept, and both know clsact, BTF maps, CO-RE and pinning. But
//! libbpf-rs links libelf and zlib: each machine that builds the workspace would need their headers, and each host that
//! runs the `trunkline` command their libraries, whether it mirrors or not. aya is Rust alone.

pub mod layout;
mod program;

pub use program::{LoadError, Program};
