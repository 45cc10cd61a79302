/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* MR_RCV: D_j takes the copies of the client's segments that the switch made, as if D_{j-1} had sent them. */
#ifndef MR_RECEIVE_H
#define MR_RECEIVE_H

#include "again.h"
#include "checksum.h"
#include "lock.h"
#include "maps.h"
#include "socket.h"
#include "start.h"
#include "window.h"

/*
 *   announced
 *       |
 *       v        our set-up response left        head's start known, D_{j-1} ready
 *      NEW ---------------------------> STARTED -------------------------> OUT_OF_STEP
 *                                                                           ^      |
 *                                                a copy beyond our window   |      |  a copy within it
 *                                                                           |      v
 *                                                                           IN_STEP : ACKs carry the step bit
 *
 *   any --- doubt, with a reason ---> FALLEN : copies are dropped, ACKs carry no bit, so D_{j-1} sends really
 */
enum rcv_event { RCV_RESPONSE, RCV_HEAD, RCV_WITHIN, RCV_BEYOND, RCV_DOUBT };

static always_inline __u8 rcv_next(__u8 state, enum rcv_event event) {
  if (state == MR_RCV_FALLEN || event == RCV_DOUBT) return MR_RCV_FALLEN;
  switch (state) {
  case MR_RCV_NEW:
    return event == RCV_RESPONSE ? MR_RCV_STARTED : state;
  case MR_RCV_STARTED:
    return event == RCV_HEAD ? MR_RCV_OUT_OF_STEP : state;
  case MR_RCV_OUT_OF_STEP:
  case MR_RCV_IN_STEP:
    return event == RCV_WITHIN ? MR_RCV_IN_STEP : event == RCV_BEYOND ? MR_RCV_OUT_OF_STEP : state;
  }
  return state;
}

/* The agent reads without the lock: whoever sees a state finds what belongs to it. */
static always_inline void rcv_enter(struct mr_rcv *r, enum rcv_event event) {
  asm volatile("" ::: "memory");
  r->state = rcv_next(r->state, event);
}

/* Where the lock is not to be had, the next segment tells of the same doubt. */
static always_inline void rcv_fall(struct mr_rcv *r, __u8 reason) {
  int news;
  if (!flow_lock(&r->lock)) return;
  news = r->state != MR_RCV_FALLEN;
  if (news) r->reason = reason;
  rcv_enter(r, RCV_DOUBT);
  flow_unlock(&r->lock);
  if (news) count_fallback(r->counters, reason);
}

/* The stream starts where the set-up response acknowledges: the header is before it, nothing else came yet. If this
 * segment comes later, the response was written down. Never from a mirrored segment, which may be the second one. */
static always_inline void rcv_start(struct mr_rcv *r, const struct mr_key *key, const struct packet *p,
                                    const struct live *live) {
  __u64 before_response = r->response_at, with_this = before_response + p->length;
  __u32 zero = p->acked;
  if (live->bytes_sent <= before_response || live->bytes_sent < with_this) return; /* nothing yet, or still shaking hands */
  int response = p->length && live->bytes_sent == with_this;
  if (!response && (r->response_at || !start_known(key, live->snd_first, &zero))) {
    rcv_fall(r, MR_WHY_LATE);
    return;
  }
  if (!flow_lock(&r->lock)) return;
  if (r->state == MR_RCV_NEW) {
    r->zero = zero;
    r->scale = live->rcv_scale & 15;
    rcv_enter(r, RCV_RESPONSE);
  }
  flow_unlock(&r->lock);
}

