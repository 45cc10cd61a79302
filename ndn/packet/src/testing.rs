//! Help for tests.

use bytes::Bytes;

/// The bytes written in hexadecimal, white space ignored.
pub(crate) fn hex(text: &str) -> Bytes {
    let digits: String = text.split_whitespace().collect();
    hex::decode(digits).expect("hexadecimal digits").into()
}
