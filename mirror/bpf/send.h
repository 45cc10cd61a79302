/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* MR_SND: D_{j-1} goes through the motions of sending to D_j what the mirror has brought there. */
#ifndef MR_SEND_H
#define MR_SEND_H

#include "checksum.h"
#include "maps.h"
#include "plausible.h"
#include "ranges.h"
#include "socket.h"
#include "start.h"

/*
 *   announced
 *       |
 *       v      first segment, live socket read        D_j's step bit
 *      NEW ------------------------------------> REAL ----------------> VIRTUAL
 *                                                 ^ ^                   |    |  ^
 *                                                 | |   bit gone        |    |  |
 *                                                 | +-------------------+    |  | caught up, bit set
 *                              caught up, no bit  |       own retransmission |  |
 *                                                 |                          v  |
 *                                                 +----------------------- RECOVERY
 *
 *   any --- doubt, with a reason -----> FALLEN : all is sent really; ACKs for what is not sent yet are still held
 *   any --- RST, or FIN too early ----> CLOSED : D_j is told by an RST where it is
 *
 * An ACK that D_j can't have sent changes nothing.
 * In VIRTUAL fresh data is not sent, but where D_j has told of a hole. In REAL and RECOVERY only what D_j holds for
 * certain is not sent. What D_j has told of comes from its ACKs before they are altered for our own stack.
 *
 * In these three, unless switched off, data that goes really has the step bit: D_j takes copies only as long as it does,
 * since without a program here its early ACKs would be thrown away.
 */
enum snd_event { SND_SOCKET, SND_IN_STEP, SND_OUT_OF_STEP, SND_RETRANSMIT, SND_CAUGHT_UP, SND_DOUBT, SND_END };

static always_inline __u8 snd_next(__u8 state, enum snd_event event, int in_step) {
  if (state == MR_SND_CLOSED || event == SND_END) return MR_SND_CLOSED;
  if (state == MR_SND_FALLEN || event == SND_DOUBT) return MR_SND_FALLEN;
  switch (state) {
  case MR_SND_NEW:
    return event == SND_SOCKET ? MR_SND_REAL : state;
  case MR_SND_REAL:
    return event == SND_IN_STEP ? MR_SND_VIRTUAL : state;
  case MR_SND_VIRTUAL:
    return event == SND_RETRANSMIT ? MR_SND_RECOVERY : event == SND_OUT_OF_STEP ? MR_SND_REAL : state;
  case MR_SND_RECOVERY:
    return event == SND_CAUGHT_UP ? (in_step ? MR_SND_VIRTUAL : MR_SND_REAL) : state;
  }
  return state;
}

static always_inline void snd_fall(struct mr_snd *s, __u8 reason) {
  int news;
  bpf_spin_lock(&s->lock);
  news = s->state != MR_SND_FALLEN && s->state != MR_SND_CLOSED;
  if (news) s->reason = reason;
  s->state = snd_next(s->state, SND_DOUBT, 0);
  bpf_spin_unlock(&s->lock);
  if (news) count_fallback(s->counters, reason);
}

/* At the first segment that is seen, from a socket that is at rest: sent is all before `snd_nxt`, which doesn't count this
 * segment where it is a first transmission. */
static always_inline void snd_begin(struct __sk_buff *skb, const struct packet *p, const struct mr_key *key,
                                    struct mr_snd *s, __u64 now) {
  struct live live = {};
  if (sending_socket(skb, p, &live)) {
    snd_fall(s, MR_WHY_NO_SOCKET);
    return;
  }
  __u32 zero = 0;
  __u8 have_zero = 0;
  if (live.bytes_received > s->response_at)
    have_zero = !s->response_at && start_known(key, live.rcv_first, &zero) ? 1 : 2;
  bpf_spin_lock(&s->lock);
  if (s->state == MR_SND_NEW) {
    if (!s->have_zero) {
      s->have_zero = have_zero;
      s->zero = zero;
    }
    s->begun_ns = now;
    s->sent = live.snd_nxt;
    s->acked = live.snd_una;
    s->edge = live.snd_una + live.snd_wnd;
    s->their_ts = bpf_htonl(live.ts_recent);
    s->their_ms = now / 1000000;
    s->scale = live.snd_scale & 15;
    ranges_restart(s);
    s->state = snd_next(s->state, SND_SOCKET, 0);
  }
  bpf_spin_unlock(&s->lock);
}

/* Segments were sent that were not seen, and ACKs may not have been: the socket knows what D_j has said, but for what D_j
 * holds by copies beyond what was sent. */
