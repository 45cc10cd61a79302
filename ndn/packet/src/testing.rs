//! Help for tests.

use bytes::Bytes;

/// The bytes written in hexadecimal, white space ignored.
pub(crate) fn hex(text: &str) -> Bytes {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).expect("a hexadecimal digit") as u8)
        .collect();
    assert!(digits.len().is_multiple_of(2), "odd number of digits");
    digits.chunks(2).map(|p| p[0] << 4 | p[1]).collect()
}
