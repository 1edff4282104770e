// Opens a bootstrap under whatever launched it and checks every collective against known data;
// on demand one rank misbehaves. One "OK" line per rank on stdout; an Error as the binary prints
// it.
//
//   bootstrap_probe NAME [--rounds N] [--sizes 0,1,4097] [--timeout S]
//                        [--fault KIND@CALL] [--fault-rank R]
//
// NAME is a value of the option BOOTSTRAP, or "auto", or "env" (whatever the environment says), or
// "mpi-halves": the program initialises MPI and hands over a communicator of the even or the odd
// ranks, and MPI must still be usable afterwards.
// KIND is die (SIGKILL), stop (SIGSTOP), away (does not take part, stays alive), exit (leaves with
// code 7 and without a word), abort (asks the launcher to end the job) or size (passes another
// size). CALL counts collectives from 1; 0 is before the bootstrap is opened (the rank is then
// taken from the launcher's variables).
// The exit code is that of the Error, 1 for wrong data, 99 if a deadline did not hold.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <unistd.h>
#include <vector>

#include "src/base/text.h"
#include "src/base/watchdog.h"
#include "src/runtime/bootstrap/mpi_library.h"
#include "src/runtime/bootstrap/select.h"

namespace shmemctl {
namespace {

struct ProbeArguments {
  std::string bootstrap = "auto";
  int rounds = 1;
  std::vector<std::size_t> sizes = {0, 1, 3, 8, 1000, 4097, 1 << 20};
  double timeout_s = 30;
  std::string fault;
  int fault_call = -1;
  int fault_rank = 1;
};

class WrongData : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void bad_usage(const std::string& word) {
  std::cerr << "bootstrap_probe: cannot use " << word << "\n";
  std::exit(2);
}

int integer_of(const std::string& text) {
  const auto value = parse_integer(text);
  if (!value)
    bad_usage(text);
  return static_cast<int>(*value);
}

ProbeArguments parse(int argc, char** argv) {
  ProbeArguments arguments;
  if (argc > 1)
    arguments.bootstrap = argv[1];
  for (int at = 2; at + 1 < argc; at += 2) {
    const std::string flag = argv[at], value = argv[at + 1];
    if (flag == "--rounds") {
      arguments.rounds = integer_of(value);
    } else if (flag == "--sizes") {
      arguments.sizes.clear();
      for (const std::string& size : split(value, ','))
        arguments.sizes.push_back(static_cast<std::size_t>(integer_of(size)));
    } else if (flag == "--timeout") {
      arguments.timeout_s = parse_number(value).value_or(30);
    } else if (flag == "--fault") {
      const auto parts = split(value, '@');
      if (parts.size() != 2)
        bad_usage(value);
      arguments.fault = parts[0];
      arguments.fault_call = integer_of(parts[1]);
    } else if (flag == "--fault-rank") {
      arguments.fault_rank = integer_of(value);
    } else {
      bad_usage(flag);
    }
  }
  if (argc > 2 && argc % 2 != 0)
    bad_usage(argv[argc - 1]);
  return arguments;
}

int rank_by_environment(const Environment& environment) {
  for (const char* name :
       {"SHMEMCTL_LOCAL_RANK", "SHMEMCTL_BOOTSTRAP_UID_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
        "PMI_RANK", "SLURM_PROCID", "FAKE_PLUGIN_RANK"}) {
    const auto found = environment.find(name);
    if (found != environment.end())
      return integer_of(found->second);
  }
  return 0;
}

/// Byte `at` of what `from` sends to `to` in call `call`.
std::uint8_t pattern(int call, int from, int to, std::size_t at) {
  std::uint64_t mixed = at * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(call) * 1000003U +
                        static_cast<std::uint64_t>(from) * 8191U +
                        static_cast<std::uint64_t>(to) * 131U;
  mixed ^= mixed >> 29;
  return static_cast<std::uint8_t>(mixed * 0xbf58476d1ce4e5b9U >> 56);
}

class Probe {
public:
  Probe(const ProbeArguments& arguments, Bootstrap& bootstrap)
      : arguments_(arguments), bootstrap_(bootstrap) {}

