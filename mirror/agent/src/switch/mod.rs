//! Mirrored replication at a Linux bridge: the user's half of `mirror/bpf/switch.bpf.c`, which makes of a bridge what flow
//! entries make of an OpenFlow switch.

pub mod layout;

mod program;

pub use program::SwitchProgram;
