#include "src/runtime/cuda/driver.h"

#include <set>
#include <string>

#include "tests/support/other_threads.h"
#include "tests/support/set_variable.h"
#include "tests/unit/runtime/cuda/drivers.h"

namespace shmemctl::test {
namespace {

using DriverTest = OverDrivers;

TEST_P(DriverTest, DescribesEachDevice) {
  ASSERT_FALSE(driver->devices().empty());
  EXPECT_GE(driver->version(), 12000);
  std::set<std::string> places, uuids;
  for (const cuda::DeviceInfo& info : driver->devices()) {
    EXPECT_NE(info.name, "");
    EXPECT_EQ(info.pci_address.size(), std::string("0000:1a:00.0").size()) << info.pci_address;
    EXPECT_EQ(info.uuid.size(), std::string("GPU-").size() + 36) << info.uuid;
    EXPECT_GT(info.multiprocessors, 0);
    EXPECT_GT(info.memory_GBps, 100);
    EXPECT_LT(info.memory_GBps, 100000);
    EXPECT_GT(info.total_bytes, std::size_t{256} << 20);
    places.insert(info.pci_address);
    uuids.insert(info.uuid);
  }
  EXPECT_EQ(places.size(), driver->devices().size());
  EXPECT_EQ(uuids.size(), driver->devices().size());
}

TEST_P(DriverTest, CreatesAndDestroysStreamsAndContexts) {
  const auto first = device();
  for (int i = 0; i < 3; ++i) {
    const cuda::Stream stream(first);
    stream.synchronize();
  }
}

TEST_P(DriverTest, ItsThreadsTakeNoSignalsOfTheProgram) {
  const SetVariable threads("FAKE_CUDA_THREADS", "1");
  driver = open_driver(GetParam()); // the fake one starts anew
  const auto opened = device();
  std::size_t of_fake = 0;
  for (const OtherThread& thread : other_threads()) {
    of_fake += thread.name.starts_with("fake-");
    EXPECT_FALSE(thread.takes_signals) << thread.name;
  }
  if (GetParam() != real_driver()) {
    EXPECT_EQ(of_fake, 2u);
  }
}

INSTANTIATE_TEST_SUITE_P(, DriverTest, both_drivers(), name_of_driver);

TEST(CudaDriver, ReportsAMissingLibrary) {
  std::string why;
  EXPECT_EQ(cuda::Driver::open("libcuda-of-nobody.so.1", why), nullptr);
  EXPECT_NE(why.find("libcuda-of-nobody.so.1"), std::string::npos) << why;
}

TEST(CudaDriver, ReportsAnInvalidLibrary) {
  std::string why;
  EXPECT_EQ(cuda::Driver::open("libc.so.6", why), nullptr);
  EXPECT_NE(why.find("cuGetProcAddress"), std::string::npos) << why;
}

TEST(CudaDriver, NamesAMissingFunction) {
  const SetVariable without("FAKE_CUDA_WITHOUT", "cuMemSetAccess");
  std::string why;
  EXPECT_EQ(cuda::Driver::open(SHMEMCTL_FAKE_CUDA, why), nullptr);
  EXPECT_NE(why.find("cuMemSetAccess"), std::string::npos) << why;
}

// cuGetProcAddress refuses versions that are newer than the driver's own.
TEST(CudaDriver, OlderDriversOpenToo) {
  for (const int version : {12000, 12020, 12040, 12090, CUDA_VERSION + 1000}) {
    const SetVariable old("FAKE_CUDA_DRIVER", std::to_string(version));
    std::string why;
    const auto driver = cuda::Driver::open(SHMEMCTL_FAKE_CUDA, why);
    ASSERT_TRUE(driver) << version << ": " << why;
    EXPECT_EQ(driver->version(), version);
    EXPECT_EQ(driver->devices().size(), 2u);
    const auto device = std::make_shared<const cuda::Device>(driver, 0);
    const cuda::Stream stream(device);
    const cuda::HostBuffer here(device, 8);
    const cuda::DeviceBuffer there(device, 8);
    here.data()[0] = std::byte{7};
    cuda::copy_now(stream, there.data(), here.data(), 8);
    here.data()[0] = std::byte{0};
    cuda::copy_now(stream, here.data(), there.data(), 8);
    EXPECT_EQ(here.data()[0], std::byte{7});
  }
}

TEST(CudaDriver, NoDeviceIsSaid) {
  const SetVariable none("FAKE_CUDA_DEVICES", "0");
  std::string why;
  EXPECT_EQ(cuda::Driver::open(SHMEMCTL_FAKE_CUDA, why), nullptr);
  EXPECT_EQ(why, "no GPU is visible");
}

TEST(CudaDriver, ADeviceBeyondTheLastIsAUsageError) {
  const auto driver = open_driver(SHMEMCTL_FAKE_CUDA);
  ASSERT_TRUE(driver);
  try {
    const cuda::Device device(driver, 7);
    FAIL() << "device 7 of 2";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(error.message().find("GPU 7"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("the number of visible GPUs is 2"), std::string::npos)
        << error.message();
  }
}

TEST(CudaDriver, PesUseDevicesRoundRobinOrByList) {
  EXPECT_EQ(cuda::device_of_pe(0, 4, {}), 0);
  EXPECT_EQ(cuda::device_of_pe(5, 4, {}), 1);
  EXPECT_EQ(cuda::device_of_pe(1, 4, {3, 2}), 2);
  EXPECT_EQ(cuda::device_of_pe(2, 4, {3, 2}), 3);
}

} // namespace
} // namespace shmemctl::test
