// libibverbs, opened at run time: a table of its functions, which tests fill with their own.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <optional>
#include <string>

#include "src/base/dynamic_library.h"

namespace shmemctl::verbs {

/// Functions that libibverbs exports. Posting and polling are not among them: the header's inline
/// functions call those through the device's function table.
struct Functions {
  decltype(&::ibv_get_device_list) get_device_list = nullptr;
  decltype(&::ibv_free_device_list) free_device_list = nullptr;
  decltype(&::ibv_open_device) open_device = nullptr;
  decltype(&::ibv_close_device) close_device = nullptr;
  decltype(&::ibv_query_device) query_device = nullptr;
  decltype(&::ibv_query_port) query_port = nullptr;
  decltype(&::_ibv_query_gid_table) query_gid_table = nullptr;
  decltype(&::ibv_alloc_pd) alloc_pd = nullptr;
  decltype(&::ibv_dealloc_pd) dealloc_pd = nullptr;
  decltype(&::ibv_reg_mr) reg_mr = nullptr;
  decltype(&::ibv_dereg_mr) dereg_mr = nullptr;
  decltype(&::ibv_reg_dmabuf_mr) reg_dmabuf_mr = nullptr; ///< nullptr before rdma-core 34
  decltype(&::ibv_create_cq) create_cq = nullptr;
  decltype(&::ibv_destroy_cq) destroy_cq = nullptr;
  decltype(&::ibv_create_comp_channel) create_comp_channel = nullptr;
  decltype(&::ibv_destroy_comp_channel) destroy_comp_channel = nullptr;
  decltype(&::ibv_get_cq_event) get_cq_event = nullptr;
  decltype(&::ibv_ack_cq_events) ack_cq_events = nullptr;
  decltype(&::ibv_create_srq) create_srq = nullptr;
  decltype(&::ibv_destroy_srq) destroy_srq = nullptr;
  decltype(&::ibv_create_qp) create_qp = nullptr;
  decltype(&::ibv_modify_qp) modify_qp = nullptr;
  decltype(&::ibv_destroy_qp) destroy_qp = nullptr;
  /// create_ah and destroy_ah are needed by address_handles.h only; nullptr if missing.
  decltype(&::ibv_create_ah) create_ah = nullptr;
  decltype(&::ibv_destroy_ah) destroy_ah = nullptr;
  decltype(&::ibv_get_async_event) get_async_event = nullptr;
  decltype(&::ibv_ack_async_event) ack_async_event = nullptr;
  decltype(&::ibv_wc_status_str) wc_status_str = nullptr;

  std::optional<DynamicLibrary> library; ///< empty in tests
};

/// Opens the library. Returns nullptr if it cannot be used.
/// @param file "libibverbs.so.1"
/// @param why  receives the reason in that case, in one clause
std::shared_ptr<const Functions> load_functions(const std::string& file, std::string& why);

/// RAII for libibverbs' objects: destruction calls the function that closes the object.
template <class T>
struct Closer {
  int (*close)(T*) = nullptr;
  void operator()(T* object) const { close(object); }
};

template <class T>
using Handle = std::unique_ptr<T, Closer<T>>;

template <class T>
Handle<T> own(T* object, int (*close)(T*)) {
  return Handle<T>(object, Closer<T>{close});
}

using Context = Handle<ibv_context>;
using ProtectionDomain = Handle<ibv_pd>;
using MemoryRegion = Handle<ibv_mr>;
using CompletionQueue = Handle<ibv_cq>;
using CompletionChannel = Handle<ibv_comp_channel>;
using SharedReceiveQueue = Handle<ibv_srq>;

} // namespace shmemctl::verbs
