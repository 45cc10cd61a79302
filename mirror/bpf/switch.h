/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Where a mirroring switch's program and its agent meet: keys and values of the maps. Their Rust twins are in
 * agent/src/switch/layout.rs, field by field. Numbers are in host order where their type doesn't say otherwise; padding is
 * written out. An entry that is there is never changed, only replaced or removed; the agent then waits until no program
 * runs with it before it writes on. */
#ifndef MR_SWITCH_H
#define MR_SWITCH_H

#include "state.h"

#define MR_SW_ENTRIES 16384
#define MR_SW_PORTS 1024
#define MR_SW_COPIES 5 /* to all replicas of a pipeline, six at most, but the first */

/* Segments of a pipeline at this switch. */
struct mr_sw_key {
  struct mr_key flow; /* the copied connection, as on the wire */
  __u32 port;         /* the interface that they come in by */
  __u8 marked;        /* 1: copies in transit, from another switch; 0: the client's own */
  __u8 pad[3];
};

/* A copy that is to be made of each. */
struct mr_sw_copy {
  struct mr_key flow; /* D_{j-1} to D_j; unused in transit */
  __u32 port;         /* the interface that it leaves by */
  __u8 to[6];         /* Ethernet address of D_j's host; unused in transit */
  __u8 position;      /* j, which the mark's last octet says; 0: it stays in transit, with the header that it has */
  __u8 pad;
};

struct mr_sw_entry {
  __u32 copies; /* of these, how many are used; those in transit come first */
  __u32 pad;
  struct mr_sw_copy copy[MR_SW_COPIES];
  __u64 copied, copied_bytes, lost; /* as the counters of these names */
};

/* A port that leads to another mirroring switch; from all others marked frames are dropped. */
struct mr_sw_port {
  __u32 admits; /* 1 */
};

struct mr_sw_config {
  __u32 off; /* not 0: no copy is made */
};

enum mr_sw_counter {
  MR_SW_C_COPIED,       /* copies that left, super-segments counted once */
  MR_SW_C_COPIED_BYTES, /* their payload */
  MR_SW_C_LOST,         /* copies that a port did not take: its queue was full, or it was gone */
  MR_SW_C_FORGED,       /* marked frames from ports that lead to no mirroring switch; dropped */
  MR_SW_C_UNKNOWN,      /* marked frames of no entry; dropped */
  MR_SW_COUNTERS
};

#endif
