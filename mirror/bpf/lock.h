/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The lock of a connection to the next replica. The kernel's own (struct bpf_spin_lock) turns interrupts off and on again,
 * which took some 60 ns each time where it was measured. None of them comes here: these programs run in softirqs and where those
 * are off, and the agent only reads.
 *
 * Who holds it does so for some hundred instructions, but may lose its processor in them where that is a virtual one, or
 * the kernel real-time. Nobody waits for that: what could not be looked at is dropped, and said again by TCP. */
#ifndef MR_LOCK_H
#define MR_LOCK_H

#include "maps.h"

/* Each with a look at the clock, so that they take some 100 microseconds in all: an interrupt that comes to the processor that
 * has the lock is longer than as many tries alone. */
#define MR_LOCK_TRIES 2048

/* Whether the lock was had. */
static always_inline int snd_lock(struct mr_snd *s) {
#pragma clang loop unroll(disable)
  for (int i = 0; i < MR_LOCK_TRIES; i++) {
    if (!__sync_val_compare_and_swap(&s->lock, 0, 1)) return 1;
    bpf_ktime_get_ns();
  }
  return 0;
}

static always_inline void snd_unlock(struct mr_snd *s) {
  asm volatile("" ::: "memory");
  __sync_lock_test_and_set(&s->lock, 0); /* with a barrier, unlike a store */
}

#endif
