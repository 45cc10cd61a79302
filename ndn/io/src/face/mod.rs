//! What every face is made of, whatever carries its bytes: the link service, the greeting, frames
//! cut out of a stream, the send queue and its share of the node's budget.

pub(crate) mod backlog;
pub(crate) mod chunk;
pub(crate) mod hello;
pub(crate) mod link;
pub(crate) mod queue;
pub(crate) mod reader;
pub(crate) mod send_budget;
