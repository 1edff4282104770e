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
std::string launch_internode_notify(const DeviceJob&, const InternodeNotify&, void*) {
  return absent;
}
std::string launch_internode_dispatch(const DeviceJob&, const InternodeDispatch&, void*) {
  return absent;
}
std::string launch_internode_combine(const DeviceJob&, const InternodeCombine&, void*) {
  return absent;
}
std::string launch_low_latency_internode_dispatch(const DeviceJob&,
                                                  const LowLatencyInternodeDispatch&,
                                                  LowLatencyCalls&, void*) {
  return absent;
}
std::string launch_low_latency_internode_combine(const DeviceJob&,
                                                 const LowLatencyInternodeCombine&,
                                                 LowLatencyCalls&, void*) {
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
std::string launch_check_untouched(const std::byte*, std::size_t, Mismatch*, void*) {
  return absent;
}
std::string launch_experts(const ExpertArguments&, void*) {
  return absent;
}
std::string launch_check_combined(const CheckCombinedArguments&, void*) {
  return absent;
}

} // namespace shmemctl::moe
