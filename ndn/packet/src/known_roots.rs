//! Which batches a verifier knows already.

use std::collections::VecDeque;

/// Roots whose signatures one verifier has found right lately: no more than a few, whatever comes.
#[derive(Debug, Clone, Default)]
pub struct KnownRoots(pub(crate) VecDeque<([u8; 32], Vec<u8>)>);
