// The pages of another process's buffer, mapped here one behind the other.
#pragma once

#include <vector>

#include "src/base/file_descriptor.h"
#include "src/runtime/buffers/message.h"

namespace shmemctl::buffers {

class PagesView {
public:
  /// Throws Error (unavailable): a file is smaller than it should be, or the system refuses.
  PagesView(const std::vector<FilePart>& parts, const std::vector<FileDescriptor>& files,
            bool writable);
  ~PagesView();
  PagesView(const PagesView&) = delete;
  PagesView& operator=(const PagesView&) = delete;
  std::byte* base() const { return base_; } ///< of the first page
  std::size_t size_bytes() const { return size_bytes_; }

private:
  void map(const std::vector<FilePart>& parts, const std::vector<FileDescriptor>& files,
           bool writable);
  std::byte* base_ = nullptr;
  std::size_t size_bytes_ = 0;
};

} // namespace shmemctl::buffers
