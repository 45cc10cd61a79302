/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Which ranges beyond its ACK D_j has said to hold: a ring of bits, one for MR_UNIT octets of sequence space. As 2^32 is
 * a multiple of the ring, a number's place needs no origin and the wrap is none.
 *
 * A bit says "held" only when the whole unit is: ranges are rounded inwards, so that a doubt means "not held".
 * Bits count from the unit of `acked` to the last one wholly before `heard`; those beyond are cleared as `heard` moves. */
#ifndef MR_RANGES_H
#define MR_RANGES_H

#include "kernel.h"
#include "state.h"

#define MR_ASK_WORDS 20 /* a segment spans no more words of bits: 600 KB, the largest GSO segment and some */
#define MR_ASK_UNITS ((MR_ASK_WORDS - 1) * 64)

static always_inline __u32 unit_of(__u32 seq) { return seq >> MR_UNIT_SHIFT; }

/* A run of units as words: the first and the last in part, those between them whole. Branches on a run's length would
 * have the verifier walk each loop anew for each length, so there is only the one that ends it. */
struct run {
  __u32 word, words; /* words: besides the first */
  __u64 head, tail;
};

static always_inline struct run run_of(__u32 first, __u32 n) {
  __u32 last = first + n - 1;
  struct run run = {.word = first >> 6, .words = ((last >> 6) - (first >> 6)) & (MR_WORDS - 1)};
  run.head = ~0ull << (first & 63);
  run.tail = ~0ull >> (63 - (last & 63));
  if (!run.words) run.head = run.tail &= run.head;
  return run;
}

/* Sets or clears the `n` units from `first` on; n from 1 to MR_UNITS - 64. */
static always_inline void ranges_write(__u64 *words, __u32 first, __u32 n, int set) {
  struct run run = run_of(first, n);
  __u64 *head = &words[run.word & (MR_WORDS - 1)], *tail = &words[(run.word + run.words) & (MR_WORDS - 1)];
  *head = set ? *head | run.head : *head & ~run.head;
  *tail = set ? *tail | run.tail : *tail & ~run.tail;
  for (__u32 i = 1; i < MR_WORDS; i++) {
    if (i >= run.words) break;
    words[(run.word + i) & (MR_WORDS - 1)] = set ? ~0ull : 0;
  }
}

/* Whether all of the `n` units from `first` on are set; n from 1 to MR_ASK_UNITS. */
static always_inline int ranges_all(const __u64 *words, __u32 first, __u32 n) {
  struct run run = run_of(first, n);
  __u64 missing = run.head & ~words[run.word & (MR_WORDS - 1)];
  missing |= run.tail & ~words[(run.word + run.words) & (MR_WORDS - 1)];
  for (__u32 i = 1; i < MR_ASK_WORDS; i++) {
    if (i >= run.words) break;
    missing |= ~words[(run.word + i) & (MR_WORDS - 1)];
  }
  return !missing;
}

/* `acked` has passed `heard`: nothing is held beyond it. */
static always_inline void ranges_restart(struct mr_snd *s) {
  s->heard = s->acked;
  __u32 unit = unit_of(s->acked);
  s->held[(unit >> 6) & (MR_WORDS - 1)] &= ~(1ull << (unit & 63));
}

/* D_j has told of something as far as `right`, at most MR_REACH beyond `acked`. */
static always_inline void ranges_hear(struct mr_snd *s, __u32 right) {
  /* The unit that `heard` is in was cleared when `heard` came to it. Units wrap before 32 bits do. */
  __u32 known = unit_of(s->heard), n = (unit_of(right) - known) & 0x7fffff;
  if (n && n < MR_UNITS) ranges_write(s->held, known + 1, n, 0);
  s->heard = right;
}

/* D_j holds [left, right), which lies between `acked` and `heard`. */
static always_inline void ranges_hold(struct mr_snd *s, __u32 left, __u32 right) {
  __u32 first = unit_of(left + MR_UNIT - 1), n = (unit_of(right) - first) & 0x7fffff;
  if (n && n < MR_UNITS) ranges_write(s->held, first, n, 1);
}

/* Whether D_j lacks something of [from, to) for certain: something not held that lies before what is. */
static always_inline int ranges_hole(const struct mr_snd *s, __u32 from, __u32 to) {
  from = later(from, s->acked);
  if (!before(from, s->heard) || !before(from, to)) return 0;
  __u32 first = unit_of(from), end = after(to, s->heard) || to == s->heard ? unit_of(s->heard) : unit_of(to - 1) + 1;
  __u32 n = (end - first) & 0x7fffff;
  return n && n <= MR_ASK_UNITS && !ranges_all(s->held, first, n);
}

/* Whether D_j holds all of [from, to), acknowledged or not. */
static always_inline int ranges_held(const struct mr_snd *s, __u32 from, __u32 to) {
  if (!after(to, s->acked)) return 1;
  if (before(from, s->acked) || after(to, s->heard)) return 0;
  __u32 first = unit_of(from);
  return ranges_all(s->held, first, (unit_of(to - 1) + 1 - first) & 0x7fffff);
}

#endif
