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
#define MR_SEEK_WORDS 24 /* of bits, in which the next range is looked for at a time: 768 KB */

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
  s->heard = s->told = s->acked;
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

/* The place of the lowest bit that is set, or 64: without a branch, and clang 14 knows no way that BPF has. */
static always_inline __u32 lowest(__u64 word) {
  word = (word & -word) - 1; /* all below it; they are counted */
  word -= word >> 1 & 0x5555555555555555ull;
  word = (word & 0x3333333333333333ull) + (word >> 2 & 0x3333333333333333ull);
  word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0full;
  return word * 0x0101010101010101ull >> 56;
}

/* How far from `first` the next unit is whose bit is as those of `set` (all ones, or zero); or the end of the MR_SEEK_WORDS
 * words that are looked at. Without a branch: the verifier of Linux 5.15 would walk the rest anew for each place. */
static always_inline __u32 ranges_seek(const __u64 *words, __u32 first, __u64 set) {
  __u64 bits = (words[(first >> 6) & (MR_WORDS - 1)] ^ ~set) & (~0ull << (first & 63)), none;
  __u32 at = 0;
  for (__u32 n = 1; n < MR_SEEK_WORDS; n++) {
    none = bits | -bits;
    apart(none); /* else the compiler makes a branch of it, and verifiers do of a mask */
    none = (none >> 63) ^ 1;
    apart(none);
    bits |= (words[((first >> 6) + n) & (MR_WORDS - 1)] ^ ~set) * none;
    at += none * 64;
  }
  /* Of no bit at all 64 are below the lowest. */
  return at + lowest(bits) - (first & 63);
}

/* A range of whole units before `sent`, in one number: how far back it begins, and how long it is. */
#define MR_RANGE_BITS 11
#define MR_RANGE_MOST ((1u << MR_RANGE_BITS) - 1)

static always_inline __u32 range_left(__u32 range, __u32 sent) {
  return (unit_of(sent) - (range >> MR_RANGE_BITS)) << MR_UNIT_SHIFT;
}

static always_inline __u32 range_right(__u32 range, __u32 sent) {
  return range_left(range, sent) + ((range & MR_RANGE_MOST) << MR_UNIT_SHIFT);
}

/* The next of the ranges that D_j holds of [acked, sent), each in its turn; 0: none. */
static always_inline __u32 ranges_next(struct mr_snd *s, __u32 sent) {
  __u32 end = unit_of(earlier(sent, s->heard)), first = unit_of(s->acked) + 1, from = unit_of(s->told);
  __u32 all = (end - first) & 0x7fffff;
  if (!all || all >= MR_UNITS) return 0;
  if (((from - first) & 0x7fffff) >= all) from = first;
  __u32 at = from + ranges_seek(s->held, from, ~0ull), length = ranges_seek(s->held, at, 0);
  s->told = (at + length) << MR_UNIT_SHIFT;
  __u32 before_it = (at - first) & 0x7fffff;
  if (before_it >= all) return 0;
  if (length > all - before_it) length = all - before_it;
  if (length > MR_RANGE_MOST) length = MR_RANGE_MOST;
  return length ? ((unit_of(sent) - at) & 0x7fffff) << MR_RANGE_BITS | length : 0;
}

#endif
