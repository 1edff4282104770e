// A kernel that checks what a stream of another PE puts here, the moment its signal has arrived.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace shmemctl::test {

/// Where a round's data and words are.
struct StreamWatch {
  const std::uint64_t*
      /// Every byte is the last eight bits of the round's number.
      data;
  std::size_t words;           ///< number of words of 8 bytes
  const std::uint64_t* signal; ///< becomes the round's number behind the data
  std::uint64_t* answer;       ///< at the PE that puts, mapped: the last round that was checked
  std::uint64_t rounds;
  std::uint64_t timeout_ns; ///< limit of a wait
};
/// What it has seen, in memory of the device.
struct StreamFindings {
  unsigned long long late;   ///< words that had not arrived yet
  unsigned long long looked; ///< rounds
};

/// One block, until all rounds have come or a wait gives up; then fewer rounds were checked.
cudaError_t launch_watch_stream(cudaStream_t stream, const StreamWatch& watch,
                                StreamFindings* findings);

} // namespace shmemctl::test
