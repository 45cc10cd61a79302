/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Where the programs and the agent meet: keys and values of the maps. Their Rust twins are in agent/src/layout.rs, field
 * by field. Numbers are in host order where their type doesn't say otherwise; padding is written out. */
#ifndef MR_STATE_H
#define MR_STATE_H

#include <linux/bpf.h>
#include <linux/types.h>

/* A mirrored copy is known by the first three octets of its source address: locally administered, no vendor's. */
#define MR_MARK_0 0x02
#define MR_MARK_1 0x4d
#define MR_MARK_2 0x52

#define MR_RELEASED 0x4d52 /* skb->mark of what a program has sent itself, which none judges again */

/* Entries of each map of flows: as many as a DataNode has transfer threads, unless told otherwise. mr_snd_flows takes some
 * 20 MiB of the kernel's memory. */
#define MR_FLOWS 4096
#define MR_STARTS 16384 /* connections whose start is remembered, announced or not */
#define MR_DATA_PORTS 4

/* Ranges that D_j holds beyond its ACK: one bit for MR_UNIT octets, in a ring of 16 MiB. */
#define MR_UNIT_SHIFT 9
#define MR_UNIT (1u << MR_UNIT_SHIFT)
#define MR_WORDS 512
#define MR_UNITS (MR_WORDS * 64)
#define MR_REACH ((MR_UNITS - 64) * MR_UNIT)

#define MR_WINDOW (1u << 30) /* the largest window of TCP (RFC 7323): nobody is further ahead or behind */

/* Windows are coupled before the mirror is confirmed, too, for so long. */
#define MR_SETTLE_NS 10000000000ull
/* Of a packet of HDFS so much may have come, as far as is known: its default is 64 KiB, and there is room for twice this. */
#define MR_PART_LEAST 49152
/* While retransmissions are on their way to the next replica, the client gets no further ahead of it: some switch's queue. */
#define MR_RECOVERY_AHEAD 262144
/* So long the next replica may take to say what it has, in 2^20 ns: less than the client waits before it probes. */
#define MR_LACK_MS 128
/* Windows are coupled no longer than this after the next replica last went on, in 2^20 ns: about two seconds. */
#define MR_STALL_MS 2048

/* What the writer said again is on its way to D_j as a copy for so long, in 2^20 ns. */
#define MR_AGAIN_MS 64

/* An ACK on a segment that is not sent goes at once where the segment is no longer than this; cutting a longer one has the
 * kernel copy it whole. On longer ones it waits for a shorter, until so many octets of D_j's are unacknowledged (answers of
 * HDFS have 9 to 30; no sender waits for its window before ten segments), or so long, in 2^20 ns. */
#define MR_CUT_MOST 4096
#define MR_OWED_MOST 64
#define MR_OWED_MS 16

#define MR_REPEATS 64 /* the last real retransmissions that a flow remembers */

/* A TCP connection in the direction of the block: from D_{j-1} to D_j. IPv4 addresses are mapped (::ffff:a.b.c.d). */
struct mr_key {
  __be32 source[4];
  __be32 target[4];
  __be16 source_port;
  __be16 target_port;
};

enum mr_counter {
  MR_C_MIRRORED,          /* mirrored segments handed to the stack */
  MR_C_MIRRORED_BYTES,
  MR_C_MIRROR_STALE,      /* mirrored segments that held nothing new; dropped */
  MR_C_MIRROR_AHEAD,      /* mirrored segments beyond the receive window */
  MR_C_MIRROR_SIGNAL,     /* mirrored SYN, RST, FIN or ACK without data; dropped */
  MR_C_MIRROR_UNARMED,    /* mirrored segments before the stream's start was known here, or D_{j-1} was ready; dropped */
  MR_C_MIRROR_UNKNOWN,    /* marked frames of no announced flow; dropped */
  MR_C_ACK_RAISED,        /* D_{j-1}'s ACKs whose sequence number was raised to what the mirror had brought */
  MR_C_VIRTUAL,           /* segments not sent, as the mirror brings them */
  MR_C_VIRTUAL_BYTES,
  MR_C_REAL,              /* first transmissions that really went */
  MR_C_REAL_BYTES,
  MR_C_REAL_HOLE,         /* of these, for D_j had told of a hole there */
  MR_C_RETRANSMITTED,     /* retransmissions that really went */
  MR_C_RETRANSMITTED_BYTES,
  MR_C_REPEAT_SUPPRESSED, /* retransmissions too soon after the last of the same segment */
  MR_C_ACK_HELD,          /* ACKs for what was not sent yet, lowered */
  MR_C_ACK_RELEASED,      /* held ACKs given to the stack when the segment was sent */
  MR_C_ACK_KEPT,          /* ACKs on segments not sent, which went alone */
  MR_C_ACK_IMPLAUSIBLE,   /* ACKs that D_j can't have sent; taken for no news */
  MR_C_SACK_CLIPPED,
  MR_C_DSACK_STRIPPED,
  MR_C_ABORTED,           /* FIN or RST of D_{j-1} behind what D_j has, sent as RST where D_j is */
  MR_C_WINDOW_LOWERED,    /* windows lowered to what the slowest replica can take */
  MR_C_BUSY,              /* frames dropped as another processor did not let go of their flow */
  MR_C_FELL_BACK,         /* flows that gave up; their entry has the reason */
  MR_COUNTERS
};

