/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the writer says again. Where its segments get lost before the switch has copied them, D_1 and D_j lack the same
 * octets. They come to both at once when the writer repeats them, and D_1 passes them on sooner than D_j's ACK of them can
 * come: without this each would go really, and needlessly, through links that are full as it is. */
#ifndef MR_AGAIN_H
#define MR_AGAIN_H

#include "lock.h"
#include "maps.h"
#include "plausible.h"
#include "ranges.h"
#include "socket.h"

/* To the next replica, of the flow `key`, copies of [from, to) are on their way; `zero` is the stream's start in these
 * numbers. All between the first such range and the last counts, until it is acknowledged or MR_AGAIN_MS have passed since the
 * first: later D_j would have told of it, and what it lacks was lost. What is lost of these copies meanwhile our stack says
 * again, and that goes really. */
static always_inline void snd_again(const struct mr_key *key, __u32 zero, __u32 from, __u32 to, __u32 now_ms) {
  struct mr_snd *s = bpf_map_lookup_elem(&mr_snd_flows, key);
  if (!s || !flow_lock(&s->lock)) return;
  from = later(s->zero + (from - zero), s->acked);
  to = earlier(s->zero + (to - zero), s->acked + MR_REACH);
  if (s->have_zero == 1 && s->in_step && after(to, from)) {
    int more = s->have_again && (__s32)(now_ms - s->again_ms) < MR_AGAIN_MS;
    s->again_from = more ? earlier(s->again_from, from) : from;
    s->again_to = more ? later(s->again_to, to) : to;
    if (!more) s->again_ms = now_ms;
    s->have_again = 1;
  }
  flow_unlock(&s->lock);
}

/* Octets of the writer's came, in a segment of its own or in a copy. Numbers that only a stranger can have made are
 * forgotten as soon as they matter. */
static always_inline void rcv_again(struct mr_rcv *r, const struct live *live, __u32 from, __u32 to) {
  if (after(r->high, live->rcv_edge)) {
    r->high = to;
    return;
  }
  if (before(from, live->rcv_nxt - MR_WINDOW)) return;
  struct mr_key next = r->next;
  snd_again(&next, r->zero, from, to, ms_of(bpf_ktime_get_coarse_ns()));
}

/* Whether they did not come for the first time, or something behind them did before. */
static always_inline int rcv_overtaken(struct mr_rcv *r, __u32 from, __u32 to) {
  if (!r->have_next || r->state < MR_RCV_STARTED || r->state == MR_RCV_FALLEN) return 0;
  if (r->have_high && before(from, r->high)) return 1;
  r->high = to;
  r->have_high = 1;
  return 0;
}

#endif
