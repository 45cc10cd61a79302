//! How many Interests may be outstanding: one trait for whoever brings a congestion control, one file for each of our own.
//!
//! A [`ConsumerConfig`](crate::ConsumerConfig) holds a [`CongestionControlFactory`]; each consumer has it build one
//! [`CongestionControl`] of its own. The settings of the three that come with this crate are such factories:
//! [`CubicConfig`], the default, [`AimdConfig`] and [`FixedConfig`].
//!
//! ```
//! use ndn_endpoint::{CongestionControl, CongestionControlFactory, ConsumerConfig};
//! use std::{sync::Arc, time::Duration};
//!
//! /// Twice as many segments as came since the last loss.
//! #[derive(Debug, Clone)]
//! struct Doubling(usize);
//!
//! impl CongestionControl for Doubling {
//!     fn window(&self) -> usize {
//!         self.0
//!     }
//!     fn on_data(&mut self, _now: Duration, _srtt: Option<Duration>) {
//!         self.0 += 2;
//!     }
//!     fn on_congestion(&mut self, _now: Duration) {
//!         self.0 = 1;
//!     }
//!     fn on_timeout(&mut self, _now: Duration) {
//!         self.0 = 1;
//!     }
//!     fn clone_box(&self) -> Box<dyn CongestionControl> {
//!         Box::new(self.clone())
//!     }
//! }
//!
//! #[derive(Debug)]
//! struct DoublingFactory;
//!
//! impl CongestionControlFactory for DoublingFactory {
//!     fn build(&self, _now: Duration) -> Box<dyn CongestionControl> {
//!         Box::new(Doubling(1))
//!     }
//! }
//!
//! let mut config = ConsumerConfig::new("/a/v=1".parse()?);
//! config.congestion = Arc::new(DoublingFactory);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aimd;
mod cubic;
mod fixed;

pub use aimd::{Aimd, AimdConfig};
pub use cubic::{Cubic, CubicConfig};
pub use fixed::{Fixed, FixedConfig};

use std::fmt::Debug;
use std::time::Duration;

/// A congestion control: told what happened, asked for the window. Windows are counted in segments.
///
/// The [`Consumer`](crate::Consumer) sees to it that [`on_congestion`](Self::on_congestion) comes at most once a round
/// trip and [`on_timeout`](Self::on_timeout) once an episode, and that [`on_data`](Self::on_data) comes only while the
/// window was what held Interests back.
pub trait CongestionControl: Debug + Send {
    /// Greatest number of Interests outstanding, at least 1.
    fn window(&self) -> usize;

    /// A segment came; `srtt` is the smoothed round trip where it is known.
    fn on_data(&mut self, now: Duration, srtt: Option<Duration>);

    /// A segment was lost though later ones came, or the network marked or refused one.
    fn on_congestion(&mut self, now: Duration);

    /// Nothing came back any more: the path must be felt out anew.
    fn on_timeout(&mut self, now: Duration);

    /// A copy of its state, to go back to where a timeout turns out to have been for nothing.
    fn clone_box(&self) -> Box<dyn CongestionControl>;
}

/// Makes the congestion control of each new consumer (as quinn's `ControllerFactory`).
pub trait CongestionControlFactory: Debug + Send + Sync {
    /// A congestion control in its first state; `now` is the consumer's time.
    fn build(&self, now: Duration) -> Box<dyn CongestionControl>;
}

/// A window kept as a fraction, as whole segments.
fn whole(window: f64) -> usize {
    (window as usize).max(1)
}
