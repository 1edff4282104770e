// The transport libfabric. Puts and gets are split at the ends of registrations, messages and
// buffers, and staged if local memory must be registered but is not. Blocking puts of host memory
// that fit into a buffer are staged too, unless the provider copies their data (FI_INJECT).

#include "transports/libfabric/libfabric_transport.h"

#include <algorithm>
#include <cstring>

#include <unistd.h>

#include "src/base/service_thread.h"
#include "transports/device_memory_user.h"
#include "transports/libfabric/libfabric.h"
#include "transports/shm/atomics.h"

namespace shmemctl::fabric {

namespace {

/// Smallest transfer that is striped across several endpoints (host memory only).
constexpr std::size_t min_striped_bytes = std::size_t{512} << 10;

bool is_word(std::uint64_t offset_bytes, std::size_t size_bytes) {
  return (size_bytes == 2 || size_bytes == 4 || size_bytes == 8) && offset_bytes % size_bytes == 0;
}

RemoteAddress advanced(RemoteAddress address, std::size_t bytes) {
  address.offset_bytes += bytes;
  return address;
}

} // namespace

LibfabricTransport::Path LibfabricTransport::path_by(std::size_t rail_index, int context,
                                                     const char* step) {
  return {rail_index, *rails_[rail_index], state_of(context), step};
}

LibfabricTransport::Path LibfabricTransport::path(int context, const char* step) {
  return path_by(static_cast<std::size_t>(context) % rails_.size(), context, step);
}

std::byte* LibfabricTransport::own_memory(const RemoteAddress& address) const {
  if (address.pe != setup_.pe || memory_.devices().has(address.region))
    return nullptr;
  const RegionView& region = memory_.region(static_cast<std::size_t>(address.region));
  return region.base ? region.base + address.offset_bytes : nullptr;
}

template <class Part>
void LibfabricTransport::in_stripes(int context, const char* step, std::size_t size_bytes,
                                    bool of_gpu, Part&& part) {
  const std::size_t count = rails_.size();
  // Writes of two NICs to GPU memory are unordered.
  if (count == 1 || size_bytes < min_striped_bytes || of_gpu)
    return part(path(context, step), std::size_t{0}, size_bytes);
  const std::size_t each = (size_bytes / count + 4095) / 4096 * 4096;
  for (std::size_t i = 0, at = 0; at < size_bytes; ++i, at += each)
    part(path_by(i % count, context, step), at, std::min(each, size_bytes - at));
}

void LibfabricTransport::put(int context, const RemoteAddress& target, const void* source,
                             std::size_t size_bytes, bool blocking) {
  if (size_bytes == 0)
    return;
  if (std::byte* const own = own_memory(target))
    return copy_to_shared(own, source, size_bytes);
  check_peer(target.pe);
  const bool of_gpu = memory_.devices().has(target.region) || memory_.devices().hold(source);
  if (!of_gpu && provider_.profile.words_may_tear && is_word(target.offset_bytes, size_bytes)) {
    std::uint64_t value = 0;
    std::memcpy(&value, source, size_bytes);
    return put_word(path(context, "put"), target,
                    {AtomicOp::set, static_cast<std::uint8_t>(size_bytes), value});
  }
  const auto* const bytes = static_cast<const std::byte*>(source);
  in_stripes(context, "put", size_bytes, of_gpu,
             [&](const Path& path, std::size_t at, std::size_t part_bytes) {
               put_on(path, advanced(target, at), bytes + at, part_bytes, blocking);
             });
}

/// Puts a word by message: the target's polling thread stores it at once, and replies later
/// (Rail::received()).
void LibfabricTransport::put_word(const Path& path, const RemoteAddress& target,
                                  const AtomicRequest& word) {
  Operation& operation = take(path, OperationKind::request, target.pe);
  operation.is_atomic = true;
  post_staged(path, operation, target, word, MessageKind::atomic);
}

void LibfabricTransport::put_on(const Path& path, const RemoteAddress& target,
                                const std::byte* source, std::size_t size_bytes, bool blocking,
                                const std::uint64_t* immediate, std::uint32_t* writes) {
  for (std::size_t at = 0; at < size_bytes;) {
    at += put_part(path, advanced(target, at), source + at, size_bytes - at, blocking, immediate);
    if (writes)
      ++*writes;
  }
}

/// Writes as many bytes as one operation can write, and returns their number.
std::size_t LibfabricTransport::put_part(const Path& path, const RemoteAddress& target,
                                         const std::byte* source, std::size_t size_bytes,
                                         bool blocking, const std::uint64_t* immediate) {
  const Promises& promises = path.rail.endpoint().promises();
  RemotePart remote =
      memory_.remote(path.rail_index, target, std::min(size_bytes, promises.max_message_bytes));
  void* descriptor = nullptr;
  std::uint64_t flags = 0;
  const bool of_gpu = memory_.devices().hold(source); // the CPU cannot copy GPU memory
  bool staged = blocking && !of_gpu && remote.size_bytes <= path.rail.pool().bounce_bytes();
  if (remote.size_bytes <= promises.inject_bytes && !of_gpu) {
    flags = FI_INJECT;
    staged = false;
  } else if ((promises.local_registration || of_gpu) && !staged) {
    const LocalPart local = memory_.local(path.rail_index, source, remote.size_bytes);
    remote.size_bytes = local.size_bytes;
    descriptor = local.descriptor;
    staged = !local.registered;
  }
  Operation& operation = take(path, OperationKind::write, target.pe);
  if (staged) {
    std::byte* buffer = operation.payload;
    if (remote.size_bytes > Operation::payload_bytes) {
      try {
        buffer = operation.bounce = take_bounce(path, target.pe);
      } catch (...) {
        path.rail.pool().give(operation);
        throw;
      }
      remote.size_bytes = std::min(remote.size_bytes, path.rail.pool().bounce_bytes());
    }
    std::memcpy(buffer, source, remote.size_bytes);
    source = buffer;
    descriptor = path.rail.pool().descriptor();
  }
  const std::size_t written = remote.size_bytes;
  const bool waited = blocking && !staged && flags == 0;
  operation.waited = waited;
  post(path, operation,
       [&] { return path.rail.write(operation, source, descriptor, remote, flags, immediate); });
  if (waited) {
    wait_operation(path, operation);
    path.rail.pool().give(operation);
  }
  return written;
}

void LibfabricTransport::get(int context, void* target, const RemoteAddress& source,
                             std::size_t size_bytes, bool blocking) {
  if (size_bytes == 0)
    return;
  if (std::byte* const own = own_memory(source))
    return copy_from_shared(target, own, size_bytes);
  check_peer(source.pe);
  auto* const bytes = static_cast<std::byte*>(target);
  const bool of_gpu = memory_.devices().has(source.region) || memory_.devices().hold(target);
  in_stripes(context, "get", size_bytes, of_gpu,
             [&](const Path& path, std::size_t at, std::size_t part_bytes) {
               get_on(path, bytes + at, advanced(source, at), part_bytes, blocking);
             });
}

void LibfabricTransport::get_on(const Path& path, std::byte* target, const RemoteAddress& source,
                                std::size_t size_bytes, bool blocking) {
  for (std::size_t at = 0; at < size_bytes;)
    at += get_part(path, target + at, advanced(source, at), size_bytes - at, blocking);
}

std::size_t LibfabricTransport::get_part(const Path& path, std::byte* target,
                                         const RemoteAddress& source, std::size_t size_bytes,
                                         bool blocking) {
  const Promises& promises = path.rail.endpoint().promises();
  RemotePart remote =
      memory_.remote(path.rail_index, source, std::min(size_bytes, promises.max_message_bytes));
  void* descriptor = nullptr;
  bool staged = false;
  if (promises.local_registration || memory_.devices().hold(target)) {
    const LocalPart local = memory_.local(path.rail_index, target, remote.size_bytes);
    remote.size_bytes = local.size_bytes;
    descriptor = local.descriptor;
    staged = !local.registered;
  }
  Operation& operation = take(path, OperationKind::read, source.pe);
  std::byte* buffer = target;
  if (staged) {
    buffer = operation.payload;
    if (remote.size_bytes > Operation::payload_bytes) {
      try {
        buffer = operation.bounce = take_bounce(path, source.pe);
      } catch (...) {
        path.rail.pool().give(operation);
        throw;
      }
      remote.size_bytes = std::min(remote.size_bytes, path.rail.pool().bounce_bytes());
    }
    operation.copy_to = target;
    descriptor = path.rail.pool().descriptor();
  }
  const std::size_t read = remote.size_bytes;
  operation.waited = blocking;
  post(path, operation, [&] { return path.rail.read(operation, buffer, descriptor, remote); });
  if (blocking) {
    wait_operation(path, operation);
    path.rail.pool().give(operation);
  }
  return read;
}

namespace {

std::uint64_t cut_to(std::uint64_t value, std::uint8_t size_bytes) {
  return size_bytes == 4 ? value & 0xffffffffu : value;
}

AtomicOp op_of(SignalOp op) {
  return op == SignalOp::set ? AtomicOp::set : AtomicOp::add;
}

} // namespace

/// Posts an atomic. If `waited`, returns its operation, for which the caller must wait and which it
/// must free; else nullptr.
Operation* LibfabricTransport::begin_atomic(const Path& path, const RemoteAddress& target,
                                            const AtomicRequest& request, bool waited,
                                            std::uint64_t flags) {
  const RemotePart remote = memory_.remote(path.rail_index, target, request.size_bytes);
  Operation& operation =
      take(path, native_atomics_ ? OperationKind::atomic : OperationKind::request, target.pe);
  operation.waited = waited;
  operation.is_atomic = true;
  if (native_atomics_)
    post(path, operation, [&] { return path.rail.atomic(operation, request, remote, flags); });
  else
    post_staged(path, operation, target, request, MessageKind::atomic);
  return waited ? &operation : nullptr;
}

void LibfabricTransport::post_staged(const Path& path, Operation& operation,
                                     const RemoteAddress& target, const AtomicRequest& request,
                                     MessageKind kind, std::uint32_t sequence,
                                     std::uint32_t writes) {
  Message message;
  message.kind = kind;
  message.op = request.op;
  message.word_bytes = request.size_bytes;
  message.from_pe = static_cast<std::uint32_t>(setup_.pe);
  message.operation = operation.index;
  message.generation = operation.generation;
  message.region = static_cast<std::uint32_t>(target.region);
  message.sequence = sequence;
  message.writes = writes;
  message.offset_bytes = target.offset_bytes;
  message.operand = request.operand;
  message.compare = request.compare;
  std::memcpy(operation.payload, &message, sizeof message);
  operation.events = 2; // the completion of the send, and the reply
  post(path, operation, [&] { return path.rail.send(operation); });
}

std::uint64_t LibfabricTransport::atomic(int context, const RemoteAddress& target,
                                         const AtomicRequest& request) {
  if (request.op == AtomicOp::set) {
    post_atomic(context, target, request);
    return 0;
  }
  if (atomics_coherent_with_cpu())
    if (std::byte* const own = own_memory(target))
      return execute_atomic(own, request);
  check_peer(target.pe);
  const Path by = path(context, "atomic operation");
  Operation& operation = *begin_atomic(by, target, request, true, 0);
  wait_operation(by, operation);
  const std::uint64_t old = native_atomics_ ? operands_of(operation).result : operation.answer;
  by.rail.pool().give(operation);
  return cut_to(old, request.size_bytes);
}

void LibfabricTransport::post_atomic(int context, const RemoteAddress& target,
                                     const AtomicRequest& request) {
  if (request.op == AtomicOp::fetch)
    return;
  if (atomics_coherent_with_cpu() && request.size_bytes >= 4)
    if (std::byte* const own = own_memory(target)) {
      execute_atomic(own, request);
      return;
    }
  check_peer(target.pe);
  begin_atomic(path(context, "atomic operation"), target, request, false, 0);
}

void LibfabricTransport::put_signal(int context, const RemoteAddress& target, const void* source,
                                    std::size_t size_bytes, const RemoteAddress& signal,
                                    std::uint64_t signal_value, SignalOp op, bool blocking) {
  if (std::byte* const own = own_memory(signal); own && atomics_coherent_with_cpu()) {
    if (size_bytes > 0)
      copy_to_shared(own_memory(target), source, size_bytes);
    return signal_shared(own, signal_value, op);
  }
  check_peer(signal.pe);
  const Path by = path(context, "put with signal");
  const Promises& promises = by.rail.endpoint().promises();
  const auto* const bytes = static_cast<const std::byte*>(source);
  if (provider_.profile.counted_signals && promises.immediate_data) {
    const std::uint32_t sequence = next_sequence_.fetch_add(1, std::memory_order_relaxed);
    const std::uint64_t immediate = immediates_.encode(setup_.pe, sequence);
    std::uint32_t writes = 0;
    put_on(by, target, bytes, size_bytes, blocking, &immediate, &writes);
    Operation& operation = take(by, OperationKind::request, signal.pe);
    post_staged(by, operation, signal, {op_of(op), 8, signal_value}, MessageKind::signal,
                sequence % immediates_.numbers(), writes);
    return;
  }
  put_on(by, target, bytes, size_bytes, blocking);
  const bool ordered = size_bytes <= promises.ordered_bytes;
  const bool fenced = native_atomics_ && promises.fence_flag;
  if (size_bytes > 0 && !ordered && !fenced)
    wait_pending(context, false, "put with signal");
  begin_atomic(by, signal, {op_of(op), 8, signal_value}, false, ordered || !fenced ? 0 : FI_FENCE);
}

namespace {

/// Number of operations that are reserved for replies to peers.
constexpr std::size_t reserved_for_replies = 64;

} // namespace

Operation& LibfabricTransport::take(const Path& path, OperationKind kind, int pe) {
  Operation* operation = path.rail.pool().take(kind, reserved_for_replies);
  if (!operation)
    wait(
        [&] {
          operation = path.rail.pool().take(kind, reserved_for_replies);
          return operation != nullptr;
        },
        path.step, [&] { return pe; });
  operation->pe = pe;
  return *operation;
}

std::byte* LibfabricTransport::take_bounce(const Path& path, int pe) {
  std::byte* bounce = nullptr;
  wait(
      [&] {
        bounce = path.rail.pool().take_bounce();
        return bounce != nullptr;
      },
      path.step, [&] { return pe; });
  return bounce;
}

void LibfabricTransport::check_peer(int pe) {
  if (!failures_.has(pe))
    return;
  const Error error = *failures_.of(pe);
  setup_.health->await_cause(pe);
  throw error;
}

void LibfabricTransport::probe(int pe) {
  if (pe < 0 || pe == setup_.pe)
    return;
  for (const auto& rail : rails_)
    if (!failures_.has(pe) && rail->endpoint().refuses(rail->peer(pe).address))
      failures_.add(pe, nullptr, rail->failure("reach", pe, "nobody listens there any more"));
  check_peer(pe);
}

void LibfabricTransport::wait_operation(const Path& path, Operation& operation) {
  const auto state = [&] { return operation.state.load(std::memory_order_acquire); };
  const int pe = operation.pe;
  try {
    wait([&] { return state() != OperationState::in_flight; }, path.step, [&] { return pe; });
  } catch (...) {
    // The thread that takes the operation's completion frees it; if it is already complete, this
    // thread does.
    if (operation.state.exchange(OperationState::abandoned, std::memory_order_acq_rel) !=
        OperationState::in_flight)
      path.rail.pool().give(operation);
    throw;
  }
  if (state() == OperationState::done)
    return;
  path.rail.pool().give(operation);
  failures_.take_peer_of(&path.state);
  check_peer(pe);
}

void LibfabricTransport::wait_pending(int context, bool atomics_only, const char* step) {
  ContextState& state = state_of(context);
  const auto& pending = atomics_only ? state.pending_atomics : state.pending;
  const auto peer = [&] {
    int found = -1;
    for (const auto& rail : rails_)
      found = found < 0 ? rail->pool().peer_of(&state) : found;
    return found;
  };
  wait([&] { return pending.load(std::memory_order_acquire) == 0; }, step, peer);
  if (!failures_.any())
    return;
  if (const int failed = failures_.take_peer_of(&state); failed >= 0)
    check_peer(failed);
}

void LibfabricTransport::fence(int context) {
  ContextState& state = state_of(context);
  if (state.pending.load(std::memory_order_acquire) == 0)
    return;
  const std::uint32_t used = state.endpoints;
  const bool one_endpoint = (used & (used - 1)) == 0;
  // One ordered endpoint keeps the order of puts. Atomics must still be waited for: the target's
  // CPU executes them, so later puts could overtake them.
  wait_pending(context, one_endpoint && provider_.profile.in_order, "fence");
}

void LibfabricTransport::quiet(int context) {
  wait_pending(context, false, "quiet");
  state_of(context).endpoints = 0;
}

bool LibfabricTransport::poll_all() {
  bool busy = false;
  for (const auto& rail : rails_)
    busy = rail->poll() || busy;
  return busy;
}

void LibfabricTransport::progress() {
  program_polls_.fetch_add(1, std::memory_order_relaxed);
  poll_all();
}

void LibfabricTransport::serve() {
  constexpr std::uint64_t polls_of_a_busy_program = 32;
  constexpr int idle_before_sleep = 1000;
  const auto shortest = std::chrono::microseconds(20), longest = std::chrono::microseconds(500);
  // While the program polls, this thread sleeps: its polls are not needed, and would take the core
  // from the program.
  const auto first_doze = std::chrono::microseconds(100),
             longest_doze = std::chrono::microseconds(1000);
  auto sleep = shortest, doze = first_doze;
  std::uint64_t seen = 0;
  int idle = 0;
  while (!stop_.load(std::memory_order_acquire)) {
    const std::uint64_t polls = program_polls_.load(std::memory_order_relaxed);
    const bool program_polls = polls - seen > polls_of_a_busy_program ||
                               program_waits_.load(std::memory_order_relaxed) > 0;
    seen = polls;
    if (program_polls) {
      std::this_thread::sleep_for(doze);
      doze = std::min(doze * 2, longest_doze);
      continue;
    }
    doze = first_doze;
    for (int turn = 0; turn < 32 && idle < idle_before_sleep; ++turn) {
      idle = poll_all() ? 0 : idle + 1;
      std::this_thread::yield();
    }
    if (idle < idle_before_sleep) {
      sleep = shortest;
      continue;
    }
    std::this_thread::sleep_for(sleep);
    sleep = std::min(sleep * 2, longest);
    idle = poll_all() ? 0 : idle;
  }
}

void LibfabricTransport::stop_serving() {
  stop_.store(true, std::memory_order_release);
  if (service_.joinable())
    service_.join();
  // A peer's last quiet may be waiting for a reply that was deferred to the next poll.
  const Deadline deadline = Deadline::after(std::chrono::milliseconds(100));
  for (const auto& rail : rails_)
    while (rail->has_pending_replies() && !deadline.passed())
      rail->poll();
}

namespace {

/// Whether to request FI_HMEM. It is requested only if it may be used, since the request makes a
/// provider look for CUDA and may change its capabilities.
bool wants_gpu_memory(const Options& options) {
  const std::string heap = options.text("HEAP");
  return options.text("GPUDIRECT") != "off" && heap != "host" && heap != "none" &&
         ::access("/dev/nvidiactl", F_OK) == 0;
}

} // namespace

LibfabricTransport::LibfabricTransport(const TransportSetup& setup)
    : setup_(setup), immediates_(setup.n_pes), failures_(setup.n_pes), memory_(setup.n_pes) {
  const Options& options = *setup.options;
  find_provider({options.text("LIBFABRIC_LIBRARY"), options.text("LIBFABRIC_PROVIDER"),
                 options.text("LIBFABRIC_PROFILE"), options.text("LIBFABRIC_INTERFACE"),
                 setup.n_pes, wants_gpu_memory(options)},
                provider_, problem_);
}

LibfabricTransport::~LibfabricTransport() {
  stop_serving();
  // Memory that is bound to an endpoint is deregistered before the endpoint is closed, other memory
  // afterwards.
  for (const auto& rail : rails_)
    if (!rail->endpoint().promises().endpoint_registration)
      rail->close();
}

std::string LibfabricTransport::local_info() {
  if (!problem_.reason.empty())
    return to_text(LocalInfo{problem_.reason + "; " + problem_.fix, {}, {}, 0, false});
  const Device& device = provider_.devices.front();
  return to_text(LocalInfo{
      {}, provider_.name, provider_.profile.name, device.address_format, device.loopback});
}

Reach LibfabricTransport::reach(const PeerLocation& me, const PeerLocation& peer) const {
  const LocalInfo local = read_local_info(me.transport_info);
  const LocalInfo remote = read_local_info(peer.transport_info);
  if (!local.problem.empty())
    return {0, local.problem};
  const std::string whom = "PE " + std::to_string(peer.pe);
  if (!remote.problem.empty())
    return {0, "on " + whom + ": " + remote.problem};
  if (local.provider != remote.provider || local.profile != remote.profile)
    return {0, "the provider here is " + local.provider + " with the rules of " + local.profile +
                   ", that of " + whom + " is " + remote.provider + " with those of " +
                   remote.profile};
  if (local.address_format != remote.address_format)
    return {0, "this PE's addresses and those of " + whom + " are of different kinds (IPv4, IPv6)"};
  if (local.loopback != remote.loopback || (local.loopback && me.machine_id != peer.machine_id))
    return {0, "a loopback interface is used, which reaches its own machine only: name another "
               "with SHMEMCTL_LIBFABRIC_INTERFACE"};
  return {can_put | can_get | can_atomics | can_put_signal,
          "libfabric's " + local.provider + " with the rules of " + local.profile};
}

void LibfabricTransport::use_nics(const std::vector<HcaPort>& nics) {
  chosen_.clear();
  for (const HcaPort& nic : nics) {
    const auto found =
        std::find_if(provider_.devices.begin(), provider_.devices.end(),
                     [&](const Device& device) { return device.name == nic.device; });
    if (found != provider_.devices.end())
      chosen_.push_back(*found);
    else if (provider_.devices.front().address_format != FI_SOCKADDR_IN &&
             provider_.devices.front().address_format != FI_SOCKADDR_IN6)
      throw Error(ExitCode::unavailable, "device " + nic.device, "use",
                  "libfabric's provider " + provider_.name + " does not have it",
                  "choose a device that fi_info -p \"" + provider_.name + "\" lists");
  }
  // With a provider over IP, devices are network interfaces, whose names differ from those of NICs.
  // A NIC that is not found is then ignored.
}

std::vector<EndpointName> LibfabricTransport::my_endpoints() const {
  std::vector<EndpointName> names;
  for (const auto& rail : rails_)
    names.push_back({rail->endpoint().device(), rail->endpoint().address()});
  return names;
}

void LibfabricTransport::connect(const std::vector<PeerLocation>& peers, Exchange& exchange,
                                 const Deadline&) {
  if (chosen_.empty())
    chosen_.push_back(provider_.devices.front());
  const auto on_failure = [this](int pe, ContextState* context, const Error& error) {
    failures_.add(pe, context, error);
  };
  std::vector<const Endpoint*> endpoints;
  for (const Device& device : chosen_)
    for (int i = 0; i < provider_.profile.endpoints && rails_.size() < max_endpoints; ++i) {
      rails_.push_back(
          std::make_unique<Rail>(provider_, device, setup_, memory_, immediates_, on_failure));
      rails_.back()->post_receives();
    }
  learn_peers(peers, exchange.allgather(to_bytes(my_endpoints())));
  for (const auto& rail : rails_)
    endpoints.push_back(&rail->endpoint());
  memory_.use(endpoints);
  native_atomics_ = !provider_.profile.staged_atomics && endpoints.front()->has_all_atomics();
  service_ = start_service_thread("libfabric", [this] { serve(); });
}

void LibfabricTransport::learn_peers(const std::vector<PeerLocation>& peers,
                                     const std::vector<std::string>& texts) {
  std::vector<std::vector<EndpointName>> all(texts.size());
  std::size_t common = rails_.size();
  for (const PeerLocation& peer : peers) {
    const auto pe = static_cast<std::size_t>(peer.pe);
    const auto endpoints = from_bytes<std::vector<EndpointName>>(texts[pe]);
    if (!endpoints || endpoints->empty())
      throw Error(ExitCode::unavailable, "PE " + std::to_string(peer.pe), "read its endpoints",
                  "it sent none, or a malformed message",
                  "run the same version of shmemctl on all hosts");
    all[pe] = *endpoints;
    common = std::min(common, endpoints->size());
  }
  // Each endpoint communicates with the peers' endpoints of the same index; surplus endpoints are
  // closed.
  rails_.resize(common);
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    std::vector<EndpointName> names(texts.size());
    for (const PeerLocation& peer : peers)
      names[static_cast<std::size_t>(peer.pe)] = all[static_cast<std::size_t>(peer.pe)][i];
    rails_[i]->set_peers(std::move(names));
  }
}

