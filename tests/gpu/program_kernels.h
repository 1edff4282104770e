// Kernels of the conformance tests.
#pragma once

#include "tests/gpu/device_kernels.h"
#include "tests/support/collective_calls.h"
#include "tests/support/rma_program.h"

namespace shmemctl::test {

/// One block of this PE runs the steps (device memory); `gave_up` becomes 1 if a wait did.
void launch_rma_program(const DeviceJob& job, Who who, int threads, const RmaStep* steps, int count,
                        std::uint64_t* gave_up);

/// The calls (device memory) by one scope of this PE; counts what is wrong.
void launch_collectives(const DeviceJob& job, Who who, int threads, const Call* calls, int count,
                        std::uint64_t* wrong);
/// The same by all blocks of a launch, which must fit the device together.
void launch_collectives_of_grid(const DeviceJob& job, Shape shape, const Call* calls, int count,
                                std::uint64_t* wrong);

/// Every kind of wait and test on words that the peer writes; counts what is wrong. Of PE 0 and 1.
void launch_waits(const DeviceJob& job, Who who, int threads, std::uint64_t* wrong);

} // namespace shmemctl::test
