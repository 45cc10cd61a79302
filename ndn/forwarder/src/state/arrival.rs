//! An Interest on its way to a strategy, and where it may go.

use crate::face::FaceSlot;
use crate::table::fib::NextHop;
use crate::table::hash::HashedName;
use ndn_packet::Interest;
use smallvec::SmallVec;

/// Next hops that may be used.
pub(crate) type Hops = SmallVec<[NextHop; 8]>;

/// An Interest on its way to a strategy.
pub(crate) struct Arrival<'a> {
    /// Where it came from.
    pub(crate) face: FaceSlot,
    /// As it is to be sent on: with a nonce and with one hop less.
    pub(crate) interest: &'a Interest,
    pub(crate) name: &'a HashedName<'a>,
    /// Congestion mark that it came with.
    pub(crate) mark: Option<u64>,
    /// Whether a downstream has rejected a Data of this name: said to whoever is asked.
    pub(crate) rejected: bool,
    /// The face that the rejected Data came from, to be asked after all others.
    pub(crate) doubted: Option<FaceSlot>,
    /// Whether this downstream had asked before and asks again: only then has something been lost, perhaps.
    pub(crate) again: bool,
}

impl Arrival<'_> {
    /// Leaves out the face whose Data was rejected, if there is another.
    pub(crate) fn pass_over(&self, hops: &mut Hops) {
        if hops.iter().any(|h| Some(h.face) != self.doubted) {
            hops.retain(|h| Some(h.face) != self.doubted);
        }
    }
}