/* D_j to D_{j-1}, or D_1 to the client: the start of the stream is read, the step bit and the window are set. */
checked_once int rcv_egress(struct __sk_buff *skb, struct packet *p) {
  if (!p) return MR_NOT_OURS;
  struct mr_key key;
  reverse(&p->key, &key);
  struct mr_rcv *r = bpf_map_lookup_elem(&mr_rcv_flows, &key);
  if (!r) return MR_NOT_OURS;

  if (p->flags & (TCP_SYN | TCP_RST) || !(p->flags & TCP_ACK)) return TC_ACT_OK;
  seen(&r->seen_ns, &r->seen_tick);
  if (r->state == MR_RCV_NEW) {
    struct live live = {};
    if (!sending_socket(skb, p, &live))
      rcv_start(r, &key, p, &live);
    else if (p->length)
      rcv_fall(r, MR_WHY_NO_SOCKET);
  }
  int coupled = r->have_next && r->state >= MR_RCV_STARTED && r->state != MR_RCV_FALLEN;
  __u16 window = coupled ? coupled_window(skb, r, p) : p->window;
  /* Without the lock the next ACK does it: one that says too long that copies land harms less than one that is lost. */
  if (r->have_mirrored && after(p->acked, r->mirrored) && flow_lock(&r->lock)) {
    if (after(p->acked, r->mirrored)) r->have_mirrored = 0;
    flow_unlock(&r->lock);
  }
  int step = r->state == MR_RCV_IN_STEP && r->ready && r->have_mirrored;
  if (!step && window == p->window) return TC_ACT_OK;
  if (parse_rest(skb, p)) return TC_ACT_OK;
  if (!p->plain) {
    rcv_fall(r, MR_WHY_OPTIONS);
    return TC_ACT_OK;
  }
  if (window != p->window) count(r->counters, MR_C_WINDOW_LOWERED, 1);
  __be32 tcp[TCP_WORDS];
  __builtin_memcpy(tcp, p->tcp, sizeof tcp);
  tcp[TCP_FLAGS] = (tcp[TCP_FLAGS] & bpf_htonl(0xffff0000)) | bpf_htonl(window);
  if (step) tcp[TCP_FLAGS] |= bpf_htonl(MR_STEP_BIT << 24);
  write_tcp(skb, p, tcp);
  return TC_ACT_OK;
}

/* The start in the client's connection is known, so that numbers can be moved. */
static always_inline int rcv_armed(const struct mr_rcv *r) {
  return r->state == MR_RCV_IN_STEP || r->state == MR_RCV_OUT_OF_STEP;
}

/* A marked segment: moved into the connection from D_{j-1}, or dropped. It brings octets and nothing else: ACK, window,
 * timestamps and flags are the client's and D_1's affair, so this connection's own stand in their place. */
checked_once int rcv_mirrored(struct __sk_buff *skb, struct packet *p) {
  if (!p) return MR_NOT_OURS;
  struct mr_key key;
  key = p->key;
  struct mr_rcv *r = bpf_map_lookup_elem(&mr_rcv_flows, &key);
  if (!r) return MR_NOT_OURS;

  seen(&r->seen_ns, &r->seen_tick);
  if (!p->length || p->flags & (TCP_SYN | TCP_RST) || !(p->flags & TCP_ACK)) {
    count(r->counters, MR_C_MIRROR_SIGNAL, 1);
    return TC_ACT_SHOT;
  }
  struct live live = {};
  struct mr_head *head = r->state == MR_RCV_STARTED ? bpf_map_lookup_elem(&mr_heads, &key) : 0;
  /* D_{j-1} must be ready for our ACKs, or it would throw them away and send no more. */
  int armed = r->ready && (head || rcv_armed(r));
  if (!armed || look_up(skb, &p->key, p->v6, &live)) {
    count(r->counters, MR_C_MIRROR_UNARMED, 1);
    return TC_ACT_SHOT;
  }
  if (parse_rest(skb, p)) return TC_ACT_SHOT;
  if (!p->plain || p->flags & TCP_URG) {
    rcv_fall(r, p->plain ? MR_WHY_URGENT : MR_WHY_OPTIONS);
    return TC_ACT_SHOT;
  }
  __u32 seq, end;
  int beyond, stale;
  if (!flow_lock(&r->lock)) return flow_busy(r->counters);
  if (head && r->state == MR_RCV_STARTED) {
    r->delta = r->zero - head->zero;
    rcv_enter(r, RCV_HEAD);
  }
  armed = rcv_armed(r); /* it may have fallen meanwhile, or be another flow's entry by now */
  seq = p->seq + r->delta;
  end = seq + p->length;
  beyond = after(end, live.rcv_edge);
  stale = !after(end, live.rcv_nxt);
  if (armed && !beyond && (!r->have_mirrored || after(end, r->mirrored))) {
    r->mirrored = end;
    r->have_mirrored = 1;
  }
  r->state = rcv_next(r->state, beyond ? RCV_BEYOND : RCV_WITHIN);
  if (armed && !stale) {
    r->counters[MR_C_MIRRORED]++;
    r->counters[MR_C_MIRRORED_BYTES] += p->length;
  }
  flow_unlock(&r->lock);
  if (!armed) {
    count(r->counters, MR_C_MIRROR_UNARMED, 1);
    return TC_ACT_SHOT;
  }
  if (rcv_overtaken(r, seq, end)) rcv_again(r, &live, seq, end);
  if (stale) {
    count(r->counters, MR_C_MIRROR_STALE, 1);
    return TC_ACT_SHOT;
  }
  /* One beyond the window goes to the stack all the same: its answer, without the bit, tells D_{j-1} at once. */
  if (beyond) count(r->counters, MR_C_MIRROR_AHEAD, 1);

  __u32 window = live.snd_wnd >> (live.snd_scale & 15);
  __be32 tcp[TCP_WORDS];
  __builtin_memcpy(tcp, p->tcp, sizeof tcp);
  tcp[TCP_SEQ] = bpf_htonl(seq);
  tcp[TCP_ACKED] = bpf_htonl(live.snd_una);
  tcp[TCP_FLAGS] = flags_word(p->header, 0, p->flags & (TCP_ACK | TCP_PSH), window > 0xffff ? 0xffff : window);
  tcp[TCP_SUM] &= bpf_htonl(0xffff0000); /* no urgent pointer */
  lay_options(tcp, p, bpf_htonl(live.ts_recent), bpf_htonl(live.tsecr));
  write_tcp(skb, p, tcp);
  if (p->congested) clear_congested(skb, p);
  count_in_all(MR_C_MIRRORED, 1);
  count_in_all(MR_C_MIRRORED_BYTES, p->length);
  return TC_ACT_OK;
}

