//! `trunkline mirror …` on real interfaces, with a controller that says what a test wants. Needs root and a kernel with
//! BTF; without, each test says so and passes.

mod attach;
mod bridge;
mod bridge_ports;
mod controller;
mod doctor;
mod flows;
mod host;
mod off;
#[path = "../qos/server.rs"]
#[allow(dead_code)]
mod server;
