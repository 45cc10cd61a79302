//! `trunkline qos` against a server that answers as the controller does, or as something else does.

#[path = "../common/mod.rs"]
mod common;
mod controller;
mod policy;
mod refusals;
mod server;
mod show;
mod top;
