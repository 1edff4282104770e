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
}

TEST(Error, PrintableKeepsUtf8AndCutsLongText) {
  EXPECT_EQ(printable("caf\xc3\xa9"), "caf\xc3\xa9");
  EXPECT_EQ(printable(std::string(500, 'a'), 10), std::string(10, 'a') + "...");
}

} // namespace shmemctl
