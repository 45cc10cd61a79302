//! How many Interests may be outstanding: one small trait, one file an algorithm.

mod aimd;
mod cubic;
mod fixed;

pub use aimd::{Aimd, AimdConfig};
pub use cubic::{Cubic, CubicConfig};
pub use fixed::Fixed;

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
    fn boxed(&self) -> Box<dyn CongestionControl>;
}

/// Which congestion control a consumer uses.
#[derive(Debug, Clone, PartialEq)]
pub enum WindowConfig {
    /// RFC 9438; the default.
    Cubic(CubicConfig),
    /// Additive increase, multiplicative decrease.
    Aimd(AimdConfig),
    /// Always this many segments, whatever the network says. For comparison and for paths that carry back-pressure.
    Fixed(usize),
}

impl Default for WindowConfig {
    fn default() -> Self {
        Self::Cubic(CubicConfig::default())
    }
}

impl WindowConfig {
    /// The algorithm in its first state.
    pub fn build(&self) -> Box<dyn CongestionControl> {
        match self {
            Self::Cubic(config) => Box::new(Cubic::new(config.clone())),
            Self::Aimd(config) => Box::new(Aimd::new(config.clone())),
            Self::Fixed(segments) => Box::new(Fixed::new(*segments)),
        }
    }
}

/// A window kept as a fraction, as whole segments.
fn whole(window: f64) -> usize {
    (window as usize).max(1)
}
