/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* From a frame to what the two machines ask about it: Ethernet, IPv4 with options or IPv6 without extension headers,
 * TCP with NOP, timestamps and SACK. What nearly all frames have is read in place, the rest by helper, so that it doesn't
 * matter which octets lie in the linear part of the buffer. A frame that isn't parsed is none of ours. */
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
#define TCP_STAMPED (TCP_OPTIONS + 3) /* words of a header with timestamps, as most are */
#define TCP_SUM_AT 16

#define MR_BLOCKS 4

struct packet {
  struct mr_key key; /* as on the wire: source is the sender */
  __u32 l4;          /* where the TCP header starts */
  __u32 seq, acked, length;
  __be32 their_ts, echoed_ts;
  __u32 repeat_ms; /* of struct mr_config, as is `off` */
  __u16 window;
  __u8 v6, flags, in_step, header; /* header: octets of the TCP header */
  __u8 has_ts, blocks, plain;      /* plain: no option but NOP, timestamps and SACK */
  __u8 congested;                  /* ECN: congestion experienced */
  __u8 marked;                     /* a mirrored copy */
  __u8 from_data, to_data;         /* the ports are those of DataNodes */
  __u8 off;
  __be32 tcp[TCP_WORDS]; /* the TCP header; zero behind its end */
};

#define L3 ETH_HLEN

static always_inline int is_mark(const __u8 *source) {
  return source[0] == MR_MARK_0 && source[1] == MR_MARK_1 && source[2] == MR_MARK_2;
}

/* Of a frame that may be anything. */
static always_inline int marked(struct __sk_buff *skb) {
  __u8 source[3];
  return !bpf_skb_load_bytes(skb, ETH_ALEN, source, sizeof source) && is_mark(source);
}

struct ip_v4 {
  __u8 version_length, tos;
  __be16 length, id, fragment;
  __u8 ttl, protocol;
  __be16 sum;
  __be32 from, to;
};

struct ip_v6 {
  __be32 version_class_label;
  __be16 length;
  __u8 next, hops;
  __be32 from[4], to[4];
};

/* The frame's octets, as far as they may be read in place. Each time asked for anew: the compiler would make 32 bits of a
 * pointer that it has twice, which verifiers refuse. */
static always_inline void *linear(struct __sk_buff *skb, void **end) {
  void *data = (void *)(long)skb->data;
  *end = (void *)(long)skb->data_end;
  apart(data);
  apart(*end);
  return data;
}

/* The frame, whose first octets may be read in place; 0 where it has not so many. */
static always_inline void *frame_of(struct __sk_buff *skb, __u32 octets) {
  void *end, *data = linear(skb, &end);
  if (data + octets <= end) return data;
  if (skb->len < octets || bpf_skb_pull_data(skb, octets)) return 0;
  data = linear(skb, &end);
  return data + octets <= end ? data : 0;
}

static always_inline int parse_tcp(struct packet *p, const __be32 *tcp, __u32 length) {
  for (int i = 0; i < TCP_OPTIONS; i++) p->tcp[i] = tcp[i];
  __u32 flags = bpf_ntohl(tcp[TCP_FLAGS]), ports = bpf_ntohl(tcp[TCP_PORTS]);
  p->header = (flags >> 28) * 4;
  if (p->header < 20 || length < p->header) return -1;
  p->key.source_port = bpf_htons((__u16)(ports >> 16));
  p->key.target_port = bpf_htons((__u16)ports);
  p->seq = bpf_ntohl(tcp[TCP_SEQ]);
  p->acked = bpf_ntohl(tcp[TCP_ACKED]);
  p->in_step = !!(flags & MR_STEP_BIT << 24);
  p->flags = flags >> 16;
  p->window = flags;
  p->length = length - p->header;
  return 0;
}

