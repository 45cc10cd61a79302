//! The tables of a forwarder. None knows of faces or packets' further way; none reads a clock.

pub(crate) mod cs;
pub(crate) mod dead_nonce;
pub(crate) mod fib;
pub(crate) mod hash;
pub(crate) mod index;
pub(crate) mod list;
pub(crate) mod name_table;
pub(crate) mod pit;
pub(crate) mod prefetch;
pub(crate) mod slab;
pub(crate) mod strategy_choice;
pub(crate) mod wheel;

/// "None" among slab slots.
pub(crate) const NIL: u32 = u32::MAX;
