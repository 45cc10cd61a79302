//! `trunkline put` and `trunkline get`: files to named segments and back.

mod fetch;
mod get;
mod progress;
mod publication;
mod put;
mod sink;
mod source;
mod writer;

use std::str::FromStr;

use ndn_endpoint::WindowConfig;

pub use get::get;
pub use put::put;

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
    fn config(self) -> WindowConfig {
        match self {
            WindowSpec::Cubic => WindowConfig::default(),
            WindowSpec::Aimd => WindowConfig::Aimd(Default::default()),
            WindowSpec::Fixed(n) => WindowConfig::Fixed(n),
        }
    }

    /// Segments that may be outstanding or unread.
    fn buffer(self) -> usize {
        match self {
            WindowSpec::Fixed(n) => (2 * n).max(1024),
            WindowSpec::Cubic | WindowSpec::Aimd => 4096,
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
        for bad in ["", "fixed", "fixed:", "fixed:0", "fixed:x", "bbr"] {
            assert!(bad.parse::<WindowSpec>().is_err(), "{bad}");
        }
    }
}
