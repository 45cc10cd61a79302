//! Sizes and durations as people write them (`256MiB`, `1500ms`) and as they like to read them.

use std::time::Duration;

/// Suffixes of a size, longest first so that `MiB` is not taken for `B`.
const SIZE_SUFFIXES: [(&str, u64); 10] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("K", 1 << 10),
    ("B", 1),
];

/// Suffixes of a duration in nanoseconds, longest first.
const TIME_SUFFIXES: [(&str, u64); 6] = [
    ("us", 1_000),
    ("ms", 1_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Reads a size in bytes: a whole number with `B`, `kB`, `MB`, `GB`, `TB` (powers of 1000),
/// `KiB`, `MiB`, `GiB`, `TiB` (powers of 1024), or none of them for bytes.
///
/// # Errors
/// A sentence that says what a size looks like.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let (digits, unit) = split_unit(text, &SIZE_SUFFIXES).unwrap_or((text, 1));
    digits
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(unit))
        .ok_or_else(|| format!("`{text}` is no size; write one like 8800, 64KiB or 256MiB"))
}

/// Reads a duration: a whole number with `us`, `ms`, `s`, `min`, `h` or `d`.
///
/// # Errors
/// A sentence that says what a duration looks like.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    split_unit(text, &TIME_SUFFIXES)
        .and_then(|(digits, unit)| Some((digits.parse::<u64>().ok()?, unit)))
        .and_then(|(n, unit)| n.checked_mul(unit))
        .map(Duration::from_nanos)
        .ok_or_else(|| format!("`{text}` is no duration; write one like 500ms, 4s or 1h"))
}

fn split_unit<'a>(text: &'a str, suffixes: &[(&str, u64)]) -> Option<(&'a str, u64)> {
    suffixes
        .iter()
        .filter_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?.trim_end(), *unit)))
        .find(|(digits, _)| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// A size in the largest binary unit that reads well: `10.0 MiB`.
pub fn show_size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A rate in Mbit/s or Gbit/s.
pub fn show_rate(bytes: u64, time: Duration) -> String {
    let mbit_s = mbit_per_s(bytes, time);
    if mbit_s >= 1000.0 {
        format!("{:.2} Gbit/s", mbit_s / 1000.0)
    } else {
        format!("{mbit_s:.1} Mbit/s")
    }
}

/// A rate in units of 10⁶ bits a second; 0 for no time at all.
pub fn mbit_per_s(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() {
        0.0
    } else {
        bytes as f64 * 8.0 / 1e6 / time.as_secs_f64()
    }
}

/// A duration in milliseconds with its fraction.
pub fn as_ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// A duration as settings are written: the largest unit that holds it whole.
pub fn show_duration(time: Duration) -> String {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    for (suffix, unit) in [
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
    ] {
        if nanos >= unit && nanos.is_multiple_of(unit) {
            return format!("{}{suffix}", nanos / unit);
        }
    }
    format!("{}us", nanos / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("8800"), Ok(8800));
        assert_eq!(parse_size("256MiB"), Ok(256 << 20));
        assert_eq!(parse_size("64 KiB"), Ok(65536));
        assert_eq!(parse_size("10 MB"), Ok(10_000_000));
        for bad in ["", "MiB", "-1", "1.5GiB", "12XB", "99999999999TiB"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("1500ms"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("4s"), Ok(Duration::from_secs(4)));
        assert_eq!(parse_duration("2min"), Ok(Duration::from_secs(120)));
        for bad in ["", "4", "s", "-4s", "1.5s"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shown_durations_parse_back() {
        for ms in [1, 20, 999, 1000, 4000, 60_000, 90_000, 3_600_000] {
            let time = Duration::from_millis(ms);
            assert_eq!(parse_duration(&show_duration(time)), Ok(time));
        }
    }

    #[test]
    fn shows_sizes_and_rates() {
        assert_eq!(show_size(17), "17 B");
        assert_eq!(show_size(10 << 20), "10.0 MiB");
        assert_eq!(
            show_rate(125_000_000, Duration::from_secs(1)),
            "1.00 Gbit/s"
        );
        assert_eq!(show_rate(125_000, Duration::ZERO), "0.0 Mbit/s");
    }
}
