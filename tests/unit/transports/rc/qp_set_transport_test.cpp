// Which QP set serves a context.
#include "transports/rc/qp_set_transport.h"

#include <gtest/gtest.h>

#include <set>

namespace shmemctl::rc {
namespace {

TEST(QpSets, TheDefaultContextHasItsOwn) {
  for (std::size_t qp_sets = 2; qp_sets < 6; ++qp_sets)
    for (int context = 1; context < 20; ++context)
      EXPECT_NE(qp_set_of(context, qp_sets), qp_set_of(0, qp_sets));
}

TEST(QpSets, OtherContextsShareTheRest) {
  for (std::size_t qp_sets = 1; qp_sets < 6; ++qp_sets) {
    std::set<std::size_t> used;
    for (int context = 0; context < 20; ++context)
      used.insert(qp_set_of(context, qp_sets));
    EXPECT_EQ(used.size(), qp_sets);
    EXPECT_EQ(*used.rbegin(), qp_sets - 1);
  }
}

} // namespace
} // namespace shmemctl::rc