/* Why a flow fell back to real sending. */
enum mr_reason {
  MR_WHY_NONE,
  MR_WHY_NO_SOCKET,    /* the kernel has no such connection */
  MR_WHY_LATE,         /* announced after the set-up response, which was not seen: where the stream starts can't be known */
  MR_WHY_OPTIONS,      /* TCP options that can't be altered: signatures, multipath, a strange layout */
  MR_WHY_GAP,          /* a segment was sent that the egress program did not see */
  MR_WHY_REACH,        /* a segment is longer than the bitmap can be asked about */
  MR_WHY_URGENT,       /* urgent data */
  MR_REASONS
};

enum mr_snd_state { MR_SND_NEW, MR_SND_REAL, MR_SND_VIRTUAL, MR_SND_RECOVERY, MR_SND_FALLEN, MR_SND_CLOSED };
enum mr_rcv_state { MR_RCV_NEW, MR_RCV_STARTED, MR_RCV_OUT_OF_STEP, MR_RCV_IN_STEP, MR_RCV_FALLEN };

/* D_{j-1}'s side of a connection to D_j. The agent makes the entry when the connection is announced, before its first
 * segment or in mid-stream: all zero but `response_at`. From then on only the programs write to it. */
struct mr_snd {
  __u32 lock; /* lock.h */
  __u32 response_at; /* octets from D_j before its set-up response: 0, or those of a SASL handshake */
  __u8 state, reason;
  __u8 have_zero; /* 1: known; 2: never to be known, as it was announced too late and not written down */
  __u8 have_sent_ack;
  __u8 have_ts;   /* our_ts is known */
  __u8 in_step;   /* D_j's last ACK said that mirrored data is landing */
  __u8 confirmed; /* one ACK at least has said so */
  __u8 scale;     /* of the windows that D_j advertises */
  __u32 zero;      /* the stream's start: the ack field of the set-up response */
  __u32 sent;      /* all before it was sent, really or virtually; the stack's snd_nxt */
  __u32 acked;     /* D_j's highest ACK, held or not */
  __u32 edge;      /* right edge of D_j's window */
  __u32 heard;     /* highest edge of D_j's SACK blocks, unclipped; never before `acked` */
  __u32 recover;   /* in RECOVERY: D_j must ACK this far before anything is virtual again */
  __u32 sent_ack;  /* highest ACK of D_j's octets that really went */
  __be32 their_ts; /* D_j's last timestamp; 0: none yet */
  __u32 their_ms;  /* when it came, in 2^20 ns */
  __be32 our_ts;   /* ours on this connection */
  __u32 fin;       /* where the stream that we sent ends */
  __u16 sent_window; /* the last window that really went, unscaled */
  __u8 have_fin;
  __u8 have_again;
  __u32 again_from; /* what the writer said again lies from here */
  __u32 again_to;   /* to here: D_j gets that by copies, which it may not have told of yet */
  __u32 again_ms;   /* when the first of it came, in 2^20 ns */
  __u32 told;       /* up to here our stack was told again of what D_j holds */
  __u32 moved_ms;   /* when D_j's ACK or its window's edge last went on, in 2^20 ns */
  __u32 part;       /* the most that came of a packet of HDFS while D_j lacked it; 0: none was seen */
  __u32 owed_ms;    /* since when an ACK waits that went on no segment, in 2^20 ns; 0: none does */
  __u32 pad;
  __u64 seen_ns;   /* when a segment was last seen; the agent's collection of garbage goes by it */
  __u64 seen_tick; /* of the kernel's, at `seen_ns` */
  __u64 begun_ns;  /* when the first was seen */
  struct mr_repeat {
    __u32 seq;
    __u32 at_ms;
  } repeats[MR_REPEATS];
  __u64 held[MR_WORDS]; /* ranges.h */
  __u64 counters[MR_COUNTERS];
};

/* D_j's side of a connection from D_{j-1}, and D_1's of the client's. Made by the agent, as above. */
struct mr_rcv {
  __u32 lock; /* lock.h */
  __u32 response_at; /* octets to D_{j-1} before the set-up response */
  __u8 state, reason;
  __u8 have_mirrored;
  __u8 have_next; /* there is a further replica, by the connection `next` */
  __u32 zero;     /* the stream's start in this connection */
  __u32 delta;    /* from the client's sequence numbers to this connection's */
  __u32 mirrored; /* highest octet that a mirrored copy brought */
  __u64 seen_ns, seen_tick;
  struct mr_key next;
  __u8 ready; /* D_{j-1} holds ACKs that come too early for its stack: its last data said so */
  __u8 have_high;
  __u8 scale; /* of the windows that we advertise on this connection */
  __u8 pad;
  __u32 high; /* the end of what came of the writer's octets; D_{j-1}'s own segments do not count */
  __u32 pad_high;
  __u64 counters[MR_COUNTERS];
};

/* The start of the stream in the client's connection to D_1: what D_1's agent read in its `mr_rcv` (zero), brought to
 * D_j by the controller. The agent writes it once; a mirrored segment counts only after it. */
struct mr_head {
  __u32 zero;
};

/* Where the stream of a connection to or from a data port starts: written down as its set-up response is seen, for an
 * announcement that may follow. Holds where no handshake comes before the response. */
struct mr_start {
  __u32 zero;  /* what the response acknowledges */
  __u32 first; /* the response's own number */
  __u32 known; /* 0: the response had passed before */
  __u32 pad;
} __attribute__((aligned(8)));

struct mr_config {
  __u32 off;       /* not 0: nothing new is virtual, flows that are ahead end well. First in every release: others set it */
  __u32 repeat_ms; /* a retransmission of the same segment within this time is not repeated */
  __be16 data_ports[MR_DATA_PORTS]; /* where DataNodes take blocks; 0: none */
  __u32 before; /* not 0: behind this program is another release's, for the flows that it has: it drops what is marked and
                   of none of these */
};

#endif
