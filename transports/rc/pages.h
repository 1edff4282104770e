// Zeroed private pages of this process, for registration.
#pragma once

#include <cstddef>
#include <utility>

namespace shmemctl::rc {

/// Pages that the destructor unmaps; their registrations must be destroyed earlier.
class Pages {
public:
  Pages() = default;
  /// Throws Error (unavailable).
  /// @param what description for errors: "memory for messages"
  Pages(std::size_t size_bytes, const char* what);
  Pages(Pages&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_bytes_(other.size_bytes_) {}
  Pages& operator=(Pages&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages();

  std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }

private:
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

} // namespace shmemctl::rc
