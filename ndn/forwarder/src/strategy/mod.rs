//! Forwarding strategies: which next hops get an Interest, and what is done about Nacks and retransmissions.
//!
//! | strategy | an Interest goes to | learns |
//! |---|---|---|
//! | best-route | the cheapest next hop; retransmitted, the next one | nothing |
//! | multicast | all next hops | nothing |
//! | self-learning | the face that last answered under the same prefix, else all next hops | that face |
//!
//! A strategy is one file with a type that implements [`Strategy`](hooks::Strategy), and a line in `registry.rs`.

mod best_route;
pub(crate) mod hooks;
mod multicast;
mod nack;
mod registry;
mod retx_suppression;
mod self_learning;
mod settings;

pub(crate) use registry::Strategies;
pub use registry::StrategyKind;
pub(crate) use settings::StrategySettings;
