#include "src/base/error.h"

#include <cerrno>
#include <gtest/gtest.h>

namespace shmemctl {

TEST(Error, SaysWhatFailedWhereAndWhyOnOneLine) {
  const Error error(ExitCode::unavailable, "memory region", "register", "Cannot allocate memory",
                    "raise the memlock limit", {"node7", 3, "mlx5_1", 2});
  EXPECT_EQ(error.message(), "cannot register memory region (host node7, PE 3, device mlx5_1, port "
                             "2): Cannot allocate memory");
  EXPECT_EQ(error.fix(), "raise the memlock limit");
  EXPECT_EQ(static_cast<int>(error.code()), 3);
}

std::string message(const std::string& subject, const std::string& attempted) {
  return Error(ExitCode::usage, subject, attempted, "why", "fix").message();
}

TEST(Error, AStepWithAnObjectOfItsOwnStandsBehindItsSubject) {
  EXPECT_EQ(message("case put", "choose its PEs"), "case put: cannot choose its PEs: why");
  EXPECT_EQ(message("--kill-nic mlx5_33", "find mlx5_33"),
            "--kill-nic mlx5_33: cannot find mlx5_33: why");
  EXPECT_EQ(message("PE 3", "read its connections"), "PE 3: cannot read its connections: why");
  EXPECT_EQ(
      Error(ExitCode::usage, "ucx", "make a worker", "why", "fix", {"n1", 3, "", {}}).message(),
      "ucx (host n1, PE 3): cannot make a worker: why");
}

TEST(Error, AStepThatItsSubjectCompletesStandsBeforeIt) {
  EXPECT_EQ(message("a.xml", "read"), "cannot read a.xml: why");
  EXPECT_EQ(message("PE 3", "connect to"), "cannot connect to PE 3: why");
  EXPECT_EQ(message("phase heap", "wait for PE 2 in"), "cannot wait for PE 2 in phase heap: why");
  EXPECT_EQ(message("-", "finish reading"), "cannot finish reading -: why");
  EXPECT_EQ(message("", "choose its PEs"), "cannot choose its PEs: why");
}

TEST(Error, InputErrorsAreExitCode2AndCarryThePosition) {
  const Error error = input_error("a.xml", "line 3, column 7", "not closed", "close it");
  EXPECT_EQ(error.message(), "cannot read a.xml: line 3, column 7: not closed");
  EXPECT_EQ(error.code(), ExitCode::usage);
}

TEST(Error, SystemErrorsCarryTheSystemsWords) {
  EXPECT_NE(system_error("f", "open", ENOENT, "x").message().find("No such file"),
            std::string::npos);
}

TEST(Error, HostileNamesCannotBreakALine) {
  const Error error(ExitCode::usage, "a\nb\x1b[31m\xff", "read", "", "line1\nline2");
  EXPECT_EQ(error.message(), "cannot read a\\x0ab\\x1b[31m\\xff");
  EXPECT_EQ(error.fix(), "line1\\x0aline2");
}

TEST(Error, ControlsInUtf8AndChangesOfDirectionAreEscaped) {
  EXPECT_EQ(printable("a\u009b31mb"), "a\\xc2\\x9b31mb");
  EXPECT_EQ(printable("a\u202eb"), "a\\xe2\\x80\\xaeb");
  EXPECT_EQ(printable("a\u061cb"), "a\\xd8\\x9cb");
}

TEST(Error, PrintableKeepsUtf8AndCutsLongText) {
  EXPECT_EQ(printable("caf\xc3\xa9"), "caf\xc3\xa9");
  EXPECT_EQ(printable(std::string(500, 'a'), 10), std::string(10, 'a') + "...");
}

} // namespace shmemctl
