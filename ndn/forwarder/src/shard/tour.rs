//! How far a packet has come that visits several workers.

use crate::face::FaceId;
use ndn_packet::PitToken;

/// How far a Data has come on its way home.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tour {
    /// Workers to visit yet, a bit each.
    pub(crate) left: u64,
    /// Somebody has waited for it on the way: at home it is not unsolicited.
    pub(crate) wanted: bool,
    /// A face that had rejected what came before, as [`Origin`](crate::table::cs::Origin) has it.
    pub(crate) rejecter: u32,
    /// Who has been served.
    pub(crate) served: Vec<(FaceId, Option<PitToken>)>,
}
