// The launchers of a build without CUDA.
#include "kernels/moe/cast.h"
#include "kernels/moe/check.h"
#include "kernels/moe/high_throughput.h"
#include "kernels/moe/high_throughput_internode.h"
#include "kernels/moe/low_latency.h"
#include "kernels/moe/low_latency_internode.h"
#include "kernels/moe/pack.h"

namespace shmemctl::moe {

namespace {
constexpr const char* absent = "this binary was built without CUDA";
}

std::string launch_notify(const DeviceJob&, const NotifyArguments&, void*) {
  return absent;
}
std::string launch_dispatch(const DeviceJob&, const DispatchArguments&, void*) {
  return absent;
}
std::string launch_combine(const DeviceJob&, const CombineArguments&, void*) {
  return absent;
}
std::string launch_hybrid_notify(const DeviceJob&, const HybridNotify&, void*) {
  return absent;
}
std::string launch_hybrid_dispatch(const DeviceJob&, const HybridDispatch&, void*) {
  return absent;
}
std::string launch_hybrid_combine(const DeviceJob&, const HybridCombine&, void*) {
  return absent;
}
std::string launch_far_latency_dispatch(const DeviceJob&, const FarLatencyDispatch&,
                                        LowLatencyCalls&, void*) {
  return absent;
}
std::string launch_far_latency_combine(const DeviceJob&, const FarLatencyCombine&, LowLatencyCalls&,
                                       void*) {
  return absent;
}
std::string launch_low_latency_dispatch(const DeviceJob&, const LowLatencyDispatch&,
                                        LowLatencyCalls&, void*) {
  return absent;
}
std::string launch_low_latency_combine(const DeviceJob&, const LowLatencyCombine&, LowLatencyCalls&,
                                       void*) {
  return absent;
}
std::string launch_pack(const DeviceJob&, const PackArguments&, void*) {
  return absent;
}
std::string launch_cast(const CastArguments&, void*) {
  return absent;
}
std::string launch_fill(const FillArguments&, void*) {
  return absent;
}
std::string launch_check_rows(const CheckRowsArguments&, void*) {
  return absent;
}
std::string launch_check_untouched(const std::byte*, std::size_t, Wrong*, void*) {
  return absent;
}
std::string launch_experts(const ExpertArguments&, void*) {
  return absent;
}
std::string launch_check_combined(const CheckCombinedArguments&, void*) {
  return absent;
}

} // namespace shmemctl::moe