static always_inline void snd_ask_anew(struct __sk_buff *skb, const struct packet *p, struct mr_snd *s) {
  struct live live = {};
  if (sending_socket(skb, p, &live)) return;
  bpf_spin_lock(&s->lock);
  if (s->acked - live.snd_una > live.snd_wnd) {
    s->acked = live.snd_una;
    ranges_restart(s);
  }
  s->edge = live.snd_una + live.snd_wnd;
  s->confirmed = 0;
  bpf_spin_unlock(&s->lock);
}

/* What D_j may still be sent beyond `acked`, in its scaled form. */
static always_inline __u16 window_from(__u32 edge, __u32 acked, __u8 scale) {
  __s32 left = edge - acked;
  __u32 window = left < 0 ? 0 : (__u32)left >> (scale & 15);
  return window > 0xffff ? 0xffff : window;
}

/* A segment is cut to its header, of these flags, with the number `seq`; in `p` as well, since three frames' stacks have
 * 512 octets in all. 0: done. */
checked_once int snd_cut(struct __sk_buff *skb, struct packet *p, __u32 seq, __u32 flags) {
  if (!p) return -1;
  __u32 octets = p->header;
  if (octets < 20) return -1;
  apart(octets);
  if (octets > 60) return -1;
  if (bpf_skb_change_tail(skb, p->l4 + octets, 0)) return -1;
  __be32 sum = p->tcp[TCP_SUM]; /* which tells whether a device makes it, also of what the segment is turned to next */
  p->tcp[TCP_SEQ] = bpf_htonl(seq);
  p->tcp[TCP_FLAGS] = flags_word(octets, 0, flags, p->window);
  p->tcp[TCP_SUM] = sum_alone(p, p->tcp, octets);
  write_ip_length(skb, p, octets);
  __u32 bounded = p->header; /* once more: the verifier has forgotten */
  if (bounded < 20) return -1;
  apart(bounded);
  if (bounded > 60) return -1;
  bpf_skb_store_bytes(skb, p->l4, p->tcp, bounded, 0);
  p->tcp[TCP_SUM] = sum;
  return 0;
}

/* A segment that was cut goes through the device's queue once more, which has counted the whole one so far. */
static always_inline int go_anew(struct __sk_buff *skb) { return bpf_redirect(skb->ifindex, 0); }

#define SND_GOES_ON (-1)

/* An RST, or a FIN behind what D_j already has from the mirror, with data or without: D_j's stack would ignore either and
 * hang. It hears of the end where it is. Any other FIN goes on as it is, with its data as all data. */
static always_inline int snd_end(struct __sk_buff *skb, struct packet *p, struct mr_snd *s) {
  __u32 end = p->seq + p->length, at;
  int early, rst = p->flags & TCP_RST;
  bpf_spin_lock(&s->lock);
  early = s->state != MR_SND_NEW && s->reason != MR_WHY_NO_SOCKET && after(rst ? s->acked : s->heard, end);
  at = s->acked;
  if (rst || early) {
    s->state = snd_next(s->state, SND_END, 0);
  } else {
    s->fin = end;
    s->have_fin = 1;
  }
  if (rst || early || !p->length) s->sent = later(s->sent, end + 1); /* a FIN takes a number */
  bpf_spin_unlock(&s->lock);
  if (!early) return rst || !p->length ? TC_ACT_OK : SND_GOES_ON;
  __u8 flags = TCP_RST | (p->flags & TCP_ACK);
  count(s->counters, MR_C_ABORTED, 1);
  if (p->length) return snd_cut(skb, p, at, flags) ? TC_ACT_STOLEN : go_anew(skb);
  __be32 tcp[TCP_WORDS];
  __builtin_memcpy(tcp, p->tcp, sizeof tcp);
  tcp[TCP_SEQ] = bpf_htonl(at);
  tcp[TCP_FLAGS] = flags_word(p->header, 0, flags, p->window);
  write_tcp(skb, p, tcp);
  return TC_ACT_OK;
}

enum snd_verdict { SND_REAL, SND_HOLE, SND_AGAIN, SND_VIRTUAL, SND_HAS, SND_REPEAT, SND_GAP };

