#include "src/instruments/bench/nccl_bandwidth.h"

#include <algorithm>

#include "src/base/text.h"

namespace shmemctl::bench {

namespace {

/// How nccl-tests reports one of our cases.
struct Operation {
  const char* name; ///< name of the case up to its first "-", as in "reduce-float"
  bool size_of_all; ///< whether the size in its output is that of all PEs' parts together
  double (*factor)(double n_pes);
};

double once(double) {
  return 1;
}
double of_others(double n_pes) {
  return (n_pes - 1) / n_pes;
}
double there_and_back(double n_pes) {
  return 2 * (n_pes - 1) / n_pes;
}

constexpr Operation operations[] = {{"broadcast", false, once},          // broadcast_perf
                                    {"fcollect", true, of_others},       // all_gather_perf
                                    {"collect", true, of_others},        // all_gather_perf
                                    {"alltoall", true, of_others},       // alltoall_perf
                                    {"reduce", false, there_and_back},   // all_reduce_perf
                                    {"reducescatter", true, of_others}}; // reduce_scatter_perf

} // namespace

std::optional<NcclBandwidth> nccl_bandwidth(const std::string& case_name, std::size_t size_bytes,
                                            int n_pes, double time_us) {
  if (n_pes < 1 || !(time_us > 0))
    return std::nullopt;
  const std::string operation = split(case_name, '-').front();
  const auto* const found =
      std::find_if(std::begin(operations), std::end(operations),
                   [&](const Operation& one) { return operation == one.name; });
  if (found == std::end(operations))
    return std::nullopt;
  const double bytes = static_cast<double>(size_bytes) * (found->size_of_all ? n_pes : 1);
  const double algorithm = bytes / time_us * 1e-3;
  return NcclBandwidth{algorithm, algorithm * found->factor(n_pes)};
}

} // namespace shmemctl::bench