  void round() {
    for (const std::size_t size_bytes : arguments_.sizes) {
      allgather(size_bytes, false);
      allgather(size_bytes, true);
      alltoall(size_bytes);
      barrier();
      for (int root : {0, bootstrap_.size() - 1})
        broadcast(size_bytes, root);
    }
  }
  int calls() const { return call_; }

private:
  Deadline next(std::size_t* size_bytes = nullptr) {
    ++call_;
    const bool mine = call_ == arguments_.fault_call && bootstrap_.rank() == arguments_.fault_rank;
    if (mine && arguments_.fault == "die")
      ::raise(SIGKILL);
    if (mine && arguments_.fault == "stop")
      ::raise(SIGSTOP);
    if (mine && arguments_.fault == "exit")
      std::_Exit(7);
    if (mine && arguments_.fault == "abort") {
      bootstrap_.abort(ExitCode::unavailable, "asked by the test");
      std::_Exit(3);
    }
    if (mine && arguments_.fault == "away")
      for (;;)
        ::pause(); // until the launcher ends the job, or the watchdog does
    if (mine && arguments_.fault == "size" && size_bytes != nullptr)
      *size_bytes += 8;
    return Deadline::after(std::chrono::duration<double>(arguments_.timeout_s));
  }

  void expect(bool good, const std::string& what, std::size_t size_bytes, int from) const {
    if (!good)
      throw WrongData("call " + std::to_string(call_) + ": " + what + " of " +
                      std::to_string(size_bytes) + " bytes: wrong data from rank " +
                      std::to_string(from) + " at rank " + std::to_string(bootstrap_.rank()));
  }

  void allgather(std::size_t size_bytes, bool in_place) {
    const Deadline deadline = next(&size_bytes);
    const int me = bootstrap_.rank();
    std::vector<std::uint8_t> send(size_bytes), all(size_bytes * ranks() + 1, 0xAA);
    for (std::size_t at = 0; at < size_bytes; ++at)
      send[at] = pattern(call_, me, 0, at);
    std::uint8_t* block = all.data() + static_cast<std::size_t>(me) * size_bytes;
    if (in_place)
      std::copy(send.begin(), send.end(), block);
    bootstrap_.allgather(in_place ? block : send.data(), all.data(), size_bytes, deadline);
    for (int from = 0; from < bootstrap_.size(); ++from)
      for (std::size_t at = 0; at < size_bytes; ++at)
        expect(all[static_cast<std::size_t>(from) * size_bytes + at] == pattern(call_, from, 0, at),
               "allgather", size_bytes, from);
    expect(all.back() == 0xAA, "allgather (written past the end)", size_bytes, me);
  }

  void alltoall(std::size_t size_bytes) {
    const Deadline deadline = next(&size_bytes);
    const int me = bootstrap_.rank();
    std::vector<std::uint8_t> send(size_bytes * ranks()), got(size_bytes * ranks() + 1, 0xAA);
    for (int to = 0; to < bootstrap_.size(); ++to)
      for (std::size_t at = 0; at < size_bytes; ++at)
        send[static_cast<std::size_t>(to) * size_bytes + at] = pattern(call_, me, to, at);
    bootstrap_.alltoall(send.data(), got.data(), size_bytes, deadline);
    for (int from = 0; from < bootstrap_.size(); ++from)
      for (std::size_t at = 0; at < size_bytes; ++at)
        expect(got[static_cast<std::size_t>(from) * size_bytes + at] ==
                   pattern(call_, from, me, at),
               "alltoall", size_bytes, from);
    expect(got.back() == 0xAA, "alltoall (written past the end)", size_bytes, me);
  }

  void barrier() { bootstrap_.barrier(next()); }

  void broadcast(std::size_t size_bytes, int root) {
    const Deadline deadline = next(&size_bytes);
    std::vector<std::uint8_t> data(size_bytes + 1, 0xAA);
    if (bootstrap_.rank() == root)
      for (std::size_t at = 0; at < size_bytes; ++at)
        data[at] = pattern(call_, root, root, at);
    bootstrap_.broadcast(data.data(), size_bytes, root, deadline);
    for (std::size_t at = 0; at < size_bytes; ++at)
      expect(data[at] == pattern(call_, root, root, at), "broadcast", size_bytes, root);
    expect(data.back() == 0xAA, "broadcast (written past the end)", size_bytes, root);
  }

