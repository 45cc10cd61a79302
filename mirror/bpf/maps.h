/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The maps, and counting. Flows are in hash maps of fixed size: only announced flows are in them, which the agent also takes
 * out. */
#ifndef MR_MAPS_H
#define MR_MAPS_H

#include "kernel.h"
#include "state.h"

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, MR_FLOWS);
  __type(key, struct mr_key);
  __type(value, struct mr_snd);
} mr_snd_flows SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, MR_FLOWS);
  __type(key, struct mr_key);
  __type(value, struct mr_rcv);
} mr_rcv_flows SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, MR_FLOWS);
  __type(key, struct mr_key);
  __type(value, struct mr_head);
} mr_heads SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, MR_STARTS);
  __type(key, struct mr_key);
  __type(value, struct mr_start);
} mr_starts SEC(".maps");

/* Connections from D_j whose start was looked for already, each by a hash of it: most segments need not ask `mr_starts`. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, MR_STARTS);
  __type(key, __u32);
  __type(value, __u32);
} mr_looked SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct mr_config);
} mr_config SEC(".maps");

/* Sums over all flows, those that are gone too. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, MR_COUNTERS);
  __type(key, __u32);
  __type(value, __u64);
} mr_totals SEC(".maps");

/* By how many of each reason flows fell back. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, MR_REASONS);
  __type(key, __u32);
  __type(value, __u64);
} mr_fallbacks SEC(".maps");

#define MR_NOT_OURS (-2) /* no announced flow; distinct from every verdict on a frame */

/* An entry is seen; the time. Its clock is read once a tick: calls are most of what a segment costs, and the kernel's ticks
 * are read without one. */
static always_inline __u64 seen(__u64 *seen_ns, __u64 *seen_tick) {
  __u64 tick = bpf_jiffies64();
  if (*seen_tick != tick) {
    *seen_ns = bpf_ktime_get_coarse_ns();
    *seen_tick = tick;
  }
  return *seen_ns;
}

static always_inline void count_in_all(__u32 counter, __u64 n) {
  __u64 *total = bpf_map_lookup_elem(&mr_totals, &counter);
  if (total) *total += n;
}

/* Not under a flow's lock, which is held for as little as can be. What is counted under it, without an atomic operation, is
 * counted nowhere else, and in the sums once the lock is given up. */
static always_inline void count(__u64 *counters, __u32 counter, __u64 n) {
  __sync_fetch_and_add(&counters[counter], n);
  count_in_all(counter, n);
}

static always_inline void count_fallback(__u64 *counters, __u32 reason) {
  __u64 *flows = bpf_map_lookup_elem(&mr_fallbacks, &reason);
  if (flows) *flows += 1;
  count(counters, MR_C_FELL_BACK, 1);
}

#endif
