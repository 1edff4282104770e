// The report is written however the run ends: each case is a child process, like a run.
#include "reports/output.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <poll.h>
#include <sstream>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "reports/validate.h"
#include "tests/unit/reports/samples.h"

namespace shmemctl {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using namespace std::chrono_literals;

std::string file_text(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A folder of its own for each test, removed afterwards.
class Output : public testing::Test {
protected:
  Output() {
    std::string name = (fs::temp_directory_path() / "test-shmemctl-output-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~Output() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  json document(const std::string& name = "r.json") const {
    return json::parse(file_text(folder_ / name));
  }
  /// Schema-valid, incomplete, with this exit code; nothing temporary is left beside it.
  void expect_incomplete(int exit_code) const {
    const json read = document();
    for (const SchemaViolation& violation : validate_report(read))
      ADD_FAILURE() << violation.pointer << ": " << violation.message;
    EXPECT_EQ(read["status"], "incomplete");
    EXPECT_EQ(read["exit_code"], exit_code);
    EXPECT_TRUE(read["finished_at"].is_string());
    for (const auto& entry : fs::directory_iterator(folder_))
      EXPECT_EQ(entry.path().string().find(".tmp."), std::string::npos) << entry.path();
  }

  fs::path folder_;
};

/// Runs `run` in a child and returns how it ended. `meanwhile` receives the child's pid once the
/// child has written a byte to the descriptor that `run` receives.
int ended(const std::function<void(int)>& run, const std::function<void(pid_t)>& meanwhile) {
  int ready[2];
  EXPECT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    run(ready[1]);
    ::_exit(99);
  }
  ::close(ready[1]);
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  meanwhile(child);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  ::close(ready[0]);
  return status;
}

void say_ready(int descriptor) {
  if (::write(descriptor, "r", 1) != 1)
    ::_exit(98);
}

TEST_F(Output, FilesMayBeNamedLater) {
  {
    ReportOutput nameless({}, sample_report());
    nameless.died(Error(ExitCode::unavailable, "PE 1", "wait", "it was lost", "look at it"));
  }
  EXPECT_TRUE(fs::is_empty(folder_)) << "nothing was asked for";
  {
    ReportOutput output({}, sample_report());
    output.set_targets({path("r.json"), "", false});
  }
  expect_incomplete(3);
  ReportOutput again({}, sample_report());
  EXPECT_THROW(again.set_targets({path("r.json"), "", false}), Error) << "it exists";
  EXPECT_THROW(again.set_targets({path("x"), path("x"), false}), Error) << "the same twice";
  again.finish(sample_report());
  EXPECT_EQ(document()["status"], "incomplete") << "a refused target is not written";
}

TEST_F(Output, ASignalLeavesAnIncompleteReportAndExitCode130) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    fs::remove(path("r.json"));
    const int status = ended(
        [&](int ready) {
          ReportOutput output({path("r.json"), path("r" + std::to_string(signal) + ".csv"), false},
                              Report{});
          output.update(sample_report());
          std::thread busy(
              [] { std::this_thread::sleep_for(200s); }); // signals must not arrive here
          say_ready(ready);
          std::this_thread::sleep_for(200s);
        },
        [signal](pid_t child) { ::kill(child, signal); });
    ASSERT_TRUE(WIFEXITED(status)) << signal;
    EXPECT_EQ(WEXITSTATUS(status), 130);
    expect_incomplete(130);
    EXPECT_EQ(document()["results"].size(), 2u) << "what had been measured";
    EXPECT_EQ(document()["findings"].back()["id"], "run-aborted");
    EXPECT_EQ(document()["findings"].back()["subject"],
              std::string("SIG") + ::sigabbrev_np(signal));
    EXPECT_EQ(file_text(path("r" + std::to_string(signal) + ".csv")).substr(0, 5), "case,");
  }
}

TEST_F(Output, AHangUpThatIsIgnoredStaysIgnored) {
  const int status = ended(
      [&](int ready) {
        std::signal(SIGHUP, SIG_IGN); // as nohup does
        ReportOutput output({path("r.json"), "", false}, Report{});
        output.update(sample_report());
        ::kill(::getpid(), SIGHUP);
        // if the write were waited for, it would end the process now
        std::this_thread::sleep_for(200ms);
        output.finish(sample_report());
        say_ready(ready);
        ::_exit(7);
      },
      [](pid_t) {});
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(document()["status"], "complete");
}

