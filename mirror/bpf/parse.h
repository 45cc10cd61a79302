/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* From a frame to what the two machines ask about it: Ethernet, IPv4 with options or IPv6 without extension headers,
 * TCP with NOP, timestamps and SACK. Bytes are copied out by helper, so that it doesn't matter which of them lie in the
 * linear part of the buffer. A frame that isn't parsed is none of ours. */
#ifndef MR_PARSE_H
#define MR_PARSE_H

#include "kernel.h"
#include "state.h"

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_PSH 0x08
#define TCP_ACK 0x10
#define TCP_URG 0x20
#define TCP_CWR 0x80

/* The reserved bit by which D_j tells D_{j-1}, on ACKs, that mirrored data is landing, and D_{j-1} tells D_j, on data, that
 * it is ready for that: the highest of the four, as the lowest belongs to accurate ECN. */
#define MR_STEP_BIT 0x08

#define TCP_WORDS 15 /* the longest TCP header */

/* Words of the TCP header. */
enum { TCP_PORTS, TCP_SEQ, TCP_ACKED, TCP_FLAGS, TCP_SUM, TCP_OPTIONS };
#define TCP_SUM_AT 16

#define MR_BLOCKS 4

struct packet {
  struct mr_key key; /* as on the wire: source is the sender */
  __u32 l3, l4;      /* where the headers start */
  __u32 seq, acked, length;
  __be32 their_ts, echoed_ts;
  __u16 window;
  __u8 v6, flags, in_step, header; /* header: octets of the TCP header */
  __u8 has_ts, blocks, plain;      /* plain: no option but NOP, timestamps and SACK */
  __u8 congested;                  /* ECN: congestion experienced */
  __be32 block[2 * MR_BLOCKS];     /* SACK blocks, as on the wire */
  __be32 tcp[TCP_WORDS];           /* the TCP header; zero behind its end */
};

static always_inline int marked(struct __sk_buff *skb) {
  __u8 source[3];
  if (bpf_skb_load_bytes(skb, ETH_ALEN, source, sizeof source)) return 0;
  return source[0] == MR_MARK_0 && source[1] == MR_MARK_1 && source[2] == MR_MARK_2;
}

static always_inline int parse_ip(struct __sk_buff *skb, struct packet *p, __u32 *length) {
  p->l3 = ETH_HLEN;
  if (skb->protocol == bpf_htons(ETH_P_IP)) {
    struct {
      __u8 version_length, tos;
      __be16 length, id, fragment;
      __u8 ttl, protocol;
      __be16 sum;
      __be32 source, target;
    } ip;
    if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof ip)) return -1;
    __u32 header = (ip.version_length & 15) * 4;
    if (ip.version_length >> 4 != 4 || header < 20 || ip.protocol != IPPROTO_TCP) return -1;
    if (ip.fragment & bpf_htons(0x3fff)) return -1; /* more fragments, or not the first */
    p->key.source[2] = p->key.target[2] = bpf_htonl(0xffff);
    p->key.source[3] = ip.source;
    p->key.target[3] = ip.target;
    p->l4 = ETH_HLEN + header;
    p->congested = (ip.tos & 3) == 3;
    *length = bpf_ntohs(ip.length);
    /* 0: a super-segment too long for the field (BIG TCP); the buffer knows. */
    if (!*length) *length = skb->len - ETH_HLEN;
    if (*length < header) return -1;
    *length -= header;
  } else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
    struct {
      __be32 version_class_label;
      __be16 length;
      __u8 next, hops;
      __be32 source[4], target[4];
    } ip;
    if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof ip)) return -1;
    if (ip.next != IPPROTO_TCP) return -1;
    __builtin_memcpy(p->key.source, ip.source, 16);
    __builtin_memcpy(p->key.target, ip.target, 16);
    p->l4 = ETH_HLEN + sizeof ip;
    p->v6 = 1;
    p->congested = (ip.version_class_label & bpf_htonl(0x00300000)) == bpf_htonl(0x00300000);
    *length = bpf_ntohs(ip.length);
    if (!*length) *length = skb->len - p->l4;
  } else {
    return -1;
  }
  return 0;
}

