/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Coupled windows: what a replica advertises towards the client never exceeds what the next one can take. As each does
 * so, the client hears of the slowest. Where a window was lowered to nothing, it opens with the next segment that goes
 * up: an HDFS ack, which the slow replica's progress makes; or the answer to the client's probe.
 *
 * From when the mirror is confirmed, and for some time before: where the previous replica's uplink is slow, the client is
 * further ahead than the next replica's window as the mirror begins, and would stay so; no copy could ever land. But as yet
 * the next replica gets HDFS's packets from the previous one alone, when they are whole, so one must have room.
 *
 * Not while the next replica stands still: the previous one would get nothing of the client's either, not even HDFS's
 * heartbeats, and be taken for the one that hangs. It fills its buffers instead, as it does over stock TCP. */
#ifndef MR_WINDOW_H
#define MR_WINDOW_H

#include "maps.h"
#include "parse.h"
#include "plausible.h"

/* A flow that has fallen back takes the window that it is given: its edge may be one that never moves again. */
static always_inline int couples(const struct mr_snd *s, __u64 now) {
  if (s->state < MR_SND_REAL || s->state > MR_SND_RECOVERY) return 0;
  if ((__s32)(ms_of(now) - s->moved_ms) > MR_STALL_MS) return 0;
  return s->have_zero == 1 && (s->confirmed || (__s64)(now - s->begun_ns) < (__s64)MR_SETTLE_NS);
}

/* The window to write into `p`, a segment towards the client. */
static always_inline __u16 coupled_window(struct mr_rcv *r, const struct packet *p) {
  struct mr_key next = r->next;
  struct mr_snd *s = bpf_map_lookup_elem(&mr_snd_flows, &next);
  if (!s) return p->window;
  __u32 room, zero, known;
  bpf_spin_lock(&s->lock);
  known = couples(s, r->seen_ns);
  room = (s->confirmed ? s->edge : later(s->edge, s->acked + MR_SETTLE_WINDOW)) - s->zero;
  bpf_spin_unlock(&s->lock);
  if (!known) return p->window;
  zero = r->zero;
  __s32 left = zero + room - p->acked;
  if (left < 0) left = 0;
  __u32 window = (__u32)left >> (r->scale & 15);
  return window < p->window ? window : p->window;
}

#endif
