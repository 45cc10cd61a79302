//! What every face is made of, whatever carries its bytes: the link service, the greeting, frames
//! cut out of a stream, the send queue and its share of the node's budget. What it asks of whatever
//! carries its bytes stands in `io`.

pub(crate) mod address_proof;
pub(crate) mod backlog;
pub(crate) mod budget;
pub(crate) mod budgets;
pub(crate) mod chunk;
pub(crate) mod datagram;
pub(crate) mod datagram_buffers;
pub(crate) mod hello;
pub(crate) mod io;
pub(crate) mod link;
pub(crate) mod queue;
pub(crate) mod reader;
pub(crate) mod stream;
