//! `trunkline ping` and `trunkline pingserver`: names and answers as ndnping has them,
//! `<prefix>/ping/<number>`.

mod client;
mod pinger;
mod server;
mod stats;

pub use client::ping;
pub use server::pingserver;