DeviceReach LibfabricTransport::try_device_memory(const std::shared_ptr<const DeviceMemory>& memory,
                                                  std::byte* base, std::size_t size_bytes) {
  if (!problem_.reason.empty())
    return {"", problem_.reason};
  if (rails_.empty())
    return {"", "this PE is not connected"};
  const std::string name = "libfabric's " + provider_.name;
  if (!provider_.profile.may_reach_gpus)
    return {"", name + " " + host_memory_only};
  const std::string wanted = setup_.options->text("GPUDIRECT");
  if (wanted != "auto")
    return {"", "GPUDIRECT=" + wanted + " is set, and " + name +
                    " chooses the path to GPU memory itself"};
  for (const auto& rail : rails_)
    if (!rail->endpoint().promises().gpu_memory)
      return {"", rail->endpoint().device() + ": " + name + " offers no FI_HMEM"};
  try {
    memory_.try_register(base, size_bytes, *memory);
  } catch (const Error& error) {
    return {"", error.where().device + ": " + name + ": " + error.system_message()};
  }
  return {"FI_HMEM", ""};
}

std::string LibfabricTransport::set_region(const RegionView& region) {
  return memory_.set_region(region);
}

void LibfabricTransport::set_keys(int region, const std::vector<std::string>& keys) {
  memory_.set_keys(region, keys);
}

