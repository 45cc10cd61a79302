// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Mirrored replication (TCP-MR) at a switch: one program, on clsact ingress of each port of a Linux bridge, before the
 * bridge sees a frame. It does what flow entries of an OpenFlow switch do (docs/mirror-controller.md).
 *
 *   client's segment, announced ──┬─────────────────────────────────────────► the bridge, as it came
 *                                 ├── mark 00:00:00, header as it is ───────► port toward another switch
 *                                 └── mark 00:00:0j, header of D_{j-1}→D_j ─► port of D_j
 *
 *   copy in transit, announced ───┬── header as it is ──────────────────────► port toward another switch
 *   (from another switch)         └── mark 00:00:0j, header of D_{j-1}→D_j ─► port of D_j
 *
 *   marked, of no entry or from any other port ─► dropped
 *
 * Copies leave by the egress of their ports, so that queues and shapers there treat them as any frame. Segments without
 * data are not copied, as D_j drops such copies.
 *
 * What it costs: a clone shares the frame's head, so after each bpf_clone_redirect the kernel copies that for the frame
 * which goes on, and no payload of a super-segment. Headers are therefore written over from one copy to the next, and put
 * back once at the end. Of a copy in transit nothing goes on, so the last one that leaves is that frame itself.
 */
#include "parse.h"
#include "switch.h"

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, MR_SW_ENTRIES);
  __type(key, struct mr_sw_key);
  __type(value, struct mr_sw_entry);
} mr_sw_entries SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, MR_SW_PORTS);
  __type(key, __u32);
  __type(value, struct mr_sw_port);
} mr_sw_ports SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct mr_sw_config);
} mr_sw_config SEC(".maps");

/* Sums over all entries, those that are gone too. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, MR_SW_COUNTERS);
  __type(key, __u32);
  __type(value, __u64);
} mr_sw_totals SEC(".maps");

/* Not in the headers of older kernels, which refuse it. */
#define MR_F_IPV6 (1ull << 7)

/* Target and source, as in the frame. */
#define ADDRESSES (2 * ETH_ALEN)

struct header {
  __u8 ethernet[ADDRESSES];
  struct mr_key flow;
};

struct rewriting {
  __u32 l3, l4, v6;
  struct header is, wanted;
};

static always_inline void count(__u32 counter, __u64 n) {
  __u64 *total = bpf_map_lookup_elem(&mr_sw_totals, &counter);
  if (total) *total += n;
}

/* Addresses are in the sum of TCP's pseudo-header, ports in TCP's own; the helper has to be told, as a frame whose sum a
 * device completes carries that of the pseudo-header alone. */
static always_inline void write_addresses(struct __sk_buff *skb, struct rewriting *r) {
  const struct mr_key *is = &r->is.flow, *wanted = &r->wanted.flow;
  __u32 sum_at = r->l4 + TCP_SUM_AT;
  if (r->v6) {
    __s64 difference = bpf_csum_diff((__be32 *)is->source, 32, (__be32 *)wanted->source, 32, 0);
    /* Without the flag the sum that a NIC has made of the whole frame is changed too, as if IP had a sum of its own. */
    if (bpf_l4_csum_replace(skb, sum_at, 0, difference, BPF_F_PSEUDO_HDR | MR_F_IPV6))
      bpf_l4_csum_replace(skb, sum_at, 0, difference, BPF_F_PSEUDO_HDR);
    bpf_skb_store_bytes(skb, r->l3 + 8, wanted->source, 32, 0);
    return;
  }
  __be32 from[2] = {is->source[3], is->target[3]}, to[2] = {wanted->source[3], wanted->target[3]};
  __s64 difference = bpf_csum_diff(from, sizeof from, to, sizeof to, 0);
  bpf_l3_csum_replace(skb, r->l3 + 10, 0, difference, 0);
  bpf_l4_csum_replace(skb, sum_at, 0, difference, BPF_F_PSEUDO_HDR);
  bpf_skb_store_bytes(skb, r->l3 + 12, to, sizeof to, 0);
}

/* The frame has the wanted header from now on. */
checked_once int rewrite(struct __sk_buff *skb, struct rewriting *r) {
  if (!r) return -1;
  write_addresses(skb, r);
  __be32 *from = (__be32 *)&r->is.flow.source_port, *to = (__be32 *)&r->wanted.flow.source_port;
  __s64 difference = bpf_csum_diff(from, 4, to, 4, 0);
  bpf_l4_csum_replace(skb, r->l4 + TCP_SUM_AT, 0, difference, 0);
  bpf_skb_store_bytes(skb, r->l4, to, 4, 0);
  bpf_skb_store_bytes(skb, 0, r->wanted.ethernet, ADDRESSES, 0);
  r->is = r->wanted;
  return 0;
}

