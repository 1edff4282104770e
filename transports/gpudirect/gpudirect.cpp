#include "transports/gpudirect/gpudirect.h"

namespace shmemctl {

GpuDirectTransport::GpuDirectTransport(GpuDirectSettings settings)
    : ForwardingOperations(*settings.network), settings_(std::move(settings)) {}

std::string GpuDirectTransport::set_region(const RegionView& region) {
  regions_.set(region);
  return {};
}

std::string GpuDirectTransport::connection(int pe) const {
  const std::string below = settings_.network->connection(pe);
  return settings_.description + (below.empty() ? "" : ": " + below);
}

GpuDirectTransport::Local GpuDirectTransport::kind_of(const void* local,
                                                      std::size_t size_bytes) const {
  if (size_bytes == 0)
    return Local::host;
  const auto place = reinterpret_cast<std::uintptr_t>(local);
  for (std::size_t number = 0; number < RegionTable::capacity; ++number) {
    const RegionView& view = regions_[number];
    const std::uintptr_t offset = place - reinterpret_cast<std::uintptr_t>(view.base);
    if (offset < view.size_bytes && size_bytes <= view.size_bytes - offset)
      return Local::region;
  }
  return settings_.is_device_memory(local) ? Local::other_gpu : Local::host;
}

// Switching between the NIC's path and the staged path.

void GpuDirectTransport::quiet_direct(int context) {
  Context& state = at(context);
  settings_.network->quiet(context);
  // The completions have reached the CPU, but the data took another path, to the GPU. The CPU may
  // signal kernels of that GPU next, and they must see the data.
  if (state.gets)
    settings_.memory->flush();
  state.gets = state.fenced_direct = false;
}

void GpuDirectTransport::quiet_staged(int context) {
  settings_.staged->quiet(context);
  Context& state = at(context);
  state.staged = state.fenced_staged = false;
}

/// Returns the network for the next operation. Waits for staged operations first if a fence orders
/// them before it.
Transport& GpuDirectTransport::direct(int context) {
  if (at(context).fenced_staged)
    quiet_staged(context);
  return *settings_.network;
}

Transport& GpuDirectTransport::staged(int context) {
  if (at(context).fenced_direct)
    quiet_direct(context);
  at(context).staged = true;
  return *settings_.staged;
}

void GpuDirectTransport::fence(int context) {
  Context& state = at(context);
  settings_.network->fence(context);
  settings_.staged->fence(context);
  state.fenced_direct = true; // the NIC may also have puts to host regions, unknown to this class
  state.fenced_staged = state.staged;
}

void GpuDirectTransport::quiet(int context) {
  quiet_direct(context);
  if (at(context).staged)
    quiet_staged(context);
}

void GpuDirectTransport::progress() {
  settings_.network->progress();
  settings_.staged->progress();
}

// Operations.

void GpuDirectTransport::put(int context, const RemoteAddress& target, const void* source,
                             std::size_t size_bytes, bool blocking) {
  Transport& path =
      kind_of(source, size_bytes) == Local::other_gpu ? staged(context) : direct(context);
  path.put(context, target, source, size_bytes, blocking);
}

void GpuDirectTransport::get(int context, void* target, const RemoteAddress& source,
                             std::size_t size_bytes, bool blocking) {
  const Local kind = kind_of(target, size_bytes);
  if (kind == Local::other_gpu)
    return staged(context).get(context, target, source, size_bytes, blocking);
  direct(context).get(context, target, source, size_bytes, blocking);
  if (kind != Local::region)
    return;
  if (blocking)
    settings_.memory->flush(); // as in quiet_direct()
  else
    at(context).gets = true;
}

std::uint64_t GpuDirectTransport::atomic(int context, const RemoteAddress& target,
                                         const AtomicRequest& request) {
  return staged(context).atomic(context, target, request);
}

void GpuDirectTransport::post_atomic(int context, const RemoteAddress& target,
                                     const AtomicRequest& request) {
  staged(context).post_atomic(context, target, request);
}

void GpuDirectTransport::put_signal(int context, const RemoteAddress& target, const void* source,
                                    std::size_t size_bytes, const RemoteAddress& signal,
                                    std::uint64_t signal_value, SignalOp op, bool blocking) {
  put_signal_of(kind_of(source, size_bytes), context, target, source, size_bytes, signal,
                signal_value, op, blocking);
}

/// The network places a signal after its payload. A NIC that writes both over one QP to one GPU
/// keeps that order on PCIe too, since the memory is registered without relaxed ordering.
void GpuDirectTransport::put_signal_of(Local kind, int context, const RemoteAddress& target,
                                       const void* source, std::size_t size_bytes,
                                       const RemoteAddress& signal, std::uint64_t signal_value,
                                       SignalOp op, bool blocking) {
  if (kind == Local::other_gpu)
    return staged(context).put_signal(context, target, source, size_bytes, signal, signal_value, op,
                                      blocking);
  if (op == SignalOp::set && settings_.nics_signal)
    return direct(context).put_signal(context, target, source, size_bytes, signal, signal_value, op,
                                      blocking);
  if (size_bytes > 0) {
    direct(context).put(context, target, source, size_bytes, blocking);
    quiet_direct(context); // the agent's signal must not overtake these puts
  }
  staged(context).put_signal(context, target, nullptr, 0, signal, signal_value, op, blocking);
}

} // namespace shmemctl
