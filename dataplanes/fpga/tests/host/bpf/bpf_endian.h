/* SPDX-License-Identifier: Apache-2.0 */
/* As bpf_helpers.h here: stands in for libbpf's header, on a little-endian machine. */
#ifndef QW_FPGA_BPF_ENDIAN_H
#define QW_FPGA_BPF_ENDIAN_H

#define bpf_htons(value) __builtin_bswap16(value)
#define bpf_ntohs(value) __builtin_bswap16(value)
#define bpf_htonl(value) __builtin_bswap32(value)
#define bpf_ntohl(value) __builtin_bswap32(value)

#endif
