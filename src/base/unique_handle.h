// RAII for the handles of C libraries.
#pragma once

#include <memory>

namespace shmemctl {

/// `unique_ptr` whose deleter is a C function: `CHandle<hwloc_topology, hwloc_topology_destroy>`.
template <auto Function>
struct CDeleter {
  template <class T>
  void operator()(T* handle) const {
    Function(handle);
  }
};
template <class T, auto Function>
using CHandle = std::unique_ptr<T, CDeleter<Function>>;

} // namespace shmemctl
