/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for libbpf's header where the C of the plane is compiled for this machine. Finding a
 * packet in a frame asks the kernel for nothing, and the rest is not called. */
#ifndef QW_FPGA_BPF_HELPERS_H
#define QW_FPGA_BPF_HELPERS_H

#include <linux/types.h>
#include <sys/cdefs.h> /* __always_inline */

#define SEC(name)
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name
#define __array(name, value) value *name[]
#define barrier() __asm__ volatile("" ::: "memory")
#define barrier_var(value) __asm__ volatile("" : "+r"(value))

#define bpf_map_lookup_elem(map, key) ((void)(map), (void)(key), (void *)0)
#define bpf_get_smp_processor_id() 0
#define bpf_ktime_get_ns() 0ULL
#define bpf_loop(count, body, context, flags) ((void)(body), (void)(context), 0)
#define bpf_spin_lock(lock) ((void)(lock))
#define bpf_spin_unlock(lock) ((void)(lock))
#define bpf_ringbuf_output(map, from, bytes, flags) ((void)(map), 0)
#define bpf_xdp_store_bytes(ctx, at, from, bytes) 0
#define bpf_xdp_adjust_tail(ctx, more) 0

#endif