/* Options as all stacks lay them out (RFC 7323, appendix A): NOP, NOP, timestamps; NOP, NOP, SACK; NOPs to the end. Any
 * other layout or option makes the header "not plain". */
static always_inline void parse_options(struct packet *p) {
  __u32 words = p->header / 4, at = TCP_OPTIONS, blocks = 0;
  const __be32 stamps = bpf_htonl(0x0101080a), sack = bpf_htonl(0x01010500), start = bpf_htonl(0xffffff00);
  if (words >= TCP_OPTIONS + 3 && p->tcp[TCP_OPTIONS] == stamps) {
    p->has_ts = 1;
    p->their_ts = p->tcp[TCP_OPTIONS + 1];
    p->echoed_ts = p->tcp[TCP_OPTIONS + 2];
    at += 3;
  }
  __be32 next = p->has_ts ? p->tcp[TCP_OPTIONS + 3] : p->tcp[TCP_OPTIONS];
  if (at < words && (next & start) == sack) {
    __u32 length = bpf_ntohl(next) & 0xff;
    blocks = length >> 3;
    if ((length & 7) != 2 || !blocks || blocks > MR_BLOCKS || at + 1 + 2 * blocks > words) return;
    for (__u32 i = 0; i < 2 * MR_BLOCKS; i++) {
      __be32 with_ts = i < 6 ? p->tcp[TCP_OPTIONS + 4 + i] : 0;
      p->block[i] = i >= 2 * blocks ? 0 : p->has_ts ? with_ts : p->tcp[TCP_OPTIONS + 1 + i];
    }
    at += 1 + 2 * blocks;
  }
  int other = 0;
  for (__u32 i = TCP_OPTIONS; i < TCP_WORDS; i++)
    if (i >= at && i < words && p->tcp[i] != bpf_htonl(0x01010101) && p->tcp[i] != bpf_htonl(0x01010100)) other = 1;
  p->blocks = blocks;
  p->plain = !other;
}

checked_once int parse(struct __sk_buff *skb, struct packet *p) {
  if (!p) return -1;
  __u32 length = 0;
  if (parse_ip(skb, p, &length)) return -1;
  if (bpf_skb_load_bytes(skb, p->l4, p->tcp, 20)) return -1;
  __u32 flags = bpf_ntohl(p->tcp[TCP_FLAGS]);
  p->header = (flags >> 28) * 4;
  if (p->header < 20 || length < p->header) return -1;
  __u32 ports = bpf_ntohl(p->tcp[TCP_PORTS]);
  p->key.source_port = bpf_htons((__u16)(ports >> 16));
  p->key.target_port = bpf_htons((__u16)ports);
  p->seq = bpf_ntohl(p->tcp[TCP_SEQ]);
  p->acked = bpf_ntohl(p->tcp[TCP_ACKED]);
  p->in_step = !!(flags & MR_STEP_BIT << 24);
  p->flags = flags >> 16;
  p->window = flags;
  p->length = length - p->header;
  return 0;
}

/* The rest of the header, once the flow is known to be ours. */
checked_once int parse_rest(struct __sk_buff *skb, struct packet *p) {
  if (!p) return -1;
  __u32 octets = p->header - 20;
  if (octets >= 4) {
    apart(octets);
    if (octets > 40) return -1;
    if (bpf_skb_load_bytes(skb, p->l4 + 20, &p->tcp[TCP_OPTIONS], octets)) return -1;
  }
  parse_options(p);
  return 0;
}

static always_inline void reverse(const struct mr_key *key, struct mr_key *into) {
  __builtin_memcpy(into->source, key->target, 16);
  __builtin_memcpy(into->target, key->source, 16);
  into->source_port = key->target_port;
  into->target_port = key->source_port;
}

#endif
