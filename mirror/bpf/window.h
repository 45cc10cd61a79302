/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Coupled windows: what a replica advertises towards the client never exceeds what the next one can take. As each does
 * so, the client hears of the slowest. Where a window was lowered to nothing, it opens with the next segment that goes
 * up: an HDFS ack, which the slow replica's progress makes; or the answer to the client's probe.
 *
 * From when the mirror is confirmed, and for some time before: where the previous replica's uplink is slow, the client is
 * further ahead than the next replica's window as the mirror begins, and would stay so; no copy could ever land.
 *
 * A DataNode passes on whole packets of HDFS, which may be longer than the next replica's window. As long as that one lacks
 * something that was not copied, it goes on only when the rest of a packet has come here: so that must have room, or
 * nothing goes on, and nobody opens the window again. How long packets are is not known. But if all is acknowledged that
 * was sent, and nothing waits to be, then what has come beyond it is a part of one: there is room for twice as much as
 * the most that was seen so. A copy can't land then that comes beyond the window: hence hosts are to have larger ones than
 * packets are (`trunkline mirror doctor`).
 *
 * While retransmissions are on their way to the next replica, the client gets ahead of it by a switch's queue at most. Copies
 * at the rate of a link, and these besides, are more than its link carries: in a queue that is full each of them would cost
 * a copy, which is to be said again, and so on. What has been sent already comes from here alone, so nothing waits for the
 * client.
 *
 * Not while the next replica stands still: the previous one would get nothing of the client's either, not even HDFS's
 * heartbeats, and be taken for the one that hangs. It fills its buffers instead, as it does over stock TCP. */
#ifndef MR_WINDOW_H
#define MR_WINDOW_H

#include "lock.h"
#include "maps.h"
#include "parse.h"
#include "plausible.h"
#include "socket.h"

/* A flow that has fallen back takes the window that it is given: its edge may be one that never moves again. */
static always_inline int couples(const struct mr_snd *s, __u64 now) {
  if (s->state < MR_SND_REAL || s->state > MR_SND_RECOVERY) return 0;
  if ((__s32)(ms_of(now) - s->moved_ms) > MR_STALL_MS) return 0;
  return s->have_zero == 1 && (s->confirmed || (__s64)(now - s->begun_ns) < (__s64)MR_SETTLE_NS);
}

/* Whether the next replica lacks something of what has come here, up to `here`, and copies alone do not bring it. Where all
 * copies at a stretch were lost it can't say so; that it is behind for that long does. */
static always_inline int lacks(const struct mr_snd *s, __u32 here, __u64 now) {
  if (!s->confirmed || !s->in_step || after(s->heard, s->acked)) return 1;
  return after(here, s->acked) && (__s32)(ms_of(now) - s->moved_ms) > MR_LACK_MS;
}

/* Whether our stack has sent all that it was given for the next replica. */
checked_once int all_is_sent(struct __sk_buff *skb, struct packet *p) {
  if (!p) return 0;
  struct mr_key key, next;
  reverse(&p->key, &key);
  struct mr_rcv *r = bpf_map_lookup_elem(&mr_rcv_flows, &key);
  if (!r) return 0;
  next = r->next;
  reverse(&next, &key);
  struct live live = {};
  int v6 = key.source[0] || key.source[1] || key.source[2] != bpf_htonl(0xffff);
  return !look_up(skb, &key, v6, &live) && live.write_seq == live.snd_nxt;
}

/* The window to write into `p`, a segment towards the client. */
static always_inline __u16 coupled_window(struct __sk_buff *skb, struct mr_rcv *r, struct packet *p) {
  struct mr_key next = r->next;
  struct mr_snd *s = bpf_map_lookup_elem(&mr_snd_flows, &next);
  if (!s) return p->window;
  /* Without the lock its words may be of two moments; a window that is not coupled at all would do more harm. */
  int had = flow_lock(&s->lock);
  __u32 come = p->acked - r->zero, beyond, edge, part;
  int known, wanting, part_seen;
  known = couples(s, r->seen_ns);
  wanting = lacks(s, s->zero + come, r->seen_ns);
  beyond = s->zero + come - s->acked;
  part = s->part < MR_PART_LEAST ? MR_PART_LEAST : s->part;
  part_seen = wanting && !before(s->acked, s->sent) && (__s32)beyond > (__s32)part;
  edge = s->edge - s->acked;
  if (s->state == MR_SND_RECOVERY) edge = earlier(edge, MR_RECOVERY_AHEAD);
  if (had) flow_unlock(&s->lock);
  if (!known) return p->window;
  if (part_seen && all_is_sent(skb, p)) s->part = part = beyond;
  if (wanting) edge = later(edge, 2 * part);
  __s32 left = edge - beyond;
  if (left < 0) left = 0;
  __u32 window = (__u32)left >> (r->scale & 15);
  return window < p->window ? window : p->window;
}

#endif