/* What becomes of a segment with data. Under the flow's lock. */
static always_inline enum snd_verdict snd_judge(struct mr_snd *s, const struct packet *p, __u32 now_ms, __u32 repeat_ms, int off) {
  __u32 seq = p->seq, end = seq + p->length;
  int fresh = !before(seq, s->sent);
  enum snd_verdict verdict;
  if (after(seq, s->sent)) {
    s->sent = end;
    return SND_GAP;
  }
  s->sent = later(s->sent, end);
  if (s->state == MR_SND_FALLEN || s->state == MR_SND_CLOSED) return fresh ? SND_REAL : SND_AGAIN;
  /* A reduced window is told on data only. */
  if (p->flags & TCP_CWR) return fresh ? SND_REAL : SND_AGAIN;
  if (!after(end, s->acked)) return fresh ? SND_VIRTUAL : SND_HAS;
  if (!fresh) {
    if (s->state == MR_SND_VIRTUAL) s->recover = s->sent;
    s->state = snd_next(s->state, SND_RETRANSMIT, s->in_step);
    verdict = SND_AGAIN;
  } else if (ranges_hole(s, seq, end)) {
    verdict = SND_HOLE;
  } else if (ranges_held(s, seq, end) || (s->state == MR_SND_VIRTUAL && !off)) {
    return SND_VIRTUAL;
  } else {
    verdict = SND_REAL;
  }
  /* Round trips of nothing, which virtual sending makes, have the stack repeat a retransmission that is on its way. */
  struct mr_repeat *last = &s->repeats[(seq * 2654435761u) >> 26 & (MR_REPEATS - 1)];
  if (verdict == SND_AGAIN && last->at_ms && last->seq == seq && now_ms - last->at_ms < repeat_ms) return SND_REPEAT;
  last->seq = seq;
  last->at_ms = now_ms;
  return verdict;
}

struct release {
  __u32 acked; /* the held ACK, up to what has been sent */
  __be32 ts;
  __u16 window;
  __u8 due; /* there is something to release */
};

static always_inline void snd_tell(struct __sk_buff *skb, const struct packet *p) {
  __be32 was = p->tcp[TCP_FLAGS], is = was | bpf_htonl(MR_STEP_BIT << 24);
  bpf_skb_store_bytes(skb, p->l4 + 4 * TCP_FLAGS, &is, sizeof is, 0);
  bpf_l4_csum_replace(skb, p->l4 + TCP_SUM_AT, was, is, sizeof is);
}

/* A segment that is not sent, turned into D_j's ACK that was held for it, and given to our own stack. Only its headers
 * change: the stack cuts the rest off, as IP's length says. */
static always_inline int snd_turn_to_ack(struct __sk_buff *skb, struct packet *p, const struct release *release) {
  __u8 mac[2 * ETH_ALEN], turned[2 * ETH_ALEN];
  if (bpf_skb_load_bytes(skb, 0, mac, sizeof mac)) return TC_ACT_STOLEN;
  __builtin_memcpy(turned, mac + ETH_ALEN, ETH_ALEN);
  __builtin_memcpy(turned + ETH_ALEN, mac, ETH_ALEN);
  bpf_skb_store_bytes(skb, 0, turned, sizeof turned, 0);
  if (p->v6) {
    bpf_skb_store_bytes(skb, p->l3 + 8, p->key.target, 16, 0);
    bpf_skb_store_bytes(skb, p->l3 + 24, p->key.source, 16, 0);
  } else {
    bpf_skb_store_bytes(skb, p->l3 + 12, &p->key.target[3], 4, 0);
    bpf_skb_store_bytes(skb, p->l3 + 16, &p->key.source[3], 4, 0);
  }
  __u32 octets = p->has_ts ? 32 : 20;
  __be32 tcp[TCP_WORDS] = {};
  tcp[TCP_PORTS] = bpf_htonl((__u32)bpf_ntohs(p->key.target_port) << 16 | bpf_ntohs(p->key.source_port));
  tcp[TCP_SEQ] = bpf_htonl(p->acked);
  tcp[TCP_ACKED] = bpf_htonl(release->acked);
  tcp[TCP_FLAGS] = flags_word(octets, 0, TCP_ACK, release->window);
  if (p->has_ts) {
    tcp[TCP_OPTIONS] = bpf_htonl(0x0101080a);
    tcp[TCP_OPTIONS + 1] = release->ts;
    tcp[TCP_OPTIONS + 2] = p->their_ts;
  }
  tcp[TCP_SUM] = sum_alone(p, tcp, octets);
  write_ip_length(skb, p, octets);
  if (p->has_ts)
    bpf_skb_store_bytes(skb, p->l4, tcp, 32, 0);
  else
    bpf_skb_store_bytes(skb, p->l4, tcp, 20, 0);
  skb->mark = MR_RELEASED; /* our own ingress must not take it for D_j's */
  return bpf_redirect(skb->ifindex, BPF_F_INGRESS);
}

