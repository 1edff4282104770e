// One endpoint of a provider, with its fabric, domain, address vector and completion queue, and
// memory that is registered with it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include "src/base/error.h"
#include "transports/device_memory_user.h"
#include "transports/libfabric/devices.h"
#include "transports/transport.h"

namespace shmemctl::fabric {

/// The properties of an endpoint, from the fi_info of the provider and the profile.
struct Promises {
  bool local_registration = false;    ///< FI_MR_LOCAL: local memory needs a descriptor
  bool virtual_addresses = false;     ///< FI_MR_VIRT_ADDR: remote addresses, instead of offsets
  bool provider_keys = false;         ///< FI_MR_PROV_KEY: the provider chooses keys
  bool endpoint_registration = false; ///< FI_MR_ENDPOINT: memory is bound to the endpoint
  bool immediate_data = false;        ///< a write can carry 4 bytes or more of immediate data
  bool fence_flag = false;            ///< FI_FENCE
  bool manual_progress = false;       ///< progress needs polling
  bool gpu_memory = false;            ///< FI_HMEM: GPU memory may be registered
  std::size_t inject_bytes = 0;
  std::size_t max_message_bytes = 0;
  std::size_t ordered_bytes = 0; ///< writes and atomics up to this size become visible in order
};
Promises promises_of(const fi_info& info, const Profile& profile);

/// The argument of fi_mr_regattr(), without the requested key. `area` must outlive the result.
fi_mr_attr registration_of(const iovec& area, const DeviceMemory* gpu);

class Endpoint;

/// Memory registered with an endpoint's domain; deregistered on destruction.
class Registration {
public:
  Registration() = default;
  /// Throws Error.
  /// @param gpu the GPU that owns the memory; nullptr: host memory
  Registration(const Endpoint& endpoint, void* base, std::size_t size_bytes,
               const DeviceMemory* gpu = nullptr);

  void* descriptor() const { return handle_ ? fi_mr_desc(handle_.get()) : nullptr; }
  std::uint64_t key() const { return handle_ ? fi_mr_key(handle_.get()) : 0; }

private:
  Fid<fid_mr> handle_;
};

class Endpoint {
public:
  /// Throws Error that names the step, the provider and the device.
  Endpoint(const Provider& provider, const Device& device, int pe, std::string host_name);

  const std::string& device() const { return device_; }
  const std::string& provider() const { return provider_; }
  const Profile& profile() const { return profile_; }
  const Promises& promises() const { return promises_; }
  const Library& library() const { return *library_; }
  fid_domain* domain() const { return domain_.get(); }
  fid_ep* handle() const { return endpoint_.get(); }
  fid_cq* queue() const { return queue_.get(); }
  /// The address by which peers reach the endpoint, as the provider encodes it.
  const std::string& address() const { return address_; }
  /// The text of an address: "192.0.2.2:4711".
  std::string readable(const std::string& address) const;

  /// Whether a TCP address refuses connections; false if unknown. Takes at most 100 ms.
  bool refuses(const std::string& address) const;

  /// Inserts the peers' addresses into the address vector. Throws Error.
  /// @param addresses by PE; "" for a PE that is not a peer
  void insert(const std::vector<std::string>& addresses);
  fi_addr_t peer(int pe) const { return peers_[static_cast<std::size_t>(pe)]; }

  /// Closes the endpoint. Memory that is bound to the endpoint must be deregistered before, other
  /// memory afterwards.
  void close() { endpoint_.reset(); }

  /// Whether the provider has all needed atomics of 4 and 8 bytes, and a 2-byte store.
  bool has_all_atomics() const;

  /// An Error of this endpoint. @param attempted for example "open the domain"
  Error error(const std::string& attempted, const std::string& text, const std::string& fix) const;

private:
  void open_queue();
  void bind();
  void read_name();
  void require(int status, const char* attempted, const char* fix = nullptr) const;

  std::shared_ptr<const Library> library_;
  std::shared_ptr<fi_info> info_;
  std::string provider_, device_, host_name_;
  int pe_;
  Profile profile_;
  Promises promises_;
  Fid<fid_fabric> fabric_;
  Fid<fid_domain> domain_;
  Fid<fid_av> addresses_;
  Fid<fid_cq> queue_;
  Fid<fid_ep> endpoint_;
  std::string address_;
  std::vector<fi_addr_t> peers_;
};

/// libfabric's operation for an atomic, for queries and for calls.
fi_op provider_op(AtomicOp op);
enum class AtomicCall { plain, fetching, comparing };
AtomicCall provider_call(AtomicOp op);

} // namespace shmemctl::fabric
