//! TLV types of the management protocol. One number means different things in different datasets.
//!
//! Those from 64,768 on are this forwarder's own; others pass over them.

/// Element of a command's name: its parameters; also in a response.
pub const CONTROL_PARAMETERS: u32 = 104;
/// Number of a face.
pub const FACE_ID: u32 = 105;
/// Other end of a face.
pub const URI: u32 = 114;
/// This end of a face, or of a listener.
pub const LOCAL_URI: u32 = 129;
/// Who made a route.
pub const ORIGIN: u32 = 111;
/// Cost of a route or next hop.
pub const COST: u32 = 106;
/// Capacity of the content store.
pub const CAPACITY: u32 = 131;
/// A number of packets.
pub const COUNT: u32 = 132;
/// Flags of a face, a route or the content store.
pub const FLAGS: u32 = 108;
/// Which flags to change.
pub const MASK: u32 = 112;
/// Name of a strategy.
pub const STRATEGY: u32 = 107;
/// Milliseconds until something ends.
pub const EXPIRATION_PERIOD: u32 = 109;
/// What ends a face: 0 an error, 1 also idleness, 2 nothing.
pub const FACE_PERSISTENCY: u32 = 133;
/// First interval of congestion marking, nanoseconds.
pub const BASE_CONGESTION_MARKING_INTERVAL: u32 = 135;
/// Queue length from which congestion is marked, bytes.
pub const DEFAULT_CONGESTION_THRESHOLD: u32 = 136;
/// Greatest packet in one piece, bytes.
pub const MTU: u32 = 137;

/// Answer to a command.
pub const CONTROL_RESPONSE: u32 = 101;
/// Code of an answer, like an HTTP status.
pub const STATUS_CODE: u32 = 102;
/// Text of an answer.
pub const STATUS_TEXT: u32 = 103;

/// An entry of a dataset that is a list: FaceStatus, FibEntry, RibEntry, StrategyChoice; also CsInfo.
pub const ENTRY: u32 = 128;
/// A next hop in a FibEntry, a route in a RibEntry.
pub const INNER: u32 = 129;
/// ChannelStatus.
pub const CHANNEL_STATUS: u32 = 130;
/// Scheme of a face's URI, in a query.
pub const URI_SCHEME: u32 = 131;
/// 0 another host, 1 this host.
pub const FACE_SCOPE: u32 = 132;
/// 0 point to point, 1 multi-access, 2 ad hoc.
pub const LINK_TYPE: u32 = 134;
/// A query for faces.
pub const FACE_QUERY_FILTER: u32 = 150;
/// A notification about a face.
pub const FACE_EVENT_NOTIFICATION: u32 = 192;
/// What happened to a face.
pub const FACE_EVENT_KIND: u32 = 193;

/// Interests received.
pub const N_IN_INTERESTS: u32 = 144;
/// Data received.
pub const N_IN_DATA: u32 = 145;
/// Interests sent.
pub const N_OUT_INTERESTS: u32 = 146;
/// Data sent.
pub const N_OUT_DATA: u32 = 147;
/// Bytes received.
pub const N_IN_BYTES: u32 = 148;
/// Bytes sent.
pub const N_OUT_BYTES: u32 = 149;
/// Nacks received.
pub const N_IN_NACKS: u32 = 151;
/// Nacks sent.
pub const N_OUT_NACKS: u32 = 152;
/// Pending Interests that were answered.
pub const N_SATISFIED_INTERESTS: u32 = 153;
/// Pending Interests that were not.
pub const N_UNSATISFIED_INTERESTS: u32 = 154;

/// General status: version of the software.
pub const NFD_VERSION: u32 = 128;
/// General status: when it started, milliseconds since the Unix epoch.
pub const START_TIMESTAMP: u32 = 129;
/// General status: its time now, milliseconds since the Unix epoch.
pub const CURRENT_TIMESTAMP: u32 = 130;
/// General status: entries of the name tree.
pub const N_NAME_TREE_ENTRIES: u32 = 131;
/// General status: entries of the FIB.
pub const N_FIB_ENTRIES: u32 = 132;
/// General status: pending Interests.
pub const N_PIT_ENTRIES: u32 = 133;
/// General status: what strategies remember.
pub const N_MEASUREMENTS_ENTRIES: u32 = 134;
/// General status and CsInfo: packets in the content store.
pub const N_CS_ENTRIES: u32 = 135;

/// CsInfo: Interests answered.
pub const N_HITS: u32 = 129;
/// CsInfo: Interests not answered.
pub const N_MISSES: u32 = 130;

/// CsInfo, ours: bytes in use.
pub const N_CS_BYTES: u32 = 64768;
/// Face and general status, ours: Interests dropped at a bound of the PIT.
pub const N_DROPPED_PIT_FULL: u32 = 64770;
/// Face and general status, ours: packets dropped for their scope.
pub const N_DROPPED_SCOPE: u32 = 64772;
/// Face and general status, ours: Interests dropped for their hop limit.
pub const N_DROPPED_HOP_LIMIT: u32 = 64774;
/// Face and general status, ours: Interests dropped as loops.
pub const N_DROPPED_LOOP: u32 = 64776;
/// Face and general status, ours: Data dropped because nobody asked for it.
pub const N_DROPPED_UNSOLICITED: u32 = 64778;
/// General status, ours: bytes of pending Interests.
pub const N_PIT_BYTES: u32 = 64780;
/// General status, ours: Interests flooded by self-learning.
pub const N_FLOODS: u32 = 64782;
/// Face status, ours: pending Interests that the face waits for.
pub const N_PENDING_IN: u32 = 64784;
/// Face status, ours: pending Interests that the face was asked.
pub const N_PENDING_OUT: u32 = 64786;
/// General status, ours: bytes that wait to be sent on all faces.
pub const N_QUEUED_BYTES: u32 = 64788;
/// General status, ours: bytes that may wait to be sent.
pub const QUEUE_CAPACITY: u32 = 64790;
/// General status, ours: packets dropped because all faces together had too much waiting.
pub const N_DROPPED_QUEUES_FULL: u32 = 64792;
/// Face and general status, ours: packets not sent because too many waited already to be handed to their faces.
pub const N_DROPPED_OUTPUTS_FULL: u32 = 64794;
/// Face status, ours: Data from the face that a downstream has rejected since.
pub const N_REJECTED: u32 = 64806;
/// A number that makes a FaceQueryFilter unlike others. Not one of NFD's: even and above 31, thus passed over.
pub const QUERY_NUMBER: u32 = 0xf520;
/// General status, ours: a part of the memory account, with the three elements below in it.
pub const MEMORY_PART: u32 = 64796;
/// Part of the memory account: its name.
pub const MEMORY_PART_NAME: u32 = 64798;
/// Part of the memory account: bytes held.
pub const N_MEMORY_BYTES: u32 = 64800;
/// Part of the memory account: bytes that may be held.
pub const MEMORY_CAPACITY: u32 = 64802;
/// Face status, ours: a name that the other end has proven to have; as often as it has names.
pub const PEER_NAME: u32 = 64804;