static always_inline int parse_v4(struct __sk_buff *skb, struct packet *p) {
  void *frame = frame_of(skb, ETH_HLEN + sizeof(struct ip_v4) + 20);
  if (!frame) return -1;
  const struct ip_v4 *ip = frame + ETH_HLEN;
  __u32 header = (ip->version_length & 15) * 4, length = bpf_ntohs(ip->length);
  if (ip->version_length >> 4 != 4 || header < 20 || ip->protocol != IPPROTO_TCP) return -1;
  if (ip->fragment & bpf_htons(0x3fff)) return -1; /* more fragments, or not the first */
  p->l4 = L3 + header;
  p->key.source[2] = p->key.target[2] = bpf_htonl(0xffff);
  p->key.source[3] = ip->from;
  p->key.target[3] = ip->to;
  p->marked = is_mark(frame + ETH_ALEN);
  p->congested = (ip->tos & 3) == 3;
  /* 0: a super-segment too long for the field (BIG TCP); the buffer knows. */
  if (!length) length = skb->len - L3;
  if (length < header) return -1;
  if (header == 20) return parse_tcp(p, (const __be32 *)(ip + 1), length - header);
  __be32 tcp[TCP_OPTIONS];
  if (bpf_skb_load_bytes(skb, p->l4, tcp, sizeof tcp)) return -1;
  return parse_tcp(p, tcp, length - header);
}

static always_inline int parse_v6(struct __sk_buff *skb, struct packet *p) {
  void *frame = frame_of(skb, ETH_HLEN + sizeof(struct ip_v6) + 20);
  if (!frame) return -1;
  const struct ip_v6 *ip = frame + ETH_HLEN;
  if (ip->next != IPPROTO_TCP) return -1;
  __u32 length = bpf_ntohs(ip->length);
  p->l4 = L3 + 40;
  for (int i = 0; i < 4; i++) {
    p->key.source[i] = ip->from[i];
    p->key.target[i] = ip->to[i];
  }
  p->v6 = 1;
  p->marked = is_mark(frame + ETH_ALEN);
  p->congested = (ip->version_class_label & bpf_htonl(0x00300000)) == bpf_htonl(0x00300000);
  if (!length) length = skb->len - p->l4;
  return parse_tcp(p, (const __be32 *)(ip + 1), length);
}

/* Timestamps and nothing else, as nearly all segments have it, are read in place. */
static always_inline void parse_stamps(struct __sk_buff *skb, struct packet *p) {
  void *end, *data = linear(skb, &end);
  if (p->header != 32) return;
  if (p->l4 == L3 + 20)
    data += L3 + 40;
  else if (p->l4 == L3 + 40)
    data += L3 + 60;
  else
    return;
  if (data + 12 > end) return;
  const __be32 *options = data;
  if (options[0] != bpf_htonl(0x0101080a)) return;
  for (int i = 0; i < 3; i++) p->tcp[TCP_OPTIONS + i] = options[i];
  p->their_ts = options[1];
  p->echoed_ts = options[2];
  p->has_ts = p->plain = 1;
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
    at += 1 + 2 * blocks;
  }
  int other = 0;
  for (__u32 i = TCP_OPTIONS; i < TCP_WORDS; i++)
    if (i >= at && i < words && p->tcp[i] != bpf_htonl(0x01010101) && p->tcp[i] != bpf_htonl(0x01010100)) other = 1;
  p->blocks = blocks;
  p->plain = !other;
}

static always_inline int parse(struct __sk_buff *skb, struct packet *p) {
  int lack = -1;
  if (skb->protocol == bpf_htons(ETH_P_IP))
    lack = parse_v4(skb, p);
  else if (skb->protocol == bpf_htons(ETH_P_IPV6))
    lack = parse_v6(skb, p);
  if (lack) return -1;
  parse_stamps(skb, p);
  return 0;
}

checked_once int parse_others(struct __sk_buff *skb, struct packet *p) {
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

/* Of the edges of SACK blocks the one at `i`, which is less than twice `blocks`. */
static always_inline __u32 sack_edge(const struct packet *p, __u32 i) {
  if (!p->has_ts) return bpf_ntohl(p->tcp[TCP_OPTIONS + 1 + i]);
  return TCP_STAMPED + 1 + i < TCP_WORDS ? bpf_ntohl(p->tcp[TCP_STAMPED + 1 + i]) : 0;
}

/* The rest of the header, once the flow is known to be ours. */
static always_inline int parse_rest(struct __sk_buff *skb, struct packet *p) {
  return p->plain ? 0 : parse_others(skb, p); /* `parse_stamps` was enough, mostly */
}

static always_inline void reverse(const struct mr_key *key, struct mr_key *into) {
  __builtin_memcpy(into->source, key->target, 16);
  __builtin_memcpy(into->target, key->source, 16);
  into->source_port = key->target_port;
  into->target_port = key->source_port;
}

#endif