void LibfabricTransport::add_local(void* base, std::size_t size_bytes) {
  if (size_bytes > 0)
    memory_.add_local(base, size_bytes);
}

void LibfabricTransport::remove_local(void* base) {
  memory_.remove_local(base);
}

bool LibfabricTransport::atomics_coherent_with_cpu() const {
  return !native_atomics_ || provider_.profile.provider_atomics_by_cpu;
}

std::vector<NicTraffic> LibfabricTransport::traffic() const {
  std::vector<NicTraffic> all;
  for (const auto& rail : rails_) {
    const HcaPort nic{rail->endpoint().device(), 1};
    auto found = std::find_if(all.begin(), all.end(),
                              [&](const NicTraffic& known) { return known.nic == nic; });
    if (found == all.end())
      found = all.insert(all.end(), NicTraffic{nic});
    found->put_bytes += rail->traffic().put_bytes.load(std::memory_order_relaxed);
    found->get_bytes += rail->traffic().get_bytes.load(std::memory_order_relaxed);
    found->operations += rail->traffic().operations.load(std::memory_order_relaxed);
  }
  return all;
}

std::string LibfabricTransport::connection(int pe) const {
  if (pe == setup_.pe || rails_.empty())
    return {};
  std::string text;
  for (const auto& rail : rails_) {
    const EndpointName& peer = rail->peer(pe);
    if (peer.address.empty())
      return {};
    text += (text.empty() ? "" : ", ") + rail->endpoint().device() + " -> " + peer.device + " (" +
            rail->endpoint().readable(peer.address) + ")";
  }
  return text + ", " + provider_.name + ", rules of " + provider_.profile.name;
}

std::vector<NicPair> LibfabricTransport::nics_to(int pe) const {
  std::vector<NicPair> nics;
  if (pe == setup_.pe || pe < 0 || pe >= setup_.n_pes)
    return nics;
  for (const auto& rail : rails_)
    if (const EndpointName& peer = rail->peer(pe); !peer.address.empty())
      nics.push_back({{rail->endpoint().device(), 1}, {peer.device, 1}});
  return nics;
}

} // namespace shmemctl::fabric

namespace shmemctl {

std::unique_ptr<Transport> make_libfabric_transport(const TransportSetup& setup) {
  return std::make_unique<fabric::LibfabricTransport>(setup);
}

} // namespace shmemctl
