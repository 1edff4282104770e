// How each case of the table (src/bench/case_table.cpp) is made.
#pragma once

#include <memory>

#include "src/bench/case.h"

namespace shmemctl::bench {

/// The case `Kind` at a point.
template <class Kind>
std::unique_ptr<Case> create(const Point& point) {
  return std::make_unique<Kind>(point);
}

/// The case at a point whose buffers are in a heap; what `registered` makes where they are
/// registered.
template <class OnHeap, const MakeCase& registered>
std::unique_ptr<Case> create_by_memory(const Point& point) {
  if (point.launch.memory == MemoryKind::registered)
    return registered(point);
  return std::make_unique<OnHeap>(point);
}

/// Cases whose operations the host issues. Pointers to functions: initialised before anything runs.
namespace by_host {
extern const MakeCase put, put_latency, get, get_latency, put_element, get_element, put_signal,
    strided_put, memcpy_reference;
/// The same between registered buffers.
extern const MakeCase registered_put, registered_put_latency, registered_get,
    registered_get_latency;
extern const MakeCase put_pingpong, put_signal_pingpong, signal_pingpong, cacheline_pingpong;
extern const MakeCase atomic_fetch, atomic_set, atomic_swap, atomic_compare_swap, atomic_fetch_add,
    atomic_fetch_inc, atomic_fetch_and, atomic_fetch_or, atomic_fetch_xor, atomic_rate, bare_atomic;
extern const MakeCase barrier, sync;
extern const MakeCase broadcast, fcollect, collect, alltoall, reduce, reduce_float, reducescatter,
    reducescatter_float;
extern const MakeCase proxy_put, proxy_put_rate, proxy_put_signal, proxy_atomic_fetch_add,
    proxy_atomic_rate;
} // namespace by_host

/// Cases by kernels; those that streams have too are the same, as the point's launch says.
namespace by_gpu {
extern const MakeCase put, put_message, put_latency, get, get_message, get_latency, put_element,
    get_element, put_signal, message_rate, store, store_latency;
extern const MakeCase put_pingpong, put_signal_pingpong, signal_pingpong, store_pingpong,
    wait_forward;
extern const MakeCase atomic_fetch, atomic_set, atomic_swap, atomic_compare_swap, atomic_fetch_add,
    atomic_add, atomic_rate, atomic_bandwidth;
extern const MakeCase barrier, sync;
extern const MakeCase broadcast, fcollect, alltoall, alltoallv, reduce, reduce_float, reduce_bf16,
    reduce_fp16, reducescatter, reducescatter_float, reducescatter_bf16, reducescatter_fp16;
} // namespace by_gpu

} // namespace shmemctl::bench
