#include <gtest/gtest.h>
#include <thread>

#include "src/runtime/buffers/open_buffer.h"

namespace shmemctl::buffers {
namespace {

constexpr BufferHandle first{3, 10}, second{3, 11};

Deadline soon() {
  return Deadline::after(std::chrono::milliseconds(20));
}

TEST(MappingRefcounts, CountsByOwnerAndGeneration) {
  const auto book = std::make_shared<MappingRefcounts>();
  EXPECT_TRUE(book->wait_until_gone(0, first, soon()));
  {
    const MappingRefcounts::Entry one(book, 0, first);
    EXPECT_FALSE(book->wait_until_gone(0, first, soon()));
    EXPECT_TRUE(book->wait_until_gone(0, second, soon()));
    EXPECT_TRUE(book->wait_until_gone(1, first, soon()));
    const MappingRefcounts::Entry again(book, 0, first);
  }
  EXPECT_TRUE(book->wait_until_gone(0, first, soon()));
}

TEST(MappingRefcounts, AWaitEndsWithTheLastMapping) {
  const auto book = std::make_shared<MappingRefcounts>();
  auto held = std::make_unique<MappingRefcounts::Entry>(book, 0, first);
  std::thread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    held.reset();
  });
  EXPECT_TRUE(book->wait_until_gone(0, first, Deadline::after(std::chrono::seconds(30))));
  ends.join();
}

} // namespace
} // namespace shmemctl::buffers
