//! The asking side of NFD's management protocol: sends the commands and reads the datasets that
//! [`ndn_forwarder::mgmt`] defines. Works with `trunkline fwd` and with NFD.

mod client;
mod exchange;

pub use client::{Manager, accepted, refusal};
