#include <vector>

#include "kernels/moe/high_throughput_copies.cuh"
#include "kernels/moe/launch.cuh"

namespace shmemctl::moe {

/// Streams to the other ranks, and the events that join them with the caller's.
struct CopyStreams::Handles {
  std::vector<cudaStream_t> streams; ///< by rank
  std::vector<cudaEvent_t> done;     ///< by rank: recorded after its copies so far
  cudaEvent_t begun = nullptr; ///< recorded in the caller's stream: from here on copies may begin
};

CopyStreams::~CopyStreams() {
  if (handles_ == nullptr)
    return;
  for (const cudaStream_t stream : handles_->streams)
    cudaStreamDestroy(stream);
  for (const cudaEvent_t event : handles_->done)
    cudaEventDestroy(event);
  if (handles_->begun != nullptr)
    cudaEventDestroy(handles_->begun);
  delete handles_;
}

std::string CopyStreams::open(std::int32_t n_ranks) {
  handles_ = new Handles;
  cudaError_t error = cudaEventCreateWithFlags(&handles_->begun, cudaEventDisableTiming);
  for (std::int32_t rank = 0; rank < n_ranks && error == cudaSuccess; ++rank) {
    cudaStream_t stream = nullptr;
    cudaEvent_t done = nullptr;
    error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error != cudaSuccess)
      break;
    handles_->streams.push_back(stream);
    error = cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
    if (error == cudaSuccess)
      handles_->done.push_back(done);
  }
  return error_text(error);
}

namespace {

/// One call's copies: after begin(), to each other rank, each on its stream; join() ends them.
class Copies {
public:
  Copies(const DeviceJob& job, const CopiedMemory& memory, const std::int64_t* heap_delta_bytes,
         std::int32_t n_ranks, const CopyStreams& streams, void* stream)
      : job_(job), memory_(memory), deltas_(heap_delta_bytes), n_ranks_(n_ranks),
        handles_(*streams.handles()), stream_(static_cast<cudaStream_t>(stream)) {}

  std::string begin(CallFlags* flags) {
    constexpr int threads = 32;
    std::string failure = launch_blocks(
        begin_copies, job_, CopyBegin{flags, memory_.number, n_ranks_}, 1, threads, 0, stream_);
    if (!failure.empty())
      return failure;
    cudaError_t error = cudaEventRecord(handles_.begun, stream_);
    for (std::int32_t rank = 0; rank < n_ranks_ && error == cudaSuccess; ++rank)
      if (rank != job_.pe)
        error = cudaStreamWaitEvent(handles_.streams[static_cast<std::size_t>(rank)],
                                    handles_.begun, 0);
    return error_text(error);
  }
  /// Copies to `rank`, into row `first` of this rank's rows there, and then the number behind it.
  std::string copy(std::int32_t rank, std::int32_t piece, std::int64_t first_bytes,
                   const std::byte* from, std::int64_t size_bytes) {
    const cudaStream_t stream = handles_.streams[static_cast<std::size_t>(rank)];
    cudaError_t error = cudaSuccess;
    if (size_bytes > 0)
      error = cudaMemcpyAsync(at(rank, memory_.rows) + first_bytes, from,
                              static_cast<std::size_t>(size_bytes), cudaMemcpyDefault, stream);
    if (error == cudaSuccess)
      error = cudaMemcpyAsync(at(rank, memory_.arrived) +
                                  static_cast<std::ptrdiff_t>(job_.pe) * max_pieces + piece,
                              memory_.number, sizeof(std::uint64_t), cudaMemcpyDefault, stream);
    return error_text(error);
  }
  /// The caller's stream goes on when all copies are complete.
  std::string join() {
    cudaError_t error = cudaSuccess;
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(n_ranks_) && error == cudaSuccess;
         ++rank) {
      if (static_cast<std::int32_t>(rank) == job_.pe)
        continue;
      error = cudaEventRecord(handles_.done[rank], handles_.streams[rank]);
      if (error == cudaSuccess)
        error = cudaStreamWaitEvent(stream_, handles_.done[rank], 0);
    }
    return error_text(error);
  }
  /// The i-th other rank: each begins with the next higher one, so that not all send to the same.
  std::int32_t other(std::int32_t i) const { return (job_.pe + 1 + i) % n_ranks_; }

private:
  template <class T>
  T* at(std::int32_t rank, T* mine) const {
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(mine) +
                                static_cast<std::uintptr_t>(deltas_[rank]));
  }

  const DeviceJob& job_;
  const CopiedMemory& memory_;
  const std::int64_t* deltas_;
  std::int32_t n_ranks_;
  const CopyStreams::Handles& handles_;
  cudaStream_t stream_;
};

