// Local memory that is registered with UCX: every registration counts, also of memory that has one.
#include <gtest/gtest.h>

#if __has_include(<ucp/api/ucp.h>)

#include <algorithm>
#include <array>
#include <map>

#include "transports/ucx/memory.h"

namespace shmemctl::test {
namespace {

/// UCX's own functions, except those that register: a list of current registrations.
class CountedUcx {
public:
  CountedUcx() {
    std::string why;
    const std::shared_ptr<const UcxApi> opened = open_ucx("libucp.so.0", why);
    if (!opened)
      return;
    api_ = std::const_pointer_cast<UcxApi>(opened);
    registered.clear();
    api_->mem_map = map;
    api_->mem_unmap = unmap;
  }
  std::shared_ptr<const UcxApi> api() const { return api_; }

  static std::vector<std::size_t> sizes_at(const void* base) {
    std::vector<std::size_t> sizes;
    for (const auto& [handle, area] : registered)
      if (area.first == base)
        sizes.push_back(area.second);
    std::sort(sizes.begin(), sizes.end());
    return sizes;
  }

private:
  /// A handle of its own for each: UCX has one for all ranges that no transport registers.
  static ucs_status_t map(ucp_context_h, const ucp_mem_map_params_t* params, ucp_mem_h* handle) {
    static std::uintptr_t next = 1;
    *handle = reinterpret_cast<ucp_mem_h>(next++);
    registered[*handle] = {params->address, params->length};
    return UCS_OK;
  }
  static ucs_status_t unmap(ucp_context_h, ucp_mem_h handle) {
    return registered.erase(handle) == 1 ? UCS_OK : UCS_ERR_INVALID_PARAM;
  }

  inline static std::map<ucp_mem_h, std::pair<const void*, std::size_t>> registered;
  std::shared_ptr<UcxApi> api_;
};

TEST(UcxLocalMemory, ASecondAreaAtTheSamePlaceIsRegisteredToo) {
  const CountedUcx ucx;
  if (!ucx.api())
    GTEST_SKIP() << "no libucp here";
  alignas(4096) static std::array<std::byte, 16384> memory{};
  UcxMemory known;
  known.use(std::make_shared<UcxContext>(ucx.api(), UcxSettings{{"TLS", "self"}}, 1, ""));
  const auto sizes = [&] { return CountedUcx::sizes_at(memory.data()); };
  using Sizes = std::vector<std::size_t>;
  known.add_local(memory.data(), 4096);
  known.add_local(memory.data(), 16384);
  known.add_local(memory.data() + 4096, 4096);
  EXPECT_EQ(sizes(), (Sizes{4096, 16384}));
  known.remove_local(memory.data());
  EXPECT_EQ(sizes(), Sizes{4096}) << "the youngest goes, the first stays";
  known.remove_local(memory.data());
  EXPECT_EQ(sizes(), Sizes{});
  known.remove_local(memory.data()); // no mapping begins there, and the neighbour stays
  EXPECT_EQ(CountedUcx::sizes_at(memory.data() + 4096), Sizes{4096});
}

} // namespace
} // namespace shmemctl::test

#endif
