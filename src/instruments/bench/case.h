// What the engine measures: a case, its points, and the memory it works in.
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

/// What a case's samples mean.
enum class Metric {
  latency,   ///< time of one operation until it is complete as the case defines
  bandwidth, ///< many operations under way; bytes per second
  rate       ///< many small operations under way; operations per second
};

/// Which PE sends to which at one point.
enum class Traffic {
  pair,       ///< PE 0 and PE 1 (or --pair A,B)
  pairs,      ///< PE i of the first half and PE i + n/2
  all_to_all, ///< every PE to every other one, each in an order of its own
  collective, ///< all PEs of the team
  local       ///< every PE within its own machine: nothing goes to another PE
};
enum class Direction { uni, bi };
const char* to_string(Metric metric);
const char* to_string(Traffic traffic);
const char* to_string(Direction direction);

/// One case by one initiator, as `bench --list` shows it: a row of the table in case_table.cpp.
struct CaseInfo {
  std::string name;     ///< "put", "atomic-fetch-add", "barrier"
  std::string group;    ///< "point to point", "reference", "atomic", "collective", ...
  std::string measures; ///< one clause: what the number is
  std::string how;      ///< a few sentences: what is in the timed loop, what is verified
  Metric metric = Metric::latency;
  bool sized = true;             ///< takes -b, -e, -f
  std::size_t element_bytes = 1; ///< sizes are multiples of this
  /// Sizes of the sweep, unless -b and -e say otherwise.
  std::size_t min_bytes = 1, max_bytes = 4 << 20;
  std::vector<std::size_t> only_bytes; ///< if not empty: the only sizes that the case supports
  std::vector<Traffic> traffics;       ///< patterns that the case supports, its default first
  bool bidirectional = false;          ///< supports Direction::bi
  int min_pes = 2;
  Initiator initiator = Initiator::host;
  LaunchRules launch = {}; ///< how kernels are launched; only for Initiator::gpu
  /// Kinds of memory that its buffers may be in, its default first.
  std::vector<MemoryKind> memories;
  MemoryKind memory = MemoryKind::host; ///< the kind of memory that was asked for
};

/// One point of the sweep: the independent variables of a row.
struct Point {
  std::size_t size_bytes = 8;
  Traffic traffic = Traffic::pair;
  Direction direction = Direction::uni;
  int window = 1;                  ///< operations under way before each completion
  int first_pe = 0, second_pe = 1; ///< the two PEs of Traffic::pair
  bool of_matrix = false;          ///< one point of the matrix of all ordered pairs
  Launch launch{};
};

/// The first byte that is not what it must be.
struct WrongByte {
  int pe = 0; ///< PE whose memory it is in
  std::uint64_t offset_bytes = 0;
  std::uint64_t expected = 0, found = 0;
  std::string what; ///< "slot 3 of iteration 17 from PE 0"
};

/// What a case may use while it runs at one point.
struct Arena {
  Runtime& runtime;
  const Point& point;
  /// `size_bytes` as asked for by bytes_needed(), zeroed, 4096-aligned; symmetric, in the heap that
  /// the point's launch names, or registered on every PE.
  std::byte* memory = nullptr;
  std::size_t size_bytes = 0;
  std::uint64_t seed = 0; ///< the same on all PEs, another for each point and run
  /// With MemoryKind::registered: `memory` as a buffer of this PE, and the descriptors of all PEs.
  const RegisteredMemory* registered = nullptr;
};

/// The least that a collective has to move in an iteration, whatever its algorithm: bytes of all
/// PEs together, of which each PE's samples count an equal part (docs/explanation/bench.md derives
/// them).
struct LeastTraffic {
  double loaded = 0, stored = 0; ///< from and into the PEs' memory
  double between_gpus = 0;       ///< bytes that go out of GPUs into other GPUs
  bool from_root = false;        ///< GPUs send one at a time, PE 0's first
};