template <class Kernel>
std::string refuse(Kernel kernel, const Shape& shape) {
  std::string refused = refuse_shape(shape);
  return refused.empty() ? refuse_old_code(kernel) : refused;
}

} // namespace

std::string launch_row_copies(const DeviceJob& job, const CopiedDispatch& arguments,
                              const CopyStreams& streams, void* stream) {
  const DispatchArguments& given = arguments.dispatch;
  if (std::string refused = refuse(copied_metadata, given.shape); !refused.empty())
    return refused;
  Copies copies(job, arguments.copied, arguments.heap_delta_bytes, given.shape.n_ranks, streams,
                stream);
  std::string failure = copies.begin(given.memory.flags);
  const std::int64_t value_bytes = given.shape.value_bytes(given.format);
  for (std::int32_t i = 0; i + 1 < given.shape.n_ranks && failure.empty(); ++i)
    failure = copies.copy(copies.other(i), 0, job.pe * given.shape.max_tokens * value_bytes,
                          given.values, given.tokens * value_bytes);
  return failure;
}

std::string launch_copied_metadata(const DeviceJob& job, const CopiedDispatch& arguments,
                                   const CopyStreams& streams, void* stream) {
  const DispatchArguments& given = arguments.dispatch;
  constexpr int threads = 512;
  const std::string failure =
      launch_blocks(copied_metadata, job, arguments, given.tuning.sms, threads, 0, stream);
  return failure.empty() ? Copies(job, arguments.copied, arguments.heap_delta_bytes,
                                  given.shape.n_ranks, streams, stream)
                               .join()
                         : failure;
}

std::string launch_copied_combine(const DeviceJob& job, const CopiedCombine& arguments,
                                  const CopyStreams& streams, void* stream) {
  const CombineArguments& given = arguments.combine;
  const std::int32_t n_ranks = given.shape.n_ranks;
  if (given.combined_weights != nullptr)
    return "copy engines return no weights";
  if (arguments.pieces < 1 || arguments.pieces > max_pieces)
    return "rows are copied in 1 to " + std::to_string(max_pieces) + " pieces";
  if (std::string refused = refuse_slots(given.slots, n_ranks); !refused.empty())
    return refused;
  const auto kernel = n_ranks <= 2   ? combine_copied<2>
                      : n_ranks <= 4 ? combine_copied<4>
                                     : combine_copied<8>;
  if (std::string refused = refuse(kernel, given.shape); !refused.empty())
    return refused;
  Copies copies(job, arguments.copied, arguments.heap_delta_bytes, n_ranks, streams, stream);
  std::string failure = copies.begin(given.memory.flags);
  const std::int64_t row_bytes = std::int64_t{given.shape.hidden} * 2;
  const CopyPieces pieces = CopyPieces::of(given.shape.max_tokens, arguments.pieces);
  for (std::int32_t piece = 0; piece < arguments.pieces && failure.empty(); ++piece)
    for (std::int32_t i = 0; i + 1 < n_ranks && failure.empty(); ++i) {
      const std::int32_t home = copies.other(i), rows = arguments.counts[home * n_ranks + job.pe];
      if (piece >= pieces.count(rows))
        continue;
      const std::int64_t base = base_of(arguments.counts, n_ranks, home, job.pe);
      const std::int64_t begin = pieces.begin(piece);
      failure = copies.copy(
          home, piece,
          (static_cast<std::int64_t>(job.pe) * given.shape.max_tokens + begin) * row_bytes,
          given.memory.outputs + (base + begin) * row_bytes, pieces.size(piece, rows) * row_bytes);
    }
  const bool beside = given.tuning.sms > 0;
  if (failure.empty() && !beside)
    failure = copies.join();
  if (failure.empty())
    failure = launch_blocks(kernel, job, arguments, beside ? given.tuning.sms : arguments.tail_sms,
                            given.tuning.warps * 32,
                            ring_shared_bytes(given.slots, given.tuning.warps, given.chunk_bytes),
                            stream);
  return failure.empty() && beside ? copies.join() : failure;
}

} // namespace shmemctl::moe
