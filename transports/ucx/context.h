// A UCX context: its settings, and memory that is registered with it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "transports/ucx/api.h"
#include "transports/ucx/lanes.h"
#include "transports/ucx/ucx.h"

namespace shmemctl {

/// The fix for an error of UCX: the second line of an Error.
std::string ucx_fix(ucs_status_t status);

class UcxContext {
public:
  /// Throws Error (unavailable) with UCX's reason.
  /// @param devices value for UCX_NET_DEVICES, unless the user has set it; "" lets UCX choose
  UcxContext(std::shared_ptr<const UcxApi> api, const UcxSettings& settings, int n_pes,
             const std::string& devices);
  /// Throws Error (unavailable) that names the limit if the process cannot open as many files as a
  /// context needs: UCX itself may then end the process. require_files_of_worker() does the same
  /// for a worker.
  static void require_files();
  void require_files_of_worker() const;
  UcxContext(const UcxContext&) = delete;
  UcxContext& operator=(const UcxContext&) = delete;
  ~UcxContext();

  const UcxApi& api() const { return *api_; }
  ucp_context_h get() const { return context_; }
  /// Whether endpoints may use UCX's peer error handling.
  bool may_handle_errors() const { return may_handle_errors_; }
  /// Size of a request that the caller allocates. Throws Error (unavailable).
  std::size_t request_bytes() const;
  /// Whether UCX may reach PEs of this machine through shared memory.
  bool has_shared_memory() const;

private:
  /// The resources that UCX may use: an entry for each of its transports on each device.
  std::vector<UcxLane> resources() const;

  std::shared_ptr<const UcxApi> api_;
  UcxLog log_;
  ucp_context_h context_ = nullptr;
  bool may_handle_errors_ = false;
};

/// Memory that UCX may read and write, and the key for it.
class UcxMapping {
public:
  /// Throws Error (unavailable).
  UcxMapping(std::shared_ptr<const UcxContext> context, void* base, std::size_t size_bytes);
  UcxMapping(const UcxMapping&) = delete;
  UcxMapping& operator=(const UcxMapping&) = delete;
  ~UcxMapping();

  /// The key that peers need to access the memory.
  std::string packed_key() const;

private:
  std::shared_ptr<const UcxContext> context_;
  ucp_mem_h memory_ = nullptr;
};

} // namespace shmemctl
