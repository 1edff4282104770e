#include "src/runtime/buffers.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/wait.h"
#include "src/runtime/buffers/open_buffer.h"
#include "src/runtime/buffers/service.h"
#include "src/runtime/memory/siphash.h"

namespace shmemctl {

namespace {

constexpr std::uint32_t descriptor_magic = 0x31465542; // "BUF1"
constexpr auto max_sleep = std::chrono::milliseconds(1);

std::uint64_t signature_of(const BufferDescriptor& descriptor, const JobSecret& secret) {
  return siphash(secret, &descriptor, offsetof(BufferDescriptor, signature));
}

Error stale(const BufferDescriptor& descriptor) {
  return {ExitCode::usage,
          "buffer " + std::to_string(descriptor.slot) + " of PE " + std::to_string(descriptor.pe),
          "use", "it is no longer registered",
          "use a descriptor only while its buffer is registered"};
}

} // namespace

struct Buffers::Impl {
  BuffersConfig config;
  std::uint32_t me; ///< index of this PE in config.users
  BufferPool pool;
  std::mutex mutex;                             ///< guards `owner`
  std::unique_ptr<buffers::BufferServer> owner; ///< created by the first registration
  std::mutex links_mutex;                       ///< held while a connection is made
  std::map<int, std::shared_ptr<buffers::OwnerConnection>> links;
  std::shared_ptr<buffers::MappingRefcounts> book = std::make_shared<buffers::MappingRefcounts>();
  buffers::OpenCache cache;

  explicit Impl(BuffersConfig the_config)
      : config(std::move(the_config)), me(index_of(config.pe)),
        pool(*config.backing, config.max_buffers), cache(config.open_limit) {}

  /// Ends the server's thread first, because it uses the members below.
  ~Impl() { owner.reset(); }