static always_inline void mark(__u8 *ethernet, __u8 position) {
  __u8 *source = ethernet + ETH_ALEN;
  source[0] = MR_MARK_0;
  source[1] = MR_MARK_1;
  source[2] = MR_MARK_2;
  source[3] = source[4] = 0;
  source[5] = position;
}

/* Makes the frame the copy that is wanted. */
static always_inline void dress(struct __sk_buff *skb, struct rewriting *r, const struct mr_sw_copy *copy,
                                int in_transit) {
  if (!copy->position) {
    if (in_transit) return; /* it came so */
    mark(r->is.ethernet, 0);
    bpf_skb_store_bytes(skb, 0, r->is.ethernet, ADDRESSES, 0);
    return;
  }
  r->wanted.flow = copy->flow;
  __builtin_memcpy(r->wanted.ethernet, copy->to, ETH_ALEN);
  mark(r->wanted.ethernet, copy->position);
  rewrite(skb, r);
}

/* What a frame that nobody has announced comes to. */
static always_inline int strange(int in_transit) {
  if (!in_transit) return TC_ACT_UNSPEC;
  count(MR_SW_C_UNKNOWN, 1);
  return TC_ACT_SHOT;
}

/* Sends all copies of a segment; the verdict on the segment itself. */
checked_once int copied(struct __sk_buff *skb, struct packet *p, int in_transit) {
  if (!p) return TC_ACT_UNSPEC;
  struct mr_sw_key key;
  __builtin_memset(&key, 0, sizeof key);
  key.flow = p->key;
  key.port = skb->ifindex;
  key.marked = in_transit;
  struct mr_sw_entry *entry = bpf_map_lookup_elem(&mr_sw_entries, &key);
  if (!entry) return strange(in_transit);
  int verdict = in_transit ? TC_ACT_SHOT : TC_ACT_UNSPEC;
  __u8 came[ADDRESSES];
  if (!p->length || p->flags & (TCP_SYN | TCP_RST) || bpf_skb_load_bytes(skb, 0, came, ADDRESSES)) return verdict;

  struct rewriting r = {.l3 = L3, .l4 = p->l4, .v6 = p->v6};
  __builtin_memcpy(r.is.ethernet, came, ADDRESSES);
  r.is.flow = p->key;
  __u32 copies = entry->copies;
  __u64 left = 0, lost = 0;
  for (__u32 i = 0; i < MR_SW_COPIES; i++) {
    if (i >= copies) break;
    const struct mr_sw_copy *copy = &entry->copy[i];
    dress(skb, &r, copy, in_transit);
    if (in_transit && i + 1 == copies) {
      verdict = bpf_redirect(copy->port, 0);
      left++;
    } else if (bpf_clone_redirect(skb, copy->port, 0)) {
      lost++;
    } else {
      left++;
    }
  }
  if (!in_transit) {
    __builtin_memcpy(r.wanted.ethernet, came, ADDRESSES);
    r.wanted.flow = p->key;
    rewrite(skb, &r);
  }
  __sync_fetch_and_add(&entry->copied, left);
  __sync_fetch_and_add(&entry->copied_bytes, left * p->length);
  __sync_fetch_and_add(&entry->lost, lost);
  count(MR_SW_C_COPIED, left);
  count(MR_SW_C_COPIED_BYTES, left * p->length);
  count(MR_SW_C_LOST, lost);
  return verdict;
}

char LICENSE[] SEC("license") = "GPL";

SEC("classifier")
int mr_switch(struct __sk_buff *skb) {
  __u32 zero = 0, port = skb->ifindex;
  int is_marked = marked(skb);
  if (is_marked && !bpf_map_lookup_elem(&mr_sw_ports, &port)) {
    count(MR_SW_C_FORGED, 1);
    return TC_ACT_SHOT;
  }
  struct mr_sw_config *config = bpf_map_lookup_elem(&mr_sw_config, &zero);
  if (!config || config->off || skb->vlan_present) return strange(is_marked);
  struct packet p;
  __builtin_memset(&p, 0, sizeof p);
  if (parse(skb, &p)) return strange(is_marked);
  return copied(skb, &p, is_marked);
}
