// The MPI bootstrap against unsuitable libraries, and a fake Open MPI. The real one is in
// tests/integration/test_bootstraps_mpi.py.
#include <gtest/gtest.h>

#include <cstring>
#include <dlfcn.h>

#include "src/runtime/bootstrap/mpi_bootstrap.h"
#include "src/runtime/bootstrap/select.h"
#include "tests/support/expect_error.h"
#include "tests/support/set_variable.h"
#include "tests/support/soon.h"

namespace shmemctl {
namespace {

using test::soon;

using test::expect_error;
using test::SetVariable;

std::unique_ptr<MpiBootstrap> open(const void* communicator = nullptr, double timeout_s = 60) {
  MpiBootstrap::Arguments arguments;
  arguments.library = SHMEMCTL_FAKE_OPENMPI;
  arguments.communicator = communicator;
  arguments.staging_bytes = 16;
  return std::make_unique<MpiBootstrap>(arguments, soon(timeout_s));
}

TEST(MpiLibrary, RejectsOtherMpis) {
  expect_error(ExitCode::unavailable, {"libno-such-mpi.so.40"},
               [] { open_mpi_library("libno-such-mpi.so.40"); });
  const std::string mpich =
      expect_error(ExitCode::unavailable, {"not Open MPI", "MPICH Version: 4.0.2"},
                   [] { open_mpi_library(SHMEMCTL_FAKE_MPICH); });
  EXPECT_NE(mpich.find("pmi"), std::string::npos) << mpich;
  expect_error(ExitCode::unavailable, {"not Open MPI", "without MPI_Get_library_version"},
               [] { open_mpi_library("libm.so.6"); });
  expect_error(ExitCode::unavailable, {"missing symbol MPI_Initialized"},
               [] { open_mpi_library(SHMEMCTL_FAKE_OLD_OPENMPI); });
}

TEST(MpiLibraryDeathTest, AProgramWithAnotherMpiIsRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe"); // a process in which nothing else is loaded
  const auto refused = [] {
    if (::dlopen(SHMEMCTL_FAKE_MPICH, RTLD_NOW | RTLD_GLOBAL) == nullptr)
      std::_Exit(2);
    try {
      open_mpi_library(SHMEMCTL_FAKE_OPENMPI);
    } catch (const Error& error) {
      std::_Exit(error.message().find("linked with another MPI: MPICH") == std::string::npos);
    }
    std::_Exit(3);
  };
  EXPECT_EXIT(refused(), ::testing::ExitedWithCode(0), "");
}

/// As in a program whose own copy of the handles MPI uses.
TEST(MpiLibraryDeathTest, HandlesAreThoseOfTheGlobalScope) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto look = [] {
    void* first = ::dlopen(SHMEMCTL_FAKE_OLD_OPENMPI, RTLD_NOW | RTLD_GLOBAL);
    if (first == nullptr)
      std::_Exit(2);
    const MpiLibrary library = open_mpi_library(SHMEMCTL_FAKE_OPENMPI);
    const void* copy = ::dlsym(first, "ompi_mpi_comm_world");
    std::_Exit(copy != nullptr && static_cast<const void*>(library.world) == copy ? 0 : 3);
  };
  EXPECT_EXIT(look(), ::testing::ExitedWithCode(0), "");
}

TEST(Mpi, PiecesOfTheStagingBuffer) {
  const auto mpi = open();
  for (const std::size_t size_bytes : {0, 1, 15, 16, 17, 32, 100}) {
    std::string text(size_bytes, 'x'), got(size_bytes, '\0');
    for (std::size_t at = 0; at < size_bytes; ++at)
      text[at] = static_cast<char>('a' + at % 26);
    mpi->allgather(text.data(), got.data(), size_bytes, soon());
    EXPECT_EQ(got, text);
    got.assign(size_bytes, '\0');
    mpi->alltoall(text.data(), got.data(), size_bytes, soon());
    EXPECT_EQ(got, text);
    mpi->broadcast(got.data(), size_bytes, 0, soon());
    EXPECT_EQ(got, text);
  }
  mpi->finish(soon());
}

TEST(Mpi, UnusableMpis) {
  {
    const SetVariable set("FAKE_MPI_FAULT", "finalized");
    expect_error(ExitCode::unavailable, {"already called MPI_Finalize"}, [] { open(); });
  }
  {
    const SetVariable set("FAKE_MPI_FAULT", "init-error");
    expect_error(ExitCode::unavailable, {"MPI_Init", "MPI_ERR_TRUNCATE"}, [] { open(); });
  }
  {
    const SetVariable set("FAKE_MPI_FAULT", "init-hang");
    expect_error(ExitCode::deadline, {"MPI_Init"}, [] { open(nullptr, 0.1); });
  }
  const SetVariable set("FAKE_MPI_FAULT", "idup-never");
  expect_error(ExitCode::deadline, {"MPI_Comm_idup"}, [] { open(nullptr, 0.1); });
}

TEST(Mpi, UnusableCommunicators) {
  const MpiLibrary library = open_mpi_library(SHMEMCTL_FAKE_OPENMPI);
  MpiComm world = library.world, none = library.no_comm, null = nullptr;
  expect_error(ExitCode::usage, {"not initialized"}, [&] { open(&world); });
  {
    const SetVariable set("FAKE_MPI_FAULT", "initialized");
    expect_error(ExitCode::usage, {"MPI_COMM_NULL"}, [&] { open(&none); });
    expect_error(ExitCode::usage, {"MPI_COMM_NULL"}, [&] { open(&null); });
    EXPECT_EQ(open(&world)->size(), 1);
  }
  const SetVariable set("FAKE_MPI_FAULT", "inter");
  expect_error(ExitCode::usage, {"inter-communicator"}, [&] { open(&world); });
}

TEST(Mpi, ErrorsCarryMpisErrorString) {
  const auto mpi = open();
  for (const char* fault : {"start-error", "test-error"}) {
    const SetVariable set("FAKE_MPI_FAULT", fault);
    expect_error(ExitCode::unavailable, {"MPI_ERR_TRUNCATE: message truncated"},
                 [&] { mpi->barrier(soon()); });
  }
}

TEST(Mpi, NamesTheRankThatDoesNotRespond) {
  const SetVariable size("FAKE_MPI_SIZE", "5");
  const SetVariable away("FAKE_MPI_AWAY", "3");
  const auto mpi = open();
  EXPECT_EQ(mpi->size(), 5);
  const SetVariable set("FAKE_MPI_FAULT", "never");
  expect_error(ExitCode::deadline, {"PE 3", "barrier"}, [&] { mpi->barrier(soon(0.05)); });
}

TEST(Mpi, NamesNoRankIfAllRespond) {
  const SetVariable size("FAKE_MPI_SIZE", "3");
  const auto mpi = open();
  const SetVariable set("FAKE_MPI_FAULT", "never");
  expect_error(ExitCode::deadline, {"other PEs"}, [&] { mpi->barrier(soon(0.05)); });
}

TEST(Mpi, HealthEndsAWait) {
  class Failed final : public JobHealth {
  public:
    void check() const override {
      throw Error(ExitCode::unavailable, "PE 2", "reach", "it died", "see it");
    }
  };
  const auto mpi = open();
  const SetVariable set("FAKE_MPI_FAULT", "never");
  Failed health;
  mpi->watch(&health);
  expect_error(ExitCode::unavailable, {"PE 2"}, [&] { mpi->barrier(soon(600)); });
  mpi->watch(nullptr);
}

TEST(MpiDeathTest, AbortAsksMpi) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(open()->abort(ExitCode::unavailable, "x"), ::testing::ExitedWithCode(103), "");
}