/* D_{j-1} to D_j. */
checked_once int snd_egress(struct __sk_buff *skb, struct packet *p) {
  if (!p) return MR_NOT_OURS;
  struct mr_key key;
  key = p->key;
  struct mr_snd *s = bpf_map_lookup_elem(&mr_snd_flows, &key);
  if (!s) return MR_NOT_OURS;

  if (p->flags & TCP_SYN) return TC_ACT_OK;
  __u64 now = bpf_ktime_get_ns();
  s->seen_ns = now;
  if (s->state == MR_SND_NEW) snd_begin(skb, p, &key, s, now);
  if (parse_rest(skb, p)) return TC_ACT_OK;
  if (!p->plain || p->flags & TCP_URG) snd_fall(s, p->plain ? MR_WHY_URGENT : MR_WHY_OPTIONS);
  if (p->length > (MR_ASK_UNITS - 2) * MR_UNIT) snd_fall(s, MR_WHY_REACH);
  if (p->flags & (TCP_RST | TCP_FIN)) {
    int end = snd_end(skb, p, s);
    if (end != SND_GOES_ON) return end;
  }

  __u32 zero = 0;
  struct mr_config *config = bpf_map_lookup_elem(&mr_config, &zero);
  if (!config) return TC_ACT_OK;
  __u32 off = config->off, repeat_ms = config->repeat_ms, seq;
  enum snd_verdict verdict = SND_REAL;
  struct release release = {};
  int keep = 0, tell;
  bpf_spin_lock(&s->lock);
  if (p->has_ts) {
    s->our_ts = p->their_ts;
    s->have_ts = 1;
  }
  if (p->length) {
    verdict = snd_judge(s, p, now / 1000000, repeat_ms, off || p->flags & TCP_FIN);
    /* A FIN goes with its data, and takes a number. */
    if (p->flags & TCP_FIN) {
      if (verdict == SND_VIRTUAL || verdict == SND_HAS) verdict = SND_REAL;
      s->sent = later(s->sent, p->seq + p->length + 1);
    }
    release.acked = earlier(s->acked, s->sent);
    release.due = after(release.acked, p->seq) || verdict == SND_HAS;
    release.window = window_from(s->edge, release.acked, s->scale);
    release.ts = s->their_ts;
  }
  tell = !off && s->state >= MR_SND_REAL && s->state <= MR_SND_RECOVERY;
  seq = later(p->seq + p->length, s->acked);
  if (p->flags & TCP_ACK && verdict != SND_REPEAT) {
    keep = !s->have_sent_ack || after(p->acked, s->sent_ack) || (!s->sent_window && p->window);
    s->sent_ack = s->have_sent_ack ? later(s->sent_ack, p->acked) : p->acked;
    s->sent_window = p->window;
    s->have_sent_ack = 1;
  }
  bpf_spin_unlock(&s->lock);
  if (!p->length) return TC_ACT_OK;

  switch (verdict) {
  case SND_GAP:
    snd_ask_anew(skb, p, s);
    snd_fall(s, MR_WHY_GAP);
    return TC_ACT_OK;
  case SND_HOLE:
    count(s->counters, MR_C_REAL_HOLE, 1);
  case SND_REAL:
    count(s->counters, MR_C_REAL, 1);
    count(s->counters, MR_C_REAL_BYTES, p->length);
    if (tell) snd_tell(skb, p);
    return TC_ACT_OK;
  case SND_AGAIN:
    count(s->counters, MR_C_RETRANSMITTED, 1);
    count(s->counters, MR_C_RETRANSMITTED_BYTES, p->length);
    if (tell) snd_tell(skb, p);
    return TC_ACT_OK;
  case SND_REPEAT:
    count(s->counters, MR_C_REPEAT_SUPPRESSED, 1);
    return TC_ACT_STOLEN;
  case SND_VIRTUAL:
    count(s->counters, MR_C_VIRTUAL, 1);
    count(s->counters, MR_C_VIRTUAL_BYTES, p->length);
  case SND_HAS:
    break;
  }
  /* Stolen, never shot: a drop that the stack sees keeps it from going on. */
  if (keep) {
    /* What the segment acknowledges must not vanish with it: it becomes an ACK towards D_j. */
    if (snd_cut(skb, p, seq, TCP_ACK)) return TC_ACT_STOLEN;
    count(s->counters, MR_C_ACK_KEPT, 1);
    if (!release.due) return go_anew(skb);
    bpf_clone_redirect(skb, skb->ifindex, 0);
  }
  if (!release.due) return TC_ACT_STOLEN;
  count(s->counters, MR_C_ACK_RELEASED, 1);
  return snd_turn_to_ack(skb, p, &release);
}

