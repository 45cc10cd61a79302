//! What carries the bytes of a face: streams (TCP, Unix sockets, shared memory) and datagrams (UDP).

pub(crate) mod conn;
pub(crate) mod fd_passing;
pub(crate) mod shm;
pub(crate) mod socket;
pub(crate) mod stream;
pub(crate) mod udp;
