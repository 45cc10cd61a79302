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
 * Only connections in the maps count (state.h); all other traffic goes as if there were no program, but for marked
 * frames, which are dropped.
 */
#include "receive.h"
#include "send.h"

char LICENSE[] SEC("license") = "GPL";

SEC("classifier")
int mr_ingress(struct __sk_buff *skb) {
  if (skb->mark == MR_RELEASED) {
    skb->mark = 0;
    return TC_ACT_OK;
  }
  struct packet p;
  __builtin_memset(&p, 0, sizeof p);
  int mirrored = marked(skb), verdict = parse(skb, &p) ? MR_NOT_OURS : 0;
  if (mirrored) {
    if (!verdict) verdict = rcv_mirrored(skb, &p);
    if (verdict != MR_NOT_OURS) return verdict;
    count_in_all(MR_C_MIRROR_UNKNOWN, 1);
    return TC_ACT_SHOT;
  }
  if (verdict) return TC_ACT_OK;
  verdict = rcv_upstream(skb, &p);
  if (verdict == MR_NOT_OURS) verdict = snd_ingress(skb, &p);
  return verdict == MR_NOT_OURS ? TC_ACT_OK : verdict;
}

SEC("classifier")
int mr_egress(struct __sk_buff *skb) {
  struct packet p;
  __builtin_memset(&p, 0, sizeof p);
  if (parse(skb, &p)) return TC_ACT_OK;
  int verdict = snd_egress(skb, &p);
  if (verdict == MR_NOT_OURS) verdict = rcv_egress(skb, &p);
  return verdict == MR_NOT_OURS ? TC_ACT_OK : verdict;
}
