//! A discrete-event network that drives the forwarder and endpoint cores: no I/O, no clock but its own, the same bytes
//! from the same seed.
//!
//! | for | use |
//! |---|---|
//! | who is linked with whom | [`topology`] |
//! | forwarders, lines and the clock | [`net`] |
//! | replicated writes, by name and over TCP | [`write`](mod@write) |
//! | reads of blocks, and what content stores have of them | [`read`](mod@read) |
//! | the least that could be put on the links | [`optimum`] |
//! | what was put on them | [`report`] |
//! | how long writes and jobs take where packets are too many | [`time`] |
//!
//! # What is real and what is modelled
//! Real: every Interest and Data passes the forwarders that daemons and JVMs run, and the consumers and producers that
//! the plug-in runs. Modelled: lines (rate, delay, a queue that drops), TCP's framing and window, the control messages
//! of a write. Left out: processors and disks, which take no time here; the content of segments, whose bytes the lines
//! are charged for all the same ([`wire`]).

mod block;
pub mod net;
pub mod optimum;
mod pull;
pub mod read;
pub mod report;
pub mod time;
pub mod topology;
pub mod wire;
pub mod write;

pub use block::Cut;
