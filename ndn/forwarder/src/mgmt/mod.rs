//! NFD's management protocol: what the forwarder serves, and what clients need to use it.
//!
//! The protocol is that of `redmine.named-data.net/projects/nfd/wiki/Management`. Commands are signed Interests for
//! `/localhost/nfd/<module>/<verb>/<ControlParameters>` (and `/localhop/nfd/rib/…` where the policy allows it), in the
//! form of Packet Format 0.3 or in the older one with the signature in the name. Datasets are versioned and segmented.
//!
//! | module | commands | datasets |
//! |---|---|---|
//! | faces | create, update, destroy | list, query, channels; notifications: events |
//! | fib | add-nexthop, remove-nexthop | list |
//! | rib | register, unregister | list |
//! | cs | config, erase | info |
//! | strategy-choice | set, unset | list |
//! | status | | general |
//!
//! Where NFD counts packets of the content store's capacity, this forwarder counts bytes.

mod client;
mod dataset;
mod element;
mod face_query;
pub(crate) mod face_status;
mod general_status;
pub(crate) mod parameters;
mod policy;
pub mod types;

pub use client::{Scope, command, command_name, dataset_name};
pub use dataset::{
    ChannelStatus, CsInfo, Dataset, FibEntry, NextHopRecord, RibEntry, Route, StrategyChoice,
};
pub use face_query::{FaceEvent, FaceEventKind, FaceQueryFilter};
pub use face_status::{FaceStatus, PacketCounters};
pub use general_status::{GeneralStatus, MemoryPart};
pub use parameters::{
    ControlParameters, ControlResponse, FLAG_CONGESTION_MARKING, FLAG_LOCAL_FIELDS,
    FLAG_LP_RELIABILITY,
};
pub use policy::{CommandPolicy, Trust};