TEST_F(Output, ASignalEndsAProcessWhoseWriteHangs) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  // Held open, so that a writer can open it, and never read.
  const int reader = ::open(path("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  Report large = sample_report();
  large.command.assign(1000, std::string(1000, 'x')); // more than a pipe holds
  const int status = ended(
      [&](int ready) {
        ReportOutput output({path("fifo"), "", false}, Report{});
        std::thread writing([&] { output.finish(large); });
        for (int available = 0; available == 0;) // the write has begun
          ::ioctl(reader, FIONREAD, &available);
        say_ready(ready);
        writing.join();
        ::_exit(8);
      },
      [](pid_t child) { ::kill(child, SIGTERM); });
  ::close(reader);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
}

// As Open MPI's launcher does when the first PE of a host has ended.
TEST_F(Output, ASecondSigtermDoesNotStopTheWriting) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  const int reader = ::open(path("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  std::string written;
  const int status = ended(
      [&](int ready) {
        Report large = sample_report();
        large.command.assign(1000, std::string(1000, 'x')); // more than a pipe holds
        ReportOutput output({path("fifo"), "", false}, large);
        say_ready(ready);
        std::this_thread::sleep_for(200s);
      },
      [&](pid_t child) {
        ::kill(child, SIGTERM);
        for (int available = 0; available == 0;) // the process is writing
          ::ioctl(reader, FIONREAD, &available);
        ::kill(child, SIGTERM);
        pollfd waiting{reader, POLLIN, 0};
        std::string block(65536, '\0');
        ssize_t got = 1;
        while (got > 0 && ::poll(&waiting, 1, 20000) == 1) {
          got = ::read(reader, block.data(), block.size());
          written.append(block, 0, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        }
      });
  ::close(reader);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(json::parse(written)["status"], "incomplete");
}

TEST_F(Output, ASignalBeforeTheFirstUpdateWritesWhatIsKnown) {
  const int status = ended(
      [&](int ready) {
        Report report;
        report.command = {"shmemctl", "bench"};
        ReportOutput output({path("r.json"), "", false}, report);
        say_ready(ready);
        std::this_thread::sleep_for(200s);
      },
      [](pid_t child) { ::kill(child, SIGINT); });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  expect_incomplete(130);
  EXPECT_EQ(document()["command"], json({"shmemctl", "bench"}));
}

TEST_F(Output, WithoutTargetsASignalStillGives130) {
  const int status = ended(
      [&](int ready) {
        ReportOutput output({}, Report{});
        say_ready(ready);
        std::this_thread::sleep_for(200s);
      },
      [](pid_t child) { ::kill(child, SIGTERM); });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
}

/// What the process that a signal ends says on stderr.
TEST_F(Output, AnInterruptionSaysWhatWasKeptAndWhere) {
  const auto said = [this](const ReportTargets& targets, bool tells, int signal) {
    const int status = ended(
        [&](int ready) {
          const int file = ::open(path("err").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
          ::dup2(file, STDERR_FILENO);
          ReportOutput output(targets, Report{});
          output.tell_interruption(tells);
          output.update(sample_report());
          say_ready(ready);
          std::this_thread::sleep_for(200s);
        },
        [signal](pid_t child) { ::kill(child, signal); });
    EXPECT_EQ(WEXITSTATUS(status), 130);
    return file_text(path("err"));
  };
  const std::string kept = said({path("kept.json"), "", false}, true, SIGTERM);
  EXPECT_EQ(kept.find("shmemctl: interrupted by SIGTERM: kept in " + path("kept.json") +
                      ", as incomplete: 2 results, "),
            0U)
      << kept;
  EXPECT_EQ(said({}, true, SIGINT),
            "shmemctl: interrupted by SIGINT: nothing was kept; --json FILE "
            "keeps what was found\n");
  EXPECT_EQ(said({}, true, SIGTERM), "") << "as a launcher ends PEs";
  EXPECT_EQ(said({path("other.json"), "", false}, false, SIGINT), "");
}

TEST_F(Output, ASignalAfterFinishKeepsTheFinishedReport) {
  const int status = ended(
      [&](int ready) {
        ReportOutput output({path("r.json"), "", false}, Report{});
        output.finish(sample_report());
        say_ready(ready);
        std::this_thread::sleep_for(200s);
      },
      [](pid_t child) { ::kill(child, SIGTERM); });
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(document()["status"], "complete");
}

TEST_F(Output, AnExceptionLeavesAnIncompleteReport) {
  try {
    ReportOutput output({path("r.json"), "", false}, Report{});
    output.update(sample_report());
    throw std::runtime_error("lost");
  } catch (const std::runtime_error&) {
  }
  expect_incomplete(3);
  EXPECT_EQ(document()["findings"].size(), 2u);
}

TEST_F(Output, AnErrorStandsInTheReport) {
  ReportOutput output({path("r.json"), "", false}, Report{});
  output.update(sample_report());
  output.died(Error(ExitCode::deadline, "PE 3", "wait for", "no answer in 60 s", "look at PE 3"));
  expect_incomplete(124);
  const json finding = document()["findings"][2];
  EXPECT_EQ(finding["id"], "run-aborted");
  EXPECT_EQ(finding["fix"], "look at PE 3");
}

TEST_F(Output, ResultsMayBeUpdatedAlone) {
  ReportOutput output({path("r.json"), "", false}, Report{});
  Report sample = sample_report();
  output.update(sample);
  sample.results.resize(1);
  output.update_results(sample.results);
  output.died(Error(ExitCode::deadline, "PE 3", "wait for", "no answer in 60 s", "look at PE 3"));
  EXPECT_EQ(document()["results"].size(), 1u);
  EXPECT_EQ(document()["findings"].size(), 3u) << "the sample's two, and the error";
}

TEST_F(Output, FinishWritesOnceAndTheDestructorNothing) {
  {
    ReportOutput output({path("r.json"), path("r.csv"), false}, Report{});
    Report report = sample_report();
    report.finished_at = "";
    output.finish(report);
  }
  EXPECT_EQ(document()["status"], "complete");
  EXPECT_TRUE(document()["finished_at"].is_string());
  EXPECT_FALSE(file_text(path("r.csv")).empty());
}

TEST_F(Output, TheSignalMaskIsRestored) {
  sigset_t before, inside, after;
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  {
    ReportOutput output({path("r.json"), "", false}, Report{});
    pthread_sigmask(SIG_BLOCK, nullptr, &inside);
    output.finish(Report{});
  }
  pthread_sigmask(SIG_BLOCK, nullptr, &after);
  EXPECT_TRUE(sigismember(&inside, SIGTERM));
  EXPECT_EQ(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}

/// The code of the Error that `act` throws, as a process would return it; 0 if it throws none.
int refused(const std::function<void()>& act) {
  try {
    act();
    return 0;
  } catch (const Error& error) {
    EXPECT_EQ(error.message().find('\n'), std::string::npos);
    EXPECT_NE(error.fix(), "");
    return static_cast<int>(error.code());
  }
}

TEST_F(Output, RefusesBeforeTheRunStarts) {
  std::ofstream(path("there.json")) << "old";
  const auto start = [](const std::string& json_path, const std::string& csv_path, bool force) {
    return refused([&] {
      ReportOutput output({json_path, csv_path, force}, Report{});
      output.finish(Report{});
    });
  };
  EXPECT_EQ(start(path("there.json"), "", false), 2);
  EXPECT_EQ(file_text(path("there.json")), "old");
  EXPECT_EQ(start("", path("there.json"), false), 2);
  EXPECT_EQ(start(path("no/such/folder/r.json"), "", false), 3);
  EXPECT_EQ(start("/proc/r.json", "", false), 3); // even root cannot write there
  EXPECT_EQ(start(folder_.string(), "", true), 3);
  EXPECT_EQ(start("-", "-", false), 2);
  EXPECT_EQ(start(path("there.json"), "", true), 0);
  EXPECT_EQ(document("there.json")["schema"]["name"], "shmemctl.report");
}

TEST_F(Output, AFullDiskIsExitCode3) {
  if (!fs::exists("/dev/full"))
    GTEST_SKIP() << "this system has no /dev/full";
  EXPECT_EQ(refused([] {
              ReportOutput output({"/dev/full", "", false}, Report{});
              output.finish(sample_report());
            }),
            3);
}

TEST_F(Output, AFileThatAppearedMeanwhileIsKept) {
  EXPECT_EQ(refused([this] {
              ReportOutput output({path("r.json"), "", false}, Report{});
              std::ofstream(path("r.json")) << "somebody else's";
              output.finish(sample_report());
            }),
            2);
  EXPECT_EQ(file_text(path("r.json")), "somebody else's");
}

} // namespace
} // namespace shmemctl