TEST(MpiDeathTest, LeavingFinalizesWhatWasInitialisedHere) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto leave = [](const char* at_start) {
    setenv("FAKE_MPI_FAULT", at_start, 1);
    const auto mpi = open();
    setenv("FAKE_MPI_FAULT", "finalize-exit", 1);
    mpi->leave(soon());
    std::_Exit(7); // not reached if MPI_Finalize was called
  };
  EXPECT_EXIT(leave(""), ::testing::ExitedWithCode(90), "");
  EXPECT_EXIT(leave("initialized"), ::testing::ExitedWithCode(7), "");
}

TEST(Mpi, LeavingWaitsNoLongerThanItMay) {
  const auto mpi = open();
  const SetVariable set("FAKE_MPI_FAULT", "finalize-hang");
  mpi->leave(soon(0.05));
}

TEST(Mpi, AnMpiWithoutItsLauncher) {
  const Environment environment = {{"SHMEMCTL_MPI_LIBRARY", SHMEMCTL_FAKE_OPENMPI},
                                   {"PMI_SIZE", "4"},
                                   {"PMI_FD", "3"},
                                   {"MPI_LOCALNRANKS", "4"}};
  const Options options(environment);
  BootstrapRequest request;
  request.options = &options;
  request.environment = environment;
  expect_error(ExitCode::unavailable, {"hydra", "4 processes", "sees one"},
               [&] { open_mpi(request, soon()); });
}

} // namespace
} // namespace shmemctl
