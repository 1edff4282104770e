// Collectives over a key-value store, as PMI and PMIx offer it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "src/runtime/bootstrap/bootstrap.h"

namespace shmemctl {

/// What PMI-1, PMI-2 and PMIx have in common. KvsBootstrap makes the keys, of letters, digits and
/// '-'.
class KeyValueStore {
public:
  virtual ~KeyValueStore() = default;
  virtual const char* name() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::size_t max_key_bytes() const = 0;
  /// The longest value that put() takes.
  virtual std::size_t max_value_bytes() const = 0;
  /// Prefix of all keys, the same on all processes. If the store keeps keys of earlier uses in the
  /// same process, the prefix differs for each use.
  virtual std::string key_prefix() const { return "shmemctl-"; }
  /// True if values may hold any byte; otherwise only printable ASCII without blanks, '=' and ';'.
  virtual bool binary_values() const = 0;

  virtual void put(const std::string& key, const std::string& value, const Deadline& deadline) = 0;
  /// Collective: values that were put before it can be got after it.
  virtual void fence(const Deadline& deadline) = 0;
  /// True if no process leaves fence() before all have entered it. If false, get() blocks until the
  /// process that puts the value has entered fence().
  virtual bool fence_synchronizes() const { return true; }
  /// The value; nothing if `rank` has not put this key.
  virtual std::optional<std::string> get(int rank, const std::string& key,
                                         const Deadline& deadline) = 0;
  virtual void abort(ExitCode code, const std::string& message) noexcept = 0;
  virtual void finish(const Deadline& deadline) = 0;
  /// As Bootstrap::leave().
  virtual void leave(const Deadline& deadline) noexcept = 0;
  /// From now on every wait checks `health`.
  void watch(JobHealth* health) { health_ = health; }

protected:
  JobHealth& health() const { return *health_; }

private:
  JobHealth nobody_;
  JobHealth* health_ = &nobody_;
};

/// A bootstrap in which a collective is put, fence, get (a barrier may be a fence alone). Keys
/// contain a sequence number, so that none is used twice. Long values are split into chunks;
/// text-only stores get base64. This function is collective. It checks that the ranks are distinct,
/// that the processes agree on their number, and that each process sees the values of another one:
/// some launchers and libraries give every process a private store.
std::unique_ptr<Bootstrap> make_kvs_bootstrap(std::unique_ptr<KeyValueStore> kvs,
                                              const Deadline& deadline);

// Bytes as text, for stores that accept only printable characters.

/// RFC 4648 section 4, without padding: letters, digits, '+' and '/'.
std::string base64(const void* data, std::size_t size_bytes);
/// The bytes; nothing if `text` cannot be an output of base64().
std::optional<std::string> from_base64(std::string_view text);
/// Number of characters that base64() writes for `size_bytes` bytes.
constexpr std::size_t base64_length(std::size_t size_bytes) {
  return size_bytes / 3 * 4 + (size_bytes % 3 == 0 ? 0 : size_bytes % 3 + 1);
}

} // namespace shmemctl
