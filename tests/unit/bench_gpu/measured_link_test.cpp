#include "src/bench/measured_link.h"

#include <gtest/gtest.h>

namespace shmemctl::bench {
namespace {

LinkMeasurement some_measurement() {
  LinkMeasurement measured;
  measured.link.emplace();
  measured.link->stores_GBps = {369, 0, 350};
  measured.link->loads_GBps = {365, 0, 366};
  measured.link->blocks = 132;
  measured.link->threads = 1024;
  measured.link->message_bytes = 1 << 20;
  measured.link->traffic = "pairs";
  return measured;
}

TEST(MeasuredLink, AllThatSendAddUp) {
  const LinkLimit model{956, "2 GPUs' NVLink", 18};
  const auto limit = limit_of(some_measurement(), model);
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->rate_GBps, 369 + 366);
  EXPECT_EQ(limit->links, 18);
  EXPECT_EQ(limit->name, "735 GB/s measured (loads, 132 blocks of 1024 threads, messages of 1M, "
                         "pairs); 2 GPUs' NVLink");
  EXPECT_EQ(limit_of(some_measurement(), std::nullopt)->rate_GBps, 735);
}

TEST(MeasuredLink, ElseTheModelIsTheLimit) {
  const LinkLimit model{478, "NVLink: 478 GB/s by the model", 18};
  EXPECT_EQ(limit_of({std::nullopt, "there are no GPUs"}, model)->name, model.name);
  LinkMeasurement nobody = some_measurement();
  nobody.link->stores_GBps = nobody.link->loads_GBps = {0, 0, 0};
  EXPECT_EQ(limit_of(nobody, model)->rate_GBps, 478);
  EXPECT_FALSE(limit_of({std::nullopt, "there are no GPUs"}, std::nullopt));
}

} // namespace
} // namespace shmemctl::bench