  std::size_t ranks() const { return static_cast<std::size_t>(bootstrap_.size()); }

  const ProbeArguments& arguments_;
  Bootstrap& bootstrap_;
  int call_ = 0;
};

void say(const std::string& line) {
  const std::string whole = line + "\n";
  if (::write(STDOUT_FILENO, whole.data(), whole.size()) < 0)
    std::_Exit(1);
}

/// A program that uses MPI itself, and hands one of its communicators over.
class MpiProgram {
public:
  MpiProgram() : mpi_(open_mpi_library(Options(current_environment()).text("MPI_LIBRARY"))) {
    int provided = 0, rank = 0;
    using Split = int(MpiComm, int color, int key, MpiComm* part);
    auto* split = mpi_.library.function<Split>("MPI_Comm_split");
    if (mpi_.Init_thread(nullptr, nullptr, MpiLibrary::thread_serialized, &provided) != 0 ||
        mpi_.Comm_rank(mpi_.world, &rank) != 0 || split(mpi_.world, rank % 2, -rank, &half_) != 0)
      bad_usage("MPI");
  }
  MpiComm* half() { return &half_; }
  void finish() {
    int rank = 0, finalised = 0;
    if (mpi_.Finalized(&finalised) != 0 || finalised != 0 || mpi_.Comm_rank(half_, &rank) != 0)
      throw WrongData("the program's MPI was finalised");
    if (mpi_.Comm_free(&half_) != 0 || mpi_.Finalize() != 0)
      throw WrongData("the program's MPI was damaged");
  }

private:
  MpiLibrary mpi_;
  MpiComm half_ = nullptr;
};

int probe(const ProbeArguments& arguments) {
  const Environment environment = current_environment();
  if (arguments.fault_call == 0 && rank_by_environment(environment) == arguments.fault_rank) {
    if (arguments.fault == "die")
      ::raise(SIGKILL);
    if (arguments.fault == "stop")
      ::raise(SIGSTOP);
    if (arguments.fault == "exit")
      std::_Exit(7);
    for (;;)
      ::pause();
  }
  std::map<std::string, std::string> flags;
  const bool halves = arguments.bootstrap == "mpi-halves";
  if (arguments.bootstrap != "env" && !halves)
    flags.emplace("BOOTSTRAP", arguments.bootstrap);
  const Options options(environment, flags);
  const auto deadline = [&] {
    return Deadline::after(std::chrono::duration<double>(arguments.timeout_s));
  };
  BootstrapRequest request;
  request.options = &options;
  request.environment = environment;
  std::unique_ptr<MpiProgram> program;
  if (halves) {
    program = std::make_unique<MpiProgram>();
    request.mpi_communicator = program->half();
  }
  const std::unique_ptr<Bootstrap> bootstrap = open_bootstrap(std::move(request), deadline());
  Probe rounds(arguments, *bootstrap);
  for (int round = 0; round < arguments.rounds; ++round)
    rounds.round();
  const std::string words =
      std::string("OK ") + bootstrap->name() + " rank " + std::to_string(bootstrap->rank()) +
      " of " + std::to_string(bootstrap->size()) + ", " + std::to_string(rounds.calls()) + " calls";
  bootstrap->finish(deadline());
  if (program)
    program->finish();
  say(words);
  return 0;
}

} // namespace
} // namespace shmemctl

int main(int argc, char** argv) {
  using namespace shmemctl;
  const ProbeArguments arguments = parse(argc, argv);
  // A deadline that does not hold is what the tests look for: 99 says so.
  const Watchdog watchdog(std::chrono::duration<double>(arguments.timeout_s * 3 + 10),
                          [](const std::string&) { std::_Exit(99); });
  try {
    return probe(arguments);
  } catch (const Error& error) {
    std::cerr << "shmemctl: error: " + error.message() + "\nshmemctl: fix: " + error.fix() + "\n";
    return static_cast<int>(error.code());
  } catch (const WrongData& wrong) {
    std::cerr << std::string("bootstrap_probe: ") + wrong.what() + "\n";
    return 1;
  }
}
