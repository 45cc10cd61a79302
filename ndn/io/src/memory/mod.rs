//! Memory that processes of one host share: a mapped file, and packets in it.

pub(crate) mod mapping;
pub(crate) mod packets;
