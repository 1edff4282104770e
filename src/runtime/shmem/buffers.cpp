// Registered buffers, an extension (shmemx.h).
#include <bit>
#include <cstring>

#include "src/base/log.h"
#include "src/runtime/buffers.h"
#include "src/runtime/shmem/api.h"
#include "src/runtime/shmem/include/shmemx.h"

using namespace shmemctl;
using api::World;

namespace {

static_assert(sizeof(shmemx_buffer_t) == sizeof(BufferDescriptor));

Buffers& buffers_of(World& world) {
  Buffers* buffers = world.buffers();
  if (!buffers)
    throw api::wrong_use("registered buffer", "use", "the PEs of this job are threads",
                         "run each PE as a process");
  return *buffers;
}

BufferDescriptor descriptor_of(const shmemx_buffer_t* name) {
  return std::bit_cast<BufferDescriptor>(*name);
}

} // namespace

SHMEMCTL_API(int, shmemx_buffer_register, (void* addr, size_t length)) {
  return api::guarded([&](World& world) {
    Buffers& buffers = buffers_of(world);
    try {
      buffers.add(addr, length);
      return 0;
    } catch (const Error& error) {
      log(LogLevel::warning, "memory", "shmemx_buffer_register: " + error.message());
      return 1;
    }
  });
}

SHMEMCTL_API(int, shmemx_buffer_unregister, (void* addr)) {
  return api::guarded([&](World& world) {
    Buffers& buffers = buffers_of(world);
    const auto handle = buffers.starting_at(addr);
    if (!handle)
      return 1;
    buffers.remove(*handle);
    return 0;
  });
}

SHMEMCTL_API(int, shmemx_buffer_name, (const void* addr, shmemx_buffer_t* name)) {
  return api::guarded([&](World& world) {
    Buffers& buffers = buffers_of(world);
    const auto handle = buffers.starting_at(addr);
    if (!handle)
      return 1;
    const BufferDescriptor descriptor = buffers.describe(*handle);
    std::memcpy(name, &descriptor, sizeof descriptor);
    return 0;
  });
}

SHMEMCTL_API(void, shmemx_buffer_put,
             (const shmemx_buffer_t* dest, size_t offset, const void* source, size_t nbytes)) {
  api::guarded(
      [&](World& world) { buffers_of(world).put(descriptor_of(dest), offset, source, nbytes); });
}

SHMEMCTL_API(void, shmemx_buffer_get,
             (void* dest, const shmemx_buffer_t* source, size_t offset, size_t nbytes)) {
  api::guarded(
      [&](World& world) { buffers_of(world).get(dest, descriptor_of(source), offset, nbytes); });
}

SHMEMCTL_API(const char*, shmemx_buffer_path, (const shmemx_buffer_t* name)) {
  return api::guarded(
      [&](World& world) { return to_string(buffers_of(world).path_to(descriptor_of(name)).kind); });
}

SHMEMCTL_API(void*, shmemx_buffer_hold, (const shmemx_buffer_t* name)) {
  return api::guarded([&](World& world) -> void* {
    try {
      return world.hold(buffers_of(world).hold(descriptor_of(name)));
    } catch (const Error& error) {
      if (error.code() != ExitCode::unavailable)
        throw;
      log(LogLevel::warning, "memory", "shmemx_buffer_hold: " + error.message());
      return nullptr;
    }
  });
}

SHMEMCTL_API(int, shmemx_buffer_let_go, (const void* addr)) {
  return api::guarded([&](World& world) { return world.let_go(addr) ? 0 : 1; });
}
