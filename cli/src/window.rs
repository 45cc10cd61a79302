//! How many Interests a transfer keeps on the way, as `--window` says.

use std::str::FromStr;
use std::sync::Arc;

use ndn_endpoint::{AimdConfig, CongestionControlFactory, CubicConfig, FixedConfig};
use ndn_packet::MAX_PACKET;

/// Bytes that a transfer may have on the way or unread, unless a fixed window asks for more:
/// three quarters of what a forwarder queues toward a face, where it is not told otherwise. A
/// command that is kept from its processor for a moment then finds everything in the queue;
/// with more on the way the forwarder would have had to drop, before any mark could be seen.
fn buffer_bytes() -> u64 {
    ndn_io::LinkOptions::default().send_queue_bytes as u64 / 4 * 3
}

/// What `--window` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowSpec {
    /// RFC 9438.
    Cubic,
    /// Additive increase, multiplicative decrease.
    Aimd,
    /// Always so many.
    Fixed(usize),
}

impl FromStr for WindowSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "cubic" => Ok(WindowSpec::Cubic),
            "aimd" => Ok(WindowSpec::Aimd),
            _ => text
                .strip_prefix("fixed:")
                .and_then(|n| n.parse().ok())
                .filter(|n| (1..=65_536).contains(n))
                .map(WindowSpec::Fixed)
                .ok_or_else(|| String::from("write cubic, aimd or fixed:N with N from 1 to 65536")),
        }
    }
}

impl WindowSpec {
    /// What a consumer is told.
    pub fn congestion(self) -> Arc<dyn CongestionControlFactory> {
        match self {
            WindowSpec::Cubic => Arc::new(CubicConfig::default()),
            WindowSpec::Aimd => Arc::new(AimdConfig::default()),
            WindowSpec::Fixed(n) => Arc::new(FixedConfig::new(n)),
        }
    }

    /// Segments that may be outstanding or unread, where each has so many bytes if that is known.
    pub fn buffer(self, segment_bytes: Option<u64>) -> usize {
        let segments =
            (buffer_bytes() / segment_bytes.unwrap_or(MAX_PACKET as u64).max(1)).clamp(64, 8192);
        match self {
            WindowSpec::Fixed(n) => n.max(segments as usize),
            WindowSpec::Cubic | WindowSpec::Aimd => segments as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows() {
        assert_eq!("cubic".parse(), Ok(WindowSpec::Cubic));
        assert_eq!("fixed:100".parse(), Ok(WindowSpec::Fixed(100)));
        assert_eq!(WindowSpec::Cubic.buffer(Some(64 << 10)), 192);
        assert_eq!(WindowSpec::Cubic.buffer(Some(0)), 8192);
        assert_eq!(WindowSpec::Fixed(5000).buffer(Some(64 << 10)), 5000);
        for bad in ["", "fixed", "fixed:", "fixed:0", "fixed:x", "bbr"] {
            assert!(bad.parse::<WindowSpec>().is_err(), "{bad}");
        }
    }
}
