//! Names that don't leave a host, or a link.

/// First component `localhost`, as bytes of a name.
pub(crate) const LOCALHOST: &[u8] = b"\x08\x09localhost";
/// First component `localhop`, as bytes of a name.
pub(crate) const LOCALHOP: &[u8] = b"\x08\x08localhop";
