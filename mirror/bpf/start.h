/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Where streams start, written down at both ends of every connection of a data port: its announcement may come when the
 * set-up response, which alone tells, has passed. */
#ifndef MR_START_H
#define MR_START_H

#include "maps.h"
#include "socket.h"

static always_inline int is_data_port(const struct mr_config *config, __be16 port) {
  int found = 0;
  for (int i = 0; i < MR_DATA_PORTS; i++) found |= config->data_ports[i] == port;
  return port && found;
}

/* A new connection of this host: what is known of an earlier one of the same ports is void. Our own SYN tells, never one
 * that comes in, as a stranger can send those. */
checked_once int start_anew(struct packet *p) {
  if (!p) return 0;
  struct mr_key key;
  if (p->flags & TCP_ACK) {
    reverse(&p->key, &key);
    bpf_map_delete_elem(&mr_rcv_flows, &key);
    bpf_map_delete_elem(&mr_heads, &key);
  } else {
    key = p->key;
    bpf_map_delete_elem(&mr_snd_flows, &key);
  }
  bpf_map_delete_elem(&mr_starts, &key);
  return 0;
}

/* From this host, where it is D_j: its first segment with data is the response. */
checked_once int start_egress(struct __sk_buff *skb, struct packet *p) {
  if (!p) return 0;
  __u32 zero = 0;
  struct mr_config *config = bpf_map_lookup_elem(&mr_config, &zero);
  if (!config || !is_data_port(config, p->key.source_port)) return 0;
  struct mr_key key;
  reverse(&p->key, &key);
  struct live live = {};
  if (sending_socket(skb, p, &live) || live.bytes_sent != p->length) return 0;
  struct mr_start start = {.zero = p->acked, .first = p->seq, .known = 1};
  bpf_map_update_elem(&mr_starts, &key, &start, BPF_ANY);
  return 0;
}

/* To this host, where it is D_{j-1}. Each connection is looked at once. */
checked_once int start_ingress(struct __sk_buff *skb, struct packet *p) {
  if (!p) return 0;
  __u32 zero = 0;
  struct mr_config *config = bpf_map_lookup_elem(&mr_config, &zero);
  if (!config || !is_data_port(config, p->key.source_port)) return 0;
  if ((p->flags & (TCP_SYN | TCP_RST | TCP_ACK)) != TCP_ACK) return 0;
  struct mr_key key;
  reverse(&p->key, &key);
  struct live live = {};
  if (bpf_map_lookup_elem(&mr_starts, &key) || look_up(skb, &p->key, p->v6, &live)) return 0;
  if (!live.bytes_received && p->seq != live.rcv_nxt) return 0; /* not the first, or none of this connection */
  struct mr_start start = {.zero = p->acked, .first = p->seq, .known = !live.bytes_received};
  bpf_map_update_elem(&mr_starts, &key, &start, BPF_ANY);
  return 0;
}

/* The start of a connection whose octets from D_j begin with the number `first`. Both numbers are read at once, as another
 * CPU may be giving the entry to another connection. */
static always_inline int start_known(const struct mr_key *key, __u32 first, __u32 *zero) {
  const struct mr_start *entry = bpf_map_lookup_elem(&mr_starts, key);
  if (!entry) return 0;
  union {
    __u64 both;
    struct {
      __u32 zero, first;
    };
  } start = {.both = *(const volatile __u64 *)&entry->zero};
  if (!entry->known || start.first != first) return 0;
  *zero = start.zero;
  return 1;
}

#endif