/// A case at one point on one PE. The engine calls, on all PEs in the same order: prepare, then
/// iterate any number of times (warm-up, calibration, samples) with a barrier before each, then
/// verify after a barrier.
class Case {
public:
  virtual ~Case() = default;
  /// Symmetric memory that the case needs on every PE.
  virtual std::size_t bytes_needed(const Runtime& runtime, const Point& point) const = 0;
  /// Fills buffers; not timed.
  virtual void prepare(Arena& arena) = 0;
  /// Whether this PE's time counts. Others take part (answer a ping, join a collective) or just
  /// return.
  virtual bool measures() const = 0;
  /// The timed part: operations number first .. first + count - 1, complete at return as the case
  /// defines. Numbers go on over all calls at one point, so that data may depend on them. Makes no
  /// allocation; throws only what the runtime throws.
  virtual void iterate(std::uint64_t first, std::uint64_t count) = 0;
  /// How long the last iterate() took by a clock of the case's own, in ns: a kernel's, say, which
  /// does not see its launch. Nothing: the engine's clock around iterate() counts.
  virtual std::optional<double> last_duration_ns() const { return std::nullopt; }
  /// How well that clock tells times. Asked after prepare().
  virtual std::optional<TimerQuality> timer() const { return std::nullopt; }
  /// Payload bytes and operations of one iteration that this PE issued, each counted once.
  virtual std::uint64_t bytes_per_iteration() const = 0;
  virtual std::uint64_t operations_per_iteration() const { return 1; }
  /// The traffic that a collective's share of its limit counts; nothing for other cases. Called
  /// after prepare().
  /// @param gpu_of_pe numbers of the GPUs, from 0
  virtual std::optional<LeastTraffic> min_traffic(const std::vector<int>& gpu_of_pe) const {
    static_cast<void>(gpu_of_pe);
    return std::nullopt;
  }
  /// A latency is the time of an iteration divided by this: 2 where an iteration is a round trip,
  /// of which half is reported.
  virtual int latency_divisor() const { return 1; }
  /// Why it cannot run on this PE with these ways to the others; "" if it can. Asked on all PEs
  /// before prepare(); the point is skipped if any of them has a reason.
  virtual std::string cannot_run(Runtime& runtime) const {
    static_cast<void>(runtime);
    return "";
  }
  /// What carries this PE's operations, if that is not the transport of the heap that the point's
  /// launch names: "registered buffer (zero-copy)". Asked after prepare(). Empty: that transport.
  virtual std::vector<std::string> carriers() const { return {}; }
  /// Bytes that it has moved so far beside the transports of the runtime, by port, as those count
  /// theirs. Asked after prepare().
  virtual std::vector<NicTraffic> traffic() const { return {}; }
  /// A sample has a multiple of this number of iterations: the size of a window, where iterate()
  /// completes a window of operations at once. The same on all PEs.
  virtual std::uint64_t batch_multiple() const { return 1; }
  /// What iterations first .. first + count - 1 move, moved the plainest way: memcpy of the same
  /// sizes between the same buffers, for paths that are loads and stores (Rma::direct()). The
  /// engine times it along with the samples: it is the limit that link_fraction is a share of.
  /// Always called right before iterate() of the same numbers; what it leaves must not pass for
  /// that one's work (data of earlier iterations is right). False, at once, where there is no such
  /// way; called with count 0 to ask.
  virtual bool reference(std::uint64_t first, std::uint64_t count) {
    static_cast<void>(first);
    static_cast<void>(count);
    return false;
  }
  /// What `iterations` iterations must have left in this PE's memory. Untimed. Nothing if right.
  virtual std::optional<WrongByte> verify(std::uint64_t iterations) = 0;
  /// Why verify() looks at nothing; "" if it does.
  virtual std::string unverified_reason() const { return ""; }
};

/// How a case at a point is made.
using MakeCase = std::unique_ptr<Case> (*)(const Point&);

/// A case of the table by one initiator. (std::function: tests have cases with state of their own.)
struct BenchCase {
  CaseInfo info;
  std::function<std::unique_ptr<Case>(const Point&)> make;
};

/// The cases of one initiator, in the order of --list. Functions and no static objects: nothing
/// depends on the order of initialisation.
std::vector<BenchCase> host_cases();
std::vector<BenchCase> gpu_cases();
std::vector<BenchCase> stream_cases();
/// The initiator's cases whose buffers may be in that memory.
std::vector<BenchCase> cases_of(Initiator initiator, MemoryKind memory);
/// Those whose name is `pattern` or matches it with * and ?; "all" is all. Throws Error (usage)
/// for a pattern that matches none, which names the flags by which there is such a case, else the
/// nearest cases.
std::vector<BenchCase> choose_cases(const std::vector<BenchCase>& cases,
                                    const std::vector<std::string>& patterns);

} // namespace shmemctl::bench