/* D_{j-1} says with each segment of data whether its program stands by. By what comes without, its host has none, or it
 * was switched off. */
static always_inline void rcv_heed(struct __sk_buff *skb, const struct packet *p, struct mr_rcv *r) {
  struct live live = {};
  if (p->in_step == r->ready || look_up(skb, &p->key, p->v6, &live)) return;
  if (before(p->seq, live.rcv_nxt - MR_WINDOW) || after(p->seq, live.rcv_edge)) return; /* a stranger's */
  r->ready = p->in_step;
}

/* From D_{j-1} itself. Its ACK without data has the number that D_{j-1} has (virtually) sent up to; where the mirror ran
 * ahead of that, the stack would take it for old and never see what it acknowledges. Probes and keep-alives acknowledge
 * nothing new and stay as they are, as they want an answer. */
checked_once int rcv_upstream(struct __sk_buff *skb, struct packet *p) {
  if (!p) return MR_NOT_OURS;
  struct mr_key key;
  key = p->key;
  struct mr_rcv *r = bpf_map_lookup_elem(&mr_rcv_flows, &key);
  if (!r) return MR_NOT_OURS;

  if (p->length && (p->flags & (TCP_SYN | TCP_RST | TCP_ACK)) == TCP_ACK) {
    rcv_heed(skb, p, r);
    /* D_{j-1}'s own has the step bit, and is not copied to the next replica. */
    if (!p->in_step && rcv_overtaken(r, p->seq, p->seq + p->length)) {
      struct live live = {};
      if (!look_up(skb, &p->key, p->v6, &live)) rcv_again(r, &live, p->seq, p->seq + p->length);
    }
  }
  if (p->length || (p->flags & (TCP_SYN | TCP_RST | TCP_FIN | TCP_ACK)) != TCP_ACK || !r->have_mirrored) return TC_ACT_OK;
  struct live live = {};
  if (look_up(skb, &p->key, p->v6, &live)) return TC_ACT_OK;
  if (!before(p->seq, live.rcv_nxt) || !(after(p->acked, live.snd_una) || !live.snd_wnd)) return TC_ACT_OK;
  /* D_{j-1} is no further behind than by a window: an older one is none of this connection's. */
  if (before(p->seq, live.rcv_nxt - MR_WINDOW)) return TC_ACT_OK;
  if (parse_rest(skb, p)) return TC_ACT_OK;
  __be32 tcp[TCP_WORDS];
  __builtin_memcpy(tcp, p->tcp, sizeof tcp);
  tcp[TCP_SEQ] = bpf_htonl(live.rcv_nxt);
  write_tcp(skb, p, tcp);
  count(r->counters, MR_C_ACK_RAISED, 1);
  return TC_ACT_OK;
}

#endif
