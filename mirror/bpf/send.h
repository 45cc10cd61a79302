/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* MR_SND: D_{j-1} goes through the motions of sending to D_j what the mirror has brought there. */
#ifndef MR_SEND_H
#define MR_SEND_H

#include "checksum.h"
#include "instead.h"
#include "lock.h"
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
 * In VIRTUAL fresh data is not sent, but where D_j has told of a hole that is not the writer's own; nor is it in RECOVERY, as
 * long as D_j's ACKs have the bit: copies go on while a lost one is said again, and a queue towards D_j that they fill would
 * lose more of them for each octet that comes twice. Else only what D_j holds for certain is not sent. What D_j has told of
 * comes from its ACKs before they are altered for our own stack.
 * Of a long segment with a hole, which may be a hundredth of it, nothing is sent either while D_j is in step: our stack hears
 * of the hole with D_j's next ACK, and says that much again, really. Else a full queue towards D_j that lost one frame would
 * get ten for it, and lose more of them. There may be no next ACK, as D_j waits for us while the writer waits for D_j: one
 * octet goes, which D_j answers.
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

/* Under the flow's lock; whether it is news, to be counted. The agent reads without it: whoever sees the state finds the
 * reason there. */
static always_inline int snd_doubt(struct mr_snd *s, __u8 reason) {
  int news = s->state != MR_SND_FALLEN && s->state != MR_SND_CLOSED;
  if (news) s->reason = reason;
  asm volatile("" ::: "memory");
  s->state = snd_next(s->state, SND_DOUBT, 0);
  return news;
}

/* 0: the lock is not to be had. */
static always_inline int snd_fall(struct mr_snd *s, __u8 reason) {
  if (!flow_lock(&s->lock)) return 0;
  int news = snd_doubt(s, reason);
  flow_unlock(&s->lock);
  if (news) count_fallback(s->counters, reason);
  return 1;
}

/* At the first segment that is seen, from a socket that is at rest: sent is all before `snd_nxt`, which doesn't count this
 * segment where it is a first transmission. */
static always_inline void snd_begin(struct mr_snd *s, const struct mr_key *key, const struct live *live) {
  __u64 now = bpf_ktime_get_coarse_ns();
  __u32 zero = 0;
  __u8 have_zero = 0;
  if (live->bytes_received > s->response_at)
    have_zero = !s->response_at && start_known(key, live->rcv_first, &zero) ? 1 : 2;
  if (!flow_lock(&s->lock)) return;
  if (s->state == MR_SND_NEW) {
    if (!s->have_zero) {
      s->have_zero = have_zero;
      s->zero = zero;
    }
    s->begun_ns = now;
    s->sent = live->snd_nxt;
    s->acked = live->snd_una;
    s->edge = live->snd_una + live->snd_wnd;
    s->their_ts = bpf_htonl(live->ts_recent);
    s->their_ms = s->moved_ms = ms_of(now);
    s->scale = live->snd_scale & 15;
    ranges_restart(s);
    s->state = snd_next(s->state, SND_SOCKET, 0);
  }
  flow_unlock(&s->lock);
}

/* Segments were sent that were not seen, and ACKs may not have been: the socket knows what D_j has said, but for what D_j
 * holds by copies beyond what was sent. */
static always_inline void snd_begin_anew(struct mr_snd *s, const struct live *live) {
  if (!flow_lock(&s->lock)) return;
  if (s->acked - live->snd_una > live->snd_wnd) {
    s->acked = live->snd_una;
    ranges_restart(s);
  }
  s->edge = live->snd_una + live->snd_wnd;
  s->confirmed = 0;
  flow_unlock(&s->lock);
}

/* Asks the live socket, at the first segment and after a gap. Apart, as one stack has no room for it and all else. */
checked_once int snd_ask(struct __sk_buff *skb, struct packet *p) {
  if (!p) return 0;
  struct mr_key key;
  key = p->key;
  struct mr_snd *s = bpf_map_lookup_elem(&mr_snd_flows, &key);
  if (!s) return 0;
  struct live live = {};
  int none = sending_socket(skb, p, &live), begun = s->state != MR_SND_NEW;
  if (none && !begun) snd_fall(s, MR_WHY_NO_SOCKET);
  if (none) return 0;
  if (begun)
    snd_begin_anew(s, &live);
  else
    snd_begin(s, &key, &live);
  return 0;
}

