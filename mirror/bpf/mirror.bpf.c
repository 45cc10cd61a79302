// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Mirrored replication (TCP-MR) at a DataNode's NIC, under a stock kernel: two programs on its clsact hooks.
 *
 * A switch copies the client's segments to D_1 also to D_2, D_3, …, with the addresses and ports of the connection from
 * D_{j-1} to D_j written over them and a mark in the source's Ethernet address. At D_j the copies enter that connection
 * (MR_RCV, receive.h); at D_{j-1} what it would send there is mostly not sent (MR_SND, send.h). A host is both: D_2
 * receives by MR_RCV and sends to D_3 by MR_SND.
 *
 *                     ingress                                            egress
 *   marked            MR_RCV: moved into the connection, or dropped      -
 *   D_{j-1} to D_j    MR_RCV: ACKs raised to where D_j is                MR_SND: sent really, or virtually
 *   D_j to D_{j-1}    MR_SND: news written down; held, clipped           MR_RCV: start learnt, step bit, coupled window
 *
 * Only announced connections count (state.h), announced before they start or in mid-stream; all other traffic goes as if
 * there were no program, but for marked frames, which are dropped. Of connections of data ports it is written down where
 * their streams start (start.h).
 */
#include "receive.h"
#include "send.h"

/* What goes on is for the next filter of the hook, if there is one. */
static always_inline int passed_on(int verdict) {
  return verdict == MR_NOT_OURS || verdict == TC_ACT_OK ? TC_ACT_UNSPEC : verdict;
}

/* Whether another release's program is asked after this one. */
static always_inline int stands_before(void) {
  __u32 zero = 0;
  const struct mr_config *config = bpf_map_lookup_elem(&mr_config, &zero);
  return config && config->before;
}

char LICENSE[] SEC("license") = "GPL";

SEC("classifier")
int mr_ingress(struct __sk_buff *skb) {
  if (skb->mark == MR_RELEASED) {
    if (!stands_before()) skb->mark = 0; /* the last one does */
    return TC_ACT_UNSPEC;
  }
  struct packet p;
  __builtin_memset(&p, 0, sizeof p);
  int verdict = MR_NOT_OURS, parsed = !parse(skb, &p);
  if (parsed ? p.marked : marked(skb)) {
    if (parsed) verdict = rcv_mirrored(skb, &p);
    if (stands_before()) {
      if (verdict == MR_NOT_OURS) return TC_ACT_UNSPEC;
      /* The next one knows nothing of this flow, and would drop it for its mark. */
      const __u8 unmarked = MR_MARK_0 | 4; /* an address as locally administered */
      if (verdict == TC_ACT_OK) bpf_skb_store_bytes(skb, ETH_ALEN, &unmarked, sizeof unmarked, 0);
    }
    if (verdict != MR_NOT_OURS) return passed_on(verdict);
    count_in_all(MR_C_MIRROR_UNKNOWN, 1);
    return TC_ACT_SHOT;
  }
  if (!parsed) return TC_ACT_UNSPEC;
  look_at_ports(&p);
  if (p.length && p.from_data) start_ingress(skb, &p);
  /* A port of DataNodes at one end tells the block's direction, mostly: it is asked for first. */
  int downward = !p.from_data || p.to_data;
  verdict = downward ? rcv_upstream(skb, &p) : snd_ingress(skb, &p);
  if (verdict == MR_NOT_OURS) verdict = downward ? snd_ingress(skb, &p) : rcv_upstream(skb, &p);
  return passed_on(verdict);
}

SEC("classifier")
int mr_egress(struct __sk_buff *skb) {
  if (skb->mark == MR_RELEASED) {
    if (!stands_before()) skb->mark = 0;
    return TC_ACT_UNSPEC;
  }
  struct packet p;
  __builtin_memset(&p, 0, sizeof p);
  if (parse(skb, &p)) return TC_ACT_UNSPEC;
  look_at_ports(&p);
  if (p.flags & TCP_SYN)
    start_anew(&p);
  else if (p.length && p.from_data)
    start_egress(skb, &p);
  int downward = !p.from_data || p.to_data;
  int verdict = downward ? snd_egress(skb, &p) : rcv_egress(skb, &p);
  if (verdict == MR_NOT_OURS) verdict = downward ? rcv_egress(skb, &p) : snd_egress(skb, &p);
  return passed_on(verdict);
}
