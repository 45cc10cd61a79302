/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The lock of a flow's entry. The kernel's own (struct bpf_spin_lock) turns interrupts off and on again, which took some 60 ns
 * each time where it was measured. None of them comes here: these programs run in softirqs and where those are off, and the
 * agent only reads.
 *
 * Who holds it does so for some hundred instructions, but may lose its processor in them where that is a virtual one, or
 * the kernel real-time. Nobody waits for that: what could not be looked at is dropped, as TCP says it again. What it would not
 * say again goes on. */
#ifndef MR_LOCK_H
#define MR_LOCK_H

#include "maps.h"

/* So long at most, which is longer than most interrupts of the processor that has it; and so many looks at the clock, as
 * verifiers want an end. */
#define MR_LOCK_NS 100000
#define MR_LOCK_LOOKS 2048

/* After a try in vain. Apart, as verifiers walk each turn of a loop. */
checked_once int flow_wait(__u32 *lock) {
  if (!lock) return 0;
  __u64 until = bpf_ktime_get_ns() + MR_LOCK_NS;
#pragma clang loop unroll(disable)
  for (int i = 0; i < MR_LOCK_LOOKS; i++) {
    /* Who tries takes the cache line from who holds the lock, so it is looked at first. */
    if (!*(volatile __u32 *)lock && !__sync_val_compare_and_swap(lock, 0, 1)) return 1;
    if (bpf_ktime_get_ns() >= until) return 0;
  }
  return 0;
}

/* Whether the lock was had. */
static always_inline int flow_lock(__u32 *lock) {
  return !__sync_val_compare_and_swap(lock, 0, 1) || flow_wait(lock);
}

static always_inline void flow_unlock(__u32 *lock) {
  asm volatile("" ::: "memory");
  __sync_lock_test_and_set(lock, 0); /* with a barrier, unlike a store */
}

/* What becomes of a frame whose flow's lock was not to be had. */
static always_inline int flow_busy(__u64 *counters) {
  count(counters, MR_C_BUSY, 1);
  return TC_ACT_SHOT;
}

#endif
