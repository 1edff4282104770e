// A job whose PEs are forked processes, each with a whole Runtime over the `local` bootstrap.
#pragma once

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <functional>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "src/base/options.h"
#include "src/runtime/bootstrap/select.h"
#include "src/runtime/runtime.h"

namespace shmemctl::test {

struct PeResult {
  int exit_code = -1; ///< 128 + signal if a signal ended it
  std::string text;   ///< the child's text: the Error's message and fix, or the result of `body`
};

/// Exit code of a PE whose body threw anything else than an Error.
constexpr int unexpected_exception = 70;

struct ForkJob {
  int n_pes = 2;
  int n_nodes = 1;              ///< virtual nodes, in blocks
  Environment environment = {}; ///< more variables, for all PEs
  bool require_reach = true;
  GpuUse gpu = GpuUse::none;
  bool kernels = false; ///< RuntimeRequest::kernels
  std::shared_ptr<WordAtomics> word_atomics = nullptr;
  decltype(RuntimeRequest::make_transport) make_transport = {};
  std::function<void(int pe, Environment&)> of_pe = {}; ///< what differs between PEs
  std::function<std::string()> after = {};              ///< what a PE says when its runtime is gone
  std::function<std::string(Runtime&)> body = [](Runtime&) { return std::string(); };
};

namespace detail {

inline void write_all(int descriptor, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t done = ::write(descriptor, text.data() + at, text.size() - at);
    if (done <= 0)
      return;
    at += static_cast<std::size_t>(done);
  }
}

inline int run_body(const ForkJob& job, int pe, const std::string& id, int descriptor) {
  Environment environment = job.environment;
  environment[local_variables::rank] = std::to_string(pe);
  environment[local_variables::size] = std::to_string(job.n_pes);
  environment[local_variables::id] = id;
  if (job.n_nodes > 1)
    environment[local_variables::node] = std::to_string(pe * job.n_nodes / job.n_pes);
  if (job.of_pe)
    job.of_pe(pe, environment);
  const Options options(environment);
  try {
    RuntimeRequest request;
    request.options = &options;
    request.environment = environment;
    request.require_reach = job.require_reach;
    request.gpu = job.gpu;
    request.kernels = job.kernels;
    request.word_atomics = job.word_atomics;
    request.make_transport = job.make_transport;
    Runtime runtime(std::move(request));
    try {
      write_all(descriptor, job.body(runtime));
    } catch (const Error& error) {
      runtime.fail(error);
      throw;
    }
    runtime.finish();
    return 0;
  } catch (const Error& error) {
    write_all(descriptor, error.message() + "\n" + error.fix());
    return static_cast<int>(error.code());
  } catch (
      // otherwise the child would go on with the tests after this one
      const std::exception& error) {
    write_all(descriptor, std::string("unexpected exception: ") + error.what());
    return unexpected_exception;
  }
}

inline int run_pe(const ForkJob& job, int pe, const std::string& id, int descriptor) {
  const int code = run_body(job, pe, id, descriptor);
  if (job.after)
    write_all(descriptor, job.after());
  return code;
}

inline std::pair<FileDescriptor, FileDescriptor> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw system_error("pipe", "make", errno, "raise ulimit -n");
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

inline std::string read_all(int descriptor) {
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = ::read(descriptor, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  return text;
}

} // namespace detail

/// Runs the job to its end.
inline std::vector<PeResult> run_fork_job(const ForkJob& job) {
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  std::vector<pid_t> children;
  std::vector<FileDescriptor> pipes, ids;
  for (int pe = 0; pe < job.n_pes; ++pe) {
    auto [answer, say] = detail::make_pipe();
    auto [output, id] = detail::make_pipe();
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent)
        ::_exit(unexpected_exception);
      ids.clear(); // otherwise no child would see the end of another child's pipe
      id.reset();
      ::_exit(detail::run_pe(job, pe, detail::read_all(output.get()), say.get()));
    }
    pipes.push_back(std::move(answer));
    ids.push_back(std::move(id));
    children.push_back(child);
  }
  // Its thread starts after the forks: a child of a process with threads may find locks taken.
  const std::unique_ptr<Rendezvous> rendezvous = Rendezvous::start_local(60);
  for (const FileDescriptor& id : ids)
    detail::write_all(id.get(), rendezvous->id().text());
  ids.clear();
  std::vector<PeResult> results(children.size());
  for (std::size_t pe = 0; pe < children.size(); ++pe) {
    results[pe].text = detail::read_all(pipes[pe].get());
    int status = 0;
    ::waitpid(children[pe], &status, 0);
    results[pe].exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return results;
}

} // namespace shmemctl::test