#define SND_GOES_ON (-1)

/* An RST, or a FIN behind what D_j already has from the mirror, with data or without: D_j's stack would ignore either and
 * hang. It hears of the end where it is. Any other FIN goes on as it is, with its data as all data. */
static always_inline int snd_end(struct __sk_buff *skb, struct packet *p, struct mr_snd *s) {
  __u32 end = p->seq + p->length, at;
  int early, rst = p->flags & TCP_RST;
  /* Nobody says an RST again. */
  int had = flow_lock(&s->lock);
  if (!had && !rst) return flow_busy(s->counters);
  early = s->state != MR_SND_NEW && s->reason != MR_WHY_NO_SOCKET && after(rst ? s->acked : s->heard, end);
  at = s->acked;
  if (rst || early) {
    s->state = snd_next(s->state, SND_END, 0);
  } else {
    s->fin = end;
    s->have_fin = 1;
  }
  if (rst || early || !p->length) s->sent = later(s->sent, end + 1); /* a FIN takes a number */
  if (had) flow_unlock(&s->lock);
  if (!early) return rst || !p->length ? TC_ACT_OK : SND_GOES_ON;
  count(s->counters, MR_C_ABORTED, 1);
  if (snd_cut(skb, p, at, TCP_RST | (p->flags & TCP_ACK), 0)) return TC_ACT_STOLEN;
  return p->length ? go_anew(skb) : TC_ACT_OK;
}

/* Octets of a segment with a hole that goes really at once: two frames of Ethernet. */
#define MR_HOLE_MOST 2920

enum snd_verdict { SND_REAL, SND_HOLE, SND_AGAIN, SND_VIRTUAL, SND_ASKS, SND_HAS, SND_REPEAT, SND_GAP };

/* Whether a hole in [seq, end) tells of a copy that got lost. */
static always_inline int snd_lost(const struct mr_snd *s, __u32 seq, __u32 end) {
  __u32 until = end;
  if (s->have_again && (__s32)(ms_of(s->seen_ns) - s->again_ms) < MR_AGAIN_MS) {
    until = earlier(end, s->again_from & ~(MR_UNIT - 1));
    __u32 from = later(seq, (s->again_to + MR_UNIT - 1) & ~(MR_UNIT - 1));
    if (ranges_hole(s, from, end)) return 1;
  }
  return ranges_hole(s, seq, until);
}

static always_inline struct mr_repeat *snd_last(struct mr_snd *s, __u32 seq) {
  return &s->repeats[(seq * 2654435761u) >> 26 & (MR_REPEATS - 1)];
}

/* Round trips of nothing, which virtual sending makes, have our stack take for lost what is on its way: a retransmission in
 * a queue, for which there is `repeat_ms`; and copies of which D_j can't have told yet, as it has of nothing beyond them. The
 * first segment that lacks goes, which is what a timer repeats, and so does the last, a probe. */
static always_inline int snd_hasty(const struct mr_snd *s, const struct packet *p, __u32 seq, __u32 end) {
  int copied = s->state == MR_SND_VIRTUAL || s->state == MR_SND_RECOVERY;
  if (!copied || !s->in_step || p->off) return 0;
  return after(seq, s->acked) && !before(seq, s->heard) && before(end, s->sent);
}

/* What becomes of a segment with data. Under the flow's lock. `now_ms` counts for retransmissions alone. */
static always_inline enum snd_verdict snd_judge(struct mr_snd *s, const struct packet *p, __u32 now_ms) {
  __u32 seq = p->seq, end = seq + p->length;
  int fresh = !before(seq, s->sent);
  if (after(seq, s->sent)) {
    s->sent = end;
    return SND_GAP;
  }
  s->sent = later(s->sent, end);
  if (s->state == MR_SND_FALLEN || s->state == MR_SND_CLOSED) return fresh ? SND_REAL : SND_AGAIN;
  /* A reduced window is told on data only. */
  if (p->flags & TCP_CWR) return fresh ? SND_REAL : SND_AGAIN;
  if (!after(end, s->acked)) return fresh ? SND_VIRTUAL : SND_HAS;
  if (fresh) {
    if (snd_lost(s, seq, end)) {
      int later = s->in_step && s->state != MR_SND_REAL && !p->off && p->length > MR_HOLE_MOST;
      return later ? SND_ASKS : SND_HOLE;
    }
    int copied = s->state == MR_SND_VIRTUAL || (s->state == MR_SND_RECOVERY && s->in_step);
    int unsent = copied && !p->off && !(p->flags & TCP_FIN);
    return unsent || ranges_held(s, seq, end) ? SND_VIRTUAL : SND_REAL;
  }
  if (snd_hasty(s, p, seq, end)) return SND_REPEAT;
  if (s->state == MR_SND_VIRTUAL) s->recover = s->sent;
  s->state = snd_next(s->state, SND_RETRANSMIT, s->in_step);
  struct mr_repeat *last = snd_last(s, seq);
  return last->at_ms && last->seq == seq && now_ms - last->at_ms < p->repeat_ms ? SND_REPEAT : SND_AGAIN;
}

