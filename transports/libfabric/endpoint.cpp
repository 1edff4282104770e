#include "transports/libfabric/endpoint.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <netinet/in.h>
#include <poll.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>

#include "src/base/socket.h"

namespace shmemctl::fabric {

namespace {

constexpr std::uint64_t access_bits =
    FI_READ | FI_WRITE | FI_SEND | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;

/// Runs a call that creates an object, and stores the object.
template <class Object, class Call>
int make(Fid<Object>& object, Call&& call) {
  Object* made = nullptr;
  const int status = call(&made);
  if (status == 0)
    object.reset(made);
  return status;
}

} // namespace

Promises promises_of(const fi_info& info, const Profile& profile) {
  const int bits = info.domain_attr->mr_mode;
  Promises promises;
  promises.local_registration = (bits & FI_MR_LOCAL) != 0 || profile.local_registration;
  promises.virtual_addresses = (bits & FI_MR_VIRT_ADDR) != 0;
  promises.provider_keys = (bits & FI_MR_PROV_KEY) != 0;
  promises.endpoint_registration = (bits & FI_MR_ENDPOINT) != 0;
  promises.immediate_data = info.domain_attr->cq_data_size >= 4;
  promises.fence_flag = (info.caps & FI_FENCE) != 0;
  promises.manual_progress = info.domain_attr->data_progress != FI_PROGRESS_AUTO ||
                             info.domain_attr->control_progress != FI_PROGRESS_AUTO;
  promises.gpu_memory = (info.caps & FI_HMEM) != 0 && profile.may_reach_gpus;
  promises.inject_bytes = info.tx_attr->inject_size;
  promises.max_message_bytes = std::max<std::size_t>(info.ep_attr->max_msg_size, 1);
  if (profile.in_order)
    promises.ordered_bytes = std::numeric_limits<std::size_t>::max();
  else if ((info.tx_attr->msg_order & FI_ORDER_WAW) != 0 && !profile.counted_signals)
    promises.ordered_bytes = info.ep_attr->max_order_waw_size;
  return promises;
}

fi_mr_attr registration_of(const iovec& area, const DeviceMemory* gpu) {
  fi_mr_attr attributes{};
  attributes.mr_iov = &area;
  attributes.iov_count = 1;
  attributes.access = access_bits;
  attributes.iface = gpu ? FI_HMEM_CUDA : FI_HMEM_SYSTEM;
  if (gpu)
    attributes.device.cuda = gpu->ordinal();
  return attributes;
}

Registration::Registration(const Endpoint& endpoint, void* base, std::size_t size_bytes,
                           const DeviceMemory* gpu) {
  // If the caller chooses keys, each key is used only once in the process.
  static std::atomic<std::uint64_t> next_key{1};
  const iovec area{base, size_bytes};
  fi_mr_attr attributes = registration_of(area, gpu);
  const bool provider_keys = endpoint.promises().provider_keys;
  attributes.requested_key = provider_keys ? 0 : next_key.fetch_add(1, std::memory_order_relaxed);
  const auto require = [&](int status) {
    if (status != 0)
      throw endpoint.error("register " + std::to_string(size_bytes) + " bytes of " +
                               (gpu ? gpu->text() + "'s " : "") + "memory",
                           endpoint.library().error_text(status),
                           gpu ? "set FI_LOG_LEVEL=warn to see what the provider lacks, or set "
                                 "SHMEMCTL_GPUDIRECT=off"
                               : "raise the limit of locked memory (ulimit -l unlimited), or lower "
                                 "SHMEMCTL_SYMMETRIC_SIZE");
  };
  require(make(handle_,
               [&](fid_mr** mr) { return fi_mr_regattr(endpoint.domain(), &attributes, 0, mr); }));
  if (!endpoint.promises().endpoint_registration)
    return;
  require(fi_mr_bind(handle_.get(), &endpoint.handle()->fid, 0));
  require(fi_mr_enable(handle_.get()));
}

Endpoint::Endpoint(const Provider& provider, const Device& device, int pe, std::string host_name)
    : library_(provider.library), info_(device.info), provider_(provider.name),
      device_(device.name), host_name_(std::move(host_name)), pe_(pe), profile_(provider.profile),
      promises_(promises_of(*device.info, provider.profile)) {
  require(-library_->open_fabric(*info_->fabric_attr, fabric_), "open the fabric");
  require(
      make(domain_,
           [&](fid_domain** made) { return fi_domain(fabric_.get(), info_.get(), made, nullptr); }),
      "open the domain");
  fi_av_attr table{};
  table.type = info_->domain_attr->av_type == FI_AV_MAP ? FI_AV_MAP : FI_AV_TABLE;
  require(make(addresses_,
               [&](fid_av** made) { return fi_av_open(domain_.get(), &table, made, nullptr); }),
          "open the address vector");
  open_queue();
  require(
      make(endpoint_,
           [&](fid_ep** made) { return fi_endpoint(domain_.get(), info_.get(), made, nullptr); }),
      "open an endpoint");
  bind();
  read_name();
}

void Endpoint::open_queue() {
  fi_cq_attr attributes{};
  attributes.format = profile_.cq_format;
  attributes.size = profile_.cq_size;
  attributes.wait_obj = FI_WAIT_NONE;
  require(
      make(queue_,
           [&](fid_cq** made) { return fi_cq_open(domain_.get(), &attributes, made, nullptr); }),
      "open a CQ");
}

void Endpoint::bind() {
  require(fi_ep_bind(endpoint_.get(), &addresses_->fid, 0), "bind the address vector");
  const std::uint64_t sends = profile_.selective_completion ? FI_SELECTIVE_COMPLETION : 0;
  require(fi_ep_bind(endpoint_.get(), &queue_->fid, FI_TRANSMIT | sends), "bind a CQ");
  require(fi_ep_bind(endpoint_.get(), &queue_->fid, FI_RECV), "bind a CQ");
#if FI_VERSION_GE(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), FI_VERSION(1, 18))
  // CUDA calls in the provider could wait for a kernel that itself waits for the transfer.
  bool permitted = false;
  fi_setopt(&endpoint_->fid, FI_OPT_ENDPOINT, FI_OPT_CUDA_API_PERMITTED, &permitted,
            sizeof permitted);
#endif
  require(fi_enable(endpoint_.get()), "enable an endpoint",
          "set FI_LOG_LEVEL=warn to see why; with ofi_rxm, set FI_UNIVERSE_SIZE to the job's size");
}

void Endpoint::read_name() {
  char name[256];
  std::size_t size_bytes = sizeof name;
  require(fi_getname(&endpoint_->fid, name, &size_bytes), "read the endpoint's address");
  address_.assign(name, std::min(size_bytes, sizeof name));
}

void Endpoint::insert(const std::vector<std::string>& addresses) {
  peers_.assign(addresses.size(), FI_ADDR_UNSPEC);
  for (std::size_t pe = 0; pe < addresses.size(); ++pe) {
    if (addresses[pe].empty())
      continue;
    // All addresses have the same format and size; the provider would read past the end of a
    // shorter one.
    const int entered =
        addresses[pe].size() != address_.size()
            ? -FI_EINVAL
            : fi_av_insert(addresses_.get(), addresses[pe].data(), 1, &peers_[pe], 0, nullptr);
    if (entered != 1)
      throw error(
          "insert the address of PE " + std::to_string(pe),
          library_->error_text(entered < 0 ? entered : FI_EADDRNOTAVAIL),
          "set SHMEMCTL_LIBFABRIC_PROVIDER and SHMEMCTL_LIBFABRIC_INTERFACE alike on all PEs");
  }
}

std::string Endpoint::readable(const std::string& address) const {
  char text[256];
  std::size_t size_bytes = sizeof text;
  if (address.size() != address_.size() ||
      !fi_av_straddr(addresses_.get(), address.data(), text, &size_bytes))
    return "?";
  text[sizeof text - 1] = '\0';
  const std::string whole = text;
  const std::size_t scheme = whole.find("://");
  return scheme == std::string::npos ? whole : whole.substr(scheme + 3);
}

bool Endpoint::refuses(const std::string& address) const {
  constexpr auto timeout = std::chrono::milliseconds(100);
  if (!profile_.listens_on_tcp || address.size() < sizeof(sockaddr_in) ||
      address.size() > sizeof(sockaddr_in6))
    return false;
  sockaddr_storage storage{};
  std::memcpy(&storage, address.data(), address.size());
  const SocketAddress peer(reinterpret_cast<const sockaddr*>(&storage),
                           static_cast<socklen_t>(address.size()));
  int problem = 0;
  const Socket socket = Socket::start_connect(peer, "a peer", problem);
  if (!socket)
    return problem == ECONNREFUSED;
  pollfd wanted{socket.descriptor(), POLLOUT, 0};
  ::poll(&wanted, 1, static_cast<int>(timeout.count()));
  return socket.connect_error() == ECONNREFUSED;
}

bool Endpoint::has_all_atomics() const {
  fi_atomic_attr small{};
  if (!domain_->ops->query_atomic ||
      fi_query_atomic(domain_.get(), FI_UINT16, FI_ATOMIC_WRITE, &small, 0) != 0)
    return false;
  for (const fi_datatype type : {FI_UINT32, FI_UINT64})
    for (unsigned op = 0; op <= static_cast<unsigned>(AtomicOp::bit_xor); ++op) {
      const auto which = static_cast<AtomicOp>(op);
      const auto has = [&](std::uint64_t flags) {
        fi_atomic_attr attributes{};
        return fi_query_atomic(domain_.get(), type, provider_op(which), &attributes, flags) == 0;
      };
      const AtomicCall call = provider_call(which);
      const bool plain = which != AtomicOp::fetch && call != AtomicCall::comparing;
      if ((plain && !has(0)) || (call == AtomicCall::fetching && !has(FI_FETCH_ATOMIC)) ||
          (call == AtomicCall::comparing && !has(FI_COMPARE_ATOMIC)))
        return false;
    }
  return true;
}

fi_op provider_op(AtomicOp op) {
  switch (op) {
  case AtomicOp::fetch:
    return FI_ATOMIC_READ;
  case AtomicOp::set:
  case AtomicOp::swap:
    return FI_ATOMIC_WRITE;
  case AtomicOp::compare_swap:
    return FI_CSWAP;
  case AtomicOp::add:
    return FI_SUM;
  case AtomicOp::bit_and:
    return FI_BAND;
  case AtomicOp::bit_or:
    return FI_BOR;
  case AtomicOp::bit_xor:
    return FI_BXOR;
  }
  return FI_ATOMIC_READ;
}

AtomicCall provider_call(AtomicOp op) {
  if (op == AtomicOp::set)
    return AtomicCall::plain;
  return op == AtomicOp::compare_swap ? AtomicCall::comparing : AtomicCall::fetching;
}

Error Endpoint::error(const std::string& attempted, const std::string& text,
                      const std::string& fix) const {
  Where where;
  where.host = host_name_;
  where.pe = pe_;
  where.device = device_;
  return {ExitCode::unavailable, "libfabric " + provider_, attempted, text, fix, where};
}

void Endpoint::require(int status, const char* attempted, const char* fix) const {
  if (status < 0)
    throw error(attempted, library_->error_text(status),
                fix ? fix
                    : "set FI_LOG_LEVEL=warn to see why, or try another provider "
                      "(SHMEMCTL_LIBFABRIC_PROVIDER)");
}

} // namespace shmemctl::fabric
