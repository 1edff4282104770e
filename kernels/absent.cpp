// Functions that replace those with kernels in a build without CUDA, and fail: the probe of
// devices, the check of pairs, and operations on streams.
#include "kernels/device_probe.h"
#include "kernels/on_stream.h"
#include "kernels/pair_check.h"
#include "src/base/error.h"

namespace shmemctl {

std::vector<DeviceProbe> probe_devices(std::string& why, std::size_t /*words*/) {
  why = "this binary was built without CUDA";
  return {};
}

} // namespace shmemctl

namespace shmemctl::kernel_check {

std::string launch(Step, const DeviceJob&, std::byte*, const Layout&, std::uint64_t, void*) {
  return "this shmemctl was built without CUDA";
}

} // namespace shmemctl::kernel_check

namespace shmemctl::on_stream {

namespace {
[[noreturn]] void refuse() {
  throw Error(ExitCode::unavailable, "operation on a stream", "launch",
              "this shmemctl was built without CUDA",
              "rebuild with the CMake option SHMEMCTL_CUDA=ON");
}
} // namespace

Job::Job(const DeviceJob&) {
  refuse();
}
std::byte* Job::address(const void*, int) const {
  return nullptr;
}
void put(const Job&, void*, const void*, std::size_t, int, Stream) {
  refuse();
}
void get(const Job&, void*, const void*, std::size_t, int, Stream) {
  refuse();
}
void put_signal(const Job&, void*, const void*, std::size_t, std::uint64_t*, std::uint64_t,
                device::SignalOp, int, Stream) {
  refuse();
}
void signal(const Job&, std::uint64_t*, std::uint64_t, device::SignalOp, int, Stream) {
  refuse();
}
void wait_until(const Job&, const std::uint64_t*, device::Compare, std::uint64_t, int, Stream) {
  refuse();
}
void quiet(const Job&, Stream) {
  refuse();
}
void barrier(const Job&, int, Stream) {
  refuse();
}
void sync(const Job&, int, Stream) {
  refuse();
}
void broadcast(const Job&, int, void*, const void*, std::size_t, int, Stream) {
  refuse();
}
void fcollect(const Job&, int, void*, const void*, std::size_t, Stream) {
  refuse();
}
void alltoall(const Job&, int, void*, const void*, std::size_t, Stream) {
  refuse();
}
void alltoallv(const Job&, int, void*, const void*, const ExchangeLists&, Stream) {
  refuse();
}
void reduce(const Job&, int, void*, const void*, std::size_t, NumberType, device::ReduceOp,
            Stream) {
  refuse();
}
void reducescatter(const Job&, int, void*, const void*, std::size_t, NumberType, device::ReduceOp,
                   Stream) {
  refuse();
}

} // namespace shmemctl::on_stream