/* A segment with data really goes. By the clock that is exact: the coarse one's ticks may be longer than `repeat_ms`. */
static always_inline void snd_note(struct mr_snd *s, __u32 seq) {
  struct mr_repeat *last = snd_last(s, seq);
  last->seq = seq;
  last->at_ms = bpf_ktime_get_ns() / 1000000;
}

/* Whether what a segment that is not sent acknowledges can wait for a later one. `s->sent_ack` stays, so the next has news. */
static always_inline int snd_owes(struct mr_snd *s, const struct packet *p) {
  if (p->length <= MR_CUT_MOST || !s->have_sent_ack || !s->sent_window) return 0;
  if (p->acked - s->sent_ack > MR_OWED_MOST) return 0;
  __u32 now_ms = ms_of(s->seen_ns) | 1;
  if (!s->owed_ms) s->owed_ms = now_ms;
  return now_ms - s->owed_ms < MR_OWED_MS;
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

/* D_{j-1} to D_j. */
checked_once int snd_egress(struct __sk_buff *skb, struct packet *p) {
  if (!p) return MR_NOT_OURS;
  struct mr_key key;
  key = p->key;
  struct mr_snd *s = bpf_map_lookup_elem(&mr_snd_flows, &key);
  if (!s) return MR_NOT_OURS;

  if (p->flags & TCP_SYN) return TC_ACT_OK;
  seen(&s->seen_ns, &s->seen_tick);
  if (s->state == MR_SND_NEW) snd_ask(skb, p);
  if (s->state == MR_SND_NEW && !(p->flags & TCP_RST)) return flow_busy(s->counters);
  if (parse_rest(skb, p)) return TC_ACT_OK;
  __u8 doubt = 0;
  if (!p->plain || p->flags & TCP_URG) doubt = p->plain ? MR_WHY_URGENT : MR_WHY_OPTIONS;
  if (p->length > (MR_ASK_UNITS - 2) * MR_UNIT) doubt = MR_WHY_REACH;
  if (doubt && !snd_fall(s, doubt) && !(p->flags & TCP_RST)) return flow_busy(s->counters);
  if (p->flags & (TCP_RST | TCP_FIN)) {
    int end = snd_end(skb, p, s);
    if (end != SND_GOES_ON) return end;
  }
  __u32 seq, now_ms = 0;
  if (p->length && before(p->seq, s->sent)) now_ms = bpf_ktime_get_ns() / 1000000;
  enum snd_verdict verdict = SND_REAL;
  struct release release = {};
  int keep = 0, tell, note, doubted = 0;
  /* An ACK alone goes unseen: our stack says none again, and the next one has its news. */
  if (!flow_lock(&s->lock)) return p->length ? flow_busy(s->counters) : TC_ACT_OK;
  if (p->has_ts) {
    s->our_ts = p->their_ts;
    s->have_ts = 1;
  }
  if (p->length) {
    verdict = snd_judge(s, p, now_ms);
    if (verdict == SND_GAP) doubted = snd_doubt(s, MR_WHY_GAP);
    /* A FIN goes with its data, and takes a number. */
    if (p->flags & TCP_FIN) {
      if (verdict == SND_VIRTUAL || verdict == SND_ASKS || verdict == SND_HAS) verdict = SND_REAL;
      s->sent = later(s->sent, p->seq + p->length + 1);
    }
    release.acked = earlier(s->acked, s->sent);
    release.due = after(release.acked, p->seq) || verdict == SND_HAS;
    release.window = window_from(s->edge, release.acked, s->scale);
    release.ts = s->their_ts;
  }
  tell = !p->off && s->state >= MR_SND_REAL && s->state <= MR_SND_RECOVERY;
  note = s->state >= MR_SND_REAL && s->state <= MR_SND_RECOVERY && !(p->flags & (TCP_CWR | TCP_FIN));
  seq = later(p->seq + p->length, s->acked);
  if (p->flags & TCP_ACK && verdict != SND_REPEAT) {
    int unsent = verdict == SND_VIRTUAL || verdict == SND_HAS;
    keep = !s->have_sent_ack || after(p->acked, s->sent_ack) || (!s->sent_window && p->window);
    if (keep && unsent && snd_owes(s, p)) {
      keep = 0;
    } else {
      s->sent_ack = s->have_sent_ack ? later(s->sent_ack, p->acked) : p->acked;
      s->sent_window = p->window;
      s->have_sent_ack = 1;
      s->owed_ms = 0;
    }
  }
  if (verdict == SND_VIRTUAL || verdict == SND_ASKS) {
    s->counters[MR_C_VIRTUAL]++;
    s->counters[MR_C_VIRTUAL_BYTES] += p->length;
  }
  flow_unlock(&s->lock);
  if (!p->length) return TC_ACT_OK;

  switch (verdict) {
  case SND_GAP:
    snd_ask(skb, p);
    if (doubted) count_fallback(s->counters, MR_WHY_GAP);
    return TC_ACT_OK;
  case SND_HOLE:
    count(s->counters, MR_C_REAL_HOLE, 1);
  case SND_REAL:
    if (note) snd_note(s, p->seq);
    count(s->counters, MR_C_REAL, 1);
    count(s->counters, MR_C_REAL_BYTES, p->length);
    if (tell) snd_tell(skb, p);
    return TC_ACT_OK;
  case SND_AGAIN:
    if (note) snd_note(s, p->seq);
    count(s->counters, MR_C_RETRANSMITTED, 1);
    count(s->counters, MR_C_RETRANSMITTED_BYTES, p->length);
    if (tell) snd_tell(skb, p);
    return TC_ACT_OK;
  case SND_REPEAT:
    /* A drop that the stack sees: it counts nothing as sent, and comes back to it with the next ACK. */
    count(s->counters, MR_C_REPEAT_SUPPRESSED, 1);
    return TC_ACT_SHOT;
  case SND_VIRTUAL:
  case SND_ASKS:
    count_in_all(MR_C_VIRTUAL, 1);
    count_in_all(MR_C_VIRTUAL_BYTES, p->length);
  case SND_HAS:
    break;
  }
  /* Stolen, never shot: a drop that the stack sees keeps it from going on. */
  if (verdict == SND_ASKS) {
    int gone = snd_ask_on(skb, p, !keep && !release.due);
    if (gone) return gone;
  }
  if (keep) {
    /* What the segment acknowledges must not vanish with it: it becomes an ACK towards D_j. */
    if (snd_cut(skb, p, seq, TCP_ACK, 0)) return TC_ACT_STOLEN;
    count(s->counters, MR_C_ACK_KEPT, 1);
    if (!release.due) return go_anew(skb);
    bpf_clone_redirect(skb, skb->ifindex, 0);
  }
  if (!release.due) return TC_ACT_STOLEN;
  count(s->counters, MR_C_ACK_RELEASED, 1);
  int lack = p->v6 ? snd_turn_v6(skb, p, release.acked, release.ts, release.window)
                   : snd_turn_v4(skb, p, release.acked, release.ts, release.window);
  if (lack) return TC_ACT_STOLEN;
  skb->mark = MR_RELEASED; /* our own ingress must not take it for D_j's */
  return bpf_redirect(skb->ifindex, BPF_F_INGRESS);
}

/* The stream's start, as D_j's set-up response acknowledges it: windows are coupled by it. 0: the lock is not to be had. */
static always_inline int snd_start(struct __sk_buff *skb, const struct packet *p, struct mr_snd *s) {
  struct live live = {};
  if (look_up(skb, &p->key, p->v6, &live)) return 1;
  if (live.bytes_received < s->response_at || (live.bytes_received == s->response_at && p->seq != live.rcv_nxt)) return 1;
  if (live.bytes_received > s->response_at && s->state == MR_SND_NEW) return 1; /* as `snd_begin` will find it */
  if (!flow_lock(&s->lock)) return 0;
  if (!s->have_zero) {
    s->have_zero = live.bytes_received == s->response_at ? 1 : 2;
    s->zero = p->acked;
  }
  flow_unlock(&s->lock);
  return 1;
}

/* Whether D_j can have sent this: as the stack would judge, had it sent what it sent virtually. Else a stranger who
 * guesses addresses and ports could have data left unsent. D_j may have come by copies as far as its window is open, and
 * further where its ACKs of that were lost: by its clock it is known then, and without one no further than we know. Where
 * options lie strangely its clock is not read. */
static always_inline int snd_plausible(const struct mr_snd *s, const struct packet *p, __u32 now_ms) {
  __u32 oldest = s->acked - MR_REACH, most = later(s->edge, s->acked + MR_REACH) + 1;
  if (s->their_ts && p->plain) {
    __u32 last = bpf_ntohl(s->their_ts);
    __s32 age = now_ms - s->their_ms; /* clocks are read before the lock is had */
    if (age < 0) age = 0;
    if (!p->has_ts || !ts_follows(bpf_ntohl(p->their_ts), last, MR_TS_OVERTAKEN, age)) return 0;
    most = s->acked + MR_WINDOW;
  }
  if (p->acked - oldest > most - oldest) return 0;
  return !s->have_sent_ack || p->seq - (s->sent_ack - 0x10000) < 0x800000;
}

#define SACK_CLIPPED 1
#define SACK_STRIPPED 2

struct header {
  __be32 tcp[TCP_WORDS];
};

/* SACK as our stack may see it, in a header that has none yet: nothing beyond what was sent, which would make it ignore the
 * block, and no DSACK, which would make it think that its retransmission was needless; the range `again`, if not 0, in the
 * first block's place. Returns what was done. */
checked_once int snd_clip(struct packet *p, struct header *fresh, __u32 sent, __u32 again) {
  if (!p || !fresh) return 0;
  __u32 start = p->has_ts ? TCP_STAMPED : TCP_OPTIONS, left = 0;
  int done = 0;
  for (__u32 i = 0; i < MR_BLOCKS; i++) {
    if (i >= p->blocks) break;
    __u32 l = sack_edge(p, 2 * i), r = sack_edge(p, 2 * i + 1);
    if (i == 0) {
      if (again) {
        l = range_left(again, sent);
        r = range_right(again, sent);
        done |= SACK_CLIPPED;
      }
      int within = p->blocks > 1 && !before(l, sack_edge(p, 2)) && !after(r, sack_edge(p, 3));
      if (!after(r, p->acked) || within) {
        done |= SACK_STRIPPED;
        continue;
      }
    }
    if (after(r, sent)) done |= SACK_CLIPPED;
    if (!before(l, sent)) continue;
    __u32 at = start + 1 + 2 * left;
    apart(at);
    if (at > TCP_WORDS - 2) break;
    fresh->tcp[at] = bpf_htonl(l);
    fresh->tcp[at + 1] = bpf_htonl(earlier(r, sent));
    left++;
  }
  if (left) fresh->tcp[start] = bpf_htonl(0x01010502 + 8 * left);
  return done;
}

/* Writes D_j's SACK blocks down, as far as there are bits; a DSACK tells nothing. Apart, as its loops are most of the
 * verifier's work. */
checked_once int snd_hear(struct packet *p, struct mr_snd *s) {
  if (!p || !s || !flow_lock(&s->lock)) return 0; /* the next one tells of them again */
  __u32 far = s->heard, limit = s->acked + MR_REACH;
  for (__u32 i = 0; i < MR_BLOCKS; i++) {
    __u32 r = earlier(sack_edge(p, 2 * i + 1), limit);
    if (i < p->blocks && after(r, far)) far = r;
  }
  if (far != s->heard) ranges_hear(s, far);
  for (__u32 i = 0; i < MR_BLOCKS; i++) {
    __u32 l = sack_edge(p, 2 * i), r = earlier(sack_edge(p, 2 * i + 1), limit);
    if (i < p->blocks && after(l, s->acked) && after(r, l)) ranges_hold(s, l, r);
  }
  flow_unlock(&s->lock);
  return 0;
}

/* D_j tells of the latest first, and where it is ahead of us that lies beyond `sent`. What our stack has to know, so that
 * it says a lost segment again before its timer does, was told long ago, before it was sent: it hears of that again, of
 * one range with each such ACK, which is returned; 0: none. */
checked_once int snd_recall(struct packet *p, struct mr_snd *s, __u32 sent) {
  if (!p || !s || !p->blocks) return 0;
  /* But what it tells first is that of which it was asked (`snd_ask_on`), or has twice. */
  int aside = p->blocks > 1 && (sack_edge(p, 1) - sack_edge(p, 0) == 1 || !after(sack_edge(p, 1), p->acked));
  if (before(aside ? sack_edge(p, 2) : sack_edge(p, 0), sent) || !flow_lock(&s->lock)) return 0;
  __u32 range = ranges_next(s, sent);
  flow_unlock(&s->lock);
  return range;
}

/* D_j to D_{j-1}: its news are written down as they are, then made what our stack can believe. */
checked_once int snd_ingress(struct __sk_buff *skb, struct packet *p) {
  if (!p) return MR_NOT_OURS;
  struct mr_key key;
  reverse(&p->key, &key);
  struct mr_snd *s = bpf_map_lookup_elem(&mr_snd_flows, &key);
  if (!s) return MR_NOT_OURS;

  if ((p->flags & (TCP_SYN | TCP_RST | TCP_ACK)) != TCP_ACK) return TC_ACT_OK;
  __u64 now = seen(&s->seen_ns, &s->seen_tick);
  if (!s->have_zero && p->length && !snd_start(skb, p, s)) return flow_busy(s->counters);
  if (s->state == MR_SND_NEW || s->reason == MR_WHY_NO_SOCKET) return TC_ACT_OK; /* what was sent is not known */
  if (parse_rest(skb, p)) return TC_ACT_OK;
  __u32 sent, edge, now_ms = ms_of(now);
  __be32 ts = 0;
  __u8 scale, refresh;
  int plausible, hold = 0;
  if (!flow_lock(&s->lock)) return flow_busy(s->counters);
  plausible = snd_plausible(s, p, now_ms);
  if (plausible && p->plain) {
    edge = later(s->edge, p->acked + ((__u32)p->window << (s->scale & 15)));
    if (edge != s->edge || after(p->acked, s->acked)) s->moved_ms = now_ms;
    s->edge = edge;
    if (!before(p->acked, s->acked)) {
      s->acked = p->acked;
      if (p->has_ts && !(s->their_ts && before(bpf_ntohl(p->their_ts), bpf_ntohl(s->their_ts)))) {
        s->their_ts = p->their_ts;
        s->their_ms = now_ms;
      }
      if (after(s->acked, s->heard)) ranges_restart(s);
      if (!before(s->acked, s->again_to)) s->have_again = 0;
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
  if (hold) s->counters[MR_C_ACK_HELD]++;
  flow_unlock(&s->lock);
  if (!plausible) {
    count(s->counters, MR_C_ACK_IMPLAUSIBLE, 1);
    return TC_ACT_OK;
  }
  if (!p->plain) {
    snd_fall(s, MR_WHY_OPTIONS);
    return TC_ACT_OK;
  }
  if (p->blocks) snd_hear(p, s);
  if (s->state == MR_SND_CLOSED) return TC_ACT_OK;

  refresh = refresh && p->has_ts && p->echoed_ts != ts;
  struct header fresh;
  __be32 *tcp = fresh.tcp;
  __builtin_memcpy(tcp, p->tcp, sizeof fresh);
  lay_options(tcp, p, p->their_ts, refresh ? ts : p->echoed_ts);
  int sack = p->blocks ? snd_clip(p, &fresh, sent, snd_recall(p, s, sent)) : 0;
  if (!hold && !sack && !refresh && !p->in_step) return TC_ACT_OK;
  __u16 window = p->window;
  if (hold) {
    /* Clamped, not dropped: it may carry HDFS acks. The window's right edge stays where it is. */
    tcp[TCP_ACKED] = bpf_htonl(sent);
    window = window_from(edge, sent, scale);
    count_in_all(MR_C_ACK_HELD, 1);
  }
  tcp[TCP_FLAGS] = flags_word(p->header, 0, p->flags, window);
  write_tcp(skb, p, tcp);
  if (sack & SACK_CLIPPED) count(s->counters, MR_C_SACK_CLIPPED, 1);
  if (sack & SACK_STRIPPED) count(s->counters, MR_C_DSACK_STRIPPED, 1);
  return TC_ACT_OK;
}

#endif
