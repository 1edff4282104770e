// The parts of transfer.h, whose kernels are in files of their own.
#pragma once

#include "kernels/bench/transfer.h"

namespace shmemctl::bench {

std::string launch_puts(const KernelLaunch& how, const TransferArguments& arguments);
std::string launch_put_latency(const KernelLaunch& how, const TransferArguments& arguments);
int most_put_blocks(KernelScope scope, int device, int threads);

std::string launch_put_signal_latency(const KernelLaunch& how, const TransferArguments& arguments);

std::string launch_gets(const KernelLaunch& how, const TransferArguments& arguments);
std::string launch_get_latency(const KernelLaunch& how, const TransferArguments& arguments);
int most_get_blocks(KernelScope scope, int device, int threads);

} // namespace shmemctl::bench