  std::uint32_t index_of(int pe) const {
    const auto found = std::find(config.users.begin(), config.users.end(), pe);
    return static_cast<std::uint32_t>(found - config.users.begin());
  }
  void start_owner();
  buffers::RegistrationTable& table() const { return *owner->table(); }
  BufferHandle add_gpu(const void* address, std::size_t size_bytes);
  /// Closes another PE's buffer at the request of its remove().
  void forget(int owner_pe, const BufferHandle& theirs);
  /// Asks all other PEs that have opened the buffer to unmap it; on return none maps it.
  void close_at_others(const BufferHandle& handle);
  void warn_if_gone(const BufferHandle& handle) const;
  void wait_until_unused(std::uint32_t slot);
  int user_of(std::uint32_t slot);
  void check(const BufferDescriptor& descriptor) const;
  std::shared_ptr<buffers::OwnerConnection> link_to(int pe);
  std::shared_ptr<const buffers::OpenBuffer> open(const BufferDescriptor& descriptor);
  /// Runs `copy` on the open buffer; the owner's remove() waits until it ends.
  template <class Copy>
  void operate(const BufferDescriptor& descriptor, std::uint64_t offset_bytes,
               std::size_t size_bytes, const Copy& copy);
};

void Buffers::Impl::start_owner() {
  const std::lock_guard lock(mutex);
  if (!owner)
    owner = std::make_unique<buffers::BufferServer>(
        buffers::TableShape{static_cast<std::uint32_t>(config.max_buffers),
                            static_cast<std::uint32_t>(config.users.size()), config.staging_bytes},
        config.backing->kind(), config.secret, config.pe, config.users, pool,
        buffers::ServiceCallbacks{config.gpu, [this](int owner_pe, const BufferHandle& theirs) {
                                    forget(owner_pe, theirs);
                                  }});
}

void Buffers::Impl::forget(int owner_pe, const BufferHandle& theirs) {
  cache.erase(owner_pe, theirs);
  const Deadline deadline = Deadline::after(std::chrono::duration<double>(config.timeout_s));
  if (!book->wait_until_gone(owner_pe, theirs, deadline))
    throw Error(ExitCode::deadline, "buffer of PE " + std::to_string(owner_pe),
                "close it on PE " + std::to_string(config.pe),
                "timed out: it is still in use there",
                "release all references to a buffer before its owner unregisters it");
}

/// CUDA requires that other processes unmap memory before its owner frees it; memory that they
/// still map does not become free.
void Buffers::Impl::close_at_others(const BufferHandle& handle) {
  for (const std::size_t user : owner->take_openers(handle)) {
    if (user == me || !owner->connected(user))
      continue; // a process that has ended has no mappings
    try {
      link_to(config.users[user])->close(handle);
    } catch (const Error& error) {
      if (error.code() != ExitCode::unavailable || owner->connected(user))
        throw;
      log(LogLevel::info, "memory", "a buffer's user has ended: " + error.message());
    }
  }
}

void Buffers::Impl::warn_if_gone(const BufferHandle& handle) const {
  const RegisteredBuffer buffer = pool.get(handle);
  if (!buffer.gpu)
    return;
  const std::string gone = config.gpu->why_gone(
      *buffer.gpu, reinterpret_cast<const void*>(buffer.extent.address), buffer.extent.size_bytes);
  if (!gone.empty())
    log(LogLevel::warning, "memory",
        std::string(text_of(buffer.extent.address, buffer.extent.size_bytes).text) + " of " +
            config.gpu->text() + ": " + gone + "; unregister a buffer before its memory is freed");
}

/// A PE with an operation in flight on the slot; -1 if there is none. A PE that has exited does not
/// count.
int Buffers::Impl::user_of(std::uint32_t slot) {
  for (std::uint32_t user = 0; user < config.users.size(); ++user)
    if (table().in_flight(slot, user).load(std::memory_order_seq_cst) != 0 &&
        (user == me || owner->connected(user)))
      return config.users[user];
  return -1;
}

void Buffers::Impl::wait_until_unused(std::uint32_t slot) {
  const BackoffPolicy sleeps{.spins = 0, .yields = 0, .max_sleep = max_sleep};
  Wait wait(*config.health, config.timeout_s, {"unregistering a buffer"}, sleeps);
  for (int user = user_of(slot); user >= 0; user = user_of(slot)) {
    wait.set_peer(user);
    wait.pause();
  }
}

void Buffers::Impl::check(const BufferDescriptor& descriptor) const {
  if (descriptor.magic != descriptor_magic ||
      descriptor.signature != signature_of(descriptor, config.secret))
    throw Error(ExitCode::usage, "buffer descriptor", "use", "no PE of this job created it",
                "pass all 64 bytes of the name (shmemx_buffer_name)");
  if (index_of(descriptor.pe) == config.users.size())
    throw Error(ExitCode::unavailable, "registered buffer of PE " + std::to_string(descriptor.pe),
                "open", "that PE shares no memory with PE " + std::to_string(config.pe),
                "copy through the symmetric heap, or run both PEs on one node");
}

std::shared_ptr<buffers::OwnerConnection> Buffers::Impl::link_to(int pe) {
  // One connection to each PE: other threads wait while the first one connects.
  const std::lock_guard lock(links_mutex);
  std::shared_ptr<buffers::OwnerConnection>& link = links[pe];
  if (link && link->alive())
    return link;
  link = std::make_shared<buffers::OwnerConnection>(config.secret, config.pe, pe, *config.health,
                                                    config.timeout_s);
  if (link->table().shape().users != config.users.size()) {
    link.reset();
    throw Error(ExitCode::unavailable, "registered buffers of PE " + std::to_string(pe), "connect",
                "that PE reports a different number of PEs on this node",
                "run the same version of shmemctl on all hosts");
  }
  return link;
}

std::shared_ptr<const buffers::OpenBuffer> Buffers::Impl::open(const BufferDescriptor& descriptor) {
  check(descriptor);
  const BufferHandle handle{descriptor.slot, descriptor.generation};
  if (auto opened = cache.find(descriptor.pe, handle))
    return opened;
  const buffers::Opener opener{me, config.allowed, config.gpu, book};
  std::shared_ptr<const buffers::OpenBuffer> opened;
  if (descriptor.pe == config.pe) {
    const RegisteredBuffer buffer = pool.get(handle); // throws if the handle was never registered
    opened = std::make_shared<buffers::OpenBuffer>(config.pe, buffer, owner->table(), opener);
    cache.insert(opened);
    return opened;
  }
  const std::shared_ptr<buffers::OwnerConnection> link = link_to(descriptor.pe);
  // The owner of GPU memory must know every mapping, so that it can ask this PE to close it. This
  // PE therefore counts as a user until the mapping is in its cache.
  std::optional<buffers::OperationGuard> lease;
  if (descriptor.on_gpu != 0) {
    if (config.gpu)
      start_owner();
    lease.emplace(link->table(), handle, me);
    if (!lease->valid())
      throw stale(descriptor);
  }
  opened = std::make_shared<buffers::OpenBuffer>(link, handle, opener);
  cache.insert(opened);
  return opened;
}

template <class Copy>
void Buffers::Impl::operate(const BufferDescriptor& descriptor, std::uint64_t offset_bytes,
                            std::size_t size_bytes, const Copy& copy) {
  const auto opened = open(descriptor);
  require_inside(offset_bytes, size_bytes, descriptor.size_bytes);
  const buffers::OperationGuard lease(opened->table(), opened->handle(), me);
  if (!lease.valid()) {
    cache.erase(descriptor.pe, opened->handle());
    throw stale(descriptor);
  }
  if (size_bytes > 0)
    copy(*opened);
}

Buffers::Buffers(BuffersConfig config) : impl_(std::make_unique<Impl>(std::move(config))) {}

Buffers::~Buffers() {
  for (const BufferHandle& handle : impl_->pool.handles())
    impl_->table().generation(handle.slot).store(0, std::memory_order_seq_cst);
}

BufferHandle Buffers::Impl::add_gpu(const void* address, std::size_t size_bytes) {
  return pool.add_gpu(address, size_bytes, config.gpu->share(address, size_bytes));
}

BufferHandle Buffers::add(void* address, std::size_t size_bytes, bool may_replace_pages) {
  if (impl_->config.is_heap && impl_->config.is_heap(address))
    throw Error(ExitCode::usage, text_of(extent_of(address, size_bytes).address, size_bytes).text,
                "register", "it is in the symmetric heap",
                "access it directly: all PEs reach the heap without registration");
  extent_of(address, size_bytes); // throws if this is not a valid range
  const bool on_gpu = impl_->config.gpu && impl_->config.gpu->is_gpu_memory(address);
  impl_->start_owner();
  const BufferHandle handle = on_gpu ? impl_->add_gpu(address, size_bytes)
                                     : impl_->pool.add(address, size_bytes, may_replace_pages);
  try {
    impl_->table().commit_slot(handle.slot);
  } catch (...) {
    impl_->pool.withdraw(handle);
    impl_->pool.remove(handle);
    throw;
  }
  impl_->table().generation(handle.slot).store(handle.generation, std::memory_order_seq_cst);
  return handle;
}

void Buffers::remove(const BufferHandle& handle) {
  impl_->pool.withdraw(handle);
  impl_->table().generation(handle.slot).store(0, std::memory_order_seq_cst);
  impl_->wait_until_unused(handle.slot);
  impl_->close_at_others(handle);
  impl_->cache.erase(impl_->config.pe, handle);
  impl_->warn_if_gone(handle);
  impl_->pool.remove(handle);
}

BufferDescriptor Buffers::describe(const BufferHandle& handle) const {
  const RegisteredBuffer buffer = impl_->pool.get(handle);
  BufferDescriptor descriptor;
  descriptor.magic = descriptor_magic;
  descriptor.pe = impl_->config.pe;
  descriptor.slot = handle.slot;
  descriptor.writable = buffer.writable ? 1 : 0;
  descriptor.on_gpu = buffer.gpu ? 1 : 0;
  descriptor.generation = handle.generation;
  descriptor.address = buffer.extent.address;
  descriptor.size_bytes = buffer.extent.size_bytes;
  descriptor.signature = signature_of(descriptor, impl_->config.secret);
  return descriptor;
}

std::optional<BufferHandle> Buffers::starting_at(const void* address) const {
  return impl_->pool.starting_at(address);
}

void Buffers::put(const BufferDescriptor& target, std::uint64_t offset_bytes, const void* source,
                  std::size_t size_bytes) {
  impl_->operate(target, offset_bytes, size_bytes, [&](const buffers::OpenBuffer& opened) {
    opened.put(offset_bytes, source, size_bytes);
  });
}

void Buffers::get(void* target, const BufferDescriptor& source, std::uint64_t offset_bytes,
                  std::size_t size_bytes) {
  impl_->operate(source, offset_bytes, size_bytes, [&](const buffers::OpenBuffer& opened) {
    opened.get(target, offset_bytes, size_bytes);
  });
}

BufferRef Buffers::hold(const BufferDescriptor& buffer) {
  return {impl_->open(buffer), impl_->me};
}

BufferPath Buffers::path_to(const BufferDescriptor& buffer) {
  return impl_->open(buffer)->path();
}

void Buffers::close(const BufferDescriptor& buffer) {
  impl_->cache.erase(buffer.pe, {buffer.slot, buffer.generation});
}

std::size_t Buffers::open_count() const {
  return impl_->cache.size();
}

BufferRef::BufferRef(std::shared_ptr<const buffers::OpenBuffer> opened, std::uint32_t user)
    : opened_(std::move(opened)),
      lease_(std::make_unique<buffers::OperationGuard>(opened_->table(), opened_->handle(), user)) {
  const std::string subject = "buffer of PE " + std::to_string(opened_->owner_pe());
  if (!lease_->valid())
    throw Error(ExitCode::usage, subject, "hold", "it is no longer registered",
                "use a descriptor only while its buffer is registered");
  if (!opened_->address())
    throw Error(ExitCode::unavailable, subject, "hold", opened_->path().reason,
                "use shmemx_buffer_put and shmemx_buffer_get, which also copy where no loads and "
                "stores are possible");
}

buffers::GpuBufferBackend& BufferRef::engine() const {
  if (!opened_->gpu())
    throw Error(ExitCode::usage, "buffer of PE " + std::to_string(opened_->owner_pe()),
                "copy on a stream", "this PE has no GPU",
                "use shmemx_buffer_put and shmemx_buffer_get");
  return *opened_->gpu();
}

void BufferRef::put_on_stream(std::uint64_t offset_bytes, const void* source,
                              std::size_t size_bytes, void* stream) const {
  opened_->require_writable();
  require_inside(offset_bytes, size_bytes, this->size_bytes());
  if (size_bytes > 0)
    engine().start_copy(stream, address() + offset_bytes, source, size_bytes);
}

void BufferRef::get_on_stream(void* target, std::uint64_t offset_bytes, std::size_t size_bytes,
                              void* stream) const {
  require_inside(offset_bytes, size_bytes, this->size_bytes());
  if (size_bytes > 0)
    engine().start_copy(stream, target, address() + offset_bytes, size_bytes);
}

} // namespace shmemctl
