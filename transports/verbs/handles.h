// RAII for libibverbs' objects. Each closes itself with the function that belongs to it.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

namespace shmemctl::verbs {

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
