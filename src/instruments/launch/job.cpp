#include "src/instruments/launch/job.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/instruments/launch/progress_pipe.h"
#include "src/instruments/launch/spawn.h"
#include "src/runtime/bootstrap/select.h"

namespace shmemctl {

namespace {

constexpr double notice_s = 1;
constexpr double kill_s = 10;
constexpr int tick_ms = 20; ///< interval of the checks for remaining processes of an ending job
constexpr int foreground_poll_ms = 500;

bool contains(const std::vector<int>& values, int value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

PeEnd end_of(int pe, int wait_status) {
  PeEnd end;
  end.pe = pe;
  if (WIFSIGNALED(wait_status))
    end.signal = WTERMSIG(wait_status);
  end.exit_status = end.signal != 0 ? 128 + end.signal : WEXITSTATUS(wait_status);
  return end;
}

} // namespace

LaunchResult LaunchJob::run() {
  while (stage_ != Stage::done) {
    poll_once();
    handle_signals();
    reap();
    relay_rest();
    show_progress();
    advance();
  }
  if (status_)
    status_->clear();
  return result();
}

void LaunchJob::poll_once() {
  std::vector<pollfd> waiting{{signals_.descriptor(), POLLIN, 0}};
  std::vector<OutputStream*> streams;
  for (const Pe& pe : pes_)
    for (OutputStream* stream : {pe.out.get(), pe.err.get()})
      if (stream->wants_read()) {
        waiting.push_back({stream->descriptor(), POLLIN, 0});
        streams.push_back(stream);
      }
  const std::size_t behind_streams = waiting.size();
  for (const OutputSink* sink : {&out_, &err_})
    if (sink->wants_write())
      waiting.push_back({sink->writable_descriptor(), POLLOUT, 0});
  if (input_.wants_read())
    waiting.push_back({input_.terminal(), POLLIN, 0});
  if (input_.wants_write())
    waiting.push_back({input_.pipe(), POLLOUT, 0});
  if (progress_)
    waiting.push_back({progress_.get(), POLLIN, 0});
  if (::poll(waiting.data(), waiting.size(), poll_timeout_ms()) <= 0)
    return;
  for (std::size_t i = 0; i < streams.size(); ++i)
    if (waiting[i + 1].revents != 0)
      streams[i]->read();
  for (std::size_t i = behind_streams; i < waiting.size(); ++i) {
    if (waiting[i].revents == 0)
      continue;
    if (progress_ && waiting[i].fd == progress_.get())
      read_progress();
    else if (waiting[i].events == POLLIN)
      input_.read();
    else if (input_.open() && waiting[i].fd == input_.pipe())
      input_.write();
  }
  out_.flush();
  err_.flush();
}

int LaunchJob::poll_timeout_ms() const {
  if (stage_ == Stage::ending || stage_ == Stage::killing)
    return tick_ms;
  if (stage_ == Stage::draining)
    return out_.wants_write() || err_.wants_write() ? tick_ms : 0;
  const bool paints = status_ && status_->has_words();
  int timeout_ms =
      input_.open() || out_.claimed() || err_.claimed() || paints ? foreground_poll_ms : -1;
  const auto until = [&timeout_ms](Clock::time_point end) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    const auto bounded = static_cast<int>(std::clamp<long long>(left, 0, 60'000));
    timeout_ms = timeout_ms < 0 ? bounded : std::min(timeout_ms, bounded);
  };
  if (stage_ == Stage::grace)
    until(stage_end_);
  if (request_.timeout_s > 0)
    until(job_end_);
  return timeout_ms;
}

void LaunchJob::read_progress() {
  const std::string words = last_progress(progress_.get());
  if (!words.empty())
    status_->say(words);
  else
    progress_.reset(); // readable, but no line: PE 0 has closed its end
}

void LaunchJob::show_progress() {
  if (!status_ || stage_ == Stage::draining || out_.in_mid_line() || err_.in_mid_line())
    return;
  const Clock::time_point now = Clock::now();
  if (now < next_paint_)
    return;
  status_->paint(now);
  next_paint_ = now + StatusLine::interval;
}

void LaunchJob::warn(const std::string& message) {
  if (status_)
    status_->clear();
  log(LogLevel::warning, "run", message);
}

void LaunchJob::handle_signals() {
  while (const std::optional<int> signal = signals_.next())
    handle(*signal);
}

void LaunchJob::handle(int signal) {
  switch (signal) {
  case SIGCHLD: // reap() checks in any case
    return;
  case SIGCONT:
    signal_pes(SIGCONT);
    return;
  case SIGTSTP:
    pause_job();
    return;
  default:
    break;
  }
  const bool again = signal == SIGINT && contains(result_.forwarded, SIGINT);
  if (signal != SIGWINCH && signal != SIGUSR1 && signal != SIGUSR2)
    result_.forwarded.push_back(signal);
  if (stage_ == Stage::draining && (signal == SIGINT || signal == SIGTERM || signal == SIGHUP)) {
    stage_ = Stage::done; // all PEs have ended, but the reader of the output is too slow
    return;
  }
  if (again) {
    enter(Stage::killing, kill_s);
    signal_everything(SIGKILL);
  } else if (signal == SIGTERM || signal == SIGHUP) {
    signal_everything(signal);
    if (stage_ == Stage::running || stage_ == Stage::grace)
      enter(Stage::ending, request_.grace_s);
  } else {
    signal_pes(signal);
  }
}

void LaunchJob::pause_job() {
  const Clock::time_point before = Clock::now();
  signal_pes(SIGTSTP);
  if (status_)
    status_->clear();
  signals_.stop_here();
  signal_pes(SIGCONT);
  const Clock::duration paused = Clock::now() - before;
  job_end_ += paused;
  stage_end_ += paused;
}

void LaunchJob::reap() {
  std::vector<PeEnd> batch;
  for (;;) {
    int wait_status = 0;
    const pid_t pid = ::waitpid(-1, &wait_status, WNOHANG);
    if (pid < 0 && errno == EINTR)
      continue;
    if (pid <= 0)
      break;
    for (std::size_t pe = 0; pe < pes_.size(); ++pe)
      if (pes_[pe].pid == pid && !pes_[pe].ended) {
        pes_[pe].ended = true;
        batch.push_back(end_of(static_cast<int>(pe), wait_status));
      }
  }
  note_ends(batch);
}

namespace {

/// How likely it is that this PE caused the job's failure. PEs that learn of a failure may end
/// before the failed PE is reaped. A signal is a cause rather than an effect; the exit codes for a
/// lost PE and for a passed deadline are effects.
int likely_cause(const PeEnd& end) {
  if (end.signal != 0)
    return 2;
  const bool effect = end.exit_status == static_cast<int>(ExitCode::unavailable) ||
                      end.exit_status == static_cast<int>(ExitCode::deadline);
  return effect ? 0 : 1;
}

} // namespace

void LaunchJob::note_ends(const std::vector<PeEnd>& batch) {
  const bool own_doing = stage_ == Stage::ending || stage_ == Stage::killing;
  int first =
      own_doing ? -1 : result_.first_failed; // for one second, a better cause may replace it
  for (const PeEnd& end : batch)
    result_.ends[static_cast<std::size_t>(end.pe)] = end;
  for (const PeEnd& end : batch) {
    if (end.pe == 0)
      input_.close();
    if (end.exit_status == 0)
      continue;
    // Not the cause: a loss that is tolerated while PE 0 runs, or a PE that ends because PE 0 has
    // failed.
    if (request_.loss_allowed && !own_doing && end.pe != 0 && likely_cause(end) > 0 &&
        (!pes_[0].ended || result_.ends[0].exit_status != 0)) {
      if (end.signal != 0 && !pes_[0].ended)
        warn("PE " + std::to_string(end.pe) + " was killed by signal " +
             std::to_string(end.signal) + "; the others may go on without it");
      continue;
    }
    if (first < 0 ||
        likely_cause(end) > likely_cause(result_.ends[static_cast<std::size_t>(first)]))
      first = end.pe;
  }
  if (first < 0 || result_.timed_out || (own_doing && result_.first_failed >= 0))
    return;
  // A PE that ends by a signal which was forwarded to all PEs is a failure only if there is no
  // other.
  result_.first_failed = first;
  if (stage_ == Stage::running && !own_doing)
    enter(Stage::grace, notice_s);
}

void LaunchJob::relay_rest() {
  const bool over = stage_ == Stage::draining;
  for (const Pe& pe : pes_)
    for (OutputStream* stream : {pe.out.get(), pe.err.get()}) {
      // No process of the job is left; other processes that hold the pipe are not waited for.
      if (over && stream->wants_read() && !stream->read() && stream->open())
        stream->close();
      if (stream->holds() || !stream->open())
        stream->pass_on();
      // No more output is accepted by stdout: the writers get EPIPE.
      if (out_.given_up() && stream == pe.out.get() && stream->open())
        stream->close();
    }
}

void LaunchJob::advance() {
  const Clock::time_point now = Clock::now();
  if ((stage_ == Stage::running || stage_ == Stage::grace) && request_.timeout_s > 0 &&
      now >= job_end_ && !all_ended()) {
    result_.timed_out = true;
    for (std::size_t pe = 0; pe < pes_.size(); ++pe)
      if (!pes_[pe].ended)
        result_.late_pes.push_back(static_cast<int>(pe));
    enter(Stage::ending, request_.grace_s);
    signal_everything(SIGTERM);
  }
  if (stage_ == Stage::running || stage_ == Stage::grace) {
    if (!all_ended() && (stage_ == Stage::running || now < stage_end_))
      return;
    enter(Stage::ending, request_.grace_s);
    signal_everything(SIGTERM);
  }
  if (stage_ == Stage::ending || stage_ == Stage::killing) {
    if (!anything_left()) {
      enter(Stage::draining, 0);
    } else if (now >= stage_end_) {
      if (stage_ == Stage::killing) {
        warn("a process of the job does not end, in spite of SIGKILL");
        enter(Stage::draining, 0);
      } else {
        enter(Stage::killing, kill_s);
      }
    }
    if (stage_ == Stage::killing)
      signal_everything(SIGKILL);
  }
  if (stage_ == Stage::draining)
    finish_output();
}

void LaunchJob::enter(Stage stage, double seconds) {
  stage_ = stage;
  stage_end_ = Clock::now() +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void LaunchJob::finish_output() {
  for (const Pe& pe : pes_)
    for (const OutputStream* stream : {pe.out.get(), pe.err.get()})
      if (stream->open() || stream->holds())
        return;
  if (!out_.wants_write() && !err_.wants_write())
    stage_ = Stage::done;
}

bool LaunchJob::all_ended() const {
  return std::all_of(pes_.begin(), pes_.end(), [](const Pe& pe) { return pe.ended; });
}

bool LaunchJob::anything_left() const {
  for (const Pe& pe : pes_)
    if (pe.pid > 0 && !pe.ended)
      return true;
  return !descendants(::getpid(), foreign_).empty();
}

void LaunchJob::signal_pes(int signal) const {
  for (const Pe& pe : pes_)
    if (pe.pid > 0 && !pe.ended) // not reaped yet, so the PID still belongs to this PE
      ::kill(-pe.pid, signal);
}

void LaunchJob::signal_everything(int signal) const {
  std::set<pid_t> groups;
  for (const Pe& pe : pes_)
    if (pe.pid > 0 && !pe.ended)
      groups.insert(pe.pid);
  signal_pes(signal);
  signal_pes(SIGCONT); // a stopped PE cannot handle the signal
  for (const ProcessName& process : descendants(::getpid(), foreign_))
    if (groups.count(::getpgid(process.pid)) == 0) {
      signal_process(process, signal);
      signal_process(process, SIGCONT);
    }
}

LaunchResult LaunchJob::result() {
  for (std::size_t pe = 0; pe < pes_.size(); ++pe)
    result_.ends[pe].last_words = pes_[pe].err->last_words();
  result_.error_shown = err_.shows_error();
  // If the loss of a PE was tolerated and no PE reports a failure, the launcher reports the loss.
  for (const PeEnd& end : result_.ends)
    if (request_.loss_allowed && result_.first_failed < 0 && end.exit_status != 0)
      result_.first_failed = end.pe;
  if (err_.in_mid_line())
    // So that the caller's messages begin on a new line.
    static_cast<void>(!::write(STDERR_FILENO, "\n", 1));
  for (const OutputSink* sink : {&out_, &err_})
    if (sink->broken() && sink->error_number() != EPIPE)
      throw system_error(sink == &out_ ? "stdout" : "stderr", "write", sink->error_number(),
                         "choose another file or pipe for it or, if its disk is full, free space");
  if (result_.timed_out)
    result_.exit_status = static_cast<int>(ExitCode::deadline);
  else if (result_.first_failed >= 0)
    result_.exit_status = result_.ends[static_cast<std::size_t>(result_.first_failed)].exit_status;
  // If the user interrupted all PEs, it is chance which of them noticed that first.
  for (const PeEnd& end : result_.ends)
    if (contains(result_.forwarded, SIGINT) && end.exit_status == 128 + SIGINT &&
        !result_.timed_out)
      result_.exit_status = end.exit_status;
  return result_;
}

// Starting the PEs of a job.

namespace {

/// How long the kernel may take to end processes that got SIGKILL.
constexpr double last_resort_s = 10;

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
  // The first PE is started alone, to see whether the program can be executed at all.
  if (const int error_number = start_pe(0, program).started(); error_number != 0)
    throw cannot_execute(request_.command[0], program, error_number);
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
  Pipe progress;
  if (pe == 0 && request_.progress) {
    progress = Pipe::make();
    for (const FileDescriptor* end : {&progress.read_end, &progress.write_end})
      ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
    spawn.inherited = progress.write_end.get();
    spawn.environment[progress_variable] = progress_value(progress.write_end.get());
    progress_ = std::move(progress.read_end);
    status_.emplace(STDERR_FILENO);
    for (OutputSink* sink : {&out_, &err_})
      sink->before_writing([this] { status_->clear(); });
  }
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
  environment.erase(progress_variable);
  if (request_.n_nodes > 1)
    environment[local_variables::node] =
        std::to_string(node_of_pe(pe, request_.n_pes, request_.n_nodes));
  return environment;
}

} // namespace shmemctl
