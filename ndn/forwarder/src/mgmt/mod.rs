//! NFD's management protocol: what the forwarder serves, and what clients need to use it.

pub(crate) mod server;

/// Whose commands are obeyed.
#[derive(Debug, Clone, Default)]
pub struct CommandPolicy {}

/// What happened to a face.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaceEventKind {
    /// It was added.
    Created,
    /// It is being removed.
    Destroyed,
    /// It came up.
    Up,
    /// It went down.
    Down,
}
