/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Changes to headers, with the sums that cover them. A frame on its way out carries only the sum of the pseudo-header,
 * for the device (or the kernel, later) completes it; one from the wire carries the whole sum. A field that can't be the
 * former is the latter, and is changed here. Of others the kernel's helpers know which is which where addresses and lengths
 * stay; where the length changes, the field itself tells. */
#ifndef MR_CHECKSUM_H
#define MR_CHECKSUM_H

#include "parse.h"

static always_inline __u16 fold(__u64 sum) {
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

/* What a sum over a header of `octets` gains where one is written over another; ports stay. */
static always_inline __u32 gained(const __be32 *was, const __be32 *is, __u32 octets) {
  __u64 sum = 0;
  for (int i = TCP_SEQ; i < TCP_STAMPED; i++) sum += (__u64)(__u32)~was[i] + is[i];
  if (octets > 4 * TCP_STAMPED)
    for (int i = TCP_STAMPED; i < TCP_WORDS; i++) sum += (__u64)(__u32)~was[i] + is[i];
  sum = (sum & 0xffffffff) + (sum >> 32);
  return sum + (sum >> 32);
}

/* The four octets of data offset, reserved bits, flags and window. */
static always_inline __be32 flags_word(__u32 header, int in_step, __u8 flags, __u16 window) {
  return bpf_htonl(header / 4 << 28 | (in_step ? MR_STEP_BIT << 24 : 0) | (__u32)flags << 16 | window);
}

/* Lays the options out anew: timestamps where they were, then NOPs to the header's end. */
static always_inline void lay_options(__be32 *tcp, const struct packet *p, __be32 ts, __be32 echo) {
  const __be32 nops = bpf_htonl(0x01010101);
  __u32 words = p->header / 4, stamped = p->has_ts ? TCP_STAMPED : TCP_OPTIONS;
  if (words > stamped)
    for (__u32 i = TCP_OPTIONS; i < TCP_WORDS; i++) tcp[i] = i < words ? nops : 0;
  if (!p->has_ts) return;
  tcp[TCP_OPTIONS] = bpf_htonl(0x0101080a);
  tcp[TCP_OPTIONS + 1] = ts;
  tcp[TCP_OPTIONS + 2] = echo;
}

/* The pseudo-header of `octets` of TCP. Source and target may be swapped, as a sum knows no order. */
static always_inline __u64 pseudo_sum(const struct packet *p, __u32 octets) {
  __u64 sum = bpf_htonl(IPPROTO_TCP) + (__u64)bpf_htonl(octets);
  for (int i = 0; i < 4; i++)
    if (p->v6 || i == 3) sum += (__u64)p->key.source[i] + p->key.target[i];
  return sum;
}

/* Whether the sum field is that of the pseudo-header alone. One in 65536 whole sums looks so, too. */
static always_inline int is_partial(const struct packet *p) {
  __u16 field = bpf_ntohl(p->tcp[TCP_SUM]) >> 16;
  return bpf_htons(field) == fold(pseudo_sum(p, p->header + p->length));
}

/* The word of the sum field, with a sum. */
static always_inline __be32 sum_word(__be32 word, __u16 sum) {
  return bpf_htonl((__u32)bpf_ntohs(sum) << 16 | (bpf_ntohl(word) & 0xffff));
}

/* The sum that a segment of `octets` must carry once it has become the header `tcp`, zero behind its end to all of its
 * `words`, and data of the sum `data`: partial where it was. */
static always_inline __be32 sum_anew(const struct packet *p, const __be32 *tcp, __u32 words, __u32 octets, __u16 data) {
  __u64 sum = pseudo_sum(p, octets);
  if (is_partial(p)) return sum_word(tcp[TCP_SUM], fold(sum));
  sum += data;
  for (__u32 i = 0; i < words; i++) sum += i == TCP_SUM ? tcp[i] & bpf_htonl(0xffff) : tcp[i];
  return sum_word(tcp[TCP_SUM], ~fold(sum));
}

/* Writes a changed TCP header over the frame's; its length, and the sum field itself, are as they were. */
static always_inline void write_tcp(struct __sk_buff *skb, struct packet *p, __be32 *fresh) {
  __u32 octets = p->header;
  if (octets < 20) return;
  apart(octets);
  if (octets > 60) return;
  __u32 difference = gained(p->tcp, fresh, octets);
  int doubt = is_partial(p);
  if (!doubt) {
    __u16 field = bpf_htons(bpf_ntohl(p->tcp[TCP_SUM]) >> 16);
    fresh[TCP_SUM] = sum_word(fresh[TCP_SUM], ~fold((__u64)(__u16)~field + difference));
  }
  bpf_skb_store_bytes(skb, p->l4, fresh, octets, 0);
  if (doubt) bpf_l4_csum_replace(skb, p->l4 + TCP_SUM_AT, 0, difference, 0);
}

/* The IP header's length, for `octets` of TCP. IPv6 has no sum over it. */
static always_inline void write_ip_length(struct __sk_buff *skb, const struct packet *p, __u32 octets) {
  if (p->v6) {
    __be16 length = bpf_htons(octets);
    bpf_skb_store_bytes(skb, L3 + 4, &length, 2, BPF_F_RECOMPUTE_CSUM);
    return;
  }
  __be16 was = 0, length = bpf_htons(p->l4 - L3 + octets);
  bpf_skb_load_bytes(skb, L3 + 2, &was, 2);
  bpf_l3_csum_replace(skb, L3 + 10, was, length, 2);
  bpf_skb_store_bytes(skb, L3 + 2, &length, 2, 0);
}

/* A mirrored copy met congestion on a path that D_{j-1} doesn't send by: not a matter of this connection. */
static always_inline void clear_congested(struct __sk_buff *skb, const struct packet *p) {
  __be16 was = 0, is;
  if (bpf_skb_load_bytes(skb, L3, &was, 2)) return;
  if (p->v6) {
    is = was & ~bpf_htons(0x0030);
    bpf_skb_store_bytes(skb, L3, &is, 2, BPF_F_RECOMPUTE_CSUM);
  } else {
    is = was & ~bpf_htons(0x0003);
    bpf_l3_csum_replace(skb, L3 + 10, was, is, 2);
    bpf_skb_store_bytes(skb, L3, &is, 2, 0);
  }
}

#endif