/* The stream's start, as D_j's set-up response acknowledges it: windows are coupled by it. */
static always_inline void snd_start(struct __sk_buff *skb, const struct packet *p, struct mr_snd *s) {
  struct live live = {};
  if (look_up(skb, &p->key, p->v6, &live)) return;
  if (live.bytes_received < s->response_at || (live.bytes_received == s->response_at && p->seq != live.rcv_nxt)) return;
  if (live.bytes_received > s->response_at && s->state == MR_SND_NEW) return; /* as `snd_begin` will find it */
  bpf_spin_lock(&s->lock);
  if (!s->have_zero) {
    s->have_zero = live.bytes_received == s->response_at ? 1 : 2;
    s->zero = p->acked;
  }
  bpf_spin_unlock(&s->lock);
}

/* Whether D_j can have sent this: as the stack would judge, had it sent what it sent virtually. Else a stranger who
 * guesses addresses and ports could have data left unsent. D_j may have come by copies as far as its window is open, and
 * further where its ACKs of that were lost: by its clock it is known then, and without one no further than we know. Where
 * options lie strangely its clock is not read. */
static always_inline int snd_plausible(const struct mr_snd *s, const struct packet *p, __u32 now_ms) {
  __u32 oldest = s->acked - MR_REACH, most = later(s->edge, s->acked + MR_REACH) + 1;
  if (s->their_ts && p->plain) {
    __u32 last = bpf_ntohl(s->their_ts);
    if (!p->has_ts || !ts_follows(bpf_ntohl(p->their_ts), last, MR_TS_OVERTAKEN, now_ms - s->their_ms)) return 0;
    most = s->acked + MR_WINDOW;
  }
  if (p->acked - oldest > most - oldest) return 0;
  return !s->have_sent_ack || p->seq - (s->sent_ack - 0x10000) < 0x800000;
}

#define SACK_CLIPPED 1
#define SACK_STRIPPED 2

/* SACK as our stack may see it: nothing beyond what was sent, which would make it ignore the block, and no DSACK, which
 * would make it think that its retransmission was needless. Returns what was done. */
checked_once int snd_clip(struct packet *p, __u32 sent) {
  if (!p) return 0;
  __u32 left = 0;
  int done = 0;
  for (__u32 i = 0; i < MR_BLOCKS; i++) {
    if (i >= p->blocks) break;
    __u32 l = bpf_ntohl(p->block[2 * i]), r = bpf_ntohl(p->block[2 * i + 1]);
    if (i == 0) {
      int within = p->blocks > 1 && !before(l, bpf_ntohl(p->block[2])) && !after(r, bpf_ntohl(p->block[3]));
      if (!after(r, p->acked) || within) {
        done |= SACK_STRIPPED;
        continue;
      }
    }
    if (after(r, sent)) done |= SACK_CLIPPED;
    if (!before(l, sent)) continue;
    __u32 at = 2 * left;
    apart(at);
    at &= 2 * MR_BLOCKS - 2; /* which the compiler knows and the verifier doesn't */
    p->block[at] = bpf_htonl(l);
    p->block[at + 1] = bpf_htonl(earlier(r, sent));
    left++;
  }
  p->blocks = left;
  return done;
}

/* Writes D_j's SACK blocks down, as far as there are bits; a DSACK tells nothing. Apart, as its loops are most of the
 * verifier's work. */
checked_once int snd_hear(struct packet *p) {
  if (!p) return 0;
  struct mr_key key;
  reverse(&p->key, &key);
  struct mr_snd *s = bpf_map_lookup_elem(&mr_snd_flows, &key);
  if (!s) return 0;
  bpf_spin_lock(&s->lock);
  __u32 far = s->heard, limit = s->acked + MR_REACH;
  for (__u32 i = 0; i < MR_BLOCKS; i++) {
    __u32 r = earlier(bpf_ntohl(p->block[2 * i + 1]), limit);
    if (i < p->blocks && after(r, far)) far = r;
  }
  if (far != s->heard) ranges_hear(s, far);
  for (__u32 i = 0; i < MR_BLOCKS; i++) {
    __u32 l = bpf_ntohl(p->block[2 * i]), r = earlier(bpf_ntohl(p->block[2 * i + 1]), limit);
    if (i < p->blocks && after(l, s->acked) && after(r, l)) ranges_hold(s, l, r);
  }
  bpf_spin_unlock(&s->lock);
  return 0;
}

