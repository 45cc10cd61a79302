/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Whether the far end can have sent a segment, as TCP's own stack would judge (RFC 5961, RFC 7323). Where the programs act
 * on a segment that this host's stack doesn't see, or sees altered, they must ask no less than the stack: a stranger who
 * knows addresses and ports alone has sequence number, ACK and timestamp to guess. */
#ifndef MR_PLAUSIBLE_H
#define MR_PLAUSIBLE_H

#include "kernel.h"

/* How much later than all that was seen a timestamp may be although no time has passed: segments wait in queues. */
#define MR_TS_QUEUED (1u << 20)

/* Timestamps that D_j's ACKs may be behind the last one: they may overtake each other. */
#define MR_TS_OVERTAKEN (1u << 20)

/* Time as it is kept beside timestamps: 2^20 ns are a millisecond, nearly. */
static always_inline __u32 ms_of(__u64 ns) { return ns >> 20; }

/* A timestamp that comes `age_ms` after the one before it, which was `last`; it may be `back` before that. No clock of TCP's
 * ticks faster than once in a microsecond. */
static always_inline int ts_follows(__u32 ts, __u32 last, __u32 back, __u32 age_ms) {
  __u32 passed = age_ms < 1u << 18 ? age_ms << 11 : 1u << 29;
  return ts - (last - back) <= back + MR_TS_QUEUED + passed;
}

#endif
