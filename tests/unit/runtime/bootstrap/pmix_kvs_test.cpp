// The fences of the PMIx bootstrap when a job ends, against a fake PMIx. The real one is in
// tests/integration/test_bootstraps_kvs.py.
#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <utility>

#include "src/base/dynamic_library.h"
#include "src/runtime/bootstrap/select.h"
#include "tests/support/soon.h"

namespace shmemctl {
namespace {

using test::soon;

class FakePmix {
public:
  explicit FakePmix(int fences_of_rank_1)
      : library_(DynamicLibrary::open({SHMEMCTL_FAKE_PMIX}, nullptr, {.stay_loaded = true})) {
    library_->function<void(int)>("fake_pmix_reset")(fences_of_rank_1);
  }
  void join(int fences, bool ends = false) {
    library_->function<void(int, bool)>("fake_pmix_join")(fences, ends);
  }
  int begun() const { return fences().first; }
  int open() const { return fences().first - fences().second; }

private:
  std::pair<int, int> fences() const {
    std::pair<int, int> count;
    library_->function<void(int*, int*)>("fake_pmix_fences")(&count.first, &count.second);
    return count;
  }
  std::optional<DynamicLibrary> library_;
};

std::unique_ptr<Bootstrap> opened() {
  const Options options(Environment{{"SHMEMCTL_PMIX_LIBRARY", SHMEMCTL_FAKE_PMIX}});
  BootstrapRequest request;
  request.options = &options;
  request.environment = {{"PMIX_NAMESPACE", "fake"}};
  return open_pmix(request, soon());
}

struct FailedJob final : JobHealth {
  void check() const override { throw Error(ExitCode::unavailable, "PE 1", "run", "gone", "fix"); }
};

TEST(PmixKvs, AFenceInWhichAnotherProcessEndsIsTheLast) {
  FakePmix fake(1);
  auto bootstrap = opened();
  std::thread rank_1([&] { fake.join(2, true); });
  EXPECT_THROW(bootstrap->barrier(soon()), Error);
  bootstrap.reset();
  EXPECT_EQ(fake.begun(), 2);
  EXPECT_EQ(fake.open(), 0);
  rank_1.join();
}

TEST(PmixKvs, AnAbandonedFenceIsAwaited) {
  FakePmix fake(1);
  auto bootstrap = opened();
  FailedJob failed;
  bootstrap->watch(&failed);
  EXPECT_THROW(bootstrap->barrier(soon()), Error);
  EXPECT_EQ(fake.open(), 1);
  std::thread rank_1([&] { fake.join(2, true); });
  bootstrap.reset();
  EXPECT_EQ(fake.begun(), 2);
  EXPECT_EQ(fake.open(), 0);
  rank_1.join();
}

TEST(PmixKvs, AnAbandonedFenceThatSucceedsIsNotTheLast) {
  FakePmix fake(1);
  auto bootstrap = opened();
  FailedJob failed;
  bootstrap->watch(&failed);
  EXPECT_THROW(bootstrap->barrier(soon()), Error);
  std::thread rank_1([&] {
    fake.join(2);
    fake.join(3, true);
  });
  bootstrap.reset();
  EXPECT_EQ(fake.begun(), 3);
  EXPECT_EQ(fake.open(), 0);
  rank_1.join();
}

TEST(PmixKvs, AProcessThatFailsElsewhereTakesPartInOneFence) {
  FakePmix fake(1);
  auto bootstrap = opened();
  EXPECT_EQ(fake.begun(), 1);
  std::thread rank_1([&] { fake.join(2); });
  bootstrap.reset();
  EXPECT_EQ(fake.begun(), 2);
  EXPECT_EQ(fake.open(), 0);
  rank_1.join();
}

TEST(PmixKvs, TheLastFenceHasADeadline) {
  FakePmix fake(1);
  opened().reset(); // would hang
  EXPECT_EQ(fake.open(), 1);
  fake.join(2); // no thread is left in the library
  while (fake.open() != 0)
    std::this_thread::yield();
}

TEST(PmixKvs, NoFenceFollowsTheEndOfAJob) {
  FakePmix fake(2);
  auto bootstrap = opened();
  bootstrap->finish(soon());
  bootstrap.reset();
  EXPECT_EQ(fake.begun(), 2);

  FakePmix again(1);
  bootstrap = opened();
  bootstrap->leave(soon());
  bootstrap.reset();
  EXPECT_EQ(again.begun(), 1);

  FakePmix aborted(1);
  bootstrap = opened();
  bootstrap->abort(ExitCode::unavailable, "the test");
  bootstrap.reset();
  EXPECT_EQ(aborted.begun(), 1);
}

} // namespace
} // namespace shmemctl