/* D_j to D_{j-1}: its news are written down as they are, then made what our stack can believe. */
checked_once int snd_ingress(struct __sk_buff *skb, struct packet *p) {
  if (!p) return MR_NOT_OURS;
  struct mr_key key;
  reverse(&p->key, &key);
  struct mr_snd *s = bpf_map_lookup_elem(&mr_snd_flows, &key);
  if (!s) return MR_NOT_OURS;

  if ((p->flags & (TCP_SYN | TCP_RST | TCP_ACK)) != TCP_ACK) return TC_ACT_OK;
  __u64 now = bpf_ktime_get_ns();
  s->seen_ns = now;
  if (!s->have_zero && p->length) snd_start(skb, p, s);
  if (s->state == MR_SND_NEW || s->reason == MR_WHY_NO_SOCKET) return TC_ACT_OK; /* what was sent is not known */
  if (parse_rest(skb, p)) return TC_ACT_OK;
  __u32 sent, edge, now_ms = now / 1000000;
  __be32 ts = 0;
  __u8 scale, refresh;
  int plausible, hold = 0;
  bpf_spin_lock(&s->lock);
  plausible = snd_plausible(s, p, now_ms);
  if (plausible && p->plain) {
    s->edge = later(s->edge, p->acked + ((__u32)p->window << (s->scale & 15)));
    if (!before(p->acked, s->acked)) {
      s->acked = p->acked;
      if (p->has_ts && !(s->their_ts && before(bpf_ntohl(p->their_ts), bpf_ntohl(s->their_ts)))) {
        s->their_ts = p->their_ts;
        s->their_ms = now_ms;
      }
      if (after(s->acked, s->heard)) ranges_restart(s);
      s->in_step = p->in_step;
      if (p->in_step) s->confirmed = 1;
      s->state = snd_next(s->state, p->in_step ? SND_IN_STEP : SND_OUT_OF_STEP, p->in_step);
      if (!before(s->acked, s->recover)) s->state = snd_next(s->state, SND_CAUGHT_UP, p->in_step);
    }
  }
  sent = s->sent;
  /* D_j is beyond the end of what we sent: the stack must not take the FIN for heard, but say it again (`snd_end`). */
  if (s->have_fin && after(p->acked, s->fin + 1)) sent = s->fin;
  edge = s->edge;
  scale = s->scale;
  ts = s->our_ts;
  refresh = s->confirmed && s->have_ts;
  hold = plausible && p->plain && s->state != MR_SND_CLOSED && after(p->acked, sent);
  bpf_spin_unlock(&s->lock);
  if (!plausible) {
    count(s->counters, MR_C_ACK_IMPLAUSIBLE, 1);
    return TC_ACT_OK;
  }
  if (!p->plain) {
    snd_fall(s, MR_WHY_OPTIONS);
    return TC_ACT_OK;
  }
  if (p->blocks) snd_hear(p);
  if (s->state == MR_SND_CLOSED) return TC_ACT_OK;

  int sack = snd_clip(p, sent);
  refresh = refresh && p->has_ts && p->echoed_ts != ts;
  if (!hold && !sack && !refresh && !p->in_step) return TC_ACT_OK;
  __be32 tcp[TCP_WORDS];
  __builtin_memcpy(tcp, p->tcp, sizeof tcp);
  __u16 window = p->window;
  if (hold) {
    /* Clamped, not dropped: it may carry HDFS acks. The window's right edge stays where it is. */
    tcp[TCP_ACKED] = bpf_htonl(sent);
    window = window_from(edge, sent, scale);
    count(s->counters, MR_C_ACK_HELD, 1);
  }
  tcp[TCP_FLAGS] = flags_word(p->header, 0, p->flags, window);
  lay_options(tcp, p, p->their_ts, refresh ? ts : p->echoed_ts, p->blocks);
  write_tcp(skb, p, tcp);
  if (sack & SACK_CLIPPED) count(s->counters, MR_C_SACK_CLIPPED, 1);
  if (sack & SACK_STRIPPED) count(s->counters, MR_C_DSACK_STRIPPED, 1);
  return TC_ACT_OK;
}

#endif
