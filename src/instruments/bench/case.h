// What the engine measures: a case, its points, and the memory that it uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/instruments/bench/launch.h"
#include "src/instruments/bench/timer.h"
#include "src/runtime/runtime.h"

namespace shmemctl {
class RegisteredMemory;
}

namespace shmemctl::bench {

/// The quantity that a case's samples give.
enum class Metric {
  latency,   ///< time of one operation until it is complete, as the case defines that
  bandwidth, ///< many operations in flight; bytes per second
  rate       ///< many small operations in flight; operations per second
};

/// Which PE sends to which at one point.
enum class Traffic {
  pair,       ///< PE 0 and the first PE of another node, else PE 1 (or --pair A,B)
  pairs,      ///< PE i of the first half and PE i + n/2
  all_to_all, ///< every PE to every other one, in a different order on each PE
  collective, ///< a collective of all PEs
  local       ///< every PE copies within its own machine: nothing goes to another PE
};
enum class Direction { uni, bi };
const char* to_string(Metric metric);
const char* to_string(Traffic traffic);
const char* to_string(Direction direction);

/// A case for one initiator, as `bench --list` shows it: a variant of a row in case_table.cpp.
struct CaseInfo {
  std::string name;     ///< "put", "atomic-fetch-add", "barrier"
  std::string group;    ///< "point to point", "reference", "atomic", "collective", ...
  std::string measures; ///< what the number means, as one clause
  std::string how;      ///< a few sentences: what is in the timed loop, what is verified
  Metric metric = Metric::latency;
  bool sized = true;             ///< whether the case takes -b, -e, -f, -i and --sizes
  std::size_t element_bytes = 1; ///< sizes are multiples of this
  /// Sizes of the sweep, unless -b and -e say otherwise.
  std::size_t min_bytes = 1, max_bytes = 4 << 20;
  std::vector<std::size_t> only_bytes; ///< if not empty: the only sizes that the case supports
  /// Patterns that the case supports; the first is its default.
  std::vector<Traffic> traffics;
  bool bidirectional = false; ///< supports Direction::bi
  int min_pes = 2;
  /// Whether PEs move different amounts with Traffic::collective, as the root of a broadcast does.
  bool uneven = false;
  Initiator initiator = Initiator::host;
  LaunchRules launch = {}; ///< how kernels are launched; only used for Initiator::gpu
  /// Kinds of memory that the case's buffers may be in; the first is its default.
  std::vector<MemoryKind> memories;
  MemoryKind memory = MemoryKind::host; ///< the kind of memory in use, one of `memories`
};

/// One point of the sweep: the parameters of a row.
struct Point {
  std::size_t size_bytes = 8;
  Traffic traffic = Traffic::pair;
  Direction direction = Direction::uni;
  int window = 1;                  ///< operations in flight before each completion
  int first_pe = 0, second_pe = 1; ///< the two PEs of Traffic::pair
  bool of_matrix = false;          ///< whether it is one point of the matrix of all ordered pairs
  Launch launch{};
};

/// The first byte or word that differs from its expected value.
struct WrongByte {
  int pe = 0; ///< PE whose memory it is in
  std::uint64_t offset_bytes = 0;
  std::uint64_t expected = 0, found = 0;
  std::string what; ///< "slot 3 of iteration 17 from PE 0"
};

/// What a case may use while it runs at a point.
struct Arena {
  Runtime& runtime;
  const Point& point;
  /// `size_bytes` bytes, as requested by bytes_needed(), zeroed and aligned to 4096 bytes.
  /// Symmetric memory of the heap that the point's launch names, or a buffer registered on every
  /// PE.
  std::byte* memory = nullptr;
  std::size_t size_bytes = 0;
  std::uint64_t seed = 0; ///< the same on all PEs, different for each point of a run
  /// With MemoryKind::registered: the registration of `memory`, with the descriptors of all PEs.
  const RegisteredMemory* registered = nullptr;
};

/// The least that a collective has to move in an iteration, whatever its algorithm, in bytes of all
/// PEs together. The samples of each PE count an equal part of it. docs/explanation/bench.md
/// derives these numbers.
struct LeastTraffic {
  double loaded = 0, stored = 0; ///< from and to the PEs' memory
  double between_gpus = 0;       ///< bytes that go from one GPU to another
  bool from_root = false;        ///< only what PE 0's GPU sends counts: the other GPUs pass it on
};

/// A case at one point, on one PE. The engine calls, in the same order on all PEs: prepare(); then
/// iterate() any number of times (warm-up, calibration, samples), with a barrier before each call;
/// then, after a barrier, verify().
class Case {
public:
  virtual ~Case() = default;
  /// Size of Arena::memory that the case needs on every PE.
  virtual std::size_t bytes_needed(const Runtime& runtime, const Point& point) const = 0;
  /// Fills buffers; not timed.
  virtual void prepare(Arena& arena) = 0;
  /// Whether this PE's times count. The iterate() of other PEs takes part (answers a ping, joins a
  /// collective) or returns at once.
  virtual bool measures() const = 0;
  /// The timed part: runs operations number `first` to `first + count - 1`, which are complete on
  /// return, as the case defines that. Numbers continue over all calls at one point, so that data
  /// may depend on them. Allocates nothing; throws only what the runtime throws.
  virtual void iterate(std::uint64_t first, std::uint64_t count) = 0;
  /// How long the last iterate() took by the case's own clock, in ns. A kernel's clock, for
  /// example, does not include its launch. Nothing means that the engine's clock around iterate()
  /// counts.
  virtual std::optional<double> last_duration_ns() const { return std::nullopt; }
  /// The resolution and cost of that clock. Called after prepare().
  virtual std::optional<TimerQuality> timer() const { return std::nullopt; }
  /// Payload bytes and operations that this PE issues in one iteration, each counted once.
  virtual std::uint64_t bytes_per_iteration() const = 0;
  virtual std::uint64_t operations_per_iteration() const { return 1; }
  /// The least traffic of a collective, from which its share of the limit is computed; nothing for
  /// other cases. Called after prepare().
  /// @param gpu_of_pe number of each PE's GPU, from 0
  virtual std::optional<LeastTraffic> min_traffic(const std::vector<int>& gpu_of_pe) const {
    static_cast<void>(gpu_of_pe);
    return std::nullopt;
  }
  /// The reported latency is the time of an operation divided by this: 2 if an operation is a round
  /// trip, of which half is reported.
  virtual int latency_divisor() const { return 1; }
  /// Why the case cannot run on this PE, given how it reaches the others; "" if it can. Called on
  /// all PEs before prepare(); the point is skipped if any PE has a reason.
  virtual std::string cannot_run(Runtime& runtime) const {
    static_cast<void>(runtime);
    return "";
  }
  /// What carries this PE's operations, if that is not the transport of the heap that the point's
  /// launch names: "registered buffer (zero-copy)". Empty means that transport. Called after
  /// prepare().
  virtual std::vector<std::string> carriers() const { return {}; }
  /// Traffic so far that does not go through the runtime's transports, by port, counted in the same
  /// way as theirs. Called after prepare().
  virtual std::vector<NicTraffic> traffic() const { return {}; }
  /// The number of iterations in a sample is a multiple of this, or less with a small -n: the size
  /// of a window if iterate() completes a window of operations at once. The same on all PEs.
  virtual std::uint64_t batch_multiple() const { return 1; }
  /// Does the work of iterations `first` to `first + count - 1` in the way that they are compared
  /// with: a memcpy of the same sizes between the same buffers if the path is loads and stores; for
  /// a proxy case, the same calls without the proxy. Timed before each sample, as the limit that
  /// link_fraction refers to: called right before iterate() of the same numbers. Must not leave the
  /// data that verification expects of these iterations (that of earlier ones is fine). Returns
  /// false at once if there is no such way; called with count 0 to find out.
  virtual bool reference(std::uint64_t first, std::uint64_t count) {
    static_cast<void>(first);
    static_cast<void>(count);
    return false;
  }
  /// Untimed: checks what `iterations` iterations must have left in this PE's memory. Nothing if it
  /// is right.
  virtual std::optional<WrongByte> verify(std::uint64_t iterations) = 0;
  /// Why verify() checks nothing; "" if it does.
  virtual std::string unverified_reason() const { return ""; }
};

/// Makes a case for a point.
using MakeCase = std::unique_ptr<Case> (*)(const Point&);

/// A case of the table for one initiator. (std::function, because tests use cases with state.)
struct BenchCase {
  CaseInfo info;
  std::function<std::unique_ptr<Case>(const Point&)> make;
};

/// The cases of one initiator, in the order of --list. They are functions instead of static
/// objects, so that nothing depends on the order of initialisation.
std::vector<BenchCase> host_cases();
std::vector<BenchCase> gpu_cases();
std::vector<BenchCase> stream_cases();
/// The initiator's cases whose buffers may be in that kind of memory.
std::vector<BenchCase> cases_of(Initiator initiator, MemoryKind memory);
/// The cases whose name equals one of the patterns or matches it with * and ?; "all" selects all.
/// Throws Error (usage) for a pattern that matches none. The error names the flags with which such
/// a case exists, or else cases with similar names, if there are any.
std::vector<BenchCase> choose_cases(const std::vector<BenchCase>& cases,
                                    const std::vector<std::string>& patterns);

} // namespace shmemctl::bench
