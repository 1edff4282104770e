// Starting the PEs of a job.
#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/bootstrap/select.h"
#include "src/launch/job.h"
#include "src/launch/program.h"

namespace shmemctl {

namespace {

constexpr double last_resort_s = 10; ///< for the kernel to end what got SIGKILL

std::set<pid_t> with(std::set<pid_t> set, pid_t more) {
  set.insert(more);
  return set;
}

} // namespace

OpenFilesLimit::OpenFilesLimit(rlim_t wanted) {
  ::getrlimit(RLIMIT_NOFILE, &before_);
  rlimit raised = before_;
  if (raised.rlim_cur != RLIM_INFINITY)
    raised.rlim_cur = std::max(raised.rlim_cur, std::min(wanted, raised.rlim_max));
  ::setrlimit(RLIMIT_NOFILE, &raised);
}

OpenFilesLimit::~OpenFilesLimit() {
  ::setrlimit(RLIMIT_NOFILE, &before_);
}

LaunchJob::LaunchJob(const LaunchRequest& request, const OpenRendezvous& open_rendezvous)
    : request_(request), foreign_(children(::getpid())),
      open_files_(static_cast<rlim_t>(request.n_pes) * 8 + 64) {
  foreign_ = with(std::move(foreign_), guard_.pid());
  result_.ends.resize(static_cast<std::size_t>(request.n_pes));
  id_ = open_rendezvous();
  guard_.watch(std::string(local_variables::id) + "=" + id_);
  job_end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(request.timeout_s));
  try {
    start_all();
  } catch (...) {
    end_all(SIGKILL);
    throw;
  }
}

LaunchJob::~LaunchJob() {
  end_all(SIGKILL);
}

void LaunchJob::end_all(int signal) {
  const Clock::time_point give_up =
      Clock::now() +
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(last_resort_s));
  for (reap(); anything_left() && Clock::now() < give_up; reap()) {
    signal_everything(signal);
    ::usleep(1000);
  }
}

void LaunchJob::start_all() {
  const std::string program = request_.program.empty()
                                  ? find_program(request_.command[0], request_.environment)
                                  : request_.program;
  pes_.resize(static_cast<std::size_t>(request_.n_pes));
  // If the program cannot be executed, the first PE shows it before there are others.
  if (const int error_number = start_pe(0, program).started(); error_number != 0)
    throw cannot_run(request_.command[0], error_number);
  std::vector<Spawned> others;
  for (int pe = 1; pe < request_.n_pes; ++pe)
    others.push_back(start_pe(pe, program));
  for (Spawned& other : others)
    if (const int error_number = other.started(); error_number != 0)
      throw system_error(program, "execute", error_number, "start fewer PEs");
}

Spawned LaunchJob::start_pe(int pe, const std::string& program) {
  SpawnRequest spawn{program, request_.command,    environment_of(pe), -1, -1,
                     -1,      open_files_.before()};
  Pipe out = Pipe::make(), err = Pipe::make(), in;
  FileDescriptor null;
  if (pe > 0) {
    null = FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!null)
      throw system_error("/dev/null", "open", errno, "raise the limit of open files (ulimit -n)");
    spawn.standard_input = null.get();
  } else if (::isatty(STDIN_FILENO) == 1) {
    in = Pipe::make();
    spawn.standard_input = in.read_end.get();
    input_ = TerminalInput(STDIN_FILENO, std::move(in.write_end));
  }
  if (static_cast<std::size_t>(pe) < request_.cpus.size())
    spawn.cpus = request_.cpus[static_cast<std::size_t>(pe)];
  spawn.standard_output = out.write_end.get();
  spawn.standard_error = err.write_end.get();
  Spawned spawned(spawn, signals_);
  Pe& entry = pes_[static_cast<std::size_t>(pe)];
  entry.pid = spawned.pid();
  OutputStream::Style style{request_.label ? "[" + std::to_string(pe) + "] " : std::string(),
                            request_.n_pes == 1 && !request_.label, false};
  entry.out = std::make_unique<OutputStream>(std::move(out.read_end), out_, style);
  style.one_error = request_.one_error && !request_.label && request_.n_pes > 1;
  entry.err = std::make_unique<OutputStream>(std::move(err.read_end), err_, style);
  return spawned;
}

Environment LaunchJob::environment_of(int pe) const {
  Environment environment = request_.environment;
  environment[local_variables::rank] = std::to_string(pe);
  environment[local_variables::size] = std::to_string(request_.n_pes);
  environment[local_variables::id] = id_;
  environment.erase(local_variables::node);
  if (request_.n_nodes > 1)
    environment[local_variables::node] =
        std::to_string(node_of_pe(pe, request_.n_pes, request_.n_nodes));
  return environment;
}

} // namespace shmemctl
